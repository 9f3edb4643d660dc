from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from support.projects import write_project

from patchwheel import needed as module
from patchwheel.errors import ConfigError, PinError
from patchwheel.needed import Release, answer, needed
from patchwheel.probes import load_probes
from patchwheel.probes.model import SeriesProbes
from patchwheel.project import Project
from patchwheel.series.header import DropWhen

ROOT = Path(__file__).parents[2]
PATCH = "0001-shift.patch"

PROBES = f"""
series = "s"
[[needed]]
patch = "{PATCH}"
[[needed.answers]]
verdict = "there"
says = "it adds one"
code = [{{ file = "vllm/v1/runner.py", scope = "Runner.layers", pattern = "_i_ + 1" }}]
[[needed.answers]]
verdict = "partly"
says = "it makes a list"
code = [{{ file = "vllm/v1/runner.py", scope = "Runner.layers", pattern = "list(_ids_)" }}]
[[needed.answers]]
verdict = "needed"
says = "it hands them on"
code = [{{ file = "vllm/v1/runner.py", scope = "Runner.layers", pattern = "tuple(ids)" }}]
[[needed.answers]]
verdict = "not applicable"
says = "look at it"
"""

RULES = msgspec.toml.decode(PROBES, type=SeriesProbes)
FROM_22 = DropWhen(specifier=">=0.22.0", reason="there")


def verdict(body: str | None, version: str = "0.20.2") -> tuple[str, str | None]:
    source = None if body is None else f"class Runner:\n    def layers(self, ids):\n        return {body}\n".encode()
    (need,) = answer(RULES, {"vllm/v1/runner.py": source}.get, version=version, drops={PATCH: FROM_22})
    return need.verdict, need.contradiction


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("tuple(ids)", "needed"),
        ("tuple(i + 1 for i in ids)", "there"),
        ("list(ids)", "partly"),
        ("ids", "not applicable"),
        (None, "not applicable"),
    ],
)
def test_the_first_answer_that_fits_counts(body: str | None, expected: str) -> None:
    assert verdict(body)[0] == expected


def test_a_header_that_contradicts_the_wheel_is_told() -> None:
    assert verdict("tuple(ids)", "0.20.2")[1] is None
    assert verdict("tuple(i + 1 for i in ids)", "0.22.0")[1] is None
    assert "to drop it here" in (verdict("tuple(ids)", "0.22.1")[1] or "")
    assert "to keep it here" in (verdict("tuple(i + 1 for i in ids)", "0.20.2")[1] or "")
    (need,) = answer(RULES, lambda _path: None, version="0.30.0", drops={})
    assert need.contradiction is None


def written(root: Path, probes: str = PROBES) -> Project:
    project = write_project(root)
    (root / "manifests" / "probes" / "s.toml").write_text(probes)
    base = next(root.glob("*.whl"))
    (root / "manifests" / "bases.lock.toml").write_text(
        'schema = "patchwheel.bases/1"\n'
        '[[bases]]\nproject = "vllm"\nversion = "0.20.2"\n'
        f'[[bases.wheels]]\nfile = "{base.name}"\nsize = {base.stat().st_size}\n'
        f'sha256 = "{hashlib.sha256(base.read_bytes()).hexdigest()}"\nvariant = "x86_64-cu13"\n'
    )
    return project


def test_a_release_is_answered_from_its_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = written(tmp_path)
    wheel = next(tmp_path.glob("*.whl"))
    pins = module._pins
    monkeypatch.setattr(
        module,
        "_pins",
        lambda *given: [replace(pin, path=wheel) for pin in pins(*given)],
    )
    (release,) = needed("s", None, project=project)
    assert [need.verdict for need in release.needs] == ["needed"]
    assert release.needs[0].evidence == "vllm/v1/runner.py:4"
    text = release.as_text()
    assert "needed" in text
    assert PATCH in text
    assert release.as_document()["version"] == "0.20.2"


def test_a_release_that_is_not_locked(tmp_path: Path) -> None:
    with pytest.raises(PinError, match=r"of version 0\.99\.0 is locked"):
        needed("s", ["0.99.0"], project=written(tmp_path))


def test_a_series_without_rules(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing says"):
        needed("s", None, project=written(tmp_path, 'series = "s"\n'))


def test_rules_for_other_patches(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not those of the series"):
        needed("s", None, project=written(tmp_path, PROBES.replace("0001-shift", "0002-other")))


def test_unknown_series(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown series"):
        needed("t", None, project=written(tmp_path))


def test_each_rule_of_the_series_has_words_for_it() -> None:
    probes = load_probes("dflash-swa-support", Project(root=ROOT).probes)
    assert probes
    for rules in probes.needed:
        assert rules.answers[-1].verdict in {"not applicable", "elsewhere"}
        assert {rule.verdict for rule in rules.answers} <= set(module.WORDS)


def test_the_document(tmp_path: Path) -> None:
    (need,) = answer(RULES, lambda _path: None, version="0.20.2", drops={})
    release = Release(series="s", project="vllm", version="0.20.2", file="a.whl", needs=(need,))
    assert msgspec.json.decode(msgspec.json.encode(release.as_document())) == release.as_document()

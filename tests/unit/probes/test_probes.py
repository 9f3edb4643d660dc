"""The probes' files, and what is made of them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import patchwheel.probes
from patchwheel.errors import ConfigError
from patchwheel.probes import Reader, load_probes
from patchwheel.probes.model import Code, SeriesProbes
from patchwheel.project import Project
from patchwheel.series import load_series

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[3]
PROJECT = Project(root=ROOT)
SERIES = [path.stem for path in PROJECT.probes.glob("*.toml")]

FILE = """
series = "s"
[[static]]
name = "it is there"
patch = "0001-a.patch"
code = [{ file = "a.py", scope = "f", pattern = "x + 1" }, { file = "a.py", scope = "g", absent = true }]
[[needed]]
patch = "0001-a.patch"
[[needed.answers]]
verdict = "there"
says = "it adds one"
code = [{ file = "a.py", scope = "f", pattern = "x + 1" }]
[[needed.answers]]
verdict = "needed"
says = "it doesn't"
"""


def loaded(tmp_path: Path, text: str = FILE) -> SeriesProbes:
    (tmp_path / "s.toml").write_text(text, "utf-8")
    probes = load_probes("s", tmp_path)
    assert probes
    return probes


def reader(**files: bytes) -> Reader:
    return Reader({f"{name}.py": data for name, data in files.items()}.get)


def calls_module() -> ModuleType:
    """The script of the behavioural probes; it imports vLLM only when a probe is called."""
    spec = importlib.util.spec_from_file_location("calls", Path(patchwheel.probes.__file__).parent / "calls.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["calls"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("series", SERIES)
def test_every_patch_has_a_static_probe(series: str) -> None:
    probes = load_probes(series, PROJECT.probes)
    assert probes
    patches = [patch.name for patch in load_series(series, "0.20.2", PROJECT).patches]
    assert list(dict.fromkeys(probe.patch for probe in probes.static)) == patches


def test_every_patch_of_the_series_has_a_behavioural_probe_and_rules() -> None:
    probes = load_probes("dflash-swa-support", PROJECT.probes)
    assert probes
    patches = [patch.name for patch in load_series("dflash-swa-support", "0.20.2", PROJECT).patches]
    assert list(dict.fromkeys(probe.patch for probe in probes.behavioural)) == patches
    assert [need.patch for need in probes.needed] == patches


def test_every_call_is_listed_and_every_listed_call_is_there() -> None:
    listed = [probe.call for name in SERIES if (one := load_probes(name, PROJECT.probes)) for probe in one.behavioural]
    assert sorted(listed) == sorted(calls_module().PROBES)


def test_a_call_that_fails_is_a_result(capfd: pytest.CaptureFixture[str]) -> None:
    """Here there is no vLLM, so every probe fails, and says why."""
    module = calls_module()
    assert module.main(["taps", "block"]) == 0
    results = json.loads(capfd.readouterr().out)["results"]
    assert [result["holds"] for result in results] == [False, False]
    assert all("ModuleNotFoundError" in result["evidence"] for result in results)


def test_what_calls_are_held_to() -> None:
    module = calls_module()
    assert module.expect((1, 2), (1, 2)) == "(1, 2)"
    with pytest.raises(AssertionError, match="1, and it must be 2"):
        module.expect(1, 2)

    def refuse() -> None:
        raise ValueError("set sliding_window")

    assert module.refused(refuse, "sliding_window") == "set sliding_window"
    with pytest.raises(AssertionError, match="does not say"):
        module.refused(refuse, "use_sliding_window")
    with pytest.raises(AssertionError, match="not refused"):
        module.refused(lambda: None)


def test_a_static_probe(tmp_path: Path) -> None:
    (probe,) = loaded(tmp_path).static
    assert reader(a=b"def f(x): return x + 1").all_hold(probe.code).holds
    for source, evidence in {
        b"def f(x): return x + 2": "a.py:f has no x + 1",
        b"def f(x): return x + 1\ndef g(): pass": "a.py:2",
        b"def h(x): return x + 1": "a.py has no f",
        b"def f(": "a.py can't be parsed",
    }.items():
        seen = reader(a=source).all_hold(probe.code)
        assert (seen.holds, seen.evidence) == (False, evidence)
    assert reader().all_hold(probe.code).evidence == "a.py is not there"


def test_a_parameter() -> None:
    code = Code(file="a.py", scope="f", parameter="window")
    assert reader(a=b"def f(window): pass").look(code).evidence == "a.py:1 takes window"
    assert not reader(a=b"def f(other): pass").look(code).holds


@pytest.mark.parametrize("source", [b"def f(", b"def f():\n    return " + b"1+" * 3000 + b"1"], ids=["broken", "deep"])
def test_what_cannot_be_looked_at_holds_nothing(source: bytes) -> None:
    for absent in (False, True):
        seen = reader(a=source).look(Code(file="a.py", scope="f", pattern="_x_ + _x_", absent=absent))
        assert (seen.holds, seen.evidence) == (False, "a.py can't be parsed")


def test_what_is_not_there_is_absent() -> None:
    assert reader().look(Code(file="a.py", absent=True)).holds


def test_each_file_is_read_once() -> None:
    asked = []

    def read(path: str) -> bytes:
        asked.append(path)
        return b"def f(): pass"

    counting = Reader(read)
    for _ in range(3):
        counting.look(Code(file="a.py", scope="f"))
    assert asked == ["a.py"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('series = "s"', 'series = "t"', "named as their file"),
        ('pattern = "x + 1" }, {', 'pattern = "x +" }, {', "not Python"),
        ('pattern = "x + 1" }, {', 'pattern = "x", parameter = "x" }, {', "one of pattern and parameter"),
        ('says = "it doesn\'t"', 'says = "no"\ncode = [{ file = "a.py" }]', "must fit always"),
        ('verdict = "there"', 'verdict = "perhaps"', "perhaps|verdict"),
        ('patch = "0001-a.patch"\ncode', 'patch = "a.patch"\ncode', "patch"),
        ("absent = true", "missing = true", "missing"),
    ],
)
def test_files_that_say_what_they_may_not(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(ConfigError, match=told):
        loaded(tmp_path, FILE.replace(old, new))


@pytest.mark.parametrize("name", ["other", "../s", "/etc/passwd"])
def test_a_series_without_probes(tmp_path: Path, name: str) -> None:
    loaded(tmp_path)
    assert load_probes(name, tmp_path / "folder" if name == "../s" else tmp_path) is None

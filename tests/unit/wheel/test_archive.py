"""The strict reader: each way in which readers of ZIP files disagree is refused."""

from __future__ import annotations

import io
import os
import struct
import tempfile
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.wheels import pack_wheel, wheel_files
from support.zips import Entry, build_zip

from patchwheel.errors import ArchiveError
from patchwheel.wheel import zipformat as zf
from patchwheel.wheel.archive import Archive
from patchwheel.wheel.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterator


class Bytes:
    """A source in memory."""

    name = "test.whl"

    def __init__(self, data: bytes) -> None:
        self.data = data

    @property
    def size(self) -> int:
        return len(self.data)

    def read_at(self, offset: int, count: int) -> bytes:
        return self.data[offset : offset + count]


class Counting(Bytes):
    """Counts how often it is read."""

    reads = 0

    def read_at(self, offset: int, count: int) -> bytes:
        self.reads += 1
        return super().read_at(offset, count)


def checked(data: bytes) -> Archive:
    archive = Archive(Bytes(data))
    archive.check_layout()
    for member in archive.members:
        for _ in archive.chunks(member):
            pass
    return archive


def problems(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        checked(data)
    return str(caught.value)


def test_reads_what_zipfile_writes() -> None:
    files = wheel_files()
    archive = checked(pack_wheel(files))
    assert [member.name for member in archive.members] == list(files)
    assert {name: archive.read(name) for name in files} == files
    assert [member.name for member in archive.members if member.is_executable] == ["vllm/run.sh"]


def test_the_builder_of_hostile_archives_builds_good_ones_too() -> None:
    data = build_zip(Entry(name="a.py"), Entry(name="ü.py", flags=zf.UTF8), Entry(name="d/", data=b"", deflate=False))
    assert [member.name for member in checked(data).members] == ["a.py", "ü.py", "d/"]
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None


@pytest.mark.parametrize("magic", [b"", zf.DESCRIPTOR_MAGIC])
@pytest.mark.parametrize("sizes", ["2I", "2Q"])
def test_reads_members_with_data_descriptors(magic: bytes, sizes: str) -> None:
    entry = Entry(name="a.py", flags=zf.DESCRIPTOR, local={"crc32": 0, "packed_size": 0, "size": 0})
    fields = entry.fields()
    numbers = (fields["crc32"], fields["packed_size"], fields["size"])
    entry.descriptor = magic + struct.pack(f"<I{sizes}", *numbers)
    assert checked(build_zip(entry, Entry(name="b.py"))).read("a.py") == b"some content\n"


def test_a_descriptor_that_disagrees_is_refused() -> None:
    entry = Entry(
        name="a.py",
        flags=zf.DESCRIPTOR,
        local={"crc32": 0, "packed_size": 0, "size": 0},
        descriptor=struct.pack("<4sIII", zf.DESCRIPTOR_MAGIC, 1, 2, 3),
    )
    assert "16 bytes unlisted bytes before b.py" in problems(build_zip(entry, Entry(name="b.py")))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Entry(name="/etc/passwd"), "absolute path"),
        (Entry(name="../up.py"), "dot parts"),
        (Entry(name="a/../../up.py"), "dot parts"),
        (Entry(name="a//b.py"), "empty or dot parts"),
        (Entry(name="./a.py"), "dot parts"),
        (Entry(name="a\\b.py"), "of another system"),
        (Entry(name="C:/a.py"), "of another system"),
        (Entry(name=""), "is empty"),
        (Entry(name="a\0.py"), "control or invisible characters"),
        (Entry(name="a\n.py"), "control or invisible characters"),
        (Entry(name="a\u202ey.py", flags=zf.UTF8), "control or invisible characters"),
        (Entry(name="link.py", mode=0o120777), "link or another special file"),
        (Entry(name="link.py", mode=0o120777, central={"made_by": 20}), "link or another special file"),
        (Entry(name="folder", mode=0o040755), "link or another special file"),
        (Entry(name="pipe", mode=0o010644), "link or another special file"),
        (Entry(name="a.py", flags=zf.ENCRYPTED), "is encrypted"),
        (Entry(name="a.py", flags=0x2000), "unknown flags 0x2000"),
        (Entry(name="a.py", local={"method": 12}, central={"method": 12}), "compression method 12"),
        (Entry(name="d/", data=b"x", deflate=False), "folder with content"),
        (Entry(name="ü.py"), "neither ASCII nor flagged"),
        (Entry(name=b"\xff.py", flags=zf.UTF8), "neither ASCII nor flagged"),
        (Entry(name="a.py", extra=struct.pack("<2H1s", zf.UNICODE_PATH_EXTRA, 1, b"b")), "second name"),
        (Entry(name="a.py", local={"extra": struct.pack("<2H1s", zf.UNICODE_PATH_EXTRA, 1, b"b")}), "second name"),
        (Entry(name="a.py", local={"extra": struct.pack("<2H", 9, 96) + bytes(96)}), "100 bytes in extra fields"),
        (Entry(name="a.py", extra=struct.pack("<2H", 9, 96) + bytes(96)), "100 bytes in extra fields"),
        (Entry(name="a.py", extra=b"\1\0\xff"), "extra field is damaged"),
        (Entry(name="a.py", extra=struct.pack("<2H", 9, 99)), "extra field is damaged"),
        (Entry(name="a.py", central={"size": zf.MAX_32}), "ZIP64 field lacks a value"),
        (Entry(name="a.py", central={"disk": 1}), "another disk"),
        (Entry(name="a.py", deflate=False, central={"size": 3}), "stored but has two sizes"),
        (Entry(name="a.py", local={"name": b"b.py"}), "disagree on name"),
        (Entry(name="a.py", local={"name": b"longer.py"}), "disagree on name"),
        (Entry(name="a.py", local={"crc32": 1}), "disagree on CRC"),
        (Entry(name="a.py", local={"size": 1, "packed_size": 1}), "disagree on compressed size, size"),
        (Entry(name="a.py", local={"method": zf.STORED}), "disagree on method"),
        (Entry(name="a.py", local={"flags": 2}), "disagree on flags"),
        (Entry(name="a.py", gap=b"hidden"), "6 bytes unlisted bytes before a.py"),
        (Entry(name="a.py", local={"crc32": 1}, central={"crc32": 1}), "another CRC"),
        (Entry(name="a.py", local={"size": 5}, central={"size": 5}), "another size"),
        (Entry(name="a.py", local={"size": 99}, central={"size": 99}), "another size"),
        (Entry(name="a.py", local={"packed": b"\xff" * 15}), "data is damaged"),
        (Entry(name="a.py", central={"offset": 1}), "no local header"),
        (Entry(name="a.py", central={"offset": 1 << 30}), "local header is cut off"),
    ],
)
def test_refuses_a_hostile_member(entry: Entry, expected: str) -> None:
    assert expected in problems(build_zip(entry))


def test_refuses_data_after_the_deflate_stream() -> None:
    entry = Entry(name="a.py")
    packed = entry.fields()["packed"]
    assert isinstance(packed, bytes)
    longer: dict[str, int | bytes] = {"packed": packed + b"junk", "packed_size": len(packed) + 4}
    entry.local, entry.central = longer, {"packed_size": len(packed) + 4}
    assert "goes on after the end of the stream" in problems(build_zip(entry))
    shorter: dict[str, int | bytes] = {"packed": packed[:-3], "packed_size": len(packed) - 3}
    entry.local, entry.central = shorter, {"packed_size": len(packed) - 3}
    assert "stops before the end of the stream" in problems(build_zip(entry)) or "another size" in problems(
        build_zip(entry)
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a.py", "a.py"), "is there twice"),
        (("a.py", "A.py"), "differs from a.py in case only"),
        (("a", "a/b.py"), "lies under a, which is a file"),
        (("a/", "a"), "differs from a/ in case only"),
    ],
)
def test_refuses_names_that_collide(names: tuple[str, str], expected: str) -> None:
    entries = [Entry(name=name, data=b"" if name.endswith("/") else b"x", deflate=False) for name in names]
    assert expected in problems(build_zip(*entries))


def test_refuses_members_that_overlap() -> None:
    first = Entry(name="a.py")
    inner = Entry(name="b.py", central={"offset": 0})
    assert "overlap" in problems(build_zip(first, inner)) or "disagree" in problems(build_zip(first, inner))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "no ZIP archive"),
        (b"not a wheel at all", "no ZIP archive"),
        (build_zip(Entry(name="a.py"), tail=b"junk"), "4 bytes of data after the archive's end"),
        (build_zip(Entry(name="a.py"), comment=b"hello"), "5 bytes of data after the archive's end"),
        (build_zip(Entry(name="a.py"), count=2), "has 1 entries, its end record says 2"),
        (build_zip(Entry(name="a.py"), tail=build_zip(Entry(name="b.py"))), "not where the end record says"),
        (b"#!/bin/sh\n" + build_zip(Entry(name="a.py")), "not where the end record says"),
        (build_zip(Entry(name="a.py"), front=b"#!/bin/sh\n"), "10 bytes unlisted bytes before a.py"),
        (build_zip(Entry(name="a.py"))[:-30], "no end record"),
    ],
)
def test_refuses_a_hostile_archive(data: bytes, expected: str) -> None:
    assert expected in problems(data)


def test_tells_all_problems_at_once() -> None:
    text = problems(build_zip(Entry(name="/a"), Entry(name="../b"), Entry(name="c", mode=0o120777)))
    assert "3 faults" in text
    assert all(part in text for part in ("'/a'", "'../b'", "link"))


def test_a_bomb_is_cut_off_at_its_declared_size() -> None:
    entry = Entry(name="a.py", data=bytes(50_000_000), local={"size": 10}, central={"size": 10})
    archive = Archive(Bytes(build_zip(entry)))
    chunks: Iterator[bytes] = archive.chunks(archive.members[0])
    with pytest.raises(ArchiveError, match="another size") as caught:
        assert sum(map(len, chunks)) <= 10
    assert "more bytes" in str(caught.value)
    source = Counting(build_zip(Entry(name="a.py", data=os.urandom(5_000_000), local={"size": 9}, central={"size": 9})))
    archive = Archive(source)
    source.reads = 0
    with pytest.raises(ArchiveError):
        list(archive.chunks(archive.members[0]))
    assert source.reads < 4, "it went on reading what it had refused"


def test_text_members_have_a_limit() -> None:
    archive = Archive(
        Bytes(build_zip(Entry(name="a.py", data=bytes(16 << 20)), Entry(name="b.py", data=bytes((16 << 20) + 1))))
    )
    assert len(archive.read("a.py")) == 16 << 20
    with pytest.raises(ArchiveError, match="more than such a file may have"):
        archive.read("b.py")


def test_an_enormous_directory_is_not_read() -> None:
    entries = [Entry(name=f"{number:05}" + "x" * 60_000, data=b"", deflate=False) for number in range(600)]
    assert "more than any wheel needs" in problems(build_zip(*entries))


def zip64(data: bytes, *, locator_at: int = 0, count: int | None = None, disks: int = 1, disk: int = 0) -> bytes:
    """The archive with ZIP64 end records put before its end record."""
    fields = list(zf.END.unpack(data[-zf.END.size :]))
    end64_at = len(data) - zf.END.size
    entries = fields[3] if count is None else count
    record = zf.END64.pack(zf.END64_MAGIC, zf.END64.size - 12, 45, 45, disk, disk, entries, entries, *fields[5:7])
    locator = zf.END64_LOCATOR.pack(zf.END64_LOCATOR_MAGIC, 0, end64_at + locator_at, disks)
    return data[:end64_at] + record + locator + data[end64_at:]


def test_zip64_end_records() -> None:
    good = build_zip(Entry(name="a.py"))
    assert [member.name for member in checked(zip64(good)).members] == ["a.py"]
    assert "damaged or misplaced" in problems(zip64(good, locator_at=1))
    assert "damaged or misplaced" in problems(zip64(good, disks=2))
    assert "the two end records disagree" in problems(zip64(good, count=2))
    # A second end record, well-formed, hidden in a member: readers would differ on which one counts.
    decoy = zip64(build_zip(Entry(name="b.py")))[-zf.END.size - zf.END64_LOCATOR.size - zf.END64.size :][
        : zf.END64.size
    ]
    hiding = build_zip(Entry(name="a.py", data=decoy, deflate=False))
    at = hiding.index(decoy) - (len(hiding) - zf.END.size)
    assert "damaged or misplaced" in problems(zip64(hiding, locator_at=at))
    assert "several parts" in problems(zip64(good, disk=1))


def test_an_archive_in_several_parts() -> None:
    good = bytearray(build_zip(Entry(name="a.py")))
    good[-zf.END.size + 4] = 1
    assert "several parts" in problems(bytes(good))


@given(st.data())
def test_a_damaged_archive_raises_nothing_but_archive_errors(data: st.DataObject) -> None:
    good = bytearray(build_zip(Entry(name="a.py"), Entry(name="b.py", deflate=False), Entry(name="c/d.py")))
    for position in data.draw(st.lists(st.integers(0, len(good) - 1), min_size=1, max_size=4)):
        good[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    for damaged in (bytes(good), bytes(good[:cut])):
        with suppress(ArchiveError):
            checked(damaged)


def test_file_source_reads_without_moving() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"0123456789")
        file.seek(3)
        source = FileSource(file, "x")
        assert (source.size, source.read_at(2, 4), source.read_at(8, 9)) == (10, b"2345", b"89")
        assert file.tell() == 3

"""The writer: bytes that depend on nothing but the input, readable by everyone, ZIP64 included."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import TYPE_CHECKING

import pytest
from support.wheels import pack_wheel, wheel_files

from patchwheel.wheel import writer as module
from patchwheel.wheel import zipformat as zf
from patchwheel.wheel.archive import Archive
from patchwheel.wheel.source import FileSource
from patchwheel.wheel.writer import ArchiveWriter

if TYPE_CHECKING:
    from pathlib import Path


def base_archive(tmp_path: Path) -> Archive:
    path = tmp_path / "base.whl"
    path.write_bytes(pack_wheel(wheel_files()))
    return Archive(FileSource(path.open("rb"), "base.whl"))


def test_copies_compressed_bytes_and_stores_new_ones(tmp_path: Path) -> None:
    base = base_archive(tmp_path)
    out = io.BytesIO()
    writer = ArchiveWriter(out)
    for member in base.members:
        writer.copy(base, member, f"moved/{member.name}")
    writer.store("new/ü.py", b"x = 1\n", executable=True)
    writer.finish()
    data = out.getvalue()
    assert (writer.size, writer.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        read = {info.filename: archive.read(info) for info in archive.infolist()}
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        times = {info.date_time for info in archive.infolist()}
        kinds = {info.filename: info.compress_type for info in archive.infolist()}
    assert read == {f"moved/{name}": body for name, body in wheel_files().items()} | {"new/ü.py": b"x = 1\n"}
    assert modes["moved/vllm/run.sh"] == modes["new/ü.py"] == 0o100755
    assert modes["moved/vllm/__init__.py"] == 0o100644
    assert times == {(1980, 1, 1, 0, 0, 0)}
    assert kinds["new/ü.py"] == zipfile.ZIP_STORED
    assert kinds["moved/vllm/__init__.py"] == zipfile.ZIP_DEFLATED
    base.source._file.close()  # type: ignore[attr-defined]


def test_more_members_than_16_bits_count(tmp_path: Path) -> None:
    path = tmp_path / "many.whl"
    with path.open("w+b") as file:
        writer = ArchiveWriter(file)
        for number in range(zf.MAX_16 + 5):
            writer.store(f"m/{number}", b"")
        writer.finish()
        file.flush()
        archive = Archive(FileSource(file, "many.whl"))
        archive.check_layout()
        assert len(archive.members) == zf.MAX_16 + 5
    with zipfile.ZipFile(path) as other:
        assert len(other.namelist()) == zf.MAX_16 + 5


@pytest.mark.parametrize("limit", [1, 50, 700, 20_000])
def test_sizes_and_offsets_beyond_32_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """The format's limit, moved down for the writer alone: the reader must find every value in the extra fields."""
    base = base_archive(tmp_path)
    lowered = type("zf", (), {key: getattr(zf, key) for key in dir(zf) if not key.startswith("__")})
    lowered.MAX_32 = limit  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "zf", lowered)
    out = tmp_path / "out.whl"
    with out.open("w+b") as file:
        writer = ArchiveWriter(file)
        for member in base.members:
            writer.copy(base, member)
        writer.finish()
    # What the writer put in place of large values is the lowered limit; put the real mark there instead.
    data = remark(out.read_bytes(), limit)
    with zipfile.ZipFile(io.BytesIO(data)) as other:
        assert other.testzip() is None
        assert {info.filename: other.read(info) for info in other.infolist()} == wheel_files()
    out.write_bytes(data)
    with out.open("rb") as file:
        archive = Archive(FileSource(file, "out.whl"))
        archive.check_layout()
        assert {member.name: archive.read(member.name) for member in archive.members} == wheel_files()
    base.source._file.close()  # type: ignore[attr-defined]


def remark(data: bytes, limit: int) -> bytes:
    """Replace the lowered limit by 0xFFFFFFFF wherever a header holds it as the mark of a large value."""
    patched = bytearray(data)
    mark = zf.MAX_32
    end_at = len(data) - zf.END.size
    end = list(zf.END.unpack_from(data, end_at))
    large = data[end_at - zf.END64_LOCATOR.size : end_at][:4] == zf.END64_LOCATOR_MAGIC
    if large:
        size, offset = zf.END64.unpack_from(data, end_at - zf.END64_LOCATOR.size - zf.END64.size)[-2:]
        end[5] = mark if end[5] == limit else end[5]
        end[6] = mark if end[6] == limit else end[6]
        patched[end_at : end_at + zf.END.size] = zf.END.pack(*end)
    else:
        size, offset = end[5], end[6]
    position = offset
    while position < offset + size:
        fields = list(zf.CENTRAL.unpack_from(data, position))
        name_length, extra_length = fields[10], fields[11]
        extra = data[position + zf.CENTRAL.size + name_length :][:extra_length]
        values = [int.from_bytes(extra[at : at + 8], "little") for at in range(4, len(extra), 8)]
        true_offset = values[-1] if fields[16] == limit and extra else fields[16]
        if extra:
            for index in (8, 9, 16):
                fields[index] = mark if fields[index] == limit else fields[index]
            patched[position : position + zf.CENTRAL.size] = zf.CENTRAL.pack(*fields)
        local = list(zf.LOCAL.unpack_from(data, true_offset))
        if local[10]:
            local[7] = local[8] = mark
            patched[true_offset : true_offset + zf.LOCAL.size] = zf.LOCAL.pack(*local)
        position += zf.CENTRAL.size + name_length + extra_length
    return bytes(patched)

"""ZIP archives built field by field, so that a test can make any one of them lie."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from patchwheel.wheel import zipformat as zf


@dataclass(kw_only=True)
class Entry:
    """A member; ``local`` and ``central`` override fields of the one header only."""

    name: str | bytes
    data: bytes = b"some content\n"
    deflate: bool = True
    flags: int = 0
    mode: int = 0o100644
    extra: bytes = b""
    gap: bytes = b""
    descriptor: bytes = b""
    local: dict[str, int | bytes] = field(default_factory=dict)
    central: dict[str, int | bytes] = field(default_factory=dict)

    def fields(self) -> dict[str, int | bytes]:
        packed = self.data
        if self.deflate:
            engine = zlib.compressobj(6, zlib.DEFLATED, -15)
            packed = engine.compress(self.data) + engine.flush()
        return {
            "name": self.name.encode() if isinstance(self.name, str) else self.name,
            "flags": self.flags,
            "method": zf.DEFLATED if self.deflate else zf.STORED,
            "crc32": zlib.crc32(self.data),
            "packed": packed,
            "packed_size": len(packed),
            "size": len(self.data),
            "extra": self.extra,
        }


def build_zip(
    *entries: Entry, tail: bytes = b"", front: bytes = b"", count: int | None = None, comment: bytes = b""
) -> bytes:
    """An archive with these members, made exactly as they say."""
    out = bytearray(front)
    directory = bytearray()
    for entry in entries:
        fields = entry.fields()
        out += entry.gap
        offset = len(out)
        local = fields | entry.local
        name, extra, packed = local["name"], local["extra"], local["packed"]
        assert isinstance(name, bytes)
        assert isinstance(extra, bytes)
        assert isinstance(packed, bytes)
        numbers = [local[key] for key in ("crc32", "packed_size", "size")]
        header = (zf.LOCAL_MAGIC, 20, local["flags"], local["method"], 0, 33, *numbers, len(name), len(extra))
        out += zf.LOCAL.pack(*header) + name + extra + packed + entry.descriptor
        central = fields | {
            "offset": offset,
            "made_by": 3 << 8 | 20,
            "attributes": entry.mode << 16,
            "disk": 0,
        }
        central |= entry.central
        name, extra = central["name"], central["extra"]
        assert isinstance(name, bytes)
        assert isinstance(extra, bytes)
        numbers = [central[key] for key in ("crc32", "packed_size", "size")]
        directory += zf.CENTRAL.pack(
            zf.CENTRAL_MAGIC,
            central["made_by"],
            20,
            central["flags"],
            central["method"],
            0,
            33,
            *numbers,
            len(name),
            len(extra),
            0,
            central["disk"],
            0,
            central["attributes"],
            central["offset"],
        )
        directory += name + extra
    entries_told = len(entries) if count is None else count
    end = zf.END.pack(zf.END_MAGIC, 0, 0, entries_told, entries_told, len(directory), len(out), len(comment))
    return bytes(out + directory + end + comment + tail)

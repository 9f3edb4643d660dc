"""ELF files that hold nothing but the names of the libraries they need."""

from __future__ import annotations

import struct

_HEADER = 64
_PROGRAM_HEADER = 56
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 0, 1, 5, 10


def shared_object(*needed: str, padding: int = 0) -> bytes:
    """A 64-bit little-endian shared object for x86-64, with one LOAD and one DYNAMIC segment."""
    names, offsets = b"\0", []
    for name in needed:
        offsets.append(len(names))
        names += name.encode() + b"\0"
    strings_at = _HEADER + 2 * _PROGRAM_HEADER + padding
    entries = [(_DT_NEEDED, offset) for offset in offsets]
    entries += [(_DT_STRTAB, strings_at), (_DT_STRSZ, len(names)), (_DT_NULL, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    dynamic_at = strings_at + len(names)
    size = dynamic_at + len(dynamic)
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, _HEADER, 0, 0, _HEADER, _PROGRAM_HEADER, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 4096)
    dynamic_segment = struct.pack("<IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    return header + load + dynamic_segment + bytes(padding) + names + dynamic

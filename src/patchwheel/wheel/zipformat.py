"""The fixed-size structures of the ZIP format (APPNOTE.TXT 6.3.10, §4.3), shared by the reader and the writer."""

from __future__ import annotations

from struct import Struct

LOCAL = Struct("<4s5H3I2H")
"""signature, version, flags, method, time, date, crc, compressed, size, name length, extra length"""
CENTRAL = Struct("<4s6H3I5H2I")
"""signature, made by, version, flags, method, time, date, crc, compressed, size, name length, extra length, comment
length, disk, internal attributes, external attributes, offset"""
END = Struct("<4s4H2IH")
"""signature, disk, directory's disk, entries here, entries, directory size, directory offset, comment length"""
END64 = Struct("<4sQ2H2I4Q")
"""signature, record size less 12, made by, version, disk, directory's disk, entries here, entries, directory size,
directory offset"""
END64_LOCATOR = Struct("<4sIQI")
"""signature, record's disk, record's offset, disks"""

LOCAL_MAGIC = b"PK\3\4"
CENTRAL_MAGIC = b"PK\1\2"
END_MAGIC = b"PK\5\6"
END64_MAGIC = b"PK\6\6"
END64_LOCATOR_MAGIC = b"PK\6\7"
DESCRIPTOR_MAGIC = b"PK\7\x08"

STORED = 0
DEFLATED = 8

ENCRYPTED = 0x0001
COMPRESSION_LEVEL = 0x0006
DESCRIPTOR = 0x0008
UTF8 = 0x0800

ZIP64_EXTRA = 0x0001
UNICODE_PATH_EXTRA = 0x7075

MAX_16 = 0xFFFF
MAX_32 = 0xFFFFFFFF

UNIX = 3
"""The "made by" system whose external attributes hold Unix modes."""

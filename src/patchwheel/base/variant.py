"""The variant of a wheel, read from the wheel: its architecture, and the CUDA release that it was built for.

The architecture is in the file name. The CUDA release is in no metadata, but the extension modules name the
runtime libraries that they need, such as ``libcudart.so.13``. The smallest module that names one settles it,
so that a wheel of hundreds of megabytes on a server is known after a few.
"""

from __future__ import annotations

import re
import tempfile
from typing import IO, TYPE_CHECKING

from patchwheel.errors import ArchiveError
from patchwheel.wheel.names import wheel_arch

if TYPE_CHECKING:
    from patchwheel.wheel.source import Source

__all__ = ["read_variant"]

_IN_MEMORY = 1 << 25
_MODULE = re.compile(r"\.so(\.\d+)*$")
# Of the toolkit's libraries, only those whose soname counts with the toolkit; libcufft.so.12 belongs to CUDA
# 13.
_RUNTIME = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink)(?:-\w+)?\.so\.(?P<major>\d+)(?:\..*)?")
# Names that show a GPU build but not of which release; with one of these, silence doesn't mean CPU.
_DEVICE = re.compile(
    r"lib(?:cuda|torch_cuda|c10_cuda|torch_hip|c10_hip|amdhip64|torch_xpu|c10_xpu|sycl|ze_loader)\.so.*"
)


def read_variant(source: Source, file_name: str) -> str:
    """The variant, such as ``x86_64-cu13`` or ``aarch64-cpu``.

    Args:
        source: The wheel; only its directory and the modules that must be looked at are read.
        file_name: Its name on the index.

    Raises:
        ArchiveError: It is no well-formed wheel for Linux, or is built for a device that has no name here.
    """
    from patchwheel.wheel.archive import Archive  # noqa: PLC0415  (only needed for locking)

    arch = wheel_arch(file_name)
    if arch is None:
        raise ArchiveError("not a wheel for one architecture of Linux", where=file_name)
    archive = Archive(source)
    devices: set[str] = set()
    modules = [member for member in archive.members if _MODULE.search(member.name)]
    for member in sorted(modules, key=lambda member: member.compressed_size):
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
            for chunk in archive.chunks(member):
                file.write(chunk)
            libraries = needed_libraries(file, f"{source.name}: {member.name}")
        for match in filter(None, map(_RUNTIME.fullmatch, libraries)):
            return f"{arch}-cu{match['major']}"
        devices.update(filter(_DEVICE.fullmatch, libraries))
    if devices:
        raise ArchiveError(
            "built for a device, but its modules don't tell for which CUDA release",
            where=source.name,
            expected="a module that needs libcudart.so.N",
            found=", ".join(sorted(devices)),
            next_step="name the wheel under base.wheels of the recipe, with its variant",
        )
    return f"{arch}-cpu"


def needed_libraries(file: IO[bytes], name: str) -> list[str]:
    """The libraries that an ELF file asks the loader for (its ``DT_NEEDED`` entries).

    Raises:
        ArchiveError: It is no ELF file, or a damaged one.
    """
    from elftools.elf.dynamic import DynamicSegment  # noqa: PLC0415  (only needed for locking)
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    try:
        segments = [segment for segment in ELFFile(file).iter_segments() if isinstance(segment, DynamicSegment)]
        tags = [tag for segment in segments for tag in segment.iter_tags("DT_NEEDED")]
        return [str(tag.needed) for tag in tags]  # type: ignore[attr-defined]  # set by the tag's kind
    except Exception as error:  # pyelftools meets damage with errors of any kind
        raise ArchiveError("not a readable ELF file", where=name, found=str(error) or type(error).__name__) from error

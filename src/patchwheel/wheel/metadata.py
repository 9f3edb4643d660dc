"""The files of a wheel that say what it is: METADATA, WHEEL, and the package's own ``_version.py``."""

from __future__ import annotations

import ast
import email.parser
import email.policy
import re
from typing import TYPE_CHECKING

from patchwheel.errors import ArchiveError

if TYPE_CHECKING:
    from patchwheel.wheel.archive import Archive
    from patchwheel.wheel.names import WheelName

__all__ = [
    "find_dist_info",
    "headers",
    "only_dist_info",
    "read_version_module",
    "with_name",
    "with_version",
    "with_version_module",
    "with_wheel_tags",
]

_MAX_VERSION_MODULE = 1 << 16
_VERSION_LINE = re.compile(rb"^Version:[^\r\n]*", re.MULTILINE)
_NAME_LINE = re.compile(rb"^Name:[^\r\n]*", re.MULTILINE)


def only_dist_info(archive: Archive) -> str:
    """The wheel's one metadata folder, whatever wheel it says it is.

    Raises:
        ArchiveError: There is none, or several.
    """
    tops = {member.name.partition("/")[0] for member in archive.members}
    folders = sorted(top for top in tops if top.endswith(".dist-info"))
    if len(folders) != 1:
        raise ArchiveError(
            "a wheel has one .dist-info folder",
            where=archive.source.name,
            found=", ".join(folders) or "none",
        )
    return folders[0]


def find_dist_info(archive: Archive, name: WheelName) -> str:
    """The metadata folder of a wheel of this name.

    Raises:
        ArchiveError: There is none, several, or one that belongs to another wheel than the file name says.
    """
    folder = only_dist_info(archive)
    if not name.names_dist_info(folder):
        raise ArchiveError(
            "the .dist-info folder belongs to another wheel than the file name says",
            where=archive.source.name,
            expected=name.dist_info,
            found=folder,
        )
    return folder


def headers(data: bytes) -> dict[str, list[str]]:
    """The header fields of METADATA or WHEEL, each with all its values, by lower-case name."""
    message = email.parser.BytesHeaderParser(policy=email.policy.compat32).parsebytes(data)
    fields: dict[str, list[str]] = {}
    for key, value in message.items():
        fields.setdefault(key.lower(), []).append(str(value))
    return fields


def with_version(metadata: bytes, version: str) -> bytes:
    """METADATA for another version; every other byte stays.

    Raises:
        ArchiveError: It has no, or more than one, version field.
    """
    return _with_field(metadata, _VERSION_LINE, "Version", version)


def with_name(metadata: bytes, name: str) -> bytes:
    """METADATA for another project; every other byte stays.

    Raises:
        ArchiveError: It has no, or more than one, name field.
    """
    return _with_field(metadata, _NAME_LINE, "Name", name)


def _with_field(metadata: bytes, line: re.Pattern[bytes], field: str, value: str) -> bytes:
    head, blank, body = _split(metadata)
    if len(line.findall(head)) != 1:
        raise ArchiveError(f"METADATA must have one {field} field")
    return line.sub(f"{field}: {value}".encode(), head) + blank + body


def with_wheel_tags(wheel: bytes, name: WheelName) -> bytes:
    """WHEEL with the tags (and build number) that the file name has; upstream's names another platform tag.

    Raises:
        ArchiveError: It is not UTF-8.
    """
    try:
        lines = [line for line in wheel.decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ArchiveError("WHEEL is not UTF-8") from error
    kept = [line for line in lines if line.partition(":")[0].strip().lower() not in ("tag", "build")]
    build = [f"Build: {name.build}"] if name.build else []
    return ("\n".join([*kept, *build, *(f"Tag: {tag}" for tag in name.tags)]) + "\n").encode()


def read_version_module(source: bytes) -> str | None:
    """The value of ``__version__`` in a ``_version.py``, read without running it; None if there is none.

    Raises:
        ArchiveError: The file is no valid Python.
    """
    value = _assigned(source, "__version__")
    return value if isinstance(value, str) else None


def with_version_module(source: bytes, old: str, new: str) -> bytes:
    """A setuptools-scm style ``_version.py`` for another version.

    Only the text of the two values changes, ``__version__`` and ``__version_tuple__``.

    Raises:
        ArchiveError: It has no ``__version__ = ... = '<old>'``, so its layout is not the known one.
    """
    replacements = [(repr(old), repr(new))]
    old_tuple = _assigned(source, "__version_tuple__")
    if isinstance(old_tuple, tuple):
        release, _, local = new.partition("+")
        parts: list[int | str] = [int(part) if part.isdecimal() else part for part in release.split(".")]
        replacements.append((repr(old_tuple), repr((*parts, local) if local else tuple(parts))))
    text = source.decode("utf-8", "surrogateescape")  # the file may have an encoding of its own; its bytes stay
    for before, after in replacements:
        line = re.compile(rf"^(__version\w*\s*=.*?){re.escape(before)}$", re.MULTILINE)
        text, count = line.subn(lambda found, after=after: found[1] + after, text)  # type: ignore[misc]
        if count != 1:
            raise ArchiveError(
                "_version.py does not have the known layout",
                expected=f"one line that assigns {before}",
                found=f"{count} such lines",
            )
    return text.encode("utf-8", "surrogateescape")


def _assigned(source: bytes, name: str) -> object:
    if len(source) > _MAX_VERSION_MODULE:
        raise ArchiveError(f"_version.py has {len(source)} bytes, more than a version needs")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the parser's ways to give up
        raise ArchiveError(f"_version.py is no valid Python: {error}") from error
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            try:
                return ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError, MemoryError):
                return None
    return None


def _split(metadata: bytes) -> tuple[bytes, bytes, bytes]:
    for blank in (b"\r\n\r\n", b"\n\n"):
        head, found, body = metadata.partition(blank)
        if found:
            return head, found, body
    return metadata, b"", b""

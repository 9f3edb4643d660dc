"""The header of a patch: what it is for, where it comes from, and when it is no longer needed.

The form is Debian's DEP-3, so that other tools can read it too, with one field of our own::

    X-Drop-When: >=0.22.0; releases from 0.22.0 do it themselves

A patch that nothing replaces says ``never; and why``. A series for a base that the specifier matches is
refused, for a fix that is applied twice is a fault.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchwheel.series.problems import Problems

__all__ = ["DropWhen", "Header", "read_header"]

_FIELD = re.compile(r"([A-Za-z][A-Za-z-]*):(?:[ \t]+(.*))?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FORWARDED = re.compile(r"(no|not-needed|yes|https://\S+)(\s.*)?", re.DOTALL)
_REQUIRED = {name: name.lower() for name in ("Description", "Origin", "Forwarded", "Last-Update", "X-Drop-When")}
_ALIKE = 0.7  # how like a field's name another must be to be taken for a misspelling of it, from 0 to 1
_OTHERS_COMPARED = 50  # a header made to be slow could have a million


@dataclass(frozen=True, kw_only=True)
class DropWhen:
    """From which releases on a patch must be dropped.

    Args:
        specifier: PEP 440 specifier of these releases, None for never.
        reason: Why, for people.
    """

    specifier: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.specifier or 'never'}; {self.reason}"

    def matches(self, version: str) -> bool:
        """Whether a release, or pre-release, no longer needs the patch."""
        return self.specifier is not None and SpecifierSet(self.specifier).contains(version, prereleases=True)


@dataclass(frozen=True, kw_only=True)
class Header:
    """DEP-3 fields of a patch.

    Args:
        description: What it does and why; the first line is a summary.
        origin: Where it comes from.
        forwarded: Whether it was sent upstream: ``no``, ``not-needed``, ``yes`` or an address, and a remark.
        last_update: The day on which it was last changed.
        drop_when: When to drop it; None if nobody has said, as with patches taken from a git branch.
        others: All further fields in order, such as Bug or Author.
    """

    description: str
    origin: str
    forwarded: str
    last_update: dt.date
    drop_when: DropWhen | None
    others: tuple[tuple[str, str], ...] = ()


def read_header(preamble: bytes, problems: Problems, *, drop_when: bool = True) -> Header | None:
    """Read the header from what stands above the first ``diff --git`` line.

    Args:
        preamble: These lines; what follows a line ``---`` (a diffstat) is left aside.
        problems: Gets every missing or invalid field.
        drop_when: Whether X-Drop-When must be there.

    Returns:
        The header, or None if it has a problem.
    """
    known = len(problems.found)
    try:
        text = preamble.decode()
    except UnicodeDecodeError:
        problems.add("header", "not UTF-8")
        return None
    fields = _read_fields(text, problems)
    others = [name for name in fields if name not in _REQUIRED.values()][:_OTHERS_COMPARED]
    missing = {name: "missing" + _meant(lower, others) for name, lower in _REQUIRED.items()}
    description = fields.pop("description", "") or re.sub(r"^\[PATCH[^]]*\]\s*", "", fields.pop("subject", ""))
    origin, forwarded = fields.pop("origin", ""), fields.pop("forwarded", "")
    if not description:
        problems.add("field Description", f"{missing['Description']}; say what the patch does and why")
    if not origin:
        text = "say where the patch comes from: an address, a commit, or vendor"
        problems.add("field Origin", f"{missing['Origin']}; {text}")
    if not _FORWARDED.fullmatch(forwarded):
        found = _found(forwarded, missing["Forwarded"])
        problems.add("field Forwarded", f"{found}; expected no, not-needed, yes or an https address")
    last_update = _read_date(fields.pop("last-update", ""), problems, missing["Last-Update"])
    drop = None
    if "x-drop-when" in fields or drop_when:
        drop = _read_drop_when(fields.pop("x-drop-when", ""), problems, missing["X-Drop-When"])
    if len(problems.found) > known or last_update is None:
        return None
    return Header(
        description=description,
        origin=origin,
        forwarded=forwarded,
        last_update=last_update,
        drop_when=drop,
        others=tuple(fields.items()),
    )


def _read_fields(text: str, problems: Problems) -> dict[str, str]:
    """Fields by lower-case name, in order, each with its continuation lines."""
    fields: dict[str, str] = {}
    name = None
    for line in text.split("\n"):
        if line.rstrip() == "---":
            break
        if found := _FIELD.fullmatch(line):
            name = found[1].lower()
            if name in fields:
                problems.add(f"field {found[1]}", "given twice")
            fields[name] = (found[2] or "").strip()
        elif line.startswith((" ", "\t")) and name:
            fields[name] += "\n" + ("" if line.strip() == "." else line[1:].rstrip())
        else:
            name = None  # free text, or the "From <commit>" line of a mail
    return {name: value.strip() for name, value in fields.items()}


def _read_date(text: str, problems: Problems, missing: str) -> dt.date | None:
    try:
        if _DATE.fullmatch(text):
            return dt.date.fromisoformat(text)
    except ValueError:
        pass
    problems.add("field Last-Update", f"{_found(text, missing)}; expected a day as YYYY-MM-DD")
    return None


def _read_drop_when(text: str, problems: Problems, missing: str) -> DropWhen | None:
    specifier, _, reason = (part.strip() for part in text.partition(";"))
    try:
        never = specifier == "never"
        if reason and (never or (specifier and SpecifierSet(specifier))):
            return DropWhen(specifier=None if never else specifier, reason=reason)
    except InvalidSpecifier:
        pass
    expected = "expected '<version specifier>; <reason>' or 'never; <reason>'"
    problems.add("field X-Drop-When", f"{_found(text, missing)}; {expected}")
    return None


def _found(text: str, missing: str) -> str:
    return f"found {text!r}" if text else missing


def _meant(name: str, given: Sequence[str]) -> str:
    """The question whether another field is this one misspelled, if one looks so."""
    alike = difflib.get_close_matches(name, given, 1, _ALIKE)
    return f" (is {alike[0].title()} meant?)" if alike else ""

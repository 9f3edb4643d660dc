"""What probes are: the schema of ``manifests/probes/<series>.toml``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from patchwheel.documents import load_toml
from patchwheel.errors import ConfigError
from patchwheel.probes.pattern import parse_pattern

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Answer", "BehaviouralProbe", "Code", "Need", "SeriesProbes", "StaticProbe", "Verdict", "load_probes"]

Verdict = Literal["needed", "there", "elsewhere", "partly", "not applicable"]

_PatchName = Annotated[str, Meta(pattern=r"^[0-9]{4}-.*\.patch$", description="file name of a patch of the series")]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A table of a probes file."""


class Code(_Table, frozen=True, kw_only=True):
    """Code that is in a wheel, or with ``absent`` is not."""

    file: Annotated[str, Meta(description="path in the wheel")]
    scope: Annotated[str, Meta(description="dotted name of a class or function; without it the whole module")] = ""
    pattern: Annotated[
        str | None, Meta(description="Python with placeholders such as _x_, to be found inside the scope")
    ] = None
    parameter: Annotated[str | None, Meta(description="name of a parameter that the function has")] = None
    absent: Annotated[bool, Meta(description="true: it must not be there")] = False

    def __post_init__(self) -> None:
        if self.pattern is not None and self.parameter is not None:
            raise ValueError("give one of pattern and parameter")
        if self.pattern is not None:
            parse_pattern(self.pattern)


class StaticProbe(_Table, frozen=True, kw_only=True):
    """That a patch is in a wheel, seen in its source."""

    name: Annotated[str, Meta(description="what holds, in a few words")]
    patch: _PatchName
    code: Annotated[tuple[Code, ...], Meta(min_length=1, description="all of it must be so")]


class BehaviouralProbe(_Table, frozen=True, kw_only=True):
    """That a patch acts, seen by calling it after the wheel is installed."""

    name: Annotated[str, Meta(description="what holds, in a few words")]
    patch: _PatchName
    call: Annotated[str, Meta(pattern="^[a-z_]+$", description="name of a function of patchwheel/probes/calls.py")]


class Answer(_Table, frozen=True, kw_only=True):
    """One answer to whether a release needs a patch; the first whose code is as it says counts."""

    verdict: Verdict
    says: Annotated[str, Meta(description="why, in one sentence")]
    code: Annotated[tuple[Code, ...], Meta(description="all of it must be so; nothing: always")] = ()


class Need(_Table, frozen=True, kw_only=True):
    """Whether releases need a patch."""

    patch: _PatchName
    answers: Annotated[tuple[Answer, ...], Meta(min_length=1, description="in order; the last one always fits")]

    def __post_init__(self) -> None:
        if self.answers[-1].code:
            raise ValueError("the last answer must fit always: leave its code away")


class SeriesProbes(_Table, frozen=True, kw_only=True):
    """The probes of a series. The schema of ``manifests/probes/*.toml``."""

    series: Annotated[str, Meta(description="the series' name, as the file's")]
    static: tuple[StaticProbe, ...] = ()
    behavioural: tuple[BehaviouralProbe, ...] = ()
    needed: tuple[Need, ...] = ()


def load_probes(series: str, folder: Path) -> SeriesProbes | None:
    """The probes of a series; nothing if there is no file for it.

    Raises:
        ConfigError: The file can't be read, or says something that it may not say.
    """
    path = folder / f"{series}.toml"
    if "/" in series or not path.is_file():  # a series' name may come from a stranger's record
        return None
    probes = load_toml(path, SeriesProbes)
    if probes.series != series:
        raise ConfigError(
            "probes are named as their file", where=f"{path}: series", expected=series, found=probes.series
        )
    return probes

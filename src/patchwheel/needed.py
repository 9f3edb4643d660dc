"""Whether a release still needs a series, patch by patch, answered from the release's own wheel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from patchwheel.base import load_lock, peek_base
from patchwheel.base.pin import BasePin, pin_locked
from patchwheel.errors import ConfigError, PinError
from patchwheel.probes import Reader, load_probes
from patchwheel.progress import SILENT, Reporter
from patchwheel.series import load_series
from patchwheel.series.load import load_series_file
from patchwheel.text import printable
from patchwheel.wheel.archive import Archive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from patchwheel.probes.model import SeriesProbes, Verdict
    from patchwheel.project import Project
    from patchwheel.series.header import DropWhen

__all__ = ["Need", "Release", "answer", "needed"]

WORDS: dict[str, str] = {
    "needed": "needed",
    "there": "already there",
    "elsewhere": "there under another name",
    "partly": "partly there",
    "not applicable": "not applicable",
}
"""The verdicts as people read them."""

_GONE = ("there", "elsewhere")


@dataclass(frozen=True, kw_only=True)
class Need:
    """The answer for one patch.

    Attributes:
        patch: File name of the patch.
        verdict: The answer.
        says: Why.
        evidence: Where that was seen, as ``file:line``, or what is missing.
        contradiction: What the patch's own header says against it, if it does.
    """

    patch: str
    verdict: Verdict
    says: str
    evidence: str
    contradiction: str | None = None


@dataclass(frozen=True, kw_only=True)
class Release:
    """The answers for one release.

    Attributes:
        series: Name of the series.
        project: Project of the release.
        version: Its version.
        file: The wheel that was read.
        needs: One answer for each patch.
    """

    series: str
    project: str
    version: str
    file: str
    needs: tuple[Need, ...]

    def as_document(self) -> dict[str, object]:
        """The answers as part of a JSON document."""
        return {
            "series": self.series,
            "project": self.project,
            "version": self.version,
            "wheel": self.file,
            "patches": [
                {
                    "patch": need.patch,
                    "verdict": need.verdict,
                    "says": need.says,
                    "evidence": need.evidence,
                    "contradiction": need.contradiction,
                }
                for need in self.needs
            ],
        }

    def as_text(self) -> str:
        """The answers as a person reads them."""
        lines = [f"{self.series} on {self.project} {self.version} ({self.file})"]
        for need in self.needs:
            lines.append(f"  {WORDS[need.verdict]:<25}{need.patch}")
            lines.append(f"  {'':<25}{need.says}")
            if need.evidence:
                lines.append(f"  {'':<25}{need.evidence}")
            if need.contradiction:
                lines.append(f"  {'':<25}! {need.contradiction}")
        return printable("\n".join(lines))


def needed(
    series: str,
    versions: Sequence[str] | None,
    *,
    project: Project,
    variant: str = "x86_64-cu13",
    offline: bool = False,
    reporter: Reporter = SILENT,
) -> list[Release]:
    """Answer for releases of vLLM; of each wheel only the modules in question are read.

    Args:
        series: Name of the series.
        versions: Locked releases, or None for all of them.
        project: Has the series, its probes, and the lock.
        variant: Which wheel of a release to read; its Python is that of the others.
        offline: Read only wheels that are cached.
        reporter: Is told what happens.

    Raises:
        ConfigError: There is no such series, or no rules for it.
        PinError: A release or its variant is not locked.
        NetworkError: A wheel can't be reached.
        ArchiveError: A wheel is malformed.
    """
    newest = max(load_series_file(series, project).base, key=Version)
    patches = load_series(series, newest, project).patches
    drops = {patch.name: patch.header.drop_when for patch in patches}
    probes = load_probes(series, project.probes)
    if probes is None or not probes.needed:
        raise ConfigError(
            f"nothing says when the series {series} is needed",
            where=str(project.probes / f"{series}.toml"),
            expected="a table needed for each patch",
        )
    ruled = [need.patch for need in probes.needed]
    if ruled != list(drops):
        raise ConfigError(
            "the rules are not those of the series' patches",
            where=str(project.probes / f"{series}.toml"),
            expected=", ".join(drops),
            found=", ".join(ruled),
        )
    releases = []
    for pin in _pins(project, versions, variant):
        with peek_base(pin, offline=offline, reporter=reporter) as source:
            needs = answer(probes, Archive(source).read_if_there, version=pin.version, drops=drops)
        releases.append(Release(series=series, project=pin.project, version=pin.version, file=pin.file, needs=needs))
    return releases


def answer(
    probes: SeriesProbes,
    read: Callable[[str], bytes | None],
    *,
    version: str,
    drops: Mapping[str, DropWhen | None],
) -> tuple[Need, ...]:
    """Answer for one release from its files.

    Args:
        probes: Has the rules.
        read: Gives the content of a file of the release, None if there is none.
        version: The release.
        drops: What each patch's header says about when to drop it.
    """
    reader = Reader(read)
    needs = []
    for rules in probes.needed:
        for rule in rules.answers:
            seen = reader.all_hold(rule.code)
            if seen.holds:
                told = _contradiction(rule.verdict, drops.get(rules.patch), version)
                needs.append(
                    Need(
                        patch=rules.patch,
                        verdict=rule.verdict,
                        says=rule.says,
                        evidence=seen.evidence,
                        contradiction=told,
                    )
                )
                break
    return tuple(needs)


def _contradiction(verdict: str, drop: DropWhen | None, version: str) -> str | None:
    if drop is None:
        return None
    if drop.matches(version) and verdict not in _GONE:
        return f"its header says to drop it here: {drop}"
    if not drop.matches(version) and verdict in _GONE:
        return f"its header says to keep it here: {drop}"
    return None


def _pins(project: Project, versions: Sequence[str] | None, variant: str) -> list[BasePin]:
    lock = load_lock(project.bases_lock)
    if versions is None:
        versions = [base.version for base in lock.bases if base.wheel(variant)]
    pins = []
    for version in versions:
        base = next((base for base in lock.bases if base.version == version and base.wheel(variant)), None)
        wheel = base.wheel(variant) if base else None
        if base is None or wheel is None:
            raise PinError(
                f"no wheel {variant} of version {version} is locked",
                where=str(project.bases_lock),
                next_step=f"patchwheel base lock vllm=={version}",
            )
        pins.append(pin_locked(base, wheel, variant))
    return pins

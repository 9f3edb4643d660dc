"""The repositories that series are made from: how git is called, and how pinned commits get into the cache.

Two ways of calling git are kept apart. *Fetching* uses the user's configuration and environment: it needs
their proxies, keys and credential helpers, and they can't change what is fetched, as commits are named by
full ids. *Reading* (merge base, messages, diffs) uses none of it: no configuration of user or system, no
attributes, no replaced objects. No call ever waits for an answer from a person.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from patchwheel.errors import ConfigError, NetworkError, PinError, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from patchwheel.progress import Reporter
    from patchwheel.recipe import GitSeries

__all__ = ["Repository", "check_address", "fetch_missing", "is_remote"]

_PROTOCOLS = "https:ssh:file"
_REMOTE = re.compile(r"https://[^@\s]+|ssh://(?!-)\S+|\w[\w.-]*@\w[\w.-]*:[^:\s]\S*|file:///\S+", re.ASCII)
_QUIET_FETCH = (
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    # A server that sends next to nothing for a minute is taken for dead, as git itself would wait for ever.
    *("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60"),
)
_LOCATION_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


def check_address(url: str, folder: Path | None = None) -> str:
    """The address as git gets it; a relative path counts from ``folder``.

    Raises:
        ConfigError: It is none of those allowed. ``ext::`` runs programs, a leading dash is an option, and a
            password in an address would end up in the record of the wheel.
    """
    plain = url and url.isprintable() and "::" not in url and not url.startswith("-")
    if plain and _REMOTE.fullmatch(url):
        return url
    path = os.path.abspath(os.path.join(folder or "", url))  # noqa: PTH100, PTH118  (no Path at run time for one call)
    if plain and os.path.isdir(path):  # noqa: PTH112
        return path
    if plain and not _REMOTE.match(url) and "://" not in url:
        raise ConfigError("there is no such folder", where="series: url", found=path, next_step="correct the path")
    raise ConfigError(
        "not an address that a git series may have",
        where="series: url",
        expected="https://…, ssh://…, user@host:path, file:///… or a folder; no user name in https",
        found=repr(re.sub(r"//[^/]*@", "//…@", url)),
        next_step="leave credentials to git's credential helper",
    )


def is_remote(url: str) -> bool:
    """Whether an address means the same on every machine."""
    return bool(_REMOTE.fullmatch(url)) and not url.startswith("file:")


class Repository:
    """A bare repository in the cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        git = shutil.which("git")
        if git is None:
            raise ToolError(
                "git is not installed",
                expected="a program 'git' on PATH",
                next_step="install git, or put the patches into a folder under patches/",
            )
        self._git = git

    def create(self) -> None:
        """Make it, if it isn't there."""
        if not (self.folder / "objects").is_dir():
            self.read("init", "--quiet", "--bare", "--template=", str(self.folder), bare=True)

    def read(self, *arguments: str, bare: bool = False) -> bytes:
        """Run git without any configuration, and return what it prints.

        Raises:
            ToolError: It fails.
        """
        done = self._run(arguments, _reading_environment(), in_repository=not bare)
        if done.returncode:
            raise ToolError(
                f"git {arguments[0]} failed with exit code {done.returncode}",
                where=str(self.folder),
                found=_last_lines(done.stderr),
            )
        return done.stdout

    def has(self, commit: str) -> bool:
        """Whether a commit was fetched, with all its history: the reference is written only after that."""
        reference = f"refs/pins/{commit}"
        arguments = ("rev-parse", "--quiet", "--verify", f"{reference}^{{commit}}")
        done = self._run(arguments, _reading_environment())
        return done.returncode == 0 and done.stdout.decode().strip() == commit

    def fetch(self, address: str, *refspecs: str) -> str | None:
        """Fetch with the user's configuration; what git said if it failed."""
        options = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--force",
        )
        done = self._run((*_QUIET_FETCH, *options, "--", address, *refspecs), _fetching_environment())
        return _last_lines(done.stderr) if done.returncode else None

    def _run(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, in_repository: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        place = (f"--git-dir={self.folder}",) if in_repository else ()
        return subprocess.run(  # noqa: S603  (no shell; address and ids are checked)
            [self._git, *place, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            start_new_session=True,  # without a terminal, so that ssh can't ask for a password there
        )


def _reading_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    nowhere = os.devnull
    return environment | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": nowhere,
        "GIT_CONFIG_GLOBAL": nowhere,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "HOME": nowhere,
        "XDG_CONFIG_HOME": nowhere,
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def _fetching_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _LOCATION_VARIABLES}
    environment.setdefault("GIT_ASKPASS", "")
    return environment | {
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_TERMINAL_PROMPT": "0",
        "SSH_ASKPASS_REQUIRE": "never",
        "LC_ALL": "C",
    }


def _last_lines(text: bytes) -> str:
    """The end of what git said, without the credentials that it may repeat."""
    lines = text.decode("utf-8", "replace").strip().splitlines()[-3:]
    return re.sub(r"//[^/\s]*@", "//…@", "; ".join(lines)) or "nothing said"


def fetch_missing(
    repository: Repository, source: GitSeries, address: str, *, offline: bool, reporter: Reporter
) -> None:
    """Get the two pinned commits of a series, unless they are there.

    Raises:
        NetworkError: They can't be fetched, or may not be.
        PinError: The repository at the address doesn't have them.
    """
    pins = {source.commit: "commit", source.base_commit: "base-commit"}
    missing = [commit for commit in pins if not repository.has(commit)]
    if not missing:
        return
    if offline:
        raise NetworkError(
            f"{missing[0][:12]} of {source.url} is not in the cache, and offline",
            where=str(repository.folder),
            next_step="run once with a network",
        )
    with reporter.step(f"asked {source.url} for its commits"):
        failed = repository.fetch(address, *(f"{commit}:refs/pins/{commit}" for commit in missing))
        if failed is not None:
            # Some servers give no commit by its id alone. Then all that they do name is fetched.
            failed = repository.fetch(address, "+refs/*:refs/all/*")
            _pin_found(repository, missing)
    absent = [commit for commit in missing if not repository.has(commit)]
    if absent and failed is not None:
        raise NetworkError(
            f"can't fetch {source.url}",
            where=f"series {source.name}",
            found=failed,
            next_step="check the address, the network, and that git can log in there without asking",
        )
    if absent:
        raise PinError(
            f"{source.url} has no commit {absent[0]}",
            where=f"series {source.name}: {pins[absent[0]]}",
            expected="the full id of a commit that a branch, tag or pull request there leads to",
            next_step="correct the id, or push the commit",
        )


def _pin_found(repository: Repository, commits: Sequence[str]) -> None:
    reachable = set(repository.read("rev-list", "--all").decode().split())
    for commit in commits:
        if commit in reachable:
            repository.read("update-ref", f"refs/pins/{commit}", commit)

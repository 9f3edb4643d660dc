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
import signal
import subprocess
import tempfile
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from patchwheel.errors import ConfigError, NetworkError, PatchError, PinError, ToolError
from patchwheel.files import locked, writing
from patchwheel.series.diff import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from patchwheel.progress import Reporter
    from patchwheel.recipe import GitSeries

__all__ = ["Repository", "check_address", "fetch_missing", "is_remote"]

_PROTOCOLS = "https:ssh:file"
_USER_AND_HOST = r"\w[\w.-]*@\w[\w.-]*"
_REMOTE = re.compile(
    rf"https://[^@\s?#]+|ssh://(?:{_USER_AND_HOST}|\w[\w.-]*)(?::\d+)?/\S+|{_USER_AND_HOST}:[^:\s]\S*|file:///\S+",
    re.ASCII,
)
_QUIET_FETCH = (
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    # A server that sends next to nothing for a minute is taken for dead, as git itself would wait for ever.
    *("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60"),
)
_SSH = "ssh -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
"""How git calls ssh, unless the user has said how: a server that is silent for a minute is taken for dead."""
_NOT_BY_ID = re.compile(r"not our ref|unadvertised object|want \S+ not valid|couldn't find remote ref")
"""What servers, and git on their behalf, say of a commit that they don't give by its id."""
_SAID = 4096
"""Most bytes read of what git says."""
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
    if plain and not re.search("[:@]", url):
        raise ConfigError("there is no such folder", where="series: url", found=path, next_step="correct the path")
    raise ConfigError(
        "not an address that a git series may have",
        where="series: url",
        expected="https://… without user or query, ssh://user@host/…, user@host:path, file:///… or a folder",
        found=repr(_redacted(re.sub(r"^[^/]*@", "…@", url))),
        next_step="leave credentials to git's credential helper",
    )


def is_remote(url: str) -> bool:
    """Whether an address means the same on every machine."""
    return bool(_REMOTE.fullmatch(url)) and not url.startswith("file:")


class _Done(NamedTuple):
    """How a call of git ended."""

    code: int
    printed: bytes
    said: str


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

    def prepare(self) -> None:
        """Make it if it isn't there, and sweep what a killed fetch left in it; for who holds the lock."""
        self.read("init", "--quiet", "--bare", "--template=", str(self.folder), in_repository=False)
        with writing(self.folder):
            for pattern in ("objects/**/tmp_*", "*.lock", "refs/**/*.lock"):
                for leftover in self.folder.glob(pattern):
                    if leftover.is_file():
                        leftover.unlink(missing_ok=True)

    def read(self, *arguments: str, limit: int | None = None, in_repository: bool = True) -> bytes:
        """Run git without any configuration, and return what it prints.

        Args:
            arguments: Command, options and arguments.
            limit: Most bytes that it may print, by default as many as a patch may have.
            in_repository: Whether the command is about this repository.

        Raises:
            ToolError: It fails.
            PatchError: It prints more.
        """
        done = self._run(arguments, _reading_environment(), limit=limit, in_repository=in_repository)
        if done.code:
            raise self._failed(arguments[0], done)
        return done.printed

    def merge_bases(self, first: str, second: str) -> list[str]:
        """The best common ancestors of two commits; none if they have no history in common.

        Raises:
            ToolError: git fails.
        """
        done = self._run(("merge-base", "--all", first, second), _reading_environment())
        if done.code not in (0, 1):
            raise self._failed("merge-base", done)
        return done.printed.decode().split()

    def pin_if_there(self, commit: str) -> None:
        """Note a commit as fetched with all its history, if anything that was fetched leads to it."""
        arguments = ("for-each-ref", "--count=1", f"--contains={commit}")
        done = self._run(arguments, _reading_environment())
        if not done.code and done.printed:
            self.read("update-ref", f"refs/pins/{commit}", commit)

    def has(self, commit: str) -> bool:
        """Whether a commit was fetched, with all its history: the reference is written only after that."""
        reference = f"refs/pins/{commit}"
        arguments = ("rev-parse", "--quiet", "--verify", f"{reference}^{{commit}}")
        done = self._run(arguments, _reading_environment())
        return done.code == 0 and done.printed.decode().strip() == commit

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
        environment = _fetching_environment()
        ssh_is_set = "GIT_SSH" in environment or "GIT_SSH_COMMAND" in environment
        if not ssh_is_set and self._run(("config", "--get", "core.sshCommand"), environment).code:
            environment["GIT_SSH_COMMAND"] = _SSH
        done = self._run((*_QUIET_FETCH, *options, "--", address, *refspecs), environment)
        return done.said if done.code else None

    def _run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        limit: int | None = None,
        in_repository: bool = True,
    ) -> _Done:
        place = (f"--git-dir={self.folder}",) if in_repository else ()
        limit = MAX_BYTES if limit is None else limit
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(  # noqa: S603  (no shell; address and ids are checked)
                [self._git, *place, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                # Without a terminal, so that ssh can't ask for a password there; and a group that can be ended whole.
                start_new_session=True,
            ) as process,
        ):
            try:
                printed = cast("IO[bytes]", process.stdout).read(limit + 1)
                if len(printed) > limit:
                    raise PatchError(
                        f"git {arguments[0]} gives more than the {MAX_BYTES} bytes that are read",
                        where=str(self.folder),
                        next_step="take fewer commits, or leave out files that wheels don't carry with 'dropped'",
                    )
                process.wait()
            finally:
                if process.returncode is None:  # interrupted: its helpers (ssh, index-pack) would go on without us
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
            said.seek(max(0, said.seek(0, os.SEEK_END) - _SAID))
            return _Done(process.returncode, printed, _last_lines(said.read()))

    def _failed(self, command: str, done: _Done) -> ToolError:
        return ToolError(f"git {command} failed with exit code {done.code}", where=str(self.folder), found=done.said)


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
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return _redacted("; ".join(lines[-4:])) or "nothing said"


def _redacted(text: str) -> str:
    """Text without what may be secret in an address: user, password, query and fragment."""
    return re.sub(r"(\w://[^\s?#]*)[?#]\S*", r"\1?…", re.sub(r"//\S*@", "//…@", text))


def fetch_missing(
    repository: Repository, source: GitSeries, address: str, *, offline: bool, reporter: Reporter
) -> None:
    """Get the two pinned commits of a series, unless they are there. Then nothing is written or locked.

    Raises:
        NetworkError: They can't be fetched, or may not be.
        PinError: The repository at the address doesn't have them.
        OutputError: The cache can't be written.
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
    failed = None
    with locked(repository.folder.parent):
        repository.prepare()
        if missing := [commit for commit in missing if not repository.has(commit)]:  # while waiting for the lock
            with reporter.step(f"asked {source.url} for its commits"):
                failed = _fetch(repository, address, missing)
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


def _fetch(repository: Repository, address: str, commits: Sequence[str]) -> str | None:
    """Fetch commits by their ids, or all that the server names; what git said if it failed."""
    failed = repository.fetch(address, *(f"{commit}:refs/pins/{commit}" for commit in commits))
    if failed is None or not _NOT_BY_ID.search(failed):
        return failed
    # Some servers give no commit by its id alone. Then all that they do name is fetched.
    failed = repository.fetch(address, "+refs/*:refs/all/*")
    for commit in commits:
        repository.pin_if_there(commit)
    return failed

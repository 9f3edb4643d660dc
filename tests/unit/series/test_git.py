"""Series from git: pinned, the same bytes everywhere, and nothing that asks or runs programs."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.patches import GitRepo

from patchwheel.errors import ConfigError, NetworkError, PatchError, PinError, ToolError
from patchwheel.progress import Reporter
from patchwheel.recipe import GitSeries
from patchwheel.series import Series, apply_series, derive_series, repository
from patchwheel.series import git as git_module
from patchwheel.series.repository import Repository, check_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

A = b"import os\n\n\ndef f():\n    return 1\n"
B = A.replace(b"return 1", b"return 2")


class Origin(NamedTuple):
    repo: GitRepo
    base: str
    tip: str


@pytest.fixture(scope="module")
def made_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    repo = GitRepo(tmp_path_factory.mktemp("git") / "origin")
    base = repo.commit("import of a release", {"vllm/a.py": A, "vllm/b.py": b"b\n", "tests/t.py": b"t\n"})
    repo.git("checkout", "--quiet", "-b", "dflash-swa-support")
    repo.commit(
        "Return two\n\nBecause one is\nnot enough.\n\ndiff --git a/x b/x", {"vllm/a.py": B, "tests/t.py": b"T\n"}
    )
    repo.commit("Only tests", {"tests/new.py": b"x\n", "docs/picture.png": b"\x89PNG\0\0"})
    repo.commit("Nothing", {})
    tip = repo.commit("Add and remove", {"vllm/new.py": b"new\n", "vllm/b.py": None})
    return Origin(repo, base, tip)


@pytest.fixture
def origin(made_origin: Origin, tmp_path: Path) -> Origin:
    """An own copy, for a test that goes on to change it."""
    folder = tmp_path / "origin"
    shutil.copytree(made_origin.repo.folder, folder)
    repo = GitRepo.__new__(GitRepo)
    repo.folder = folder
    return Origin(repo, made_origin.base, made_origin.tip)


def source(origin: Origin, **changes: object) -> GitSeries:
    values: dict[str, object] = {
        "name": "branch",
        "purpose": "for the tests",
        "url": str(origin.repo.folder),
        "commit": origin.tip,
        "base_commit": origin.base,
        "dropped": ("tests/**", "docs/**"),
    }
    return GitSeries(**{**values, **changes})  # type: ignore[arg-type]  # the values fit their names


def derive(origin: Origin, tmp_path: Path, *, offline: bool = False, **changes: object) -> Series:
    return derive_series(source(origin, **changes), cache=tmp_path / "cache", offline=offline)


def test_commits_become_patches(made_origin: Origin, tmp_path: Path) -> None:
    series = derive(made_origin, tmp_path)
    assert [patch.name[13:] for patch in series.patches] == ["return-two", "only-tests", "add-and-remove"]
    assert [patch.paths for patch in series.patches] == [("vllm/a.py",), (), ("vllm/b.py", "vllm/new.py")]
    assert [patch.dropped for patch in series.patches] == [("tests/t.py",), ("docs/picture.png", "tests/new.py"), ()]
    first = series.patches[0]
    assert first.header.description == "Return two\n\nBecause one is\nnot enough.\n\ndiff --git a/x b/x"
    assert first.header.origin == f"other, commit {made_origin.repo.git('rev-parse', 'dflash-swa-support~3')}"
    assert (first.header.forwarded, first.header.last_update) == ("no", dt.date(2026, 11, 30))
    assert first.header.drop_when is None
    applied = apply_series([series], {"vllm/a.py": A, "vllm/b.py": b"b\n"}.get)
    assert [(change.path, change.after) for change in applied.changes] == [
        ("vllm/a.py", B),
        ("vllm/b.py", None),
        ("vllm/new.py", b"new\n"),
    ]
    assert applied.dropped == ("docs/picture.png", "tests/new.py", "tests/t.py")


def test_squash_gives_one_patch(made_origin: Origin, tmp_path: Path) -> None:
    (patch,) = derive(made_origin, tmp_path, squash=True).patches
    assert patch.paths == ("vllm/a.py", "vllm/b.py", "vllm/new.py")
    assert patch.dropped == ("docs/picture.png", "tests/new.py", "tests/t.py")


CONFIG = """\
[diff]
    noprefix = true
    mnemonicPrefix = true
    algorithm = histogram
    context = 9
    interHunkContext = 20
    external = false
    renames = copies
    suppressBlankEmpty = true
    orderFile = order
    colorMoved = zebra
[core]
    abbrev = 4
    quotePath = false
    attributesFile = {attributes}
    pager = false
[color]
    ui = always
[log]
    showSignature = true
    date = relative
[format]
    pretty = oneline
[i18n]
    logOutputEncoding = latin1
"""


def test_the_bytes_do_not_depend_on_configuration(
    made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = derive(made_origin, tmp_path / "plain")
    attributes = tmp_path / "attributes"
    attributes.write_text("*.py diff=odd binary\n")
    config = tmp_path / "home" / ".gitconfig"
    config.parent.mkdir()
    config.write_text(CONFIG.format(attributes=attributes))
    (tmp_path / "xdg" / "git").mkdir(parents=True)
    (tmp_path / "xdg" / "git" / "attributes").write_text("*.py -diff\n")
    monkeypatch.setenv("HOME", str(config.parent))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.noprefix")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u9")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    assert derive(made_origin, tmp_path / "odd") == plain
    # Had git been called as the user calls it, this test would have seen it.
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.setattr(repository, "_reading_environment", lambda: dict(os.environ))
    with pytest.raises((PatchError, ToolError)):
        derive(made_origin, tmp_path / "odd")


def test_attributes_of_the_branch_do_not_count(origin: Origin, tmp_path: Path) -> None:
    tip = origin.repo.commit("Attributes", {".gitattributes": b"*.py -diff\n", "vllm/a.py": A})
    series = derive(origin, tmp_path, commit=tip, dropped=("tests/**", "docs/**", ".gitattributes"))
    assert series.patches[-1].paths == ("vllm/a.py",)


def test_only_the_pinned_commit_counts(origin: Origin, tmp_path: Path) -> None:
    before = derive(origin, tmp_path / "before")
    origin.repo.commit("Later", {"vllm/a.py": b"later\n"})
    assert derive(origin, tmp_path / "after", ref="dflash-swa-support") == before
    origin.repo.git("checkout", "--quiet", "main")
    origin.repo.git("branch", "--quiet", "-D", "dflash-swa-support")
    assert derive(origin, tmp_path / "before", offline=True) == before


def test_offline_works_from_the_cache_only(made_origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="offline"):
        derive(made_origin, tmp_path, offline=True)
    online = derive(made_origin, tmp_path)
    assert derive(made_origin, tmp_path, offline=True) == online


def test_the_variable_says_offline_too(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHWHEEL_OFFLINE", "1")
    monkeypatch.setenv("PATCHWHEEL_CACHE_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(NetworkError, match="offline") as caught:
        derive_series(source(made_origin))
    assert str(tmp_path / "elsewhere") in (caught.value.where or "")


def test_merges_need_squash(origin: Origin, tmp_path: Path) -> None:
    repo = origin.repo
    repo.git("checkout", "--quiet", "-b", "side", origin.base)
    repo.commit("Side", {"vllm/side.py": b"side\n"})
    repo.git("merge", "--quiet", "--no-edit", "dflash-swa-support")
    tip = repo.git("rev-parse", "HEAD")
    with pytest.raises(ConfigError, match="1 of the 6 commits are merges") as caught:
        derive(origin, tmp_path, commit=tip)
    assert "squash = true" in (caught.value.next_step or "")
    (patch,) = derive(origin, tmp_path, commit=tip, squash=True).patches
    assert patch.paths == ("vllm/a.py", "vllm/b.py", "vllm/new.py", "vllm/side.py")


def test_several_merge_bases(origin: Origin, tmp_path: Path) -> None:
    repo = origin.repo
    repo.git("checkout", "--quiet", "-b", "left", origin.base)
    left = repo.commit("Left", {"vllm/left.py": b"left\n"})
    repo.git("checkout", "--quiet", "-b", "right", origin.base)
    right = repo.commit("Right", {"vllm/right.py": b"right\n"})
    repo.git("merge", "--quiet", "--no-edit", left)
    tip = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "--quiet", "left")
    repo.git("merge", "--quiet", "--no-edit", right)
    base = repo.commit("Further", {"vllm/left.py": b"further\n"})
    with pytest.raises(ConfigError, match="several merge bases"):
        derive(origin, tmp_path, commit=tip, base_commit=base)


def test_a_dropped_file_with_a_deceiving_name(origin: Origin, tmp_path: Path) -> None:
    tip = origin.repo.commit("Name", {"tests/a\u202eb": b"x\n"})
    with pytest.raises(PatchError) as caught:
        derive(origin, tmp_path, commit=tip)
    assert "control or invisible characters" in str(caught.value)


def test_a_missing_commit_is_a_matter_of_the_pin(made_origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(PinError, match="has no commit 1234") as caught:
        derive(made_origin, tmp_path, commit="1234" * 10)
    assert caught.value.where == "series branch: commit"
    with pytest.raises(PinError, match="has no commit 5678") as caught:
        derive(made_origin, tmp_path, base_commit="5678" * 10)
    assert caught.value.where == "series branch: base-commit"


@pytest.mark.parametrize(
    ("said", "by_id"),
    [
        ("fatal: remote error: upload-pack: not our ref 12", False),
        ("error: Server does not allow request for unadvertised object 12", False),
        ("fatal: remote error: want 12 not valid", False),
        ("fatal: couldn't find remote ref 12", False),
        ("fatal: unable to access 'x': Could not resolve host: x", True),
        ("fatal: Could not read from remote repository.", True),
        ("fatal: repository 'x' not found", True),
    ],
)
def test_what_servers_say_of_a_commit_that_they_do_not_give(said: str, *, by_id: bool) -> None:
    assert (repository._NOT_BY_ID.search(said) is None) is by_id


def test_a_server_that_gives_no_ids_is_asked_for_all(
    made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "fatal: remote error: upload-pack: not our ref 12"
    asked: list[tuple[str, ...]] = []
    fetch = Repository.fetch

    def refusing(self: Repository, address: str, *refspecs: str) -> str | None:
        asked.append(refspecs)
        return refused if len(asked) == 1 else fetch(self, address, *refspecs)

    expected = derive(made_origin, tmp_path / "plain")
    monkeypatch.setattr(Repository, "fetch", refusing)
    assert derive(made_origin, tmp_path / "refused") == expected
    assert asked[1] == ("+refs/*:refs/all/*",)


def test_no_common_history(origin: Origin, tmp_path: Path) -> None:
    origin.repo.git("checkout", "--quiet", "--orphan", "other")
    tip = origin.repo.commit("Other", {"vllm/a.py": A})
    with pytest.raises(PinError, match="no history in common"):
        derive(origin, tmp_path, commit=tip)


def test_an_empty_range(made_origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing between"):
        derive(made_origin, tmp_path, commit=made_origin.base)
    with pytest.raises(ConfigError, match="nothing between"):
        derive(made_origin, tmp_path, commit=made_origin.base, base_commit=made_origin.tip)


def test_globs_are_held_to_account(made_origin: Origin, tmp_path: Path) -> None:
    told: list[str] = []

    class Teller(Reporter):
        def say(self, message: str) -> None:
            told.append(message)

    globs = ("tests/**", "docs/**", "csrc/**")
    derive_series(source(made_origin, dropped=globs), cache=tmp_path / "cache", reporter=Teller())
    assert [line for line in told if "nothing" in line and "changes nothing" not in line] == [
        "git series branch: nothing matches 'csrc/**' of 'dropped'"
    ]
    only_tests = made_origin.repo.git("rev-parse", "dflash-swa-support~2")
    before = made_origin.repo.git("rev-parse", "dflash-swa-support~3")
    with pytest.raises(ConfigError, match="none of the commits changes a file that wheels carry"):
        derive(made_origin, tmp_path, commit=only_tests, base_commit=before)


@pytest.mark.parametrize("squash", [True, False])
def test_what_shapes_the_wheel_is_not_dropped(origin: Origin, tmp_path: Path, *, squash: bool) -> None:
    files: dict[str, bytes | None] = {
        "csrc/x.cu": b"x\n",
        "setup.py": b"x\n",
        "tests/csrc/x.h": b"x\n",
        "benchmarks/x.cu": b"x\n",
    }
    tip = origin.repo.commit("Native", files)
    globs = ("tests/**", "docs/**", "csrc/**", "benchmarks/**", "*.py")
    with pytest.raises(PatchError, match="2 problems") as caught:
        derive(origin, tmp_path, commit=tip, dropped=globs, squash=squash)
    assert "'csrc/x.cu': can't be dropped: it is native source" in str(caught.value)
    assert "'setup.py': can't be dropped: it is a build file" in str(caught.value)
    mended = origin.repo.commit("Not native", {"csrc/x.cu": None, "setup.py": None})
    assert "tests/csrc/x.h" in derive(origin, tmp_path, commit=mended, dropped=globs, squash=True).patches[0].dropped


def test_files_that_are_neither_in_the_package_nor_dropped(made_origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(PatchError) as caught:
        derive(made_origin, tmp_path, dropped=("docs/**",))
    assert "tests/t.py: outside of vllm/" in str(caught.value)


def test_what_no_patch_may_do_no_commit_may_do(origin: Origin, tmp_path: Path) -> None:
    (origin.repo.folder / "vllm" / "link.py").symlink_to("/etc/passwd")
    tip = origin.repo.commit("Link", {})
    with pytest.raises(PatchError) as caught:
        derive(origin, tmp_path, commit=tip)
    assert "a symbolic link" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% /tmp/x",
        "-u./x",
        "--upload-pack=x",
        "http://example.org/x.git",
        "git://example.org/x.git",
        "https://user:secret@example.org/x.git",
        "https://token@example.org/x.git",
        "https://user:se/cret@example.org/x.git",
        "https://example.org/x.git?private=secret",
        "https://example.org/x.git#token",
        "ssh://user:secret@example.org/x.git",
        "ssh://git@-oProxyCommand=x/y",
        "ssh://example.org",
        "user:secret@example.org:x.git",
        "ssh://-oProxyCommand=x/y",
        "-oProxyCommand=x@host:path",
        "a@-host:path",
        "file://host/share",
        "https://example.org/x\n.git",
        "fd::17",
        "no/such:folder",
        "",
    ],
)
def test_hostile_addresses(made_origin: Origin, tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="not an address") as caught:
        derive(made_origin, tmp_path, url=url)
    assert "secret" not in str(caught.value)
    assert "token" not in str(caught.value)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/x.git",
        "https://example.org:8443/x/y",
        "ssh://git@example.org/x.git",
        "ssh://example.org:22/~/x.git",
        "git@example.org:x/y.git",
        "file:///x.git",
    ],
)
def test_usual_addresses(url: str) -> None:
    assert check_address(url) == url


@pytest.mark.parametrize("url", ["no/such/folder", "/no/such/folder", "../none"])
def test_a_folder_that_is_not_there(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder") as caught:
        check_address(url, tmp_path)
    assert caught.value.found == os.path.abspath(tmp_path / url)  # noqa: PTH100  (as git would see it)


def test_an_address_that_leads_nowhere(made_origin: Origin, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(NetworkError, match="can't fetch"):
        derive(made_origin, tmp_path, url=str(empty))


def test_without_git(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="git is not installed"):
        derive(made_origin, tmp_path)


def fake_git(folder: Path, script: str) -> str:
    """Make a program ``git``, and give the search path on which it comes first."""
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n" + textwrap.dedent(script))
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def test_a_git_that_fails(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fake_git(tmp_path, "echo broken://user:pw@host/x?key=1 >&2\nexit 3\n"))
    with pytest.raises(ToolError, match="git init failed with exit code 3") as caught:
        derive(made_origin, tmp_path)
    assert caught.value.found == "broken://…@host/x?…"


class Call(NamedTuple):
    words: Sequence[str]
    variables: dict[str, str]
    session: int


def record_calls(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls of git that make a series: arguments, environment and session of each."""
    log = tmp_path / "calls"
    log.mkdir()
    script = f"""\
        here={log}/$$
        printf '%s\\n' "$@" > $here.words
        env > $here.variables
        read -r stat < /proc/$$/stat
        echo "$stat" > $here.stat
        exec {shutil.which("git")} "$@"
        """
    monkeypatch.setenv("PATH", fake_git(tmp_path, script))
    derive(made_origin, tmp_path)
    calls = []
    for words in sorted(log.glob("*.words"), key=lambda path: path.stat().st_mtime_ns):
        lines = words.with_suffix(".variables").read_text().splitlines()
        variables = dict(line.split("=", 1) for line in lines if "=" in line)
        session = int(words.with_suffix(".stat").read_text().rpartition(")")[2].split()[3])
        calls.append(Call(words.read_text().splitlines(), variables, session))
    return calls


def test_how_git_is_called(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    calls = record_calls(made_origin, tmp_path, monkeypatch)
    assert not {call.session for call in calls} & {os.getsid(0)}
    fetches = [call for call in calls if "fetch" in call.words]
    assert len(fetches) == 1
    for call in fetches:
        assert call.variables["GIT_ALLOW_PROTOCOL"] == "https:ssh:file"
        assert (call.variables["GIT_TERMINAL_PROMPT"], call.variables["GIT_ASKPASS"]) == ("0", "")
        assert "ConnectTimeout=" in call.variables["GIT_SSH_COMMAND"]
        assert "ServerAliveInterval=" in call.variables["GIT_SSH_COMMAND"]
        assert "http.lowSpeedTime=60" in call.words
    diffs = [call for call in calls if "diff-tree" in call.words and "-p" in call.words]
    assert len(diffs) == 2
    for call in diffs:
        # Other versions of git may have other defaults than the one that is here.
        assert {"--no-ext-diff", "--no-textconv", "--full-index", "--no-renames", "--no-color"} <= set(call.words)
    reads = [call for call in calls if {"diff-tree", "show", "rev-list", "merge-base"}.intersection(call.words)]
    assert len(reads) > 5
    for call in reads:
        assert call.variables["GIT_NO_REPLACE_OBJECTS"] == call.variables["GIT_LITERAL_PATHSPECS"] == "1"
        assert call.variables["GIT_CONFIG_GLOBAL"] == call.variables["HOME"] == os.devnull


@pytest.mark.parametrize("name", ["GIT_SSH_COMMAND", "GIT_SSH", "core.sshCommand"])
def test_the_user_s_own_ssh_is_called(
    name: str, made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GIT_SSH", "GIT_SSH_COMMAND"):
        monkeypatch.delenv(variable, raising=False)
    if name.startswith("GIT"):
        monkeypatch.setenv(name, "mine")
    else:
        (tmp_path / "config").write_text("[core]\n\tsshCommand = mine\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    (call,) = [call for call in record_calls(made_origin, tmp_path, monkeypatch) if "fetch" in call.words]
    assert call.variables.get("GIT_SSH_COMMAND") == ("mine" if name == "GIT_SSH_COMMAND" else None)


def test_no_other_transport_is_used_whatever_the_configuration(
    made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(
        f'[protocol "ext"]\n\tallow = always\n[url "ext::touch% {tmp_path}/ran% "]\n\tinsteadOf = "file:///"\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    with pytest.raises(NetworkError) as caught:
        derive(made_origin, tmp_path, url=f"file://{made_origin.repo.folder}")
    assert "transport 'ext' not allowed" in (caught.value.found or "")
    assert not (tmp_path / "ran").exists()


def cached(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "cache" / "git").glob("*/repository.git")
    return folder


def test_replaced_objects_and_attributes_in_the_cache_do_not_count(made_origin: Origin, tmp_path: Path) -> None:
    before = derive(made_origin, tmp_path)
    folder = cached(tmp_path)
    git = GitRepo.__new__(GitRepo)
    git.folder = folder
    git.git("replace", made_origin.tip, made_origin.base)
    assert git.git("show", "--no-patch", "--format=%s", made_origin.tip) == "import of a release"
    git.git("config", "diff.odd.command", "false")
    git.git("config", "diff.odd.textconv", "false")
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text("*.py diff=odd\n")
    assert derive(made_origin, tmp_path) == before


def test_a_network_fault_is_no_reason_to_fetch_everything(
    made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def failing(_self: Repository, _address: str, *refspecs: str) -> str:
        asked.append(refspecs)
        return "fatal: unable to access: Could not resolve host"

    monkeypatch.setattr(Repository, "fetch", failing)
    with pytest.raises(NetworkError, match="can't fetch") as caught:
        derive(made_origin, tmp_path)
    assert len(asked) == 1
    assert "resolve host" in (caught.value.found or "")


@pytest.mark.parametrize("stamp", ["999999999999999", "9223372036854775807"])
def test_a_date_that_no_calendar_has(origin: Origin, tmp_path: Path, stamp: str) -> None:
    repo = origin.repo
    raw = f"tree {repo.git('rev-parse', 'HEAD~3^{tree}')}\nparent {origin.base}\n"
    raw += f"author a <a> {stamp} +0000\ncommitter a <a> {stamp} +0000\n\nLate\n"
    (tmp_path / "commit").write_text(raw)
    tip = repo.git("hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "commit"))
    repo.git("branch", "late", tip)
    with pytest.raises(PatchError, match=f"the date of commit {tip} is none that a calendar has"):
        derive(origin, tmp_path, commit=tip)


def test_many_files_take_several_calls(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = derive(made_origin, tmp_path, squash=True)
    monkeypatch.setattr(git_module, "_ARGUMENTS", 1)
    assert len(list(git_module._batches(["a", "b", "c"]))) == 3
    assert derive(made_origin, tmp_path, squash=True) == whole
    monkeypatch.setattr(git_module, "_ARGUMENTS", 4)
    assert list(git_module._batches(["a", "b", "ccccc", "d"])) == [["a", "b"], ["ccccc"], ["d"]]
    assert list(git_module._batches([])) == []


def test_what_is_read_of_git_is_bounded(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diff = made_origin.repo.git(*git_module._DIFF, made_origin.base, made_origin.tip, "--", "vllm")
    size = len(diff.encode()) + 1  # the last line's end
    monkeypatch.setattr(git_module, "_ARGUMENTS", 1)  # so that all calls together are bounded
    monkeypatch.setattr(git_module, "MAX_BYTES", size)
    derive(made_origin, tmp_path, squash=True)
    monkeypatch.setattr(git_module, "MAX_BYTES", size - 1)
    with pytest.raises(PatchError, match="git diff-tree gives more than"):
        derive(made_origin, tmp_path, squash=True)


def test_an_endless_git_is_ended(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    derive(made_origin, tmp_path)
    script = f"""\
        case "$*" in *diff-tree*) exec yes;; esac
        exec {shutil.which("git")} "$@"
        """
    monkeypatch.setenv("PATH", fake_git(tmp_path, script))
    monkeypatch.setattr(repository, "MAX_BYTES", 1000)
    with pytest.raises(PatchError, match="git diff-tree gives more than"):
        derive(made_origin, tmp_path)


HANGING = """\
case "$*" in
*fetch*)
    sleep 600 &
    echo "$$ $!" > {note}.new
    mv {note}.new {note}
    wait;;
*) exec {git} "$@";;
esac
"""
DERIVING = """\
import signal, sys
from pathlib import Path
from patchwheel.recipe import GitSeries
from patchwheel.series import derive_series
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
signal.signal(signal.SIGINT, signal.default_int_handler)
source = GitSeries(name="x", purpose="x", url=sys.argv[1], commit="1" * 40, base_commit="2" * 40)
derive_series(source, cache=Path(sys.argv[2]))
"""


def is_running(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_fetch_takes_its_children_along(made_origin: Origin, tmp_path: Path, number: int) -> None:
    note = tmp_path / "note"
    path = fake_git(tmp_path, HANGING.format(note=note, git=shutil.which("git")))
    command = [sys.executable, "-c", DERIVING, str(made_origin.repo.folder), str(tmp_path / "cache")]
    with subprocess.Popen(command, env={**os.environ, "PATH": path}, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(note.exists)
            children = [int(word) for word in note.read_text().split()]
            assert all(map(is_running, children))
            process.send_signal(number)
            assert process.wait(30) != 0
        finally:
            process.kill()
    wait_until(lambda: not any(map(is_running, children)))


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_a_killed_fetch_left_is_swept(made_origin: Origin, tmp_path: Path) -> None:
    earlier = made_origin.repo.git("rev-parse", "dflash-swa-support~3")
    derive(made_origin, tmp_path, commit=earlier)
    folder = cached(tmp_path)
    pack, pin = folder / "objects" / "pack" / "tmp_pack_x1y2z3", folder / "refs" / "pins" / f"{made_origin.tip}.lock"
    loose = folder / "objects" / "12" / "tmp_obj_x1y2z3"
    loose.parent.mkdir(exist_ok=True)
    for leftover in (pack, pin, loose):
        leftover.write_bytes(b"half")
    derive(made_origin, tmp_path, commit=earlier)
    assert pack.exists()  # it may be another process's, which has the lock
    derive(made_origin, tmp_path)
    assert not [leftover for leftover in (pack, pin, loose) if leftover.exists()]


def test_a_read_only_cache_is_enough_once_all_is_there(
    made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    online = derive(made_origin, tmp_path)
    place = cached(tmp_path).parent

    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in place.rglob("*")}

    def refusing(_folder: Path) -> None:
        pytest.fail("nothing is to be written")

    before = files()
    monkeypatch.setattr(repository, "locked", refusing)
    assert derive(made_origin, tmp_path, offline=True) == online
    assert files() == before

"""Series from git: pinned, the same bytes everywhere, and nothing that asks or runs programs."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.patches import GitRepo

from patchwheel.errors import ConfigError, NetworkError, PatchError, PinError, ToolError
from patchwheel.recipe import GitSeries
from patchwheel.series import Series, apply_series, derive_series, repository
from patchwheel.series.repository import Repository, check_address

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_server_that_gives_no_ids_is_asked_for_all(
    made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    fetch = Repository.fetch

    def refusing(self: Repository, address: str, *refspecs: str) -> str | None:
        asked.append(refspecs)
        return "refused" if len(asked) == 1 else fetch(self, address, *refspecs)

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
    with pytest.raises(ConfigError, match="nothing matches 'csrc/"):
        derive(made_origin, tmp_path, dropped=("tests/**", "docs/**", "csrc/**"))
    with pytest.raises(ConfigError, match="none of the commits changes a file that wheels carry"):
        derive(made_origin, tmp_path, dropped=("**",))


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
        "ssh://-oProxyCommand=x/y",
        "-oProxyCommand=x@host:path",
        "a@-host:path",
        "file://host/share",
        "https://example.org/x\n.git",
        "fd::17",
        "no/such/folder",
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
    "url", ["https://example.org/x.git", "ssh://git@example.org/x.git", "git@example.org:x/y.git", "file:///x.git"]
)
def test_usual_addresses(url: str) -> None:
    assert check_address(url) == url


def test_an_address_that_leads_nowhere(made_origin: Origin, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(NetworkError, match="can't fetch"):
        derive(made_origin, tmp_path, url=str(empty))


def test_without_git(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="git is not installed"):
        derive(made_origin, tmp_path)


def test_a_git_that_fails(made_origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho broken://user:pw@host >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ToolError, match="git init failed with exit code 3") as caught:
        derive(made_origin, tmp_path)
    assert caught.value.found == "broken://…@host"

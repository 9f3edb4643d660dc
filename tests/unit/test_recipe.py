"""Recipes: what they may say, and how a wrong one is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchwheel.errors import ConfigError, UsageError
from patchwheel.project import Project, find_project
from patchwheel.recipe import GitSeries, find_recipe, load_recipe

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
name = "r"
summary = "for tests"
label = "dflash.swa"
series = ["one", { name = "two", purpose = "p", url = "u", commit = "COMMIT", base-commit = "COMMIT" }]

[base]
project = "vllm"
version = "0.20.2"
variants = ["x86_64-cu13", "aarch64-cu13"]
""".replace("COMMIT", "0123456789" * 4)


def write(folder: Path, text: str) -> Path:
    path = folder / "r.toml"
    path.write_text(text)
    return path


def test_a_good_recipe(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, GOOD))
    assert recipe.base.variant_names == ("x86_64-cu13", "aarch64-cu13")
    first, second = recipe.series
    assert first == "one"
    assert isinstance(second, GitSeries)
    assert (second.name, second.package, second.squash) == ("two", "vllm", False)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ('label = "dflash.swa"', 'label = "dflash.swa"\nlabell = "x"', "labell", "unknown key 'labell'"),
        ('project = "vllm"', 'project = "vllm"\nprojekt = 1', "base.projekt", "unknown key"),
        ("base-commit", "base_commit", "series[1].base_commit", "unknown key"),
        ('label = "dflash.swa"', "", "", "the key label is missing"),
        ('label = "dflash.swa"', "label = 3", "label", "Expected str, got int"),
        ('label = "dflash.swa"', 'label = "DFlash"', "label", "regex"),
        ('label = "dflash.swa"', 'label = "a_b"', "label", "regex"),
        ('commit = "0123456789', 'commit = "main', "series[1].commit", "regex"),
        ('version = "0.20.2"', 'version = "latest"', "base", "'latest' is no version"),
        ('project = "vllm"', 'project = "vLLM"', "base", "as the index does: 'vllm'"),
        ('variants = ["x86_64-cu13", "aarch64-cu13"]', "", "base", "either variants"),
        ('"x86_64-cu13", "aarch64-cu13"', '"x86_64"', "base.variants[0]", "regex"),
        ('version = "0.20.2"', 'version = "v0.20.2"', "base", "write version 'v0.20.2' as '0.20.2'"),
        ('series = ["one", {', 'series = ["two", {', "", "series lists 'two' twice"),
        ('label = "dflash.swa"', f'label = "{"x" * 65}"', "label", "length <= 64"),
        ('name = "r"', 'name = "other"', "name", "named as its file"),
        ('summary = "for tests"', 'summary = "for tests', "", "not valid TOML"),
        (
            'variants = ["x86_64-cu13", "aarch64-cu13"]',
            f'wheels = [{{ variant = "x86_64-cpu", sha256 = "{"0" * 64}" }}]',
            "base.wheels[0]",
            "exactly one of url and path",
        ),
        (
            'variants = ["x86_64-cu13", "aarch64-cu13"]',
            'wheels = [{ variant = "x86_64-cpu", sha256 = "short", path = "a" }]',
            "base.wheels[0].sha256",
            "regex",
        ),
    ],
)
def test_what_a_recipe_may_not_say(tmp_path: Path, old: str, new: str, key: str, says: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_recipe(path)
    assert str(path) in str(caught.value.where)
    assert says in str(caught.value)
    if says.startswith("unknown"):
        assert str(caught.value.where).endswith(f": {key}")
        assert "one of " in str(caught.value.expected)


def test_an_empty_series_is_refused(tmp_path: Path) -> None:
    text = "\n".join("series = []" if line.startswith("series") else line for line in GOOD.splitlines())
    with pytest.raises(ConfigError, match="length >= 1"):
        load_recipe(write(tmp_path, text))


def test_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe(write(tmp_path, GOOD))
    for machine, expected in (
        ("x86_64", "x86_64-cu13"),
        ("aarch64", "aarch64-cu13"),
        ("arm64", "aarch64-cu13"),
        ("riscv64", "x86_64-cu13"),
    ):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert recipe.choose_variant() == expected
    assert recipe.choose_variant("aarch64-cu13") == "aarch64-cu13"
    with pytest.raises(UsageError, match="no variant 'x86_64-cu12'") as caught:
        recipe.choose_variant("x86_64-cu12")
    assert "x86_64-cu13, aarch64-cu13" in str(caught.value)


def test_finding_recipes(tmp_path: Path) -> None:
    folder = tmp_path / "manifests" / "recipes"
    folder.mkdir(parents=True)
    path = write(folder, GOOD)
    project = Project(root=tmp_path)
    assert find_recipe("r", project) == find_recipe(str(path), project)
    with pytest.raises(UsageError, match="unknown recipe 'q'") as caught:
        find_recipe("q", project)
    assert "one of r" in str(caught.value)
    with pytest.raises(UsageError, match="no such recipe file"):
        find_recipe(str(tmp_path / "none.toml"), project)
    (folder / "dflash-swa.toml").write_text("")
    with pytest.raises(UsageError) as caught:
        find_recipe("dflash-sva", project)
    assert caught.value.next_step == "did you mean dflash-swa?"


def test_finding_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "manifests" / "recipes").mkdir(parents=True)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert find_project().root == tmp_path
    with pytest.raises(UsageError, match="no patchwheel project"):
        find_project(tmp_path / "deep")


def test_the_project_s_own_recipes_are_good() -> None:
    project = find_project()
    names = [path.stem for path in project.recipes.glob("*.toml")]
    assert "dflash-swa-support" in names
    for name in names:
        find_recipe(name, project)

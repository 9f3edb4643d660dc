"""Clean environments, made by the real uv from tiny wheels and without network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.wheels import pack_wheel, record_of

from patchwheel import install
from patchwheel.base.store import Store
from patchwheel.errors import ToolError, UsageError
from patchwheel.install import MARKER, check_overrides, create_environment, find_uv, run_script
from patchwheel.progress import Reporter

NEVER = "gone; sys_platform == 'never'"


class Told(Reporter):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


def write_wheel(folder: Path, name: str = "tiny", version: str = "1.0", *requires: str) -> Path:
    info = f"{name}-{version}.dist-info"
    fields = "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {
        f"{name}.py": f"version = {version!r}\n".encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{fields}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = record_of(files, info)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    path.write_bytes(pack_wheel(files, ()))
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "links").mkdir()
    return Store(root=tmp_path / "cache")


def test_a_wheel_and_what_it_requires(store: Store, tmp_path: Path) -> None:
    write_wheel(tmp_path / "links", "helper", "2.0")
    wheel = write_wheel(tmp_path, "tiny", "1.0", "helper>=2")
    told = Told()
    environment = create_environment(wheel, store=store, offline=True, reporter=told)
    script = tmp_path / "script.py"
    script.write_text("import sys, tiny, helper; print(tiny.version, helper.version, sys.argv[1:], sys.flags.isolated)")
    done = run_script(environment, script, ["a", "b"])
    assert (done.returncode, done.stdout) == (0, "1.0 2.0 ['a', 'b'] 1\n")
    assert [line for line in told.lines if line.startswith("uv: Installed 2 packages")]
    assert not [line for line in told.lines if "helper==" in line]
    assert "installed tiny-1.0-py3-none-any.whl" in told.lines[-1]


def test_overrides_take_the_place_of_requirements(store: Store, tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        write_wheel(tmp_path / "links", "helper", version)
    wheel = write_wheel(tmp_path, "tiny", "1.0", "helper==9", "gone==1")
    with pytest.raises(ToolError, match="uv pip install failed"):
        create_environment(wheel, store=store, offline=True)
    environment = create_environment(wheel, overrides=["helper==1.0", NEVER], store=store, offline=True)
    script = tmp_path / "script.py"
    script.write_text("import helper; print(helper.version)")
    assert run_script(environment, script).stdout == "1.0\n"


def test_what_was_made_is_found_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path)
    first = create_environment(wheel, overrides=["a==1", "b==2"], store=store, offline=True)
    monkeypatch.setattr(install, "find_uv", lambda: pytest.fail("made anew"))
    assert create_environment(wheel, overrides=["b==2", "a == 1"], store=store, offline=True) == first


def test_another_wheel_or_override_is_another_environment(store: Store, tmp_path: Path) -> None:
    one = create_environment(write_wheel(tmp_path), store=store, offline=True)
    other = create_environment(write_wheel(tmp_path, "tiny", "1.1"), store=store, offline=True)
    third = create_environment(write_wheel(tmp_path), overrides=["a==1"], store=store, offline=True)
    assert len({one.folder, other.folder, third.folder}) == 3


def test_an_unfinished_one_is_made_anew(store: Store, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path)
    environment = create_environment(wheel, store=store, offline=True)
    (environment.folder / MARKER).unlink()
    (environment.folder / "left-over").touch()
    assert create_environment(wheel, store=store, offline=True) == environment
    assert not (environment.folder / "left-over").exists()
    assert json.loads((environment.folder / MARKER).read_bytes())["wheel"] == wheel.name


def test_what_uv_complains_of_is_shown(store: Store, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, "tiny", "1.0", "no-such-project==1")
    with pytest.raises(ToolError) as caught:
        create_environment(wheel, store=store, offline=True)
    assert caught.value.details
    assert "no-such-project" in caught.value.details
    assert not list(store.root.rglob(MARKER))


def fake_uv(folder: Path, script: str) -> str:
    """A program in the place of uv."""
    path = folder / "fake-uv"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_last_that_uv_says_is_shown(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = fake_uv(tmp_path, "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i; done; echo why >&2; exit 3")
    monkeypatch.setattr(install, "find_uv", lambda: uv)
    with pytest.raises(ToolError, match="uv venv failed with exit code 3") as caught:
        create_environment(write_wheel(tmp_path), store=store, offline=True)
    lines = (caught.value.details or "").splitlines()
    assert lines[-2:] == ["  | line 60", "  | why"]
    assert "  | line 1" not in lines


@pytest.mark.parametrize(
    "settings", ["[tool.uv.pip]\nno-deps = true", '[tool.uv]\noverride-dependencies = ["helper==1"]']
)
def test_a_project_that_lies_around_has_no_say(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    for version in ("1.0", "2.0"):
        write_wheel(tmp_path / "links", "helper", version)
    wheel = write_wheel(tmp_path, "tiny", "1.0", "helper>=2")
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "p"\nversion = "1"\n{settings}\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("UV_FIND_LINKS", "../links")  # relative paths are still the user's
    environment = create_environment(Path("..", wheel.name), store=store, offline=True)
    script = tmp_path / "script.py"
    script.write_text("import helper; print(helper.version)")
    assert run_script(environment, script).stdout == "2.0\n"


def test_a_script_sees_only_the_environment(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = create_environment(write_wheel(tmp_path), store=store, offline=True)
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "tiny.py").write_text("version = 'shadow'\n")
    (shadow / "script.py").write_text(
        "import os, sys, tiny\n"
        "print(tiny.version, [name for name in os.environ if name.startswith('PYTHON')], os.environ['GIVEN'])\n"
        "print('told', file=sys.stderr); sys.exit(7)\n"
    )
    monkeypatch.chdir(shadow)
    monkeypatch.setenv("PYTHONPATH", str(shadow))
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    done = run_script(environment, shadow / "script.py", variables={"GIVEN": "yes"})
    assert (done.returncode, done.stdout, done.stderr) == (7, "1.0 [] yes\n", "told\n")


def is_there(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has asked for doesn't."""
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def ends(pid: int) -> bool:
    for _ in range(100):
        if not is_there(pid):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("stays", [True, False], ids=["uv-runs", "uv-ended"])
def test_an_interrupted_uv_leaves_nothing_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stays: bool
) -> None:
    """Whether or not the process that was started is still there, those that it has started are gone with it."""

    class Interrupted(Reporter):
        def say(self, message: str) -> None:
            if message.startswith("uv: child "):
                pids.append(int(message.rsplit(maxsplit=1)[-1]))
                if not stays:
                    time.sleep(0.2)
                raise KeyboardInterrupt

    pids: list[int] = []
    uv = fake_uv(tmp_path, f"sleep 300 & echo child $!; {'wait' if stays else 'exit 0'}")
    wheel = write_wheel(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(install, "find_uv", lambda: uv)
        with pytest.raises(KeyboardInterrupt):
            create_environment(wheel, store=store, offline=True, reporter=Interrupted())
    assert [ends(pid) for pid in pids] == [True]
    assert not list(store.root.rglob(MARKER))
    assert (create_environment(wheel, store=store, offline=True).folder / MARKER).exists()


def test_without_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError, match="uv is not installed") as caught:
        find_uv()
    assert caught.value.next_step
    assert "patchwheel[install]" in caught.value.next_step


def test_an_interpreter_that_does_not_run(store: Store, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(ToolError, match="does not run"):
        create_environment(write_wheel(tmp_path), python=broken, store=store, offline=True)


def test_no_wheel(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't read"):
        create_environment(tmp_path / "none.whl", store=store)


def test_overrides_must_be_requirements() -> None:
    assert check_overrides(["b>=1", NEVER, "a==1"]) == ("a==1", "b>=1", 'gone; sys_platform == "never"')
    with pytest.raises(UsageError, match="no requirement"):
        check_overrides(["torch=2"])


@pytest.mark.parametrize("stays", [True, False], ids=["script-runs", "script-ended"])
def test_a_script_does_not_outlive_an_interruption(tmp_path: Path, *, stays: bool) -> None:
    """Interrupt a process that runs a script: the script and what it has started, which would sleep for minutes, go."""
    script = tmp_path / "sleeps.py"
    script.write_text(
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        f"open({str(tmp_path / 'draft')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(tmp_path / 'draft')!r}, {str(tmp_path / 'pids')!r})\n"
        f"time.sleep({300 if stays else 0})\n"
    )
    code = (
        "import sys; from pathlib import Path; from patchwheel.install import Environment, run_script\n"
        "Environment.python = property(lambda self: Path(sys.executable))\n"
        f"run_script(Environment(folder=Path('.'), wheel='', sha256=''), Path({str(script)!r}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if (tmp_path / "pids").exists():
                break
            time.sleep(0.05)
        else:
            pytest.fail("the script did not start")
        leader, child = map(int, (tmp_path / "pids").read_text().split())
        assert stays or ends(leader)
        assert is_there(child)
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert ends(leader)
        assert ends(child)
    finally:
        process.kill()

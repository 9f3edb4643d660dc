#!/usr/bin/env -S uv run --script
# /// script
# requires-python = ">=3.10"
# dependencies = ["nox>=2026.8"]
# ///
"""Sessions of patchwheel. Each is a thin call of the command line or of one tool, in an environment of its own.

``nox`` alone runs lint, types and the unit tests; ``nox --list`` shows the rest. What stands behind ``--`` goes to the
command: ``nox -s build -- --variant aarch64-cu13``.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")
# A build that is interrupted gets time to remove its drafts; nox by default kills after half a second.
PATIENCE = 30.0


def install(session: nox.Session, *groups: str, editable: bool = False) -> None:
    """Install patchwheel and dependency groups."""
    requirements = nox.project.dependency_groups(PROJECT, *groups) if groups else ()
    session.install(*(["-e", "."] if editable else ["."]), *requirements)


def patchwheel(session: nox.Session, *arguments: str, extra: str = "") -> None:
    """Call the command line as a user would: installed, not from the checkout."""
    session.install(f".[{extra}]" if extra else ".")
    session.run("patchwheel", *arguments, interrupt_timeout=PATIENCE, terminate_timeout=PATIENCE)


def given_or_built(session: nox.Session) -> list[str]:
    """The wheels behind ``--``, else all in wheels/."""
    wheels = list(session.posargs) or sorted(map(str, Path("wheels").glob("*.whl")))
    if not wheels:
        session.error("no wheel in wheels/: run nox -s build, or name one behind --")
    return wheels


@nox.session(tags=["check"])
def lint(session: nox.Session) -> None:
    """Style, stage order, and the workflows."""
    install(session, "lint", editable=True)
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports", "--no-cache")
    session.run("zizmor", "--offline", "--no-progress", ".github/workflows")


@nox.session(tags=["check"])
def types(session: nox.Session) -> None:
    """Mypy, strict, on everything."""
    install(session, "types", editable=True)
    session.run("mypy", *session.posargs)


@nox.session(tags=["check", "test"])
def unit(session: nox.Session) -> None:
    """Unit tests: seconds, no network beyond this machine."""
    install(session, "test", editable=True)
    session.run("pytest", "-n", "auto", *(session.posargs or ["tests/unit"]))


@nox.session(tags=["test"], default=False)
def integration(session: nox.Session) -> None:
    """Tests on the real base wheel, fetched once into the cache."""
    install(session, "integration")
    session.run("pytest", *(session.posargs or ["tests/integration"]))


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Branch coverage of the unit tests."""
    install(session, "test", editable=True)
    session.run("pytest", "-n", "auto", "--cov", "--cov-report=term", "tests/unit", *session.posargs)


@nox.session(default=False)
def lowest(session: nox.Session) -> None:
    """Unit tests with the oldest dependencies that pyproject.toml allows (needs the uv backend)."""
    groups = nox.project.dependency_groups(PROJECT, "test")
    session.install("--resolution=lowest-direct", "-e", ".", *groups)
    session.run("pytest", "-n", "auto", "tests/unit", *session.posargs)


@nox.session(default=False)
def plan(session: nox.Session) -> None:
    """Say what a build would do and why."""
    patchwheel(session, "plan", *session.posargs)


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build, verify and publish a wheel into wheels/."""
    patchwheel(session, "build", *session.posargs)


@nox.session(default=False)
def verify(session: nox.Session) -> None:
    """Check wheels; by default all in wheels/."""
    patchwheel(session, "verify", *given_or_built(session))


@nox.session(default=False)
def smoke(session: nox.Session) -> None:
    """Install wheels in clean environments and call what their patches change; by default all in wheels/."""
    for wheel in given_or_built(session):
        patchwheel(session, "smoke", wheel, extra="install")


@nox.session(default=False)
def accept(session: nox.Session) -> None:
    """Build the CPU wheel, serve it with the canary, and hold what it accepts to the reference."""
    patchwheel(session, "accept", *session.posargs, extra="accept")


@nox.session(tags=["prove"], default=False)
def acceptance(session: nox.Session) -> None:
    """The same as tests: each row of the canary's table, the probes on patched and unpatched vLLM, the reference."""
    session.install(".[accept]", *nox.project.dependency_groups(PROJECT, "test"))
    session.run("pytest", *(session.posargs or ["tests/acceptance"]))


@nox.session(default=False)
def needed(session: nox.Session) -> None:
    """Say whether releases still need a series, patch by patch."""
    patchwheel(session, "needed", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Figures of the build as ratios to plain tools, in one run."""
    install(session)
    session.install("wheel>=0.46.2,<1")
    session.run("python", "tests/bench/bench.py", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Write the generated parts of docs/reference anew."""
    install(session, editable=True)
    session.run("python", "docs/generate.py")


if __name__ == "__main__":
    nox.main()

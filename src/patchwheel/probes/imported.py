"""Imports vLLM where it is installed, and loads its extensions as far as the machine allows.

Run by the environment's Python as a script of its own; one JSON document on standard output.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import platform
import signal
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import Any

SCHEMA = "patchwheel.imported/1"
OTHER_PROCESSOR = "made for a processor with more instructions than this one"
ABSENT = (OTHER_PROCESSOR, "libcuda.so.1", "libnvidia-ml.so.1", "libamdhip64")
"""What only another machine has; an extension that lacks nothing else can't be tried here."""


def extensions(package: Path) -> dict[str, Any]:
    """Which extensions load, lack a GPU's driver, or are broken; each with its path inside the package."""
    import torch  # noqa: F401  (extensions need its libraries)

    found: dict[str, Any] = {"loaded": [], "absent": {}, "broken": {}}
    for path in sorted(package.rglob("*.so")):
        if ".cpython-" in path.name and not path.name.endswith(sysconfig.get_config_var("EXT_SUFFIX")):
            continue  # for another Python
        name, problem = str(path.relative_to(package)), problem_of(path)
        if problem is None:
            found["loaded"].append(name)
        else:
            found["absent" if any(library in problem for library in ABSENT) else "broken"][name] = problem
    return found


def problem_of(path: Path) -> str | None:
    """Load an extension in a child: some exclude one another, and one that aborts takes its process along."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        try:
            ctypes.CDLL(str(path))
        except OSError as error:
            os.write(writable, str(error).encode()[:4000])
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        told = pipe.read().decode("utf-8", "replace")
    _pid, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGILL:
        return OTHER_PROCESSOR
    if status:
        return told or f"loading it ended the process, with status {status}"
    return told or None


def main() -> int:
    document_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what vLLM prints while it is imported must not come between
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "python": platform.python_version(),
        "imported": False,
        "error": None,
        "version": None,
        "module_version": None,
        "extensions": {"loaded": [], "absent": {}, "broken": {}},
    }
    try:
        result["version"] = importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError as error:
        result["error"] = str(error)
    if (spec := importlib.util.find_spec("vllm")) and spec.origin:
        result["extensions"] = extensions(Path(spec.origin).parent)  # before vLLM has loaded any
    try:
        import vllm
    except Exception as error:
        traceback.print_exc()
        result["error"] = f"{type(error).__name__}: {error}"
    else:
        result["imported"] = True
        result["module_version"] = vllm.__version__
    with document_to:
        json.dump(result, document_to)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Builds the library of kernels from the package's C++ sources: at installation, and in a checkout when they change.

Any C++17 compiler serves: that of the environment variable CXX, c++, g++, clang++, or that of the Python package
``ziglang``, which needs nothing else installed. It takes no header of Python: the library serves every version.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NATIVE_FOLDER = Path(__file__).resolve().parent
PACKAGE = NATIVE_FOLDER.parent
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY = NATIVE_FOLDER / f"kernels{SUFFIX}"
CHECKED = NATIVE_FOLDER / f"kernels-checked{SUFFIX}"
"""The same with every array index checked, for tests."""

# Results do not depend on the compiler: no fused operations that the source does not have, no relaxed arithmetic.
# Nobody reads errno or the processor's flags; without them a loop that chooses between two values becomes vectors.
IEEE_FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", *IEEE_FLAGS, "-Wall")
CHECKS = ("-DPLIANT_CHECK_BOUNDS", "-D_GLIBCXX_ASSERTIONS", "-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_FAST")
MODERN_X86 = ("avx2", "bmi2", "fma")


class NoCompilerError(RuntimeError):
    """There is no C++ compiler to build with."""


def compiler() -> list[str] | None:
    """The command of a C++ compiler; None if there is none."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++"]
    return None


def sources() -> list[Path]:
    """The C++ files of the package; none in an installed one."""
    return sorted(PACKAGE.rglob("*.cpp"))


def is_stale(library: Path = LIBRARY) -> bool:
    """Whether a source is newer than the library."""
    files = sources()
    if not files:
        return False
    built = library.stat().st_mtime if library.exists() else 0.0
    return any(file.stat().st_mtime > built for file in (*files, *PACKAGE.rglob("*.h")))


def build_library(library: Path = LIBRARY, *, checked: bool = False) -> None:
    """Compile every source and link them, beside the library; it appears under its name when it is complete."""
    command = _compiler()
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".build-") as name:
        folder = Path(name)

        def compiled(source: Path) -> str:
            made = folder / f"{'_'.join(source.relative_to(PACKAGE).with_suffix('').parts)}.o"
            compile_source(source, made, checked=checked)
            return str(made)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compiled, sources()))
        linked = folder / library.name
        _run([*command, "-shared", "-pthread", *objects, *_linking(command), "-o", str(linked)])
        os.replace(linked, library)


def compile_source(source: Path, made: Path, *, checked: bool = False) -> None:
    """One source to an object file."""
    command = _compiler()
    checks = CHECKS if checked else ()
    found = ("-I", str(NATIVE_FOLDER), "-I", str(PACKAGE))
    _run([*command, *FLAGS, "-pthread", *_processor(command), *found, *checks, "-c", str(source), "-o", str(made)])


def _compiler() -> list[str]:
    command = compiler()
    if command is None:
        raise NoCompilerError(
            "pliant's kernels have to be built, and there is no C++ compiler; install one (g++ or clang), or run "
            "`pip install ziglang`, and try again"
        )
    return command


def _linking(command: list[str]) -> list[str]:
    """A library that needs no other of the compiler, and has no names but those it makes known."""
    if sys.platform == "darwin":
        return []
    return ["-s"] if "ziglang" in command else ["-s", "-static-libstdc++", "-static-libgcc"]


def _processor(command: list[str]) -> list[str]:
    """Instructions of x86-64 processors since 2013, where the machine has them; elsewhere the compiler's default."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not _is_modern():
        return []
    return ["-mcpu=x86_64_v3"] if "ziglang" in command else ["-march=x86-64-v3"]


def _is_modern() -> bool:
    try:
        known = Path("/proc/cpuinfo").read_text().split()
    except OSError:  # not Linux
        return False
    return all(flag in known for flag in MODERN_X86)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stderr[-4000:]}")

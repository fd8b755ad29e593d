"""Imports point one way: no package knows of what is built on it."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import pliant
from pliant.former import NAMES

ROOT = Path(pliant.__file__).parent
LAYERS = [
    ("core", "native"),
    ("numerics", "geometry"),
    ("io", "render"),
    ("contact",),
    ("engines",),
    ("gallery",),
    ("app",),
]
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}
ENGINES = ("blend", "transfer", "simulate")


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


IMPORTS = re.compile(r"^ *(?:import (pliant\.[\w.]+)|from (pliant[\w.]*) import (\([^)]*\)|.*))", re.MULTILINE)


@cache
def imports(path: Path) -> set[str]:
    """The modules of pliant that a file imports, wherever in it."""
    found = set()
    for whole, module, names in IMPORTS.findall(path.read_text(encoding="utf-8")):
        for name in re.findall(r"\w+", names) or [""]:
            full = f"{module}.{name}"
            found.add(whole or (full if full in MODULES else module))
    return {name for name in found if name.startswith("pliant.")}


def layer(module: str) -> int:
    """An engine's own app folder is built on the app's generic parts, the rest of the engine is below them."""
    parts = module.split(".")
    if parts[1] == "engines" and (len(parts) < 4 or parts[3] == "app"):
        return LEVEL["app"] if (len(parts) > 2 and parts[2] not in ENGINES) or "app" in parts else LEVEL["engines"]
    return LEVEL[parts[1]]


def test_imports_point_one_way() -> None:
    wrong = []
    for module, path in MODULES.items():
        if module.count(".") == 0 or module in ("pliant.__main__", "pliant.former"):
            continue
        for other in imports(path):
            if other != "pliant.former" and layer(other) > layer(module):
                wrong.append(f"{module} imports {other}")
    assert sorted(wrong) == []


def test_the_app_names_no_engine() -> None:
    wrong = []
    for module, path in MODULES.items():
        if module.startswith("pliant.app.") and not module.startswith("pliant.app.demo"):
            named = [name for name in imports(path) if name.startswith(tuple(f"pliant.engines.{e}" for e in ENGINES))]
            wrong += [f"{module} imports {name}" for name in named]
    assert sorted(wrong) == []


def test_engines_do_not_know_each_other() -> None:
    wrong = []
    for module, path in MODULES.items():
        for engine in ENGINES:
            if module.startswith(f"pliant.engines.{engine}"):
                others = tuple(f"pliant.engines.{other}" for other in ENGINES if other != engine)
                wrong += [f"{module} imports {name}" for name in imports(path) if name.startswith(others)]
    assert sorted(wrong) == []


@pytest.mark.parametrize(
    ("former", "present"),
    [("pliant.blend.springs", "pliant.engines.blend.springs"), ("pliant.cage", "pliant.engines.transfer"),
     ("pliant.elastic.cells", "pliant.engines.simulate.quadrature"), ("pliant.errors", "pliant.core.errors")],
)  # fmt: skip
def test_former_names_import_the_same_module_with_a_warning(former: str, present: str) -> None:
    sys.modules.pop(former, None)
    with pytest.warns(DeprecationWarning, match=present):
        module = importlib.import_module(former)
    assert module is importlib.import_module(module.__name__)
    assert module.__name__.startswith(present)
    assert module.__spec__.name == module.__name__


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_former_name_leads_to_a_module() -> None:
    for name, present in NAMES.items():
        assert importlib.import_module(f"pliant.{name}").__name__ == f"pliant.{present}"


def test_public_modules_keep_their_names() -> None:
    code = "import pliant.rotations, pliant.quality, pliant.scene; from pliant.report import Contact"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pliant.squash")

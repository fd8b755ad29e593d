"""Modules under the names they had in earlier versions: importing one gives the module that took its place.

Public modules such as ``pliant.rotations`` keep their names for good; all others come with a DeprecationWarning.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGES = {
    "core": "clips errors normals options regions rotations scaling shapes skeleton topology values",
    "geometry": "quality retargeting simplify spatial",
    "numerics": "linalg",
    "app": "cli demo inspection report scene studio",
}
NAMES = {name: f"{package}.{name}" for package, names in PACKAGES.items() for name in names.split()} | {
    "blend": "engines.blend",
    "blend.correctives": "engines.blend.statics",
    "blend.guess": "engines.blend.body",
    "blend.rest": "engines.blend.springs",
    "cage": "engines.transfer",
    "cage.adapt": "engines.transfer.plan",
    "cage.bones": "engines.transfer.plan",
    "cage.transfer": "engines.transfer.deformation_transfer",
    "contact.motion": "contact.obstacle_files",
    "contact.own": "contact.self_contact",
    "contact.passage": "contact.collision_pairs",
    "contact.rows": "contact.constraints",
    "contact.touch": "contact.solver",
    "elastic": "engines.simulate",
    "elastic.cells": "engines.simulate.quadrature",
    "elastic.clicks": "geometry.skeletons.clicks",
    "elastic.cloud": "engines.simulate.point_cloud",
    "elastic.curve_skeleton": "geometry.skeletons.curve_skeleton",
    "elastic.levels": "engines.simulate.multigrid",
    "elastic.samples": "engines.simulate.bone_samples",
    "io.room": "io.sandbox",
    "nets": "geometry.surface_nets",
    "report.blend": "engines.blend.app.report",
    "report.run": "engines.blend.app.result",
    "report.transfer": "engines.transfer.app.report",
    "report.transfer_run": "engines.transfer.app.result",
    "scene.blend": "engines.blend.app.scene",
    "scene.cage": "engines.transfer.app.posed_scene",
    "scene.elastic": "engines.simulate.app.scene",
    "scene.transfer": "engines.transfer.app.scene",
    "spatial.bvh": "geometry.bvh",
    "spatial.winding": "geometry.winding_number",
}
"""Former name, present one; what was below the former one is below the present one."""

_BLEND, _TRANSFER, _SIMULATE = "pliant.engines.blend", "pliant.engines.transfer", "pliant.engines.simulate"
MOVED_NAMES = {
    "BlendRun": _BLEND,
    "BlendScene": _BLEND,
    "CageScene": _TRANSFER,
    "ElasticScene": _SIMULATE,
    "SimulateRun": _SIMULATE,
    "TransferRun": _TRANSFER,
    "TransferScene": _TRANSFER,
    "blend_report": _BLEND,
    "simulate_report": _SIMULATE,
    "transfer_report": _TRANSFER,
    "write_blend_report": _BLEND,
    "write_simulate_report": _SIMULATE,
    "write_transfer_report": _TRANSFER,
}
"""Names that `pliant.scene` and `pliant.report` had of the engines, and where each is now."""


def attribute(name: str) -> Any:
    """What a package had under this name, for its ``__getattr__``."""
    if name not in MOVED_NAMES:
        raise AttributeError(name)
    warnings.warn(f"{name} is now in {MOVED_NAMES[name]}", DeprecationWarning, stacklevel=3)
    return getattr(importlib.import_module(MOVED_NAMES[name]), name)


def present_name(name: str) -> str | None:
    """The present name of a module, or None if it never had another."""
    head, _, rest = name.partition(".")
    if head != "pliant":
        return None
    parts = rest.split(".")
    for count in range(len(parts), 0, -1):
        if ".".join(parts[:count]) in NAMES:
            return ".".join(["pliant", NAMES[".".join(parts[:count])], *parts[count:]])
    return None


class _Former(MetaPathFinder, Loader):
    def __init__(self, public: set[str]) -> None:
        self.public = public
        self.specs: dict[str, Any] = {}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        present = present_name(name)
        if present is None:
            return None
        if name.removeprefix("pliant.") not in self.public:
            warnings.warn(f"{name} is now {present}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(present_name(spec.name) or spec.name)
        self.specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has marked the module with the former name's spec.
        assert module.__spec__ is not None
        former = module.__spec__.name
        module.__spec__ = self.specs.pop(former)
        if any(f"pliant.{name}".startswith(f"{former}.") for name in NAMES) and not hasattr(module, "__path__"):
            module.__path__ = []  # it was a package, and what was in it is imported by way of it


def install(public: set[str]) -> None:
    """Let former names be imported; those in `public` without a warning."""
    if not any(isinstance(finder, _Former) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Former(public))  # first: the path of a former package would load modules twice

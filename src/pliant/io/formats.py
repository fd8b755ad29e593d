"""The table of file formats: which suffix belongs to which module of this package, and what each can hold."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal, cast

from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.core.skeleton import Motion, Skeleton
from pliant.io.source import Source

ContentKind = Literal["mesh", "tets", "points", "shapes", "animation", "motion", "skeleton"]
Content = Mesh | TetMesh | PointCloud | Shapes | Animation | Motion | Skeleton


@dataclass(frozen=True)
class Format:
    """A file format: what it is called, and what it can hold."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    reads: tuple[ContentKind, ...]
    writes: tuple[ContentKind, ...]

    def function(self, verb: str, kind: ContentKind) -> Any:
        """The module's reader or writer of that kind."""
        return getattr(importlib.import_module(f"pliant.io.{self.module}"), f"{verb}_{kind}")


FORMATS = (
    Format("Wavefront OBJ", (".obj",), "obj", ("mesh", "points"), ("mesh",)),
    Format("PLY", (".ply",), "ply", ("mesh", "points"), ("mesh", "points")),
    Format("STL", (".stl",), "stl", ("mesh",), ("mesh",)),
    Format("OFF", (".off", ".coff"), "off", ("mesh",), ("mesh",)),
    Format("Medit", (".mesh",), "medit", ("tets", "mesh"), ("tets", "mesh")),
    Format(
        "VTK and Gmsh", (".vtk", ".vtu", ".msh"), "meshio_files", ("tets", "mesh", "points"), ("tets", "mesh", "points")
    ),
    Format("XYZ", (".xyz",), "xyz", ("points",), ("points",)),
    Format(
        "glTF",
        (".glb", ".gltf"),
        "gltf",
        ("mesh", "points", "shapes", "animation", "motion", "skeleton"),
        ("mesh", "points", "shapes", "animation"),
    ),
    Format(
        "USD",
        (".usd", ".usda", ".usdc", ".usdz"),
        "usd",
        ("mesh", "points", "shapes", "animation", "motion", "skeleton"),
        ("mesh", "points", "shapes", "animation"),
    ),
    Format("FBX", (".fbx",), "fbx", ("mesh", "points", "shapes", "animation", "motion", "skeleton"), ()),
    Format("Alembic", (".abc",), "alembic", ("mesh", "points", "animation"), ("mesh", "points", "animation")),
    Format("BVH", (".bvh",), "bvh", ("motion", "skeleton"), ("motion", "skeleton")),
    Format("PC2 point cache", (".pc2",), "pc2", ("animation",), ("animation",)),
    Format("MDD point cache", (".mdd",), "mdd", ("animation",), ("animation",)),
    Format(
        "NPZ",
        (".npz",),
        "npz",
        ("mesh", "tets", "points", "shapes", "animation", "motion", "skeleton"),
        ("mesh", "tets", "points", "shapes", "animation", "motion", "skeleton"),
    ),
    Format("TGF skeleton", (".tgf",), "tgf", ("skeleton",), ("skeleton",)),
    Format("skeleton JSON", (".json",), "skeleton_json", ("skeleton",), ("skeleton",)),
    Format("Pinocchio skeleton", (".out",), "pinocchio", ("skeleton",), ()),
    Format("MakeHuman target", (".target",), "target", ("shapes",), ()),
)

BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}

KIND_OF: dict[type, ContentKind] = {
    Mesh: "mesh",
    TetMesh: "tets",
    PointCloud: "points",
    Shapes: "shapes",
    Animation: "animation",
    Motion: "motion",
    Skeleton: "skeleton",
}

KIND_NAMES: dict[ContentKind, str] = {
    "mesh": "a mesh",
    "tets": "tetrahedra",
    "points": "a point cloud",
    "shapes": "a set of shapes",
    "animation": "an animation",
    "motion": "a skeleton's motion",
    "skeleton": "a skeleton",
}


def format_of(label: object, suffix: str, *, written: bool = False) -> Format:
    """The format a suffix stands for, or an error that lists them. written: the error lists those that are written."""
    if suffix not in BY_SUFFIX:
        known = sorted(name for name, format in BY_SUFFIX.items() if format.writes or not written)
        raise FileError(label, f'unknown format "{suffix}"; expected one of {" ".join(known)}')
    return BY_SUFFIX[suffix]


def kinds_in(source: Source) -> tuple[ContentKind, ...]:
    """What a file holds, the richest first (a module may look inside with its own ``kinds``)."""
    format = format_of(source.label, source.suffix)
    look = getattr(importlib.import_module(f"pliant.io.{format.module}"), "kinds", None)
    return cast("tuple[ContentKind, ...]", look(source)) if look else format.reads


def describe(source: Source) -> dict[str, Any]:
    """What a file says of itself; empty of formats whose modules have no ``describe``."""
    look = getattr(
        importlib.import_module(f"pliant.io.{format_of(source.label, source.suffix).module}"), "describe", None
    )
    return cast("dict[str, Any]", look(source)) if look else {}


def siblings_of(source: Source) -> list[Source]:
    """The files beside a file that it refers to and that are there (a module may look with its own ``siblings``)."""
    module = getattr(BY_SUFFIX.get(source.suffix), "module", None)
    look = getattr(importlib.import_module(f"pliant.io.{module}"), "siblings", None) if module else None
    return cast("list[Source]", look(source)) if look else []

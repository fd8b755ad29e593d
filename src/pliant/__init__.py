"""pliant: shapes that deform the way bodies do.

Names load when they are first used, so importing pliant is quick and needs no compiler or optional dependency.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "pliant.shapes": ("Mesh", "TetMesh", "PointCloud", "Layer", "Labels", "Appearance", "Image", "World"),
    "pliant.clips": ("Shapes", "Animation", "Pose"),
    "pliant.blend": ("Blendshapes", "Pull"),
    "pliant.cage": (
        "CageRig", "Control", "Follow", "Track", "Transfer", "Weights", "after_from", "before_from",
        "bone_controls", "build_cage", "cell_tracks", "green_coordinates", "group_tracks", "joint_tracks",
        "matrix_tracks", "mean_value_coordinates", "rigid_blocks", "rigid_groups", "rod_tracks", "transfer",
    ),
    "pliant.elastic": (
        "ElasticBody", "ElasticPose", "Material", "Rod", "RodPose", "Simulation", "click_joint", "extract_skeleton",
    ),
    "pliant.retargeting": ("retarget",),
    "pliant.regions": ("Sphere",),
    "pliant.skeleton": ("Skeleton", "SkeletonPose", "Motion"),
    "pliant.io": (
        "read", "read_mesh", "read_tets", "read_points", "read_shapes", "read_animation", "read_motion",
        "read_skeleton", "write",
    ),
    "pliant.errors": (
        "PliantError", "InputError", "FileError", "MissingExtraError", "LinearSolveError", "SingularMatrixError",
        "IndefiniteMatrixError", "PliantWarning",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
_SUBMODULES = (
    "gallery", "inspection", "io", "linalg", "quality", "render", "report", "rotations", "scene", "shapes", "skeleton",
    "spatial", "topology",
)  # fmt: skip

if TYPE_CHECKING:
    from pliant import gallery, inspection, io, linalg, quality, render, report, rotations, scene, spatial, topology
    from pliant.blend import Blendshapes, Pull
    from pliant.cage import (
        CageRig,
        Control,
        Follow,
        Track,
        Transfer,
        Weights,
        after_from,
        before_from,
        bone_controls,
        build_cage,
        cell_tracks,
        green_coordinates,
        group_tracks,
        joint_tracks,
        matrix_tracks,
        mean_value_coordinates,
        rigid_blocks,
        rigid_groups,
        rod_tracks,
    )
    from pliant.cage.transfer import transfer
    from pliant.clips import Animation, Pose, Shapes
    from pliant.elastic import (
        ElasticBody,
        ElasticPose,
        Material,
        Rod,
        RodPose,
        Simulation,
        click_joint,
        extract_skeleton,
    )
    from pliant.errors import (
        FileError,
        IndefiniteMatrixError,
        InputError,
        LinearSolveError,
        MissingExtraError,
        PliantError,
        PliantWarning,
        SingularMatrixError,
    )
    from pliant.io import (
        read,
        read_animation,
        read_mesh,
        read_motion,
        read_points,
        read_shapes,
        read_skeleton,
        read_tets,
        write,
    )
    from pliant.regions import Sphere
    from pliant.retargeting import retarget
    from pliant.shapes import Appearance, Image, Labels, Layer, Mesh, PointCloud, TetMesh, World
    from pliant.skeleton import Motion, Skeleton, SkeletonPose


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"pliant.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'pliant' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*_MODULE_OF, *_SUBMODULES, "__version__"])


__all__ = [
    "Animation",
    "Appearance",
    "Blendshapes",
    "CageRig",
    "Control",
    "ElasticBody",
    "ElasticPose",
    "FileError",
    "Follow",
    "Image",
    "IndefiniteMatrixError",
    "InputError",
    "Labels",
    "Layer",
    "LinearSolveError",
    "Material",
    "Mesh",
    "MissingExtraError",
    "Motion",
    "PliantError",
    "PliantWarning",
    "PointCloud",
    "Pose",
    "Pull",
    "Rod",
    "RodPose",
    "Shapes",
    "Simulation",
    "SingularMatrixError",
    "Skeleton",
    "SkeletonPose",
    "Sphere",
    "TetMesh",
    "Track",
    "Transfer",
    "Weights",
    "World",
    "after_from",
    "before_from",
    "bone_controls",
    "build_cage",
    "cell_tracks",
    "click_joint",
    "extract_skeleton",
    "gallery",
    "green_coordinates",
    "group_tracks",
    "inspection",
    "io",
    "joint_tracks",
    "linalg",
    "matrix_tracks",
    "mean_value_coordinates",
    "quality",
    "read",
    "read_animation",
    "read_mesh",
    "read_motion",
    "read_points",
    "read_shapes",
    "read_skeleton",
    "read_tets",
    "render",
    "report",
    "retarget",
    "rigid_blocks",
    "rigid_groups",
    "rod_tracks",
    "rotations",
    "scene",
    "spatial",
    "topology",
    "transfer",
    "write",
]

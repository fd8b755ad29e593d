"""USD, Universal Scene Description: .usda (text), .usdc (binary), .usd (either) and .usdz (a package with textures).

All meshes a viewer would draw become one `Mesh`, in the stage's order and in world space: transforms applied, instances
included, hidden prims, guides and proxies left out. Axes and units stay the file's own; `world` names them
(USD means y up and centimetres where a file says nothing). A subdivision surface is read as its control mesh. What
moves (points, transforms, skins, blend shape weights) becomes an `Animation` at the stage's frames per second; blend
shapes become `Shapes`, a skeleton a `Motion`. Coordinates have single precision in USD.

Written: one mesh below a default prim, with its `world` (y up, metres, if it has none), without subdivision; see
`pliant.io.usd.write`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core.clips import Animation, Shapes, WeightClip
from pliant.core.errors import PliantWarning
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.validation import frame_rate
from pliant.io.joining import moved
from pliant.io.source import Source
from pliant.io.usd.geometry import name_of, read_cloud, read_part, shown
from pliant.io.usd.join import BASE, skin_groups, stage_mesh
from pliant.io.usd.joints import joint_times, skeleton_queries, stage_motion, stage_skeleton, stage_world
from pliant.io.usd.motion import Mover, animated, frame_times, movers, weights_at
from pliant.io.usd.stage import library, opened, siblings as siblings
from pliant.io.usd.write import (
    write_animation as write_animation,
    write_mesh as write_mesh,
    write_points as write_points,
    write_shapes as write_shapes,
    write_skinned as write_skinned,
)


def read_mesh(source: Source) -> Mesh:
    """All meshes as one, at rest."""
    with opened(source) as stage:
        _note_others(source, stage)
        return _mesh(source, stage, _mesh_movers(source, stage))


def read_points(source: Source) -> PointCloud:
    """All points prims as one cloud; the meshes' vertices if there are none."""
    with opened(source) as stage:
        clouds = _clouds(source, stage)
        if clouds:
            return _cloud(stage, clouds)
        mesh = _mesh(source, stage, _mesh_movers(source, stage))
        return PointCloud(mesh.points, world=mesh.world)


def read_shapes(source: Source) -> Shapes:
    """The mesh and its blend shapes. A shape that several meshes have under one name moves them together."""
    with opened(source) as stage:
        parts = _mesh_movers(source, stage)
        names = _shape_names(stage, parts)
        if len(names) == 1:
            raise source.error("holds no blend shapes; expected some on one of its meshes")
        mesh = _mesh(source, stage, parts)
        poses = [mesh.points, *(mesh.points + _world_offsets(parts, name) for name in names[1:])]
    return Shapes(mesh, np.stack(poses), names)


def _shape_names(stage: Any, parts: list[Mover]) -> tuple[str, ...]:
    """The names of the base and of all blend shapes."""
    base = stage.GetDefaultPrim().GetCustomDataByKey(BASE) if stage.GetDefaultPrim() else None
    names = dict.fromkeys(name for part in parts for name in part.shapes)
    return (base if isinstance(base, str) else "base", *names)


def read_animation(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """What moves, at the stage's own frames or sampled at `fps`."""
    if fps is not None:
        frame_rate(fps)
    _check_clip(source, clip)
    with opened(source) as stage:
        parts = _mesh_movers(source, stage, required=False) or _clouds(source, stage)
        times = _times(parts)
        if not times:
            raise source.error("holds nothing that moves; expected time samples of points, transforms or a skin")
        at, rate = frame_times(source, stage, times, fps)
        is_cloud = parts[0].part.prim.IsA(library("UsdGeom").Points)
        shape = _cloud(stage, parts) if is_cloud else _mesh(source, stage, parts)
        return Animation(shape, animated(source, parts, at), rate, source.stem)


def read_weights(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> WeightClip | None:
    """How the stage moves its blend shapes; None if it does not, unless its one clip was asked for."""
    if fps is not None:
        frame_rate(fps)
    _check_clip(source, clip)
    with opened(source) as stage:
        parts = _mesh_movers(source, stage)
        if not any(len(part.weight_times()) > 1 for part in parts):
            if clip is not None:
                raise source.error("moves no weights of blend shapes", argument="clip")
            return None
        names = _shape_names(stage, parts)
        at, rate = frame_times(source, stage, _times(parts), fps)
        values = weights_at(source, parts, names, at)
        values[:, 0] = 1 - values[:, 1:].sum(axis=1)
        return WeightClip(names, values, rate, source.stem)


def read_skeleton(source: Source) -> Skeleton:
    """The first skeleton, one with a motion before others, where it was bound."""
    with opened(source) as stage:
        return stage_skeleton(source, _skeleton(source, stage))


def read_motion(source: Source, clip: str | int | None = None, fps: float | None = None) -> Motion:
    """How the stage moves that skeleton, at its own frames or sampled at `fps`."""
    if fps is not None:
        frame_rate(fps)
    _check_clip(source, clip)
    with opened(source) as stage:
        query = _skeleton(source, stage)
        moving = _times(_mesh_movers(source, stage, required=False)) | joint_times(query)
        if not joint_times(query):
            raise source.error("holds a skeleton that does not move; expected time samples of its joints")
        return stage_motion(source, query, *frame_times(source, stage, moving, fps))


def _skeleton(source: Source, stage: Any) -> Any:
    found = skeleton_queries(stage)
    if not found:
        raise source.error("holds no skeleton")
    return found[0]


def kinds(source: Source) -> tuple[str, ...]:
    """What the stage holds, the richest first. Warnings about what is left out come on reading, not here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PliantWarning)
        with opened(source) as stage:
            meshes = _mesh_movers(source, stage, required=False)
            parts = meshes or _clouds(source, stage)
            skeletons = skeleton_queries(stage)
            found = {
                "animation": len(_times(parts)) > 1,
                "shapes": any(part.shapes for part in meshes),
                "mesh": bool(meshes),
                "points": bool(parts),
                "motion": bool(skeletons) and len(joint_times(skeletons[0])) > 1,
                "skeleton": bool(skeletons),
            }
    if not any(found.values()):
        raise source.error("holds no meshes, points or skeletons that a viewer would draw")
    return tuple(kind for kind, here in found.items() if here)


def describe(source: Source) -> dict[str, Any]:
    """What the stage says of itself: axes, units, time codes, default prim, and how many prims of each type."""
    UsdGeom = library("UsdGeom")
    with opened(source) as stage:
        default = stage.GetDefaultPrim()
        timed = stage.HasAuthoredTimeCodeRange()
        return {
            "upAxis": str(UsdGeom.GetStageUpAxis(stage)),
            "metersPerUnit": float(UsdGeom.GetStageMetersPerUnit(stage)),
            "timeCodesPerSecond": float(stage.GetTimeCodesPerSecond()),
            "startTimeCode": float(stage.GetStartTimeCode()) if timed else None,
            "endTimeCode": float(stage.GetEndTimeCode()) if timed else None,
            "defaultPrim": name_of(default) if default else None,
            "blend shapes": [name_of(prim) for prim in stage.Traverse() if prim.GetTypeName() == "BlendShape"],
            "prims": dict(sorted(Counter(str(prim.GetTypeName()) or "typeless" for prim in stage.Traverse()).items())),
        }


def _check_clip(source: Source, clip: str | int | None) -> None:
    if clip is not None and clip not in (0, "0", source.stem):
        raise source.error(f'has no clip {clip!r}; a USD stage holds one, "{source.stem}"', argument="clip")


def _mesh_movers(source: Source, stage: Any, *, required: bool = True) -> list[Mover]:
    parts = [read_part(source, prim) for prim in shown(stage, "Mesh")]
    parts = [part for part in parts if len(part.polygons)]
    if required and not parts:
        raise source.error("holds no mesh with faces that a viewer would draw")
    return movers(source, stage, parts)


def _clouds(source: Source, stage: Any) -> list[Mover]:
    parts = [read_cloud(source, prim) for prim in shown(stage, "Points")]
    return movers(source, stage, [part for part in parts if len(part.points)])


def _times(parts: list[Mover]) -> set[float]:
    return set().union(*(part.times() for part in parts))


def _mesh(source: Source, stage: Any, parts: list[Mover]) -> Mesh:
    Usd, UsdGeom = library("Usd"), library("UsdGeom")
    xforms = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())
    transforms = [part.rest_transform(xforms) for part in parts]
    mesh = stage_mesh(source, [part.part for part in parts], transforms, [skin_groups(part) for part in parts])
    return replace(mesh, world=stage_world(stage))


def _cloud(stage: Any, parts: list[Mover]) -> PointCloud:
    prims = [part.part for part in parts]
    points = np.concatenate([part.rest() for part in parts])
    normals = None
    if len(prims) == 1 and prims[0].normals is not None and np.array_equal(points, prims[0].points):
        normals = prims[0].normals.at_corners
    attributes: dict[str, Any] = dict(prims[0].attributes) if len(prims) == 1 else {}
    colors = [part.color for part in prims if part.color is not None]
    if len(colors) == len(prims):
        width = min(color.shape[1] for color in colors)
        attributes["color"] = np.concatenate([color[:, :width] for color in colors])
    return PointCloud(points, normals, attributes, stage_world(stage))


def _world_offsets(parts: list[Mover], name: str) -> Any:
    Usd, UsdGeom = library("Usd"), library("UsdGeom")
    xforms = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())
    offsets = []
    for part in parts:
        linear = part.rest_transform(xforms)
        linear[3, :3] = 0
        offsets.append(moved(part.shapes.get(name, np.zeros_like(part.part.points)), linear))
    return np.concatenate(offsets)


def _note_others(source: Source, stage: Any) -> None:
    """Say which drawable things are not meshes and so are left out."""
    UsdGeom = library("UsdGeom")
    others = {str(prim.GetTypeName()) for prim in shown(stage, "Gprim") if not prim.IsA(UsdGeom.Mesh)}
    others |= {"PointInstancer" for _ in shown(stage, "PointInstancer")}
    if others:
        text = f"{source.label}: prims of type {', '.join(sorted(others))} are left out; only meshes are read"
        warnings.warn(text, PliantWarning, stacklevel=2)

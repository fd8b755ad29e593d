"""FBX (.fbx, binary and text), read by ufbx where it is installed (the extra "fbx").

All meshes that a viewer would draw become one `Mesh`, in the file's order and in world space, at the pose in which they
were bound to their bones. Axes and units stay the file's own; `world` names them (FBX files are mostly in centimetres).
Clips (takes) become animations: nodes, sliders of blend shapes and skins are all evaluated. ufbx runs in a process of
its own, so that a file that stops it is only refused; see parse. Posing is in scene.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.core.clips import Animation, Shapes, WeightClip
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import locked
from pliant.core.validation import frame_rate
from pliant.io.fbx.scene import FbxScene, read_outline, read_scene
from pliant.io.naming import chosen_clip
from pliant.io.source import Source


def read_mesh(source: Source) -> Mesh:
    """All meshes as one, at rest."""
    return read_scene(source).mesh


def read_points(source: Source) -> PointCloud:
    """The vertices of the meshes."""
    mesh = read_mesh(source)
    return PointCloud(mesh.points, None, mesh.attributes, mesh.world)


def read_shapes(source: Source) -> Shapes:
    """The mesh and its blend shapes. A shape that several meshes have under one name moves them together."""
    scene = read_scene(source)
    names = scene.slider_names()
    if not names:
        raise source.error("holds no blend shapes; expected some on one of its meshes")
    pieces = []
    for one in scene.meshes:
        own = np.array([[float(name == slider) for slider in one.sliders] for name in names]).reshape(len(names), -1)
        world = np.broadcast_to(scene.rest, (len(names), *scene.rest.shape))
        pieces.append(one.points(world, own))
    points = np.concatenate([scene.mesh.points[None], np.concatenate(pieces, axis=1)])
    base = "base" if "base" not in names else "rest"
    return Shapes(scene.mesh, locked(points), (base, *names))


def read_animation(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """A clip's points in world space. clip: its name or number; fps: the file's own if not given."""
    scene, name = _moving(source, clip, fps)
    return Animation(scene.mesh, scene.animated(), scene.about["rate"], name)


def read_weights(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> WeightClip | None:
    """How a clip moves the sliders; None if none does, unless the clip was asked for."""
    scene, name = _moving(source, clip, fps) if clip is not None or _clips(source) else (None, "")
    if scene is None:
        return None
    names = scene.slider_names()
    values = np.zeros((len(scene.moved), len(names) + 1))
    for one in reversed(scene.meshes):
        for column, slider in enumerate(one.sliders):
            values[:, 1 + names.index(slider)] = scene.shares(one)[:, column]
    if not names or not np.ptp(values, axis=0).any():
        if clip is not None:
            raise source.error(f'moves no blend shapes in the clip "{name}"', argument="clip")
        return None
    values[:, 0] = 1 - values[:, 1:].sum(axis=1)
    return WeightClip(("base" if "base" not in names else "rest", *names), locked(values), scene.about["rate"], name)


def read_skeleton(source: Source) -> Skeleton:
    """The bones, where they were bound."""
    return read_scene(source).skeleton


def read_motion(source: Source, clip: str | int | None = None, fps: float | None = None) -> Motion:
    """How a clip moves the bones; clip and fps as in `read_animation`."""
    scene, name = _moving(source, clip, fps)
    return scene.motion(name)


def _clips(source: Source) -> tuple[str, ...]:
    return read_outline(source).clips


def _moving(source: Source, clip: str | int | None, fps: float | None) -> tuple[FbxScene, str]:
    """A file with the motion of a clip, and the clip's name."""
    if fps is not None:
        frame_rate(fps)
    number = 0 if clip is None else chosen_clip(source, _clips(source), clip)
    scene = read_scene(source, clip=number, fps=fps)
    if not scene.clips:
        raise source.error("holds no animation; expected one or more clips")
    return scene, scene.clips[number]


def kinds(source: Source) -> tuple[str, ...]:
    """What a file holds, the richest first."""
    about = read_outline(source).about
    meshes, clips = bool(about["parts"]), bool(about["clips"])
    bones = bool(about["bones"]) or any(part["skins"] for part in about["parts"])
    found = {
        "animation": meshes and clips,
        "shapes": any(part["sliders"] for part in about["parts"]),
        "mesh": meshes,
        "motion": bones and clips,
        "skeleton": bones,
    }
    if not any(found.values()):
        raise source.error("holds no mesh and no bones")
    return tuple(kind for kind, here in found.items() if here)


def describe(source: Source) -> dict[str, Any]:
    """What is in a file, for people."""
    scene = read_outline(source)
    about = scene.about
    lengths = [end - start for _, start, end in about["clips"]]
    return {
        "creator": about["creator"],
        "version": about["version"],
        "up": about["up"],
        "metres per unit": about["metres"],
        "meshes": [about["nodes"][part["node"]] or part["mesh"] for part in about["parts"]],
        "blend shapes": list(dict.fromkeys(each["name"] for part in about["parts"] for each in part["sliders"])),
        "clips": [
            {"name": name, "seconds": seconds, "fps": about["fps"]}
            for name, seconds in zip(scene.clips, lengths, strict=True)
        ],
        "bones": len(about["bones"]),
        "materials": list(about["materials"]),
    }

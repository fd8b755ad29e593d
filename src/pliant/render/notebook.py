"""What Jupyter shows of a shape, a clip or a rig: a 3-D view with a time slider, in one piece of HTML.

Nothing is loaded from elsewhere and nothing runs in Python. Points are whole numbers of 16 bits in the clip's box, 1e-5
of its size. What would take more than `LARGEST_VIEW` is thinned out in time, or is a picture if one shape is too large.
"""

from __future__ import annotations

import base64
import html
import io
import json
from importlib.resources import files
from typing import Any

import numpy as np

from pliant.core.clips import Animation, Pose, Shapes, SolvedAnimation
from pliant.core.rotations import rotate
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh, World
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.skinned import joint_transforms
from pliant.core.topology import Floats, Ints
from pliant.geometry.body_plan.moving import upright_axis
from pliant.geometry.quality.measures import edge_distortion, edges_of, volume_ratio
from pliant.render.pictures import picture

LARGEST_VIEW = 12_000_000
"""Bytes of points, before they become text."""
VIEW_HEIGHT = 420
"""Pixels of the view."""
PLOT_HEIGHT = 36
"""Pixels of the plot of a measure; also in the page."""
SOLVED = (("iterations", "iterations", ""), ("penetration", "penetration", "%"), ("inverted", "inverted elements", ""))
SIMULATED = (("energy", "elastic energy", ""), ("kinetic", "kinetic energy", ""), *SOLVED)
BLENDED = (("residual", "residual", ""), *SOLVED)
"""Of a simulation's states, and of poses: the name, what it is called in a plot, and its unit."""
SHAPES_A_SECOND = 2.0
"""Of a rig, one after another."""
BONE_WIDTH = 0.08
"""Half of a bone's width, over its length."""
BONE_FACES = np.array([[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 1, 4], [5, 1, 2], [5, 2, 3], [5, 3, 4], [5, 4, 1]])
"""Of a double pyramid: its start, four corners around, its tip."""


def html_of(value: Any) -> str:
    """HTML of a shape, pose, clip or anything that has a clip or shapes."""
    clip, what = _clip_of(value), html.escape(_summary(value))
    frames = _frames_shown(clip)
    if not len(frames):
        return _picture_of(clip.shape, what)
    page = files("pliant.render").joinpath("notebook.html").read_text(encoding="utf-8")
    measures = _measures(value, clip, frames)
    data = _data(clip, frames, _summary(value), measures)
    page = page.replace("/*DATA*/null", json.dumps(data).replace("<", "\\u003c"))
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="{what}" '
        f'style="width:100%;max-width:960px;height:{VIEW_HEIGHT + PLOT_HEIGHT * len(measures)}px;border:0"></iframe>'
    )


def _summary(value: Any) -> str:
    """One line below the view; of a pose, what the solver says of it."""
    if not isinstance(value, Pose):
        return repr(value)
    state = "converged" if value.converged else f"not converged: {value.message}"
    more = f", penetration {value.penetration:.2%}" if value.penetration else ""
    return (
        f"{type(value).__name__} of {value.shape!r}, {state}, residual {value.residual:.2g}, "
        f"{value.iterations} iterations{more}{f', {value.inverted} inverted' if value.inverted else ''}"
    )


def _clip_of(value: Any) -> Animation:
    """What is shown: a clip, the shapes of a rig one after another, bones that move, or one frame."""
    if isinstance(value, (Skeleton, SkeletonPose, Motion)):
        return _bones_of(value)
    parts = () if isinstance(value, (Animation, Shapes)) else ("clip", "shapes", "shape", "target")
    found = next((getattr(value, name) for name in parts if getattr(value, name, None) is not None), value)
    if isinstance(found, Shapes):
        return Animation(found.base, found.points, SHAPES_A_SECOND)
    return found if isinstance(found, Animation) else Animation(found, found.points[None])


def _bones_of(value: Skeleton | SkeletonPose | Motion) -> Animation:
    """Every bone as a slim double pyramid that its upper joint carries; joints without bones as small ones."""
    motion = Motion.of(value)
    skeleton, joints = motion.skeleton, motion.skeleton.rest_world[0]
    tips = {joint: [joints[joint] + rotate(skeleton.rest_world[1][joint], end)] for joint, end in skeleton.ends.items()}
    for parent, child in skeleton.bones.tolist():
        tips.setdefault(parent, []).append(joints[child])
    least = 0.01 * float(np.ptp(joints, axis=0).max()) or 1.0
    points: list[Floats] = []
    faces: list[Ints] = []
    carriers: list[int] = []
    for joint in range(len(skeleton)):
        for tip in tips.get(joint, [joints[joint] + np.array([0, least, 0])]):
            along = tip - joints[joint]
            length = max(float(np.linalg.norm(along)), least)
            side = np.cross(along, np.eye(3)[np.abs(along).argmin()]) + np.array([0, 0, 1e-30])
            side *= BONE_WIDTH * length / np.linalg.norm(side)
            across = np.cross(along, side) / length
            ring = joints[joint] + 0.15 * along + np.array([side, across, -side, -across])
            faces.append(BONE_FACES + 6 * len(points))
            points.append(np.concatenate([joints[joint][None], ring, tip[None]]))
            carriers.append(joint)
    shape = Mesh(np.concatenate(points), np.concatenate(faces), world=World(upright_axis(motion)))
    R, t = joint_transforms(motion)
    moved = np.einsum("bfij,bpj->fbpi", R[carriers], np.stack(points)) + t[carriers].transpose(1, 0, 2)[:, :, None]
    return Animation(shape, moved.reshape(len(motion), -1, 3), motion.fps, motion.name)


def _frames_shown(clip: Animation) -> Any:
    """Numbers of the frames that there is room for."""
    most = LARGEST_VIEW // max(6 * len(clip.shape.points), 1)
    return np.unique(np.linspace(0, len(clip) - 1, min(len(clip), most)).round().astype(int))


def _data(clip: Animation, frames: Any, what: str, measures: list[dict[str, Any]]) -> dict[str, Any]:
    points = clip.points[frames]
    low, high = points.min(axis=(0, 1), initial=np.inf), points.max(axis=(0, 1), initial=-np.inf)
    extent = np.maximum(high - low, 1e-300) if points.size else np.ones(3)
    packed = np.round((points - low) / extent * 65535).astype("<u2") if points.size else points.astype("<u2")
    color = clip.shape.attributes.get("color")
    return {
        "what": what,
        "points": _text(packed),
        "triangles": _text(_triangles(clip.shape).astype("<u4")),
        "colors": None if color is None else _text((255 * np.clip(color[:, :3], 0, 1)).astype(np.uint8)),
        "vertices": len(clip.shape.points),
        "frames": len(frames),
        "numbers": frames.tolist(),
        "fps": clip.fps * len(frames) / len(clip),
        "extent": (extent / extent.max()).tolist(),
        "diagonal": float(np.linalg.norm(extent / extent.max())),
        "measures": measures,
        "up": "z" if clip.shape.world is not None and clip.shape.world.up == "z" else "y",
    }


def _measures(value: Any, clip: Animation, frames: Any) -> list[dict[str, Any]]:
    """What is plotted over time: how far from rest shapes with edges are, and what the solver measured."""
    found: dict[str, tuple[Floats, str]] = {}
    shape = clip.shape
    if len(frames) > 1 and not isinstance(shape, PointCloud) and len(edges_of(shape)):
        points = clip.points[frames]
        surface = shape.surface if isinstance(shape, TetMesh) else shape
        if surface.is_watertight and abs(surface.volume) > 1e-300:
            found["volume"] = volume_ratio(shape, points), "%"
        away = np.abs(np.stack([edge_distortion(shape, frame) for frame in points]) - 1)
        away = away[:, np.isfinite(away).all(axis=0)]  # edges of no length at rest have none
        if away.size:
            found["edges, mean change"] = away.mean(axis=1), "%"
        steps = np.linalg.norm(np.diff(clip.points, axis=0), axis=2).max(axis=1, initial=0) / (shape.diagonal or 1)
        found["largest step"] = np.append(0.0, steps)[frames], "%"
    if len(frames) > 1 and (getattr(value, "states", None) or isinstance(value, SolvedAnimation)):
        for name, text, unit in BLENDED if isinstance(value, SolvedAnimation) else SIMULATED:
            measured = value.measured(name)[frames]
            if measured.any():
                found[text] = measured, unit
    return [_plot(name, values, unit) for name, (values, unit) in found.items()]


def _plot(name: str, values: Floats, unit: str) -> dict[str, Any]:
    low, high = (f"{value:.2%}" if unit == "%" else f"{value:.3g}" for value in (values.min(), values.max()))
    return {"caption": f"{name} {low} to {high}", "values": [float(f"{value:.6g}") for value in values]}


def _triangles(shape: Shape) -> Any:
    if isinstance(shape, PointCloud):
        return np.zeros((0, 3), dtype=np.int64)
    return shape.surface.triangles if isinstance(shape, TetMesh) else shape.triangles


def _picture_of(shape: Mesh | TetMesh | PointCloud, what: str) -> str:
    """A picture, of what is too large to be turned."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.asarray(picture(shape, size=(720, VIEW_HEIGHT)))).save(buffer, "PNG")
    return f'<img alt="{what}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"><br>{what}'


def _text(array: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()

"""A right hand with a piece of forearm, in metres: fingers up (+y), palm to the viewer (+z), thumb at +x."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np

from pliant.core.clips import Shapes
from pliant.core.normals import vertex_normals
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton, SkeletonPose
from pliant.core.topology import Floats
from pliant.gallery.coats import Limbs, painted
from pliant.gallery.implicit import BodyPart, ConePart, ImplicitBody, ball, chain, cone
from pliant.gallery.ramps import smoothstep
from pliant.gallery.sizes import kept
from pliant.gallery.skinning import JointRotations, aimed, posed_shapes, rotated, skinned

FINGERS = ("index", "middle", "ring", "little")
_KNUCKLES = {
    "index": (0.0285, 0.0920, -0.0020),
    "middle": (0.0085, 0.0965, -0.0045),
    "ring": (-0.0120, 0.0910, -0.0030),
    "little": (-0.0305, 0.0800, 0.0010),
}
_BONES = {
    "index": (0.0390, 0.0235, 0.0150),
    "middle": (0.0430, 0.0270, 0.0160),
    "ring": (0.0395, 0.0255, 0.0155),
    "little": (0.0315, 0.0185, 0.0135),
}
_SPREAD = {"index": 6.0, "middle": 0.5, "ring": -5.5, "little": -12.0}
_SIZE = {"index": 1.0, "middle": 1.03, "ring": 0.96, "little": 0.85}
NAIL_BLEND = 0.0006
_THUMB = ((0.0200, 0.0160, 0.0090), (0.0465, 0.0460, 0.0190), (0.0630, 0.0720, 0.0220), (0.0705, 0.0910, 0.0225))


@kept
def hand(n: int = 8000) -> Shapes:
    """A hand with about n vertices: open, pointing, fist, thumb up, grip, spread."""
    return posed_shapes(skinned(body(), n, _coat), _poses(), "open")


def hand_skeleton() -> Skeleton:
    """The hand's joints: forearm, wrist, and three for each finger and the thumb."""
    return body().skeleton


def _finger_points(finger: str) -> list[Floats]:
    """Knuckle, middle joint, end joint and tip's centre of a finger, a little bent as at ease."""
    spread, bend = np.radians(_SPREAD[finger]), np.radians(5.0)
    points = [np.array(_KNUCKLES[finger])]
    for k, length in enumerate(_BONES[finger]):
        curl = bend * (k + 1)
        step = np.array([np.sin(spread) * np.cos(curl), np.cos(spread) * np.cos(curl), np.sin(curl)])
        points.append(points[-1] + length * step)
    return points


@lru_cache(maxsize=1)
def body() -> ImplicitBody:
    """The implicit body: joints, groups and parts."""
    joints: dict[str, tuple[str, tuple[float, float, float]]] = {
        "forearm": ("", (0.0, -0.065, -0.001)),
        "wrist": ("forearm", (0.0, 0.0, 0.0)),
    }
    ends = {}
    for finger in ("thumb", *FINGERS):
        points = [np.array(p) for p in _THUMB] if finger == "thumb" else _finger_points(finger)
        for k in range(3):
            x, y, z = points[k]
            joints[f"{finger}{k + 1}"] = (f"{finger}{k}" if k else "wrist", (float(x), float(y), float(z)))
        ends[f"{finger}3"] = tuple(points[3])
    groups = [BodyPart("palm"), BodyPart("thumb", "palm", 0.010, 0.004)]
    groups += [BodyPart(finger, "palm", 0.007, 0.002) for finger in FINGERS]
    parts = _palm_parts() + _thumb_parts()
    for finger in FINGERS:
        parts += _finger_parts(finger)
    return ImplicitBody(joints, tuple(groups), tuple(parts), sturdy=5000, ends=ends)


def _palm_parts() -> list[ConePart]:
    toward = (0.0, 0.0, 1.0)
    parts = [
        cone("forearm", "palm", (0, -0.085, -0.002), (0, -0.040, -0.002), (0.0285, 0.0270), flat=0.76, soft=0.012),
        cone(
            "forearm",
            "palm",
            (0, -0.040, -0.002),
            (0, 0.004, 0.0),
            (0.0270, 0.0255),
            flat=0.70,
            blend=0.004,
            soft=0.012,
        ),
        ball("forearm", "palm", (0, -0.273, -0.002), 0.2, blend=0.006, carve=True),
    ]
    roots = {"index": 0.0130, "middle": 0.0045, "ring": -0.0050, "little": -0.0135}
    for finger in FINGERS:
        x, y, z = _KNUCKLES[finger]
        start, end = (roots[finger], 0.010, 0.0), (x, y - 0.004, z + 0.001)
        width = 0.0118 * _SIZE[finger]
        parts.append(
            cone("wrist", "palm", start, end, (0.0150, width), blend=0.010, flat=0.95, toward=toward, soft=0.009)
        )
        parts.append(
            ball("wrist", "palm", (x, y - 0.010, z + 0.0065), (0.0100, 0.0085, 0.0075), blend=0.008, soft=0.008)
        )
        parts.append(ball("wrist", "palm", (x, y - 0.001, z - 0.0060), 0.0068 * _SIZE[finger], blend=0.006, soft=0.008))
    parts += [
        ball("wrist", "palm", (-0.0240, 0.0340, 0.0085), (0.0135, 0.0300, 0.0125), tilt=(0, 0, 8), blend=0.010),
        ball("wrist", "palm", (0.0220, 0.0700, 0.0040), (0.0130, 0.0200, 0.0110), tilt=(0, 0, -14), blend=0.010),
        ball("forearm", "palm", (-0.0225, -0.0060, -0.0100), 0.0065, blend=0.010),
    ]
    return parts


def _thumb_parts() -> list[ConePart]:
    a, b, c, d = (np.array(p) for p in _THUMB)
    nail_side = np.array([0.35, 0.0, -0.94])
    return [
        ball(
            "thumb1",
            "palm",
            (0.0270, 0.0330, 0.0125),
            (0.0150, 0.0285, 0.0135),
            tilt=(6, 0, -38),
            blend=0.010,
            soft=0.015,
        ),
        cone("thumb1", "palm", a, b, (0.0130, 0.0125), blend=0.010, soft=0.015),
        cone("thumb1", "thumb", 0.4 * a + 0.6 * b, b, (0.0110, 0.0120)),
        cone("thumb2", "thumb", b, c, (0.0120, 0.0102), blend=0.003),
        ball("thumb2", "thumb", c, 0.0108, blend=0.004),
        cone("thumb3", "thumb", c, 0.5 * (c + d), (0.0100, 0.0102), blend=0.003, flat=0.88, toward=nail_side),
        cone("thumb3", "thumb", 0.5 * (c + d), d, (0.0102, 0.0078), blend=0.003, flat=0.80, toward=nail_side),
        *_nail("thumb3", "thumb", c, d, nail_side, 0.0080),
    ]


def _nail(joint: str, group: str, start: Floats, tip: Floats, back: Floats, size: float) -> list[ConePart]:
    """A thin plate on the back of a last phalanx, with a groove around it."""
    along = (tip - start) / np.linalg.norm(tip - start)
    back = back - (back @ along) * along
    back = back / np.linalg.norm(back)
    root, end = 0.35 * start + 0.65 * tip + 0.86 * size * back, tip + 0.40 * size * along + 0.60 * size * back
    return [cone(joint, group, root, end, (0.62 * size, 0.60 * size), blend=NAIL_BLEND, flat=0.30, toward=back)]


def _coat(mesh: Mesh, limbs: Limbs) -> Floats:
    """Skin, lighter in the palm and redder at knuckles and fingertips; nails, and a cuff."""
    points, (_, y, _) = mesh.points, mesh.points.T
    palm = smoothstep(vertex_normals(points, mesh.triangles)[:, 2], -0.2, 0.6)
    joints = [np.array(p) for p in _THUMB[2:]] + [p for finger in FINGERS for p in _finger_points(finger)]
    red = np.exp(-((np.linalg.norm(points[:, None] - np.stack(joints), axis=2).min(axis=1) / 0.011) ** 2))
    nails = np.zeros(len(points))
    for part in body().parts:
        if part.joint.endswith("3") and part.blend == NAIL_BLEND:
            middle = part.start + np.linalg.inv(part.frame)[:, 1] * part.length / 2
            nails = np.maximum(nails, np.linalg.norm(points - middle, axis=1) < 0.0075)
    cuff = 1 - smoothstep(y, -0.054, -0.044)
    return painted(
        len(y), (0.50, 0.25, 0.16), (palm, (0.64, 0.37, 0.27)), (0.45 * red, (0.60, 0.22, 0.16)),
        (nails, (0.74, 0.46, 0.40)), (cuff, (0.03, 0.10, 0.24)),
    )  # fmt: skip


def _finger_parts(finger: str) -> list[ConePart]:
    a, b, c, d = _finger_points(finger)
    s = _SIZE[finger]
    names = [f"{finger}{k}" for k in (1, 2, 3)]
    back = np.array([0.0, 0.0, -1.0])
    parts = chain(names[:2], finger, [a, b, c], [0.0106 * s, 0.0094 * s, 0.0085 * s], blend=0.002 * s)
    middle = 0.45 * c + 0.55 * d
    parts += [
        ball(names[0], finger, b + 0.0012 * back, 0.0093 * s, blend=0.003),
        ball(names[1], finger, c + 0.0008 * back, 0.0084 * s, blend=0.003),
        cone(names[2], finger, c, middle, (0.0083 * s, 0.0084 * s), blend=0.002, flat=0.92, toward=back),
        cone(names[2], finger, middle, d, (0.0084 * s, 0.0068 * s), blend=0.002, flat=0.88, toward=back),
        ball(names[0], finger, 0.5 * (a + b) - 0.0022 * back, (0.0088 * s, 0.0140 * s, 0.0082 * s), blend=0.004),
        ball(names[1], finger, 0.5 * (b + c) - 0.0018 * back, (0.0080 * s, 0.0085 * s, 0.0075 * s), blend=0.004),
        *_nail(names[2], finger, c, d, back, 0.0072 * s),
    ]
    return parts


def _curl(finger: str, knuckle: float, middle: float, end: float, *, close: float = 0.0) -> JointRotations:
    """A finger bent towards the palm by degrees at its three joints; `close` swings it sideways first."""
    spread = np.radians(_SPREAD[finger])
    across = (float(np.cos(spread)), float(-np.sin(spread)), 0.0)
    return {
        f"{finger}1": [("z", close), (across, knuckle)],
        f"{finger}2": [(across, middle)],
        f"{finger}3": [(across, end)],
    }


def _poses() -> dict[str, SkeletonPose]:
    close = {"index": 5.0, "middle": 0.5, "ring": -4.5, "little": -9.0}
    bends = {"index": (84, 97, 49), "middle": (84, 99, 51), "ring": (84, 98, 50), "little": (79, 90, 40)}
    curls = {finger: _curl(finger, *bends[finger], close=close[finger]) for finger in FINGERS}
    grips = {finger: _curl(finger, 46, 58, 34, close=0.6 * close[finger]) for finger in FINGERS}
    spreads = {f: _curl(f, -8, -6, -4, close=v) for f, v in zip(FINGERS, (-9.0, -2.0, 6.0, 13.0), strict=True)}
    straight = _curl("index", 6, 2, 0, close=2)
    over = {"thumb1": (0.022, 0.026, 0.020), "thumb2": (-0.011, 0.026, 0.013), "thumb3": (-0.019, 0.006, -0.002)}
    up = {"thumb1": (0.026, 0.026, 0.010), "thumb2": (0.018, 0.026, 0.002), "thumb3": (0.010, 0.020, -0.004)}
    opposed = {"thumb1": (0.012, 0.022, 0.030), "thumb2": (0.001, 0.024, 0.017), "thumb3": (-0.004, 0.019, 0.008)}
    out = {"thumb1": (0.029, 0.022, 0.008), "thumb2": (0.024, 0.018, 0.002), "thumb3": (0.018, 0.012, -0.001)}

    def made(fingers: Iterable[JointRotations], thumb: Mapping[str, tuple[float, float, float]]) -> SkeletonPose:
        bent = rotated(body().skeleton, {joint: steps for finger in fingers for joint, steps in finger.items()})
        return aimed(bent, thumb)

    return {
        "pointing": made([straight, curls["middle"], curls["ring"], curls["little"]], over),
        "fist": made(curls.values(), over),
        "thumb up": made(curls.values(), up),
        "grip": made(grips.values(), opposed),
        "spread": made(spreads.values(), out),
    }

"""How the face moves: muscles slide the skin over the head, the jaw turns about its hinge, the lids about the eyeballs.

A muscle is a sum of Gaussians over the face, each with a slide (an angle about the head's upright axis, a rise, and a
push outwards). All active muscles add up to one angle, one rise and one push a vertex, applied as one rotation, so skin
that moves sideways follows the head instead of leaving it.

Around the slit of the mouth, elliptic coordinates ``x + i y = c cosh(μ + i ν)`` give the fields that part the lips:
``sin ν`` is 1 above the middle of the slit, -1 below, 0 at the corners, which is how a slit in an elastic sheet opens
(an ellipse, flat at no point). The jaw's share is a smooth function of the angle about the hinge, minus half of
``sin ν exp(-μ)``: 1 on the lower lip, 0 on the upper, 1/2 at the corners.

A lid turns about the axis through both corners of its eye: skin at angle φ above the slit goes to φ + α f(φ), with f
falling from 1 at the margin to 0 at the brow, so that the lid slides on the ball and the skin above it folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import InputError
from pliant.core.rotations import from_axis_angle, rotate
from pliant.core.topology import Floats
from pliant.gallery.face_form import EYE, EYE_HALF, EYEBALL_RADIUS, MOUTH_HALF, gaussian
from pliant.gallery.face_grid import EYE_RINGS_LID, FaceGrid, Slit
from pliant.gallery.ramps import smoothstep

HINGE = np.array([0.0, -0.22, 0.02])
"""A point on the jaw's axis, which is parallel to x."""
LIPS_PARTED = 0.3
"""Degrees that the jaw is open at rest, so that no vertex of one lip lies on one of the other."""

# Rise above the line between the lips, and depth behind it, from the lip inwards.
UPPER_LINING = np.array([[0.05, 0.034], [0.040, 0.040], [-0.022, 0.050], [-0.018, 0.085], [0.10, 0.14], [0.04, 0.36]])
LOWER_LINING = np.array([[-0.04, 0.034], [-0.06, 0.05], [-0.08, 0.08], [-0.09, 0.11], [-0.09, 0.16], [-0.04, 0.36]])

# Each muscle: rows of x, y, reach in x, reach in y, tilt (degrees); slide sideways (radians), rise, push outwards;
# and which lip: 1 the upper, -1 the lower, 0 both.
MUSCLES: dict[str, Floats] = {
    "smile": np.array(
        [
            [0.28, -0.715, 0.14, 0.15, 0, 0.115, 0.085, -0.015, 0],
            [0.42, -0.38, 0.15, 0.11, 15, 0.02, 0.045, 0.045, 0],
            [0.32, -0.55, 0.07, 0.13, 25, 0.03, 0.02, -0.008, 0],
            [0.00, -0.66, 0.16, 0.08, 0, 0.0, -0.012, -0.02, 0],
        ]
    ),
    "frown": np.array(
        [
            [0.27, -0.73, 0.13, 0.12, 0, -0.01, -0.085, 0.0, 0],
            [0.00, -0.80, 0.16, 0.10, 0, 0.0, 0.022, 0.025, 0],
            [0.05, -0.98, 0.14, 0.09, 0, 0.0, 0.02, 0.015, 0],
        ]
    ),
    "brow inner": np.array([[0.11, 0.26, 0.15, 0.18, 0, 0.0, 0.07, 0.0, 0]]),
    "brow outer": np.array([[0.40, 0.29, 0.20, 0.18, 0, 0.0, 0.125, 0.0, 0]]),
    "brow knit": np.array(
        [
            [0.14, 0.20, 0.11, 0.10, 0, -0.075, -0.055, 0.02, 0],
            [0.00, 0.20, 0.05, 0.09, 0, 0.0, -0.01, 0.02, 0],
            [0.34, 0.22, 0.16, 0.10, 0, -0.02, -0.03, 0.0, 0],
        ]
    ),
    "pucker": np.array(
        [
            [0.27, -0.715, 0.15, 0.17, 0, -0.150, 0.0, 0.02, 0],
            [0.00, -0.67, 0.15, 0.08, 0, 0.0, 0.006, 0.035, 1],
            [0.00, -0.77, 0.15, 0.08, 0, 0.0, -0.006, 0.035, -1],
            [0.38, -0.62, 0.16, 0.18, 0, -0.04, 0.0, -0.03, 0],
        ]
    ),
    "puff": np.array(
        [
            [0.40, -0.66, 0.22, 0.23, 0, 0.03, 0.0, 0.12, 0],
            [0.10, -0.60, 0.16, 0.07, 0, 0.0, 0.0, 0.025, 0],
            [0.10, -0.84, 0.16, 0.07, 0, 0.0, 0.0, 0.025, 0],
        ]
    ),
    "sneer": np.array(
        [
            [0.14, -0.39, 0.08, 0.09, 0, 0.025, 0.045, 0.01, 0],
            [0.13, -0.64, 0.11, 0.10, 0, 0.03, 0.075, 0.01, 1],
            [0.24, -0.42, 0.07, 0.12, 20, 0.01, 0.03, 0.03, 0],
            [0.13, -0.05, 0.07, 0.10, 0, -0.01, 0.02, 0.012, 0],
        ]
    ),
    "lip up": np.array([[0.10, -0.655, 0.18, 0.10, 0, 0.0, 0.06, 0.0, 1]]),
    "lip down": np.array([[0.10, -0.77, 0.18, 0.10, 0, 0.0, -0.06, 0.0, -1]]),
}


@dataclass(frozen=True)
class FaceControls:
    """What the face does. Pairs are (right, left)."""

    muscles: tuple[tuple[str, float, float], ...] = ()
    """Name of a muscle, and how much of it on the right and on the left; 1 is plain, more is strong."""
    jaw: float = 0.0
    """Degrees that the jaw opens beyond rest."""
    upper_lid: tuple[float, float] = (19.0, 19.0)
    """Degrees that the upper lids are open."""
    lower_lid: tuple[float, float] = (12.0, 12.0)
    """Degrees that the lower lids are open."""

    def __post_init__(self) -> None:
        for name, *amounts in self.muscles:
            if name not in MUSCLES:
                raise InputError(f'no muscle is called "{name}"; there are {", ".join(MUSCLES)}')
            if len(amounts) != 2 or not np.isfinite(amounts).all() or np.abs(amounts).max() > 1.5:
                raise InputError(f'muscle "{name}" has {amounts}; expected two amounts (right, left) within ±1.5')
        if not 0 <= self.jaw <= 45:
            raise InputError(f"jaw is {self.jaw}; expected 0 to 45 degrees")
        for what, lids, most in (("upper", self.upper_lid, 36), ("lower", self.lower_lid, 20)):
            if len(lids) != 2 or not all(0 <= angle <= most for angle in lids):
                raise InputError(f"{what}_lid is {lids}; expected two angles (right, left) of 0 to {most} degrees")


def elliptic(x: Floats, over: Floats, side: Floats) -> tuple[Floats, Floats]:
    """μ and sin ν around the mouth's slit; `side` decides where ``over`` (the height above the slit) is 0."""
    height = np.where(side != 0, side * 1e-9, over)
    w = np.arccosh((x + 1j * height) / MOUTH_HALF)
    return np.abs(w.real), np.sin(w.imag)


def pose_face(grid: FaceGrid, rest: Floats, over: Floats, controls: FaceControls) -> Floats:
    """(n, 3) all points of the face, from its closed skin `rest` (g, 3), `over` (g,) above the mouth's row."""
    at_mouth = grid.row == grid.resolution.chin
    mu, sine = elliptic(rest[:, 0], over, np.where(at_mouth, grid.side, 0))
    moved = _slide(rest, sine, controls)
    share = jaw_share(rest, mu, sine)
    jaw = LIPS_PARTED + controls.jaw
    opened = rotate_jaw(moved, share, jaw)
    points = np.zeros((grid.count, 3))
    for k in range(2):
        opened = _rotate_lids(grid, rest, opened, k, controls)
    points[: len(rest)] = opened
    _line_mouth(points, grid.mouth, rest, jaw)
    for k, slit in enumerate(grid.eyes):
        _line_eye(points, slit, EYE * [(-1, 1, 1), (1, 1, 1)][k], rest)
    return points


def _slide(rest: Floats, sine: Floats, controls: FaceControls) -> Floats:
    x, y = rest[:, 0], rest[:, 1]
    total = np.zeros((len(rest), 3))
    for name, *amounts in controls.muscles:
        for mirror, amount in zip((-1.0, 1.0), amounts, strict=True):
            for row in MUSCLES[name]:
                lip = (1 + row[8] * sine) / 2 if row[8] else np.ones(len(x))
                total += (amount * lip * gaussian(mirror * x, y, row))[:, None] * row[5:8] * [mirror, 1, 1]
    near_eye = np.hypot(np.abs(x) - EYE[0], y - EYE[1])
    total *= smoothstep(near_eye, 0.06, 0.25)[:, None]  # the lids are moved by their own rotation
    axis = np.array([0.0, 0.0, 0.05])
    outwards = rest - axis
    outwards[:, 1] = 0
    outwards /= np.linalg.norm(outwards, axis=1, keepdims=True)
    pushed = rest + outwards * total[:, 2:]
    rotated = rotate(from_axis_angle([0.0, 1.0, 0.0], total[:, 0]), pushed - axis) + axis
    rotated[:, 1] += total[:, 1]
    return rotated


def jaw_share(rest: Floats, mu: Floats, sine: Floats) -> Floats:
    """(g,) how much of the jaw's rotation each skin vertex makes, from 0 to 1."""
    below = -np.arctan2(rest[:, 1] - HINGE[1], rest[:, 2] - HINGE[2])
    smooth = smoothstep(below, np.radians(2), np.radians(60))
    smooth *= 0.7 + 0.3 * smoothstep(rest[:, 2], -0.1, 0.5)  # the neck and the skin before the ears stay behind
    return np.clip(smooth - 0.5 * sine * np.exp(-mu), 0, 1)


def rotate_jaw(points: Floats, share: Floats, degrees: float) -> Floats:
    """Points rotated about the jaw's hinge by their share of an angle."""
    return rotate(from_axis_angle([1.0, 0.0, 0.0], share * np.radians(degrees)), points - HINGE) + HINGE


def _rotate_lids(grid: FaceGrid, rest: Floats, points: Floats, k: int, controls: FaceControls) -> Floats:
    mirror = (-1.0, 1.0)[k]
    u = (mirror * rest[:, 0] - EYE[0]) / EYE_HALF
    open_here = np.clip(1 - u * u, 0, None) ** 0.65 * (1 - 0.12 * u)
    level = grid.resolution.chin + grid.resolution.middle
    above = (grid.row > level) | ((grid.row == level) & (grid.side > 0))
    centre = EYE * [mirror, 1, 1]
    angle = np.arctan2(rest[:, 1] - centre[1], rest[:, 2] - centre[2])
    along = np.abs(angle) * np.hypot(rest[:, 1] - centre[1], rest[:, 2] - centre[2])
    q = np.clip(along / np.where(above, 0.20, 0.17), 0, 1)
    fall = (1 - q) ** 2 * (1 + 2 * q)
    degrees = np.where(above, -controls.upper_lid[k], controls.lower_lid[k])
    angle = np.radians(degrees) * open_here * fall
    return rotate(from_axis_angle([1.0, 0.0, 0.0], angle), points - centre) + centre


def _line_mouth(points: Floats, slit: Slit, rest: Floats, jaw: float) -> None:
    """Rings behind the lips: back over the teeth, up or down, and together again far inside."""
    loop = slit.loop
    part = np.sqrt(np.clip(1 - (rest[loop, 0] / MOUTH_HALF) ** 2, 0, 1))
    part *= _sides(len(loop))
    for ring, upper, lower in zip(slit.rings, *lining(len(slit.rings)), strict=True):
        rise, back = np.where(part[:, None] > 0, upper, lower).T
        inside = rest[loop] + np.stack([np.zeros(len(loop)), rise * np.abs(part), -back], axis=1)
        inside[:, 0] = np.sign(rest[loop, 0]) * np.minimum(np.abs(rest[loop, 0]), np.abs(points[loop, 0])) * (1 - back)
        points[ring] = rotate_jaw(inside, (1 - part) / 2, jaw)


def _sides(count: int) -> Floats:
    """1 on the upper side of a slit's loop, -1 on the lower, 0 at its two corners."""
    sides = np.repeat([1.0, -1.0], count // 2)
    sides[[0, count // 2]] = 0
    return sides


def lining(rings: int) -> tuple[Floats, Floats]:
    """(rings, 2) rise and depth of the mouth's lining behind the upper lip (gum, teeth, palate) and the lower."""
    knots = np.arange(len(UPPER_LINING))
    last = len(knots) - 1
    if rings <= len(knots):
        at = np.linspace(0, last, rings)
    else:
        at = np.concatenate([knots[: last - 1], np.linspace(last - 1, last, rings - last + 1)])
    upper, lower = (
        np.stack([np.interp(at, knots, table[:, k]) for k in range(2)], axis=1)
        for table in (UPPER_LINING, LOWER_LINING)
    )
    return upper, lower


def _line_eye(points: Floats, slit: Slit, centre: Floats, rest: Floats) -> None:
    """Rings behind the lids, and the eyeball."""
    loop = slit.loop
    u = np.clip((rest[loop, 0] - centre[0]) / EYE_HALF, -1, 1)
    around = np.arccos(u) * _sides(len(loop))
    around[0] = np.pi
    margin = points[loop] - centre
    margin /= np.linalg.norm(margin, axis=1, keepdims=True)
    fold = on_ball(around, np.radians(62))
    for k, ring in enumerate(slit.rings[:EYE_RINGS_LID]):
        q = k / (EYE_RINGS_LID - 1)
        direction = (1 - q) * margin + q * fold
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        points[ring] = centre + direction * (EYEBALL_RADIUS + 0.004 * (1 - q) - 0.004 * q)
    for ring, angle in zip(slit.rings[EYE_RINGS_LID:], ball_angles(len(slit.rings) - EYE_RINGS_LID), strict=True):
        points[ring] = centre + EYEBALL_RADIUS * on_ball(around, angle)
    points[slit.tip] = centre + np.array([0, 0, EYEBALL_RADIUS])


def on_ball(around: Floats, away: float) -> Floats:
    """Unit vectors at an angle `away` from +z, rotated by `around` about it."""
    return np.stack(
        [np.sin(away) * np.cos(around), np.sin(away) * np.sin(around), np.full(len(around), np.cos(away))], axis=1
    )


def ball_angles(rings: int) -> Floats:
    """Angles from the pupil's centre at which an eyeball has rings: pairs close together where its colour changes."""
    in_iris = (rings - 4) // 3
    white = np.linspace(62, 22.5, rings - 4 - in_iris + 2)[1:]
    iris = np.linspace(20.5, 10.5, in_iris + 2)
    return np.radians(np.concatenate([white, iris, [8.5]]))

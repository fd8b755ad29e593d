"""A tentacle that stands upright, tapers, and has two rows of suckers; its poses are curves given by curvature.

At rest the centre line is the y axis from 0 to `LENGTH`, the suckers look along +z. A pose is a `Centreline`: the
straight tentacle is carried along a curve with the same arc length and frames that do not spin. So lengths along the
centre line are exact, sections stay flat and square to it, and between any two poses the true path is known: blend
the curvatures.
"""

from __future__ import annotations

import numpy as np

from pliant.core.clips import MOST_FRAMES, Animation, Shapes
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats
from pliant.core.validation import whole_number
from pliant.gallery.bend_twist import Centreline
from pliant.gallery.coats import painted
from pliant.gallery.lattice import box_surface, square_to_disc
from pliant.gallery.ramps import smoothstep, spread
from pliant.gallery.sizes import check_count

LENGTH = 4.0
ROOT_RADIUS, TIP_RADIUS = 0.42, 0.045
ARC_PIECES = 256
BODY_COLOR, BELLY_COLOR, SUCKER_COLOR = (0.42, 0.10, 0.13), (0.75, 0.38, 0.30), (0.88, 0.66, 0.56)


def tentacle(n: int = 6000) -> Shapes:
    """A tentacle of about n vertices: "straight", "S", "curled" (by 560 degrees), "hook" and "reaching"."""
    base = _straight(n)
    points = [line.carry(base.points) for line in map(_line, POSES.values())]
    return Shapes(base, np.stack([base.points, *points]), ("straight", *POSES))


def tentacle_curl(n: int = 6000, *, frames: int = 36, fps: float = 24.0) -> Animation:
    """The tentacle curling up from straight, the true curve at every frame."""
    whole_number(frames, "frames", 2, MOST_FRAMES)
    base = _straight(n)
    amounts = smoothstep(np.linspace(0, 1, frames), 0, 1)
    points = np.stack([_line(amount * POSES["curled"]).carry(base.points) for amount in amounts])
    return Animation(base, points, fps, "tentacle curl")


def tentacle_skeleton(joints: int = 9) -> Skeleton:
    """A chain of joints along the straight tentacle's centre line, from root to tip."""
    whole_number(joints, "joints", 2, 100)
    positions = np.zeros((joints, 3))
    positions[:, 1] = np.linspace(0, 0.97 * LENGTH, joints)
    return Skeleton.from_positions(positions, np.arange(joints) - 1, [f"link{k}" for k in range(joints)])


def _curvatures(forward: Floats, sideways: Floats | float = 0.0) -> Floats:
    return np.stack([forward, np.broadcast_to(sideways, forward.shape)], axis=1)


def _poses() -> dict[str, Floats]:
    """(PIECES, 2) curvatures of each pose; positive forward curvature bends towards +z, where the suckers are.

    The curl is a logarithmic spiral: curvature grows as the tentacle thins, so its loops do not meet.
    """
    q = (np.arange(ARC_PIECES) + 0.5) / ARC_PIECES
    return {
        "S": _curvatures(np.radians(65) * 2 * np.pi / LENGTH * np.cos(2 * np.pi * q) * smoothstep(q, -0.1, 0.2)),
        "curled": _curvatures(4.2 / LENGTH / (1.08 - q) * smoothstep(q, 0, 0.5)),
        "hook": _curvatures(np.radians(230) / LENGTH * 30 * q**4 * (1 - q), 0.35 * np.ones(ARC_PIECES)),
        "reaching": _curvatures(
            1.35 * np.exp(-(((q - 0.25) / 0.16) ** 2)) - 1.7 * np.exp(-(((q - 0.85) / 0.14) ** 2)),
            0.8 * np.sin(np.pi * q) * np.cos(3 * np.pi * q),
        ),
    }


POSES = _poses()


def _line(curvatures: Floats) -> Centreline:
    return Centreline(LENGTH, curvatures)


def radius(y: Floats) -> Floats:
    """Radius of the tentacle at a height, without its suckers; the tip is round."""
    q = np.clip(y / LENGTH, 0, 1)
    taper = ROOT_RADIUS + (TIP_RADIUS - ROOT_RADIUS) * q**0.85
    end = np.clip((q - 0.98) / 0.02, 0, 1)
    return np.asarray(taper * np.sqrt(1 - 0.9 * end**2))


def _straight(n: int) -> Mesh:
    check_count(n, "tentacle")
    around = max(2, round(np.sqrt(n / 58)))
    along = max(8, round((n - 2 - 2 * around**2) / (4 * around)))
    surface = box_surface((along, around, around))
    fine = np.linspace(0, LENGTH, 400)
    crowd = np.stack([fine[::20], 2.2 * (ROOT_RADIUS / radius(fine[::20]) - 1) / 10, np.full(20, 0.25)], axis=1)
    heights = spread([0.0, LENGTH], [along], crowd)
    level = np.rint((surface.points[:, 0] + 1) / 2 * along).astype(int)
    y = heights[level]
    z, x = square_to_disc(surface.points[:, 1], surface.points[:, 2])
    away, angle = np.hypot(x, z), np.arctan2(x, z)
    on_side = away > 1 - 1e-9
    bump, paint = _suckers(y, angle, 2 * np.pi / (4 * around))
    r = radius(y) * (1 + np.where(on_side & (y > 0) & (y < LENGTH), bump, 0))
    dome = np.where(level == along, 0.5 * TIP_RADIUS * (1 - away**2), 0)
    points = np.stack([x * r, y + dome, z * r], axis=1)
    return Mesh(points, surface.quads, uvs=surface.uvs, attributes={"color": _paint(angle, paint)})


def sucker_heights() -> Floats:
    """Heights of the suckers: as far apart as they are wide."""
    heights = [0.30]
    while heights[-1] < 0.93 * LENGTH:
        heights.append(heights[-1] + 0.62 * float(radius(np.array([heights[-1]]))[0]) + 0.02)
    return np.array(heights)


def _suckers(y: Floats, angle: Floats, step: float) -> tuple[Floats, Floats]:
    """Relative swelling of the surface, and how much each vertex is part of a sucker.

    Distances are in units of the local radius, so suckers shrink with the tentacle. Cups need some six vertices
    across; on coarser tentacles they fade to plain knobs.
    """
    heights = sucker_heights()
    nearest = np.abs(y[:, None] - heights).argmin(axis=1)
    local = radius(heights)[nearest]
    up = (y - heights[nearest]) / local
    across = np.abs(angle) - 0.42
    distance = np.hypot(up, across) / 0.29
    sharp = 1 - smoothstep(np.array([step]), 0.10, 0.25)[0]
    rim = np.exp(-(((distance - 0.62) / 0.30) ** 2))
    knob = np.exp(-((distance / 0.75) ** 2))
    cup = sharp * (rim - 0.6 * np.exp(-((distance / 0.38) ** 2))) + (1 - sharp) * knob
    return 0.11 * cup, np.exp(-((distance / 0.95) ** 8))


def _paint(angle: Floats, sucker: Floats) -> Floats:
    belly = 1 - smoothstep(np.abs(angle), 0.8, 1.5)
    return painted(len(angle), BODY_COLOR, (belly, BELLY_COLOR), (sucker, SUCKER_COLOR))

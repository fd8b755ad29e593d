"""Plain solids and the bar and the tube that every deformation paper bends.

All are box surfaces in quads (`lattice`), moved: a rounded box, a sphere (the cube blown up, with even angles), a
cylinder (its square section made round). The bar and the tube lie along x, centred; their poses are the exact maps of
`bend_twist`, so the centre line keeps its length and the bent solid keeps its volume.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import Shapes
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, TetMesh
from pliant.core.topology import Floats
from pliant.core.validation import positive_number, vector
from pliant.gallery.bend_twist import Centreline, bend, twist
from pliant.gallery.coats import checkered
from pliant.gallery.lattice import BoxSurface, block_cells, block_tets, box_surface, square_to_disc, surface_cells
from pliant.gallery.sizes import check_count


def rounded(points: Floats, half: Floats, radius: float) -> Floats:
    """Points on the surface of the box of these half sizes, its edges and corners rounded."""
    if radius == 0:
        return points
    inner = np.clip(points, radius - half, half - radius)
    offset = points - inner
    return inner + radius * offset / np.linalg.norm(offset, axis=1, keepdims=True)


def box_mesh(n: int, size: Floats, rounding: float) -> Mesh:
    """A box about the origin with about n vertices, however few."""
    surface = box_surface(surface_cells(n, tuple(size)))
    return Mesh(rounded(surface.points * size / 2, size / 2, rounding), surface.quads, uvs=surface.uvs)


def sphere_mesh(n: int, radius: float) -> Mesh:
    """A sphere about the origin with about n vertices, however few."""
    surface = box_surface(surface_cells(n, (1, 1, 1)))
    cube = np.tan(surface.points * np.pi / 4)
    points = radius * cube / np.linalg.norm(cube, axis=1, keepdims=True)
    return Mesh(points, surface.quads, uvs=surface.uvs)


def cylinder_mesh(n: int, radius: float, height: float, rounding: float) -> Mesh:
    """An upright cylinder about the origin with about n vertices, however few."""
    surface = box_surface(surface_cells(n, (height, np.pi / 2 * radius, np.pi / 2 * radius)))
    return Mesh(_cylinder_points(surface, radius, height, rounding), surface.quads, uvs=surface.uvs)


def _cylinder_points(surface: BoxSurface, radius: float, height: float, rounding: float) -> Floats:
    """Of a box surface: the first axis along y, the other two made round."""
    z, x = square_to_disc(surface.points[:, 1], surface.points[:, 2])
    away = np.hypot(x, z)
    inner = np.stack([radius * away, height / 2 * surface.points[:, 0]], axis=1)
    rim = inner.copy()
    if rounding > 0:
        core = np.stack([np.minimum(inner[:, 0], radius - rounding), inner[:, 1]], axis=1)
        core[:, 1] = np.clip(core[:, 1], rounding - height / 2, height / 2 - rounding)
        offset = inner - core
        rim = core + rounding * offset / np.linalg.norm(offset, axis=1, keepdims=True)
    scale = np.divide(rim[:, 0], away, out=np.zeros_like(away), where=away > 0)
    return np.stack([x * scale, rim[:, 1], z * scale], axis=1)


def box(n: int = 2000, size: ArrayLike = (1, 1, 1), centre: ArrayLike = (0, 0, 0), *, rounding: float = 0.0) -> Mesh:
    """A closed box of about n vertices, its edges rounded by a radius if asked for."""
    check_count(n, "box")
    extent = vector(size, "size")
    if (extent <= 0).any() or not 0 <= rounding <= extent.min() / 2:
        raise InputError(f"size is {extent.tolist()}, rounding {rounding}; expected positive, at most half the size")
    mesh = box_mesh(n, extent, rounding)
    return mesh.with_points(mesh.points + vector(centre, "centre"))


def sphere(n: int = 2000, radius: float = 1.0, centre: ArrayLike = (0, 0, 0)) -> Mesh:
    """A closed sphere of about n vertices, in quads of near equal angles."""
    check_count(n, "sphere")
    mesh = sphere_mesh(n, positive_number(radius, "radius"))
    return mesh.with_points(mesh.points + vector(centre, "centre"))


def cylinder(
    n: int = 2000, radius: float = 0.5, height: float = 2.0, centre: ArrayLike = (0, 0, 0), *, rounding: float = 0.0
) -> Mesh:
    """A closed upright cylinder of about n vertices, its rims rounded by a radius if asked for."""
    check_count(n, "cylinder")
    radius, height = positive_number(radius, "radius"), positive_number(height, "height")
    if not 0 <= rounding < min(radius, height / 2):
        raise InputError(f"rounding is {rounding}; expected 0 or more, below radius and half height")
    mesh = cylinder_mesh(n, radius, height, rounding)
    return mesh.with_points(mesh.points + vector(centre, "centre"))


def bar(
    n: int = 2000,
    *,
    size: ArrayLike = (4, 1, 1),
    rounding: float = 0.0,
    bends: Sequence[float] = (90, 180),
    twists: Sequence[float] = (90, 270),
    both: Sequence[tuple[float, float]] = ((180, 180),),
) -> Shapes:
    """A bar along x: "straight", then bent upwards, twisted, and twisted and then bent, by angles in degrees."""
    check_count(n, "bar")
    extent = vector(size, "size")
    base = checkered(box(n, size, rounding=rounding), extent.min() / 2)
    length = float(extent[0])
    poses = {"straight": base.points}
    poses |= {f"bent {angle:g}": bend(base.points, angle, length=length) for angle in bends}
    poses |= {f"twisted {angle:g}": twist(base.points, angle, length=length) for angle in twists}
    for bent, twisted in both:
        rotated = twist(base.points, twisted, length=length)
        poses[f"bent {bent:g} twisted {twisted:g}"] = bend(rotated, bent, length=length)
    return Shapes(base, np.stack(list(poses.values())), tuple(poses))


def bar_tets(n: int = 2000, *, size: ArrayLike = (4, 1, 1), bent: float = 0.0, twisted: float = 0.0) -> TetMesh:
    """The bar as a solid of about n vertices, twisted and then bent by angles in degrees."""
    check_count(n, "bar_tets")
    extent = vector(size, "size")
    if (extent <= 0).any():
        raise InputError(f"size is {extent.tolist()}; expected three positive numbers")
    points, tets = block_tets(block_cells(n, tuple(extent)))
    length = float(extent[0])
    moved = bend(twist(points * extent / 2, twisted, length=length), bent, length=length)
    solid = TetMesh(moved, tets)
    return TetMesh(moved, tets, solid.surface.triangles)


def tube(
    n: int = 4000,
    *,
    length: float = 4.0,
    radius: float = 0.35,
    rounding: float = 0.08,
    bends: Sequence[float] = (120, 180),
    s_bend: float = 120.0,
) -> Shapes:
    """A closed tube along x: "straight", bent upwards by angles in degrees, and bent like an S."""
    check_count(n, "tube")
    length, radius = positive_number(length, "length"), positive_number(radius, "radius")
    upright = cylinder(n, radius, length, rounding=rounding)
    straight = upright.points[:, [1, 2, 0]]
    poses = {"straight": straight}
    poses |= {f"bent {angle:g}": bend(straight, angle, length=length) for angle in bends}
    poses["S"] = _s_bent(upright.points, s_bend, length, radius)
    base = checkered(upright.with_points(straight), 1.2 * radius)
    return Shapes(base, np.stack(list(poses.values())), tuple(poses))


def _s_bent(upright: Floats, degrees: float, length: float, radius: float) -> Floats:
    """Bent by `degrees` along the first half and back along the second, with smooth curvature."""
    s = (np.arange(400) + 0.5) / 400
    curvature = np.radians(degrees) * np.pi / length * np.sin(2 * np.pi * s)
    if np.abs(curvature).max() * radius >= 1:
        raise InputError(f"an S bend of {degrees:g} degrees folds a tube of radius {radius:g}; bend less")
    line = Centreline(length, np.stack([curvature, np.zeros(400)], axis=1))
    carried = line.carry(upright + np.array([0, length / 2, 0]))
    middle = line.frames(np.array([length / 2]))[0][0]
    rotated = (carried - middle)[:, [1, 2, 0]]
    across = np.arctan2(*(line.frames(np.array([length]))[0][0] - line.frames(np.array([0.0]))[0][0])[[2, 1]])
    c, s_ = np.cos(across), np.sin(across)
    return np.asarray(rotated @ np.array([[c, -s_, 0], [s_, c, 0], [0, 0, 1.0]]))

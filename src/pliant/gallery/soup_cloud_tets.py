"""Shapes that are not one closed surface: a soup of polygons, a point cloud, a solid of tetrahedra.

The soup is a fish laid out of scales: quads and triangles that touch but share no vertex. The cloud is a snail's shell,
a tube swept along a spiral that widens by a constant factor a turn, sampled evenly by area. The solid is a ring:
hexagons made round, stacked around a circle.
"""

from __future__ import annotations

import numpy as np

from pliant.core.errors import InputError
from pliant.core.normals import unit
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.core.topology import Floats, Ints
from pliant.gallery.lattice import prism_tets
from pliant.gallery.ramps import smoothstep
from pliant.gallery.sizes import check_count

# The fish from nose to tail root: x, half height, half thickness, height of the middle line.
FISH = np.array(
    [
        [1.00, 0.02, 0.015, -0.03],
        [0.93, 0.14, 0.09, -0.02],
        [0.75, 0.30, 0.17, 0.00],
        [0.40, 0.45, 0.23, 0.02],
        [0.00, 0.47, 0.23, 0.02],
        [-0.40, 0.34, 0.17, 0.01],
        [-0.75, 0.16, 0.08, 0.00],
        [-0.95, 0.09, 0.035, 0.00],
    ]
)


def soup(n: int = 2000) -> Mesh:
    """A fish of loose polygons, about n vertices: scales (quads), fins and tail (triangles), no vertex shared."""
    check_count(n, "soup")
    fins = [_fin(fin, max(3, round(rays * np.sqrt(n / 2000)))) for fin, rays in _FINS]
    eyes = [_eye(side, max(6, round(8 * np.sqrt(n / 2000)))) for side in (-1, 1)]
    triangles = np.concatenate([corners for corners, _ in fins + eyes])
    paint3 = np.concatenate([np.repeat(colors, 3, axis=0) for _, colors in fins + eyes])
    quads, paint4 = _scales(max(40, round((n - 3 * len(triangles)) / 4)))
    points = np.concatenate([quads.reshape(-1, 3), triangles.reshape(-1, 3)])
    points = np.stack([-points[:, 2], points[:, 1], points[:, 0]], axis=1)  # drawn facing +x, rotated to face +z
    faces = [*np.arange(quads.shape[0] * 4).reshape(-1, 4).tolist()]
    faces += (quads.shape[0] * 4 + np.arange(len(triangles) * 3).reshape(-1, 3)).tolist()
    return Mesh(points, faces, attributes={"color": np.concatenate([np.repeat(paint4, 4, axis=0), paint3])})


def _fish_skin(x: Floats, angle: Floats) -> Floats:
    """Points of the fish's body; angle 0 looks along +z, 90 degrees up."""
    from scipy.interpolate import PchipInterpolator

    high, thick, middle = PchipInterpolator(FISH[::-1, 0], FISH[::-1, 1:])(x).T
    return np.stack([x, middle + high * np.sin(angle), thick * np.cos(angle)], axis=-1)


def _scales(count: int) -> tuple[Floats, Floats]:
    """Kites in rows around the body, each row set off by half a scale: (k, 4, 3) corners and (k, 3) colours."""
    girths = _girths()
    best = min(range(5, 400), key=lambda rows: abs(int(_row_sizes(rows, girths).sum()) - count))
    sizes = _row_sizes(best, girths)
    edges = np.linspace(0.985, -0.93, best + 1)
    corners, colors = [], []
    for row, around in enumerate(sizes.tolist()):
        front, step = edges[row], edges[row] - edges[row + 1]
        middle = 2 * np.pi * (np.arange(around) + 0.5 * (row % 2)) / around
        half = np.pi / around
        flat = ((0.0, 0.0), (0.9, 1.0), (2.0, 0.0), (0.9, -1.0))
        kite = np.stack(
            [_fish_skin(np.full(around, max(front - x * step, -0.95)), middle + angle * half) for x, angle in flat],
            axis=1,
        )
        lift = unit(kite.mean(axis=1) * [0, 1, 1]) * 0.25 * step
        kite[:, 2] += 0.6 * lift
        corners.append(kite)
        colors.append(_scale_colors(np.full(around, front), middle, row))
    return np.concatenate(corners), np.concatenate(colors)


def _girths() -> Floats:
    """(k, 2) girth of the body, by x."""
    x = np.linspace(-0.95, 1.0, 200)
    around = _fish_skin(np.repeat(x, 33), np.tile(np.linspace(0, 2 * np.pi, 33), len(x))).reshape(len(x), 33, 3)
    return np.stack([x, np.linalg.norm(np.diff(around, axis=1), axis=-1).sum(axis=1)], axis=1)


def _row_sizes(rows: int, girths: Floats) -> Ints:
    """How many scales fit around each row, as tall as the rows are apart."""
    x = np.linspace(0.985, -0.93, rows + 1)[:-1]
    return np.maximum(4, np.rint(np.interp(x, *girths.T) * rows / 1.915)).astype(np.int64)


def _scale_colors(x: Floats, angle: Floats, row: int) -> Floats:
    up = np.sin(angle)[:, None]
    colors = np.where(up > 0, [0.80, 0.22, 0.05], [0.90, 0.55, 0.18]) + 0.0
    band = np.exp(-(((x[:, None] - [0.45, -0.15, -0.72]) / 0.07) ** 2)).sum(axis=1)
    colors += np.clip(band, 0, 1)[:, None] * ([0.9, 0.88, 0.82] - colors)
    return np.asarray(colors * (0.88 + 0.12 * ((np.arange(len(x)) + row) % 2))[:, None])


# Root start and end, tip start and end, and how many rays at 2000 vertices.
_FINS = (
    (((-0.88, 0.08, 0.0), (-0.88, -0.08, 0.0), (-1.42, 0.46, 0.0), (-1.42, -0.46, 0.0)), 16),
    (((0.38, 0.45, 0.0), (-0.42, 0.33, 0.0), (0.02, 0.80, 0.0), (-0.66, 0.55, 0.0)), 13),
    (((-0.50, -0.27, 0.0), (-0.10, -0.43, 0.0), (-0.70, -0.46, 0.0), (-0.28, -0.66, 0.0)), 8),
    (((0.34, -0.10, 0.23), (0.30, -0.24, 0.21), (-0.02, -0.14, 0.38), (0.00, -0.42, 0.36)), 6),
    (((0.34, -0.10, -0.23), (0.30, -0.24, -0.21), (-0.02, -0.14, -0.38), (0.00, -0.42, -0.36)), 6),
)


def _fin(corners: tuple[tuple[float, float, float], ...], rays: int) -> tuple[Floats, Floats]:
    """Long triangles from the root to the edge of a fin, on both sides of it: (k, 3, 3) corners, (k, 3) colours."""
    root0, root1, tip0, tip1 = (np.array(corner) for corner in corners)
    q = (np.arange(rays) + 0.5)[:, None] / rays
    wide = 0.48 / rays
    notch = 1 - 0.22 * np.exp(-(((q - 0.5) / 0.2) ** 2)) + 0.05 * np.cos(np.pi * np.arange(rays))[:, None]
    root = root0 + q * (root1 - root0)
    ends = [root + notch * (tip0 + (q + side * wide) * (tip1 - tip0) - root) for side in (-1, 1)]
    colors = np.where(np.arange(rays)[:, None] % 2, [0.85, 0.30, 0.06], [0.95, 0.48, 0.12])
    front = np.stack([root, *ends], axis=1)
    apart = np.array([0.0, 0.0, 0.004])
    return np.concatenate([front + apart, front[:, ::-1] - apart]), np.tile(colors, (2, 1))


def _eye(side: int, parts: int) -> tuple[Floats, Floats]:
    """A white disc and a black one before it, in loose slices."""
    centre = np.array([0.72, 0.10, side * 0.158])
    around = 2 * np.pi * np.arange(parts + 1) / parts
    rim = np.stack([np.cos(around), np.sin(around), np.zeros(parts + 1)], axis=1)
    slices, colors = [], []
    for radius, forward, shade in ((0.085, 0.02, 0.9), (0.048, 0.035, 0.02)):
        middle = centre + np.array([0, 0, side * (forward + 0.015)])
        edge = centre + np.array([0, 0, side * forward]) + radius * rim
        slices.append(np.stack([np.broadcast_to(middle, (parts, 3)), edge[:-1], edge[1:]], axis=1)[:, ::side])
        colors.append(np.full((parts, 3), shade))
    return np.concatenate(slices), np.concatenate(colors)


def cloud(n: int = 5000) -> PointCloud:
    """A snail's shell of n points, with outward normals and colours."""
    check_count(n, "cloud")
    revolutions = 3.6
    fine = np.linspace(0, 1, 2000)
    scale = _growth(fine, revolutions)
    total = np.concatenate([[0], np.cumsum((scale[1:] ** 2 + scale[:-1] ** 2) / 2)])
    k = np.arange(n)
    q = np.interp((k + 0.5) / n, total / total[-1], fine)
    around: Floats = 2.0 * np.pi * np.mod(k * 0.6180339887498949, 1.0)  # the golden ratio spreads points evenly
    step = 1e-5
    points = _shell(q, around, revolutions)
    along = _shell(q + step, around, revolutions) - _shell(q - step, around, revolutions)
    across = _shell(q, around + step, revolutions) - _shell(q, around - step, revolutions)
    normals = unit(np.cross(along, across))
    bands = 0.5 + 0.5 * np.sin(2 * np.pi * revolutions * 9 * q)
    streak = smoothstep(bands * (0.7 + 0.3 * np.cos(2 * around)), 0.35, 0.75)[:, None]
    colors = (1 - streak) * [0.90, 0.78, 0.60] + streak * [0.45, 0.20, 0.09]
    return PointCloud(points, normals, {"color": colors})


def _growth(q: Floats, revolutions: float) -> Floats:
    """Size of the shell along the spiral: 1 at the mouth, half as much one turn earlier."""
    return np.asarray(2.0 ** (revolutions * (q - 1)))


def _shell(q: Floats, around: Floats, revolutions: float) -> Floats:
    """Points of the shell's tube; the axis is upright, the tip on top, the mouth in front."""
    size = _growth(q, revolutions)
    angle = 2 * np.pi * revolutions * (q - 1)
    away = size * (0.62 + 0.42 * np.cos(around))
    height = 1.15 * (1 - size) + size * 0.50 * np.sin(around)
    return np.stack([away * np.sin(angle), height, away * np.cos(angle)], axis=-1)


def tets(n: int = 3000, *, radius: float = 1.0, thickness: float = 0.38) -> TetMesh:
    """A ring (solid torus) of about n vertices: tetrahedra of positive volume, and its surface."""
    check_count(n, "tets")
    if not 0 < thickness < radius:
        raise InputError(f"thickness is {thickness}, radius {radius}; expected 0 < thickness < radius")
    rings = max(2, round(np.cbrt(n / 54)))
    disc, triangles = _hexagonal_disc(rings)
    layers = round(n / len(disc))
    angle = 2 * np.pi * np.arange(layers)[:, None] / layers
    out = radius + thickness * disc[:, 0]
    height = np.broadcast_to(thickness * disc[:, 1], (layers, len(disc)))
    points = np.stack([out * np.cos(angle), height, -out * np.sin(angle)], axis=-1).reshape(-1, 3)
    solid = TetMesh(points, prism_tets(triangles[:, ::-1], len(disc), layers) % len(points))
    return TetMesh(points, solid.tets, solid.surface.triangles)


def _hexagonal_disc(rings: int) -> tuple[Floats, Ints]:
    """The unit disc of 1 + 3 r (r + 1) vertices, hexagons made round, in triangles oriented from y to z."""
    points, first = [np.zeros((1, 2))], [0]
    for ring in range(1, rings + 1):
        angle = np.pi / 3 * np.arange(6 * ring) / ring
        points.append(ring / rings * np.stack([np.cos(angle), np.sin(angle)], axis=1))
        first.append(1 + 3 * ring * (ring - 1))
    triangles = []
    for ring in range(1, rings + 1):
        k = np.arange(6 * ring)
        side, at = np.divmod(k, ring)
        inner = first[ring - 1] + (side * (ring - 1) + at) % max(6 * (ring - 1), 1)
        outer, following = first[ring] + k, first[ring] + (k + 1) % (6 * ring)
        triangles.append(np.stack([outer, following, inner], axis=1))
        more = at > 0
        before = first[ring - 1] + (side * (ring - 1) + at - 1) % max(6 * (ring - 1), 1)
        triangles.append(np.stack([outer, inner, before], axis=1)[more])
    return np.concatenate(points), np.concatenate(triangles)

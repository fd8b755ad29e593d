"""Self-proximity by brute force, and surfaces that come near to themselves, for tests."""

from __future__ import annotations

from functools import cache

import numpy as np

from pliant import ElasticBody, Mesh, Motion, Skeleton, gallery
from surfaces import box, sphere, turn

# References


def closest_on_triangles(points, corners):
    """(n, t, 3) closest points: the foot on the plane if it is inside, else the best of the three edges."""
    a, b, c = (corners[None, :, k] for k in range(3))
    p = points[:, None]
    n = np.cross(b - a, c - a)
    foot = p - (((p - a) * n).sum(-1) / (n**2).sum(-1))[..., None] * n
    inside, places = True, []
    for start, end in ((a, b), (b, c), (c, a)):
        inside = inside & ((np.cross(end - start, foot - start) * n).sum(-1) >= 0)
        along = np.clip(((p - start) * (end - start)).sum(-1) / ((end - start) ** 2).sum(-1), 0, 1)
        places.append(start + along[..., None] * (end - start))
    places = np.stack(places)
    best = np.linalg.norm(places - p, axis=-1).argmin(axis=0)
    edge = np.take_along_axis(places, best[None, ..., None], axis=0)[0]
    return np.where(inside[..., None], foot, edge)


def all_crossings(triangles, points):
    """Pairs of triangles without a common vertex of which an edge of one pierces the other."""
    corners = points[triangles]
    pierced = np.zeros((len(triangles), len(triangles)), dtype=bool)
    a, b, c = (corners[None, :, k] for k in range(3))
    volume = lambda p, q, r, s: (np.cross(q - p, r - p) * (s - p)).sum(-1)  # noqa: E731
    for k in range(3):
        p, q = corners[:, None, k], corners[:, None, (k + 1) % 3]
        sides = np.stack([volume(p, q, a, b), volume(p, q, b, c), volume(p, q, c, a)])
        pierced |= (volume(a, b, c, p) * volume(a, b, c, q) < 0) & ((sides > 0).all(0) | (sides < 0).all(0))
    pierced |= pierced.T
    shared = (triangles[:, None, :, None] == triangles[None, :, None, :]).any(axis=(2, 3))
    return np.argwhere(np.triu(pierced & ~shared, 1))


# Shapes


def joined(*parts):
    """One surface (triangles, points) of several."""
    starts = np.cumsum([0] + [len(points) for _, points in parts])
    triangles = np.concatenate([cells + start for (cells, _), start in zip(parts, starts, strict=False)])
    return triangles, np.concatenate([points for _, points in parts])


def plate(height, *, up, shift=0.0, count=7):
    """A square sheet in the plane z = height, of side 6, facing up or down."""
    x, y = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    points = np.stack([x + shift, y + shift, np.full(x.shape, height)], axis=2).reshape(-1, 3).astype(float)
    v = (x[:-1, :-1] * count + y[:-1, :-1]).ravel()
    cells = np.concatenate([np.stack([v, v + count, v + count + 1], 1), np.stack([v, v + count + 1, v + 1], 1)])
    return (cells if up else cells[:, ::-1]), points


def plates(distance, shift=0.3):
    """Two sheets that face each other; the number of points of the lower one."""
    lower, upper = plate(0.0, up=True), plate(distance, up=False, shift=shift)
    return *joined(lower, upper), len(lower[1])


def bars(distance):
    """Two square bars along x and y, standing on their edges so that only these come near, `distance` apart."""
    lower, upper = box((4, 0.5, 0.5)), box((0.5, 4, 0.5))
    half = np.sqrt(0.5)
    a = lower.points @ turn([1, 0, 0], np.pi / 4).T - [0, 0, half]
    b = upper.points @ turn([0, 1, 0], np.pi / 4).T + [0, 0, half + distance]
    return *joined((lower.triangles, a), (upper.triangles, b)), len(a)


@cache
def fist(n=500):
    shapes = gallery.hand(n)
    return shapes.base.triangles, shapes.base.points, shapes.named("fist").points


def bumpy(seed):
    """A sphere with dents so deep that the surface faces itself."""
    rng = np.random.default_rng(seed)
    mesh = sphere(18, 15)
    waves, phases = rng.normal(size=(6, 3)) * 4, rng.uniform(0, 6, 6)
    bump = np.sin(mesh.points @ waves.T + phases).sum(axis=1)
    return mesh.triangles, mesh.points, mesh.points * (1 + 0.14 * bump[:, None])


def soup(seed, n=60):
    """Random triangles among random points, all crossing each other."""
    rng = np.random.default_rng(seed)
    triangles = rng.permutation(np.arange(3 * n)).reshape(-1, 3)
    return triangles, rng.normal(size=(3 * n, 3)), rng.normal(size=(3 * n, 3))


def clapping(frames=5):
    """A body of two lobes, each on a bone, and a motion that brings the lower one up into the upper one."""
    lobe = sphere(14, 10)
    x = lobe.points[:, [2, 0, 1]] * [1.0, 0.25, 0.25]
    triangles, points = joined((lobe.triangles, x), (lobe.triangles, x - [0.1, 0.65, 0.0]))
    bones = Skeleton.from_positions([[-0.9, 0, 0], [0.9, 0, 0], [-1.0, -0.65, 0], [0.8, -0.65, 0]], [-1, 0, 0, 2])
    turns, places = (np.repeat(rest[None], frames, axis=0) for rest in (bones.rest_rotations, bones.offsets))
    places[:, 2, 1] += np.linspace(0, 0.25, frames)
    return ElasticBody(Mesh(points, triangles), bones, nodes=200), Motion(bones, turns, places, fps=60.0)

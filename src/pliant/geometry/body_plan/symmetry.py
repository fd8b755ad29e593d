"""The plane that a body is mirrored in.

With the upright axis known, the normal of the plane is horizontal. For normals in all directions, the body's samples
are reflected and compared with the body; from the best few, reflected iterative closest points refine the normal, the
offset of the plane, or both. The result turns along with the body: no step knows the coordinate axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.caching import ResultCache, content_key
from pliant.core.shapes import Mesh, Shape, TetMesh
from pliant.core.topology import Floats
from pliant.geometry.axes import SignedAxis, up_axis, up_vector

SYMMETRY_SAMPLES = 1200
"""Points on a surface."""
DIRECTIONS = 48
"""Normals that are tried."""
REFINED = 5
"""The best of them, which are refined."""
SYMMETRY_ROUNDS = 40
"""Of a refinement, at most."""
NORMAL_TOLERANCE = 1e-7
"""Change of a unit normal that ends it."""
LIKELY = 1.3
"""How much worse a mirror plane along the file's upright axis may be than one along another axis."""
NEARLY, DISTINCT = 1.6, 0.95
"""How much worse than the best a plane may be, and the cosine between the normals of two that are different."""
NO_SKEWNESS = 1e-6
"""Below which a distribution is symmetric but for rounding."""
TRIMMED = 0.8
"""Share of the samples, the best ones, that count: a sword in one hand does not."""


@dataclass(frozen=True, eq=False)
class MirrorPlane:
    """Points x with ``normal · x = offset``."""

    normal: Floats
    """(3,) a unit vector"""
    offset: float
    error: float
    """Mean distance of the reflected body from the body, over its size."""


def surface_samples(shape: Shape, count: int = SYMMETRY_SAMPLES) -> Floats:
    """(count, 3) points spread over a shape by area, the same ones however it is turned; of a cloud, its points."""
    surface = shape.surface if isinstance(shape, TetMesh) else shape
    if not isinstance(surface, Mesh) or not len(surface.triangles):
        return shape.points[np.linspace(0, len(shape.points) - 1, min(count, len(shape.points))).astype(int)]
    corners = np.sort(surface.even_triangles, axis=1)  # a mirrored surface has the same samples, mirrored
    a, b, c = (surface.points[corners[:, k]] for k in range(3))
    ends = np.cumsum(np.linalg.norm(np.cross(b - a, c - a), axis=1))
    at = (np.arange(count) + 0.5) / count
    chosen = np.minimum(np.searchsorted(ends, at * ends[-1]), len(ends) - 1)
    u, v = np.sqrt((at * 7919) % 1.0)[:, None], ((at * 104729) % 1.0)[:, None]
    return (1 - u) * a[chosen] + u * (1 - v) * b[chosen] + u * v * c[chosen]


def own_axes(shape: Shape, axes: Floats) -> Floats:
    """(3, 3) a shape's axes (3, 3), rows, in an order and with signs of its own: the longest first.

    So what is found along them, such as voxels with their ties, does not depend on which way a shape faces, which axis
    is up, or whether it is mirrored: they may be left-handed. What looks alike from both sides is told apart by the
    order of its points.
    """
    samples = surface_samples(shape)
    along = (samples - samples.mean(axis=0)) @ axes.T
    spread = (along**2).mean(axis=0)
    skewness = (along**3).mean(axis=0) / np.maximum(spread, 1e-150) ** 1.5
    order = np.linspace(-1, 1, len(along)) @ along
    signs = np.where(np.where(np.abs(skewness) > NO_SKEWNESS, skewness, order) < 0, -1.0, 1.0)
    return (signs[:, None] * axes)[np.argsort(-spread, kind="stable")]


def body_axes(shape: Shape, up: SignedAxis | None = None) -> Floats:
    """(3, 3) rows: directions that rotate and mirror along with a shape, across its mirror plane and upright first.

    Upright is `up`, or what the file says, or y unless planes along another axis are much better.
    """
    samples, first = surface_samples(shape), up_vector(up or up_axis(shape))
    known = up is not None or shape.world is not None
    axes = [first, *([] if known else [axis for axis in np.eye(3) if abs(axis @ first) < 0.5])]
    planes = [mirror_planes(samples, axis)[0] for axis in axes]
    best = int(np.argmin([plane.error / (LIKELY if k == 0 else 1) for k, plane in enumerate(planes)]))
    normal, axis = planes[best].normal, axes[best]
    return own_axes(shape, np.stack([normal, axis, np.cross(normal, axis)]))


def mirror_planes(samples: Floats, up: Floats) -> list[MirrorPlane]:
    """The planes along `up` that samples (n, 3) of a body are nearly mirrored in, the best first."""
    return list(_planes.get(content_key(samples, up), lambda: _mirror_planes(samples, up)))


_planes: ResultCache[list[MirrorPlane]] = ResultCache(16)
"""The cage, the limbs and the front of a shape all ask."""


def _mirror_planes(samples: Floats, up: Floats) -> list[MirrorPlane]:
    from scipy.spatial import cKDTree

    centre = samples.mean(axis=0)
    size = max(float(np.sqrt(((samples - centre) ** 2).sum(axis=1).mean())), 1e-300)
    points = (samples - centre) / size
    tree = cKDTree(points)
    across = _across(points, up)
    angles = np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    normals = np.cos(angles)[:, None] * across + np.sin(angles)[:, None] * np.cross(up, across)
    few = points[:: max(1, len(points) // 400)]
    errors = np.array([_error(tree.query(few - 2 * np.outer(few @ n, n))[0]) for n in normals])
    lowest = np.flatnonzero((errors <= np.roll(errors, 1)) & (errors <= np.roll(errors, -1)))
    lowest = lowest[np.argsort(errors[lowest], kind="stable")][:REFINED]
    found = sorted((_refined(points, tree, normals[k], up) for k in lowest), key=lambda plane: plane.error)
    planes: list[MirrorPlane] = []
    for plane in found:
        if plane.error <= NEARLY * found[0].error and all(abs(p.normal @ plane.normal) < DISTINCT for p in planes):
            offset = float(plane.offset * size + plane.normal @ centre)
            planes.append(MirrorPlane(plane.normal, offset, plane.error))
    return planes


def _across(points: Floats, up: Floats) -> Floats:
    """A horizontal direction that rotates along with the points: the longest extent of their third moments' matrix."""
    flat = points - np.outer(points @ up, up)
    weights = np.sqrt((flat**2).sum(axis=1))
    direction: Floats = np.linalg.eigh((flat * weights[:, None]).T @ flat)[1][:, -1]
    direction = direction - (direction @ up) * up
    return direction / max(float(np.linalg.norm(direction)), 1e-300)


def _error(distances: Floats) -> float:
    kept = np.sort(distances)[: int(np.ceil(TRIMMED * len(distances)))]
    return float(kept.mean())


def _refined(points: Floats, tree: object, normal: Floats, up: Floats) -> MirrorPlane:
    offset = 0.0
    for _ in range(SYMMETRY_ROUNDS):
        mirrored = points - 2 * np.outer(points @ normal - offset, normal)
        distances, near = tree.query(mirrored)  # type: ignore[attr-defined]
        kept = np.argsort(distances)[: int(np.ceil(TRIMMED * len(points)))]
        p, q = points[kept], points[near[kept]]
        middle = (p + q).mean(axis=0) / 2
        gap = (p + q) / 2 - middle
        # The midpoints of mirrored pairs lie in the plane, and the pairs' differences along its normal.
        spread = gap.T @ gap - (p - q).T @ (p - q) / 4
        basis = np.stack([normal, np.cross(up, normal)], axis=1)
        values, vectors = np.linalg.eigh(basis.T @ spread @ basis)
        new = basis @ vectors[:, int(np.argmin(values))]
        new *= 1.0 if new @ normal >= 0 else -1.0
        moved = float(np.linalg.norm(new - normal))
        normal, offset = new / np.linalg.norm(new), float(new @ middle)
        if moved < NORMAL_TOLERANCE:
            break
    mirrored = points - 2 * np.outer(points @ normal - offset, normal)
    return MirrorPlane(normal, offset, _error(tree.query(mirrored)[0]))  # type: ignore[attr-defined]

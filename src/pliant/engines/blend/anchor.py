"""Anchors: a small rectangle inside a part that has no fixed vertices (Ma et al. 2011, Section 3.4).

1. Choose a point inside a shape of reference, near the centre of mass, or one that the user gave in the base.
2. Connect the four corners of a rectangle there to the vertices around by springs, and to each other by stiff ones.
3. In every other shape fix all other vertices and solve for the corners, with the rest lengths of the reference, scaled
   by how much the surroundings have grown: this gives the rectangle in that shape (the reversed solve).
4. The best rigid motion ``p_s = R p_r + t`` onto it becomes the frame of the part.
5. Between the shapes the frame moves by blended rotation vectors (two shapes: quaternion interpolation) and centres.
   The equilibrium is solved in the anchor's frame, in which the corners are fixed, and transformed back.

As step 4 makes the rectangle rigid, the springs to it are at rest in every shape, and each shape is reproduced exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints
from pliant.core.values import as_array
from pliant.engines.blend.equilibrium import Network, Objective, newton
from pliant.engines.blend.interior import pieces
from pliant.engines.blend.reference import own_frame
from pliant.engines.blend.springs import NO_DIRECTIONS, SPRING_KINDS, Rest, Springs
from pliant.geometry.solidity import FEWEST_FACES, is_solid
from pliant.geometry.spatial import SurfaceTree

CORNERS = 4
CORNER_SPRINGS = 16
"""Vertices that each corner is connected to."""
RIGID_STIFFNESS = 1e3
"""Factor on the constants of the springs between the corners, in the reversed solve."""


@dataclass(frozen=True, eq=False)
class Anchor:
    """A rectangle inside one part of one shape."""

    part: int
    shape: int
    """The number of the shape that it was placed in."""
    corners: Floats
    """(4, 3) there."""

    @property
    def centre(self) -> Floats:
        """(3,) there."""
        return self.corners.mean(axis=0)


def anchor_point(mesh: Mesh) -> tuple[Floats, float]:
    """A point inside a closed mesh and its depth: the centre of mass, or the nearest at half the greatest depth."""
    tree = SurfaceTree(mesh)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    for cells in (12, 24, 48):
        count = np.maximum(np.ceil((high - low) / (high - low).max() * cells - 1e-6).astype(int), 2)
        axes = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b, n in zip(low, high, count, strict=True)]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        centre = centre_of_mass(mesh)
        nodes = np.concatenate([centre[None], nodes])
        inside = nodes[np.abs(tree.winding(nodes)) > 0.5]
        if len(inside) >= 8:
            depth = tree.closest(inside).distance
            away = np.linalg.norm(inside - centre, axis=1) / mesh.diagonal
            # Rounding must not choose between equivalent points, as in a symmetric shape: take the first.
            best = int(np.argmin(np.where(depth >= (0.5 - 1e-6) * depth.max(), away.round(6), np.inf)))
            return inside[best], float(depth[best])
    raise InputError("no point for an anchor was found inside the shape; give one, or use pins", argument="anchor")


def centre_of_mass(mesh: Mesh) -> Floats:
    """(3,) of the enclosed volume; the mean of the points if there is none."""
    middle = mesh.points.mean(axis=0)
    a, b, c = (mesh.points[mesh.triangles[:, k]] - middle for k in range(3))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    if abs(volume.sum()) < 1e-9 * mesh.diagonal**3:
        return middle
    return middle + (volume[:, None] * (a + b + c)).sum(axis=0) / (4 * volume.sum())


def make_anchors(mesh: Mesh, points: Floats, fixed: NDArray[np.bool_], anchor: Any, reference: int = 0) -> list[Anchor]:
    """An anchor in every solid part without fixed vertices ("auto"), one at a given point of the base, or none.

    points: (s, n, 3) the shapes of the mesh; the first kind is placed in the one of number `reference`.
    """
    point = None
    if isinstance(anchor, str) or anchor is None:
        if anchor not in ("auto", "none", None):
            raise InputError(f'anchor is "{anchor}"; expected "auto", "none" or a point (x, y, z)', argument="anchor")
        if anchor != "auto":
            return []
    else:
        point = as_array(anchor, "coordinates of the anchor", np.float64)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise InputError(f'anchor is {anchor!r}; expected "auto", "none" or a point (x, y, z)', argument="anchor")
    free = np.ones(mesh.parts.max() + 1, dtype=bool)
    free[mesh.parts[fixed]] = False
    if point is not None:
        return [_anchor_at(mesh, points, point, free)]
    faces = np.bincount(mesh.parts[mesh.triangles[:, 0]], minlength=len(free))
    found = pieces(mesh, np.flatnonzero(free & (faces >= FEWEST_FACES)))
    anchors = []
    for part, members, piece in found:
        centre, axes = own_frame(points[:, members], reference)
        inside = piece.with_points((points[reference, members] - centre) @ axes)
        if is_solid(inside):
            point, depth = anchor_point(inside)
            corners = _rectangle(point, depth * _shrinking(points[:, members], reference), inside.diagonal)
            anchors.append(Anchor(part, reference, corners @ axes.T + centre))
    return anchors


def _anchor_at(mesh: Mesh, points: Floats, point: Floats, free: NDArray[np.bool_]) -> Anchor:
    """An anchor at a point (3,) of the base; free: (parts,) those without fixed vertices."""
    part = int(mesh.parts[np.argmin(np.linalg.norm(mesh.points - point, axis=1))])
    if not free[part]:
        raise InputError(
            "the part of the mesh at the anchor has fixed vertices (pins or static ones): leave the anchor out",
            argument="anchor",
        )
    ((_, members, piece),) = pieces(mesh, np.array([part]))
    low, high = piece.points.min(axis=0), piece.points.max(axis=0)
    outside = ((point < low) | (point > high)).any()
    if outside or (is_solid(piece) and abs(SurfaceTree(piece).winding(point[None])[0]) < 0.5):
        raise InputError(
            f"the anchor {tuple(point.tolist())} is outside the base shape, which reaches from "
            f"{tuple(np.round(low, 4).tolist())} to {tuple(np.round(high, 4).tolist())}; give a point inside it",
            argument="anchor",
        )
    _, axes = own_frame(points[:, members], 0)
    depth = float(SurfaceTree(piece).closest(point[None]).distance[0])
    depth *= _shrinking(points[:, members], 0)
    return Anchor(part, 0, _rectangle(np.zeros(3), depth, piece.diagonal) @ axes.T + point)


def _shrinking(points: Floats, reference: int) -> float:
    """The size of the smallest of shapes (s, n, 3) over that of the reference: an anchor does not shrink with them."""
    away = np.linalg.norm(points - points.mean(axis=1, keepdims=True), axis=2).max(axis=1)
    return float(away.min() / max(float(away[reference]), 1e-300))


def _rectangle(point: Floats, depth: float, diagonal: float) -> Floats:
    """(4, 3) the corners of an anchor in a part of that diagonal, at a point in that depth."""
    u, v = np.eye(3)[:2] * max(0.5 * depth, 1e-3 * diagonal)
    return np.stack([point + u, point + v, point - u, point - v])


def anchor_springs(anchor: Anchor, points: Floats, members: Ints, first: int) -> Ints:
    """(q, 2) the springs from the corners, numbered from `first`, to the nearest of the `members` among the points."""
    from scipy.spatial import cKDTree

    count = min(CORNER_SPRINGS, len(members))
    distance, near = cKDTree(points[members]).query(anchor.corners, k=min(2 * count, len(members)))
    distance, near = distance.reshape(CORNERS, -1), near.reshape(CORNERS, -1)
    # Rounding must not choose between vertices that are equally near, as in a symmetric shape: take the first.
    order = np.lexsort((near, (distance / distance.max()).round(6)), axis=1)[:, :count]
    near = np.take_along_axis(near, order, axis=1)
    return np.stack([members[near.reshape(-1)], np.repeat(first + np.arange(CORNERS), count)], axis=1)


def between_corners(first: int) -> Ints:
    """(6, 2) the springs between the corners, numbered from `first`."""
    return np.array([(first + a, first + b) for a in range(CORNERS) for b in range(a + 1, CORNERS)])


def rigid_motion(anchor: Anchor, reference: Floats, shape: Floats, joined: Ints) -> tuple[Floats, Floats]:
    """Steps 3 and 4: the rotation (a quaternion) of the rectangle to a shape, and its centre there.

    reference, shape: (n, 3) all vertices without the corners. joined: the `anchor_springs`, first corner number n.
    """
    if np.array_equal(reference, shape):
        return rotations.IDENTITY, anchor.centre
    around, local = np.unique(joined[:, 0], return_inverse=True)
    count = len(around)
    edges = np.concatenate([np.stack([local, joined[:, 1] - len(shape) + count], axis=1), between_corners(count)])
    at_rest = np.concatenate([reference[around], anchor.corners])
    rest = np.linalg.norm(at_rest[edges[:, 0]] - at_rest[edges[:, 1]], axis=1)
    rigid = np.arange(len(edges)) >= len(joined)
    k = np.where(rigid, RIGID_STIFFNESS, 1.0) / np.maximum(rest, 1e-3 * rest.mean())
    middle, mean = reference[around].mean(axis=0), shape[around].mean(axis=0)
    # Springs that are all too long would push the corners anywhere.
    growth = float(np.linalg.norm(shape[around] - mean) / max(np.linalg.norm(reference[around] - middle), 1e-300))
    rest *= growth
    springs = Springs(edges, np.full(len(edges), SPRING_KINDS.index("anchor"), np.int8), rest[None], k)
    network = Network(springs, count + CORNERS, np.arange(count + CORNERS) < count)
    R, _ = rotations.match_rigid(reference[around], shape[around])
    start = np.concatenate([shape[around], growth * (anchor.corners - middle) @ R.T + mean])
    objective = Objective(network, Rest(rest, NO_DIRECTIONS))
    corners = newton(objective, start, tolerance=1e-12 * float(rest.mean())).x[count:]
    R, _ = rotations.match_rigid(anchor.corners, corners)
    return rotations.quaternion(R), corners.mean(axis=0)

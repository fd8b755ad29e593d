"""Anchors: a small rectangle inside a part that has no fixed vertices (Ma et al. 2011, Section 3.4).

1. Choose a point inside the base, near the centre of mass or given by the user (`anchor_point`).
2. Connect the four corners of a rectangle there to the vertices around by springs, and to each other by stiff ones.
3. In every other shape fix all other vertices and solve for the corners, with the rest lengths of the base: this gives
   the rectangle in that shape (the reversed solve).
4. The best rigid motion ``p_s = R p_0 + t`` onto it becomes the frame of the part.
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
from pliant.engines.blend.equilibrium import Network, newton
from pliant.engines.blend.interior import pieces
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
    """A rectangle inside one part of the base."""

    part: int
    corners: Floats
    """(4, 3) in the base."""

    @property
    def centre(self) -> Floats:
        """(3,) in the base."""
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


def make_anchors(mesh: Mesh, fixed: NDArray[np.bool_], anchor: Any) -> list[Anchor]:
    """An anchor in every solid part without fixed vertices ("auto"), one at a given point, or none."""
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
        part = int(mesh.parts[np.argmin(np.linalg.norm(mesh.points - point, axis=1))])
        if not free[part]:
            raise InputError(
                "the part of the mesh at the anchor has fixed vertices (pins or static ones): leave the anchor out",
                argument="anchor",
            )
        ((_, _, piece),) = pieces(mesh, np.array([part]))
        low, high = piece.points.min(axis=0), piece.points.max(axis=0)
        outside = ((point < low) | (point > high)).any()
        if outside or (is_solid(piece) and abs(SurfaceTree(piece).winding(point[None])[0]) < 0.5):
            raise InputError(
                f"the anchor {tuple(point.tolist())} is outside the base shape, which reaches from "
                f"{tuple(np.round(low, 4).tolist())} to {tuple(np.round(high, 4).tolist())}; give a point inside it",
                argument="anchor",
            )
        return [_make_anchor(piece, part, point)]
    faces = np.bincount(mesh.parts[mesh.triangles[:, 0]], minlength=len(free))
    found = pieces(mesh, np.flatnonzero(free & (faces >= FEWEST_FACES)))
    return [_make_anchor(piece, part, None) for part, _, piece in found if is_solid(piece)]


def _make_anchor(mesh: Mesh, part: int, point: Floats | None) -> Anchor:
    """An anchor in one connected part (given as a mesh of its own): at `point`, or near its centre of mass."""
    if point is None:
        point, depth = anchor_point(mesh)
    else:
        depth = float(SurfaceTree(mesh).closest(point[None]).distance[0])
    _, axes = np.linalg.eigh(np.cov((mesh.points - mesh.points.mean(axis=0)).T))
    size = max(0.5 * depth, 1e-3 * mesh.diagonal)
    u, v = axes[:, 2] * size, axes[:, 1] * size
    return Anchor(part, np.stack([point + u, point + v, point - u, point - v]))


def anchor_springs(anchor: Anchor, points: Floats, members: Ints, first: int) -> Ints:
    """(q, 2) the springs from the corners, numbered from `first`, to the nearest of the `members` among the points."""
    from scipy.spatial import cKDTree

    count = min(CORNER_SPRINGS, len(members))
    _, near = cKDTree(points[members]).query(anchor.corners, k=count)
    return np.stack([members[near.reshape(-1)], np.repeat(first + np.arange(CORNERS), count)], axis=1)


def between_corners(first: int) -> Ints:
    """(6, 2) the springs between the corners, numbered from `first`."""
    return np.array([(first + a, first + b) for a in range(CORNERS) for b in range(a + 1, CORNERS)])


def rigid_motion(anchor: Anchor, base: Floats, shape: Floats, joined: Ints) -> tuple[Floats, Floats]:
    """Steps 3 and 4: the rotation vector and the centre of the rectangle in a shape.

    base, shape: (n, 3) all vertices without the corners. joined: the `anchor_springs`, first corner number n.
    """
    around, local = np.unique(joined[:, 0], return_inverse=True)
    count = len(around)
    edges = np.concatenate([np.stack([local, joined[:, 1] - len(base) + count], axis=1), between_corners(count)])
    at_base = np.concatenate([base[around], anchor.corners])
    rest = np.linalg.norm(at_base[edges[:, 0]] - at_base[edges[:, 1]], axis=1)
    rigid = np.arange(len(edges)) >= len(joined)
    k = np.where(rigid, RIGID_STIFFNESS, 1.0) / np.maximum(rest, 1e-3 * rest.mean())
    springs = Springs(edges, np.full(len(edges), SPRING_KINDS.index("anchor"), np.int8), rest[None], k)
    network = Network(springs, count + CORNERS, np.arange(count + CORNERS) < count)
    R, t = rotations.match_rigid(base[around], shape[around])
    start = np.concatenate([shape[around], anchor.corners @ R.T + t])
    scale = float(np.sum(k * rest * rest))
    corners = newton(network, start, Rest(rest, NO_DIRECTIONS), tolerance=1e-16, scale=scale).x[count:]
    R, _ = rotations.match_rigid(anchor.corners, corners)
    return rotations.log(rotations.shortest(rotations.quaternion(R))), corners.mean(axis=0)

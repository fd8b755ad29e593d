"""Joints by clicks: midway between the first two intersections of a ray with the surface (Capell et al. 2002).

The ray starts at the camera and passes through the mouse. Of the segments between consecutive intersections the first
counts whose middle is inside by winding number, so a camera inside the shape works too. A ray that misses, that only
grazes the surface, or that meets an open surface once gives none. `Skeleton.from_positions` makes a skeleton of such
points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, TetMesh
from pliant.core.topology import Floats
from pliant.core.validation import as_points
from pliant.core.values import as_array
from pliant.geometry.spatial import SurfaceTree, tree_of

GRAZING_LENGTH = 1e-6
"""Longest segment that counts as grazing, over the diagonal."""
MOST_HITS = 64
"""Most intersections of a ray."""


@takes_meshes("mesh")
def click_joint(mesh: Mesh | TetMesh | SurfaceTree, origin: ArrayLike, direction: ArrayLike) -> Floats | None:
    """The position (3,) of a joint under a click: midway through what the ray meets first; None if it meets nothing.

    mesh: for many clicks on one shape, give its `SurfaceTree`.
    origin, direction: (3,) of the ray; the direction may have any length but zero.
    """
    if not isinstance(mesh, (Mesh, TetMesh, SurfaceTree)):
        raise InputError(f"got a {type(mesh).__name__}; expected a Mesh, TetMesh or SurfaceTree to click on")
    start, along = _vector(origin, "origin"), _vector(direction, "direction")
    length = float(np.linalg.norm(along / max(float(np.abs(along).max()), 1e-300)))
    if length == 0:
        raise InputError("the direction is 0, 0, 0; expected a vector along the ray")
    tree = tree_of(mesh)
    if not len(tree.triangles) or not tree.diagonal > 0:
        return None
    hits = _hits(tree, start, along / np.linalg.norm(along))
    if len(hits) < 2:
        return None
    middle = (hits[:-1] + hits[1:]) / 2
    through = np.linalg.norm(np.diff(hits, axis=0), axis=1) > GRAZING_LENGTH * tree.diagonal
    number = tree.winding(middle) * tree.facing
    deep = tree.closest(middle).distance > GRAZING_LENGTH * tree.diagonal
    inside = np.flatnonzero(through & deep & (number > 0.5))
    return middle[inside[0]] if inside.size else None


def _vector(values: ArrayLike, what: str) -> Floats:
    array = as_array(values, what, np.float64)
    if array.shape != (3,):
        raise InputError(f"the {what} has shape {array.shape}; expected (3,)")
    return as_points(array[None], f"the {what}")[0]


def _hits(tree: SurfaceTree, start: Floats, along: Floats) -> Floats:
    """(h, 3) where a ray meets the surface, one after the other, from the front or the back."""
    low, high = tree.points.min(axis=0), tree.points.max(axis=0)
    size, centre = tree.diagonal, (low + high) / 2
    nearest = float((centre - start) @ along)
    if nearest + size < 0:
        return np.zeros((0, 3))
    origin = start + max(nearest - size, 0.0) * along
    end = start + (nearest + size) * along
    hits: list[Floats] = []
    for _ in range(MOST_HITS):
        left = float((end - origin) @ along)
        if left <= 0:
            break
        ahead = [tree.first_hit(origin[None], end[None], leaving=side)[0][0] for side in (False, True)]
        if not np.isfinite(min(ahead)):
            break
        hit = origin + min(ahead) * left * along
        hits.append(hit)
        origin = hit + 0.1 * GRAZING_LENGTH * size * along
    return np.reshape(hits, (-1, 3))

"""The springs' rest vectors between the shapes, from the rotations of triangles and of vertices.

Rotated by a vertex's own rotation, its surroundings are blended linearly: across an edge that is flat in one shape and
sharp in the other, the angle halfway is not the mean of both, and the surface creases. Rotated by the triangles'
rotations, which differ across such an edge, it is. So

- a spring along the side of a triangle is the mean of what its triangles make of it,
- a spring between vertices two sides apart is the sum of two such vectors, in the mean over all paths, and
- a spring inside is rotated by the mean of its ends' rotations.

So it is where a surface is filled. In a shell, such as a face, nothing inside keeps still what its shapes do not move:
there the rotations of triangles, which fit together less, would carry a lip's motion to the ears, and all springs are
rotated by their ends' rotations.

Each of these is linear in *pieces*: vectors between two vertices, each blended in a frame, that of a triangle or the
mean of two vertices' (`SpringBody.blended_pieces`). At a shape's own weight every piece is as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pliant.core import rotations
from pliant.core.normals import triangle_normals
from pliant.core.topology import Floats, Ints
from pliant.engines.blend import kernels
from pliant.engines.blend.springs import Springs

NEEDLE_VOLUME = 1e-6
"""Volume of a triangle's edges and normal, over their length cubed, below which it has no rotation of its own."""
SCRAMBLED = 0.3
"""Share of triangles rotated by over 90° against their vertices, from which on the vertices are not the base's."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """What the springs' rest vectors are made of."""

    edges: Ints
    """(p, 2) the vertices that each piece connects."""
    frames: Ints
    """(p, 2) the frames that it rotates with: vertices, followed by triangles."""
    gather: kernels.SparseRows
    """(q, p) from pieces to springs."""


def make_pieces(springs: Springs, triangles: Ints, count: int) -> Pieces:
    """The pieces of springs over `count` vertices, the edges of whose surface are in triangles (t, 3)."""
    edges = springs.edges
    half, triangle = _sides_of_triangles(triangles, edges, count)
    among = np.bincount(half, minlength=len(edges))
    far = np.flatnonzero(springs.of_kind("bending") & (among == 0))
    shape = len(edges), len(half)
    by_triangle = sp.csr_array((1 / among[half], (half, np.arange(len(half)))), shape=shape)
    found = by_triangle + _paths(edges, among > 0, far, count) @ by_triangle
    alone = np.flatnonzero(np.diff(found.indptr) == 0)
    itself = sp.csr_array((np.ones(len(alone)), (alone, np.arange(len(alone)))), shape=(len(edges), len(alone)))
    gather = sp.hstack([found, itself], format="csr")
    return Pieces(
        np.concatenate([edges[half], edges[alone]]),
        np.concatenate([np.repeat(count + triangle[:, None], 2, axis=1), edges[alone]]),
        (gather.indptr.astype(np.int64), gather.indices.astype(np.int64), gather.data),
    )


def _sides_of_triangles(triangles: Ints, edges: Ints, count: int) -> tuple[Ints, Ints]:
    """The springs along the sides of triangles, and the triangles, wherever there is a spring."""
    codes = edges @ np.array([count, 1])
    order = np.argsort(codes)
    sides = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1) @ np.array([count, 1])
    at = order[np.searchsorted(codes, sides, sorter=order).clip(max=len(codes) - 1)]
    is_spring = codes[at] == sides
    return at[is_spring], np.flatnonzero(is_spring) // 3


def _paths(edges: Ints, is_side: Any, bending: Ints, count: int) -> Any:
    """(q, q) sparse: bending springs as the mean of the paths of two sides of triangles between their ends."""
    known = np.flatnonzero(is_side)
    numbers = sp.csr_array((known + 1, tuple(edges[known].T)), shape=(count, count))
    numbers = (numbers + numbers.T).tocsr()
    numbers.sort_indices()
    linked = (numbers > 0).astype(np.int64)
    (start, end), n = edges[bending].T, len(edges)
    first = numbers[start].multiply(linked[end]).tocoo()
    last = linked[start].multiply(numbers[end]).tocoo()
    rows, middle = first.row, first.col
    share = 1 / np.bincount(rows, minlength=len(bending))[rows]
    signs = np.where(start[rows] < middle, share, -share), np.where(middle < end[rows], share, -share)
    columns = np.concatenate([first.data, last.data]) - 1
    return sp.csr_array((np.concatenate(signs), (np.tile(bending[rows], 2), columns)), shape=(n, n))


def triangle_rotations(points: Floats, rotvecs: Floats, triangles: Ints, unrotated: float) -> Floats:
    """(shapes, t, 3) rotation vectors of the triangles from the base to shapes (shapes, n, 3), near their vertices'.

    The rotation is the polar factor of the deformation gradient; of needles, and of all where they are scrambled, the
    mean of the vertices' rotations.
    Changes of edges below the share `unrotated` count as none.
    """
    found = np.zeros((len(points), len(triangles), 3))
    base, size = _frames(points[0], triangles)
    for s in range(1, len(points)):
        frames, size_here = _frames(points[s], triangles)
        near = found[s] = rotvecs[s][triangles].mean(axis=1)
        changed = np.sum((frames - base) ** 2, axis=(1, 2)) > unrotated**2 * size
        wide = np.minimum(np.linalg.det(base) / size**1.5, np.linalg.det(frames) / size_here**1.5) > NEEDLE_VOLUME
        moved = np.flatnonzero(wide & (changed | near.any(axis=1)))
        R = rotations.polar(frames[moved] @ np.linalg.inv(base[moved]))
        short = rotations.log(rotations.shortest(rotations.quaternion(R)))
        own = kernels.unwrapped_near(short, near[moved])
        unlike = np.linalg.norm(own - near[moved], axis=1) > np.pi / 2
        if unlike.sum() <= SCRAMBLED * len(moved):
            found[s, moved] = own
    return found


def _frames(points: Floats, triangles: Ints) -> tuple[Floats, Floats]:
    """(t, 3, 3) two edges of triangles and a normal of about their length, as columns; and (t,) their square."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    normal = triangle_normals(points, triangles)
    normal /= np.sqrt(np.linalg.norm(normal, axis=1, keepdims=True)).clip(1e-150)
    frames = np.stack([b - a, c - a, normal], axis=2)
    return frames, np.sum(frames**2, axis=(1, 2)).clip(1e-200)

"""Obstacles by their corners, edges and faces: nothing of a body passes through them, however thin or quick they are.

What of a body and of an obstacle's triangles is near, or would meet on the way of both, is found by continuous
collision detection (`pliant.contact.collision_pairs`): a vertex and a triangle, or two edges. Each such pair has a row
that keeps the two apart, in the direction from one closest point to the other. So the body stays on the side where it
is, which a signed distance does not tell inside thin obstacles, and no step leads farther than to just before what it
would meet. An obstacle moves on while the body gives way: a row is told how far the obstacle's points will go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.contact.collision_pairs import CollisionSurface, NearPairs, clearances
from pliant.contact.constraints import RowMaker, SurfaceSamples
from pliant.contact.forces import Rows
from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.contact.solids import Box
from pliant.core.topology import Floats, Ints

if TYPE_CHECKING:
    from pliant.contact.obstacles import Obstacle

EDGE_WATCH_DISTANCE, THIN_WATCH_DISTANCE = 2.0, 3.0
"""Distance within which pairs have rows, over the distance kept: of edges and corners, where signed distances keep
vertices away; of all, where pairs alone do."""
EDGE_SHARE = 0.3
"""Of the distance kept, what edges and corners keep where signed distances keep vertices away."""


class SweptObstacle:
    """The triangles of an obstacle through a clip. alone: whether they keep a body off it without signed distances."""

    def __init__(self, body: CollisionSurface, obstacle: Obstacle, kept: float, alone: bool) -> None:
        self.body, self.alone, self._first = body, alone, obstacle
        near = (THIN_WATCH_DISTANCE if alone else EDGE_WATCH_DISTANCE) * kept
        creases = not alone and not isinstance(obstacle, MeshObstacle)  # which may get others as it deforms
        self.surface = CollisionSurface(obstacle.surface.triangles, obstacle.surface.points, near, creases=creases)
        self.kept = kept if alone else EDGE_SHARE * kept
        self.flat = isinstance(obstacle, (Box, MeshObstacle))
        """Whether its triangles are all that there is of it; round ones are a little larger."""

    def points(self, obstacle: Obstacle) -> Floats:
        """(q, 3) the corners of its triangles when it is elsewhere."""
        if isinstance(obstacle, MeshObstacle):
            return np.ascontiguousarray(obstacle.surface.points)
        return np.ascontiguousarray(self._first.carried(self._first.surface.points, obstacle))


class SweptContacts:
    """What a body meets of an obstacle in one frame; `points` (q, 3) are where the obstacle is."""

    def __init__(self, obstacle: SweptObstacle, points: Floats) -> None:
        self.obstacle, self.points = obstacle, points
        self._count = len(obstacle.body.near)
        self._pairs, self._keys = np.zeros((0, 5), np.int64), np.zeros(0, np.int64)
        self._seen: NearPairs | None = None

    def __len__(self) -> int:
        return len(self._pairs)

    def meet(self, before: Floats, after: Floats, points: Floats | None = None) -> tuple[float, bool]:
        """How much of the path between shapes is free, as the obstacle goes to `points`; whether what meets is new."""
        body, n = self.obstacle.body, self._count
        to = self.points if points is None else points
        paths = np.ascontiguousarray(before[:n]), np.ascontiguousarray(after[:n])
        self._seen = found = body.sweep(*paths, other=(self.obstacle.surface, self.points, to))
        return found.first, self._add(found, found.impact <= 1)

    def refresh(self) -> None:
        """Give rows to what was near."""
        if self._seen is not None:
            near = np.ones(len(self._seen), bool)
            if not self.obstacle.alone:
                near = (self._seen.pairs[:, 4] == 0) | (self._seen.pairs[:, 0] >= self._count)
            self._add(self._seen, near)

    def _add(self, found: NearPairs, which: NDArray[np.bool_]) -> bool:
        # A vertex of the body and one of the obstacle may have the same number.
        keys = 4 * found.keys + 2 * (found.pairs[:, 0] >= self._count)
        which = which & ~np.isin(keys, self._keys)
        if which.any():
            self._pairs = np.concatenate([self._pairs, found.pairs[which]])
            self._keys = np.concatenate([self._keys, keys[which]])
        return bool(which.any())

    def rows(self, rho: Floats, first: int = 0, to: Floats | None = None) -> RowMaker:
        """Rows of the pairs from the `first` on, rho: (n,); to: (q, 3) where the obstacle will be after the step."""
        return swept_rows(self._pairs[first:], self._count, self.obstacle.kept, rho, self.points, to)


def swept_rows(pairs: Ints, count: int, kept: float, rho: Floats, points: Floats, to: Floats | None = None) -> RowMaker:
    """Keep pairs (m, 5) of a body's `count` vertices and an obstacle's points (q, 3), numbered after them, apart."""
    on_body = pairs[:, :4] < count
    sign = np.where(on_body[:, 0], 1.0, -1.0)
    vertices = np.where(on_body, pairs[:, :4], np.where(on_body[:, :1], pairs[:, :1], pairs[:, 3:4]))
    motion = None if to is None else np.concatenate([np.zeros((count, 3)), to - points])[pairs[:, :4]]
    stiffness = rho[vertices[:, 0]]

    def rows(x: Floats) -> Rows:
        gap, normal, weights = clearances(np.concatenate([x[:count], points]), pairs)
        violation = kept - gap
        if motion is not None:
            violation -= np.einsum("mk,mkj,mj->m", weights, motion, normal)
        samples = SurfaceSamples(vertices, sign[:, None] * np.where(on_body, weights, 0.0))
        return Rows.pushing(samples.vertices, samples.weights, sign[:, None] * normal, violation, stiffness)

    return rows

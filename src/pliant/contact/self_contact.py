"""Self-contact: what of a body faces itself or all but touches, as rows; and how far it can move freely.

Nothing may pass through itself, but for what crosses already: there parts may pass through each other until they are
free, and from the frame after that they must not cross again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.contact.ccd import CollisionFreePath
from pliant.contact.constraints import RowMaker, clearance_rows, edge_rows, pair_rows
from pliant.contact.proximity import EdgePairs, Pairs, SelfProximity
from pliant.contact.proximity_kernels import clearances
from pliant.core.normals import vertex_normals
from pliant.core.topology import Floats, Ints
from pliant.geometry.spatial import SurfaceTree

SELF_WATCH_DISTANCE = 0.012
"""Distance, over the diagonal, within which the body is watched for coming near to itself."""
BURIED_HEIGHT = 1e-4
"""Height over the surface, over the diagonal, at which it is asked whether a vertex is inside another part."""


class SelfContact:
    """A body's contact with itself through a clip.

    triangles: (t, 3) of its surface, whose vertices come first. thickness: distance kept.
    """

    def __init__(self, triangles: Ints, rest: Floats, diagonal: float, thickness: float) -> None:
        self._triangles, self._count = triangles, len(rest)
        self._diagonal, self._thickness = diagonal, thickness
        self._proximity = SelfProximity(triangles, rest, rings=1)
        self._path = CollisionFreePath(triangles, rest)
        self._tree: SurfaceTree | None = None
        self.tangled: NDArray[np.bool_] | None = None
        """(surface,) vertices where it has crossed itself since the first frame."""
        self.blocked = False
        """Whether the body is in its own way, in this frame or at the end of the one before."""
        self._near: tuple[Floats, Ints] | None = None  # the shape for which it was found, and what is close in it
        self._pairs: tuple[Floats, Pairs, EdgePairs] | None = None  # the shape for which they were found, and they

    def go_on(self, blocked: bool, tangled: NDArray[np.bool_] | None) -> None:
        """Forget all but this of the frames before."""
        self.blocked, self.tangled, self._near, self._pairs = blocked, tangled, None, None

    def begin(self, x: Floats) -> None:
        """A frame begins, at the shape of the one before."""
        surface, buried = x[: self._count], np.zeros(self._count, dtype=bool)
        crossing = self._proximity.crossings(surface)
        if len(crossing):
            if self._tree is None:
                self._tree = SurfaceTree(self._proximity.rest, self._triangles)
            self._tree = self._tree.moved(surface)
            above = surface + BURIED_HEIGHT * self._diagonal * vertex_normals(surface, self._triangles)
            buried = np.asarray(self._tree.winding(above) > 0.5)
        self._path.let_pass(crossing, buried)
        loose = ~self._path.kept_apart_alone
        if self.tangled is None:
            self.tangled = loose
        else:  # what of it has not come free, and hangs together with what was tangled before
            names = self._path.patches
            self.tangled = loose & np.isin(names, names[self.tangled & loose])

    def free_share(self, before: Floats, after: Floats) -> float:
        """How much of the path from one shape to another does not lead the body through itself."""
        share = self._path.free_share(before[: self._count], after[: self._count])
        self.blocked |= share < 1
        return share

    def crossings(self, x: Floats) -> int:
        """How many pairs of the body's own triangles cross where none did in the first frame, or all had come free."""
        crossing = self._proximity.crossings(x[: self._count])
        corners = self._triangles[crossing].reshape(len(crossing), 6)
        tangled = np.zeros(self._count, dtype=bool) if self.tangled is None else self.tangled
        return int((~tangled[corners].all(axis=1)).sum())

    def face(self, x: Floats) -> bool:
        """Find what of the body faces itself, and what is close, anew if it has moved far enough; whether it has."""
        surface, new = x[: self._count], False
        reach = self._thickness + SELF_WATCH_DISTANCE * self._diagonal
        if self._pairs is None or _moved(surface, self._pairs[0]) > 0.35 * reach:
            self._pairs, new = (surface, *self._facing(surface, reach)), True
        # This is only needed where the body has been in its own way, and takes long for fine meshes.
        if self.blocked and (self._near is None or _moved(surface, self._near[0]) > 0.3 * self._thickness):
            self._near, new = (surface, self._path.near(surface, 2 * self._thickness)), True
        return new

    def rows(self, rho: Floats) -> list[RowMaker]:
        """Rows of what faces itself on the way, and of all that is all but touching. rho: (n,)."""
        if self._pairs is None:
            return []
        _, pairs, edges = self._pairs
        rest, most = self._proximity.rest, self._thickness
        kept, edges_kept = (np.minimum(most, 0.5 * self._proximity.rest_gap(some)) for some in (pairs, edges))
        makers = [
            pair_rows(self._proximity, pairs, self._triangles, kept, rho[pairs.vertex]),
            edge_rows(self._proximity, edges, edges_kept, rho[edges.first[:, 0]]),
        ]
        if self._near is not None and len(self._near[1]):
            close = self._near[1]
            apart = np.minimum(most, 0.5 * clearances(rest, close)[0])
            makers.append(clearance_rows(close, apart, rho[close[:, 0]]))
        return makers

    def _facing(self, surface: Floats, reach: float) -> tuple[Pairs, EdgePairs]:
        """What faces itself nearer than `reach`, but for what may pass through itself."""
        pairs = self._proximity.find(surface, within=reach, most=1, facing=0.0)
        edges = self._proximity.find_edges(surface, within=reach, most=1, facing=0.0)
        apart = self._path.kept_apart(np.column_stack([pairs.vertex, self._triangles[pairs.triangle]]))
        both = self._path.kept_apart(np.column_stack([edges.first, edges.second]))
        return (
            Pairs(pairs.vertex[apart], pairs.triangle[apart]),
            EdgePairs(edges.first[both], edges.second[both], edges.sign[both]),
        )


def _moved(points: Floats, before: Floats) -> float:
    """How far, along an axis, the point that moved farthest has moved."""
    return float(np.abs(points - before).max(initial=0.0))

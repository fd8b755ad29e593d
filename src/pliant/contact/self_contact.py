"""Self-contact: what of a body all but touches or meets itself on its way, as rows; and how far it can move freely.

Nothing may pass through itself, but for what crosses where that is allowed (`pliant.contact.collision_pairs`) and for
what crosses already in a first frame that nothing leads to: there parts may pass through each other until they are
free, and from the frame after that they must not cross again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.contact.collision_pairs import CollisionSurface, NearPairs, clearances
from pliant.contact.constraints import RowMaker, clearance_rows
from pliant.core.normals import vertex_normals
from pliant.core.topology import Floats, Ints, connected_parts
from pliant.geometry.spatial import SurfaceTree

WATCHED_DISTANCE = 2.0
"""Distance within which the body is watched for coming near to itself, over the distance kept."""
BURIED_HEIGHT = 1e-4
"""Height over the surface, over the diagonal, at which it is asked whether a vertex is inside another part."""
NO_PAIRS = np.zeros((0, 5), np.int64)
NO_KEY = np.array([np.iinfo(np.int64).max])
"""Behind all keys, which are sorted."""


class SelfContact:
    """A body's contact with itself through a clip.

    triangles: (t, 3) of its surface, whose vertices come first. thickness: distance kept. as_at_rest: whether it may
    cross itself wherever it does at rest.
    """

    def __init__(
        self, triangles: Ints, rest: Floats, diagonal: float, thickness: float, *, as_at_rest: bool = False
    ) -> None:
        self._rest, self._diagonal, self._thickness = np.ascontiguousarray(rest), diagonal, thickness
        self.surface = CollisionSurface(triangles, self._rest, WATCHED_DISTANCE * thickness)
        if as_at_rest:
            self.surface.let_pass(self._rest)
        self.tangled: NDArray[np.bool_] | None = None
        """(surface,) vertices where it has crossed itself since the first frame."""
        self._forget()

    def _forget(self) -> None:
        self._pairs, self._kept, self._keys = NO_PAIRS, np.zeros(0), NO_KEY
        self._seen: NearPairs | None = None

    def begin(self, x: Floats, tangled: NDArray[np.bool_] | None) -> None:
        """A frame begins, at the shape of the one before, with what was tangled there; None: nothing led to there."""
        surface, count = np.ascontiguousarray(x[: len(self._rest)]), len(self._rest)
        self._forget()
        self.surface.patches, self.tangled = np.full(count, -1), np.zeros(count, dtype=bool)
        crossing = NO_PAIRS if tangled is not None and not tangled.any() else self._unwanted(surface)
        if not len(crossing):
            return
        patches = self._patches(surface, crossing)
        loose = np.asarray(np.bincount(patches)[patches] > 1)
        # What has not come free, and hangs together with what was tangled before.
        self.tangled = loose if tangled is None else loose & np.isin(patches, patches[tangled & loose])
        self.surface.patches = np.where(loose, patches, -1)

    def meet(self, before: Floats, after: Floats) -> tuple[float, bool]:
        """How much of the path from one shape to another is free; and whether what meets there is new.

        What meets has rows from now on; what is near at the first shape, after `refresh`.
        """
        count = len(self._rest)
        found = self.surface.sweep(np.ascontiguousarray(before[:count]), np.ascontiguousarray(after[:count]))
        self._seen = found
        return found.first, self._add(found, found.impact <= 1)

    def refresh(self) -> None:
        """Give rows to what was near."""
        if self._seen is not None:
            self._add(self._seen, np.ones(len(self._seen), dtype=bool))
            self._seen = None

    def _add(self, found: NearPairs, which: NDArray[np.bool_]) -> bool:
        """Give some pairs rows; whether there were none for some of them."""
        keys = found.keys
        which = which & (self._keys[np.searchsorted(self._keys[:-1], keys)] != keys)
        if which.any():
            new = found.pairs[which]
            near = self.surface.near[new[:, :4]].min(axis=1) / WATCHED_DISTANCE
            kept = np.minimum(near, 0.5 * clearances(self._rest, new)[0])
            self._keys = np.sort(np.concatenate([self._keys, keys[which]]))
            self._pairs, self._kept = np.concatenate([self._pairs, new]), np.concatenate([self._kept, kept])
        return bool(which.any())

    def __len__(self) -> int:
        return len(self._pairs)

    def rows(self, rho: Floats, first: int = 0) -> RowMaker:
        """Rows of what is near or met, from the `first` pair on. rho: (n,)."""
        pairs = self._pairs[first:]
        return clearance_rows(pairs, self._kept[first:], rho[pairs[:, 0]])

    def crossings(self, x: Floats) -> int:
        """How many pairs of the body's own triangles cross where they must not."""
        crossing = self._unwanted(np.ascontiguousarray(x[: len(self._rest)]))
        if self.tangled is None or not len(crossing):
            return len(crossing)
        return int((~self.tangled[self._corners(crossing)].all(axis=1)).sum())

    def _unwanted(self, surface: Floats) -> Ints:
        crossing = self.surface.crossings(surface)
        return crossing[~self.surface.is_allowed(crossing)]

    def _corners(self, crossing: Ints) -> Ints:
        return self.surface.triangles[crossing].reshape(len(crossing), 6)

    def _patches(self, surface: Floats, crossing: Ints) -> Ints:
        """(n,) a number for each vertex, the same for those joined by crossing or buried triangles and neighbours."""
        triangles = self.surface.triangles
        above = surface + BURIED_HEIGHT * self._diagonal * vertex_normals(surface, triangles)
        loose = np.asarray(SurfaceTree(surface, triangles).winding(above) > 0.5)
        corners = self._corners(crossing)
        loose[corners] = True
        around = triangles[loose[triangles].any(axis=1)]
        links = [np.stack([np.repeat(some[:, :1], some.shape[1], axis=1), some], axis=2) for some in (corners, around)]
        return connected_parts(len(surface), np.concatenate([some.reshape(-1, 2) for some in links]))

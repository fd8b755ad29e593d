"""What of a surface is near itself, and how far it can move before it passes through: by the IPC Toolkit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from pliant.core.errors import MissingExtraError
from pliant.core.topology import Floats, Ints

STEP_SHARE = 0.9
"""Of the path to the first touch that a step may go."""


class CollisionFreePath:
    """A surface prepared for asking how far it can move. triangles: (t, 3). rest: (n, 3)."""

    def __init__(self, triangles: Ints, rest: Floats) -> None:
        ipctk = _toolkit()
        self._triangles = triangles
        self._loose: Ints | None = None
        faces = np.asfortranarray(triangles, dtype=np.int32)
        self._ccd: Any = ipctk.AdditiveCCD()
        self._find: Any = ipctk.compute_collision_free_stepsize
        self._collisions: Any = ipctk.NormalCollisions
        self._mesh: Any = ipctk.CollisionMesh(np.asfortranarray(rest), ipctk.edges(faces), faces)
        self._filter: Any = ipctk.make_vertex_patches_filter

    def let_pass(self, crossing: Ints, buried: NDArray[np.bool_]) -> None:
        """Let pass through each other what hangs together by pairs of triangles (k, 2) that cross already.

        buried: (n,) vertices that are inside another part of the body, and have to come out. What has come free of
        itself must not cross again after the next call.
        """
        if len(crossing) or self._loose is not None:
            count = self._mesh.num_vertices
            patches = _patches(self._triangles, crossing, buried) if len(crossing) else np.arange(count)
            self._mesh.can_collide = self._filter(patches.astype(np.int32))
            self._loose = patches if len(crossing) else None

    @property
    def patches(self) -> Ints:
        """(n,) a number for each vertex, the same for those that may pass through each other."""
        return np.arange(self._mesh.num_vertices) if self._loose is None else self._loose

    @property
    def kept_apart_alone(self) -> NDArray[np.bool_]:
        """(n,) vertices that may pass through nothing."""
        patches = self.patches
        return np.asarray(np.bincount(patches)[patches] == 1)

    def kept_apart(self, vertices: Ints) -> NDArray[np.bool_]:
        """(m,) whether not all the vertices (m, k) are in one patch that may pass through itself."""
        if self._loose is None:
            return np.ones(len(vertices), dtype=bool)
        patches = self._loose[vertices]
        return np.asarray((patches != patches[:, :1]).any(axis=1))

    def free_share(self, before: Floats, after: Floats) -> float:
        """How much of the straight path from one shape (n, 3) to another is free, at most 1."""
        free = self._find(self._mesh, np.asfortranarray(before), np.asfortranarray(after), narrow_phase_ccd=self._ccd)
        return 1.0 if free >= 1 else STEP_SHARE * float(free)

    def near(self, points: Floats, radius: float) -> Ints:
        """(m, 5) what is nearer to itself than `radius`: four vertices, and 1 if they are a vertex and a triangle.

        Else they are two edges, one vertex twice standing for an edge. Everything counts but what shares a vertex.
        """
        found = self._collisions()
        found.build(self._mesh, np.asfortranarray(points), radius)
        edges, faces = self._mesh.edges, self._mesh.faces
        rows = [(c.vertex_id, *faces[c.face_id], 1) for c in found.fv_collisions]
        rows += [(*edges[c.edge0_id], *edges[c.edge1_id], 0) for c in found.ee_collisions]
        rows += [(c.vertex_id, c.vertex_id, *edges[c.edge_id], 0) for c in found.ev_collisions]
        rows += [(c.vertex0_id, c.vertex0_id, c.vertex1_id, c.vertex1_id, 0) for c in found.vv_collisions]
        return np.array(sorted(rows), dtype=np.int64).reshape(-1, 5)  # threads find them in any order


def _patches(triangles: Ints, crossing: Ints, buried: NDArray[np.bool_]) -> Ints:
    """(n,) a number for each vertex, the same for those joined by crossing or buried triangles and their neighbours."""
    corners = np.concatenate([triangles[crossing[:, 0]], triangles[crossing[:, 1]]], axis=1)
    count, loose = len(buried), buried.copy()
    loose[corners] = True
    around = triangles[loose[triangles].any(axis=1)]
    first = np.concatenate([np.repeat(group[:, 0], group.shape[1]) for group in (corners, around)])
    second = np.concatenate([corners.ravel(), around.ravel()])
    graph = sp.coo_matrix((np.ones(len(first)), (first, second)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1])


def _toolkit() -> Any:
    try:
        import ipctk  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingExtraError("self-contact", "contact") from error
    ipctk.set_logger_level(ipctk.LoggerLevel.error)
    ipctk.set_num_threads(1)  # with more, the first time of impact depends on which thread comes first
    return ipctk

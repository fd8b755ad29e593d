"""What of a surface is near itself, and how far it can move before it passes through: by the IPC Toolkit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from pliant.errors import MissingExtraError
from pliant.topology import Floats, Ints

SHARE = 0.9
"""Of the way to the first touch that a step may go."""


class Passage:
    """A surface prepared for asking how far it can move.

    triangles: (t, 3). rest: (n, 3). crossing: (k, 2) pairs of triangles that cross already; what hangs together by them
    may pass through each other.
    """

    def __init__(self, triangles: Ints, rest: Floats, crossing: Ints) -> None:
        ipctk = _toolkit()
        faces = np.asfortranarray(triangles, dtype=np.int32)
        self._ccd: Any = ipctk.AdditiveCCD()
        self._find: Any = ipctk.compute_collision_free_stepsize
        self._collisions: Any = ipctk.NormalCollisions
        self._mesh: Any = ipctk.CollisionMesh(np.asfortranarray(rest), ipctk.edges(faces), faces)
        if len(crossing):
            patches = _patches(triangles, crossing, len(rest))
            self._mesh.can_collide = ipctk.make_vertex_patches_filter(patches.astype(np.int32))

    def share(self, before: Floats, after: Floats) -> float:
        """How much of the straight way from one shape (n, 3) to another is free, at most 1."""
        free = self._find(self._mesh, np.asfortranarray(before), np.asfortranarray(after), narrow_phase_ccd=self._ccd)
        return 1.0 if free >= 1 else SHARE * float(free)

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
        return np.array(rows, dtype=np.int64).reshape(-1, 5)


def _patches(triangles: Ints, crossing: Ints, count: int) -> Ints:
    """(n,) a number for each vertex, the same for those that crossing triangles join."""
    corners = np.concatenate([triangles[crossing[:, 0]], triangles[crossing[:, 1]]], axis=1)
    first = np.repeat(corners[:, :1], corners.shape[1], axis=1)
    graph = sp.coo_matrix((np.ones(corners.size), (first.ravel(), corners.ravel())), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1])


def _toolkit() -> Any:
    try:
        import ipctk  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingExtraError("self-contact", "contact") from error
    ipctk.set_logger_level(ipctk.LoggerLevel.error)
    return ipctk

"""The mass-spring network of a set of shapes (Ma et al. 2011, Section 3.1 and 3.5).

Every shape is the same network at rest: spring q connects vertices i and j, and its rest length in shape s is their
distance there. Blending weights w give the rest length (Eq. 1 and Section 3.3)

    r_q(w) = Σ_s w_s r_qs .

Structure springs are the edges; bending springs connect vertices at distance 2 (around a hub, a vertex of very high
valence, only some of them); internal springs are the edges of the tetrahedra inside. Their constants are inversely
proportional to the rest length: ``k_q = scale / mean_s r_qs``. Since k does not depend on w, the spring Laplacian

    L = Σ_q k_q (e_i - e_j)(e_i - e_j)ᵀ

is one n×n matrix for every weight, factorised once.

Rest lengths and directions of springs: blended by the weights (`Rest`), or of a free shape under load
(`CorotatedRest`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints, unique_pairs
from pliant.core.values import as_array

SpringKind = Literal["structure", "bending", "internal", "anchor"]
SPRING_KINDS: tuple[SpringKind, ...] = get_args(SpringKind)
SHORTEST_REST_LENGTH = 1e-9
"""Rest length, over the diagonal, below which a spring is left out."""
HUB = 128
"""Largest valence of a vertex whose neighbours are all connected by bending springs."""


@dataclass(frozen=True, eq=False)
class Springs:
    """A network of springs over n vertices."""

    edges: Ints
    """(q, 2) the vertices that each spring connects, the smaller first."""
    kind: NDArray[np.int8]
    """(q,) index into `SPRING_KINDS`."""
    rest: Floats
    """(shapes, q) rest length in each shape."""
    stiffness: Floats
    """(q,) spring constants."""

    def __len__(self) -> int:
        return len(self.edges)

    def of_kind(self, kind: SpringKind) -> NDArray[np.bool_]:
        """(q,) which springs are of that kind."""
        return self.kind == SPRING_KINDS.index(kind)


def distance_two(edges: Ints, count: int) -> Ints:
    """(b, 2) pairs of vertices that share a neighbour but no edge: the bending springs.

    Of a hub's neighbours, whose pairs would be quadratic in its valence, only those of `_across_hub` are included.
    """
    ones = np.ones(len(edges), dtype=np.int32)
    near = sp.coo_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
    near = near + near.T
    is_hub = np.diff(near.indptr) > HUB
    through = near[:, ~is_hub] @ near[~is_hub] if is_hub.any() else near @ near
    far = sp.triu(through, k=1).tocoo()
    pairs = np.stack([far.row, far.col], axis=1).astype(np.int64)
    if is_hub.any():
        across = [_across_hub(near, hub) for hub in np.flatnonzero(is_hub).tolist()]
        pairs = unique_pairs(np.concatenate([pairs, *across]), count)
    return pairs[~is_among(pairs, edges, count)]


def _across_hub(near: Any, hub: int) -> Ints:
    """(b, 2) pairs of a hub's neighbours that are half, a quarter and an eighth of the way around it apart."""
    around = near.indices[near.indptr[hub] : near.indptr[hub + 1]].astype(np.int64)
    around = around[_ring_order(near[around][:, around])]
    strides = {len(around) // part for part in (2, 4, 8)}
    return np.concatenate([np.stack([around, np.roll(around, stride)], axis=1) for stride in sorted(strides)])


def _ring_order(link: Any) -> Ints:
    """(d,) the vertices of a graph (d, d) of rings and paths, ordered so that neighbours follow each other."""
    order: dict[int, None] = {}
    ends_first = np.argsort(np.diff(link.indptr), kind="stable")
    for first in ends_first.tolist():
        ahead = [first]
        while ahead:
            vertex = ahead.pop()
            if vertex not in order:
                order[vertex] = None
                ahead.extend(link.indices[link.indptr[vertex] : link.indptr[vertex + 1]].tolist())
    return np.fromiter(order, np.int64, len(order))


def is_among(pairs: Ints, known: Ints, count: int) -> NDArray[np.bool_]:
    """(p,) which pairs (smaller vertex first) are in `known`."""
    if not len(known):
        return np.zeros(len(pairs), dtype=bool)
    keys, listed = pairs[:, 0] * count + pairs[:, 1], np.sort(known[:, 0] * count + known[:, 1])
    found: NDArray[np.bool_] = listed[np.minimum(np.searchsorted(listed, keys), len(listed) - 1)] == keys
    return found


def make_springs(
    points: Floats,
    groups: Mapping[SpringKind, Ints],
    *,
    stiffness: Mapping[SpringKind, float] | None = None,
    factors: Floats | None = None,
    diagonal: float,
) -> Springs:
    """Springs over shapes (s, n, 3) from pairs of vertices by kind; a pair listed twice keeps its first kind.

    stiffness: a factor for each kind. factors: one for each of the first vertices; a spring takes the mean of its ends.
    Pairs whose vertices coincide in every shape are left out.
    """
    count = points.shape[1]
    edges, kinds = np.zeros((0, 2), np.int64), np.zeros(0, np.int8)
    for kind, pairs in groups.items():
        fresh = pairs[~is_among(pairs, edges, count)] if len(edges) else pairs
        edges = np.concatenate([edges, fresh])
        kinds = np.concatenate([kinds, np.full(len(fresh), SPRING_KINDS.index(kind), np.int8)])
    rest = np.stack([np.linalg.norm(shape[edges[:, 0]] - shape[edges[:, 1]], axis=1) for shape in points])
    mean = rest.mean(axis=0)
    sound = mean > SHORTEST_REST_LENGTH * diagonal
    edges, kinds, rest, mean = edges[sound], kinds[sound], rest[:, sound], mean[sound]
    # Bound the constant of a nearly collapsed spring, which would be stiffer than all others together.
    shortest = 1e-3 * np.median(mean) if len(mean) else 1.0
    scale = _kind_factors(stiffness or {})[kinds]
    if factors is not None:
        scale = scale * np.concatenate([factors, np.ones(count - len(factors))])[edges].mean(axis=1)
    return Springs(edges, kinds, rest, scale / np.maximum(mean, shortest))


def _kind_factors(stiffness: Mapping[SpringKind, float]) -> Floats:
    """(kinds,) the user's factor on the constants of each kind of spring."""
    unknown = sorted(set(stiffness) - set(SPRING_KINDS))
    if unknown:
        raise InputError(
            f'stiffness names "{unknown[0]}"; expected some of {", ".join(SPRING_KINDS)}', argument="stiffness"
        )
    table = as_array([stiffness.get(kind, 1.0) for kind in SPRING_KINDS], "stiffness factors", np.float64)
    return positive_factors(table, "stiffness")


def positive_factors(values: Floats, argument: str) -> Floats:
    """Factors on spring constants, checked."""
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError("stiffness factors must be positive and finite", argument=argument)
    return values


def laplacian(springs: Springs, count: int) -> Any:
    """(n, n) the spring Laplacian L, sparse."""
    i, j = springs.edges.T
    k = springs.stiffness
    off = sp.coo_matrix((np.concatenate([-k, -k]), (np.concatenate([i, j]), np.concatenate([j, i]))), (count, count))
    off = off.tocsr()
    return (off - sp.diags(np.asarray(off.sum(axis=1)).ravel())).tocsr()


@dataclass(frozen=True, eq=False)
class Rest:
    """Rest lengths and directions at given weights: the springs' energy is zero where both are met."""

    lengths: Floats
    """(q,)"""
    directions: Floats
    """(q, 3) unit vectors p; (0, 3) if `direction_stiffness` is 0."""
    direction_stiffness: float = 0.0
    """μ: stiffness against a change of direction, relative to that against a change of length."""


NO_DIRECTIONS = np.zeros((0, 3))


@dataclass(frozen=True, eq=False)
class CorotatedRest:
    """The shape without load as rest state, up to a rotation R_i of each vertex (corotated, as in ARAP).

        E(x) = ½ Σ_q k_q [(l - r)² + ½ μ (|d - R_i v|² + |d - R_j v|²)],    R_i = argmin E

    v are the springs' vectors in the shape without load and r their lengths. Energy and forces vanish there, so the
    deformation goes to zero with the load. As each R_i minimises E, the gradient can treat the R_i as constants.
    """

    vectors: Floats
    """(q, 3)"""
    lengths: Floats
    """(q,)"""
    direction_stiffness: float
    """μ"""
    rotations: Floats
    """(n, 3, 3) the rotations R found last: the warm start for the next ones."""

    @classmethod
    def of(cls, free: Floats, springs: Springs, direction_stiffness: float) -> CorotatedRest:
        """From the shape without load (n, 3)."""
        vectors = free[springs.edges[:, 0]] - free[springs.edges[:, 1]]
        return cls(vectors, np.linalg.norm(vectors, axis=1), direction_stiffness, np.tile(np.eye(3), (len(free), 1, 1)))

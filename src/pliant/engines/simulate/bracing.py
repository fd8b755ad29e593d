"""Flesh made stiff enough to withstand an acceleration, above all slender parts without a bone, such as ears and horns.

Rotations come from the bones. What has none may bend a little, but it is stretched where it should swing far: the same
soft flesh that wobbles on a thigh lets a long ear whip about. So such parts get the stiffness that they need to bend
by less than a given strain ε when they are accelerated by a, as the bone that they hang on is.

The path from each node to the nearest bone through the flesh has a length L. What lies farther out hangs on what is
nearer: masses m and moments m L are handed on from node to node towards the bones, to all neighbours that are nearer,
by how much nearer they are. At a node with the mass M₀ = Σ m and the moment M₁ = Σ m (L_m − L) beyond it, a cross
section of the area A (its own share) and half of the thickness r, the strain of bending and pulling is

    ε = a (4 M₁ / r + M₀) / (A E).

A part is slender if it reaches far from the bones, over r; its reach is L + 3/2 M₂ / M₁ with M₂ = Σ m (L_m − L)² (exact
for a straight rod). Other flesh, such as that on a thigh, stays as soft as it is: strain limits keep it from tearing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.mls import Interpolation
from pliant.engines.simulate.nodes import Nodes, half_thickness
from pliant.engines.simulate.stiffness import incidence, pattern

STRAIN = 0.005
"""ε of slender parts: far below what is to be seen, since parts that are as thin as one node bend more easily than they
should."""
SLENDER = (1.5, 3.0)
"""Reach from the bones over r, up to which a part is not braced, and from which on it is fully."""
LARGEST_FACTOR = 100.0
"""By which stiffness may be raised."""


def checked_brace(brace: ArrayLike, joints: int) -> Floats:
    """(joints,) accelerations, from one for all or one for each."""
    try:
        given = np.asarray(brace, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    if given.shape not in ((), (joints,)) or not (np.isfinite(given).all() and (given >= 0).all()):
        raise InputError(
            f"withstand is {brace!r:.40}; expected a number, 0 or more, or {joints} of them", argument="withstand"
        )
    return np.array(np.broadcast_to(given, (joints,)))


def braced(
    young: Floats,
    functions: Interpolation,
    nodes: Nodes,
    volumes: Floats,
    masses: Floats,
    accelerations: Floats,
) -> Floats:
    """(rows,) the factors by which to raise Young's modulus (rows,) at the quadrature points and springs.

    volumes, masses: (n,) of the nodes. accelerations: (fixed nodes,) in the body's own lengths, per second squared.
    """
    begin, columns = pattern(incidence(functions)[0])
    column = columns.astype(np.int64)
    length, bone = _paths(begin, column, nodes)
    mass, moment, second = _beyond(begin, column, nodes.points, length, masses)
    reach = length + 1.5 * second / np.maximum(moment, 1e-3 * mass * length.max())
    r = half_thickness(nodes)
    area = np.maximum(volumes, 1e-6 * volumes.mean()) ** (2 / 3)
    share = np.clip((reach / r - SLENDER[0]) / (SLENDER[1] - SLENDER[0]), 0, 1)
    needed = share * accelerations[bone] * (4 * moment / r + mass) / (area * STRAIN)
    needed[nodes.free :] = 0
    weight = functions.matrix.copy()
    weight.data = np.abs(weight.data)
    needed = (weight @ needed) / np.asarray(weight.sum(axis=1)).ravel()
    return np.clip(needed / young, 1, LARGEST_FACTOR)


def _paths(begin: Ints, column: Ints, nodes: Nodes) -> tuple[Floats, Ints]:
    """(n,) length of the shortest path from each node to a fixed one, over nodes that share a quadrature point, and
    (n,) which of the fixed ones that is."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    row = np.repeat(np.arange(len(nodes)), np.diff(begin))
    away = np.linalg.norm(nodes.points[row] - nodes.points[column], axis=1)
    graph = csr_matrix((np.maximum(away, 1e-12), column, begin), shape=(len(nodes), len(nodes)))
    fixed = np.arange(nodes.free, len(nodes))
    found, _, source = dijkstra(graph, indices=fixed, min_only=True, return_predecessors=True)
    reached = np.isfinite(found)
    return np.where(reached, found, 0.0), np.where(reached, source - nodes.free, 0)


def _beyond(begin: Ints, column: Ints, points: Floats, length: Floats, masses: Floats) -> tuple[Floats, Floats, Floats]:
    """(n,) the mass and its first and second moment that hang on each node, its own among them."""
    mass, first, second = masses.copy(), masses * length, masses * length**2
    for node in np.argsort(-length, kind="stable"):
        others = column[begin[node] : begin[node + 1]]
        nearer = others[length[others] < length[node]]
        if not len(nearer):
            continue
        share = (length[node] - length[nearer]) / np.maximum(
            np.linalg.norm(points[nearer] - points[node], axis=1), 1e-12
        )
        share = share**2 / (share**2).sum()
        mass[nearer] += share * mass[node]
        first[nearer] += share * first[node]
        second[nearer] += share * second[node]
    return mass, np.maximum(first - length * mass, 0), np.maximum(second - length * (2 * first - length * mass), 0)

"""Slender parts without a bone, such as ears and horns, made stiff enough to withstand an acceleration.

Rotations come from the bones. What has none may bend a little, but it is stretched where it should swing far: the same
soft flesh that wobbles on a thigh lets a long ear whip about. So such parts get the stiffness that they need to bend
by less than a given strain ε when they are accelerated by a.

The path from each node to the nearest bone through the flesh has a length L. What lies farther out hangs on what is
nearer: masses m and moments m L are handed on from node to node towards the bones, to all neighbours that are nearer,
by how much nearer they are. At a node with the mass M₀ = Σ m and the moment M₁ = Σ m (L_m − L) beyond it, a cross
section of the area A (its own share) and half of the thickness r, the strain of bending and pulling is

    ε = a (4 M₁ / r + M₀) / (A E).

Only where a part reaches farther than `SLENDER` times r from the bones is E raised: flesh on a thigh stays as it is.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.mls import Interpolation
from pliant.engines.simulate.nodes import Nodes, chord
from pliant.engines.simulate.stiffness import incidence, pattern

LARGEST_STRAIN = 0.02
"""ε: half of what is to be seen, since a sudden motion swings twice as far as a steady one bends."""
SLENDER = (1.5, 3.0)
"""Reach from the bones over r, from which on a part is made stiffer, and from which on wholly."""
LARGEST_FACTOR = 1e4
"""By which stiffness may be raised."""


def braced(
    young: Floats, functions: Interpolation, nodes: Nodes, volumes: Floats, masses: Floats, acceleration: float
) -> Floats:
    """(q,) the factors by which to raise Young's modulus (q,) at the quadrature points.

    volumes, masses: (n,) of the nodes. acceleration: in the body's own lengths, per second squared.
    """
    begin, column = pattern(incidence(functions)[0])
    length = _path_lengths(begin, column, nodes)
    mass, moment, reach = _beyond(begin, column, nodes.points, length, masses)
    r = _half_thickness(nodes)
    area = np.maximum(volumes, 1e-6 * volumes.mean()) ** (2 / 3)
    needed = acceleration * (4 * moment / r + mass) / (area * LARGEST_STRAIN)
    low, high = SLENDER
    share = np.clip((reach / r - low) / (high - low), 0, 1)
    weight = functions.matrix.copy()
    weight.data = np.abs(weight.data)
    total = np.asarray(weight.sum(axis=1)).ravel()
    factor = np.clip((weight @ needed) / total / young, 1, LARGEST_FACTOR)
    return np.asarray(factor ** ((weight @ share) / total))


def _path_lengths(begin: Ints, column: Ints, nodes: Nodes) -> Floats:
    """(n,) length of the shortest path from each node to a fixed one, over nodes that share a quadrature point."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    row = np.repeat(np.arange(len(nodes)), np.diff(begin))
    away = np.linalg.norm(nodes.points[row] - nodes.points[column], axis=1)
    graph = csr_matrix((np.maximum(away, 1e-12), column, begin), shape=(len(nodes), len(nodes)))
    found = dijkstra(graph, indices=np.arange(nodes.free, len(nodes)), min_only=True)
    return np.where(np.isfinite(found), found, 0.0)


def _beyond(begin: Ints, column: Ints, points: Floats, length: Floats, masses: Floats) -> tuple[Floats, Floats, Floats]:
    """(n,) the mass and the moment that hang on each node, its own among them, and how far they reach."""
    mass, first, reach = masses.copy(), masses * length, length.copy()
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
        reach[nearer] = np.maximum(reach[nearer], reach[node])
    return mass, np.maximum(first - length * mass, 0), reach


def _half_thickness(nodes: Nodes) -> Floats:
    """(n,) half of the body's thickness at each node."""
    thickness, _ = chord(nodes.surface, nodes.points, nodes.surface.diagonal)
    thickness = np.where(np.isfinite(thickness), thickness, nodes.surface.diagonal)
    return np.maximum(thickness / 2, 0.1 * nodes.radii)

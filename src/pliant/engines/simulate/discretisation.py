"""A body as rows of functions and weights: its quadrature points, then the springs that hold it to its bones, then its
ties."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.attachment import springs, ties
from pliant.engines.simulate.consistency import consistent
from pliant.engines.simulate.interior import Fillable
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import FEWEST_NODES, Nodes, relative_thickness
from pliant.engines.simulate.quadrature import Quadrature, dilatation_cells, quadrature
from pliant.engines.simulate.stiffness import lumped_mass
from pliant.engines.simulate.warping import CorotatedOperator

FEWEST_POINTS = 4
"""Quadrature points that a node has to be seen by: with fewer, tips have motions that cost no energy."""
LEAST_THICKNESS = 0.4
"""Half of the thickness, over the distance of nodes, below which flesh does not know how to bend."""


@dataclass(frozen=True, eq=False)
class Discretisation(Value):
    """What the sums over a body need, whatever it is made of."""

    nodes: Nodes
    quadrature: Quadrature
    """The points of a cell follow each other."""
    functions: Interpolation
    """Functions and gradients at all rows."""
    weights: Floats
    """(rows,) volumes; of springs, their stiffness over the shear modulus, in the same unit."""
    cells: Ints
    """(cells + 1,) the first row of each cell over which the dilatation is averaged; a spring is a cell of its own."""
    ends: Ints
    """(springs,) the node at the end of each."""

    @property
    def points(self) -> Floats:
        """(rows, 3) where the rows are."""
        return np.concatenate([self.quadrature.points, self.nodes.points[self.ends]])

    def weak(self, *, thin: bool) -> Ints:
        """Free nodes to be tied: those that too few points see, and if `thin`, those in flesh that is too thin.

        In a part of the body without enough others, there are none.
        """
        from scipy.sparse.csgraph import connected_components

        free, inner = self.nodes.free, self.inner
        found = np.bincount(inner.node, minlength=free)[:free] < FEWEST_POINTS
        if thin:
            found |= relative_thickness(self.nodes)[:free] < LEAST_THICKNESS
        seen = abs(inner.matrix[:, :free])
        part = connected_components(seen.T @ seen, directed=False)[1]
        others = np.bincount(part, ~found)
        return np.flatnonzero(found & (others[part] >= FEWEST_NODES))

    def tied(self, which: Ints) -> Discretisation:
        """With ties of some free nodes (t,) to the others."""
        if not len(which):
            return self
        rows, weights = ties(self.nodes, which)
        return replace(
            self,
            functions=self.functions.joined(rows),
            weights=locked(np.concatenate([self.weights, weights])),
            cells=locked(np.concatenate([self.cells, self.cells[-1] + 1 + np.arange(len(which))])),
            ends=locked(np.concatenate([self.ends, which])),
        )

    @property
    def inner(self) -> Interpolation:
        """The functions at the quadrature points alone."""
        return self.functions.chosen(np.arange(len(self.quadrature)))

    def operator(self, lam: Floats | float, mu: Floats | float) -> CorotatedOperator:
        """The elastic energy for Lamé's constants, the same everywhere or (rows,)."""
        bulk, shear, volumes = lam * self.weights, mu * self.weights, self.quadrature.weights
        bulk[len(volumes) :] = -shear[len(volumes) :]
        return CorotatedOperator(self.functions, volumes, locked(bulk), locked(shear), self.cells, self.nodes.free)

    def mass(self, density: Floats) -> Floats:
        """(n,) masses of the nodes for the density (rows,)."""
        return locked(lumped_mass(self.inner, self.quadrature.weights, density[: len(self.quadrature)]))


def discretise(shape: Fillable, nodes: Nodes, areas: ArrayLike, radii: ArrayLike) -> Discretisation:
    """Quadrature, functions and springs of a body; areas and radii (s,) are those of the samples, the fixed nodes."""
    points = quadrature(shape, nodes)
    functions = mls(points.points, nodes, gradients=True)
    order, starts = dilatation_cells(functions)
    points = points.chosen(order)
    functions = consistent(functions.chosen(order), points, nodes)
    rows, weights = springs(nodes, np.asarray(areas, dtype=np.float64), np.asarray(radii, dtype=np.float64))
    cells = np.concatenate([starts, len(order) + 1 + np.arange(len(rows))])
    return Discretisation(
        nodes, points, functions.joined(rows), locked(np.concatenate([points.weights, weights])), locked(cells),
        locked(np.arange(nodes.free, len(nodes))),
    )  # fmt: skip

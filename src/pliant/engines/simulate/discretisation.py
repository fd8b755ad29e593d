"""A body as rows of functions and weights: its quadrature points, then the springs that hold it to its bones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.attachment import springs
from pliant.engines.simulate.consistency import consistent
from pliant.engines.simulate.interior import Fillable
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import Nodes
from pliant.engines.simulate.quadrature import Quadrature, dilatation_cells, quadrature
from pliant.engines.simulate.stiffness import lumped_mass
from pliant.engines.simulate.warping import CorotatedOperator


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

    @property
    def points(self) -> Floats:
        """(rows, 3) where the rows are."""
        return np.concatenate([self.quadrature.points, self.nodes.points[self.nodes.free :]])

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
        nodes, points, functions.joined(rows), locked(np.concatenate([points.weights, weights])), locked(cells)
    )

"""How a rig's network of springs comes to rest: where a shape starts, what loads hold, and the solver that is named.

It is what `Blendshapes.solve`, shapes in contact (`pliant.engines.blend.contacts`) and shapes while somebody drags
(`pliant.engines.blend.live`) share. Weights are full and checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.core.clips import Pose
from pliant.core.shapes import Mesh, Weld
from pliant.core.topology import Floats
from pliant.engines.blend.body import SpringBody
from pliant.engines.blend.correctives import Correctives
from pliant.engines.blend.equilibrium import Network, Outcome, lbfgs, newton, paper_newton
from pliant.engines.blend.pulls import Load
from pliant.engines.blend.rest_lengths import Flesh, Rest
from pliant.engines.blend.solve_options import Options
from pliant.numerics.linalg import dot

STILL = 3e-7
"""Motion, over the diagonal, below which a vertex counts as static; files of six digits round by about as much."""
KNOT_ACCURACY = 1e-6
"""The finest accuracy to which knots are solved: they only say where to start."""


class Settling:
    """How one body settles. weld: from its network's vertices to those of the mesh `base`."""

    def __init__(self, body: SpringBody, weld: Weld, base: Mesh) -> None:
        self.body, self.weld, self.base = body, weld, base
        self.correctives = Correctives(body)
        self._holding: tuple[bytes, Network] = (b"", body.network)

    def start(self, w: Floats, accuracy: float) -> Floats:
        """(n, 3) where a frame starts, in the base's frame."""
        return self.correctives.start(w, max(accuracy, KNOT_ACCURACY), self.equilibrium(accuracy))

    def equilibrium(self, accuracy: float) -> Callable[[Floats, Floats], Floats]:
        """How the correctives solve for a knot."""

        def solve(w: Floats, x: Floats) -> Floats:
            options = Options(accuracy=max(accuracy, KNOT_ACCURACY))
            return self.outcome(self.body.network, w, x, self.body.rest(w), None, options).x

        return solve

    def free(self, w: Floats, x: Floats, accuracy: float) -> tuple[Floats, Rest | Flesh]:
        """(n, 3) the shape without a load, in the world, from a start; and what its springs then strive for."""
        return self.unloaded(w, self.equilibrium(accuracy)(w, x))

    def unloaded(self, w: Floats, x: Floats) -> tuple[Floats, Rest | Flesh]:
        """A shape without a load (n, 3) in the world; and what its springs strive for once there is one."""
        world = self.body.frames.placed(self.body.centred(x), w)
        rest = self.body.rest(w)
        return world, Flesh.of(world, self.body.springs, rest.memory) if rest.memory else rest

    def loaded(self, load: Load, x: Floats) -> tuple[Network, Floats]:
        """The network with the loaded vertices held, and the start moved along with them as smoothly as it can."""
        if not len(load.vertices):
            return self.body.network, x
        key = np.unique(load.vertices).tobytes()
        holding = self._holding
        if holding[0] != key:
            holding = self._holding = key, self.body.network.holding(load.vertices)
        network = holding[1]
        moved = np.zeros_like(x)
        moved[load.vertices] = load.places - x[load.vertices]
        return network, x + moved + network.solve(-(network.L @ moved))

    def outcome(
        self, network: Network, w: Floats, x: Floats, rest: Rest | Flesh, force: Floats | None, options: Options
    ) -> Outcome:
        """Where a network comes to rest from x, pulled by a force (n, 3)."""
        rounding = float(np.sum(self.body.springs.stiffness * rest.lengths**2))
        if isinstance(rest, Flesh):
            scale, largest = 1e-20 * rounding, 0.0
        else:
            scale, largest = self._scale(network, w, x, rest, force)
            scale = max(scale, 1e-12 * rounding)
        common: dict[str, Any] = {"force": force, "reference": largest, "watch": options.watch}
        if options.method == "paper":
            tolerance = options.accuracy * self.body.diagonal
            return paper_newton(network, x, rest, tolerance=tolerance, iterations=options.iterations or 60, **common)
        solver, most = (lbfgs, 1000) if options.method == "lbfgs" else (newton, 200)
        common["iterations"] = options.iterations or most
        return solver(network, x, rest, tolerance=options.accuracy, scale=scale, **common)

    def _scale(self, network: Network, w: Floats, x: Floats, rest: Rest, force: Floats | None) -> tuple[float, float]:
        """The energy that accuracy is relative to, and the largest force: linear blending's, or a load's."""
        linear, gradient = self.body.linear(w), np.empty(x.shape)
        scale = network.energy(linear, rest, gradient)
        largest = float(np.abs(gradient).max(initial=0))
        if np.abs(x - linear)[network.held].max(initial=0) > STILL * self.body.diagonal:
            scale = max(scale, network.energy(x, rest, gradient))  # dragged: a shape by itself may have no energy
        if force is not None:
            scale = max(scale, dot(force, network.solve(force)) / 2)
        return scale, largest

    def pose(self, outcome: Outcome, w: Floats | None) -> Pose:
        """As a pose; w: the weights of a shape in the base's frame, None for one in the world."""
        return Pose(
            self.base.with_points(self.surface(outcome.x, w)),
            outcome.residual,
            outcome.iterations,
            outcome.converged,
            inverted=self.body.inverted(outcome.x),
            message=outcome.message,
        )

    def surface(self, x: Floats, w: Floats | None) -> Floats:
        """(vertices, 3) the mesh's own points in the world, of the network's x; w: as of `pose`."""
        placed = x if w is None else self.body.frames.placed(self.body.centred(x), w)
        return self.weld.restore(placed[: len(self.weld.mesh.points)])

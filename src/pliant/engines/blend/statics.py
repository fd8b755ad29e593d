"""Static equilibrium of a rig's springs: the start of a solve, the constraints of a load, and the choice of solver.

Shared by `Blendshapes.solve`, contact (`pliant.engines.blend.contacts`) and interaction (`pliant.engines.blend.live`).
Weights are complete, with the base's, and checked by the callers.

Warm starts along the straight blend of two shapes are the equilibrium's offset from the guess, interpolated from knots.
A frame that starts from the guess alone needs tens of iterations, and so do its neighbours. Along the blend of two
shapes, ``w_a = 1 - t, w_b = t``, the correction

    c_i(t) = R_i(t)ᵀ (x_i(t) - guess_i(t)),       R_i(t) the blended rotation of vertex i,

is zero at both ends and smooth between them. It is solved for at the knots t = 1/2; 1/4, 3/4; 1/8, ... in that order,
each warm-started by Lagrange interpolation of the nearest four coarser knots, and every frame is warm-started from the
finest ones. A knot depends on the coarser knots only, so a shape depends on its weights only and not on earlier calls.
Where further shapes have little weight, the correction fades as theirs grows, so that the start is continuous.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pliant.core.clips import Pose
from pliant.core.shapes import Mesh, Weld
from pliant.core.topology import Floats
from pliant.engines.blend import kernels
from pliant.engines.blend.body import SpringBody
from pliant.engines.blend.detail import Detail
from pliant.engines.blend.equilibrium import (
    Network,
    Objective,
    Outcome,
    SolveOptions,
    farthest,
    lbfgs,
    newton,
    paper_newton,
)
from pliant.engines.blend.options import MOST_ITERATIONS
from pliant.engines.blend.pulls import ExternalLoad
from pliant.engines.blend.springs import CorotatedRest, Rest

STATIC_TOLERANCE = 3e-7
"""Motion, over the diagonal, below which a vertex counts as static: the rounding of files with six digits."""
KNOT_ACCURACY, KNOT_ITERATIONS = 1e-5, 60
"""The finest accuracy to which knots are solved, and the most iterations: they are warm starts only."""
LARGE_MOTION = 0.1
"""Motion by a load, over the size, from which on the accuracy is that of the whole shape."""
THIRD_SHARE = 0.1
"""Weight of all other shapes, over the smaller of two, at which the knots of the two do not count any more."""
KNOT_LEVELS = 3
"""Levels of bisection: 2^KNOT_LEVELS - 1 knots between two shapes."""
STENCIL = 4
"""Knots in one interpolation."""
SHARED_KNOT = 10
"""Frames from which on a knot is worth solving before they are divided among processes."""
KNOT_MEMORY = 1 << 30
"""Most bytes of all knots; the oldest are dropped."""

Solve = Callable[[Floats, Floats], Floats]
"""From weights and a start to the equilibrium, both (n, 3) in the base's frame."""


class Correctives:
    """The knots of every pair of shapes that was blended."""

    def __init__(self, body: SpringBody) -> None:
        self.body = body
        self._knots: dict[tuple[int, int, Fraction, float], Floats] = {}
        self._last_guess: tuple[Floats, Floats] | None = None

    def _guess(self, weights: Floats) -> Floats:
        """The body's guess, which a knot and the frame on it share."""
        last = self._last_guess  # another thread may replace it
        if last is None or not np.array_equal(last[0], weights):
            last = self._last_guess = weights.copy(), self.body.guess(weights)
        return last[1]

    def start(self, weights: Floats, accuracy: float, solve: Solve) -> Floats:
        """(n, 3) the start at these weights: the guess, corrected on and near the straight blend of two shapes."""
        guess = self._guess(weights)
        (a, b), share = _pair(weights)
        if share <= 0:
            return guess.copy()
        correction = self._interpolated(a, b, _fraction(weights, a, b), KNOT_LEVELS, accuracy, solve)
        return guess + share * kernels.rotated(correction, self.body.blended_rotvecs(weights), 1.0)

    def prepare(self, table: Floats, accuracy: float, solve: Solve) -> None:
        """Solve for the knots that at least `SHARED_KNOT` of the weights (frames, shapes) start from."""
        frames: Counter[tuple[int, int, Fraction]] = Counter()
        for weights in table:
            (a, b), share = _pair(weights)
            if share > 0:
                frames.update((a, b, knot) for knot in _stencil(_fraction(weights, a, b), KNOT_LEVELS))
        for (a, b, knot), count in frames.items():
            if count >= SHARED_KNOT:
                self._knot(a, b, knot, accuracy, solve)

    def _interpolated(self, a: int, b: int, t: float, level: int, accuracy: float, solve: Solve) -> Floats:
        """(n, 3) the correction at t, interpolated from the knots of a level and the coarser ones."""
        knots = _stencil(t, level)
        at = np.array([float(knot) for knot in knots])
        total = np.zeros((self.body.network.count, 3))
        for j, knot in enumerate(knots):
            others = np.delete(at, j)
            total += np.prod((t - others) / (at[j] - others)) * self._knot(a, b, knot, accuracy, solve)
        return total

    def _knot(self, a: int, b: int, t: Fraction, accuracy: float, solve: Solve) -> Floats:
        """(n, 3) the correction at a knot."""
        if t in (0, 1):
            return np.zeros((self.body.network.count, 3))
        key = (a, b, t, accuracy)
        if key not in self._knots:
            weights = np.zeros(len(self.body.points))
            weights[[a, b]] = 1 - float(t), float(t)
            level = t.denominator.bit_length() - 1
            rotvecs = self.body.blended_rotvecs(weights)
            guess = self._guess(weights)
            coarse = self._interpolated(a, b, float(t), level - 1, accuracy, solve)
            reached = solve(weights, guess + kernels.rotated(coarse, rotvecs, 1.0))
            self._knots[key] = correction = kernels.rotated(reached - guess, rotvecs, -1.0)
            while len(self._knots) > max(KNOT_MEMORY // correction.nbytes, 2**KNOT_LEVELS):
                del self._knots[next(iter(self._knots))]  # the oldest
        return self._knots[key]


def _pair(weights: Floats) -> tuple[tuple[int, int], float]:
    """The two shapes of most weight, and how much their knots count beside the others' weights."""
    a, b = sorted(map(int, np.argsort(-weights, kind="stable")[:2]))
    least = float(min(weights[a], weights[b]))
    others = float(np.abs(weights).sum() - weights[a] - weights[b])
    return (a, b), 1 - others / (THIRD_SHARE * least) if least > 0 else 0.0


def _fraction(weights: Floats, a: int, b: int) -> float:
    """t, on the straight blend of shapes a and b."""
    return float(weights[b] / (weights[a] + weights[b]))


def _stencil(t: float, level: int) -> list[Fraction]:
    """The knots of a level from which t is interpolated: the one at t, or the nearest four."""
    count = 2**level
    near = Fraction(round(t * count), count)
    if abs(t - near) < 1e-12:
        return [near]
    first = int(np.clip(np.floor(t * count) + 1 - STENCIL // 2, 0, max(count + 1 - STENCIL, 0)))
    return [Fraction(j, count) for j in range(first, min(first + STENCIL, count + 1))]


class StaticSolver:
    """Solver for the equilibrium of one body.

    weld: from its network's vertices to those of the mesh `base`; detail: where these are carried by the network.
    """

    def __init__(self, body: SpringBody, weld: Weld, base: Mesh, detail: Detail | None = None) -> None:
        self.body, self.weld, self.base, self.detail = body, weld, base, detail
        self.correctives = Correctives(body)
        self._last_fixed: tuple[bytes, Network] = (b"", body.network)

    def start(self, w: Floats, accuracy: float) -> Floats:
        """(n, 3) the start of a frame's solve, in the base's frame."""
        return self.correctives.start(w, *self._knot_solve(accuracy))

    def prepare(self, table: Floats, accuracy: float) -> None:
        """Solve for the knots that many of the weights (frames, shapes) start from, once for all copies of the rig."""
        self.correctives.prepare(table, *self._knot_solve(accuracy))

    def _knot_solve(self, accuracy: float) -> tuple[float, Solve]:
        return max(accuracy, KNOT_ACCURACY), self.equilibrium(accuracy, KNOT_ITERATIONS)

    def equilibrium(self, accuracy: float, iterations: int | None = None) -> Callable[[Floats, Floats], Floats]:
        """From weights and a start to the shape without load, both (n, 3) in the base's frame."""
        options = SolveOptions(accuracy=max(accuracy, KNOT_ACCURACY), iterations=iterations)

        def solve(w: Floats, x: Floats) -> Floats:
            return self.outcome(self.body.network, w, x, self.body.rest(w), None, options, reference=0.0).x

        return solve

    def free(self, w: Floats, x: Floats, accuracy: float) -> tuple[Floats, Rest | CorotatedRest]:
        """(n, 3) the shape without load in the world, solved from x; and its springs' rest state under load."""
        return self.unloaded(w, self.equilibrium(accuracy)(w, x))

    def unloaded(self, w: Floats, x: Floats) -> tuple[Floats, Rest | CorotatedRest]:
        """(n, 3) the solved shape without load in the world, and its springs' rest state under load."""
        world = self.body.frames.placed(self.body.centred(x), w)
        rest = self.body.rest(w)
        if not rest.direction_stiffness:
            return world, rest
        return world, CorotatedRest.of(world, self.body.springs, rest.direction_stiffness)

    def aimed(self, load: ExternalLoad, x: Floats, w: Floats) -> ExternalLoad:
        """The load with positions for the network's vertices: each as far from that meant for a fine one as in x."""
        if self.detail is None or load.carried is None or not len(load.vertices):
            return load
        fine = self.detail.carry(self.body, x, w)[load.carried]
        return replace(load, positions=load.positions + x[load.vertices] - fine)

    def loaded(self, load: ExternalLoad, x: Floats) -> tuple[Network, Floats]:
        """The network with the pulled vertices fixed, and the start moved with them by a harmonic displacement."""
        if not len(load.vertices):
            return self.body.network, x
        key = np.unique(load.vertices).tobytes()
        if self._last_fixed[0] != key:
            self._last_fixed = key, self.body.network.with_fixed(load.vertices)
        network = self._last_fixed[1]
        moved = np.zeros_like(x)
        moved[load.vertices] = load.positions - x[load.vertices]
        return network, x + moved + network.solve(-(network.L @ moved))

    def outcome(
        self,
        network: Network,
        w: Floats,
        x: Floats,
        rest: Rest | CorotatedRest,
        force: Floats | None,
        options: SolveOptions,
        reference: float | None = None,
    ) -> Outcome:
        """The equilibrium of a network from the start x, under an external force (n, 3).

        reference: a force that the residual is relative to, that of linear blending if not given.
        """
        solver = {"lbfgs": lbfgs, "newton": newton, "paper": paper_newton}[options.method]
        return solver(
            Objective(network, rest, force),
            x,
            tolerance=options.accuracy * self.body.size,
            iterations=options.iterations or MOST_ITERATIONS[options.method],
            reference=self._linear_force(network, w, rest) if reference is None else reference,
            watch=options.watch,
        )

    def share_moved(self, network: Network, moved: Floats, force: Floats | None) -> float:
        """How far a load moves the start, or a force about will, over `LARGE_MOTION`; at most 1.

        A share of the accuracy: the response to a small load is in proportion to it, and so is its error.
        """
        reach = farthest(moved) + (0.0 if force is None else farthest(network.solve(force)))
        return min(1.0, max(reach / (LARGE_MOTION * self.body.size), 1e-12))

    def _linear_force(self, network: Network, w: Floats, rest: Rest | CorotatedRest) -> float:
        """The largest force of linear blending, without load."""
        if isinstance(rest, CorotatedRest):
            return 0.0
        gradient = np.empty((network.count, 3))
        network.energy(self.body.linear(w), rest, gradient)
        return float(np.abs(gradient).max(initial=0))

    def pose(self, outcome: Outcome, w: Floats, *, world: bool = False) -> Pose:
        """The outcome as a pose; world: whether it is in the world, and not in the base's frame."""
        return Pose(
            self.base.with_points(self.surface(outcome.x, w, world=world)),
            outcome.residual,
            outcome.iterations,
            outcome.converged,
            inverted=self.body.inverted(outcome.x),
            message=outcome.message,
        )

    def surface(self, x: Floats, w: Floats, *, world: bool = False) -> Floats:
        """(vertices, 3) the mesh's points in the world, from the network's x; world: as in `pose`."""
        placed = x if world else self.body.frames.placed(self.body.centred(x), w)
        if self.detail is not None:
            return self.detail.carry(self.body, placed, w)[self.detail.weld.index]
        return self.weld.restore(placed[: len(self.weld.mesh.points)])

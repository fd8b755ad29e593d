"""Shapes of a rig at interactive rates, each warm-started from the one before.

    live = LiveBlend(rig)
    while dragged:
        points = live.shape(sliders, pulls=pulls, obstacles=[Sphere(pointer, 0.1)])

A few iterations lead from the last shape to the next, so the shape follows the user's drag and converges when it stops.
In contact it stays on the side to which an obstacle has pushed it. The result is near that of `Blendshapes.solve`,
which does not depend on earlier shapes; call that when the drag ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.contact.obstacles import MovingObstacle, Obstacle
from pliant.contact.solver import ContactSolver
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.rotations import IDENTITY
from pliant.core.topology import Floats
from pliant.engines.blend.blendshapes import Blendshapes
from pliant.engines.blend.contacts import SpringContactBody, make_contact_solver
from pliant.engines.blend.dragging import SliderDrag
from pliant.engines.blend.equilibrium import Network, Outcome, SolveOptions
from pliant.engines.blend.options import BlendOptions
from pliant.engines.blend.pulls import ExternalLoad, Pull, checked_pulls, listed, read_load
from pliant.engines.blend.springs import CorotatedRest, Rest

LIVE_ACCURACY = 1e-3
"""Accuracy, as in `Blendshapes.solve`, at which iterations end."""
LIVE_ITERATIONS = 40
"""Most iterations for one shape."""
LIVE_CONTACT_ACCURACY = 0.05
"""Accuracy in contact, where convergence is spread over several shapes."""
CONTACT_TIME_SHARE = 0.5
"""Share of the time after which no further iteration starts in contact, where iterations are slow."""


class LiveBlend:
    """A rig solved for one shape after another, at interactive rates.

    friction, self_contact, thickness: as in `Blendshapes.poses`. seconds: about how long a shape may take.
    """

    def __init__(
        self,
        rig: Blendshapes,
        *,
        friction: float = BlendOptions.friction,
        self_contact: bool = BlendOptions.self_contact,
        thickness: float | None = BlendOptions.thickness,
        seconds: float = 0.05,
    ) -> None:
        if not isinstance(rig, Blendshapes):
            raise InputError(f"the rig is a {type(rig).__name__}; expected Blendshapes")
        if not seconds > 0:
            raise InputError(f"seconds is {seconds!r}; expected a positive number")
        make_contact_solver(rig, (), friction, self_contact, thickness)
        self.rig, self.seconds = rig, seconds
        self._statics = rig.statics
        self._contact = friction, self_contact, thickness
        self._pace: dict[str, float] = {}  # seconds of the last iteration, by kind
        self._free: tuple[Floats, Floats, Rest | CorotatedRest] | None = None  # weights, shape in the world, rest state
        self._away: Floats | None = None  # displacement by pulls from that shape
        self._solver: ContactSolver | None = None
        self._placed: list[Obstacle] = []
        self._number = 0
        self._drag: SliderDrag | None = None

    def shape(
        self,
        weights: ArrayLike | dict[str, float],
        *,
        pulls: Iterable[Pull] = (),
        pinned: ArrayLike | None = None,
        obstacles: Sequence[Obstacle] = (),
    ) -> Floats:
        """(vertices, 3) the next shape.

        pulls, pinned: as in `Blendshapes.solve`. obstacles: at their current positions, always in the same order.
        """
        for obstacle in obstacles:
            if not isinstance(obstacle, Obstacle):
                raise InputError(f"an obstacle is a {type(obstacle).__name__}; expected a Sphere, a Box and the like")
        w = self.rig.weights(weights)
        load = read_load(self.rig, listed(pulls), pinned)
        solver = self._solver_for(obstacles)
        if not load and solver is None:
            self._away = None
            outcome = self._steps("blended", self.rig.body.network, w, self.rig.body.guess(w), self.rig.body.rest(w))
            return self._statics.surface(outcome.x, w)
        free, rest = self._unloaded(w)
        if solver is None:
            return self._pulled(load, w, free, rest)
        self._away = None
        network, x = self._statics.loaded(self._statics.aimed(load, free, w), free)
        body = SpringContactBody(self.rig, network, load.vertices, rest, x, load.force, LIVE_CONTACT_ACCURACY)
        found = solver.frame(body, self._number, iterations=LIVE_ITERATIONS, quick=CONTACT_TIME_SHARE * self.seconds)
        return self._statics.surface(found.x, w, world=True)

    def drag(
        self,
        weights: ArrayLike | dict[str, float],
        targets: Mapping[int, ArrayLike],
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
    ) -> dict[str, float]:
        """The sliders, by name, that lead dragged vertices to positions, with the least change; see `dragging`.

        targets: positions (x, y, z) by vertex. They are met as nearly as the shapes allow.
        """
        pulls = checked_pulls([Pull(vertex, to=at) for vertex, at in targets.items()], len(self.rig.shapes.base.points))
        low, high = (float(bound) for bound in bounds)
        if not low <= high:
            raise InputError(f"bounds are {bounds}; expected lowest and highest", argument="bounds")
        self._drag = self._drag or SliderDrag(self.rig)
        vertices, positions = np.array([pull.vertex for pull in pulls]), np.array([pull.to for pull in pulls])
        row = self.rig.row(weights)
        if len(pulls):
            row = self._drag.follow(row, vertices, positions, low, high)
        return {self.rig.shapes.names[k]: float(row[k]) for k in self.rig.sliders.numbers}

    def _unloaded(self, w: Floats) -> tuple[Floats, Rest | CorotatedRest]:
        """(n, 3) the shape without load in the world, and its springs' rest state; cached."""
        if self._free is None or not np.array_equal(self._free[0], w):
            body = self.rig.body
            found = self._steps("blended", body.network, w, body.guess(w), body.rest(w), share=0.5)
            self._free = w, *self._statics.unloaded(w, found.x)
        return self._free[1:]

    def _pulled(self, load: ExternalLoad, w: Floats, free: Floats, rest: Rest | CorotatedRest) -> Floats:
        start = free if self._away is None else free + self._away
        network, x = self._statics.loaded(self._statics.aimed(load, start, w), start)
        outcome = self._steps("pulled", network, w, x, rest, load.force)
        self._away = outcome.x - free
        return self._statics.surface(outcome.x, w, world=True)

    def _steps(
        self,
        kind: str,
        network: Network,
        w: Floats,
        x: Floats,
        rest: Rest | CorotatedRest,
        force: Floats | None = None,
        share: float = 1.0,
    ) -> Outcome:
        """As many iterations towards equilibrium as there is time for."""
        pace = self._pace.get(kind, self.seconds / 3)
        most = int(np.clip(share * self.seconds / pace, 1, LIVE_ITERATIONS))
        began = time.perf_counter()
        outcome = self._statics.outcome(
            network, w, x, rest, force, SolveOptions(accuracy=LIVE_ACCURACY, iterations=most)
        )
        self._pace[kind] = max((time.perf_counter() - began) / max(outcome.iterations, 1), 1e-6)
        return outcome

    def _solver_for(self, obstacles: Sequence[Obstacle]) -> ContactSolver | None:
        """The contact solver, with obstacles that move from their last positions to these; None without contact."""
        same = [type(obstacle) for obstacle in obstacles] == [type(obstacle) for obstacle in self._placed]
        if not same or self._solver is None:
            self._solver = make_contact_solver(self.rig, obstacles, *self._contact)
            self._placed = list(obstacles)
        if self._solver is not None:
            self._number += 1
            led = zip(self._placed, obstacles, strict=True)
            self._solver.obstacles = [_led(before, now, self._number) for before, now in led]
            self._placed = list(obstacles)
        return self._solver


def _led(before: Obstacle, now: Obstacle, number: int) -> MovingObstacle:
    """The obstacle `now` with keys of its motion from `before`, one frame earlier."""
    back = rotations.multiply(before.turn, rotations.inverse(now.turn))
    away = before.middle - now.middle
    if not np.any(away) and np.allclose(np.abs(back[0]), 1.0):
        return MovingObstacle(now)
    keys: list[Any] = [(number - 1, tuple(away), tuple(back)), (number, (0.0, 0.0, 0.0), tuple(IDENTITY))]
    return MovingObstacle(now, keys)

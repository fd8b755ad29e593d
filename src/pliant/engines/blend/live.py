"""Shapes of a rig while somebody drags at them: each in a moment, found from the one before.

    live = LiveBlend(rig)
    while dragged:
        points = live.shape(sliders, pulls=pulls, obstacles=[Sphere(pointer, 0.1)])

A few steps lead from the last shape to the next, so what is seen follows the hand, and comes to rest where it rests; in
contact it stays on the side of an obstacle to which that has pushed it. It is near the shape that `Blendshapes.solve`
gives, which is found from nothing but what is asked for. For that one, solve once more when the hand lets go.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
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
from pliant.engines.blend.equilibrium import Network, Outcome
from pliant.engines.blend.options import BlendOptions
from pliant.engines.blend.pulls import Load, Pull, read_load
from pliant.engines.blend.rest_lengths import Flesh, Rest
from pliant.engines.blend.solve_options import Options, listed

ROUGH = 1e-3
"""Accuracy, as of `Blendshapes.solve`, beyond which no steps are taken."""
MOST = 40
"""Steps that a shape may take, however quick they are."""
TOUCHING = 0.05
"""Accuracy in contact: what is left is done from shape to shape."""
CONTACT = 0.5
"""Share of the time after which no further step is begun in contact, where a step is long."""


class LiveBlend:
    """What a rig's shape is now, again and again.

    friction, self_contact, thickness: as of `Blendshapes.poses`. seconds: about how long a shape may take.
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
        self._settling = rig.settling
        self._contact = friction, self_contact, thickness
        self._pace: dict[str, float] = {}  # seconds that a step took last, by kind
        self._free: tuple[Floats, Floats, Rest | Flesh] | None = None  # weights, the shape in the world, its springs
        self._away: Floats | None = None  # how far pulls have led it from there
        self._solver: ContactSolver | None = None
        self._placed: list[Obstacle] = []
        self._number = 0

    def shape(
        self,
        weights: ArrayLike | dict[str, float],
        *,
        pulls: Iterable[Pull] = (),
        pinned: ArrayLike | None = None,
        obstacles: Sequence[Obstacle] = (),
    ) -> Floats:
        """(vertices, 3) the shape now.

        pulls, pinned: as of `Blendshapes.solve`. obstacles: where they are now, always in the same order.
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
            return self._settling.surface(outcome.x, w)
        free, rest = self._unloaded(w)
        if solver is None:
            return self._pulled(load, w, free, rest)
        self._away = None
        network, x = self._settling.loaded(load, free)
        body = SpringContactBody(self.rig, network, load.vertices, rest, x, load.force, TOUCHING)
        found = solver.frame(body, self._number, iterations=MOST, quick=CONTACT * self.seconds)
        return self._settling.surface(found.x, None)

    def _unloaded(self, w: Floats) -> tuple[Floats, Rest | Flesh]:
        """(n, 3) the shape that no load acts on, in the world, and what its springs strive for; kept for the next."""
        if self._free is None or not np.array_equal(self._free[0], w):
            body = self.rig.body
            found = self._steps("blended", body.network, w, body.guess(w), body.rest(w), share=0.5)
            self._free = w, *self._settling.unloaded(w, found.x)
        return self._free[1:]

    def _pulled(self, load: Load, w: Floats, free: Floats, rest: Rest | Flesh) -> Floats:
        start = free if self._away is None else free + self._away
        network, x = self._settling.loaded(load, start)
        outcome = self._steps("pulled", network, w, x, rest, load.force)
        self._away = outcome.x - free
        return self._settling.surface(outcome.x, None)

    def _steps(
        self,
        kind: str,
        network: Network,
        w: Floats,
        x: Floats,
        rest: Rest | Flesh,
        force: Floats | None = None,
        share: float = 1.0,
    ) -> Outcome:
        """As many steps towards equilibrium as there is time for."""
        pace = self._pace.get(kind, self.seconds / 3)
        most = int(np.clip(share * self.seconds / pace, 1, MOST))
        began = time.perf_counter()
        outcome = self._settling.outcome(network, w, x, rest, force, Options(accuracy=ROUGH, iterations=most))
        self._pace[kind] = max((time.perf_counter() - began) / max(outcome.iterations, 1), 1e-6)
        return outcome

    def _solver_for(self, obstacles: Sequence[Obstacle]) -> ContactSolver | None:
        """What the shape gives way to, led from where it was to where it is; None if that is nothing."""
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
    """An obstacle that is `now` at a frame, and was where it was the frame before."""
    back = rotations.multiply(before.turn, rotations.inverse(now.turn))
    away = before.middle - now.middle
    if not np.any(away) and np.allclose(np.abs(back[0]), 1.0):
        return MovingObstacle(now)
    keys: list[Any] = [(number - 1, tuple(away), tuple(back)), (number, (0.0, 0.0, 0.0), tuple(IDENTITY))]
    return MovingObstacle(now, keys)

"""An elastic body in contact, frame by frame or step by step (Ma et al. 2011, Section 4, completed).

One solver for every engine; what it needs of a body is `ContactBody`. The shape that a frame has by itself is what the
body springs back to. From there, in rounds:

1. Rows of contact are gathered: surface vertices near an obstacle; points on edges and faces that are inside one, and
   corners of an obstacle that are inside the body; vertices that went through an obstacle since the frame before, which
   are kept on the side they came from; and vertices and triangles of the body itself that faced each other.
2. The body's energy and the rows' are minimised together (`pliant.contact.response`), with Coulomb's friction.
3. The shape is examined anew, all of it. A round that finds nothing deeper than `MAX_PENETRATION` ends the frame.
   Points that press without friction are held from there on: at rest that takes no force, and no other round; with
   inertia, where friction acts on the step's motion, another one follows.

Rows push and never pull, so contacts end when the surface wants to leave, and friction ends with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from time import thread_time
from typing import Any

import numpy as np

from pliant.contact.body import ContactBody, hardness
from pliant.contact.constraints import Anchors, SurfaceSamples, passed_through
from pliant.contact.forces import LocalCompliance, Rows
from pliant.contact.inverse_hessian import InverseHessian
from pliant.contact.march import MAX_STRIDE, March
from pliant.contact.obstacles import MovingObstacle
from pliant.contact.response import ContactMinimum, minimise, settle
from pliant.contact.self_contact import SelfContact
from pliant.contact.state import ContactState
from pliant.contact.steps import LocalContactsStep
from pliant.contact.watched_rows import MAX_PENETRATION, ObstacleContacts, SurfaceWatch, WatchedRows
from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.numerics.linalg import one_blas_thread

DEFAULT_THICKNESS = 1e-3
"""Distance kept, over the diagonal, if none is given."""
LEAD_ITERATIONS, MOST_LEAD_CONTACTS = 6, 400
"""Of each shape on a way that leads to a first frame, at most."""
MAX_CONTACT_ROUNDS = 16
MAX_BOOST = 1e4
"""Of the stiffness of contacts, where they are too soft."""
FRICTION_ROUND_ITERATIONS = 20
"""Of a round with friction, at most: which of several rows at one place push may decide whether friction holds it, and
only after a round does it hold at all of them.
"""
MAX_FRICTION_ROUNDS = 6
"""Rounds, at most, that are only for points which press without friction."""
MAX_FRAME_SECONDS = 20.0
"""Time that a frame's rounds may take before the best shape so far is taken."""
CONE_TOLERANCE = 1e-6
"""Friction above its bound, over the largest normal force, that a frame may end with."""
STICKING_SHARE = 1 - 1e-6
"""Friction below this share of its bound holds; else the point slides."""


@dataclass(frozen=True, eq=False)
class ContactResult:
    """A body in contact."""

    x: Floats
    iterations: int
    residual: float
    converged: bool
    message: str
    penetration: float
    """Deepest penetration into an obstacle; a length."""
    contacts: int
    """Points that are pushed."""
    reactions: Floats
    """(obstacles, 3) the force on each obstacle."""
    crossings: int
    """Pairs of the body's own triangles that cross that should not."""
    friction: Floats
    """(k, 2) the normal force and the size of the friction, at each point that it can act on."""


class ContactSolver:
    """The contacts of a body through a clip: what it meets, and what the frame before was like (`state`).

    triangles: (t, 3) of the body's surface, whose `count` vertices come first among its points. friction: Coulomb's
    coefficient. thickness: distance kept. rest: (count, 3) the surface at rest, if the body may meet itself;
    as_at_rest: whether it may cross itself wherever it does there.
    """

    def __init__(
        self,
        triangles: Ints,
        diagonal: float,
        *,
        obstacles: Sequence[MovingObstacle] = (),
        friction: float = 0.0,
        thickness: float | None = None,
        rest: Floats | None = None,
        as_at_rest: bool = False,
        count: int | None = None,
    ) -> None:
        self.diagonal, self.obstacles, self.friction = diagonal, obstacles, friction
        kept = DEFAULT_THICKNESS * diagonal if thickness is None else thickness
        self.surface = int(triangles.max(initial=-1)) + 1 if count is None else count
        self.watch = SurfaceWatch(triangles, self.surface, diagonal, kept, friction)
        self.self_contact: SelfContact | None = None
        if rest is not None:
            self.self_contact = SelfContact(triangles, rest, diagonal, kept, as_at_rest=as_at_rest)
        self.march = March(self.watch, self.self_contact)
        self.state: ContactState | None = None

    def frame(
        self,
        body: ContactBody,
        number: float,
        *,
        iterations: int,
        watch: Any = None,
        quick: float | None = None,
    ) -> ContactResult:
        """The shape of a body at a frame, which follows the one of `state`.

        quick: seconds that there are for one round alone, after which the shape is not examined.
        """
        with one_blas_thread():
            return self.begin(body, number, quick=quick).settled(body, iterations=iterations, watch=watch)

    def lead(self, start: ContactState, bodies: Iterable[ContactBody]) -> ContactState | None:
        """The state after bodies, one after the other, that meet nothing but themselves; on the way none is settled.

        None if they meet so much of themselves that no way leads there.
        """
        obstacles, self.obstacles, self.state = self.obstacles, (), start
        try:
            for body in bodies:
                met = self.frame(body, start.number, iterations=LEAD_ITERATIONS, quick=MAX_FRAME_SECONDS)
                if met.contacts > MOST_LEAD_CONTACTS:
                    self.state = None
                    break
        finally:  # it may be cancelled
            self.obstacles = obstacles
        return self.state

    def begin(self, body: ContactBody, number: float, *, quick: float | None = None) -> ContactFrame:
        """A frame that follows the one of `state`, led to about where the body will be."""
        began, before = thread_time(), self.state
        nears = self._contacts_at(number)
        self.watch.begin(body.free)
        own = self.self_contact
        if own is not None:
            own.begin(body.free if before is None else before.x, None if before is None else before.tangled)
        deadline = began + (MAX_FRAME_SECONDS if quick is None else quick)
        x = self.march.start(body, number, before, self.obstacles, nears, 0.5 * (began + deadline))
        return ContactFrame(self, number, nears, x, deadline, quick is not None)

    def _obeys_coulomb(self, pressing: Sequence[tuple[Rows, Floats]]) -> bool:
        """Whether friction is nowhere larger than it can be."""
        normal, size = np.concatenate([_friction(rows, forces) for rows, forces in pressing]).T
        return bool((size - self.friction * normal).max(initial=0.0) <= CONE_TOLERANCE * normal.max(initial=0.0))

    def _free_result(self, body: ContactBody, number: float) -> ContactResult:
        """Nothing is near."""
        self.state = self._with_self_contact(ContactState(body.free, number))
        none = np.zeros((len(self.obstacles), 3))
        return ContactResult(body.free, 0, 0.0, True, "", 0.0, 0, none, 0, np.zeros((0, 2)))

    def _next_state(
        self,
        body: ContactBody,
        number: float,
        found: ContactMinimum,
        nears: Sequence[ObstacleContacts],
        pressing: Sequence[tuple[Rows, Floats]],
    ) -> ContactState:
        """What the next frame needs to know of this one."""
        pressed, x = np.zeros(len(found.x), bool), found.x
        for rows, forces in pressing:
            pressed[rows.vertices[(forces > 0) & rows.is_contact, 0]] = True
        anchors = tuple(
            near.anchors and _kept_anchors(near.anchors, rows, forces, x)
            for near, (rows, forces) in zip(nears, pressing[:-1], strict=True)
        )
        away, push, before = x - body.free, found.rows.pushed(found.forces, len(x)), self.state
        drift, push_drift = (0.0, 0.0) if before is None else (before.drift, before.push_drift)
        if before is not None and number != before.number:
            drift = (away - before.displacement) / (number - before.number)
            push_drift = 0.0 if before.push is None else (push - before.push) / (number - before.number)
        faces = self._near_faces(x, nears, anchors)
        state = ContactState(
            x,
            number,
            away,
            drift,
            pressed,
            anchors,
            faces,
            model=found.model,
            push=push,
            push_drift=push_drift,
        )
        state = self._with_self_contact(state)
        # States are kept for every step, and what they keep goes on exactly.
        return replace(state, drift=0.0, push_drift=0.0, model=InverseHessian()) if body.has_inertia else state

    def _with_self_contact(self, state: ContactState) -> ContactState:
        own = self.self_contact
        return state if own is None else replace(state, tangled=own.tangled)

    def _near_faces(
        self, x: Floats, nears: Sequence[ObstacleContacts], anchors: Sequence[Anchors | None]
    ) -> tuple[SurfaceSamples, ...]:
        """The points on faces that each obstacle concerns and that are near it, or held by friction, at x."""
        found = []
        for near, anchor in zip(nears, anchors, strict=True):
            samples = reduce(SurfaceSamples.joined, near.inside, SurfaceSamples.none())
            close = near.obstacle.signed(samples.positions(x))[0] < 2 * self.watch.thickness
            samples = samples.chosen(close)
            if anchor is not None and near.swept is None:
                samples = anchor.samples.chosen(anchor.samples.on_faces).joined(samples)
            found.append(samples.once())
        return tuple(found)

    def _shortcoming(self, depth: float, crossed: int, settled: bool, lost: bool) -> str:
        """What is not as it should be at the end of a frame, as text; nothing if all is."""
        if depth > MAX_PENETRATION * self.diagonal:
            deep = f"{depth / self.diagonal:.1e} of the diagonal"
            return f"{deep} is still inside an obstacle: there may be no room for it"
        if crossed:
            return f"{crossed} pairs of its own triangles cross that should not"
        if lost:
            return "a thin obstacle was met too often on its way to be followed: the shape may be on its other side"
        if not settled:
            return "friction has not settled: what presses, and how strongly, changes from round to round"
        return ""

    def _is_free(self, x: Floats, free: Floats, nears: Sequence[ObstacleContacts]) -> bool:
        """Whether nothing is near the free shape, or in its path to there from x."""
        if nears:
            reach = self.watch.thickness + 2 * self.watch.longest_edge
            if any((self.watch.distance(near.obstacle, free, reach) < reach).any() for near in nears):
                return False
        return self._is_reachable(x, free, nears)

    def _is_reachable(self, x: Floats, free: Floats, nears: Sequence[ObstacleContacts]) -> bool:
        """Whether nothing is in the path from x to the free shape."""
        for near in nears:
            if near.planes or (near.swept is not None and near.swept.meet(x, free)[0] < 1):
                return False
            if len(passed_through(near.obstacle, x[: self.surface], free[: self.surface])[0]):
                return False
        return self.self_contact is None or np.array_equal(x, free) or self.self_contact.meet(x, free)[0] == 1

    def check_start(self, free: Floats) -> None:
        """Refuse obstacles around the whole of the first frame's shape (n, 3): it has no side to give way to."""
        for k, moving in enumerate(self.obstacles):
            if (moving.at(0).signed(free[: self.surface])[0] < 0).all():
                what = f"obstacle {k + 1} encloses the whole shape in the first frame; move it, or make it smaller"
                raise InputError(what, argument=("obstacles", k))

    def penetration(self, x: Floats, number: float) -> float:
        """How deep points x are in the obstacles of a frame; a length."""
        return self.watch.examined(x, [ObstacleContacts(moving.at(number), None) for moving in self.obstacles])[0]

    def _contacts_at(self, number: float) -> list[ObstacleContacts]:
        """The obstacles at a frame, with the anchors of the one before carried along."""
        nears, before = [], self.state
        for k, moving in enumerate(self.obstacles):
            obstacle, anchors = moving.at(number), before.anchors[k] if before is not None and before.anchors else None
            if anchors is not None and before is not None:
                anchors = replace(anchors, positions=moving.at(before.number).carried(anchors.positions, obstacle))
            # Points on faces that were near are watched from the beginning, or contact would come and go with them.
            faces = [before.faces[k]] if before is not None and before.faces else []
            nears.append(ObstacleContacts(obstacle, anchors, faces))
        return nears

    def _hold(
        self,
        body: ContactBody,
        x: Floats,
        nears: Sequence[ObstacleContacts],
        pressing: Sequence[tuple[Rows, Floats]],
    ) -> bool:
        """Let friction hold the points that are pressed without it, from where they are. Whether there were none.

        With inertia, from where they were at the beginning of the step, carried along with the obstacle.
        """
        settled, before = True, self.state
        for k, (near, (rows, forces)) in enumerate(zip(nears, pressing[:-1], strict=True)):
            unheld = (forces > 0) & rows.is_contact
            unheld[rows.friction_pairs[1]] = False
            if not self.friction or not unheld.any():
                continue
            samples = SurfaceSamples(rows.vertices[unheld], rows.weights[unheld])
            positions = samples.positions(x)
            if body.has_inertia and before is not None:
                earlier = self.obstacles[k].at(before.number)
                positions = earlier.carried(samples.positions(before.x), near.obstacle)
            anchors, settled = Anchors(samples, positions), False
            near.anchors = anchors if near.anchors is None else near.anchors.joined(anchors)
        return settled


class ContactFrame:
    """A frame of a body in contact: where it has been led to, and what it meets there."""

    def __init__(
        self,
        solver: ContactSolver,
        number: float,
        nears: list[ObstacleContacts],
        x: Floats,
        deadline: float,
        quick: bool,
    ) -> None:
        self._solver, self._number, self._nears, self.x = solver, number, nears, x
        self._deadline, self._quick = deadline, quick
        self._rows: Rows | None = None
        self._forces: Floats | None = None
        self._released = False

    @property
    def in_contact(self) -> bool:
        """Whether something presses on it, as far as is known."""
        return self._forces is not None and bool(self._forces.any())

    def pressed(self, body: ContactBody) -> LocalContactsStep:
        """How contact moves a body that gives way locally, to first order from where it has been led to."""
        if self._rows is None:
            watched = WatchedRows(self._solver.watch, self._solver.self_contact, self._nears, hardness(body))
            watched.refresh(self.x)
            self._rows = watched.rows(self.x)
        assert isinstance(body.compliance, LocalCompliance)
        move = LocalContactsStep(body, body.compliance, self._rows, body.free - self.x, guess=self._forces)
        self._forces = move.forces
        return move

    def settled(self, body: ContactBody, *, iterations: int, watch: Any = None) -> ContactResult:
        """The shape in contact, which is the solver's state from now on."""
        solver, before, nears, x = self._solver, self._solver.state, self._nears, self.x
        own, diagonal = solver.self_contact, solver.diagonal
        if not self.in_contact and solver._is_free(x, body.free, nears):
            x = body.free
            if body.has_inertia:
                return solver._free_result(body, self._number)
        model = InverseHessian() if before is None else before.model.copy()
        push, boost, steps, unheld = None if before is None else before.push_at(self._number), 1.0, 0, 0
        for _ in range(1 if self._quick else MAX_CONTACT_ROUNDS):
            watched = WatchedRows(solver.watch, own, nears, boost * hardness(body))
            most, until = max(iterations - steps, 1), self._deadline
            if isinstance(body.compliance, LocalCompliance):
                found = settle(
                    body, body.compliance, watched, x, forces=None if self._nears else self._forces,
                    farthest=MAX_STRIDE * solver.diagonal, deadline=until, iterations=most,
                )  # fmt: skip
                self._forces = found.forces
            else:
                most = min(most, FRICTION_ROUND_ITERATIONS) if solver.friction and not self._quick else most
                found = minimise(
                    body, watched.rows, x, model, pressed=None if before is None else before.pressed, push=push,
                    farthest=MAX_STRIDE * solver.diagonal, meet=watched.meet if watched.meets else None,
                    refresh=watched.refresh, deadline=until, iterations=most, watch=watch,
                )  # fmt: skip
            x, steps, model = found.x, steps + found.iterations, found.model
            if self._is_released(body, found):
                x, push, self._released = body.free, None, True
                continue
            push = found.rows.pushed(found.forces, len(x))
            depth, new = (0.0, False) if self._quick else solver.watch.examined(x, nears)
            crossed = own.crossings(x) if own is not None and not self._quick else 0
            clear = depth <= MAX_PENETRATION * diagonal and not new and not crossed
            # Friction takes hold where the body has come to, at rest or after a round, not of what is in an obstacle.
            pressing = watched.by_obstacle(x, found.forces)
            anchored = clear and solver._hold(body, x, nears, pressing)
            # At rest, what is held from where it is needs no friction yet: the balance stays.
            anchored = anchored or (clear and found.converged and not body.has_inertia)
            settled = anchored and solver._obeys_coulomb(pressing)
            soft = found.blocked and not found.converged and boost < MAX_BOOST
            unfinished = found.iterations == most and steps < iterations and not found.converged
            unheld, more = unheld + (clear and not settled and not unfinished), soft or unfinished
            if (settled and not more) or unheld > MAX_FRICTION_ROUNDS or thread_time() > self._deadline:
                break
            if soft or (depth > MAX_PENETRATION * diagonal and not new):
                boost = min(10 * boost, MAX_BOOST)
        lost = any(near.lost for near in nears)
        message = solver._shortcoming(depth, crossed, settled or self._quick, lost)
        if not found.converged and not message:
            message = f"stopped after {steps} iterations, at {found.residual:.1e} of the first force"
        solver.state = solver._next_state(body, self._number, found, nears, pressing)
        reactions, contacts = _pressed(pressing)
        rubbing = pressing[:-1] if solver.friction else ()
        friction = np.concatenate([np.zeros((0, 2)), *(_friction(rows, forces) for rows, forces in rubbing)])
        return ContactResult(
            x, steps, found.residual, not message, message, depth, contacts, reactions, crossed, friction
        )

    def _is_released(self, body: ContactBody, found: ContactMinimum) -> bool:
        """Whether, for the first time, nothing presses, and the free shape may be begun from: nothing remains then."""
        if self._quick or self._released or body.has_inertia or found.forces.any():
            return False
        watch, free = self._solver.watch, body.free
        far = all(
            (watch.distance(near.obstacle, free, watch.thickness) >= watch.thickness).all() for near in self._nears
        )
        return (
            far and self._solver._is_reachable(found.x, free, self._nears) and not watch.examined(free, self._nears)[0]
        )


def _pressed(pressing: Sequence[tuple[Rows, Floats]]) -> tuple[Floats, int]:
    """(obstacles, 3) the force on each obstacle, and at how many points the body is pushed: several rows may be at one.

    pressing: rows and their forces, of each obstacle and of the body itself last.
    """
    reactions = -np.array([forces @ rows.directions for rows, forces in pressing[:-1]]).reshape(-1, 3)
    contacts = 0
    for rows, forces in pressing:
        some = rows.chosen((forces > 0) & rows.is_contact)
        contacts += len(np.unique(np.concatenate([some.vertices, np.round(some.weights, 6)], axis=1), axis=0))
    return reactions, contacts


def _friction(rows: Rows, forces: Floats) -> Floats:
    """(k, 2) the normal force and the size of the friction, at each point that is pressed or held.

    Points that are held from the end of this frame on have none yet.
    """
    (pairs, normal), size = rows.friction_pairs, np.zeros(len(rows))
    size[normal] = np.linalg.norm(forces[pairs], axis=1)
    can = rows.is_contact & (forces > 0)
    can[normal] = True
    return np.column_stack([forces[can], size[can]])


def _kept_anchors(anchors: Anchors, rows: Rows, forces: Floats, x: Floats) -> Anchors | None:
    """Those of points that are still pressed: points that slide are held where they are now, and others still there."""
    contacts, kept = np.flatnonzero(rows.is_contact), anchors.samples
    which, row = anchors.rows(rows.chosen(rows.is_contact))
    row = contacts[row]
    normal, friction = forces[row], np.zeros(len(rows))
    pairs, bounding = rows.friction_pairs  # the last anchors may have none yet
    friction[bounding] = np.linalg.norm(forces[pairs], axis=1)
    sliding = friction[row] >= STICKING_SHARE * rows.friction.max(initial=0.0) * normal
    here = SurfaceSamples(rows.vertices[row], rows.weights[row])
    positions = np.where(sliding[:, None], here.positions(x), anchors.positions[which])
    weights = np.where(sliding[:, None], here.weights, kept.weights[which])
    samples, pressed = SurfaceSamples(here.vertices, weights), normal > 0
    return Anchors(samples.chosen(pressed), positions[pressed]) if pressed.any() else None

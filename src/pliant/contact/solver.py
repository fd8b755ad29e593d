"""An elastic body in contact, frame by frame or step by step (Ma et al. 2011, Section 4, completed).

One solver for every engine; what it needs of a body is `ContactBody`. The shape that a frame has by itself is what the
body springs back to. From there, in rounds:

1. Rows of contact are gathered: surface vertices near an obstacle; points on edges and faces that are inside one, and
   corners of an obstacle that are inside the body; vertices that went through an obstacle since the frame before, which
   are kept on the side they came from; and vertices and triangles of the body itself that faced each other.
2. The body's energy and the rows' are minimised together (`pliant.contact.response`), with Coulomb's friction.
3. The shape is examined anew, all of it. A round that finds nothing deeper than `MAX_PENETRATION`, and no point that
   presses without friction, ends the frame.

Rows push and never pull, so contacts end when the surface wants to leave, and friction ends with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from time import thread_time
from typing import Any

import numpy as np

from pliant.contact.body import ContactBody
from pliant.contact.constraints import Anchors, SurfaceSamples, passed_through
from pliant.contact.forces import Rows
from pliant.contact.inverse_hessian import InverseHessian
from pliant.contact.obstacles import MovingObstacle, Obstacle
from pliant.contact.response import ContactMinimum, minimise
from pliant.contact.self_contact import SELF_WATCH_DISTANCE, SelfContact
from pliant.contact.state import ContactState
from pliant.contact.steps import deflected
from pliant.contact.watched_rows import MAX_PENETRATION, ObstacleContacts, SurfaceWatch, WatchedRows, together
from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.numerics.linalg import one_blas_thread

DEFAULT_THICKNESS = 1e-3
"""Distance kept, over the diagonal, if none is given."""
CONTACT_STIFFNESS = 300.0
"""Stiffness of a contact, over that of the vertex it acts on."""
MAX_STRIDE = 0.02
"""Motion, over the diagonal, that one step may make; `MAX_STRIDES` steps at most lead to where a frame starts."""
MAX_STRIDES = 400
MAX_CONTACT_ROUNDS = 12
MAX_FRICTION_ROUNDS = 5
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
    coefficient. thickness: distance kept. rest: (count, 3) the surface at rest, if the body may meet itself.
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
        count: int | None = None,
    ) -> None:
        self.diagonal, self.obstacles, self.friction = diagonal, obstacles, friction
        kept = DEFAULT_THICKNESS * diagonal if thickness is None else thickness
        self.surface = int(triangles.max(initial=-1)) + 1 if count is None else count
        self.watch = SurfaceWatch(triangles, self.surface, diagonal, kept, friction)
        self.self_contact = None if rest is None else SelfContact(triangles, rest, diagonal, kept)
        self._stride = (MAX_STRIDE if rest is None else 0.6 * SELF_WATCH_DISTANCE) * diagonal
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
            return self._frame(body, number, iterations, watch, quick)

    def _frame(
        self, body: ContactBody, number: float, iterations: int, watch: Any, quick: float | None
    ) -> ContactResult:
        rounds, seconds = (MAX_CONTACT_ROUNDS, MAX_FRAME_SECONDS) if quick is None else (1, quick)
        began, before = thread_time(), self.state
        nears = self._contacts_at(number)
        self.watch.begin(body.free)
        if self.self_contact is not None:
            self._begin_self_contact(self.self_contact, body)
        x, steps, boost, unheld = self._marched(body, number, nears, began + seconds / 2), 0, 1.0, 0
        if self._is_free(x, body.free, nears):
            x = body.free
            if body.has_inertia:
                return self._free_result(body, number)
        model = InverseHessian() if before is None else before.model.copy()
        push = None if before is None else before.push
        for _ in range(rounds):
            watched = WatchedRows(self.watch, self.self_contact, nears, boost * CONTACT_STIFFNESS * body.stiffness)
            found = minimise(
                body, watched.rows, x, model, pressed=None if before is None else before.pressed, push=push,
                farthest=self._stride, free_share=None if self.self_contact is None else self.self_contact.free_share,
                refresh=watched.refresh, deadline=began + seconds, iterations=max(iterations - steps, 1), watch=watch,
            )  # fmt: skip
            x, steps, model = found.x, steps + found.iterations, found.model
            push = found.rows.pushed(found.forces, len(x))
            depth, new = self.watch.examined(x, nears) if quick is None else (0.0, False)
            crossed = self.self_contact.crossings(x) if self.self_contact is not None and quick is None else 0
            clear = depth <= MAX_PENETRATION * self.diagonal and not new and not crossed
            # Friction takes hold where the body comes to rest, not of what is still on its way out of an obstacle.
            pressing = watched.by_obstacle(x, found.forces)
            settled = clear and self._hold(body, x, nears, pressing) and self._obeys_coulomb(pressing)
            unheld += clear and not settled
            if settled or unheld > MAX_FRICTION_ROUNDS or thread_time() - began > seconds:
                break
            if depth > MAX_PENETRATION * self.diagonal and not new:
                boost = min(10 * boost, 1e4)
        message = self._shortcoming(depth, crossed, settled or quick is not None)
        if not found.converged and not message:
            message = f"stopped after {steps} iterations, at {found.residual:.1e} of the first force"
        if self.self_contact is not None:
            self.self_contact.blocked = bool((pressing[-1][1] > 0).any())
        self.state = self._next_state(body, number, found, nears, pressing)
        reactions, contacts = _pressed(pressing)
        friction = np.concatenate([np.zeros((0, 2)), *(_friction(rows, forces) for rows, forces in pressing)])
        return ContactResult(
            x, steps, found.residual, not message, message, depth, contacts, reactions, crossed, friction
        )

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
        away, before, drift = x - body.free, self.state, 0.0 if self.state is None else self.state.drift
        if before is not None and number != before.number:
            drift = (away - before.displacement) / (number - before.number)
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
            push=found.rows.pushed(found.forces, len(x)),
        )
        state = self._with_self_contact(state)
        # States are kept for every step, and what they keep goes on exactly.
        return replace(state, drift=0.0, model=InverseHessian()) if body.has_inertia else state

    def _begin_self_contact(self, own: SelfContact, body: ContactBody) -> None:
        """A frame begins; with inertia, by what the state tells alone."""
        before = self.state
        if before is not None and body.has_inertia:
            own.go_on(before.blocked, before.tangled)
        own.begin(body.free if before is None else before.x)

    def _with_self_contact(self, state: ContactState) -> ContactState:
        own = self.self_contact
        return state if own is None else replace(state, blocked=own.blocked, tangled=own.tangled)

    def _near_faces(
        self, x: Floats, nears: Sequence[ObstacleContacts], anchors: Sequence[Anchors | None]
    ) -> tuple[SurfaceSamples, ...]:
        """The points on faces that each obstacle concerns and that are near it, or held by friction, at x."""
        found = []
        for near, anchor in zip(nears, anchors, strict=True):
            samples = reduce(SurfaceSamples.joined, near.inside, SurfaceSamples.none())
            close = near.obstacle.signed(samples.positions(x))[0] < 2 * self.watch.thickness
            samples = samples.chosen(close)
            if anchor is not None:
                samples = anchor.samples.chosen(anchor.samples.on_faces).joined(samples)
            found.append(samples.once())
        return tuple(found)

    def _shortcoming(self, depth: float, crossed: int, settled: bool) -> str:
        """What is not as it should be at the end of a frame, as text; nothing if all is."""
        if depth > MAX_PENETRATION * self.diagonal:
            deep = f"{depth / self.diagonal:.1e} of the diagonal"
            return f"{deep} is still inside an obstacle: there may be no room for it"
        if crossed:
            return f"{crossed} pairs of its own triangles cross that should not"
        if not settled:
            return "friction has not settled: what presses, and how strongly, changes from round to round"
        return ""

    def _marched(self, body: ContactBody, number: float, nears: Sequence[ObstacleContacts], deadline: float) -> Floats:
        """Where to start: the free shape, displaced as its contacts would go on displacing it.

        It is approached from the frame before, in steps so small that contacts can be foreseen, with the obstacles on
        their path, so that the body stays on the side of them where it is. A vertex that gets through all the same is
        kept on the side where it entered.
        """
        before = self.state
        if before is None:
            return body.free
        x, last = before.x, before.number
        rho, goal = CONTACT_STIFFNESS * body.stiffness, body.constrained(body.free + before.displacement)
        placed = [moving.at(last) for moving in self.obstacles]
        steps = self._strides(x, goal - x, placed, nears)
        if steps == 1 and self.self_contact is None:
            goal = body.constrained(goal + (number - last) * before.drift)
        # One stride cannot lead through an obstacle: what it leads into, the rounds push out, if it is not much.
        few = self.self_contact is None and before.pressed is not None
        for k in range(steps):
            if thread_time() > deadline:
                break
            d = (goal - x) / (steps - k)
            now = [moving.at(last + (number - last) * (k + 1) / steps) for moving in self.obstacles]
            moved = x + d if steps == 1 and few else self._stridden(x, d, now, rho, body)
            for earlier, after, near in zip(placed, now, nears, strict=True):
                start = earlier.carried(x[: self.surface], after)
                which, entries, normals = passed_through(after, start, moved[: self.surface])
                if len(which):
                    entries = after.carried(entries, near.obstacle)
                    near.planes.append((SurfaceSamples.at_vertices(which), entries, normals))
            x, placed = moved, now
        return body.constrained(x)

    def _is_free(self, x: Floats, free: Floats, nears: Sequence[ObstacleContacts]) -> bool:
        """Whether nothing is near the free shape, or in its path to there from x."""
        for near in nears:
            reach = self.watch.thickness + 2 * self.watch.longest_edge
            if near.planes or (self.watch.distance(near.obstacle, free, reach) < reach).any():
                return False
            if len(passed_through(near.obstacle, x[: self.surface], free[: self.surface])[0]):
                return False
        own = self.self_contact
        return own is None or (not own.blocked and own.free_share(x, free) == 1)

    def _stridden(self, x: Floats, d: Floats, obstacles: Sequence[Obstacle], rho: Floats, body: ContactBody) -> Floats:
        """A step of the march: what a motion d becomes by obstacles and, where it would lead through, by the body."""
        makers, own = [self.watch.watching(obstacle, x, rho) for obstacle in obstacles], self.self_contact
        moved = x + deflected(together([makers])(x), d, body)
        if own is None or (share := own.free_share(x, moved)) == 1:
            return moved
        goal, x = x + d, x + share * (moved - x)
        parts = int(np.ceil(np.linalg.norm((goal - x)[: self.surface], axis=1).max(initial=0.0) / self._stride))
        for k in range(parts):
            own.face(x)
            moved = x + deflected(together([makers, own.rows(rho)])(x), (goal - x) / (parts - k), body)
            x = x + own.free_share(x, moved) * (moved - x)
        return x

    def _strides(self, x: Floats, motion: Floats, placed: Sequence[Obstacle], nears: Sequence[ObstacleContacts]) -> int:
        """Into how many steps to divide the path of the body and of the obstacles to a frame."""
        far = float(np.linalg.norm(motion[: self.surface], axis=1).max(initial=0.0))
        stride, points = MAX_STRIDE * self.diagonal, x[: self.surface : max(self.surface // 200, 1)]
        for before, near in zip(placed, nears, strict=True):
            far += float(np.linalg.norm(before.carried(points, near.obstacle) - points, axis=1).max(initial=0.0))
            stride = min(stride, max(0.25 * before.thickness, 5e-4 * self.diagonal))
        return int(np.clip(np.ceil(far / stride), 1, MAX_STRIDES))

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
    """(k, 2) the normal force and the size of the friction, at each point that it can act on."""
    pairs, normal = rows.friction_pairs
    return np.column_stack([forces[normal], np.linalg.norm(forces[pairs], axis=1)])


def _kept_anchors(anchors: Anchors, rows: Rows, forces: Floats, x: Floats) -> Anchors | None:
    """Those of points that are still pressed: points that slide are held where they are now, and others still there."""
    which, row = anchors.rows(rows.chosen(rows.is_contact))
    normal, size = forces[row], np.zeros(len(row))
    pairs, _ = rows.friction_pairs  # the last anchors may have none yet
    size[: len(pairs)] = np.linalg.norm(forces[pairs], axis=1)
    sliding = size >= STICKING_SHARE * rows.friction.max(initial=0.0) * normal
    samples, pressed = SurfaceSamples(rows.vertices[row], rows.weights[row]), normal > 0
    positions = np.where(sliding[:, None], samples.positions(x), anchors.positions[which])
    return Anchors(samples.chosen(pressed), positions[pressed]) if pressed.any() else None

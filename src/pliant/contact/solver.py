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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from time import thread_time
from typing import Any

import numpy as np

from pliant.contact.body import ContactBody
from pliant.contact.collision_pairs import CollisionSurface
from pliant.contact.constraints import Anchors, SurfaceSamples, longest_edges, passed_through
from pliant.contact.forces import LocalCompliance, Rows
from pliant.contact.inverse_hessian import InverseHessian
from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.contact.obstacles import MovingObstacle, Obstacle
from pliant.contact.response import MAX_MEETINGS, ContactMinimum, minimise, settle
from pliant.contact.self_contact import SelfContact
from pliant.contact.solids import Box, Cylinder
from pliant.contact.state import ContactState
from pliant.contact.steps import LocalContactsStep, deflected, longest
from pliant.contact.swept import THIN_WATCH_DISTANCE, SweptContacts, SweptObstacle
from pliant.contact.watched_rows import MAX_PENETRATION, ObstacleContacts, SurfaceWatch, WatchedRows, together
from pliant.core.errors import InputError
from pliant.core.rotations import IDENTITY, match_rigid
from pliant.core.topology import Floats, Ints
from pliant.numerics.linalg import one_blas_thread

DEFAULT_THICKNESS = 1e-3
"""Distance kept, over the diagonal, if none is given."""
CONTACT_STIFFNESS, LOCAL_STIFFNESS = 300.0, 1e3
"""Stiffness of a contact, over that of the vertex it acts on; where vertices give way each by itself, and far."""
LEAD_ITERATIONS, MOST_LEAD_CONTACTS = 6, 400
"""Of each shape on a way that leads to a first frame, at most."""
MAX_STRIDE = 0.02
"""Motion, over the diagonal, that one step may make; `MAX_STRIDES` steps at most lead to where a frame starts."""
MAX_STRIDES = 400
FIRST_RETREAT, MAX_RETREAT = 0.01, 0.5
"""Distances, over the diagonal, from which an obstacle that is in the first shape is led there."""
MAX_PARTS, LEAST_PART = 80, 0.25
"""Parts, at most, in which a stride is made where obstacles and the body meet on it; the least share of a part that the
next one is where these meet.
"""
THIN_EDGES = 1.0
"""Thickness of an obstacle, over the longest edge of the body, up to which it has no inside to speak of."""
COARSE_EDGES = 3.0
"""Edges of an obstacle's triangles, over the distance watched, from which pairs alone keep a body off it: they are few
then, and tell both sides of a hollow, where signed distances have a kink.
"""
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

ObstaclePath = Callable[[float], Obstacle]
"""Where an obstacle is after a share of the way to a frame."""


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
        self._stride = MAX_STRIDE * diagonal
        self._swept: list[SweptObstacle] | None = None
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
        for body in bodies:
            met = self.frame(body, start.number, iterations=LEAD_ITERATIONS, quick=MAX_FRAME_SECONDS)
            if met.contacts > MOST_LEAD_CONTACTS:
                self.state = None
                break
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
        x = self._marched(body, number, nears, 0.5 * (began + deadline))
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

    def _marched(self, body: ContactBody, number: float, nears: Sequence[ObstacleContacts], deadline: float) -> Floats:
        """Where to start: the free shape, displaced as its contacts would go on displacing it.

        It is approached from the frame before, in steps so small that contacts can be foreseen, with the obstacles on
        their path, so that the body stays on the side of them where it is. A vertex that gets through all the same is
        kept on the side where it entered.
        """
        before = self.state
        paths: list[ObstaclePath] = [partial(self._between, moving, number) for moving in self.obstacles]
        if before is None:
            if isinstance(body.compliance, LocalCompliance):
                return body.free
            approaches = [self._approach(body.free, near.obstacle) for near in nears]
            if not any(approaches):
                return body.free
            before = ContactState(body.free, number)
            paths = [approach or path for approach, path in zip(approaches, paths, strict=True)]
        x, last = before.x, before.number
        rho, goal = _hardness(body), body.constrained(body.free + before.displacement)
        placed = [path(0.0) for path in paths]
        if not isinstance(body.compliance, LocalCompliance):
            self._sweep(x, goal, placed, nears)
        steps = self._strides(x, goal - x, placed, nears)
        if steps == 1 and self.self_contact is None:
            goal = body.constrained(goal + (number - last) * before.drift)
        # One stride cannot lead through an obstacle: what it leads into, the rounds push out, if it is not much.
        few = self.self_contact is None and before.pressed is not None and all(near.swept is None for near in nears)
        for k in range(steps):
            if thread_time() > deadline:
                for near in nears:
                    near.give_up()
                break
            d = (goal - x) / (steps - k)
            now = [path((k + 1) / steps) for path in paths]
            to = goal if k == steps - 1 else x + d
            moved = to if steps == 1 and few else self._stridden(x, to, now, nears, rho, body)
            for earlier, after, near in zip(placed, now, nears, strict=True):
                if near.swept is not None:
                    continue
                start = earlier.carried(x[: self.surface], after)
                which, entries, normals = passed_through(after, start, moved[: self.surface])
                if len(which):
                    entries = after.carried(entries, near.obstacle)
                    near.planes.append((SurfaceSamples.at_vertices(which), entries, normals))
            x, placed = moved, now
        return x if any(near.swept is not None for near in nears) else body.constrained(x)

    def _between(self, moving: MovingObstacle, number: float, share: float) -> Obstacle:
        """An obstacle on its path from the frame before to a frame."""
        last = number if self.state is None else self.state.number
        return moving.at(last + (number - last) * share)

    def _approach(self, free: Floats, obstacle: Obstacle) -> ObstaclePath | None:
        """A path for an obstacle that is in the first shape, (n, 3): from where it is outside, by the shortest way."""
        if not self.is_sharp(obstacle) or not self.watch.crosses(free, obstacle):
            return None
        distance, outward = obstacle.signed(free[: self.surface])
        pushed = outward[distance < 0].sum(axis=0)
        axes = np.linalg.svd(obstacle.surface.points - obstacle.surface.points.mean(axis=0), full_matrices=False)[2]
        least, best = np.inf, None
        for towards in (-pushed, obstacle.middle - free[: self.surface].mean(axis=0), *axes, *-axes):
            direction, far = towards / max(float(np.linalg.norm(towards)), 1e-300), FIRST_RETREAT * self.diagonal
            while direction.any() and far < min(least, MAX_RETREAT * self.diagonal):
                if not self.watch.crosses(free, obstacle.moved(IDENTITY, far * direction)):
                    least, best = far, far * direction
                far *= 1.3
        return None if best is None else lambda share: obstacle.moved(IDENTITY, (1 - share) * best)

    def _sweep(self, x: Floats, goal: Floats, placed: Sequence[Obstacle], nears: Sequence[ObstacleContacts]) -> None:
        """Let what has edges, or is thin, be met by its triangles, where nothing of it is in the body at x.

        Of cylinders, that is where the body may come near their rims on the way to `goal` (n, 3).
        """
        sharp = [
            self.is_sharp(obstacle) or (isinstance(obstacle, Cylinder) and self._nears_rim(x, goal, obstacle, near))
            for obstacle, near in zip(placed, nears, strict=True)
        ]
        if not any(sharp):
            return
        surface = np.ascontiguousarray(x[: self.surface])
        if self._swept is None:
            kept, edge = self.watch.thickness, THIN_EDGES * self.watch.longest_edge
            body = CollisionSurface(self.watch.triangles, surface, THIN_WATCH_DISTANCE * kept)
            alone = [self._is_coarse(o) or o.thickness < edge for o in placed]
            self._swept = [SweptObstacle(body, *each) for each in zip(placed, [kept] * len(placed), alone, strict=True)]
        for obstacle, near, swept, edged in zip(placed, nears, self._swept, sharp, strict=True):
            if edged and not self.watch.crosses(x, obstacle):
                near.swept = SweptContacts(swept, swept.points(obstacle))

    def _is_coarse(self, obstacle: Obstacle) -> bool:
        """Whether few triangles of a mesh are near a vertex."""
        if not isinstance(obstacle, MeshObstacle):
            return False
        edges = longest_edges(obstacle.surface.points, obstacle.surface.triangles)
        return bool(edges.mean() > COARSE_EDGES * THIN_WATCH_DISTANCE * self.watch.thickness)

    def _nears_rim(self, x: Floats, goal: Floats, cylinder: Cylinder, near: ObstacleContacts) -> bool:
        """Whether faces of the body may meet a cylinder's rim on the way to a frame."""
        points = x[: self.surface]
        away = np.linalg.norm((goal - x)[: self.surface], axis=1)
        away += np.linalg.norm(cylinder.carried(points, near.obstacle) - points, axis=1)
        return bool((cylinder.rim_distance(points) < away + self.watch.longest_edge).any())

    def is_sharp(self, obstacle: Obstacle) -> bool:
        """Whether an obstacle is met by its triangles, as it has edges or is thin."""
        thin = obstacle.thickness < THIN_EDGES * self.watch.longest_edge
        return thin or isinstance(obstacle, (Box, MeshObstacle))

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

    def _stridden(
        self,
        x: Floats,
        goal: Floats,
        obstacles: Sequence[Obstacle],
        nears: Sequence[ObstacleContacts],
        rho: Floats,
        body: ContactBody,
    ) -> Floats:
        """A step of the march: what the motion to a goal becomes by obstacles and, where it would lead through, by the
        body. It gets there exactly if nothing is in the way, so that this need not be asked again.

        Where it meets what is swept, all go on together to just before that, and from there.
        """
        own = self.self_contact
        both = list(zip(obstacles, nears, strict=True))
        swept = [(near, near.swept, near.swept.obstacle.points(o)) for o, near in both if near.swept is not None]
        d, left, part = goal - x, 1.0, 1.0
        for _ in range(MAX_PARTS if swept else 1):
            ahead = min(part / left, 1.0)
            goals = [some.points + ahead * (to - some.points) for _, some, to in swept]
            makers = [self.watch.watching(o, x, rho, faces=near.swept is None) for o, near in both if near.is_signed]
            for _ in range(MAX_MEETINGS):
                pairs = [some.rows(rho, to=to) for (_, some, _), to in zip(swept, goals, strict=True)]
                pairs += [] if own is None else [own.rows(rho)]
                step = deflected(together([makers, pairs])(x), ahead * d, body)
                moved = goal if np.array_equal(step, goal - x) else x + step
                met = [some.meet(x, moved, to) for (_, some, _), to in zip(swept, goals, strict=True)]
                met += [] if own is None else [own.meet(x, moved)]
                share = min((free for free, _ in met), default=1.0)
                if not any(new for _, new in met):
                    break
            x, d = moved if share == 1 else x + share * (moved - x), (1 - share * ahead) * d
            for (_, some, _), to in zip(swept, goals, strict=True):
                some.points = some.points + share * (to - some.points) if share < 1 else to
                some.refresh()
            left *= 1 - share * ahead
            if left == 0:
                return x
            # Rows foresee what meets on short paths better than on long ones.
            part = 2 * part if share == 1 else max(share, LEAST_PART) * min(part, left)
        for near, _, _ in swept:
            near.give_up()
        return moved if swept and own is None else x

    def _strides(self, x: Floats, motion: Floats, placed: Sequence[Obstacle], nears: Sequence[ObstacleContacts]) -> int:
        """Into how many steps to divide the path of the body and of the obstacles to a frame."""
        far = longest(motion[: self.surface])
        if not nears and far > MAX_STRIDE * self.diagonal:  # the body alone does not meet itself by moving as a whole
            far = longest(_without_rigid(x[: self.surface], motion[: self.surface]))
        stride, points = MAX_STRIDE * self.diagonal, x[: self.surface : max(self.surface // 200, 1)]
        for before, near in zip(placed, nears, strict=True):
            far += float(np.linalg.norm(before.carried(points, near.obstacle) - points, axis=1).max(initial=0.0))
            if near.swept is not None:
                continue
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


def _hardness(body: ContactBody) -> Floats:
    """(n,) stiffness of contacts at its points."""
    local = isinstance(body.compliance, LocalCompliance)
    return (LOCAL_STIFFNESS if local else CONTACT_STIFFNESS) * body.stiffness


def _without_rigid(x: Floats, motion: Floats) -> Floats:
    """(n, 3) a motion of points (n, 3) without the rigid motion that is nearest to it."""
    R, t = match_rigid(x, x + motion)
    return np.asarray(x + motion - x @ R.T - t)


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
            watched = WatchedRows(self._solver.watch, self._solver.self_contact, self._nears, _hardness(body))
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
            watched = WatchedRows(solver.watch, own, nears, boost * _hardness(body))
            most, until = max(iterations - steps, 1), self._deadline
            if isinstance(body.compliance, LocalCompliance):
                found = settle(
                    body, body.compliance, watched, x, forces=self._forces,
                    farthest=solver._stride, deadline=until, iterations=most,
                )  # fmt: skip
                self._forces = found.forces
            else:
                most = min(most, FRICTION_ROUND_ITERATIONS) if solver.friction and not self._quick else most
                found = minimise(
                    body, watched.rows, x, model, pressed=None if before is None else before.pressed, push=push,
                    farthest=solver._stride, meet=watched.meet if watched.meets else None,
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

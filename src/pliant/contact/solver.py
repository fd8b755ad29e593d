"""A body that gives way to what it touches, frame by frame (Ma et al. 2011, Section 4, completed).

The shape that a frame has by itself is what the body springs back to. From there, in rounds:

1. Rows of contact are gathered: surface vertices near an obstacle; points on edges and faces that are inside one, and
   corners of an obstacle that are inside the body; vertices that went through an obstacle since the frame before, which
   are kept on the side they came from; and vertices and triangles of the body itself that faced each other.
2. The body's energy and the rows' are minimised together (`pliant.contact.response`). Inner vertices are never held.
3. The shape is examined anew, all of it. A round that finds nothing deeper than `DEEPEST` ends the frame.

Rows push and never pull, so contacts end when the surface wants to leave, and without friction it slides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact.constraints import (
    Anchors,
    RowMaker,
    Samples,
    behind,
    face_samples,
    friction_rows,
    longest_edges,
    near_faces,
    obstacle_rows,
    passed_through,
    plane_rows,
    poking,
)
from pliant.contact.forces import Compliance, Rows
from pliant.contact.obstacles import MovingObstacle, Obstacle
from pliant.contact.response import MOST_ROWS, Model, pushed, relax
from pliant.contact.self_contact import WATCHED, OwnContact
from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.geometry.spatial import SurfaceTree
from pliant.numerics.linalg import one_blas_thread

DEEPEST = 1e-4
"""Penetration, over the diagonal, that a frame may end with."""
THICKNESS = 1e-3
"""Distance kept, over the diagonal, if none is given."""
NEAR = 0.06
"""Distance from an obstacle, over the diagonal, within which vertices are watched while a round moves them."""
STIFF = 300.0
"""Stiffness of a contact, over that of the vertex it acts on."""
MARCH = 0.02
"""Motion, over the diagonal, that one step may make; `MARCHES` steps at most lead to where a frame starts."""
MARCHES = 400
FINEST = 3
"""Parts, at most, into which the edges of faces are divided where an obstacle could slip between vertices."""
VISIBLE = 100.0
"""Accuracy is relative to the energy stored, but no finer than for moving so many vertices by the default thickness."""
LOADED = 0.1
"""Factor on the accuracy asked for: contacts move a body along its soft modes, where little energy is much motion."""
ROUNDS = 12
SETTLING = 5
"""Rounds, at most, for the pressure that bounds friction to become that of the shape it leads to."""
SECONDS = 20.0
"""Time that a frame's rounds may take before the best shape so far is taken."""


@dataclass
class Body:
    """An elastic body at one frame, in the world."""

    free: Floats
    """(n, 3) its shape without contact; surface vertices come first, and held ones are in their places."""
    elastic: Callable[[Floats, Floats], float]
    """From places and an array for the gradient to the energy."""
    stored: Callable[[], float]
    """The energy found last, without the work of external forces: what accuracy is relative to."""
    solve: Callable[[Floats], Floats]
    """L⁻¹ of vectors (n, 3), zero at held vertices; L is near the energy's second derivative."""
    compliance: Compliance
    stiffness: Floats
    """(n,) the diagonal of L."""
    held: NDArray[np.bool_]
    """(n,) vertices that are in their places."""


@dataclass(frozen=True, eq=False)
class Touched:
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


@dataclass
class _Near:
    """One obstacle in one frame, and the points of the body that it concerns besides the vertices near it."""

    obstacle: Obstacle
    anchors: Anchors | None
    inside: list[Samples] = field(default_factory=list)
    """Points on edges and faces."""
    planes: list[tuple[Samples, Floats, Floats]] = field(default_factory=list)
    """Points that must stay on the outer side of planes: places on them, and normals."""


class Touch:
    """The contacts of a body through a clip: what it touches, and what the frame before was like.

    triangles: (t, 3) of the body's surface, whose vertices come first. friction: Coulomb's coefficient. thickness:
    distance kept. itself: (surface, 3) a shape at rest, if the body may touch itself.
    """

    def __init__(
        self,
        triangles: Ints,
        diagonal: float,
        *,
        obstacles: Sequence[MovingObstacle] = (),
        friction: float = 0.0,
        thickness: float | None = None,
        itself: Floats | None = None,
    ) -> None:
        self.triangles, self.diagonal = triangles, diagonal
        self.obstacles, self.friction = obstacles, friction
        self.h = THICKNESS * diagonal if thickness is None else thickness
        self.own = None if itself is None else OwnContact(triangles, itself, diagonal, self.h)
        self._stride = (MARCH if itself is None else 0.6 * WATCHED) * diagonal
        self.surface = int(triangles.max(initial=-1)) + 1
        self._longest = 0.0  # edge of a face in this frame
        self._tree: SurfaceTree | None = None
        self._before: tuple[Floats, Floats, float] | None = None  # the last shape, the same untouched, its number
        self._drift: Floats | float = 0.0  # how the displacement by contacts changes, a frame
        self._were_pressed: NDArray[np.bool_] | None = None  # vertices that were
        self._placed: list[Obstacle] = []
        self._anchors: list[Anchors | None] = [None] * len(obstacles)
        self._model = Model()  # of the energy, from the frames before

    def frame(
        self,
        body: Body,
        number: float,
        *,
        tolerance: float,
        iterations: int,
        watch: Any = None,
        hurry: float | None = None,
    ) -> Touched:
        """The shape of a body at a frame, which must follow the one asked for before.

        hurry: seconds that there are for one round alone, after which the shape is not examined.
        """
        with one_blas_thread():
            return self._frame(body, number, tolerance, iterations, watch, hurry)

    def _frame(
        self, body: Body, number: float, tolerance: float, iterations: int, watch: Any, hurry: float | None
    ) -> Touched:
        rounds, seconds = (ROUNDS, SECONDS) if hurry is None else (1, hurry)
        began = thread_time()
        nears = self._nears(number)
        self._longest = float(longest_edges(body.free, self.triangles).max(initial=0.0))
        if self.own is not None:
            self.own.begin(body.free if self._before is None else self._before[0])
        least = VISIBLE * float(body.stiffness.mean()) * (THICKNESS * self.diagonal) ** 2
        x, steps, boost, gripped = self._marched(body, number, nears, began + seconds / 2), 0, 1.0, 0
        if self._is_free(x, body.free, nears):
            x = body.free
        for _ in range(rounds):
            rho = boost * STIFF * body.stiffness
            watched = _Watched(self, nears, rho)
            relaxed = relax(
                body.elastic, body.solve, body.compliance, watched.rows, x, self._model, pressed=self._were_pressed,
                tolerance=tolerance, scale=lambda: max(LOADED * body.stored(), least),
                farthest=self._stride, share=None if self.own is None else self.own.share,
                refresh=watched.refresh, deadline=began + seconds,
                iterations=max(iterations - steps, 1), watch=watch,
            )  # fmt: skip
            x, steps, self._model = relaxed.x, steps + relaxed.iterations, relaxed.model
            depth, new = self._examined(x, nears) if hurry is None else (0.0, False)
            crossed = self.own.crossings(x) if self.own is not None and hurry is None else 0
            clear = depth <= DEEPEST * self.diagonal and not new and not crossed
            # Friction takes hold where the body comes to rest, not of what is still on its way out of an obstacle.
            settled = clear and self._grip(x, nears, watched, relaxed.forces)
            gripped += clear and not settled
            if settled or gripped > SETTLING:
                break
            if depth > DEEPEST * self.diagonal and not new:
                boost = min(10 * boost, 1e4)
            if thread_time() - began > seconds:
                break
        pressing = watched.by_obstacle(x, relaxed.forces)
        message = self._shortcoming(depth, crossed, settled)
        if not relaxed.converged and not message:
            message = f"stopped after {steps} iterations, at {relaxed.residual:.1e} of the first force"
        if self._before is not None and number != self._before[2]:
            was, untouched, last = self._before
            self._drift = (x - body.free - was + untouched) / (number - last)
        self._were_pressed = np.zeros(len(x), bool)
        for rows, forces in pressing:
            self._were_pressed[rows.vertices[forces > 0, 0]] = True
        self._before, self._placed = (x, body.free, number), [near.obstacle for near in nears]
        if self.own is not None:
            self.own.blocked = bool((pressing[-1][1] > 0).any())
        self._anchors = [
            a and a.slid(x, self.friction, rho[a.samples.vertices[:, 0]]) for a in (near.anchors for near in nears)
        ]
        reactions, contacts = _pressed(pressing)
        return Touched(x, steps, relaxed.residual, not message, message, depth, contacts, reactions, crossed)

    def _shortcoming(self, depth: float, crossed: int, settled: bool) -> str:
        """What is not as it should be at the end of a frame, in words; nothing if all is."""
        if depth > DEEPEST * self.diagonal:
            deep = f"{depth / self.diagonal:.1e} of the diagonal"
            return f"{deep} is still inside an obstacle: there may be no room for it"
        if crossed:
            return f"{crossed} pairs of its own triangles cross that should not"
        if not settled:
            return "friction has not settled: the pressure that bounds it still changes from round to round"
        return ""

    def _marched(self, body: Body, number: float, nears: Sequence[_Near], deadline: float) -> Floats:
        """Where to start: the free shape, displaced as its contacts would go on displacing it.

        It is approached from the frame before, in steps so small that contacts can be foreseen, with the obstacles on
        their way, so that the body stays on the side of them where it is. A vertex that gets through all the same is
        kept on the side where it entered.
        """
        if self._before is None:
            return body.free
        x, untouched, last = self._before
        movable = ~body.held[:, None]
        goal = body.free + movable * (x - untouched)
        rho = STIFF * body.stiffness
        placed, steps = self._placed, self._strides(goal - x, nears)
        if steps == 1 and self.own is None:
            goal += movable * (number - last) * self._drift
        # One stride cannot lead through an obstacle: what it leads into, the rounds push out, if it is not much.
        few = self.own is None and self._were_pressed is not None and self._were_pressed.sum() < MOST_ROWS // 2
        for k in range(steps):
            if thread_time() > deadline:
                break
            d = (goal - x) / (steps - k)
            now = [moving.at(last + (number - last) * (k + 1) / steps) for moving in self.obstacles]
            moved = x + d if steps == 1 and few else self._stridden(x, d, now, rho, body)
            for before, after, near in zip(placed, now, nears, strict=True):
                start = before.carried(x[: self.surface], after)
                which, entries, normals = passed_through(after, start, moved[: self.surface])
                if len(which):
                    entries = after.carried(entries, near.obstacle)
                    near.planes.append((Samples.at_vertices(which), entries, normals))
            x, placed = moved, now
        return np.where(movable, x, goal)

    def _is_free(self, x: Floats, free: Floats, nears: Sequence[_Near]) -> bool:
        """Whether nothing is near the free shape, or in its way to there from x."""
        for near in nears:
            reach = self.h + 2 * self._longest
            if near.planes or (self._distance(near.obstacle, free, reach) < reach).any():
                return False
            if len(passed_through(near.obstacle, x[: self.surface], free[: self.surface])[0]):
                return False
        return self.own is None or (not self.own.blocked and self.own.share(x, free) == 1)

    def _stridden(self, x: Floats, d: Floats, obstacles: Sequence[Obstacle], rho: Floats, body: Body) -> Floats:
        """A step of the march: what a motion d becomes by obstacles and, where it would lead through, by the body."""
        makers = [self._watching(obstacle, x, rho) for obstacle in obstacles]
        moved = x + pushed(_together([makers])(x), d, body.compliance, body.solve)
        if self.own is None or (share := self.own.share(x, moved)) == 1:
            return moved
        goal, x = x + d, x + share * (moved - x)
        parts = int(np.ceil(np.linalg.norm((goal - x)[: self.surface], axis=1).max(initial=0.0) / self._stride))
        for k in range(parts):
            self.own.face(x)
            moved = x + pushed(
                _together([makers, self.own.rows(rho)])(x), (goal - x) / (parts - k), body.compliance, body.solve
            )
            x = x + self.own.share(x, moved) * (moved - x)
        return x

    def _strides(self, motion: Floats, nears: Sequence[_Near]) -> int:
        """Into how many steps to divide the way of the body and of the obstacles to a frame."""
        far = float(np.linalg.norm(motion[: self.surface], axis=1).max(initial=0.0))
        stride = MARCH * self.diagonal
        for before, near in zip(self._placed, nears, strict=True):
            places = self._before[0][: self.surface : max(self.surface // 200, 1)] if self._before else motion[:0]
            far += float(np.linalg.norm(before.carried(places, near.obstacle) - places, axis=1).max(initial=0.0))
            stride = min(stride, max(0.25 * before.thickness, 5e-4 * self.diagonal))
        return int(np.clip(np.ceil(far / stride), 1, MARCHES))

    def check_start(self, free: Floats) -> None:
        """Refuse obstacles around the whole of the first frame's shape (n, 3): it has no side to give way to."""
        for k, moving in enumerate(self.obstacles):
            if (moving.at(0).signed(free[: self.surface])[0] < 0).all():
                what = f"obstacle {k + 1} encloses the whole shape in the first frame; move it, or make it smaller"
                raise InputError(what, argument=("obstacles", k))

    def _nears(self, number: float) -> list[_Near]:
        """The obstacles at a frame."""
        nears = []
        for k, moving in enumerate(self.obstacles):
            obstacle, anchors = moving.at(number), self._anchors[k]
            if anchors is not None:
                anchors = replace(anchors, places=self._placed[k].carried(anchors.places, obstacle))
            nears.append(_Near(obstacle, anchors))
        return nears

    def _watching(self, obstacle: Obstacle, x: Floats, rho: Floats) -> RowMaker:
        """Rows of the vertices near an obstacle at x and, if it could slip between them, of places on faces."""
        reach = self.h + NEAR * self.diagonal
        distance = self._distance(obstacle, x, reach)
        samples = Samples.at_vertices(np.flatnonzero(distance < reach))
        if obstacle.thickness < 2 * self._longest:
            sides = int(np.clip(np.ceil(2 * self._longest / obstacle.thickness), 2, FINEST))
            reach = min(reach, 2 * obstacle.thickness)
            samples = samples.joined(near_faces(x, distance, self.triangles, sides, reach))
        return obstacle_rows(obstacle, samples, self.h, rho[samples.vertices[:, 0]])

    def _distance(self, obstacle: Obstacle, x: Floats, reach: float) -> Floats:
        """(surface vertices,) from an obstacle; infinite for those beyond `reach`."""
        distance = np.full(self.surface, np.inf)
        near = np.flatnonzero(obstacle.clearance(x[: self.surface]) <= reach)
        distance[near] = obstacle.signed(x[near])[0]
        return distance

    def _makers(self, near: _Near, x: Floats, rho: Floats) -> list[RowMaker]:
        """Rows of one obstacle."""
        makers = [self._watching(near.obstacle, x, rho)]
        for samples in near.inside:
            makers.append(obstacle_rows(near.obstacle, samples, self.h, rho[samples.vertices[:, 0]]))
        for samples, places, normals in near.planes:
            makers.append(plane_rows(samples, places, normals, self.h, rho[samples.vertices[:, 0]]))
        if self.friction and near.anchors is not None:
            held = rho[near.anchors.samples.vertices[:, 0]]
            makers.append(friction_rows(near.anchors, self.friction, held, x))
        return makers

    def _examined(self, x: Floats, nears: Sequence[_Near]) -> tuple[float, bool]:
        """How deep the body is in an obstacle, anywhere on its surface; and whether points were found to add."""
        deepest, new = 0.0, False
        allowed, tree = DEEPEST * self.diagonal, self._tree_at(x)
        for near in nears:
            distance = self._distance(near.obstacle, x, 2 * self._longest + self.h)
            deepest = max(deepest, -float(distance.min(initial=0.0)))
            crossing = tree.crossings(near.obstacle.tree)
            crossed = self.triangles[np.unique(crossing[:, 0])]
            inside, depth = face_samples(near.obstacle, x, distance, self.triangles, crossed, 0.5 * allowed)
            deepest = max(deepest, depth)
            if len(inside) and depth > allowed:
                wrong, places, ways = behind(near.obstacle, x, inside)
                near.inside.append(inside.chosen(~wrong))
                near.planes.append((inside.chosen(wrong), places, ways))
                new = True
            poked, places, ways, depth = poking(near.obstacle, x, tree, np.unique(crossing[:, 1]), 0.5 * allowed)
            deepest = max(deepest, depth)
            if len(poked) and depth > allowed:
                near.planes.append((poked, places, ways))
                new = True
        return deepest, new

    def _grip(self, x: Floats, nears: Sequence[_Near], watched: _Watched, forces: Floats) -> bool:
        """Let friction hold the points that are pressed now, where they are, or where they already stuck.

        Whether it already held them, about as strongly.
        """
        settled = True
        if not self.friction:
            return settled
        for near, (rows, pressing) in zip(nears, watched.by_obstacle(x, forces)[:-1], strict=True):
            anchors = Anchors.of(rows, pressing, x)
            if near.anchors is not None:
                anchors = anchors.keeping(near.anchors)
            settled &= not len(anchors.samples) or anchors.pressed_like(near.anchors)
            near.anchors = anchors if len(anchors.samples) else None
        return settled

    def _tree_at(self, x: Floats) -> SurfaceTree:
        """The body's surface, prepared for questions."""
        surface = x[: self.surface]
        self._tree = SurfaceTree(surface, self.triangles) if self._tree is None else self._tree.moved(surface)
        return self._tree


class _Watched:
    """What one round watches, chosen anew when the body has moved so far that other points may be near."""

    def __init__(self, touch: Touch, nears: Sequence[_Near], rho: Floats) -> None:
        self.touch, self.nears, self.rho = touch, nears, rho
        self.at: Floats | None = None
        self.obstacles: list[list[RowMaker]] = []
        self.own: list[RowMaker] = []

    def refresh(self, x: Floats) -> bool:
        """Choose what to watch at a shape; whether that is new."""
        touch = self.touch
        faced = touch.own is not None and touch.own.face(x)
        far = self.at is None or np.abs(x - self.at)[: touch.surface].max(initial=0.0) > 0.5 * NEAR * touch.diagonal
        if touch.own is not None and (faced or self.at is None):  # the march may have faced it already
            self.own = touch.own.rows(self.rho)
        if far:
            self.at = x
            self.obstacles = [touch._makers(near, x, self.rho) for near in self.nears]
        return faced or far

    def rows(self, x: Floats) -> Rows:
        """All rows at a shape."""
        return _together([*self.obstacles, self.own])(x)

    def by_obstacle(self, x: Floats, forces: Floats) -> list[tuple[Rows, Floats]]:
        """The rows of each obstacle, and of the body itself last, with their share of forces that belong to all."""
        rows = [_together([makers])(x) for makers in (*self.obstacles, self.own)]
        return list(zip(rows, np.split(forces, np.cumsum([len(some) for some in rows])[:-1]), strict=True))


def _pressed(pressing: Sequence[tuple[Rows, Floats]]) -> tuple[Floats, int]:
    """(obstacles, 3) the force on each obstacle, and at how many places the body is pushed: several rows may be at one.

    pressing: rows and their forces, of each obstacle and of the body itself last.
    """
    reactions = -np.array([forces @ rows.directions for rows, forces in pressing[:-1]]).reshape(-1, 3)
    contacts = 0
    for rows, forces in pressing:
        some = rows.chosen((forces > 0) & (rows.low == 0))
        contacts += len(np.unique(np.concatenate([some.vertices, np.round(some.weights, 6)], axis=1), axis=0))
    return reactions, contacts


def _together(makers: Sequence[Sequence[RowMaker]]) -> RowMaker:
    """All rows as one."""
    flat = [make for some in makers for make in some]

    def rows(x: Floats) -> Rows:
        return Rows.joined([make(x) for make in flat]) if flat else Rows.none()

    return rows

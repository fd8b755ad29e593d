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

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact.obstacles import MovingObstacle, Obstacle
from pliant.contact.passage import Passage
from pliant.contact.proximity import EdgePairs, Pairs, SelfProximity
from pliant.contact.response import Compliance, Model, Relaxed, Rows, pushed, relax
from pliant.contact.rows import (
    Anchors,
    RowMaker,
    Samples,
    clearance_rows,
    edge_rows,
    face_samples,
    friction_rows,
    near_faces,
    obstacle_rows,
    pair_rows,
    passed_through,
    plane_rows,
    poking,
)
from pliant.errors import InputError
from pliant.normals import vertex_normals
from pliant.spatial import SurfaceTree
from pliant.topology import Floats, Ints

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
SELF = 0.012
"""Distance, over the diagonal, within which the body is watched for coming near to itself."""
FINEST = 3
"""Parts, at most, into which the edges of faces are divided where an obstacle could slip between vertices."""
VISIBLE = 300.0
"""Accuracy is relative to the energy stored, but no finer than for moving so many vertices by the default thickness."""
LOADED = 0.1
"""Factor on the accuracy asked for: contacts move a body along its soft modes, where little energy is much motion."""
ROUNDS = 12
SECONDS = 30.0
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
    """Pairs of the body's own triangles that cross where none crossed in the frame before."""


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

    triangles: (t, 3) of the body's surface. movable: (k,) vertices of parts that something holds; the others have
    nothing to be pushed against. friction: Coulomb's coefficient. thickness: distance kept.
    """

    def __init__(
        self,
        triangles: Ints,
        movable: Ints,
        diagonal: float,
        *,
        obstacles: Sequence[MovingObstacle] = (),
        friction: float = 0.0,
        thickness: float | None = None,
        proximity: SelfProximity | None = None,
    ) -> None:
        self.triangles, self.movable, self.diagonal = triangles, movable, diagonal
        self.obstacles, self.friction, self.proximity = obstacles, friction, proximity
        self.h = THICKNESS * diagonal if thickness is None else thickness
        self._stride = (MARCH if proximity is None else 0.6 * SELF) * diagonal
        self.surface = int(triangles.max(initial=-1)) + 1
        self._faces: Ints = triangles[np.isin(triangles, movable).all(axis=1)]
        self._longest = 0.0  # edge of a face in this frame
        self._tree: SurfaceTree | None = None
        self._before: tuple[Floats, Floats, float] | None = None  # the last shape, the same untouched, its number
        self._placed: list[Obstacle] = []
        self._anchors: list[Anchors | None] = [None] * len(obstacles)
        self._model = Model()  # of the energy, from the frames before
        self._passage: Passage | None = None
        self._blocked = False  # whether the body is in its own way, in this frame or at the end of the one before
        self._close: tuple[Floats, Ints] | None = None  # the shape for which it was found, and what is close in it
        self._pairs: tuple[Floats, Pairs, EdgePairs] | None = None  # the shape for which they were found, and they

    def frame(self, body: Body, number: float, *, tolerance: float, iterations: int, watch: Any = None) -> Touched:
        """The shape of a body at a frame, which must follow the one asked for before."""
        began = time.monotonic()
        nears = self._nears(number, body.free)
        corners = body.free[self._faces]
        self._longest = float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(initial=0.0))
        if self.proximity is not None:
            self._passage = self._passage or Passage(self.triangles, self.proximity.rest)
            before = body.free if self._before is None else self._before[0]
            self._passage.let_pass(*self._entangled(before))
        least = VISIBLE * float(body.stiffness.mean()) * (THICKNESS * self.diagonal) ** 2
        x, steps, boost, message = self._marched(body, number, nears), 0, 1.0, ""
        for turn in range(ROUNDS):
            rho = boost * STIFF * body.stiffness
            watched = _Watched(self, nears, rho)
            relaxed = relax(
                body.elastic, body.solve, body.compliance, watched.rows, x,
                tolerance=tolerance, scale=lambda: max(LOADED * body.stored(), least),
                farthest=self._stride, share=self._share, refresh=watched.refresh, deadline=began + SECONDS,
                iterations=iterations, model=self._model, watch=watch,
            )  # fmt: skip
            x, steps, self._model = relaxed.x, steps + relaxed.iterations, relaxed.model
            depth, new = self._examined(x, nears)
            crossed = self._crossings(x)
            self._grip(x, nears, watched)
            settling = bool(self.friction) and turn < 2 and any(near.anchors is not None for near in nears)
            if depth <= DEEPEST * self.diagonal and not new and not crossed and not settling:
                break
            if depth > DEEPEST * self.diagonal and not new:
                boost = min(10 * boost, 1e4)
            if time.monotonic() - began > SECONDS:
                break
        if depth > DEEPEST * self.diagonal:
            message = (
                f"{depth / self.diagonal:.1e} of the diagonal is still inside an obstacle: there may be no room for it"
            )
        elif crossed:
            message = f"{crossed} pairs of its own triangles cross where none crossed in the frame before"
        touched = self._touched(x, relaxed, steps, message, depth, watched, crossed)
        self._before, self._placed = (x, body.free, number), [near.obstacle for near in nears]
        self._blocked = any((make(x).forces > 0).any() for make in watched.own)
        self._anchors = [
            a and a.slid(x, self.friction, rho[a.samples.vertices[:, 0]]) for a in (near.anchors for near in nears)
        ]
        return touched

    def _marched(self, body: Body, number: float, nears: Sequence[_Near]) -> Floats:
        """Where to start: the free shape, displaced as the frame before was by its contacts.

        It is approached from the frame before, in steps so small that contacts can be foreseen, with the obstacles on
        their way, so that the body stays on the side of them where it is. A vertex that gets through all the same is
        kept on the side where it entered.
        """
        if self._before is None:
            return body.free
        x, untouched, last = self._before
        goal = body.free + np.where(body.held[:, None], 0, x - untouched)
        rho = STIFF * body.stiffness
        placed, steps = self._placed, self._strides(goal - x, nears)
        for k in range(steps):
            d = (goal - x) / (steps - k)
            now = [moving.at(last + (number - last) * (k + 1) / steps) for moving in self.obstacles]
            makers = [self._watching(obstacle, x, rho) for obstacle in now]
            moved = self._stridden(x, d, makers, rho, body)
            for before, after, near in zip(placed, now, nears, strict=True):
                which, entries, normals = passed_through(
                    after, before.carried(x[self.movable], after), moved[self.movable]
                )
                if len(which):
                    entries = after.carried(entries, near.obstacle)
                    near.planes.append((Samples.at_vertices(self.movable[which]), entries, normals))
            x, placed = moved, now
        return np.where(body.held[:, None], goal, x)

    def _stridden(self, x: Floats, d: Floats, makers: Sequence[RowMaker], rho: Floats, body: Body) -> Floats:
        """A step of the march: what a motion d becomes by obstacles and, where it would lead through, by the body."""
        moved = x + pushed(_together([makers])(x), d, body.compliance, body.solve)
        share = self._share(x, moved)
        if share == 1:
            return moved
        goal, x = x + d, x + share * (moved - x)
        parts = int(np.ceil(np.linalg.norm((goal - x)[self.movable], axis=1).max(initial=0.0) / self._stride))
        for k in range(parts):
            self._face(x)
            moved = x + pushed(
                _together([makers, self._own(rho)])(x), (goal - x) / (parts - k), body.compliance, body.solve
            )
            x = x + self._share(x, moved) * (moved - x)
        return x

    def _share(self, before: Floats, after: Floats) -> float:
        """How much of the way from one shape to another does not lead the body through itself."""
        if self._passage is None:
            return 1.0
        share = self._passage.share(before[: self.surface], after[: self.surface])
        self._blocked |= share < 1
        return share

    def _strides(self, motion: Floats, nears: Sequence[_Near]) -> int:
        """Into how many steps to divide the way of the body and of the obstacles to a frame."""
        far = float(np.linalg.norm(motion[self.movable], axis=1).max(initial=0.0))
        stride = MARCH * self.diagonal
        for before, near in zip(self._placed, nears, strict=True):
            places = before.surface.points
            far += float(np.linalg.norm(before.carried(places, near.obstacle) - places, axis=1).max(initial=0.0))
            stride = min(stride, max(0.25 * before.thickness, 5e-4 * self.diagonal))
        return int(np.clip(np.ceil(far / stride), 1, MARCHES))

    def _nears(self, number: float, free: Floats) -> list[_Near]:
        """The obstacles at a frame."""
        nears = []
        for k, moving in enumerate(self.obstacles):
            obstacle, anchors = moving.at(number), self._anchors[k]
            if anchors is not None:
                anchors = replace(anchors, places=self._placed[k].carried(anchors.places, obstacle))
            if self._before is None and len(self.movable) and (obstacle.signed(free[self.movable])[0] < 0).all():
                raise InputError(
                    f"obstacle {k + 1} encloses the whole shape in the first frame; move it, or make it smaller"
                )
            nears.append(_Near(obstacle, anchors))
        return nears

    def _watching(self, obstacle: Obstacle, x: Floats, rho: Floats) -> RowMaker:
        """Rows of the vertices near an obstacle at x and, if it could slip between them, of places on faces."""
        reach = self.h + NEAR * self.diagonal
        distance = self._distance(obstacle, x)
        samples = Samples.at_vertices(np.flatnonzero(distance < reach))
        if obstacle.thickness < 2 * self._longest:
            sides = int(np.clip(np.ceil(2 * self._longest / obstacle.thickness), 2, FINEST))
            reach = min(reach, 2 * obstacle.thickness)
            samples = samples.joined(near_faces(x, distance, self._faces, sides, reach))
        return obstacle_rows(obstacle, samples, self.h, rho[samples.vertices[:, 0]])

    def _distance(self, obstacle: Obstacle, x: Floats) -> Floats:
        """(surface vertices,) from an obstacle; infinite for those that it does not concern."""
        distance = np.full(self.surface, np.inf)
        distance[self.movable] = obstacle.signed(x[self.movable])[0]
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
            makers.append(friction_rows(near.anchors, self.friction, held))
        return makers

    def _examined(self, x: Floats, nears: Sequence[_Near]) -> tuple[float, bool]:
        """How deep the body is in an obstacle, anywhere on its surface; and whether points were found to add."""
        deepest, new = 0.0, False
        allowed = DEEPEST * self.diagonal
        for near in nears:
            distance = self._distance(near.obstacle, x)
            deepest = max(deepest, -float(distance.min(initial=0.0)))
            inside, depth = face_samples(near.obstacle, x, distance, self._faces, 0.5 * allowed)
            deepest = max(deepest, depth)
            if len(inside) and depth > allowed:
                near.inside.append(inside)
                new = True
            poked, places, ways, depth = poking(near.obstacle, x, self._tree_at(x), 0.5 * allowed)
            deepest = max(deepest, depth)
            if len(poked) and depth > allowed:
                near.planes.append((poked, places, ways))
                new = True
        return deepest, new

    def _grip(self, x: Floats, nears: Sequence[_Near], watched: _Watched) -> None:
        """Let friction hold the points that are pressed now, where they are, or where they already stuck."""
        if not self.friction:
            return
        for near, makers in zip(nears, watched.obstacles, strict=True):
            rows = Rows.joined([make(x) for make in makers])
            anchors = Anchors.of(rows.chosen(rows.low == 0), x)
            if near.anchors is not None:
                anchors = anchors.keeping(near.anchors)
            near.anchors = anchors if len(anchors.samples) else None

    def _tree_at(self, x: Floats) -> SurfaceTree:
        """The body's surface, prepared for questions."""
        surface = x[: self.surface]
        self._tree = SurfaceTree(surface, self.triangles) if self._tree is None else self._tree.moved(surface)
        return self._tree

    # Self-contact

    def _own(self, rho: Floats) -> list[RowMaker]:
        """Rows of the body against itself: what faces itself on the way, and all that is all but touching."""
        if self.proximity is None or self._pairs is None:
            return []
        from pliant.contact.proximity_kernels import clearances

        _, pairs, edges = self._pairs
        kept, edges_kept = (np.minimum(self.h, 0.5 * self.proximity.rest_gap(some)) for some in (pairs, edges))
        makers = [
            pair_rows(self.proximity, pairs, self.triangles, kept, rho[pairs.vertex]),
            edge_rows(self.proximity, edges, edges_kept, rho[edges.first[:, 0]]),
        ]
        if self._close is not None and len(self._close[1]):
            close = self._close[1]
            apart = np.minimum(self.h, 0.5 * clearances(self.proximity.rest, close)[0])
            makers.append(clearance_rows(close, apart, rho[close[:, 0]]))
        return makers

    def _face(self, x: Floats) -> bool:
        """Find what of the body faces itself, and what is close, anew if it has moved far enough; whether it has."""
        if self.proximity is None:
            return False
        surface, reach, new = x[: self.surface], self.h + SELF * self.diagonal, False
        if self._pairs is None or np.abs(surface - self._pairs[0]).max(initial=0.0) > 0.35 * reach:
            self._pairs, new = (surface, *self._facing(surface, reach)), True
        # That is only needed where the body has been in its own way: it takes long for fine meshes.
        if self._passage is not None and self._blocked and (
            self._close is None or np.abs(surface - self._close[0]).max(initial=0.0) > 0.3 * self.h
        ):  # fmt: skip
            self._close, new = (surface, self._passage.near(surface, 2 * self.h)), True
        return new

    def _facing(self, surface: Floats, reach: float) -> tuple[Pairs, EdgePairs]:
        """What of the body faces itself nearer than `reach`, but for what may pass through itself."""
        assert self.proximity is not None
        assert self._passage is not None
        pairs = self.proximity.find(surface, within=reach, most=1, facing=0.0)
        edges = self.proximity.find_edges(surface, within=reach, most=1, facing=0.0)
        apart = self._passage.kept_apart(np.column_stack([pairs.vertex, self.triangles[pairs.triangle]]))
        both = self._passage.kept_apart(np.column_stack([edges.first, edges.second]))
        return (
            Pairs(pairs.vertex[apart], pairs.triangle[apart]),
            EdgePairs(edges.first[both], edges.second[both], edges.sign[both]),
        )

    def _entangled(self, x: Floats) -> tuple[Ints, NDArray[np.bool_]]:
        """(k, 2) pairs of the body's own triangles that cross, and (surface,) vertices inside another part of it."""
        assert self.proximity is not None
        surface, buried = x[: self.surface], np.zeros(self.surface, dtype=bool)
        crossing = self.proximity.crossings(surface)
        if len(crossing):
            above = surface + DEEPEST * self.diagonal * vertex_normals(surface, self.triangles)
            buried = self._tree_at(x).winding(above) > 0.5
        return crossing, buried

    def _crossings(self, x: Floats) -> int:
        """How many pairs of the body's own triangles cross where none crossed in the frame before."""
        if self.proximity is None or self._passage is None:
            return 0
        crossing = self.proximity.crossings(x[: self.surface])
        corners = self.triangles[crossing].reshape(len(crossing), 6)
        return int(self._passage.kept_apart(corners).sum())

    def _touched(
        self, x: Floats, relaxed: Relaxed, steps: int, message: str, depth: float, watched: _Watched, crossed: int
    ) -> Touched:
        reactions, contacts = np.zeros((len(watched.obstacles), 3)), 0
        for k, makers in enumerate(watched.obstacles):
            for make in makers:
                rows = make(x)
                reactions[k] -= rows.forces @ rows.directions
                contacts += int(((rows.forces > 0) & (rows.low == 0)).sum())
        contacts += sum(int((make(x).forces > 0).sum()) for make in watched.own)
        if not relaxed.converged and not message:
            message = f"stopped after {steps} iterations, at {relaxed.residual:.1e} of the first force"
        return Touched(x, steps, relaxed.residual, not message, message, depth, contacts, reactions, crossed)


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
        faced = touch._face(x)
        far = self.at is None or np.abs(x - self.at)[touch.movable].max(initial=0.0) > 0.5 * NEAR * touch.diagonal
        if faced or not self.own:
            self.own = touch._own(self.rho)
        if far:
            self.at = x
            self.obstacles = [touch._makers(near, x, self.rho) for near in self.nears]
        return faced or far

    def rows(self, x: Floats) -> Rows:
        """All rows at a shape."""
        return _together([*self.obstacles, self.own])(x)


def _together(makers: Sequence[Sequence[RowMaker]]) -> RowMaker:
    """All rows as one."""
    flat = [make for some in makers for make in some]

    def rows(x: Floats) -> Rows:
        return Rows.joined([make(x) for make in flat]) if flat else Rows.none()

    return rows

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
from pliant.contact.proximity import EdgePairs, Pairs, SelfProximity
from pliant.contact.response import Compliance, Relaxed, Rows, pushed, relax
from pliant.contact.rows import (
    Anchors,
    RowMaker,
    Samples,
    edge_rows,
    face_samples,
    friction_rows,
    obstacle_rows,
    pair_rows,
    passed_through,
    plane_rows,
    poking,
)
from pliant.errors import InputError
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
MARCHES = 40
SELF = 0.012
"""Distance, over the diagonal, within which the body is watched for coming near to itself."""
ROUNDS = 12
SECONDS = 60.0
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
    """Pairs of the body's own triangles that cross, beyond those that crossed in the first frame."""


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
        self._stride = (MARCH if proximity is None else 0.4 * SELF) * diagonal
        self.surface = int(triangles.max(initial=-1)) + 1
        self._tree: SurfaceTree | None = None
        self._before: tuple[Floats, Floats, float] | None = None  # the last shape, the same untouched, its number
        self._placed: list[Obstacle] = []
        self._anchors: list[Anchors | None] = [None] * len(obstacles)
        self._excused: set[tuple[int, int]] | None = None
        self._pairs: tuple[Floats, Pairs, EdgePairs] | None = None  # the shape for which they were found, and they

    def frame(self, body: Body, number: float, *, tolerance: float, iterations: int, watch: Any = None) -> Touched:
        """The shape of a body at a frame, which must follow the one asked for before."""
        began = time.monotonic()
        nears = self._nears(number, body.free)
        if self._before is None:
            self._crossings(body.free)
        x, steps, boost, message = self._marched(body, number, nears), 0, 1.0, ""
        for turn in range(ROUNDS):
            rho = boost * STIFF * body.stiffness
            makers = [self._makers(near, rho) for near in nears]
            own = self._own(rho)
            relaxed = relax(
                body.elastic, body.solve, body.compliance, _together([*makers, own]), x,
                tolerance=tolerance, scale=body.stored, farthest=self._stride, iterations=iterations, watch=watch,
            )  # fmt: skip
            x, steps = relaxed.x, steps + relaxed.iterations
            depth, new = self._examined(x, nears)
            crossed = self._crossings(x)
            self._grip(x, nears, makers, rho)
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
            message = f"{crossed} pairs of its own triangles cross that did not cross in the first frame"
        touched = self._touched(x, relaxed, steps, message, depth, makers, own, crossed)
        self._before, self._placed = (x, body.free, number), [near.obstacle for near in nears]
        self._anchors = [near.anchors for near in nears]
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
            makers = [self._watching(obstacle, rho) for obstacle in now]
            moved = x + d + pushed(_together([makers, self._own(rho)])(x), d, body.compliance, body.solve)
            for before, after, near in zip(placed, now, nears, strict=True):
                which, entries, normals = passed_through(
                    after, before.carried(x[self.movable], after), moved[self.movable]
                )
                if len(which):
                    entries = after.carried(entries, near.obstacle)
                    near.planes.append((Samples.at_vertices(self.movable[which]), entries, normals))
            x, placed = moved, now
        return x

    def _strides(self, motion: Floats, nears: Sequence[_Near]) -> int:
        """Into how many steps to divide the way of the body and of the obstacles to a frame."""
        far = float(np.linalg.norm(motion[self.movable], axis=1).max(initial=0.0))
        stride = self._stride
        for before, near in zip(self._placed, nears, strict=True):
            places = before.surface.points
            far += float(np.linalg.norm(before.carried(places, near.obstacle) - places, axis=1).max(initial=0.0))
            stride = min(stride, max(before.thickness, 0.002 * self.diagonal))
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
                    f"obstacle {k} encloses the whole shape in the first frame; move it, or make it smaller"
                )
            nears.append(_Near(obstacle, anchors))
        return nears

    def _watching(self, obstacle: Obstacle, rho: Floats) -> RowMaker:
        """Rows of the vertices near an obstacle, chosen anew when the body has moved so far that others may be near."""
        reach = NEAR * self.diagonal
        chosen: list[tuple[Floats, Ints]] = []

        def rows(x: Floats) -> Rows:
            if not chosen or np.abs(x - chosen[0][0])[self.movable].max(initial=0.0) > 0.5 * reach:
                near = self.movable[obstacle.signed(x[self.movable])[0] < self.h + reach]
                chosen[:] = [(x, near)]
            near = chosen[0][1]
            return obstacle_rows(obstacle, Samples.at_vertices(near), self.h, rho[near])(x)

        return rows

    def _makers(self, near: _Near, rho: Floats) -> list[RowMaker]:
        """Rows of one obstacle."""
        makers = [self._watching(near.obstacle, rho)]
        for samples in near.inside:
            makers.append(obstacle_rows(near.obstacle, samples, self.h, rho[samples.vertices[:, 0]]))
        for samples, places, normals in near.planes:
            makers.append(plane_rows(samples, places, normals, self.h, rho[samples.vertices[:, 0]]))
        if self.friction and near.anchors is not None and len(near.anchors.samples):
            held = rho[near.anchors.samples.vertices[:, 0]]
            makers.append(friction_rows(near.anchors, self.friction, held))
        return makers

    def _examined(self, x: Floats, nears: Sequence[_Near]) -> tuple[float, bool]:
        """How deep the body is in an obstacle, anywhere on its surface; and whether points were found to add."""
        deepest, new = 0.0, False
        allowed = DEEPEST * self.diagonal
        faces = self.triangles[np.isin(self.triangles, self.movable).all(axis=1)] if nears else self.triangles
        for near in nears:
            deepest = max(deepest, -float(near.obstacle.signed(x[self.movable])[0].min(initial=0.0)))
            inside, depth = face_samples(near.obstacle, x, faces, 0.5 * allowed)
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

    def _grip(self, x: Floats, nears: Sequence[_Near], makers: Sequence[Sequence[RowMaker]], rho: Floats) -> None:
        """Let friction hold the points that are pressed now, where they are, or where they already stuck."""
        if not self.friction:
            return
        for near, own in zip(nears, makers, strict=True):
            rows = Rows.joined([make(x) for make in own])
            anchors = Anchors.of(rows.chosen(rows.low == 0), x)
            if near.anchors is not None and len(near.anchors.samples):
                anchors = anchors.keeping(near.anchors, np.ones(len(near.anchors.samples), dtype=bool))
            near.anchors = anchors if len(anchors.samples) else None
        del rho

    def _tree_at(self, x: Floats) -> SurfaceTree:
        """The body's surface, prepared for questions."""
        surface = x[: self.surface]
        self._tree = SurfaceTree(surface, self.triangles) if self._tree is None else self._tree.moved(surface)
        return self._tree

    # Self-contact

    def _own(self, rho: Floats) -> list[RowMaker]:
        """Rows of the body against itself: pairs that face each other, found anew as it moves."""
        proximity = self.proximity
        if proximity is None:
            return []

        def rows(x: Floats) -> Rows:
            pairs, edges = self._facing(x[: self.surface])
            kept, edges_kept = (np.minimum(self.h, proximity.rest_gap(some)) for some in (pairs, edges))
            return Rows.joined(
                [
                    pair_rows(proximity, pairs, self.triangles, kept, rho[pairs.vertex])(x),
                    edge_rows(proximity, edges, edges_kept, rho[edges.first[:, 0]])(x),
                ]
            )

        return [rows]

    def _facing(self, surface: Floats) -> tuple[Pairs, EdgePairs]:
        """Vertices and triangles, edges and edges that face each other; found anew when the body has moved far enough.

        Those that have since gone through each other are kept: their sides tell the way back.
        """
        assert self.proximity is not None
        last, reach = self._pairs, self.h + SELF * self.diagonal
        if last is not None and np.abs(surface - last[0]).max(initial=0.0) <= 0.2 * reach:
            return last[1], last[2]
        pairs = self.proximity.find(surface, within=reach)
        edges = self.proximity.find_edges(surface, within=reach)
        if last is not None:
            through = np.abs(self.proximity.gaps(surface, last[1])[0] + reach) < reach  # between -2 reach and 0
            pairs = _union(pairs, Pairs(last[1].vertex[through], last[1].triangle[through]))
            through = np.abs(self.proximity.edge_gaps(surface, last[2])[0] + reach) < reach
            edges = _edge_union(edges, last[2], through)
        self._pairs = surface, pairs, edges
        return pairs, edges

    def _crossings(self, x: Floats) -> int:
        """How many pairs of the body's own triangles cross that did not cross in the first frame."""
        if self.proximity is None:
            return 0
        crossing = {tuple(pair) for pair in self.proximity.crossings(x[: self.surface]).tolist()}
        if self._excused is None:
            self._excused = crossing
        return len(crossing - self._excused)

    def _touched(
        self,
        x: Floats,
        relaxed: Relaxed,
        steps: int,
        message: str,
        depth: float,
        makers: Sequence[Sequence[RowMaker]],
        own: Sequence[RowMaker],
        crossed: int,
    ) -> Touched:
        reactions, contacts = np.zeros((len(makers), 3)), 0
        for k, some in enumerate(makers):
            for make in some:
                rows = make(x)
                reactions[k] -= rows.forces @ rows.directions
                contacts += int(((rows.forces > 0) & (rows.low == 0)).sum())
        contacts += sum(int((make(x).forces > 0).sum()) for make in own)
        converged = relaxed.converged and not message
        if not relaxed.converged and not message:
            message = f"stopped after {steps} iterations, at {relaxed.residual:.1e} of the first force"
        return Touched(x, steps, relaxed.residual, converged, message, depth, contacts, reactions, crossed)


def _together(makers: Sequence[Sequence[RowMaker]]) -> RowMaker:
    """All rows as one."""
    flat = [make for some in makers for make in some]

    def rows(x: Floats) -> Rows:
        return Rows.joined([make(x) for make in flat]) if flat else Rows.none()

    return rows


def _union(first: Pairs, second: Pairs) -> Pairs:
    """All pairs of both, once."""
    tables = [np.stack([pairs.vertex, pairs.triangle], axis=1) for pairs in (first, second)]
    both = np.unique(np.concatenate(tables), axis=0)
    return Pairs(both[:, 0], both[:, 1])


def _edge_union(first: EdgePairs, second: EdgePairs, chosen: NDArray[np.bool_]) -> EdgePairs:
    """All pairs of the first and the chosen ones of the second, once; where they differ in sign, the second's count."""
    tables = [np.concatenate([pairs.first, pairs.second], axis=1) for pairs in (second, first)]
    table = np.concatenate([tables[0][chosen], tables[1]])
    signs = np.concatenate([second.sign[chosen], first.sign])
    _, kept = np.unique(table, axis=0, return_index=True)
    return EdgePairs(table[kept, :2], table[kept, 2:], signs[kept])

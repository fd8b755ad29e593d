"""What of a body's surface is near obstacles, as rows of contact; and how deep it is in them, all of it examined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from pliant.contact.constraints import (
    Anchors,
    RowMaker,
    SurfaceSamples,
    behind,
    face_samples,
    friction_rows,
    longest_edges,
    near_faces,
    obstacle_rows,
    plane_rows,
    poking,
)
from pliant.contact.forces import Rows
from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.contact.obstacles import Obstacle
from pliant.contact.self_contact import SelfContact
from pliant.contact.swept import SweptContacts
from pliant.core.topology import Floats, Ints
from pliant.geometry.spatial import SurfaceTree

MAX_PENETRATION = 1e-5
"""Penetration, over the diagonal, that a frame may end with."""
WATCH_DISTANCE = 0.06
"""Distance from an obstacle, over the diagonal, within which vertices are watched while a round moves them."""
MAX_FACE_DIVISIONS = 3
"""Parts, at most, into which the edges of faces are divided where an obstacle could slip between vertices."""


@dataclass
class ObstacleContacts:
    """One obstacle in one frame, and the points of the body that it concerns besides the vertices near it."""

    obstacle: Obstacle
    anchors: Anchors | None
    inside: list[SurfaceSamples] = field(default_factory=list)
    """Points on edges and faces."""
    planes: list[tuple[SurfaceSamples, Floats, Floats]] = field(default_factory=list)
    """Points that must stay on the outer side of planes: points on these, and normals."""
    swept: SweptContacts | None = None
    """What the body meets of its corners, edges and faces, if nothing of it is in the body at first."""
    lost: bool = False
    """Whether it is thin and was not followed to the end of the path, so that the body may be on either side."""

    def give_up(self) -> None:
        """Follow it by signed distances from here."""
        self.lost = self.lost or not self.is_signed
        self.swept = None

    @property
    def is_signed(self) -> bool:
        """Whether signed distances keep vertices away."""
        return self.swept is None or not self.swept.obstacle.alone


class SurfaceWatch:
    """The surface of a body among obstacles. count: of its vertices, the first points. thickness: distance kept."""

    def __init__(self, triangles: Ints, count: int, diagonal: float, thickness: float, friction: float) -> None:
        self.triangles, self.count, self.diagonal = triangles, count, diagonal
        self.thickness, self.friction = thickness, friction
        self._free: Floats | None = None
        self._longest_edge = 0.0
        self._tree: SurfaceTree | None = None

    def begin(self, free: Floats) -> None:
        """A frame begins, with its shape without contact."""
        self._free = free

    @property
    def longest_edge(self) -> float:
        """Of the shape without contact."""
        if self._free is not None:
            self._longest_edge = float(longest_edges(self._free, self.triangles).max(initial=0.0))
            self._free = None
        return self._longest_edge

    def watching(
        self, obstacle: Obstacle, x: Floats, rho: Floats, *, faces: bool = True, known: Sequence[SurfaceSamples] = ()
    ) -> RowMaker:
        """Rows of the vertices near an obstacle at x and, if it could slip between them, of points on faces.

        known: other points, which have rows, too; two rows at one point would leave open which of them pushes.
        """
        reach = self.thickness + WATCH_DISTANCE * self.diagonal
        distance = self.distance(obstacle, x, reach)
        samples = SurfaceSamples.at_vertices(np.flatnonzero(distance < reach))
        if faces and obstacle.thickness < 2 * self.longest_edge:
            sides = int(np.clip(np.ceil(2 * self.longest_edge / obstacle.thickness), 2, MAX_FACE_DIVISIONS))
            reach = min(reach, 2 * obstacle.thickness)
            samples = samples.joined(near_faces(x, distance, self.triangles, sides, reach))
        samples = reduce(SurfaceSamples.joined, known, samples)
        samples = samples.once() if samples.on_faces.any() else samples
        return obstacle_rows(obstacle, samples, self.thickness, rho[samples.vertices[:, 0]])

    def distance(self, obstacle: Obstacle, x: Floats, reach: float) -> Floats:
        """(surface vertices,) from an obstacle; infinite for those beyond `reach`."""
        distance = np.full(self.count, np.inf)
        near = np.flatnonzero(obstacle.clearance(x[: self.count]) <= reach)
        distance[near] = obstacle.signed(x[near])[0]
        return distance

    def makers(self, near: ObstacleContacts, x: Floats, rho: Floats) -> list[RowMaker]:
        """Rows of one obstacle."""
        makers = []
        if near.is_signed:
            makers.append(self.watching(near.obstacle, x, rho, faces=near.swept is None, known=near.inside))
        else:
            samples = reduce(SurfaceSamples.joined, near.inside, SurfaceSamples.none()).once()
            makers.append(obstacle_rows(near.obstacle, samples, self.thickness, rho[samples.vertices[:, 0]]))
        if near.swept is not None:
            makers.append(near.swept.rows(rho))
        for samples, points, normals in near.planes:
            makers.append(plane_rows(samples, points, normals, self.thickness, rho[samples.vertices[:, 0]]))
        if near.anchors is not None:
            makers.append(friction_rows(near.anchors, together([makers])(x), self.friction, x))
        return makers

    def examined(self, x: Floats, nears: Sequence[ObstacleContacts]) -> tuple[float, bool]:
        """How deep the body is in an obstacle, anywhere on its surface; and whether points were found to add."""
        deepest, new = 0.0, False
        if not nears:
            return deepest, new
        allowed, tree = MAX_PENETRATION * self.diagonal, self._tree_at(x) if len(self.triangles) else None
        for near in nears:
            distance = self.distance(near.obstacle, x, 2 * self.longest_edge + self.thickness)
            deepest = max(deepest, -float(distance.min(initial=0.0)))
            if tree is None:
                continue
            crossing = tree.crossings(near.obstacle.tree)
            if near.swept is not None and not len(crossing) and (near.swept.obstacle.alone or near.swept.obstacle.flat):
                continue
            inside, depth = face_samples(near.obstacle, x, distance, self.triangles, crossing, 0.5 * allowed)
            deepest = max(deepest, depth)
            if len(inside) and depth > allowed:
                wrong, points, outward = behind(near.obstacle, x, inside)
                near.inside.append(inside.chosen(~wrong))
                near.planes.append((inside.chosen(wrong), points, outward))
                new = True
            poked, points, outward, depth = poking(near.obstacle, x, tree, crossing, 0.5 * allowed)
            deepest = max(deepest, depth)
            # Planes at its edges hold where the body was; they are for what no point of a face tells the way out of.
            if len(poked) and depth > allowed and (not len(inside) or isinstance(near.obstacle, MeshObstacle)):
                near.planes.append((poked, points, outward))
                new = True
        return deepest, new

    def crosses(self, x: Floats, obstacle: Obstacle) -> bool:
        """Whether the body's surface crosses an obstacle's, or is inside it, or that inside the body."""
        tree, others = self._tree_at(x), obstacle.surface
        if len(tree.crossings(obstacle.tree)):
            return True
        first = np.unique(others.parts, return_index=True)[1]
        return bool(obstacle.signed(x[:1])[0][0] < 0 or tree.inside(others.points[first]).any())

    def _tree_at(self, x: Floats) -> SurfaceTree:
        """The body's surface, prepared for questions."""
        surface = x[: self.count]
        self._tree = SurfaceTree(surface, self.triangles) if self._tree is None else self._tree.moved(surface)
        return self._tree


class WatchedRows:
    """What one round watches, chosen anew when the body has moved so far that other points may be near."""

    def __init__(
        self, watch: SurfaceWatch, self_contact: SelfContact | None, nears: Sequence[ObstacleContacts], rho: Floats
    ) -> None:
        self.watch, self.self_contact, self.nears, self.rho = watch, self_contact, nears, rho
        self.at: Floats | None = None
        self.obstacles: list[list[RowMaker]] = []
        self.met: list[tuple[int, RowMaker]] = []
        """Rows that came later, in this order, each with the number of its obstacle; of the body itself, -1."""
        self._known = [0] * (len(nears) + 1)

    @property
    def _pairs(self) -> list[SelfContact | SweptContacts | None]:
        """What finds pairs, for each obstacle, and for the body itself last."""
        return [*(near.swept for near in self.nears), self.self_contact]

    @property
    def meets(self) -> bool:
        """Whether steps may be cut short by what they lead into."""
        return any(some is not None for some in self._pairs)

    def refresh(self, x: Floats) -> bool:
        """Choose what to watch at a shape; whether that is new but for rows that come last."""
        watch = self.watch
        reach = 0.5 * WATCH_DISTANCE * watch.diagonal
        stays = self.at is not None and np.abs(x - self.at)[: watch.count].max(initial=0.0) <= reach
        for near in self.nears:
            if near.swept is not None and not stays:
                near.swept.meet(x, x)
        for some in self._pairs:
            if some is not None:
                some.refresh()
        if stays:
            self._note()
            return False
        self.at, self.met = x, []
        self.obstacles = [watch.makers(near, x, self.rho) for near in self.nears]
        self._known = [0 if near.swept is None else len(near.swept) for near in self.nears] + [0]
        self._note()
        return bool(self.nears)

    def _note(self) -> None:
        """Rows of pairs that there were none of yet."""
        for k, some in enumerate(self._pairs):
            if some is not None and len(some) > self._known[k]:
                own = k == len(self.nears)
                self.met.append((-1 if own else k, some.rows(self.rho, self._known[k])))
                self._known[k] = len(some)

    def meet(self, before: Floats, after: Floats) -> tuple[float, bool]:
        """How much of a path is free of obstacles and of the body itself, and whether it meets what is new."""
        found = [some.meet(before, after) for some in self._pairs if some is not None]
        self._note()
        return min((share for share, _ in found), default=1.0), any(new for _, new in found)

    def rows(self, x: Floats) -> Rows:
        """All rows at a shape."""
        return together([*self.obstacles, [make for _, make in self.met]])(x)

    def by_obstacle(self, x: Floats, forces: Floats) -> list[tuple[Rows, Floats]]:
        """The rows of each obstacle, and of the body itself last, with their share of forces that belong to all."""
        rows = [together([makers])(x) for makers in (*self.obstacles, *([make] for _, make in self.met))]
        shares = np.split(forces, np.cumsum([len(some) for some in rows])[:-1])
        out = []
        for k in (*range(len(self.nears)), -1):
            which = [k] * (k >= 0) + [len(self.nears) + i for i, (owner, _) in enumerate(self.met) if owner == k]
            some = [rows[i] for i in which] or [Rows.none()]
            out.append((Rows.joined(some), np.concatenate([np.zeros(0), *(shares[i] for i in which)])))
        return out


def together(makers: Sequence[Sequence[RowMaker]]) -> RowMaker:
    """All rows as one."""
    flat = [make for some in makers for make in some]

    def rows(x: Floats) -> Rows:
        return Rows.joined([make(x) for make in flat]) if flat else Rows.none()

    return rows

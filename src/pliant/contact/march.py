"""Where a frame of a body in contact starts: led there from the frame before, in strides.

A body that is put where it would be by itself may be inside an obstacle, or on its other side. So both go there
together, in strides so small that contacts can be foreseen: rows of contact deflect each stride (`deflected`), and it
is cut just before it would lead through triangles of an obstacle or of the body (continuous collision detection).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import thread_time

import numpy as np

from pliant.contact.body import ContactBody, hardness
from pliant.contact.collision_pairs import CollisionSurface
from pliant.contact.constraints import SurfaceSamples, longest_edges, passed_through
from pliant.contact.forces import LocalCompliance
from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.contact.obstacles import MovingObstacle, Obstacle
from pliant.contact.response import MAX_MEETINGS
from pliant.contact.self_contact import SelfContact
from pliant.contact.solids import Box, Cylinder
from pliant.contact.state import ContactState
from pliant.contact.steps import deflected, longest
from pliant.contact.swept import THIN_WATCH_DISTANCE, SweptContacts, SweptObstacle
from pliant.contact.watched_rows import ObstacleContacts, SurfaceWatch, together
from pliant.core.rotations import IDENTITY, match_rigid
from pliant.core.topology import Floats

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

ObstaclePath = Callable[[float], Obstacle]
"""Where an obstacle is after a share of the way to a frame."""


class March:
    """The strides of one body, whose surface is watched, and may meet itself."""

    def __init__(self, watch: SurfaceWatch, self_contact: SelfContact | None) -> None:
        self.watch, self.self_contact, self.diagonal, self.surface = watch, self_contact, watch.diagonal, watch.count
        self._swept: list[SweptObstacle] | None = None

    def start(
        self,
        body: ContactBody,
        number: float,
        before: ContactState | None,
        obstacles: Sequence[MovingObstacle],
        nears: Sequence[ObstacleContacts],
        deadline: float,
    ) -> Floats:
        """Where to start: the free shape, displaced as its contacts would go on displacing it.

        It is approached from the frame before, in steps so small that contacts can be foreseen, with the obstacles on
        their path, so that the body stays on the side of them where it is. A vertex that gets through all the same is
        kept on the side where it entered.
        """
        last = number if before is None else before.number
        paths: list[ObstaclePath] = [partial(_between, moving, last, number) for moving in obstacles]
        if before is None:
            if isinstance(body.compliance, LocalCompliance):
                return body.free
            approaches = [self._approach(body.free, near.obstacle) for near in nears]
            if not any(approaches):
                return body.free
            before = ContactState(body.free, number)
            paths = [approach or path for approach, path in zip(approaches, paths, strict=True)]
        x = before.x
        rho, goal = hardness(body), body.constrained(body.free + before.displacement)
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


def _without_rigid(x: Floats, motion: Floats) -> Floats:
    """(n, 3) a motion of points (n, 3) without the rigid motion that is nearest to it."""
    R, t = match_rigid(x, x + motion)
    return np.asarray(x + motion - x @ R.T - t)


def _between(moving: MovingObstacle, last: float, number: float, share: float) -> Obstacle:
    """An obstacle on its path from one frame to another."""
    return moving.at(last + (number - last) * share)

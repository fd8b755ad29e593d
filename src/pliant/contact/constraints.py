"""Where a body touches: rows of contact with obstacles and with itself, as functions of the body's shape.

Each maker chooses the points once, and gives a function from the body's places (n, 3) to `Rows`, which the response
calls at every step: distances and directions follow the shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from pliant.contact.collision_pairs import clearances
from pliant.contact.forces import Rows
from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.contact.obstacles import Obstacle
from pliant.core.normals import triangle_normals, unit
from pliant.core.topology import Floats, Ints
from pliant.geometry.spatial import SurfaceTree

RowMaker = Callable[[Floats], Rows]
NO_PUSH_VIOLATION = -1e30
"""Violation of a row that never pushes; it stays at its index, so that rows can be compared from step to step."""
FACE_PARTS = 8
"""Parts into which edges of a face near an obstacle are divided to examine it."""
MAX_FACE_PARTS, MAX_EDGE_PARTS = 40, 128
"""Parts, at most, into which edges of the body and of an obstacle are divided where the two cross."""
FACE_MIDDLES = np.array([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]])
"""Where a face is examined between its corners."""
ZOOMS = 8
"""Times that the deepest point of a face is sought on a grid half as wide about the one before."""


@dataclass(frozen=True, eq=False)
class SurfaceSamples:
    """Points on the body: vertices, or points on its faces."""

    vertices: Ints
    """(m, 4)"""
    weights: Floats
    """(m, 4)"""

    def __len__(self) -> int:
        return len(self.vertices)

    def positions(self, x: Floats) -> Floats:
        """(m, 3) where they are."""
        return np.einsum("mk,mkj->mj", self.weights, x[self.vertices])

    @property
    def on_faces(self) -> NDArray[np.bool_]:
        """(m,) which are no vertices."""
        return np.count_nonzero(self.weights, axis=1) > 1

    @property
    def keys(self) -> NDArray[np.void]:
        """(m,) what tells them apart."""
        bits = np.ascontiguousarray(self.weights + 0.0).view(np.int64)  # without negative zeros
        return np.concatenate([self.vertices, bits], axis=1).view(np.dtype((np.void, 64)))[:, 0]

    def chosen(self, which: NDArray[np.bool_]) -> SurfaceSamples:
        """Some of them."""
        return SurfaceSamples(self.vertices[which], self.weights[which])

    def joined(self, other: SurfaceSamples) -> SurfaceSamples:
        """These and others."""
        vertices, weights = ([getattr(one, name) for one in (self, other)] for name in ("vertices", "weights"))
        return SurfaceSamples(np.concatenate(vertices), np.concatenate(weights))

    def once(self) -> SurfaceSamples:
        """Each of them once: a point on an edge is the same on both of its faces."""
        weights = np.round(self.weights, 6)
        vertices = np.where(weights == 0, -1, self.vertices)
        order = np.argsort(vertices, axis=1)
        positions = np.concatenate([np.take_along_axis(of, order, axis=1) for of in (vertices, weights)], axis=1)
        first = np.zeros(len(self), bool)
        first[np.unique(positions, axis=0, return_index=True)[1]] = True
        return self.chosen(first)

    @classmethod
    def none(cls) -> SurfaceSamples:
        """No points."""
        return cls.at_vertices(np.zeros(0, np.int64))

    @classmethod
    def at_vertices(cls, vertices: Ints) -> SurfaceSamples:
        """The vertices themselves."""
        weights = np.zeros((len(vertices), 4))
        weights[:, 0] = 1
        return cls(np.repeat(vertices[:, None], 4, axis=1), weights)

    @classmethod
    def at_faces(cls, triangles: Ints, barycentric: Floats) -> SurfaceSamples:
        """Points (m, 3) on triangles (m, 3)."""
        pad = np.zeros((len(triangles), 1))
        return cls(np.concatenate([triangles, triangles[:, :1]], axis=1), np.concatenate([barycentric, pad], axis=1))


def obstacle_rows(obstacle: Obstacle, samples: SurfaceSamples, thickness: float, rho: Floats) -> RowMaker:
    """Keep points on the body `thickness` away from an obstacle. rho: (m,).

    A point on a face that is nearer to the far side of an obstacle thinner than the face says nothing: it would draw
    the body through.
    """
    on_face = samples.on_faces
    corners = samples.vertices[on_face, :3]

    def rows(x: Floats) -> Rows:
        distance, outward = obstacle.signed(samples.positions(x))
        violation = thickness - distance
        if len(corners):
            through = np.einsum("mj,mj->m", outward[on_face], triangle_normals(x, corners)) > 0
            through &= (distance[on_face] < 0) & (obstacle.thickness < longest_edges(x, corners))
            violation[on_face] = np.where(through, NO_PUSH_VIOLATION, violation[on_face])
        return _pushing(samples, outward, violation, rho)

    return rows


def plane_rows(samples: SurfaceSamples, points: Floats, normals: Floats, thickness: float, rho: Floats) -> RowMaker:
    """Keep points on the body on the outer side of planes through `points` (m, 3), `thickness` away."""

    def rows(x: Floats) -> Rows:
        height = np.einsum("mj,mj->m", samples.positions(x) - points, normals)
        return _pushing(samples, normals, thickness - height, rho)

    return rows


def clearance_rows(near: Ints, thickness: Floats, rho: Floats) -> RowMaker:
    """Keep pairs (m, 5) of `pliant.contact.collision_pairs` apart. thickness, rho: (m,)."""

    def rows(x: Floats) -> Rows:
        gap, normal, weights = clearances(x, near)
        return _pushing(SurfaceSamples(near[:, :4], weights), normal, thickness - gap, rho)

    return rows


def _pushing(samples: SurfaceSamples, directions: Floats, violation: Floats, rho: Floats) -> Rows:
    return Rows.pushing(samples.vertices, samples.weights, directions, violation, rho)


def passed_through(obstacle: Obstacle, before: Floats, now: Floats) -> tuple[Ints, Floats, Floats]:
    """Which points have gone through an obstacle on the straight way; where they entered, and its normal there.

    before: (m, 3) where they were, moved along with the obstacle; now: (m, 3). A point has gone through if what is
    nearest to it faces away from where it entered: one that slid round a corner has not.
    """
    moved = np.linalg.norm(now - before, axis=1)
    could = np.flatnonzero(moved > obstacle.clearance(before))
    distance, _ = obstacle.signed(before[could])
    could = could[(distance > 0) & (moved[could] > distance)]
    fraction, triangle = obstacle.tree.first_hit(before[could], now[could])
    hit = np.isfinite(fraction)
    could, fraction, triangle = could[hit], fraction[hit], triangle[hit]
    normal = unit(triangle_normals(obstacle.tree.points, obstacle.tree.triangles[triangle]))
    through = np.einsum("mj,mj->m", obstacle.signed(now[could])[1], normal) < 0
    entry = before[could] + fraction[:, None] * (now[could] - before[could])
    return could[through], entry[through], normal[through]


def face_samples(
    obstacle: Obstacle, x: Floats, distance: Floats, triangles: Ints, crossing: Ints, depth: float
) -> tuple[SurfaceSamples, float]:
    """Points between the corners of the body's faces that are deeper than `depth` in an obstacle, and the deepest.

    distance: (n,) of the vertices. Faces that may reach into the obstacle are examined on a grid; those that its
    surface crosses, by `crossing` (k, 2), on one as fine as the obstacle is thin, and where their edges are inside. Of
    solids, which are convex, the deepest point of a face is then sought between the points of the grid.
    """
    found, deepest, convex = [SurfaceSamples.none()], 0.0, not isinstance(obstacle, MeshObstacle)
    crossed = triangles[np.unique(crossing[:, 0])]
    longest = float(longest_edges(x, crossed).max(initial=0.0))
    fine = int(np.clip(np.ceil(4 * longest / max(obstacle.thickness, 1e-300)), FACE_PARTS, MAX_FACE_PARTS))
    near = _faces_within(x, distance, triangles, 0.0)
    if len(near):
        near = near[_least_heights(obstacle, x[near], convex) < -depth]
    mine, theirs = x[triangles[crossing[:, 0]]], obstacle.tree.points[obstacle.tree.triangles[crossing[:, 1]]]
    which, between = pierced_edges(mine, theirs, crossing[:, 0])
    for faces, sides in ((near, FACE_PARTS), (crossed, fine), (triangles[which], 0)):
        if not len(faces):
            continue
        grid = np.broadcast_to(_grid(sides), (len(faces), *_grid(sides).shape)) if sides else between[:, None]
        height = _heights(obstacle, np.einsum("tbk,tkj->tbj", grid, x[faces]))
        least, weights = height.min(axis=1), grid[np.arange(len(faces)), np.argmin(height, axis=1)]
        if convex and sides:
            least, weights = _lowest_points(obstacle, x[faces], weights, 1 / sides)
        deep = least < -depth
        found.append(SurfaceSamples.at_faces(faces[deep], weights[deep]))
        deepest = max(deepest, -float(least.min()))
    if len(crossed) and 2 * longest > MAX_FACE_PARTS * obstacle.thickness:  # too thin for the grid to meet it
        deepest = max(deepest, 0.5 * obstacle.thickness)
    return reduce(SurfaceSamples.joined, found), deepest


def _heights(obstacle: Obstacle, points: Floats) -> Floats:
    """(t, q) signed distances of points (t, q, 3)."""
    return obstacle.signed(points.reshape(-1, 3))[0].reshape(points.shape[:2])


def _least_heights(obstacle: Obstacle, corners: Floats, convex: bool) -> Floats:
    """(t,) what the signed distance of no point on faces (t, 3, 3) is below, from few points of each.

    That of a convex solid is convex: nowhere below the planes that touch it. Others are taken to be as round as they
    are thick: a face is no farther in between than an arc of the obstacle rises over a chord of that length.
    """
    points = np.einsum("bk,tkj->tbj", FACE_MIDDLES, corners)
    height, outward = (found.reshape(*points.shape[:2], -1) for found in obstacle.signed(points.reshape(-1, 3)))
    if convex:
        slope = np.einsum("tbj,tkj->tbk", outward, corners) - np.einsum("tbj,tbj->tb", outward, points)[:, :, None]
        return np.asarray((height + slope).min(axis=2).max(axis=1))
    edges = corners - np.roll(corners, 1, axis=1)
    return np.asarray(
        height.min(axis=(1, 2)) - np.einsum("tkj,tkj->tk", edges, edges).max(axis=1) / (4 * obstacle.thickness)
    )


def _lowest_points(obstacle: Obstacle, corners: Floats, weights: Floats, step: float) -> tuple[Floats, Floats]:
    """The least signed distance (t,) to a convex solid on faces (t, 3, 3), and where: from weights (t, 3) near it."""
    u, v = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5), indexing="ij")
    around = np.stack([u, v, -u - v], axis=-1).reshape(-1, 3)
    for k in range(ZOOMS):
        tried = np.maximum(weights[:, None] + step / 2**k * around, 0.0)
        tried /= tried.sum(axis=2, keepdims=True)
        height = _heights(obstacle, np.einsum("tbk,tkj->tbj", tried, corners))
        lowest = np.argmin(height, axis=1)
        weights = tried[np.arange(len(tried)), lowest]
    return height[np.arange(len(tried)), lowest], weights


def behind(obstacle: Obstacle, x: Floats, inside: SurfaceSamples) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Which points on faces are nearer to the far side of an obstacle thinner than them, and would draw it through.

    Also for those, the places (k, 3) where its near side is, seen from inside the body, and the ways (k, 3) to there.
    """
    positions, normals = inside.positions(x), unit(triangle_normals(x, inside.vertices[:, :3]))
    wrong = np.einsum("mj,mj->m", obstacle.signed(positions)[1], normals) > 0
    wrong &= obstacle.thickness < longest_edges(x, inside.vertices[:, :3])
    positions, directions = positions[wrong], -normals[wrong]
    if not wrong.any():
        return wrong, positions, directions
    fraction, _ = obstacle.tree.first_hit(positions + 2 * obstacle.thickness * directions, positions)
    met = np.isfinite(fraction)
    wrong[np.flatnonzero(wrong)[~met]] = False
    near = positions[met] + (2 * obstacle.thickness * (1 - fraction[met]))[:, None] * directions[met]
    return wrong, near, directions[met]


def _grid(sides: int) -> Floats:
    """Points on a triangle, as weights of its corners: a grid of `sides` parts along each edge, without corners."""
    i, j = np.meshgrid(np.arange(sides + 1), np.arange(sides + 1), indexing="ij")
    grid = np.stack([i, j, sides - i - j], axis=-1).reshape(-1, 3)
    return np.asarray(grid[(grid >= 0).all(axis=1) & (grid < sides).all(axis=1)] / sides)


def near_faces(x: Floats, distance: Floats, triangles: Ints, sides: int, reach: float) -> SurfaceSamples:
    """Points on faces nearer than `reach` to an obstacle: a grid of `sides` parts along each edge, without corners.

    distance: (n,) of the vertices.
    """
    near, grid = _faces_within(x, distance, triangles, reach), _grid(sides)
    return SurfaceSamples.at_faces(np.repeat(near, len(grid), axis=0), np.tile(grid, (len(near), 1)))


def _faces_within(x: Floats, distance: Floats, triangles: Ints, reach: float) -> Ints:
    """The triangles of which some point may be nearer than `reach` to an obstacle; distance: (n,) of the vertices."""
    # A point of a face is no farther from any of its corners than its longest edge.
    farthest = distance[triangles].max(axis=1)
    triangles, farthest = triangles[np.isfinite(farthest)], farthest[np.isfinite(farthest)]
    return triangles[farthest - longest_edges(x, triangles) < reach]


def longest_edges(x: Floats, triangles: Ints) -> Floats:
    """(t,) the longest edge of each triangle."""
    a, b, c = x[triangles[:, 0]], x[triangles[:, 1]], x[triangles[:, 2]]
    squares = [np.einsum("tj,tj->t", d, d) for d in (b - a, c - b, a - c)]
    return np.asarray(np.sqrt(np.maximum(np.maximum(*squares[:2]), squares[2])))


def poking(
    obstacle: Obstacle, x: Floats, tree: SurfaceTree, crossing: Ints, depth: float
) -> tuple[SurfaceSamples, Floats, Floats, float]:
    """An obstacle's corners and edges inside the body: the body's points nearest to them, they themselves, the way out.

    tree: of the body's surface at x. crossing: (k, 2) its triangles, and those of the obstacle that cross them, which
    are examined; where there are none, whether a part of the obstacle is wholly inside.
    """
    if len(crossing):
        corners = obstacle.tree.points[obstacle.tree.triangles]
        which, between = pierced_edges(corners[crossing[:, 1]], x[tree.triangles[crossing[:, 0]]], crossing[:, 1])
        positions = _edge_points(corners[np.unique(crossing[:, 1])], float(longest_edges(x, tree.triangles).mean()))
        positions = np.concatenate([positions, np.einsum("mk,mkj->mj", between, corners[which])])
    else:
        _, first = np.unique(obstacle.surface.parts, return_index=True)
        positions = obstacle.tree.points[first]
    positions = positions[tree.inside(positions)]
    closest = tree.closest(positions)
    # The deepest place at each face says what the others would.
    order = np.argsort(-closest.distance, kind="stable")
    order = order[closest.distance[order] > depth]
    _, first = np.unique(closest.triangle[order], return_index=True)
    deep = order[first]
    triangles = tree.triangles[closest.triangle[deep]]
    samples = SurfaceSamples.at_faces(triangles, closest.barycentric[deep])
    return samples, positions[deep], -unit(triangle_normals(x, triangles)), float(closest.distance.max(initial=0.0))


def pierced_edges(corners: Floats, others: Floats, owner: Ints) -> tuple[Ints, Floats]:
    """Where edges of triangles (k, 3, 3) are between going through others (k, 3, 3): of which `owner`, (m, 3) weights.

    owner: (k,) the number of each triangle, which may cross several others. Of every edge that goes through one, the
    middle of each part, so that no part is missed however short it is.
    """
    edges, a = np.roll(corners, -1, axis=1) - corners, others[:, 0]
    normal = np.cross(others[:, 1] - a, others[:, 2] - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -np.einsum("ksj,kj->ks", corners - a[:, None], normal) / np.einsum("ksj,kj->ks", edges, normal)
        at = corners + share[:, :, None] * edges
        sides = np.roll(others, -1, axis=1) - others
        inner = np.einsum("kbsj,kj->kbs", np.cross(sides[:, :, None], at[:, None] - others[:, :, None]), normal)
        pierced = ((inner >= 0).all(axis=1)) & (share > 0) & (share < 1)
    pair, side = np.nonzero(pierced)
    keys, edge = np.unique(3 * owner[pair] + side, return_inverse=True)
    every = np.concatenate([edge, np.arange(len(keys)), np.arange(len(keys))])
    shares = np.concatenate([share[pierced], np.zeros(len(keys)), np.ones(len(keys))])
    order = np.lexsort([shares, every])
    every, shares = every[order], shares[order]
    same = every[1:] == every[:-1]
    middle, (triangle, side) = ((shares[1:] + shares[:-1]) / 2)[same], np.divmod(keys[every[1:][same]], 3)
    weights, number = np.zeros((len(middle), 3)), np.arange(len(middle))
    weights[number, side], weights[number, (side + 1) % 3] = 1 - middle, middle
    return triangle, weights


def _edge_points(corners: Floats, spacing: float) -> Floats:
    """(q, 3) corners of triangles (t, 3, 3), and points along their edges about a quarter of `spacing` apart."""
    following = np.roll(corners, -1, axis=1)
    longest = float(np.linalg.norm(following - corners, axis=2).max(initial=0.0))
    parts = int(np.clip(np.ceil(4 * longest / max(spacing, 1e-300)), 4, MAX_EDGE_PARTS))
    shares = np.arange(parts) / parts
    return np.unique((corners[:, :, None] + shares[:, None] * (following - corners)[:, :, None]).reshape(-1, 3), axis=0)


@dataclass(frozen=True, eq=False)
class Anchors:
    """Where friction holds points of the body that press on an obstacle."""

    samples: SurfaceSamples
    positions: Floats
    """(m, 3)"""

    def joined(self, other: Anchors) -> Anchors:
        """These and others."""
        return Anchors(self.samples.joined(other.samples), np.concatenate([self.positions, other.positions]))

    def rows(self, contacts: Rows) -> tuple[Ints, Ints]:
        """Those that have a row among contacts, and which: where several are at a point, those that press it most.

        Where two edges meet, or a corner and a face, the point moves along them: it is the nearest on the same.
        """
        points, loose = SurfaceSamples(contacts.vertices, contacts.weights), self.samples.on_faces
        strongest = np.argsort(-contacts.violation, kind="stable")
        _, number = np.unique(np.concatenate([self.samples.keys, points.keys[strongest]]), return_inverse=True)
        anchored, pressed = (_ranked(some, len(number)) for some in np.split(number, [len(loose)]))
        _, which, row = np.intersect1d(anchored, pressed, assume_unique=True, return_indices=True)
        order = np.argsort(which)
        which, row = which[order], strongest[row[order]]
        loose[which] = False
        if not loose.any():
            return which, row
        on: dict[tuple[int, ...], list[int]] = {}
        for k in strongest[~np.isin(strongest, row)].tolist():
            on.setdefault(tuple(contacts.vertices[k].tolist()), []).append(k)
        found = []
        for k in np.flatnonzero(loose).tolist():
            some = on.get(tuple(self.samples.vertices[k].tolist()))
            if some:
                away = np.abs(contacts.weights[some] - self.samples.weights[k]).sum(axis=1)
                found.append((k, some.pop(int(np.argmin(away)))))
        more = np.array(found, dtype=np.int64).reshape(-1, 2)
        return np.concatenate([which, more[:, 0]]), np.concatenate([row, more[:, 1]])


def _ranked(number: Ints, most: int) -> Ints:
    """(m,) numbers (m,) made to tell equal ones apart: the first of each, the second, and so on; `most` at most."""
    order = np.argsort(number, kind="stable")
    first = np.flatnonzero(np.diff(number[order], prepend=-1))
    rank = np.empty(len(number), np.int64)
    rank[order] = np.arange(len(number)) - np.repeat(first, np.diff(first, append=len(number)))
    return number * most + rank


def friction_rows(anchors: Anchors, contacts: Rows, coefficient: float, x: Floats) -> RowMaker:
    """Coulomb's law: points stick to their anchors until that takes more than `coefficient` times what presses them.

    contacts: the rows at x that press points; these rows come after them. Two each, across the row's direction at x,
    the first along the slip; they keep their directions, or the energy would not be one.
    """
    which, row = anchors.rows(contacts)
    n, positions = contacts.directions[row], anchors.positions[which]
    points = SurfaceSamples(anchors.samples.vertices[which], anchors.samples.weights[which])
    slip = points.positions(x) - positions
    along = slip - np.einsum("mj,mj->m", slip, n)[:, None] * n
    slipped = np.linalg.norm(along, axis=1, keepdims=True) > 1e-12
    t = unit(np.where(slipped, along, np.cross(n, np.eye(3)[np.argmin(np.abs(n), axis=1)])))
    directions = np.stack([t, np.cross(n, t)], axis=1).reshape(-1, 3)
    twice = SurfaceSamples(np.repeat(points.vertices, 2, axis=0), np.repeat(points.weights, 2, axis=0))
    positions, row = np.repeat(positions, 2, axis=0), np.repeat(row, 2)
    after = row - len(contacts) - np.arange(len(row))
    none = np.zeros(len(row))

    def rows(x: Floats) -> Rows:
        violation = np.einsum("mj,mj->m", positions - twice.positions(x), directions)
        return Rows(
            twice.vertices, twice.weights, directions, violation, contacts.rho[row], none, none,
            np.full(len(row), coefficient), after,
        )  # fmt: skip

    return rows

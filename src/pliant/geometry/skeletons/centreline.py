"""From paths on voxels to smooth lines in the middle of limbs, in a tree of nodes.

Nodes are the root, the points where paths fork, and the ends of limbs; between two nodes runs a `Line`. Forks that are
nearer to each other than a share of their depth become one. Lines are sampled evenly and drawn to the middle of their
cross-sections, alternating with smoothing: rays in the plane across the line at each sample meet the surface at r_k in
the directions u_k (cut off at a few times their median, so that a section does not run on into the body), and

    area = (Δ/2) Σ r_k²,     centre − p = (Δ/3) Σ r_k³ u_k / area,     width = 2 √(area / π)

with Δ the angle between two rays. A sample that would come too near to the surface stays where it is. Ends are drawn
back from the surface by about half the limb's depth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.geometry.skeletons.limbs import PathTree
from pliant.geometry.skeletons.voxels import Solid, Voxels

MERGE = 0.8
"""Distance of two forks that become one, over their depth."""
SAMPLE_SPACING = 2.0
"""Of samples, in cells."""
RAYS = 16
"""Across a line, at each sample."""
RAY_LIMIT = 2.5
"""Length of the longest ray, over their median."""
PASSES = 6
"""Of centring and smoothing."""
LEAST_DEPTH = 0.6
"""Least depth of a sample that moves, over its first depth."""
TIP = 0.5
"""Depth of the end of a limb, over the limb's."""

LEAST_STRAIGHTNESS = 0.6
"""Least distance straight ahead at the end of a limb, over the distance to the farthest corner."""


@dataclass(frozen=True, eq=False)
class Line:
    """The middle of a limb, or of a part of the body between two forks."""

    start: int
    """A node."""
    end: int
    """A node."""
    points: Floats
    """(k, 3) from node to node, evenly spaced."""
    width: Floats
    """(k,) of the cross-sections."""
    depth: Floats
    """(k,) distance to the surface."""

    @property
    def along(self) -> Floats:
        """(k,) the length up to each point."""
        steps = np.linalg.norm(np.diff(self.points, axis=0), axis=1)
        return np.concatenate([[0.0], np.cumsum(steps)])

    def at(self, length: float) -> Floats:
        """(3,) the position at some length."""
        return np.array([np.interp(length, self.along, axis) for axis in self.points.T])


@dataclass(frozen=True, eq=False)
class LineTree:
    """Lines, those nearer to the root first; node 0 is the root."""

    nodes: Floats
    """(n, 3)"""
    depth: Floats
    """(n,) of the nodes."""
    lines: tuple[Line, ...]


def centre_lines(voxels: Voxels, tree: PathTree) -> LineTree:
    """Smooth lines in the middle of the limbs that the paths go through."""
    pieces = _pieces(tree)
    position, depth = voxels.centres, voxels.depth
    fork = _merged(pieces, tree.root, position, depth)
    names = sorted({fork[v] for piece in pieces for v in (piece[0], piece[-1])} | {tree.root})
    number = {v: k for k, v in enumerate([tree.root, *(v for v in names if v != tree.root)])}
    nodes = position[list(number)].copy()
    kept = [piece for piece in pieces if fork[int(piece[0])] != fork[int(piece[-1])]]
    used = {fork[int(piece[0])] for piece in kept} | {tree.root}
    lines = []
    for piece in kept:
        start, end = number[fork[int(piece[0])]], number[fork[int(piece[-1])]]
        whole = _with_detours(voxels, piece, fork, pieces)
        points = np.concatenate([nodes[[start]], position[whole[1:-1]], nodes[[end]]])
        line = _centred(voxels, start, end, points)
        if fork[int(piece[-1])] not in used:
            line = _centred(voxels, start, end, _drawn_back(line.points, voxels.solid))
        lines.append(line)
        nodes[end] = lines[-1].points[-1]
    return LineTree(nodes, voxels.solid.skin.closest(nodes).distance, tuple(_outwards(lines)))


def _with_detours(voxels: Voxels, piece: Ints, fork: dict[int, int], pieces: list[Ints]) -> Ints:
    """A piece, extended to the forks that its ends now belong to: along the old paths where the straight is narrow."""
    first, last = int(piece[0]), int(piece[-1])
    before = _detour(voxels, fork[first], int(piece[min(2, len(piece) - 1)]), first, fork, pieces)
    after = _detour(voxels, fork[last], int(piece[max(len(piece) - 3, 0)]), last, fork, pieces)
    return np.concatenate([before, piece, after[::-1]])


def _detour(voxels: Voxels, node: int, inner: int, old: int, fork: dict[int, int], pieces: list[Ints]) -> Ints:
    """The voxels from a node to the fork that became part of it; none if the straight segment to `inner` is wide."""
    if node == old:
        return np.zeros(0, np.int64)
    ends = voxels.centres[[node, inner]]
    steps = ends[0] + np.linspace(0, 1, 8)[:, None] * (ends[1] - ends[0])
    wide = voxels.solid.skin.closest(steps).distance.min() >= 0.5 * voxels.depth[[node, inner]].min()
    if wide and voxels.solid.contains(ends[:1], ends[1:])[0]:
        return np.zeros(0, np.int64)
    short = [one for one in pieces if fork[int(one[0])] == fork[int(one[-1])] == node]
    came: dict[int, Ints] = {node: np.array([node])}
    while old not in came:
        piece, reversed_ = next(
            (one, reversed_)
            for one in short
            for reversed_ in (False, True)
            if (int(one[-1]) if reversed_ else int(one[0])) in came
            and (int(one[0]) if reversed_ else int(one[-1])) not in came
        )
        path = piece[::-1] if reversed_ else piece
        came[int(path[-1])] = np.concatenate([came[int(path[0])], path[1:]])
    return came[old][:-1]


def _pieces(tree: PathTree) -> list[Ints]:
    """Paths cut where others begin."""
    begins = {int(path[0]) for path in tree.paths}
    pieces = []
    for path in tree.paths:
        cuts = [k for k in range(1, len(path) - 1) if int(path[k]) in begins]
        bounds = [0, *cuts, len(path) - 1]
        pieces += [path[a : b + 1] for a, b in pairwise(bounds) if b > a]
    return pieces


def _merged(pieces: list[Ints], root: int, position: Floats, depth: Floats) -> dict[int, int]:
    """The fork that each end of a piece belongs to: that of another, if they are joined by a short piece."""
    into = {int(v): int(v) for piece in pieces for v in (piece[0], piece[-1])} | {root: root}
    inner = {int(piece[0]) for piece in pieces} | {root}

    def leader(v: int) -> int:
        while into[v] != v:
            v = into[v]
        return v

    lengths = [float(np.linalg.norm(np.diff(position[piece], axis=0), axis=1).sum()) for piece in pieces]
    for k in np.argsort(lengths):
        one, two = leader(int(pieces[k][0])), leader(int(pieces[k][-1]))
        if int(pieces[k][-1]) not in inner or one == two:
            continue
        if np.linalg.norm(position[one] - position[two]) < MERGE * max(depth[one], depth[two]):
            stays = root if root in (one, two) else max(one, two, key=lambda v: depth[v])
            into[two if stays == one else one] = stays
    return {v: leader(v) for v in into}


def _drawn_back(points: Floats, solid: Solid) -> Floats:
    """A path to the end of a limb, ended before it comes to the surface.

    Paths end in the farthest corner. From where the end is three times the depth away the limb's own direction is
    kept, if that path is not much shorter; so the end of a bar lies in its middle.
    """
    depth = solid.skin.closest(points).distance
    left = np.linalg.norm(points - points[-1], axis=1)
    inner = np.flatnonzero(left >= 3 * depth)
    limb = depth[inner[-1]] if inner.size else depth.max()
    deep = np.flatnonzero(depth >= TIP * limb)
    ended = points[: max(int(deep[-1]) + 1, 2)] if deep.size else points
    if not inner.size or inner[-1] < 2:
        return ended
    last = int(inner[-1])
    before = np.flatnonzero(left >= left[last] + 2 * limb)
    direction = points[last] - points[before[-1] if before.size else 0]
    direction = direction / max(float(np.linalg.norm(direction)), 1e-300)
    met = float(solid.skin.first_hit(points[[last]], points[[last]] + direction, leaving=True)[0][0])
    if not LEAST_STRAIGHTNESS * left[last] <= met <= left[last] / LEAST_STRAIGHTNESS:
        return ended
    return np.concatenate([points[: last + 1], points[[last]] + (met - TIP * limb) * direction])


def _centred(voxels: Voxels, start: int, end: int, points: Floats) -> Line:
    """A line through the middle of the sections, its ends kept."""
    solid = voxels.solid
    points = _evenly(points, SAMPLE_SPACING * voxels.cell)
    depth = solid.skin.closest(points).distance
    least = LEAST_DEPTH * depth
    for _ in range(PASSES):
        points, depth = _moved(solid, points, depth, least, _smoothed(points) - points)
        shift, _ = _sections(solid, points)
        points, depth = _moved(solid, points, depth, least, 0.5 * shift)
    points, depth = _moved(solid, points, depth, least, _smoothed(points) - points)
    return Line(start, end, points, _sections(solid, points)[1], depth)


def _evenly(points: Floats, spacing: float) -> Floats:
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    count = max(round(along[-1] / spacing), 2) + 1
    at = np.linspace(0, along[-1], count)
    return np.stack([np.interp(at, along, axis) for axis in points.T], axis=1)


def _smoothed(points: Floats) -> Floats:
    """Points moved half-way to the middle between their neighbours, three times; the ends stay."""
    out = points.copy()
    for _ in range(3):
        out[1:-1] = (out[:-2] + 2 * out[1:-1] + out[2:]) / 4
    return out


def _moved(solid: Solid, points: Floats, depth: Floats, least: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Inner points moved where they stay as deep as they have to, and the depths."""
    moved = points + shift
    moved[[0, -1]] = points[[0, -1]]
    there = solid.skin.closest(moved).distance
    fits = (there >= np.minimum(least, depth)) & (np.linalg.norm(shift, axis=1) < depth)
    return np.where(fits[:, None], moved, points), np.where(fits, there, depth)


def _sections(solid: Solid, points: Floats) -> tuple[Floats, Floats]:
    """(k, 3) the vector to the middle of the cross-section at each point of a line, and (k,) the sections' widths."""
    along = np.gradient(points, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along), axis=1)])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    angle = 2 * np.pi / RAYS * np.arange(RAYS)[:, None, None]
    rays = np.cos(angle) * across + np.sin(angle) * np.cross(along, across)
    starts = np.broadcast_to(points, rays.shape).reshape(-1, 3)
    met = solid.skin.first_hit(starts, starts + rays.reshape(-1, 3), leaving=True)[0].reshape(RAYS, -1)
    met = np.minimum(met, 1.0)
    r = np.minimum(met, RAY_LIMIT * np.median(met, axis=0))
    area = np.pi / RAYS * (r**2).sum(axis=0)
    centre = 2 * np.pi / (3 * RAYS) * np.einsum("rk,rkd->kd", r**3, rays) / np.maximum(area, 1e-300)[:, None]
    return centre, 2 * np.sqrt(area / np.pi)


def _outwards(lines: list[Line]) -> list[Line]:
    """Lines oriented so that they lead away from node 0, each after the one it begins at."""
    ordered: list[Line] = []
    reached, left = {0}, list(lines)
    while left:
        line = next(one for one in left if one.start in reached or one.end in reached)
        left.remove(line)
        if line.start not in reached:
            reversed_ = {name: getattr(line, name)[::-1] for name in ("points", "width", "depth")}
            line = replace(line, start=line.end, end=line.start, **reversed_)
        reached.add(line.end)
        ordered.append(line)
    return ordered

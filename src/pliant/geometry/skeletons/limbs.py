"""The limbs of a body and the path through each: the raw curve skeleton, on voxels.

1. The *root* is the voxel at a local maximum of the depth d (distance to the surface) where depth over the distance to
   the farthest end is largest: thick, and in the middle.
2. The geodesic distance g from the root is a field inside the body whose peaks are the ends of limbs. From each peak
   an arc of its tree (`peak_tree`) runs down to the level where the limb meets another. Of the part above that level,
   the length L of its path and its width w (2√2 times the median distance of its voxels to the path: a round limb's
   diameter) decide: a limb has ``L >= LEAST_SLENDERNESS w``, or ``L >= STOUT w`` and a large share of all voxels.
   Others are dropped.
3. *Paths* lead from the ends to the root where ``∫ ds / d²`` is least, so they keep to the middle of each limb and of
   the body, and join where they come near.
4. What is far from all these paths, such as the other side of a ring, is found alike, with the distance h from
   the paths in place of g. There L is what lies outside the largest ball around the start of the new path,
   and voxels that are nearer to other paths do not count.

A flat part of a body that is no thicker (the corner of a plate) has to be three times as slender. Thin and flat limbs
(tails, ears) count by their own width, so none is lost that is longer than about twice its width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.geometry.skeletons.voxels import Voxels, peak_tree, shortest_paths

LEAST_SLENDERNESS = 1.05
"""Length over width from which on something that sticks out is a limb."""
STOUT = 0.6
"""Length over width below which nothing is a limb, however large."""
LARGE = 0.025
"""Share in all voxels of a large limb of a body that is twice as thick."""
LARGE_LIMB_SHARE = 0.15
"""Share in all voxels of a large limb of a body that is no thicker."""
LEAST_PROMINENCE = 4.0
"""Cells by which a peak rises above its surroundings, at least."""
PLATE_THICKNESS = 0.25
"""Thickness over width of a part that is flat like a plate."""
JOIN = 0.4
"""Distance over depth at which a path joins another."""
TIE_BREAK = 1e-6
"""By which voxels differ in length, at most."""
ROOT_CANDIDATES = 5
"""Points looked at for a root."""
SEARCH_ROUNDS = 4
"""Most searches for regions far from all paths."""


@dataclass(frozen=True, eq=False)
class PathTree:
    """Paths on voxels, a tree."""

    root: int
    """A voxel."""
    paths: tuple[Ints, ...]
    """Each from a voxel of an earlier path (the first: from the root) to the end of a limb."""


def limb_paths(voxels: Voxels, *, slender: float = LEAST_SLENDERNESS) -> PathTree:
    """The root and the paths to the ends of all limbs."""
    from scipy.spatial import cKDTree

    table, length = voxels.graph
    even = _uneven(len(table))
    cost = even * (voxels.depth.max() / np.maximum(voxels.depth, 0.3 * voxels.cell)) ** 2
    root = root_of(voxels)
    paths: list[Ints] = []
    taken, joins = np.zeros(len(table), dtype=bool), np.full(len(table), -1)
    taken[root], joins[root] = True, root
    voxel_tree = cKDTree(voxels.centres)
    for _ in range(SEARCH_ROUNDS):
        away, _ = shortest_paths(table, length, even, np.flatnonzero(taken))
        _, before = shortest_paths(table, length, cost, np.flatnonzero(taken))
        others = cKDTree(voxels.centres[taken]).query(voxels.centres)[0] if paths else None
        ends = limb_ends(voxels, away, before, others, slender=slender)
        if not ends:
            break
        for end in sorted(ends, key=lambda v: -away[v]):
            path = _traced(end, before, joins)
            if len(path) > 1:
                taken[path] = True
                _note_near(path, voxels, voxel_tree, joins)
                paths.append(path)
    return PathTree(root, tuple(paths))


def _uneven(count: int) -> Floats:
    """(count,) ones, but for differences that decide between equals: not left to rounding, which units change."""
    return 1 + TIE_BREAK * np.random.default_rng(0).random(count)


def _traced(end: int, before: Ints, joins: Ints) -> Ints:
    """The voxels from a path there is to an end."""
    path = [end]
    while joins[path[-1]] < 0:
        path.append(int(before[path[-1]]))
    if joins[path[-1]] != path[-1]:
        path.append(int(joins[path[-1]]))
    return np.array(path[::-1])


def _note_near(path: Ints, voxels: Voxels, voxel_tree: Any, joins: Ints) -> None:
    """Voxels around a path from which on others join it, instead of going along beside it."""
    near = voxel_tree.query_ball_point(voxels.centres[path], JOIN * voxels.depth[path])
    for voxel, around in zip(path, near, strict=True):
        fresh = np.array(around, dtype=np.int64)
        joins[fresh[joins[fresh] < 0]] = voxel
    joins[path] = path


def root_of(voxels: Voxels) -> int:
    """The voxel that is thick and in the middle."""
    table, length = voxels.graph
    even = _uneven(len(table))
    middle = np.linalg.norm(voxels.centres - voxels.centres.mean(axis=0), axis=1)
    left = voxels.depth * even - voxels.cell * middle / max(float(middle.max()), 1e-300)  # of those as deep, the middle
    left[voxels.depth < 0.5 * voxels.depth.max()] = -np.inf
    best, found = -1.0, 0
    for _ in range(ROOT_CANDIDATES):
        candidate = int(np.argmax(left))
        if not np.isfinite(left[candidate]):
            break
        away, _ = shortest_paths(table, length, even, np.array([candidate]))
        score = voxels.depth[candidate] / away.max()
        if score > best:
            best, found = score, candidate
        left[away < 1.5 * voxels.depth[candidate]] = -np.inf
    return found


def limb_ends(
    voxels: Voxels, away: Floats, before: Ints, others: Floats | None, *, slender: float = LEAST_SLENDERNESS
) -> list[int]:
    """The voxels at which limbs end.

    away: (n,) the field whose peaks they are. before: (n,) the next voxel towards the existing paths.
    others: (n,) how far the paths there are; None if there are none yet, so that there is one end at least.
    """
    order = np.argsort(-away, kind="stable")
    arc_of, into, peak, end = peak_tree(voxels.graph[0], away, order, LEAST_PROMINENCE * voxels.cell)
    members = _members(arc_of, into)
    ends: list[int] = []
    has_limb = np.zeros(len(into), dtype=bool)
    for arc in range(len(into)):  # arcs come after those that end in them
        level = away[end[arc]] if end[arc] >= 0 else 0.0
        if not has_limb[arc] and away[peak[arc]] - level >= LEAST_PROMINENCE * voxels.cell:
            surely = others is None and end[arc] < 0
            if surely or _is_limb(voxels, members[arc], int(peak[arc]), level, away, before, others, slender):
                has_limb[arc] = True
                ends.append(int(peak[arc]))
        has_limb[into[arc]] |= has_limb[arc]
    return ends


def _members(arc_of: Ints, into: Ints) -> list[Ints]:
    """The voxels of each arc and of all that end in it."""
    order = np.argsort(arc_of, kind="stable")
    own = np.split(order, np.cumsum(np.bincount(arc_of, minlength=len(into)))[:-1])
    parts: list[list[Ints]] = [[one] for one in own]
    for arc, target in enumerate(into):
        if target != arc:
            parts[target].extend(parts[arc])
    return [np.concatenate(part) for part in parts]


def _is_limb(
    voxels: Voxels,
    members: Ints,
    end: int,
    level: float,
    away: Floats,
    before: Ints,
    others: Floats | None,
    slender: float,
) -> bool:
    """Whether the voxels `members`, a part above a level with its peak at `end`, make a limb."""
    from scipy.spatial import cKDTree

    path = [end]
    while before[path[-1]] >= 0:
        path.append(int(before[path[-1]]))
    depth = voxels.depth[path]
    above = away[path] > level
    apart = cKDTree(voxels.centres[path][above]).query(voxels.centres[members])[0]
    if others is not None:
        apart = apart[apart < others[members]]
        level = max(level, depth[-1])
    if not len(apart):
        return False
    length = float(away[end] - level)
    width = 2 * 2**0.5 * float(np.median(apart)) + voxels.cell
    large = LARGE
    if depth.max() < 2 * depth[above].max():  # no thick body that it sticks out of
        large = LARGE_LIMB_SHARE
        if 2 * depth[above].mean() < PLATE_THICKNESS * width:
            return length >= 3 * slender * width
    return length >= slender * width or (length >= STOUT * width and len(apart) >= large * len(voxels.cells))

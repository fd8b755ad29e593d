"""Where a skeleton's limbs lie on a shape that stands otherwise: arms that hang where the skeleton's are stretched out.

Ways along the body do not change with its pose. So the tips of the skeleton (hands, feet, the head) are matched with
the tips of the shape by the lengths of the ways between them: along the bones d_s(i, j), and over the shape's surface
d_t(i, j). Of all ways to match them, the one with the least

    (1 − (Σ d_s d_t)² / (Σ d_s² Σ d_t²)) + ½ mean |p_i − q_i|² / diagonal² − ½ Σ d_t / Σ d_far

is taken, where p are the tips of the skeleton brought to the shape's box and q the shape's: the first term does not
know left from right, the second does. The third has tips where the shape ends, not where spikes are on the way: d_far
are the ways between as many points of the shape that are far from each other.

A joint so far from its limb's tip lies in the middle of the ring of points that are as far from it on the shape. Rings
around a limb are narrow; where they are wide, the limb has ended, and nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.shapes import Shape, bounding_diagonal
from pliant.core.skeleton import Motion, bone_vector
from pliant.core.topology import Floats, Ints
from pliant.engines.transfer.groups import neighbour_pairs
from pliant.engines.transfer.registration import box_fit
from pliant.engines.transfer.sources import joint_tracks

Bones = dict[int, tuple[Floats, Floats]]
"""By the joint that they start at: where they start (3,) and where they end (3,)."""
APART = 0.25
"""Way between two tips of a skeleton, over the longest, from which they are two: fingers are not."""
CANDIDATES = 12
"""Tips of a shape, at most."""
BEAM = 400
"""Unfinished matches that are kept."""
NEAR, FAR = 0.5, 0.5
"""How much it counts where tips are, and that they are far from each other."""
UNLIKE = 0.1
"""1 − cos² of the ways' lengths from which the two have different limbs, and none is matched."""
RINGS = 8
"""Rings along a bone."""
NARROW = 0.5
"""Radius of a ring around a limb, over the length of the bone in it, at most."""
SLENDER = 2.0
"""Length of a limb's end, over its radius, from which it points somewhere."""
STUMP = 0.4
"""Length of a limb, over the longest, up to which it is none: necks, ears."""
STRAIGHT = 0.7
"""Cosine of the angle between bones from which one goes on as the other."""
FEWEST_POINTS = 12
"""Of a ring."""
FEWEST_RINGS = 4
"""Narrow ones, for a bone's direction to be known."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A skeleton at rest as a tree of places: its joints, then the ends of its bones that no joint is at."""

    places: Floats
    """(m, 3)"""
    parents: Ints
    """(m,) -1 for a root"""
    depths: Floats
    """(m,) the way from the root"""

    @classmethod
    def of(cls, motion: Motion, rest: object) -> Tree:
        """Of a motion's skeleton, in the pose that counts as its rest."""
        skeleton = motion.skeleton
        joints = joint_tracks(motion, rest=rest)  # type: ignore[arg-type]
        leaves = [j for j in range(len(skeleton)) if j not in skeleton.parents and np.any(bone_vector(skeleton, j))]
        tips = joint_tracks(motion, [skeleton.names[j] for j in leaves], rest=rest, along=1.0)  # type: ignore[arg-type]
        places = np.array([track.rest for tracks in (joints, tips) for track in tracks.values()])
        parents = np.concatenate([skeleton.parents, np.array(leaves, dtype=np.int64)])
        depths = np.zeros(len(places))
        for node, parent in enumerate(parents):
            if parent >= 0:
                depths[node] = depths[parent] + np.linalg.norm(places[node] - places[parent])
        return cls(places, parents, depths)

    def chain(self, node: int) -> list[int]:
        """From a node up to its root."""
        up = [node]
        while self.parents[up[-1]] >= 0:
            up.append(int(self.parents[up[-1]]))
        return up

    def way(self, one: int, other: int) -> float:
        """Along the bones, from one node to another; infinite if they are not joined."""
        above = set(self.chain(one))
        meet = next((node for node in self.chain(other) if node in above), None)
        return np.inf if meet is None else float(self.depths[one] + self.depths[other] - 2 * self.depths[meet])

    def tips(self) -> list[int]:
        """Nodes where limbs end, far from each other; the farthest from the root first."""
        ends = [node for node in range(len(self.places)) if node not in self.parents]
        chosen = [ends[int(np.argmax(self.depths[ends]))]]
        longest = max(self.way(chosen[0], end) for end in ends)
        while True:
            away = [min(self.way(end, tip) for tip in chosen) for end in ends]
            if not np.isfinite(away).all() or max(away) <= APART * longest:
                return chosen
            chosen.append(ends[int(np.argmax(away))])

    def limb(self, tip: int, tips: list[int]) -> list[int]:
        """Nodes from a tip up to where its limb starts: a bone below the first node that leads to another tip, too.

        The bone between, a collarbone or a hip, is in the trunk, and does not point where the limb does.
        """
        others = {node for other in tips if other != tip for node in self.chain(other)}
        own = [node for node in self.chain(tip) if node not in others]
        branch = self.depths[self.parents[own[-1]]] if self.parents[own[-1]] >= 0 else -1.0
        return [node for node in own if self.depths[node] > branch]


def limb_bones(motion: Motion, rest: object, target: Shape, turn: Floats) -> Bones:
    """Where bones lie on the target, by the joint that they start at: two places (3,) each.

    Only bones in limbs that the target has too, and that are slender there.
    turn: (3, 3) from the source's axes to the target's.
    """
    tree = Tree.of(motion, rest)
    tips = tree.tips()
    if len(tips) < 2:
        return {}
    numbers, ways = shape_tips(target)
    along = np.array([[tree.way(one, other) for other in tips] for one in tips])
    placed = box_fit(turn, tree.places, target.points)(tree.places[tips])
    match = matched(along, ways[:, numbers], placed, target.points[numbers])
    if match is None:
        return {}
    limbs = {tip: tree.limb(tip, tips) for tip in tips}
    long = {tip: tree.depths[tip] - tree.depths[limb[-1]] for tip, limb in limbs.items()}
    bones: Bones = {}
    for k, tip in enumerate(tips):
        far = ways[match[k]]
        scale = float(along[k] @ far[numbers[match]] / (along[k] @ along[k]))
        if long[tip] > STUMP * max(long.values()):
            bones |= _in_limb(target.points, far, tree, limbs[tip], scale)
    return bones


def _in_limb(points: Floats, far: Floats, tree: Tree, limb: list[int], scale: float) -> Bones:
    """The bones of a limb on a shape whose points are so far from its tip."""
    at = scale * (tree.depths[limb[0]] - tree.depths[limb])
    found = {}
    for end in range(len(limb) - 1):
        bone = _bone(points, far, float(at[end]), float(at[end + 1]))
        if bone is not None:
            found[end] = bone
    if found and min(found) > 0:
        last = min(found)
        elbow, wrist = found[last]
        tip = points[np.argmin(far)]
        if np.linalg.norm(wrist - tip) < SLENDER * _thickness(points, far, float(at[last])):  # a stump points nowhere
            tip = wrist + (wrist - elbow) * at[last] / (at[last + 1] - at[last])
            if not _is_straight(tree, limb, last):
                tip = wrist
        for end in range(last):
            low, high = at[end] / at[last], at[end + 1] / at[last]
            if high > low and np.any(tip != wrist):
                found[end] = (tip + high * (wrist - tip), tip + low * (wrist - tip))
    return {limb[end + 1]: bone for end, bone in found.items()}


def _is_straight(tree: Tree, limb: list[int], last: int) -> bool:
    """Whether a source's limb goes on, from its bone `last` to the tip, the way that this bone points."""
    elbow, wrist, tip = (tree.places[limb[k]] for k in (last + 1, last, 0))
    along, beyond = wrist - elbow, tip - wrist
    return bool(along @ beyond > STRAIGHT * np.linalg.norm(along) * np.linalg.norm(beyond))


def _thickness(points: Floats, far: Floats, at: float) -> float:
    """Radius of a limb, so far from its tip."""
    ring = points[np.argsort(np.abs(far - at))[:FEWEST_POINTS]]
    return float(np.sqrt(np.square(ring - ring.mean(axis=0)).sum(axis=1).mean()))


def shape_tips(shape: Shape) -> tuple[Ints, Floats]:
    """(k,) points far from each other over a shape's surface, and (k, n) the ways from them to all points."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    points = shape.points
    pairs = neighbour_pairs(shape, points)
    long = np.maximum(np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1), 1e-9 * shape.diagonal)
    graph = coo_array((long, (pairs[:, 0], pairs[:, 1])), shape=(len(points), len(points))).tocsr()
    middle = int(np.argmin(np.linalg.norm(points - points.mean(axis=0), axis=1)))
    near = dijkstra(graph, directed=False, indices=middle)
    chosen: list[int] = []
    ways: list[Floats] = []
    while len(chosen) < min(CANDIDATES, len(points)):
        chosen.append(int(np.argmax(near)))
        ways.append(dijkstra(graph, directed=False, indices=chosen[-1]))
        near = ways[0] if len(ways) == 1 else np.minimum(near, ways[-1])
    return np.array(chosen), np.array(ways)


def matched(source: Floats, target: Floats, places: Floats, points: Floats) -> Ints | None:
    """(t,) which of a shape's k tips is which of t tips of a skeleton; None if they have different limbs.

    source, target: (t, t) and (k, k) the ways between them. places, points: (t, 3) and (k, 3) where they are.
    """
    count, many = len(source), len(target)
    if many < count:
        return None
    apart = np.square(places[:, None] - points).sum(axis=2) / bounding_diagonal(points) ** 2
    farthest = target[:count, :count].sum() / 2  # they come farthest first
    found, sums = np.zeros((1, 0), dtype=np.int64), np.zeros((1, 5))
    for tip in range(count):
        rows = np.repeat(np.arange(len(found)), many)
        new = np.tile(np.arange(many), len(found))
        free = ~(found[rows] == new[:, None]).any(axis=1)
        rows, new = rows[free], new[free]
        d_t, d_s = target[found[rows], new[:, None]], np.broadcast_to(source[tip, :tip], (len(rows), tip))
        terms = [(d_s**2).sum(axis=1), (d_t**2).sum(axis=1), (d_s * d_t).sum(axis=1), apart[tip, new], d_t.sum(axis=1)]
        sums = sums[rows] + np.stack(terms, axis=1)
        found = np.concatenate([found[rows], new[:, None]], axis=1)
        cost = _unlike(sums) + NEAR * sums[:, 3] / (tip + 1) - FAR * sums[:, 4] / farthest
        best = np.argsort(cost, kind="stable")[:BEAM]
        found, sums = found[best], sums[best]
    return found[0] if float(_unlike(sums[:1])[0]) < UNLIKE else None


def _unlike(sums: Floats) -> Floats:
    """1 − cos² from Σ d_s², Σ d_t² and Σ d_s d_t."""
    product = sums[:, 0] * sums[:, 1]
    return 1 - np.divide(sums[:, 2] ** 2, product, out=np.ones(len(sums)), where=product > 0)


def _bone(points: Floats, far: Floats, low: float, high: float) -> tuple[Floats, Floats] | None:
    """The ends of what lies between two ways from a tip, high end first; None where that is not slender."""
    if not high > low:
        return None
    at = low + (np.arange(RINGS) + 0.5) / RINGS * (high - low)
    centres, ways = [], []
    for middle in at:
        ring = points[np.abs(far - middle) <= (high - low) / RINGS]
        if len(ring) >= 3:
            centre = ring.mean(axis=0)
            if np.sqrt(np.square(ring - centre).sum(axis=1).mean()) <= NARROW * (high - low):
                centres.append(centre)
                ways.append(middle)
    if len(ways) < FEWEST_RINGS:
        return None
    line = np.polyfit(ways, np.array(centres), 1)
    return line[0] * high + line[1], line[0] * low + line[1]

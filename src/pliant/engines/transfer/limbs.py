"""Limbs of a skeleton matched to those of a shape in another rest pose: arms that hang where the skeleton's are raised.

Geodesic distances along a body do not change with its pose. So the tips of the skeleton (hands, feet, the head) are
matched with the tips of the shape by the distances between them: along the bones d_s(i, j), and geodesics over the
shape's surface d_t(i, j). The match minimises

    (1 − (Σ d_s d_t)² / (Σ d_s² Σ d_t²)) + ½ mean |p_i − q_i|² / diagonal² − ½ Σ d_t / Σ d_far

where p are the tips of the skeleton mapped to the shape's bounding box and q the shape's. The first term cannot tell
left from right; the second can. The third prefers the ends of the shape to spikes on the way: d_far are the distances
between as many points of the shape, chosen by farthest-point sampling.

A joint lies at the centre of the ring of points that have its geodesic distance from the limb's tip. Rings around a
limb are narrow; where they are wide, the limb has ended, and no position is given.
"""

from __future__ import annotations

import numpy as np

from pliant.core.shapes import Shape, bounding_diagonal
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats, Ints
from pliant.engines.transfer.body_tree import BodyTree, motion_tree
from pliant.engines.transfer.groups import neighbour_pairs
from pliant.engines.transfer.registration import box_fit

BoneSegments = dict[int, tuple[Floats, Floats]]
"""Start (3,) and end (3,) of bones, by the joint at their start."""
SEPARATE_TIPS = 0.25
"""Least distance between two tips of a skeleton, over the longest: fingers of a hand are one tip."""
MOST_TIPS = 12
"""Most candidates for tips of a shape."""
BEAM = 400
"""Partial matches kept in the beam search."""
POSITION_WEIGHT, SPREAD_WEIGHT = 0.5, 0.5
"""Weights of the second and third term."""
UNLIKE = 0.1
"""Value of the first term above which skeleton and shape have different limbs, and none is matched."""
RINGS = 8
"""Rings along a bone."""
NARROW = 0.5
"""Radius of a ring around a limb, over the length of the bone in it, at most."""
SLENDER_LIMB = 2.0
"""Length of a limb's end, over its radius, from which it has a direction."""
STUMP = 0.4
"""Length of a limb, over the longest, up to which it is ignored: necks, ears."""
STRAIGHT_LIMB = 0.7
"""Cosine of the angle between two bones above which the limb is straight."""
FEWEST_RING_POINTS = 12
"""Of a ring."""
FEWEST_RINGS = 4
"""Narrow ones, for a bone's direction to be known."""


def limb_bones(motion: Motion, rest: object, target: Shape, rotation: Floats) -> BoneSegments:
    """Start and end of bones on the target, for limbs that the target has too and that are slender there.

    rotation: (3, 3) from the source's axes to the target's.
    """
    tree = motion_tree(motion, rest)[0]
    tips = tree.separate_tips(SEPARATE_TIPS)
    if len(tips) < 2:
        return {}
    numbers, path_lengths = shape_tips(target)
    along = np.array([[tree.route(one, other) for other in tips] for one in tips])
    placed = box_fit(rotation, tree.locations, target.points)(tree.locations[tips])
    match = matched(along, path_lengths[:, numbers], placed, target.points[numbers])
    if match is None:
        return {}
    limbs = {tip: bare_limb(tree, tip, tips) for tip in tips}
    long = {tip: tree.depths[tip] - tree.depths[limb[-1]] for tip, limb in limbs.items()}
    bones: BoneSegments = {}
    for k, tip in enumerate(tips):
        far = path_lengths[match[k]]
        scale = float(along[k] @ far[numbers[match]] / (along[k] @ along[k]))
        if long[tip] > STUMP * max(long.values()):
            bones |= _in_limb(target.points, far, tree, limbs[tip], scale)
    return bones


def bare_limb(tree: BodyTree, tip: int, tips: list[int]) -> list[int]:
    """Nodes from a tip up to the start of its limb: one bone below the first node that leads to another tip too.

    The bone above, a collarbone or a hip, belongs to the trunk and not to the limb's direction.
    """
    others = {node for other in tips if other != tip for node in tree.chain(other)}
    own = [node for node in tree.chain(tip) if node not in others]
    branch = tree.depths[tree.parents[own[-1]]] if tree.parents[own[-1]] >= 0 else -1.0
    return [node for node in own if tree.depths[node] > branch]


def _in_limb(points: Floats, far: Floats, tree: BodyTree, limb: list[int], scale: float) -> BoneSegments:
    """The bones of a limb on a shape; far: distances of its points from the limb's tip."""
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
        if np.linalg.norm(wrist - tip) < SLENDER_LIMB * _thickness(
            points, far, float(at[last])
        ):  # a stump points nowhere
            tip = wrist + (wrist - elbow) * at[last] / (at[last + 1] - at[last])
            if not _is_straight(tree, limb, last):
                tip = wrist
        for end in range(last):
            low, high = at[end] / at[last], at[end + 1] / at[last]
            if high > low and np.any(tip != wrist):
                found[end] = (tip + high * (wrist - tip), tip + low * (wrist - tip))
    return {limb[end + 1]: bone for end, bone in found.items()}


def _is_straight(tree: BodyTree, limb: list[int], last: int) -> bool:
    """Whether a source's limb is straight from its bone `last` to the tip."""
    elbow, wrist, tip = (tree.locations[limb[k]] for k in (last + 1, last, 0))
    along, beyond = wrist - elbow, tip - wrist
    return bool(along @ beyond > STRAIGHT_LIMB * np.linalg.norm(along) * np.linalg.norm(beyond))


def _thickness(points: Floats, far: Floats, at: float) -> float:
    """Radius of a limb at distance `at` from its tip."""
    ring = points[np.argsort(np.abs(far - at))[:FEWEST_RING_POINTS]]
    return float(np.sqrt(np.square(ring - ring.mean(axis=0)).sum(axis=1).mean()))


def shape_tips(shape: Shape) -> tuple[Ints, Floats]:
    """(k,) tips of a shape by farthest-point sampling, and (k, n) geodesic distances from them to all points."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    points = shape.points
    pairs = neighbour_pairs(shape, points)
    long = np.maximum(np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1), 1e-9 * shape.diagonal)
    graph = coo_array((long, (pairs[:, 0], pairs[:, 1])), shape=(len(points), len(points))).tocsr()
    middle = int(np.argmin(np.linalg.norm(points - points.mean(axis=0), axis=1)))
    near = dijkstra(graph, directed=False, indices=middle)
    chosen: list[int] = []
    path_lengths: list[Floats] = []
    while len(chosen) < min(MOST_TIPS, len(points)):
        chosen.append(int(np.argmax(near)))
        path_lengths.append(dijkstra(graph, directed=False, indices=chosen[-1]))
        near = path_lengths[0] if len(path_lengths) == 1 else np.minimum(near, path_lengths[-1])
    return np.array(chosen), np.array(path_lengths)


def matched(source: Floats, target: Floats, positions: Floats, points: Floats) -> Ints | None:
    """(t,) the shape's tip, of k, for each of the skeleton's t tips; None if they have different limbs.

    source, target: (t, t) and (k, k) distances between tips. positions, points: (t, 3) and (k, 3) their positions.
    """
    count, many = len(source), len(target)
    if many < count:
        return None
    apart = np.square(positions[:, None] - points).sum(axis=2) / bounding_diagonal(points) ** 2
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
        cost = _unlike(sums) + POSITION_WEIGHT * sums[:, 3] / (tip + 1) - SPREAD_WEIGHT * sums[:, 4] / farthest
        best = np.argsort(cost, kind="stable")[:BEAM]
        found, sums = found[best], sums[best]
    return found[0] if float(_unlike(sums[:1])[0]) < UNLIKE else None


def _unlike(sums: Floats) -> Floats:
    """1 − cos² from Σ d_s², Σ d_t² and Σ d_s d_t."""
    product = sums[:, 0] * sums[:, 1]
    return 1 - np.divide(sums[:, 2] ** 2, product, out=np.ones(len(sums)), where=product > 0)


def _bone(points: Floats, far: Floats, low: float, high: float) -> tuple[Floats, Floats] | None:
    """The ends of the part between two distances from a tip, the farther first; None if it is not slender."""
    if not high > low:
        return None
    at = low + (np.arange(RINGS) + 0.5) / RINGS * (high - low)
    centres, path_lengths = [], []
    for middle in at:
        ring = points[np.abs(far - middle) <= (high - low) / RINGS]
        if len(ring) >= 3:
            centre = ring.mean(axis=0)
            if np.sqrt(np.square(ring - centre).sum(axis=1).mean()) <= NARROW * (high - low):
                centres.append(centre)
                path_lengths.append(middle)
    if len(path_lengths) < FEWEST_RINGS:
        return None
    line = np.polyfit(path_lengths, np.array(centres), 1)
    return line[0] * high + line[1], line[0] * low + line[1]

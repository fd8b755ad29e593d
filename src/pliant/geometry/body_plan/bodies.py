"""How a body stands: up, heading, left and right, the ground, its limbs; and how surely that is known.

A shape: the middle plane is the one it is mirrored in (`symmetry`); up is what its file says, or else the axis along
which pairs of limbs stand on the ground, y or z before others; which end of the middle plane is the front follows from
head and tail, toes and hands, and from vertex groups that are called left and right.

A skeleton: left and right are in the joints' names, or else it is mirrored as a shape is; up is where it stands and its
trunk is above its feet; toes, head and tail, and which way it goes, say where it faces. Where names and toes disagree
the figure has been mirrored, and toes win.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pliant.core.caching import ResultCache, content_key
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, Shape
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.geometry.axes import SignedAxis, axis_name, up_axis, up_vector, usual_front
from pliant.geometry.body_plan import names
from pliant.geometry.body_plan.front import ALIKE, foot_score, front_scores
from pliant.geometry.body_plan.limbs import (
    Anatomy,
    Limb,
    LimbKey,
    Pair,
    anatomy,
    find_pairs,
    limb_part,
    pruned_limbs,
    standing_pairs,
)
from pliant.geometry.body_plan.symmetry import MirrorPlane, mirror_planes, own_axes, surface_samples
from pliant.geometry.body_plan.tree import BodyTree, shape_tree, skeleton_tree
from pliant.geometry.skeletons.limbs import LEAST_SLENDERNESS

MOST_ASYMMETRY = 1.25
"""How much worse the plane between front and back may be than the middle plane, for the two to look alike."""
FOOT_SAMPLES = 12_000
"""Points on a surface by which feet are looked at."""
LIKELY_UP = {"y": 0.3, "z": 0.25, "-y": 0.05, "-z": 0.05, "x": 0.0, "-x": 0.0}
"""How much it counts that an axis is up by convention, where 1 is that a body stands along it."""
TRAVEL_FRAMES = 100
"""Frames of a motion in which it is seen how far it goes, at most."""
UNLIKELY_PLANE = 1.0
"""How much it counts against an upright axis that planes along it are twice as bad as the best."""
NEARLY_BEST = 1.1
"""How much worse than the best the planes along an axis may be, for a tree to be tried along it first."""
NEARLY_SQUARE = 0.7
"""Cosine from which a direction is taken for the coordinate axis that is nearest: bodies stand along the axes."""
MOST_UNEVEN = {"leg": 1.25, "arm": 1.5}
"""Length of a leg or an arm over that of its partner, at most."""
STOUT_LIMBS = 0.8
"""Length of limbs over their width, at least, where usual ones leave a leg or an arm without a partner."""
FAR_APART = 0.7
"""How far along the body a leg or an arm leaves it from where its partner does, over their length, at most."""
MEDIAN_ROUNDS = 60
"""Of the iteration for a geometric median."""
AGREEING, TWISTED, EXACTLY_ALONG = 0.995, 0.88, 0.9995
"""Length of the mean of the directions from right to left from which joints agree; the cosine between what they say
and an axis or a mesh's middle plane, at least, for that to be believed; that between the trunk's joints and an axis."""
PLANAR = 0.02, 0.01
"""How far, over the body, the middles of pairs spread in a plane, at least, in the root mean square; and beside it,
over that, at most."""
CLEAR_SCORE = 0.02
"""From which on a score for the front counts as evidence."""
LEAST_ALONG = 0.7
"""Cosine of the angle between a heading that is given and what is found to be forward or backward, at least."""
SYMMETRY_ERROR = 0.05
"""Error of the plane that a mesh is mirrored in, at most."""
NAMED, GOING = 0.5, 0.3
"""How much it counts for the front which joints are called left and right, and which way the root goes."""


@dataclass(frozen=True, eq=False)
class OrientedBody:
    """A source or a target: how it stands, and its limbs."""

    frame: Floats
    """(3, 3) rows: left, up, forward"""
    tree: BodyTree
    anatomy: Anatomy
    ground: float
    """Height of its lowest point along up"""
    size: float
    """Diagonal of its box along the frame"""
    certainty: float
    """Of the heading: 0 where front and back look alike, 1 where they do not."""
    evidence: tuple[str, ...] = ()
    """What decided, as text"""
    alike: bool = False
    """Whether it is mirrored front to back too, so that either may be the front."""
    against: tuple[str, ...] = ()
    """What contradicts a heading that was given, as text"""
    extremities: frozenset[LimbKey] | None = None
    """Limbs that end in a foot or a hand, where that is known"""

    @property
    def uneven(self) -> tuple[str, float] | None:
        """A role whose limbs are not as long as their partners, and how many times longer one is; None if all are.

        Other limbs were taken for legs or arms then.
        """
        ratios = [
            (one.role, max(one.length, other.length) / max(min(one.length, other.length), 1e-300))
            for one, other in self.partners
        ]
        return next((found for found in ratios if found[1] > MOST_UNEVEN[found[0]]), None)

    @property
    def parted(self) -> str:
        """A role whose left and right limb leave the body far from each other; empty if none do.

        What is taken for the trunk runs from side to side then.
        """
        far = (
            one.role
            for one, other in self.partners
            if self.tree.distance(one.nodes[0], other.nodes[0]) > FAR_APART * (one.length + other.length) / 2
        )
        return next(far, "")

    @property
    def partners(self) -> list[Pair]:
        """Pairs of legs and of arms."""
        found: dict[tuple[str, int], list[Limb]] = {}
        for limb in self.anatomy.limbs:
            if limb.role in MOST_UNEVEN:
                found.setdefault((limb.role, limb.order), []).append(limb)
        return [(both[0], both[1]) for both in found.values() if len(both) == 2]

    def summary(self) -> str:
        """How it stands and what limbs it has."""
        limbs = ", ".join(self.anatomy.named(limb) for limb in self.anatomy.limbs) or "no limbs"
        return f"up {axis_name(self.frame[1])}, facing {axis_name(self.frame[2])} ({', '.join(self.evidence)}), {limbs}"


# Of a shape


def shape_body(shape: Shape, up: SignedAxis | None = None, heading: SignedAxis | None = None) -> OrientedBody:
    """How a shape stands. up, heading: where they are known; a file that says which axis is up is believed."""
    shape = without_helpers(shape)
    if up is None and shape.world is not None:
        up = up_axis(shape)
    geometry = (shape.points, getattr(shape, "triangles", ()), getattr(shape, "tets", ()))
    named = _named_left(shape)
    return _bodies.get((content_key(*geometry, named), up, heading), lambda: _even_body(shape, named, up, heading))


def without_helpers(shape: Shape) -> Shape:
    """A mesh without faces that only help to fit clothes or joints, by what their groups are called: MakeHuman's."""
    groups = shape.labels.get("group") if isinstance(shape, Mesh) else None
    helpers = names.helper_groups(() if groups is None else groups.names)
    if groups is None or not helpers:
        return shape
    assert isinstance(shape, Mesh)
    body = np.array([name not in helpers for name in groups.names])[groups.index[shape.triangle_polygon]]
    used, triangles = np.unique(shape.triangles[body], return_inverse=True)
    if not len(used):
        return shape
    weights = {name: values[used] for name, values in shape.vertex_groups.items()}
    return Mesh(shape.points[used], triangles.reshape(-1, 3), world=shape.world, vertex_groups=weights)


_bodies: ResultCache[OrientedBody] = ResultCache(16)
"""A shape may be both source and target, or is read again with other options."""


def _named_left(shape: Shape) -> Floats:
    """(3,) the mean direction between vertex groups that are called right and left; 0 where none are."""
    groups = getattr(shape, "vertex_groups", {})
    called = [name for name, weights in groups.items() if weights.sum() > 0]
    centres = [groups[name] @ shape.points / groups[name].sum() for name in called]
    apart = np.array([centres[i] - centres[j] for i, j in names.mirrored(called)]).reshape(-1, 3)
    length = np.linalg.norm(apart, axis=1)
    found: Floats = (apart[length > 0] / length[length > 0, None]).sum(axis=0) / max(len(apart), 1)
    return found


def _even_body(shape: Shape, named_left: Floats, up: SignedAxis | None, heading: SignedAxis | None) -> OrientedBody:
    """With stouter limbs than usual where one leg or arm has no partner without them."""
    found = _shape_body(shape, named_left, up, heading)
    if found.uneven is None:
        return found
    stout = _shape_body(shape, named_left, up, heading, slender=STOUT_LIMBS)
    return stout if stout.uneven is None and stout.anatomy.legs == found.anatomy.legs else found


def _shape_body(
    shape: Shape,
    named_left: Floats,
    up: SignedAxis | None,
    heading: SignedAxis | None,
    slender: float = LEAST_SLENDERNESS,
) -> OrientedBody:
    samples = surface_samples(shape)
    candidates: Sequence[SignedAxis] = [up] if up is not None else list(LIKELY_UP)  # type: ignore[arg-type]
    candidates = [axis for axis in candidates if heading is None or axis[-1] != heading[-1]]
    if not candidates:
        raise InputError(f"heading is {heading}, along what is up; expected another axis", argument="heading")
    planes = {axis: mirror_planes(samples, np.eye(3)["xyz".index(axis)]) for axis in {c[-1] for c in candidates}}
    least = min(found[0].error for found in planes.values())
    first = min(planes, key=lambda axis: (planes[axis][0].error > NEARLY_BEST * least, -LIKELY_UP[axis]))
    tree, poses = _tree_in(shape, planes[first][0], up_vector(first), slender), []  # type: ignore[arg-type]
    for axis in candidates:
        for plane in planes[axis[-1]]:
            posed = _Posed.of(tree, plane, up_vector(axis), shape)
            score = posed.standing + (LIKELY_UP[axis] if up is None else 0.0)
            poses.append((score - UNLIKELY_PLANE * min(plane.error / max(least, 1e-12) - 1, 2.0), posed))
    best = max(poses, key=lambda scored: scored[0])[1]
    faced = None if heading is None else up_vector(heading)
    if faced is not None and abs(best.forward @ faced) < LEAST_ALONG:
        same = [
            scored for scored in poses if scored[1].up @ best.up > 0.5 and abs(scored[1].forward @ faced) > LEAST_ALONG
        ]
        if not same and best.plane.error < SYMMETRY_ERROR:
            sides = " or ".join(axis_name(sign * best.forward) for sign in (1, -1))
            raise InputError(
                f"heading is {heading}, from side to side of the shape; expected {sides}, one of which it faces",
                argument="heading",
            )
        normal = np.cross(best.up, faced)
        middle = MirrorPlane(normal, float(np.mean(samples @ normal)), best.plane.error)
        best = max(same, key=lambda scored: scored[0])[1] if same else _Posed.of(tree, middle, best.up, shape)
    if abs(best.up["xyz".index(first)]) < 0.5:  # so that it does not depend on which axis was tried first
        best = _Posed.of(_tree_in(shape, best.plane, best.up, slender), best.plane, best.up, shape)
    return _faced(best, shape, faced, mirror_planes(samples, best.up), named_left)


def _tree_in(shape: Shape, plane: MirrorPlane, up: Floats, slender: float) -> BodyTree:
    return shape_tree(shape, own_axes(shape, np.stack([plane.normal, up, np.cross(plane.normal, up)])), slender)


@dataclass(frozen=True, eq=False)
class _Posed:
    """A tree with an upright axis and a middle plane."""

    tree: BodyTree
    limbs: list[Limb]
    plane: MirrorPlane
    pairs: list[Pair]
    up: Floats
    ground: float

    @classmethod
    def of(cls, tree: BodyTree, plane: MirrorPlane, up: Floats, shape: Shape) -> _Posed:
        limbs = pruned_limbs(tree, plane.normal, plane.offset)
        pairs = find_pairs(limbs, tree, plane.normal, plane.offset)
        return cls(tree, limbs, plane, pairs, up, float((shape.points @ up).min()))

    @property
    def forward(self) -> Floats:
        """Or backward."""
        return np.cross(self.plane.normal, self.up)

    @property
    def standing(self) -> float:
        """1 if pairs of limbs stand, and more the farther down they reach and the more of all limbs are in pairs."""
        whole = max(sum(limb.length for limb in self.limbs), 1e-300)
        legs = standing_pairs(self.pairs, self.tree, self.up, self.forward, self.ground)
        down = sum(float(-limb.reach @ self.up) for pair in legs for limb in pair) / whole  # little of what lies flat
        paired = sum(limb.length for pair in self.pairs for limb in pair) / whole
        return (1.0 if legs else 0.0) + 0.3 * down + 0.5 * paired


def _faced(
    posed: _Posed, shape: Shape, heading: Floats | None, planes: Sequence[MirrorPlane], named_left: Floats
) -> OrientedBody:
    """With a front."""
    up, normal, forward, tree, ground = posed.up, posed.plane.normal, posed.forward, posed.tree, posed.ground
    scores = front_scores(tree, posed.limbs, posed.pairs, up, forward, ground)
    legs = [limb for pair in standing_pairs(posed.pairs, tree, up, forward, ground) for limb in pair]
    axes = np.stack([normal, up, forward])
    size = float(np.linalg.norm(np.ptp(shape.points @ axes.T, axis=0)))
    scores["names"] = NAMED * float(named_left @ normal)
    scores["toes"] = (scores["toes"] + foot_score(surface_samples(shape, FOOT_SAMPLES), legs, axes, size)) / 2
    total = sum(scores.values()) if heading is None else float(heading @ forward)
    alike = heading is None and abs(total) < ALIKE
    if alike:
        total = float(usual_front(up) @ forward)
    sign = 1.0 if total >= 0 else -1.0
    certainty, evidence = _certainty(scores, total, heading is not None, alike)
    frame = np.stack([sign * normal, up, sign * forward])
    pairs = posed.pairs if sign > 0 else [(right, left) for left, right in posed.pairs]
    found = anatomy(posed.limbs, pairs, tree, frame, ground)
    against = tuple(name for name, value in scores.items() if value * sign <= -CLEAR_SCORE)
    against = against if heading is not None and sum(scores.values()) * sign <= -2 * ALIKE else ()
    both = any(abs(p.normal @ forward) > 0.99 and p.error < MOST_ASYMMETRY * posed.plane.error for p in planes)
    return OrientedBody(frame, tree, found, ground, size, certainty, evidence, alike and both, against=against)


def _certainty(scores: dict[str, float], total: float, given: bool, alike: bool) -> tuple[float, tuple[str, ...]]:
    """How sure the front is, and what speaks for it."""
    if given:
        return 1.0, ("heading as given",)
    if alike:
        return 0.0, ("front and back look alike",)
    most = max(scores.values(), key=lambda value: value * np.sign(total))
    clear = min(CLEAR_SCORE, 0.5 * abs(most))
    evidence = tuple(name for name, value in scores.items() if value * np.sign(total) >= clear)
    return abs(total) / max(4 * ALIKE, sum(abs(value) for value in scores.values()), abs(total)), evidence


# Of a skeleton


def skeleton_body(
    skeleton: Skeleton,
    mesh: Mesh | None = None,
    up: SignedAxis | None = None,
    heading: SignedAxis | None = None,
    motion: Motion | None = None,
) -> OrientedBody:
    """How a skeleton stands at rest.

    mesh: the shape that it moves. up, heading: where they are known. motion: of the skeleton, to see which way it goes.
    """
    tree = skeleton_tree(skeleton, mesh)
    size = tree.size
    if not size > 0:
        raise InputError("the motion's skeleton has no bones; give the controls themselves", argument="sources")
    if up is None and mesh is not None and mesh.world is not None:
        up = up_axis(mesh)
    upright = None if up is None else up_vector(up)
    posed, named = _posed_skeleton(tree, upright, mesh), 0.0
    if posed is None:
        posed = _mirrored_skeleton(tree, upright)
    else:
        named = NAMED
    forward = posed.forward
    ground = posed.ground if mesh is None else float((mesh.points @ posed.up).min())
    scores = front_scores(tree, posed.limbs, posed.pairs, posed.up, forward, ground)
    scores |= {"names": named, "travel": GOING * _travel(motion, forward, size)}
    given = None if heading is None else float(up_vector(heading) @ forward)
    total = sum(scores.values()) if given is None else given
    alike = given is None and abs(total) < ALIKE
    if alike:
        total = float(usual_front(posed.up) @ forward)
    sign = 1.0 if total >= 0 else -1.0
    certainty, evidence = _certainty(scores, total, given is not None, alike)
    if named and sign < 0:
        evidence = (*evidence, "left and right are swapped in its names")
    frame = np.stack([sign * posed.plane.normal, posed.up, sign * forward])
    pairs = posed.pairs if sign > 0 else [(right, left) for left, right in posed.pairs]
    standing = _legs(pairs, tree, posed.up, forward, ground)
    found = anatomy(posed.limbs, pairs, tree, frame, ground, standing=standing)
    return OrientedBody(frame, tree, found, ground, size, certainty, evidence)


def _posed_skeleton(tree: BodyTree, up: Floats | None, mesh: Mesh | None = None) -> _Posed | None:
    """By the names of joints; None where they name no sides. mesh: what the skeleton moves."""
    both = names.mirrored(tree.names)
    apart = np.array([tree.locations[i] - tree.locations[j] for i, j in both]).reshape(-1, 3)
    if not len(both) or np.linalg.norm(apart.sum(axis=0)) < 0.02 * tree.size:
        return None
    normal = _across(tree, both, up, mesh)
    offset = float(np.median([(tree.locations[i] + tree.locations[j]) @ normal / 2 for i, j in both]))
    limbs = pruned_limbs(tree, normal, offset)
    pairs = _named_pairs(limbs, dict(both), find_pairs(limbs, tree, normal, offset))
    plane = MirrorPlane(normal, offset, 0.0)
    if up is None:
        return _posed_skeleton(tree, _upright(tree, limbs, pairs, plane), mesh)
    return _Posed(tree, limbs, plane, pairs, up, float((tree.locations @ up).min()))


def _across(tree: BodyTree, both: Sequence[tuple[int, int]], up: Floats | None, mesh: Mesh | None) -> Floats:
    """From right to left: the geometric median of the directions between joints that are called alike.

    Joints near the trunk count most, for limbs may rest in any pose. Where they disagree the rest pose is twisted, and
    a plane in which the middles of all pairs lie, an axis that shoulders or hips are along, or else the plane that the
    mesh is mirrored in, says more than all.
    """
    sided = {node for pair in both for node in pair}
    beyond = np.array([min(sum(node in sided for node in tree.chain(k)) for k in pair) for pair in both])
    apart = np.array([tree.locations[i] - tree.locations[j] for i, j in both])
    if up is not None:
        apart = apart - np.outer(apart @ up, up)
    length = np.linalg.norm(apart, axis=1)
    known = length > 1e-9 * tree.size
    if not known.any():
        raise InputError("left and right of the skeleton are above each other; which axis is up?", argument="up")
    beyond, directions = beyond[known] - beyond[known].min(), apart[known] / length[known, None]
    weight = 1.0 / (1 + beyond) ** 2
    weight /= weight.sum()
    normal = weight @ directions
    agreement = float(np.linalg.norm(normal))
    for _ in range(MEDIAN_ROUNDS):  # Weiszfeld
        pull = weight / np.maximum(np.linalg.norm(directions - normal, axis=1), 1e-9)
        normal = pull @ directions / pull.sum()
    normal = normal / max(float(np.linalg.norm(normal)), 1e-300)
    if agreement >= AGREEING:
        return normal
    across = across_middles(np.array([tree.locations[i] + tree.locations[j] for i, j in both]) / 2, tree.size)
    if across is not None and abs(across @ normal) > TWISTED:
        found: Floats = across * np.sign(across @ normal)
        return found
    k = int(np.argmax(np.abs(normal)))
    axis: Floats = np.sign(normal[k]) * np.eye(3)[k]
    if axis @ normal > TWISTED and (directions[beyond == 0] @ axis).max() > EXACTLY_ALONG:
        return axis
    if mesh is not None and up is not None:
        plane = mirror_planes(surface_samples(mesh), up)[0]
        if abs(plane.normal @ normal) > TWISTED and plane.error < SYMMETRY_ERROR:
            normal = plane.normal * np.sign(plane.normal @ normal)
    return axis if axis @ normal > AGREEING else normal  # what is uncertain is likely along an axis


def across_middles(middles: Floats, size: float) -> Floats | None:
    """(3,) across the plane in which the middles (k, 3) of pairs lie; None where they lie in none, or in a line."""
    sums, axes = np.linalg.svd(middles - middles.mean(axis=0), full_matrices=False)[1:]
    spread = sums / len(middles) ** 0.5
    planar = len(spread) == 3 and spread[1] > PLANAR[0] * size and spread[2] < PLANAR[1] * spread[1]
    return np.asarray(axes[2]) if planar else None


def _named_pairs(limbs: list[Limb], both: dict[int, int], found: list[Pair]) -> list[Pair]:
    """Limbs whose joints are called alike but for the side, left one first; the others are paired by shape."""
    pairs: list[Pair] = []
    for limb in limbs:
        partners = Counter(
            k for node in limb.nodes if node in both for k, other in enumerate(limbs) if both[node] in other.nodes
        )
        best = partners.most_common(1)
        if best and limbs[best[0][0]] is not limb:
            pairs.append((limb, limbs[best[0][0]]))
    used = {limb.nodes[-1] for pair in pairs for limb in pair}
    return pairs + [pair for pair in found if not {limb.nodes[-1] for limb in pair} & used]


def _legs(pairs: list[Pair], tree: BodyTree, up: Floats, forward: Floats, ground: float) -> list[Pair]:
    """Pairs that stand; without any, those that are called legs."""
    standing = standing_pairs(pairs, tree, up, forward, ground)
    return standing or [pair for pair in pairs if limb_part(pair[0], tree) == "leg"]


def _upright(tree: BodyTree, limbs: list[Limb], pairs: list[Pair], plane: MirrorPlane) -> Floats:
    """The axis along which pairs of limbs stand, and the trunk is above the legs; y or z before others."""
    feet = [limb for limb in limbs if limb_part(limb, tree) == "leg"] or [limb for pair in pairs for limb in pair]
    tops = [j for j, name in enumerate(tree.names) if names.part(name) in ("trunk", "head")]
    away = tree.locations[tops].mean(axis=0) if tops else tree.locations.mean(axis=0)
    away = away - np.mean([limb.path[-1] for limb in feet] or [away], axis=0)
    away = away - (away @ plane.normal) * plane.normal
    away = away / max(float(np.linalg.norm(away)), 1e-300)
    axes = {axis: up_vector(axis) for axis in LIKELY_UP}  # type: ignore[arg-type]
    if not any(axis @ away > NEARLY_SQUARE for axis in axes.values()):
        return away
    scores = {}
    for name, axis in axes.items():
        if abs(axis @ plane.normal) < 0.5:
            posed = _Posed(tree, limbs, plane, pairs, axis, float((tree.locations @ axis).min()))
            scores[name] = posed.standing + LIKELY_UP[name] + float(axis @ away)
    return axes[max(scores, key=lambda name: scores[name])] if scores else away


def _mirrored_skeleton(tree: BodyTree, up: Floats | None) -> _Posed:
    """From locations alone."""
    bones = np.flatnonzero(tree.parents >= 0)
    t = np.linspace(0, 1, 9)[:, None, None]
    samples = ((1 - t) * tree.locations[tree.parents[bones]] + t * tree.locations[bones]).reshape(-1, 3)
    axes = [up] if up is not None else [up_vector(axis) for axis in ("y", "z", "-y", "-z")]
    poses = []
    for axis, usual in zip(axes, (0.3, 0.25, 0.0, 0.0), strict=False):
        for plane in mirror_planes(samples, axis):
            limbs = pruned_limbs(tree, plane.normal, plane.offset)
            pairs = find_pairs(limbs, tree, plane.normal, plane.offset)
            posed = _Posed(tree, limbs, plane, pairs, axis, float((tree.locations @ axis).min()))
            poses.append((posed.standing + usual - 5 * plane.error, posed))
    return max(poses, key=lambda scored: scored[0])[1]


def _travel(motion: Motion | None, forward: Floats, size: float) -> float:
    """From -1 to 1: how much the root goes to the front, as it sees it itself."""
    if motion is None or len(motion) < 2:
        return 0.0
    positions, quaternions = motion.world()
    root = positions[:, 0]
    from scipy.spatial.distance import pdist

    from pliant.core import rotations

    if pdist(root[np.linspace(0, len(root) - 1, min(len(root), TRAVEL_FRAMES)).astype(int)]).max() < 0.3 * size:
        return 0.0

    since = rotations.multiply(quaternions[:, 0], rotations.inverse(motion.skeleton.rest_world[1][0]))
    steps = rotations.rotate(rotations.inverse(since[:-1]), np.diff(root, axis=0))
    length = np.linalg.norm(steps, axis=1)
    steady = length < 10 * np.median(length)
    return float((steps[steady] @ forward).sum() / max(float(length[steady].sum()), 1e-300))

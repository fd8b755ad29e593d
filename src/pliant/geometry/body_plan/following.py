"""A body that follows another one, limb by limb.

Frames (rows: left, up, forward) are F₀ of the source at rest, F_w of the world that it moves in, and F_t of the target.
With T = F_tᵀ F_w and Q = F₀ᵀ F_t, a node of the target that keeps its posture is rotated by

    Δ = T S Q,

S being the source's rotation against rest; one that points has the bone t at rest, the source's s, and the source's
d(t) in a frame:

    Δ₀ = T S R(Q t → s) Q,   Δ = R(Δ₀ t → T d) Δ₀,

R(a → b) the smallest rotation from a to b. So it points where the source's points, whatever poses the two rest in.
Nodes that follow nothing go along with their parents. Bones keep their lengths; the hips travel as many times as far as
the target's legs are longer, and are as many times as high above the floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pliant.core import rotations
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.geometry.body_plan.bodies import OrientedBody
from pliant.geometry.body_plan.guides import Between, Chain, Guide, Guides, chain_of, limb_guides, spine_guides
from pliant.geometry.body_plan.limbs import LimbKey
from pliant.geometry.body_plan.matching import LimbMatch
from pliant.geometry.body_plan.moving import MovingBody


@dataclass(frozen=True, eq=False)
class Follower:
    """A target's limbs and the source's that they follow."""

    source: MovingBody
    target: OrientedBody
    pairs: tuple[tuple[Chain, Chain], ...]
    """(the source's, the target's)"""
    guides: Guides
    splay: Mapping[int, float] = field(default_factory=dict)
    """By pair, the angle by which the target's limb is rotated to the left, about the trunk's forward direction"""

    @classmethod
    def of(
        cls, source: MovingBody, target: OrientedBody, match: LimbMatch, starts: Mapping[LimbKey, float] | None = None
    ) -> Follower:
        """target: of a jointed body. match: of its limbs. starts: shares from which the source's limbs are followed."""
        guides, pairs = spine_guides(source.body, target), []
        for one, other in match.pairs:
            mine, theirs = chain_of(source.body, one, (starts or {}).get(one.key, 0.0)), chain_of(target, other)
            pairs.append((mine, theirs))
            guides |= limb_guides(mine, theirs, target)
        root = int(np.argmin(target.tree.parents))
        guides.setdefault(root, guides[target.anatomy.spine[0]])
        return cls(source, target, tuple(pairs), guides)

    @property
    def legs(self) -> list[tuple[Chain, Chain]]:
        """Those that both stand on."""
        return [pair for pair in self.pairs if pair[1].role == "leg"]

    @property
    def T(self) -> Floats:
        """(3, 3) from the source's world to the target's."""
        found: Floats = self.target.frame.T @ self.source.world
        return found

    @property
    def scale(self) -> float:
        """Target units for a source unit: by the legs, or by the bodies."""
        ratios = [
            leg_length(self.target, theirs) / max(leg_length(self.source.body, mine), 1e-300)
            for mine, theirs in self.legs
        ]
        return float(np.mean(ratios)) if ratios else self.target.size / self.source.body.size

    def rotations(self) -> Floats:
        """(frames, m, 4) of the target's nodes, against rest."""
        T, Q = (rotations.quaternion(R) for R in (self.T, self.source.body.frame.T @ self.target.frame))
        found = np.zeros((len(self.source), len(self.target.tree.locations), 4))
        for node, parent in enumerate(self.target.tree.parents.tolist()):
            guide = self.guides.get(node)
            found[:, node] = found[:, parent] if guide is None else self._guided(guide, T, Q)
        for k, angle in self.splay.items():
            self._splay(found, self.pairs[k][1], angle)
        return found

    def _splay(self, found: Floats, chain: Chain, angle: float) -> None:
        """Rotate a limb, not its foot, about the forward direction of the trunk that it is on, in place."""
        if not angle:
            return
        tree = self.target.tree
        trunk = int(tree.parents[chain.collar[0] if chain.collar else chain.nodes[0]])
        forward = rotations.rotate(found[:, trunk], self.target.frame[2])
        splayed = rotations.from_axis_angle(forward, np.full(len(found), angle))
        last = chain.nodes.index(chain.end_node) if chain.role == "leg" else len(chain.nodes)
        for node in chain.nodes[:last]:
            found[:, node] = rotations.multiply(splayed, found[:, node])

    def _guided(self, guide: Guide, T: Floats, Q: Floats) -> Floats:
        """Δ."""
        i, j, t = guide.rotation
        S = self.source.rotations[:, i]
        S = rotations.slerp(S, self.source.rotations[:, j], t) if t else S
        if guide.chord is None or guide.along is None:
            return rotations.multiply(T, rotations.multiply(S, Q))
        start, end = guide.chord
        rest, d = (_point(p, end) - _point(p, start) for p in (self.source.body.tree.locations, self.source.positions))
        aligned = rotations.multiply(rotations.between(rotations.rotate(Q, guide.along), rest), Q)
        rotated = rotations.multiply(T, rotations.multiply(S, aligned))
        now = rotations.rotate(rotated, guide.along)
        return rotations.multiply(rotations.between(now, rotations.rotate(T, d)), rotated)

    def reference(self, positions: Floats, body: OrientedBody, side: int) -> Floats:
        """(frames, 3) what leads the way: the middle of the legs' bases, or of the hips. side: 0 source, 1 target."""
        bases = [pair[side].between(pair[side].start) for pair in self.legs]
        root = body.anatomy.spine[0]
        found: Floats = np.mean([_point(positions, base) for base in bases or [(root, root, 0.0)]], axis=0)
        return found

    def root_path(self, rotated: Floats, floor: float) -> Floats:
        """(frames, 3) of the target's root. rotated: the nodes' rotations; floor: height of the source's floor."""
        up, high = self.source.world[1], self.target.frame[1]
        there = self.reference(self.source.positions, self.source.body, 0)
        start = self.reference(self.target.tree.locations, self.target, 1)
        along = self.scale * (there - there[0]) @ self.T.T
        along += start
        if self.legs:
            heights = self.target.ground + self.scale * (there @ up - floor)
            along += (heights - along @ high)[:, None] * high
        origin = np.zeros((len(rotated), 3))
        return along - self.reference(forward(self.target, rotated, origin), self.target, 1)


def _point(positions: Floats, at: Between) -> Floats:
    """(..., 3) between two nodes."""
    i, j, t = at
    return (1 - t) * positions[..., i, :] + t * positions[..., j, :]


def leg_length(body: OrientedBody, chain: Chain) -> float:
    """From the hip, or where it is followed from, along the bones to the ankle, and on to the ground."""
    return (chain.end - chain.start) * chain.length + standing_height(body, chain, chain.end_node)


def standing_height(body: OrientedBody, chain: Chain, node: int) -> float:
    """Of a limb's node above the ground, when it stands: as at rest, less by how much its partner's tip is lower."""
    heights, limbs = body.tree.locations @ body.frame[1] - body.ground, body.anatomy.limbs
    tip = chain.nodes[-1]
    own = next(limb for limb in limbs if limb.nodes[-1] == tip)
    lowest = min(heights[limb.nodes[-1]] for limb in limbs if (limb.role, limb.order) == (own.role, own.order))
    return max(float(heights[node] - heights[tip] + lowest), 0.0)


def forward(body: OrientedBody, rotated: Floats, root: Floats) -> Floats:
    """(frames, m, 3) positions of the nodes, from their rotations against rest and the root's positions."""
    tree = body.tree
    positions = np.zeros((len(rotated), len(tree.locations), 3))
    for node, parent in enumerate(tree.parents.tolist()):
        if parent < 0:
            positions[:, node] = root
        else:
            bone = tree.locations[node] - tree.locations[parent]
            positions[:, node] = positions[:, parent] + rotations.rotate(rotated[:, parent], bone)
    return positions


def skeleton_motion(
    skeleton: Skeleton, body: OrientedBody, rotated: Floats, positions: Floats, fps: float, name: str = "motion"
) -> Motion:
    """The nodes' rotations against rest, and positions, as a motion of the skeleton that they are of.

    Joints that the body leaves out go along rigidly with the next one above that it has, or with its root.
    """
    node = {int(joint): k for k, joint in reversed(list(enumerate(body.tree.joints.tolist())))}
    rest, rest_rotations = skeleton.rest_world
    frames, count = len(rotated), len(skeleton)
    world = np.zeros((frames, count, 4))
    located = np.zeros((frames, count, 3))
    lead: list[int] = []
    for j, parent in enumerate(skeleton.parents.tolist()):
        lead.append(node.get(j, lead[parent] if parent >= 0 else 0))
        k = lead[j]
        world[:, j] = rotations.multiply(rotated[:, k], rest_rotations[j])
        located[:, j] = positions[:, k] + rotations.rotate(rotated[:, k], rest[j] - body.tree.locations[k])
    above = np.maximum(skeleton.parents, 0)
    has = (skeleton.parents >= 0)[:, None]
    back = rotations.inverse(np.where(has, world[:, above], rotations.IDENTITY))
    local = rotations.multiply(back, world)
    shifts = rotations.rotate(back, located - np.where(has, located[:, above], 0.0))
    return Motion(skeleton, local, shifts, fps, name=name)

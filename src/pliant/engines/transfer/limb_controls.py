"""Controls on a target's limbs and trunk that follow those of a source.

Frames (rows: left, up, forward) are F₀ of the source at rest, F_w of the world that it moves in, and F_t of the target.
With T = F_tᵀ F_w and Q = F₀ᵀ F_t, a piece of a limb that points along t on the target and along s on the source at rest
is asked for

    G = T S B,   B = R(Q t → s) Q,

so that it points where the source's points, whatever poses the two rest in. Pieces of the trunk keep the target's
posture: B = Q. Points along a limb correspond by their share in its length. The hips lead the way: as many times as far
as the target's legs are longer, and as high above the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats, Ints
from pliant.core.values import locked
from pliant.engines.transfer.anatomy import Limb
from pliant.engines.transfer.limb_matching import LimbMatch
from pliant.engines.transfer.motion_body import MotionBody, is_finger, joins_trunk
from pliant.engines.transfer.orientation import OrientedBody
from pliant.engines.transfer.plan import Control, Follow
from pliant.engines.transfer.source_tracks import SourceTracks
from pliant.engines.transfer.sources import Track, group_tracks, joint_tracks

FOOT, BENT = 0.4, 0.8
"""Length of a foot, over the leg, at most; and the cosine of the angle at an ankle."""
SHORTEST = 0.09
"""Length of a bone, over its limb, below which it drives nothing."""
COLLAR = 0.3
"""Length of what joins a limb to the trunk, a collarbone or a hip, over the limb, at most."""
WIDE = 1.5
"""Width of a limb, over that of its outer half, from which it is part of the trunk."""
INSIDE = 0.45
"""Share of a shape's limb that may lie inside the trunk, at most."""
LIMB_STRETCH = 1.5
"""Most that a piece of a sequence may ask the target to stretch, or to shrink."""
FEWEST_LIMB_POINTS = 4
"""Of a piece of a sequence."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a source's limb or trunk, from one share of its length to another."""

    start: float
    end: float
    direction: Floats
    """(3,) at rest"""
    track: Track


@dataclass(frozen=True, eq=False)
class LimbLine:
    """A limb, or the trunk, from its start to its end."""

    points: Floats
    """(k, 3)"""

    @property
    def steps(self) -> Floats:
        """(k,) the way to each point."""
        return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(self.points, axis=0), axis=1))])

    @property
    def length(self) -> float:
        """Of the whole."""
        return float(self.steps[-1])

    def at(self, share: float) -> Floats:
        """(3,) the point at a share of its length."""
        steps = self.steps
        return np.array([np.interp(share * steps[-1], steps, axis) for axis in self.points.T])


def limb_line(body: OrientedBody, limb: Limb) -> LimbLine:
    """A shape's limb without what lies in the trunk, as long as its partner's."""
    same = [k for k in body.anatomy.limbs if (k.role, k.order) == (limb.role, limb.order)]
    line, widths = LimbLine(limb.path), body.tree.widths[list(limb.nodes)]
    steps, fork = line.steps, limb.path[0]
    within = np.linalg.norm(limb.path - fork, axis=1) <= widths[0] / 2
    wide = widths > WIDE * np.median(widths[len(widths) // 2 :])
    wide[len(wide) // 2 :] = False
    last = np.flatnonzero(within | wide).max(initial=0)
    inside = min(float(steps[last]), INSIDE * line.length)
    start = max(inside, line.length - min(k.length for k in same))
    kept = steps > start
    return LimbLine(np.concatenate([line.at(start / line.length)[None], limb.path[kept]]))


def spine_line(body: OrientedBody) -> LimbLine:
    """The trunk from the hips or the rear to the front."""
    return LimbLine(body.tree.locations[list(body.anatomy.spine)])


# Pieces of a motion


def bone_nodes(motion: Motion, body: OrientedBody, limb: Limb) -> list[int]:
    """Nodes of a skeleton's limb without collarbones and hips."""
    nodes = list(limb.nodes)
    if limb.role not in ("leg", "arm"):
        return nodes
    long = np.linalg.norm(np.diff(limb.path, axis=0), axis=1)
    first = 1
    while len(nodes) - first > 2 and long[: first + 1].sum() <= COLLAR * long.sum() and long[first] < 0.6 * long.max():
        first += 1
    fingers = [k for k in range(2, len(nodes)) if is_finger(motion.skeleton.names[int(body.joints[nodes[k]])])]
    nodes = nodes[: min(fingers, default=len(nodes))]
    while len(nodes) - first > 2 and joins_trunk(motion.skeleton.names[int(body.joints[nodes[first + 1]])]):
        first += 1
    return nodes[first:]


def ankle(line: LimbLine, limb: Limb) -> float:
    """The share of a leg's length where its foot begins: the last bend near its end; 1 if there is none."""
    if limb.role != "leg":
        return 1.0
    routes, share = np.diff(line.points, axis=0), line.steps / line.length
    for k in range(len(routes) - 1, 0, -1):
        sizes = np.linalg.norm(routes[k]) * np.linalg.norm(routes[k - 1])
        if share[k] < 1 - FOOT:
            break
        if routes[k] @ routes[k - 1] < BENT * sizes:
            return float(share[k])
    return 1.0


def bone_pieces(motion: Motion, rest: Any, body: OrientedBody, nodes: Sequence[int]) -> list[Piece]:
    """Of a chain of a skeleton's nodes, one for each bone that is long enough."""
    line = LimbLine(body.tree.locations[list(nodes)])
    if line.length == 0:
        return []
    pieces = []
    share = line.steps / line.length
    for k in range(len(nodes) - 1):
        ends = sorted((int(nodes[k]), int(nodes[k + 1])), key=lambda node: body.tree.depths[node])
        joint = int(body.joints[ends[1]])
        if joint >= 0 and share[k + 1] - share[k] >= SHORTEST:
            name = motion.skeleton.names[joint]
            track = joint_tracks(motion, name, rest=rest)[name]
            pieces.append(Piece(share[k], share[k + 1], line.points[k + 1] - line.points[k], track))
    return pieces


def joint_piece(motion: Motion, rest: Any, body: OrientedBody, node: int, share: float) -> Piece:
    """What turns with a node of the trunk."""
    joint = node if node < len(motion.skeleton) else int(body.joints[node])
    name = motion.skeleton.names[joint]
    return Piece(share, share, np.zeros(3), joint_tracks(motion, name, rest=rest)[name])


def sole(line: LimbLine, foot: float, body: OrientedBody, there: LimbLine, target: OrientedBody) -> float:
    """The share of a target's leg where its foot begins: as high, over the leg, as the source's ankle."""
    if foot >= 1:
        return 1.0
    up, high = body.frame[1], target.frame[1]
    share = (float(line.at(foot) @ up) - body.ground) / max(float(line.at(0.0) @ up) - body.ground, 1e-300)
    wanted = target.ground + share * (float(there.at(0.0) @ high) - target.ground)
    at = np.linspace(0.5, 0.97, 48)
    heights = np.array([float(there.at(k) @ high) for k in at])
    below = np.flatnonzero(heights <= wanted)
    return float(at[below[0]]) if len(below) else 0.97


def rescaled(piece: Piece, factor: float) -> Piece:
    """The same piece at other shares of the length."""
    return replace(piece, start=factor * piece.start, end=factor * piece.end)


# Pieces of a sequence


def vertex_owners(points: Floats, body: OrientedBody, lines: Sequence[LimbLine]) -> tuple[Ints, Floats]:
    """(n,) the line that each point is nearest to, and (n,) the share of its length there."""
    best = np.full(len(points), np.inf)
    owner, share = np.zeros(len(points), dtype=np.int64), np.zeros(len(points))
    for k, line in enumerate(lines):
        steps = line.steps
        for a, b, low, high in zip(line.points[:-1], line.points[1:], steps[:-1], steps[1:], strict=True):
            t = np.clip((points - a) @ (b - a) / max(float((b - a) @ (b - a)), 1e-300), 0, 1)
            away = np.linalg.norm(points - a - t[:, None] * (b - a), axis=1)
            nearer = away < best
            best[nearer], owner[nearer] = away[nearer], k
            share[nearer] = (low + t[nearer] * (high - low)) / max(line.length, 1e-300)
    return owner, share


def sequence_pieces(
    clip: Animation, rest: Floats, name: str, line: LimbLine, inside: Ints, share: Floats, count: int
) -> list[Piece]:
    """Of a line whose points are `inside`, so many of the same length."""
    pieces = []
    for k in range(count):
        low, high = k / count, (k + 1) / count
        own = inside[(share >= low) & ((share < high) | (k == count - 1))]
        if len(own) < FEWEST_LIMB_POINTS or np.linalg.matrix_rank(rest[own] - rest[own].mean(axis=0), tol=1e-9) < 2:
            continue
        track = group_tracks(clip, {f"{name} {k + 1}": own}, rest=rest)[f"{name} {k + 1}"]
        pieces.append(Piece(low, high, line.at(high) - line.at(low), bounded(track)))
    return pieces


def bounded(track: Track) -> Track:
    """A track that stretches by no more than `STRETCH`, and is not turned inside out."""
    U, size, V = np.linalg.svd(track.gradients)
    U[:, :, 2] *= np.where(np.linalg.det(track.gradients) < 0, -1, 1)[:, None]
    return replace(track, gradients=locked((U * np.clip(size, 1 / LIMB_STRETCH, LIMB_STRETCH)[:, None]) @ V))


# Controls


@dataclass(frozen=True, eq=False)
class PlacedControls:
    """Controls of a target, before they are brought inside its cage."""

    controls: tuple[Control, ...]
    follow: tuple[Follow, ...]


def controls_of_motion(
    motion: Motion, feed: SourceTracks, source: MotionBody, target: OrientedBody, match: LimbMatch
) -> PlacedControls:
    """Controls that follow a skeleton's bones."""
    frames = _BodyFrames(source.body.frame, source.world, target.frame)
    body, rest = source.body, feed.pose
    controls: list[Control] = []
    for one, other in match.pairs:
        nodes = bone_nodes(motion, body, one)
        pieces = bone_pieces(motion, rest, body, nodes)
        there = limb_line(target, other)
        if one.role not in ("leg", "arm"):
            controls += frames.along(pieces, there, posture=True)
            continue
        foot = ankle(LimbLine(body.tree.locations[nodes]), one)
        low = sole(LimbLine(body.tree.locations[nodes]), foot, body, there, target)
        controls += frames.along([rescaled(p, low / foot) for p in pieces if p.end <= foot + 1e-9], there)
        beyond = [p for p in pieces if p.end > foot + 1e-9]
        if beyond:
            longest = max(beyond, key=lambda p: p.end - p.start)
            controls += frames.along([replace(longest, start=low, end=1.0)], there, posture=True)
    spine, nodes = spine_line(target), list(body.anatomy.spine)
    trunk = bone_pieces(motion, rest, body, nodes)
    trunk = [joint_piece(motion, rest, body, nodes[0], 0.0), *trunk, joint_piece(motion, rest, body, nodes[-1], 1.0)]
    controls = frames.on_trunk(trunk, spine, target) + controls
    hips = joint_piece(motion, rest, body, nodes[0], 0.0).track
    return PlacedControls(tuple(controls), (_led(hips, frames, spine.at(0.0), source, target, match, motion),))


def controls_of_sequence(
    clip: Animation, rest: Floats, source: OrientedBody, target: OrientedBody, match: LimbMatch
) -> PlacedControls:
    """Controls that follow pieces of a mesh sequence."""
    frames = _BodyFrames(source.frame, source.frame, target.frame)
    limbs = list(source.anatomy.limbs)
    lines = [spine_line(source), *(limb_line(source, limb) for limb in limbs)]
    owner, share = vertex_owners(rest, source, lines)
    controls: list[Control] = []
    for one, other in match.pairs:
        k = 1 + next(i for i, limb in enumerate(limbs) if limb is one)
        inside = np.flatnonzero(owner == k)
        count = _pieces_of(source, one, lines[k])
        pieces = sequence_pieces(clip, rest, source.anatomy.named(one), lines[k], inside, share[inside], count)
        controls += frames.along(pieces, limb_line(target, other), posture=one.role not in ("leg", "arm"))
    inside = np.flatnonzero(owner == 0)
    pieces = sequence_pieces(clip, rest, "trunk", lines[0], inside, share[inside], 2 if lines[0].length else 1)
    pieces = pieces or sequence_pieces(clip, rest, "trunk", lines[0], np.arange(len(rest)), np.zeros(len(rest)), 1)
    spine = spine_line(target)
    controls = frames.on_trunk(pieces, spine, target) + controls
    scale = _leg_scale(source, target, match, [line.length for line in lines[1:]])
    lead = replace(pieces[0].track, name="trunk 1")
    at = spine.at((pieces[0].start + pieces[0].end) / 2)
    return PlacedControls(tuple(controls), (Follow(at, lead, scale, frames.T),))


def _pieces_of(body: OrientedBody, limb: Limb, line: LimbLine) -> int:
    """How many pieces a limb of a shape has, by how slender it is."""
    width = max(float(np.median(body.tree.widths[list(limb.nodes[len(limb.nodes) // 3 :])])), 1e-300)
    most = 4 if limb.role in ("leg", "arm", "limb") else 5
    return int(np.clip(round(np.sqrt(1.6 * line.length / width)), 1, most))


@dataclass(frozen=True, eq=False)
class _BodyFrames:
    rest: Floats
    world: Floats
    target: Floats

    @property
    def T(self) -> Floats:
        """From the source's world to the target's."""
        R_between: Floats = self.target.T @ self.world
        return R_between

    @property
    def Q(self) -> Floats:
        """From the target at rest to the source at rest."""
        R_between: Floats = self.rest.T @ self.target
        return R_between

    def along(self, pieces: Sequence[Piece], line: LimbLine, *, posture: bool = False) -> list[Control]:
        """Controls on a line of the target, whose pieces point where the source's do.

        posture: they turn as the source's do, from where the target's rest.
        """
        controls = []
        for piece in pieces:
            t = self.Q @ (line.at(piece.end) - line.at(piece.start))
            if np.any(t) and np.any(piece.direction):
                B = self.Q if posture else rotations.matrix(rotations.between(t, piece.direction)) @ self.Q
                controls.append(Control(line.at((piece.start + piece.end) / 2), piece.track, B, self.T))
        return controls

    def on_trunk(self, pieces: Sequence[Piece], line: LimbLine, target: OrientedBody) -> list[Control]:
        """Controls on the trunk, apart from each other."""
        controls: list[Control] = []
        for piece in sorted(pieces, key=lambda piece: piece.end != piece.start):
            location = line.at((piece.start + piece.end) / 2)
            if all(np.linalg.norm(location - np.asarray(c.at)) > 0.04 * target.size for c in controls):
                controls.append(Control(location, piece.track, self.Q, self.T))
        return controls


def _leg_scale(source: OrientedBody, target: OrientedBody, match: LimbMatch, lengths: Sequence[float]) -> float:
    """Target units for a source unit: by the legs, or by the bodies."""
    ratios = []
    for one, other in match.pairs:
        if one.role == "leg":
            k = next(i for i, limb in enumerate(source.anatomy.limbs) if limb is one)
            ratios.append(limb_line(target, other).length / lengths[k])
    return float(np.mean(ratios)) if ratios else target.size / source.size


def _led(
    hips: Track,
    frames: _BodyFrames,
    location: Floats,
    source: MotionBody,
    target: OrientedBody,
    match: LimbMatch,
    motion: Motion,
) -> Follow:
    """The hips go along, from where they are in the first frame, as high above the ground as the source's."""
    body = source.body
    lines = [LimbLine(body.tree.locations[bone_nodes(motion, body, limb)]) for limb in body.anatomy.limbs]
    shares = [ankle(line, limb) for line, limb in zip(lines, body.anatomy.limbs, strict=True)]
    scale = _leg_scale(body, target, match, [line.length * share for line, share in zip(lines, shares, strict=True)])
    up, up_rest = source.world[1], body.frame[1]
    stands = float(hips.rest @ up_rest) - body.ground
    ground = float((motion.world()[0] @ up).min())
    start = hips.points[0] + (ground + stands - float(hips.points[0] @ up)) * up
    return Follow(location, replace(hips, rest=locked(start)), scale, frames.T)

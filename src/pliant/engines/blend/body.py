"""From shapes to a spring body: parts placed in common frames, filled, and known in every shape.

Each connected part is handled apart. A part that nothing holds is a free body: every shape of it is first brought into
the base's frame by the motion of most of it, or by its anchor's, blended there, and moved out again along the blend of
those motions (rotation vectors and centres blended by the weights). So a shape that turns as a whole keeps its size on
the way, and at its own weight every shape comes back exactly. A part that is held somewhere is blended where it is.

What the springs strive for between the shapes is one of two models:

- ``"paper"``: Eq. (1), ``r = Σ_s w_s r_s``, lengths alone. By the triangle inequality such lengths are too long
  wherever a spring turns against its surroundings from shape to shape, as in every crease: the body swells, and buckles
  there.
- ``"turned"``, ours and the default: the springs' vectors, turned back into the base's frame in every shape, are
  blended there: ``r = |Σ_s w_s R_sᵀ d_s|``. A spring also keeps, a third as strongly, the direction that this blend has
  once the blended rotation has turned it forward. At each shape both are those of the shape. The docs have the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.topology import Floats, Ints
from pliant.engines.blend import kernels
from pliant.engines.blend.anchor import CORNERS, Anchor, joints, rigid_motion
from pliant.engines.blend.equilibrium import Network
from pliant.engines.blend.guess import UNTURNED, common_rotation, nearest_branch, rotation_vectors, vertex_rotations
from pliant.engines.blend.options import BlendOptions, Model
from pliant.engines.blend.rest_lengths import NO_DIRECTIONS, Rest
from pliant.engines.blend.springs import Springs, distance_two, make_springs

MEMORY = 0.35
"""How strongly the springs of the turned model keep their direction, over how strongly they keep their length."""
BATCH = 4000
"""Vertices of small parts whose common rotations are found together."""


@dataclass(frozen=True, eq=False)
class Frames:
    """The rigid motion of every free part from the base to every shape."""

    part: Ints
    """(n,) part of each vertex."""
    free: NDArray[np.bool_]
    """(parts,) which parts move as free bodies."""
    turns: Floats
    """(shapes, parts, 3) rotation vectors."""
    centres: Floats
    """(shapes, parts, 3) where each part's centre is."""

    def to_base(self, points: Floats, shape: int) -> Floats:
        """Points of one shape brought into the base's frame."""
        turned = rotations.rotate(
            rotations.inverse(rotations.exp(self.turns[shape]))[self.part], points - self.centres[shape][self.part]
        )
        return np.where(self.free[self.part][:, None], turned + self.centres[0][self.part], points)

    def placed(self, points: Floats, weights: Floats) -> Floats:
        """Blended points moved out of the base's frame."""
        turns = np.einsum("s,spk->pk", weights, self.turns)
        centres = np.einsum("s,spk->pk", weights, self.centres)
        turned = rotations.rotate(rotations.exp(turns)[self.part], points - self.centres[0][self.part])
        return np.where(self.free[self.part][:, None], turned + centres[self.part], points)


def part_frames(points: Floats, part: Ints, held: NDArray[np.bool_], turned: Floats) -> Frames:
    """The motion of the parts of shapes (s, n, 3) as a whole; a part with a held vertex is not free.

    turned: (s, n, 4) rotations of the vertices. A part turns as most of it does: a bird's wings do not say how the bird
    has turned, as they would in the best rigid match of all points.
    """
    parts = int(part.max(initial=-1)) + 1
    free = np.ones(parts, dtype=bool)
    free[part[held]] = False
    turns = np.zeros((len(points), parts, 3))
    centres = np.zeros((len(points), parts, 3))
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(parts + 1))
    sizes = np.diff(bounds)
    for size in np.unique(sizes[free]):
        alike = np.flatnonzero(free & (sizes == size))
        for chosen in np.array_split(alike, -(-len(alike) * int(size) // BATCH)):
            members = order[bounds[chosen, None] + np.arange(size)]
            centres[:, chosen] = points[:, members].mean(axis=2)
            for s in range(1, len(points)):
                turn = rotations.log(rotations.shortest(common_rotation(turned[s, members])))
                turns[s, chosen] = nearest_branch(turn, turns[s - 1, chosen])  # keys of a turntable go on turning
    return Frames(part, free, turns, centres)


@dataclass(frozen=True, eq=False)
class SpringBody:
    """The spring network of all shapes, in the base's frame."""

    points: Floats
    """(shapes, n, 3) the surface's vertices followed by the added ones, each shape in the base's frame."""
    turns: Floats
    """(shapes, n, 3) rotation vectors of the vertices against the base."""
    springs: Springs
    tets: Ints
    """(t, 4)"""
    frames: Frames
    network: Network
    model: Model
    surface: int
    """Number of the surface's vertices, which come first."""

    @cached_property
    def diagonal(self) -> float:
        """Of the base."""
        return float(np.linalg.norm(np.ptp(self.points[0], axis=0)))

    @cached_property
    def moves(self) -> NDArray[np.bool_]:
        """(n, shapes) which vertices a shape moves or turns, against the base."""
        base = self.points[0]
        return np.stack(
            [(p != base).any(axis=1) | (t != 0).any(axis=1) for p, t in zip(self.points, self.turns, strict=True)],
            axis=1,
        )

    @cached_property
    def grounded(self) -> NDArray[np.bool_]:
        """(parts,) which parts are held somewhere, by static vertices, pins or an anchor."""
        grounded = np.zeros(len(self.frames.free), dtype=bool)
        grounded[self.frames.part[self.network.held]] = True
        return grounded

    def rest(self, weights: Floats) -> Rest:
        """What the springs strive for at these weights, by the model."""
        if self.model == "paper":  # Eq. 1; extrapolation cannot make lengths negative
            return Rest(np.maximum(weights @ self.springs.rest, 0.0), NO_DIRECTIONS)
        return Rest(*kernels.lengths_and_directions(self.vectors(weights)), MEMORY)

    def vectors(self, weights: Floats) -> Floats:
        """(q, 3) the springs' vectors, blended in the turned frames; see `guess`."""
        last = self.__dict__.get("_vectors")
        if last is None or not np.array_equal(last[0], weights):
            used, edges = np.flatnonzero(weights), self.springs.edges
            vectors = kernels.blended_edges(self.points, self.turns, self.moves, used, weights, edges)
            last = self.__dict__["_vectors"] = weights.copy(), vectors
        return last[1]

    def guess(self, weights: Floats) -> Floats:
        """(n, 3) the rotation-aware start; held vertices at their blended places."""
        vectors = self.vectors(weights)
        network = self.network
        right = kernels.divergence(vectors, self.springs.stiffness, self.springs.edges, network.fans)
        blended = self.linear(weights)
        # One vertex of each free part is not solved for: it starts at its blended place, and the rest follows it.
        known, coupling = network.known
        right -= coupling @ blended[known]
        x = network.solve(right)
        x[known] = blended[known]
        return x

    def centred(self, x: Floats) -> Floats:
        """x with every part that nothing holds moved so that its surface's mean is the frame's centre."""
        loose = self.frames.free & ~self.grounded
        if not loose.any():
            return x
        surface = slice(0, self.surface)
        part, parts = self.frames.part[surface], len(loose)
        count = np.maximum(np.bincount(part, minlength=parts), 1)
        mean = np.stack([np.bincount(part, x[surface, k], minlength=parts) for k in range(3)], axis=1) / count[:, None]
        return x + np.where(loose[:, None], self.frames.centres[0] - mean, 0)[self.frames.part]

    def inverted(self, x: Floats) -> int:
        """How many tetrahedra are turned inside out at x (n, 3)."""
        if not len(self.tets):
            return 0
        a, b, c, d = (x[self.tets[:, k]] for k in range(4))
        return int((np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) < 0).sum())

    def blended_turns(self, weights: Floats) -> Floats:
        """(n, 3) the blended rotation vectors of the vertices."""
        return np.einsum("s,snk->nk", weights, self.turns)

    def linear(self, weights: Floats) -> Floats:
        """(n, 3) linear blending in the base's frame."""
        return np.einsum("s,snk->nk", weights, self.points)


def spring_body(
    points: Floats,
    edges: Ints,
    added: Floats,
    tets: Ints,
    *,
    held: NDArray[np.bool_],
    part: Ints,
    anchors: Sequence[Anchor] = (),
    stiffness: object = None,
    model: Model = BlendOptions.model,
) -> SpringBody:
    """Build the body of shapes (s, n, 3) with surface `edges`, vertices `added` inside the base, and tetrahedra.

    part: (n + added,) connected part of every vertex. held: (n,) vertices whose places are given.
    """
    count = points.shape[1]
    diagonal = float(np.linalg.norm(np.ptp(points[0], axis=0)))
    bending = distance_two(edges, count)
    surface = make_springs(points, {"structure": edges, "bending": bending}, diagonal=diagonal)
    turned = np.stack([vertex_rotations(points[0], shape, surface.edges, surface.stiffness) for shape in points])
    frames = part_frames(points, part[:count], held, turned)
    aligned = np.stack([frames.to_base(shape, s) for s, shape in enumerate(points)])
    turns = np.zeros_like(aligned)
    for s in range(1, len(points)):
        back = rotations.inverse(rotations.exp(frames.turns[s]))[part[:count]]
        turns[s] = rotation_vectors(rotations.multiply(back, turned[s]), edges, held)
    count += len(added)
    groups = {"structure": edges, "bending": bending, "internal": tet_edges(tets, count)}
    aligned, turns = _fill(aligned, turns, added, groups, diagonal)
    frames = Frames(part, frames.free, frames.turns, frames.centres)
    if anchors:
        joined = [joints(a, aligned[0], np.flatnonzero(part == a.part), count) for a in anchors]
        inside = np.concatenate([edges, groups["internal"]])
        aligned, turns, frames = _anchored(anchors, joined, inside, aligned, turns, frames)
        offsets = CORNERS * np.arange(len(anchors))
        shifted = [pairs + np.array([0, offset]) for pairs, offset in zip(joined, offsets, strict=True)]
        groups["anchor"] = np.concatenate(shifted)
    turns[np.sum(turns**2, axis=2) < UNTURNED**2] = 0
    springs = make_springs(aligned, groups, stiffness=stiffness, diagonal=diagonal)  # type: ignore[arg-type]
    all_held = np.ones(aligned.shape[1], dtype=bool)
    all_held[:count] = False
    all_held[: len(held)] = held
    return SpringBody(
        aligned, turns, springs, tets, frames, Network(springs, len(all_held), all_held), model, len(held)
    )


def _anchored(
    anchors: Sequence[Anchor], joined: Sequence[Ints], edges: Ints, points: Floats, turns: Floats, frames: Frames
) -> tuple[Floats, Floats, Frames]:
    """Bring the anchored parts of every shape into their anchor's frame, and add the corners, which stay put there."""
    points, turns = points.copy(), turns.copy()
    frame_turns, frame_centres = frames.turns.copy(), frames.centres.copy()
    for anchor, springs in zip(anchors, joined, strict=True):
        p, members = anchor.part, np.flatnonzero(frames.part == anchor.part)
        number = np.full(len(frames.part), -1)
        number[members] = np.arange(len(members))
        inner = edges[number[edges[:, 0]] >= 0]
        around = np.isin(members, springs[:, 0])
        for s in range(1, len(points)):
            turn, centre = rigid_motion(anchor, points[0], points[s], springs)
            back = rotations.inverse(rotations.exp(turn))
            points[s, members] = rotations.rotate(back, points[s, members] - centre) + anchor.centre
            local = rotations.multiply(back, rotations.exp(turns[s, members]))
            turns[s, members] = rotation_vectors(local, number[inner], around)
            outer = rotations.exp(frames.turns[s, p])
            whole = rotations.log(rotations.shortest(rotations.multiply(outer, rotations.exp(turn))))
            frame_turns[s, p] = nearest_branch(whole, frame_turns[s - 1, p])
            frame_centres[s, p] = rotations.rotate(outer, centre - frames.centres[0, p]) + frames.centres[s, p]
        frame_centres[0, p] = anchor.centre
    corners = np.concatenate([a.corners for a in anchors])
    part = np.concatenate([frames.part, np.repeat([a.part for a in anchors], CORNERS)])
    still = np.broadcast_to(corners, (len(points), *corners.shape))
    return (
        np.concatenate([points, still], axis=1),
        np.concatenate([turns, np.zeros_like(still)], axis=1),
        Frames(part, frames.free, frame_turns, frame_centres),
    )


def tet_edges(tets: Ints, count: int) -> Ints:
    """(e, 2) the edges of tetrahedra."""
    from pliant.core.topology import unique_pairs

    if not len(tets):
        return np.zeros((0, 2), np.int64)
    return unique_pairs(np.concatenate([tets[:, [a, b]] for a in range(4) for b in range(a + 1, 4)]), count)


def _fill(
    points: Floats, turns: Floats, added: Floats, groups: dict[str, Ints], diagonal: float
) -> tuple[Floats, Floats]:
    """Find the added vertices in every shape: rotations diffused inwards from the surface, then one Poisson solve."""
    if not len(added):
        return points, turns
    surface, count = points.shape[1], points.shape[1] + len(added)
    base = np.concatenate([points[0], added])
    springs = make_springs(base[None], groups, diagonal=diagonal)  # type: ignore[arg-type]
    held = np.arange(count) < surface
    network = Network(springs, count, held)
    all_points, all_turns = np.zeros((len(points), count, 3)), np.zeros((len(points), count, 3))
    all_points[:, :surface], all_turns[:, :surface] = points, turns
    all_points[0] = base
    for s in range(1, len(points)):
        all_turns[s] += network.solve(-(network.L @ all_turns[s]))
        vectors = kernels.turned_edges(base, all_turns[s], springs.edges)
        right = kernels.divergence(vectors, springs.stiffness, springs.edges, network.fans)
        all_points[s] += network.solve(right - network.L @ all_points[s])
    return all_points, all_turns

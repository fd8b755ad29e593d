"""The spring network of all shapes: rigid motion of the parts removed, interior vertices added, rest lengths blended.

Each connected part is treated separately. A part without fixed vertices is a free body: its rigid motion from the base
to each shape (the rotation of most of its vertices, or that of its anchor) is removed, the shapes are blended in the
base's frame, and the blended rigid motion (rotation vectors and centres, blended by the weights) is applied again. So a
shape that rotates as a whole does not shrink halfway, and each shape is reproduced exactly at its own weight. A part
with fixed vertices is blended where it is.

Rest lengths between the shapes follow one of two models:

- ``"paper"``: Eq. (1), ``r = Σ_s w_s r_s``, lengths only. By the triangle inequality these are too long wherever a
  spring rotates against its surroundings from shape to shape, as in every crease; the body swells and buckles there.
- ``"turned"``, the default: the springs' vectors are rotated back to the base in every shape and blended there,
  ``r = |Σ_s w_s R_sᵀ d_s|``. Springs also resist, with μ = `DIRECTION_STIFFNESS`, leaving the direction of this blended
  vector, rotated forward by the blended rotation. At each shape, length and direction are those of the shape. Measured
  in the docs.

The initial guess of every solve: blended edge vectors, rotated by blended rotations, and one Poisson solve.

Per vertex, the rotation from the base to shape s is the polar factor of the spring covariance ``Σ_q k_q d_qs d_q0ᵀ``.
The rotation vectors ω are unwrapped over the surface (along the shortest paths from a seed, with the angle between
neighbours as edge length), so that a tail may rotate by more than 180° against the torso. With weights w a vertex
rotates by ``exp(Σ_s w_s ω_s)``. The springs' vectors are rotated back to the base in every shape, blended there and
rotated forward by the blended rotation to give d(w), and

    L x = div(k d(w))

is the least-squares shape with these vectors. At a shape's own weight it is the shape itself. Frames do not depend on
each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.topology import Floats, Ints, connected_parts, unique_pairs
from pliant.engines.blend import kernels
from pliant.engines.blend.anchor import CORNERS, Anchor, anchor_springs, rigid_motion
from pliant.engines.blend.equilibrium import Network
from pliant.engines.blend.options import BlendOptions, Model
from pliant.engines.blend.reference import mean_extent
from pliant.engines.blend.rest_vectors import Pieces, make_pieces, triangle_rotations
from pliant.engines.blend.springs import NO_DIRECTIONS, Rest, SpringKind, Springs, distance_two, make_springs
from pliant.numerics.conjugate_gradients import conjugate_gradients

DIRECTION_STIFFNESS = 0.35
"""μ of the "turned" model: stiffness against a change of direction, relative to that against a change of length."""
MOST_MEDIAN_STEPS = 1000
"""Steps towards the median of a part's rotations, at most: some tens suffice unless two groups are of equal size."""
LOCAL_CHANGES_MEMORY = 1 << 29
"""Bytes of the shapes' differences in the base's frame that are kept; beyond, they are computed anew."""
RECOMPUTED = ("_vectors", "_base_pieces", "_local_changes")
"""What a body keeps besides, and does not pickle."""
ROTATION_BATCH = 4000
"""Vertices of small parts whose common rotations are computed in one batch."""


@dataclass(frozen=True, eq=False)
class PartFrames:
    """The rigid motion of every free part from the base to every shape."""

    part: Ints
    """(n,) part of each vertex."""
    free: NDArray[np.bool_]
    """(parts,) which parts move as free bodies."""
    rotvecs: Floats
    """(shapes, parts, 3) rotation vectors."""
    centres: Floats
    """(shapes, parts, 3) centre of each part."""

    def to_base(self, points: Floats, shape: int) -> Floats:
        """Points of one shape in the base's frame."""
        rotated = rotations.rotate(
            rotations.inverse(rotations.exp(self.rotvecs[shape]))[self.part], points - self.centres[shape][self.part]
        )
        return np.where(self.free[self.part][:, None], rotated + self.centres[0][self.part], points)

    def part_to_base(self, points: Floats, shape: int, part: int) -> Floats:
        """Points (k, 3) in one part of one shape, in the base's frame."""
        only = PartFrames(np.full(len(points), part), self.free, self.rotvecs, self.centres)
        return only.to_base(points, shape)

    def placed(self, points: Floats, weights: Floats) -> Floats:
        """Blended points, from the base's frame to the world."""
        rotvecs = np.einsum("s,spk->pk", weights, self.rotvecs)
        centres = np.einsum("s,spk->pk", weights, self.centres)
        part = self.part
        rotated = kernels.rotated(points - self.centres[0].take(part, axis=0), rotvecs.take(part, axis=0), 1.0)
        return np.where(self.free[part][:, None], rotated + centres.take(part, axis=0), points)


def part_frames(points: Floats, part: Ints, fixed: NDArray[np.bool_], quaternions: Floats) -> PartFrames:
    """The rigid motion of the parts of shapes (s, n, 3); a part with a fixed vertex is not free.

    quaternions: (s, n, 4) rotations of the vertices. A part's rotation is their median and not the best rigid match of
    all points, so that a bird's wings do not affect the rotation of the bird.
    """
    parts = int(part.max(initial=-1)) + 1
    free = np.ones(parts, dtype=bool)
    free[part[fixed]] = False
    rotvecs = np.zeros((len(points), parts, 3))
    centres = np.zeros((len(points), parts, 3))
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(parts + 1))
    sizes = np.diff(bounds)
    for size in np.unique(sizes[free]):
        alike = np.flatnonzero(free & (sizes == size))
        for chosen in np.array_split(alike, -(-len(alike) * int(size) // ROTATION_BATCH)):
            members = order[bounds[chosen, None] + np.arange(size)]
            centres[:, chosen] = points[:, members].mean(axis=2)
            for s in range(1, len(points)):
                rotvec = rotations.log(rotations.shortest(common_rotation(quaternions[s, members])))
                rotvecs[s, chosen] = nearest_branch(rotvec, rotvecs[s - 1, chosen])  # a turntable exceeds 360°
    return PartFrames(part, free, rotvecs, centres)


@dataclass(frozen=True, eq=False)
class SpringBody:
    """The spring network of all shapes, in the base's frame."""

    points: Floats
    """(shapes, n, 3) the surface's vertices followed by the added ones, each shape in the base's frame."""
    all_rotvecs: Floats
    """(shapes, n + t, 3) rotation vectors against the base: of the vertices, followed by the triangles."""
    triangles: Ints
    """(t, 3) of the surface, where it is filled."""
    springs: Springs
    tets: Ints
    """(t, 4)"""
    frames: PartFrames
    network: Network
    model: Model
    surface: int
    """Number of the surface's vertices, which come first."""

    def __getstate__(self) -> dict[str, Any]:
        """Without what is soon computed anew."""
        return {name: value for name, value in self.__dict__.items() if name not in RECOMPUTED}

    @cached_property
    def diagonal(self) -> float:
        """Of the base."""
        return float(np.linalg.norm(np.ptp(self.points[0], axis=0)))

    @cached_property
    def size(self) -> float:
        """What accuracy is relative to: unlike the diagonal, it is the same whichever way the body lies."""
        return mean_extent(self.points)

    @property
    def rotvecs(self) -> Floats:
        """(shapes, n, 3) rotation vectors of the vertices."""
        return self.all_rotvecs[:, : self.points.shape[1]]

    @cached_property
    def pieces(self) -> Pieces:
        """What the springs' rest vectors are made of."""
        return make_pieces(self.springs, self.triangles, self.points.shape[1])

    def local_changes(self, shape: int) -> tuple[Ints, Floats]:
        """The pieces that a shape moves or rotates, and how they differ from the base's in its frame (k, 3)."""
        found = self._local_changes.get(shape)
        if found is None:
            points, rotvecs, pieces = self.points[shape], self.all_rotvecs[shape], self.pieces
            moved = (points != self.points[0]).any(axis=1)
            moved = np.concatenate([moved, moved[self.triangles].any(axis=1)]) | (rotvecs != 0).any(axis=1)
            chosen = np.flatnonzero(moved[pieces.frames].any(axis=1))
            arrays = self.points[0], points, rotvecs, pieces.edges, pieces.frames, chosen
            found = chosen, kernels.local_changes(*arrays)
            kept = [*self._local_changes.values(), found]
            if sum(array.nbytes for pair in kept for array in pair) <= LOCAL_CHANGES_MEMORY:
                self._local_changes[shape] = found
        return found

    @cached_property
    def _base_pieces(self) -> Floats:
        """(p, 3) the pieces' vectors in the base."""
        i, j = self.pieces.edges.T
        vectors: Floats = self.points[0][i] - self.points[0][j]
        return vectors

    @cached_property
    def _local_changes(self) -> dict[int, tuple[Ints, Floats]]:
        """By shape, as far as `LOCAL_CHANGES_MEMORY` allows."""
        return {}

    @cached_property
    def grounded(self) -> NDArray[np.bool_]:
        """(parts,) which parts have fixed vertices: static ones, pins or an anchor's corners."""
        grounded = np.zeros(len(self.frames.free), dtype=bool)
        grounded[self.frames.part[self.network.fixed]] = True
        return grounded

    def rest(self, weights: Floats) -> Rest:
        """Rest lengths and directions at these weights, by the model."""
        if self.model == "paper":  # Eq. 1; extrapolation cannot make lengths negative
            return Rest(np.maximum(weights @ self.springs.rest, 0.0), NO_DIRECTIONS)
        return Rest(*kernels.lengths_and_directions(self.vectors(weights)), DIRECTION_STIFFNESS)

    def vectors(self, weights: Floats) -> Floats:
        """(q, 3) the springs' vectors, blended in the rotated frames; see `pliant.engines.blend.rest_vectors`."""
        return self.blended_pieces(weights)[1]

    def blended_pieces(self, weights: Floats) -> tuple[Floats, Floats]:
        """The vectors (p, 3) of the pieces, and those of the springs (q, 3)."""
        last = self.__dict__.get("_vectors")
        if last is None or not np.array_equal(last[0], weights):
            pieces = self.pieces
            local = self._base_pieces.copy()
            for s in np.flatnonzero(weights[1:]) + 1:
                kernels.add_changes(*self.local_changes(int(s)), weights[s], local)
            found = kernels.rotated_edges(local, blended(self.all_rotvecs, weights), pieces.frames)
            last = self.__dict__["_vectors"] = weights.copy(), (found, kernels.gathered(pieces.gather, found))
        return last[1]

    def guess(self, weights: Floats) -> Floats:
        """(n, 3) the rotation-aware initial guess; fixed vertices at their blended positions."""
        vectors = self.vectors(weights)
        network = self.network
        right = kernels.divergence(vectors, self.springs.stiffness, self.springs.edges, network.fans)
        blended = self.linear(weights)
        # One vertex of each free part is not solved for: it stays at its blended position.
        known, coupling = network.known
        right -= coupling @ blended[known]
        x = network.solve(right)
        x[known] = blended[known]
        return x

    def centred(self, x: Floats) -> Floats:
        """x with every part without fixed vertices translated so that its surface's mean is the frame's centre."""
        loose = self.frames.free & ~self.grounded
        if not loose.any():
            return x
        surface = slice(0, self.surface)
        part, parts = self.frames.part[surface], len(loose)
        count = np.maximum(np.bincount(part, minlength=parts), 1)
        mean = np.stack([np.bincount(part, x[surface, k], minlength=parts) for k in range(3)], axis=1) / count[:, None]
        return x + np.where(loose[:, None], self.frames.centres[0] - mean, 0)[self.frames.part]

    def inverted(self, x: Floats) -> int:
        """Number of inverted tetrahedra at x (n, 3)."""
        return kernels.inverted_tets(x, self.tets)

    def newly_inverted(self, x: Floats, before: Floats) -> int:
        """Number of tetrahedra inverted at x (n, 3) that were not at other points (n, 3)."""
        return kernels.newly_inverted_tets(x, before, self.tets)

    def blended_rotvecs(self, weights: Floats) -> Floats:
        """(n, 3) the blended rotation vectors of the vertices."""
        return blended(self.rotvecs, weights)

    def linear(self, weights: Floats) -> Floats:
        """(n, 3) linear blending in the base's frame."""
        return blended(self.points, weights)


def blended(arrays: Floats, weights: Floats) -> Floats:
    """(n, 3) the weighted sum of arrays (shapes, n, 3)."""
    used = np.flatnonzero(weights)
    if 2 * len(used) > len(weights):
        return np.einsum("s,snk->nk", weights, arrays)
    return np.einsum("s,snk->nk", weights[used], arrays[used])


def spring_body(
    points: Floats,
    edges: Ints,
    triangles: Ints,
    added: Floats,
    tets: Ints,
    *,
    fixed: NDArray[np.bool_],
    part: Ints,
    reference: int = 0,
    anchors: Sequence[Anchor] = (),
    stiffness: Mapping[SpringKind, float] | None = None,
    factors: Floats | None = None,
    model: Model = BlendOptions.model,
) -> SpringBody:
    """Build the body of shapes (s, n, 3) with a surface of `edges`, and `triangles` where it is filled.

    added: vertices inside the shape of number `reference`; tets: over all vertices. part: (n + added,) connected part
    of every vertex. fixed: (n,) vertices whose positions are given. stiffness, factors: as of `make_springs`.
    """
    count = points.shape[1]
    diagonal = float(np.linalg.norm(np.ptp(points[0], axis=0)))
    bending = distance_two(edges, count)
    surface = make_springs(points, {"structure": edges, "bending": bending}, diagonal=diagonal)
    quaternions = np.stack([vertex_rotations(points[0], shape, surface.edges, surface.stiffness) for shape in points])
    frames = part_frames(points, part[:count], fixed, quaternions)
    aligned = np.stack([frames.to_base(shape, s) for s, shape in enumerate(points)])
    rotvecs = np.zeros_like(aligned)
    for s in range(1, len(points)):
        back = rotations.inverse(rotations.exp(frames.rotvecs[s]))[part[:count]]
        rotvecs[s] = rotation_vectors(rotations.multiply(back, quaternions[s]), edges, fixed)
    frames = PartFrames(part, frames.free, frames.rotvecs, frames.centres)
    groups: dict[SpringKind, Ints] = {"structure": edges, "bending": bending}
    groups["internal"] = tet_edges(tets, count + len(added))
    inside = frames.to_base(np.concatenate([points[reference], added]), reference)[count:]
    aligned, rotvecs = _fill(aligned, rotvecs, inside, groups, diagonal, reference)
    count += len(added)
    if anchors:
        aligned, rotvecs, frames, groups["anchor"] = _anchored(
            anchors, np.concatenate([edges, groups["internal"]]), aligned, rotvecs, frames
        )
    rotvecs = np.concatenate([rotvecs, triangle_rotations(aligned, rotvecs, triangles, UNROTATED)], axis=1)
    rotvecs[np.sum(rotvecs**2, axis=2) < UNROTATED**2] = 0
    springs = make_springs(aligned, groups, stiffness=stiffness, factors=factors, diagonal=diagonal)
    all_fixed = np.ones(aligned.shape[1], dtype=bool)
    all_fixed[:count] = False
    all_fixed[: len(fixed)] = fixed
    network = Network(springs, len(all_fixed), all_fixed)
    return SpringBody(aligned, rotvecs, triangles, springs, tets, frames, network, model, len(fixed))


def _anchored(
    anchors: Sequence[Anchor], edges: Ints, points: Floats, rotvecs: Floats, frames: PartFrames
) -> tuple[Floats, Floats, PartFrames, Ints]:
    """Express the anchored parts of every shape in their anchor's frame, and append the corners, which are fixed.

    edges: along which rotations are unwrapped. The springs to the corners are returned, too.
    """
    points, rotvecs = points.copy(), rotvecs.copy()
    frame_rotvecs, frame_centres = frames.rotvecs.copy(), frames.centres.copy()
    count, corners, springs = points.shape[1], [], []
    for number, anchor in enumerate(anchors):
        p, members = anchor.part, np.flatnonzero(frames.part == anchor.part)
        local = np.full(count, -1)
        local[members] = np.arange(len(members))
        inner = edges[local[edges[:, 0]] >= 0]
        own = Anchor(p, anchor.shape, frames.part_to_base(anchor.corners, anchor.shape, p))
        joined = anchor_springs(own, points[anchor.shape], members, count)
        around = np.isin(members, joined[:, 0])
        motions = [rigid_motion(own, points[anchor.shape], shape, joined) for shape in points]
        to_base, centre = motions[0]
        corners.append(rotations.rotate(to_base, own.corners - own.centre) + centre)
        for s in range(1, len(points)):
            rotation = rotations.multiply(motions[s][0], rotations.inverse(to_base))
            back = rotations.inverse(rotation)
            points[s, members] = rotations.rotate(back, points[s, members] - motions[s][1]) + centre
            rotated_by = rotations.multiply(back, rotations.exp(rotvecs[s, members]))
            rotvecs[s, members] = rotation_vectors(rotated_by, local[inner], around)
            outer = rotations.exp(frames.rotvecs[s, p])
            whole = rotations.log(rotations.shortest(rotations.multiply(outer, rotation)))
            frame_rotvecs[s, p] = nearest_branch(whole, frame_rotvecs[s - 1, p])
            frame_centres[s, p] = rotations.rotate(outer, motions[s][1] - frames.centres[0, p]) + frames.centres[s, p]
        frame_centres[0, p] = centre
        springs.append(joined + np.array([0, CORNERS * number]))
    part = np.concatenate([frames.part, np.repeat([a.part for a in anchors], CORNERS)])
    static_corners = np.broadcast_to(np.concatenate(corners), (len(points), CORNERS * len(anchors), 3))
    return (
        np.concatenate([points, static_corners], axis=1),
        np.concatenate([rotvecs, np.zeros_like(static_corners)], axis=1),
        PartFrames(part, frames.free, frame_rotvecs, frame_centres),
        np.concatenate(springs),
    )


def tet_edges(tets: Ints, count: int) -> Ints:
    """(e, 2) the edges of tetrahedra."""
    if not len(tets):
        return np.zeros((0, 2), np.int64)
    return unique_pairs(np.concatenate([tets[:, [a, b]] for a in range(4) for b in range(a + 1, 4)]), count)


def _fill(
    points: Floats, rotvecs: Floats, added: Floats, groups: dict[SpringKind, Ints], diagonal: float, reference: int
) -> tuple[Floats, Floats]:
    """Positions of the added vertices in every shape, and their rotations, from the shape that they were added in.

    Rotation and growth are diffused from the surface; one Poisson solve with the springs' vectors, rotated and grown,
    gives the positions.
    """
    if not len(added):
        return points, rotvecs
    surface, count = points.shape[1], points.shape[1] + len(added)
    origin = np.concatenate([points[reference], added])
    springs = make_springs(origin[None], groups, diagonal=diagonal)
    network = Network(springs, count, np.arange(count) < surface)
    i, j = springs.edges.T
    rows = network.L[surface:]
    across, within = rows[:, :surface], rows[:, surface:]

    def placed(given: Floats, right: Floats) -> Floats:
        """All values, from those of the surface and ``L x`` inside."""
        right = right - across @ given
        inside = conjugate_gradients(within, right)
        if inside is None:
            inside = network.solve(np.concatenate([np.zeros_like(given), right]))[surface:]
        return np.concatenate([given, inside])

    def diffused(values: Floats) -> Floats:
        return placed(values, np.zeros((len(added), values.shape[1])))

    all_points, all_rotvecs = np.empty((2, len(points), count, 3))
    for s in range(len(points)):
        all_rotvecs[s] = diffused(rotvecs[s])
        if s == reference:
            all_points[s] = origin
            continue
        rotated_by = all_rotvecs[s]
        if reference != 0:
            from_reference = rotations.multiply(
                rotations.exp(rotvecs[s]), rotations.inverse(rotations.exp(rotvecs[reference]))
            )
            short = rotations.log(rotations.shortest(from_reference))
            rotated_by = diffused(kernels.unwrapped_near(short, rotvecs[s] - rotvecs[reference]))
        growth = diffused(log_growth(points[reference], points[s], groups["structure"])[:, None])[:, 0]
        vectors = kernels.rotated_edges(origin[i] - origin[j], rotated_by, springs.edges)
        vectors *= np.exp(0.5 * (growth[i] + growth[j]))[:, None]
        right = kernels.divergence(vectors, springs.stiffness, springs.edges, network.fans)
        all_points[s] = placed(points[s], right[surface:])
    return all_points, all_rotvecs


NEARLY_STATIC_ANGLE = 0.5
"""Angle in radians below which a vertex is a candidate for the seed of the unwrapping."""
TIE_ANGLE = 1e-5
"""Angle in radians that counts as none between neighbours, above rounding."""
UNROTATED = 1e-4
"""Relative change of a spring's vector that counts as no rotation: rounding in files, and invisible motion."""


def vertex_rotations(base: Floats, target: Floats, edges: Ints, k: Floats) -> Floats:
    """(n, 4) quaternions: the rotation at each vertex that best maps its springs from base to target."""
    before, after = base[edges[:, 0]] - base[edges[:, 1]], target[edges[:, 0]] - target[edges[:, 1]]
    changed = np.sum((after - before) ** 2, axis=1) > UNROTATED**2 * np.sum(before**2, axis=1)
    moved = np.zeros(len(base), dtype=bool)
    moved[edges[changed]] = True
    around = np.flatnonzero(moved[edges].any(axis=1))  # the shapes of a sculpted rig move few vertices each
    covariance = k[around, None, None] * after[around, :, None] * before[around, None, :]
    rows, columns = edges[around].T.ravel(), np.tile(np.arange(len(around)), 2)
    gather = sp.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(base), len(around))).tocsr()
    total = (gather[moved] @ covariance.reshape(-1, 9)).reshape(-1, 3, 3)
    q = np.tile([1.0, 0.0, 0.0, 0.0], (len(base), 1))
    q[moved] = rotations.quaternion(rotations.polar(total))
    return q


def log_growth(before: Floats, after: Floats, edges: Ints) -> Floats:
    """(n,) the logarithm of how much the connected part of each vertex has grown, at most thousandfold."""
    part = connected_parts(len(before), edges)
    squares = [np.sum((p[edges[:, 0]] - p[edges[:, 1]]) ** 2, axis=1) for p in (before, after)]
    totals = [np.bincount(part[edges[:, 0]], square, minlength=part.max(initial=-1) + 1) for square in squares]
    least = 1e-6 * np.maximum(*totals) + 1e-300
    first, last = (np.maximum(total, least) for total in totals)
    return (0.5 * np.log(last / first))[part]


def common_rotation(q: Floats) -> Floats:
    """(..., 4) the geometric median of quaternions (..., n, 4), which is robust to outliers."""
    columns = np.swapaxes(q, -1, -2)
    if q.shape[-2] > 4000:
        median = common_rotation(q[..., ::8, :])
    else:
        sample = q[..., :: max(1, q.shape[-2] // 400), :]
        apart = np.arccos(np.clip(np.abs(sample @ columns), 0, 1)).sum(axis=-1)
        median = np.take_along_axis(sample, np.argmin(apart, axis=-1)[..., None, None], axis=-2)[..., 0, :]
    for _ in range(MOST_MEDIAN_STEPS):  # Weiszfeld's iteration: means weighted by the inverse distance
        before = median
        angle = np.arccos(np.clip(np.abs(q @ median[..., None])[..., 0], 0, 1))
        weighted = q / np.sqrt(angle**2 + 0.05**2)[..., None]
        median = np.linalg.eigh(columns @ weighted)[1][..., -1]
        median *= np.copysign(1, np.sum(before * median, axis=-1, keepdims=True))
        if np.abs(median - before).max(initial=0) < 1e-13:
            break
    return median


def rotation_vectors(q: Floats, edges: Ints, fixed: NDArray[np.bool_]) -> Floats:
    """(n, 3) rotation vectors of unit quaternions, consistent across the edges of each connected part.

    The seed of each part keeps its rotation vector of at most 180°: the fixed vertex that rotates least or, without
    fixed vertices, one in the largest patch of vertices that hardly rotate. (The largest, since the tip of a tail that
    has come full circle hardly rotates either.)
    """
    from scipy.sparse.csgraph import connected_components, dijkstra

    count = len(q)
    between = 2 * np.arccos(np.clip(np.abs(np.sum(q[edges[:, 0]] * q[edges[:, 1]], axis=1)), 0, 1))
    # Of paths that are equally long, as in a symmetric shape, rounding must not choose: numbers of the edges do.
    length = between + TIE_ANGLE * np.random.default_rng(2011).uniform(1, 2, len(edges))
    graph = sp.coo_matrix((length, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
    parts, label = connected_components(graph, directed=False)
    patch = _patches(graph, np.abs(q[:, 0]) > np.cos(NEARLY_STATIC_ANGLE / 2))
    seeds = []
    order = np.argsort(label, kind="stable")
    for members in np.split(order, np.searchsorted(label[order], np.arange(1, parts))):
        candidates = members[fixed[members]]
        if not len(candidates):
            candidates = members[patch[members] == patch[members].max()]
        seeds.append(candidates[np.argmax(np.abs(q[candidates, 0]))])
    total, parent, _ = dijkstra(graph, directed=False, indices=seeds, min_only=True, return_predecessors=True)
    rotvecs = rotations.log(rotations.shortest(q))
    return kernels.unwrap(np.argsort(total, kind="stable"), parent.astype(np.int64), rotvecs)


def _patches(graph: Any, chosen: NDArray[np.bool_]) -> Ints:
    """(n,) size of the connected component, among the chosen vertices of a graph, of each of them; 0 for the others."""
    from scipy.sparse.csgraph import connected_components

    size = np.zeros(len(chosen), np.int64)
    where = np.flatnonzero(chosen)
    _, label = connected_components(graph[where][:, where], directed=False)
    size[where] = np.bincount(label)[label] if len(where) else 0
    return size


def nearest_branch(rotvecs: Floats, near: Floats) -> Floats:
    """Of the rotation vectors ``axis (angle + 2π m)`` of the same rotations, those nearest to `near`.

    The identity has no axis of its own and takes that of `near`.
    """
    angle = np.linalg.norm(rotvecs, axis=-1, keepdims=True)
    size = np.linalg.norm(near, axis=-1, keepdims=True)
    given = np.divide(near, size, out=np.zeros_like(rotvecs), where=size > 1e-9)
    axis = np.divide(rotvecs, angle, out=given, where=angle > 1e-9)
    along = np.sum(axis * near, axis=-1, keepdims=True)
    return rotvecs + axis * (2 * np.pi * np.round((along - angle) / (2 * np.pi)))

"""The compiled inner loops of blending: spring energy, its derivatives, and the rotated blend of edge vectors.

Loops run over vertices, each gathering from its own springs (`fans`), so that threads never write to the same memory
and the result does not depend on their number.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.native import in_threads, kernels as native

BLOCK, SPRINGS = 2048, 16384
"""The smallest number of vertices, or of springs, for which another thread pays."""

Fans = tuple[Ints, Ints, Ints]
SparseRows = tuple[Ints, Ints, Floats]
"""Where each row of a sparse matrix starts, its columns and their values."""


def fans(edges: Ints, count: int) -> Fans:
    """Springs by vertex: where each vertex's list starts (n + 1,), the other end and the spring (2 q,)."""
    start = np.empty(count + 1, np.int64)
    other, spring = np.empty(2 * len(edges), np.int64), np.empty(2 * len(edges), np.int64)
    native.springs_fans(edges, start, other, spring)
    return start, other, spring


def energy_and_gradient(x: Floats, fans: Fans, k: Floats, r: Floats, p: Floats, mu: float, gradient: Floats) -> float:
    """E = ½ Σ k [(l - r)² + μ |d - (d · p) p|²], and its gradient (the force of Eq. 2) into `gradient` (n, 3).

    d = x_i - x_j, l = |d|; p (q, 3) unit directions, ignored if μ is 0.
    """
    share = np.empty(len(x))
    given = x, fans, k, r, p, mu, gradient, share
    in_threads(lambda a, b: native.springs_energy_and_gradient(given, a, b), len(x), BLOCK)
    return 0.25 * float(share.sum())


def compression(x: Floats, fans: Fans, k: Floats, r: Floats) -> Floats:
    """(n,) Σ k max(r/l - 1, 0) over Σ k, of the springs at each vertex."""
    share = np.empty(len(x))
    in_threads(lambda a, b: native.springs_compression(x, fans, k, r, share, a, b), len(x), BLOCK)
    return share


def relax(
    x: Floats, fans: Fans, k: Floats, r: Floats, p: Floats, mu: float, chosen: Ints, sweeps: int, least: float
) -> None:
    """Move the chosen vertices of x in turn, each by Newton's step in the energy of its own springs, if that falls.

    The arguments are those of `energy_and_gradient`. At most so many sweeps, or until none moves by more than `least`.
    """
    native.springs_relax(x, fans, k, r, p, mu, chosen, sweeps, least)


def fit_rotations(x: Floats, fans: Fans, edges: Ints, k: Floats, v: Floats, rotations: Floats) -> None:
    """Fit `rotations` (n, 3, 3): those that take the vectors v (q, 3) of each vertex's springs nearest to those of x.

    They maximise ``tr(R_iᵀ Σ_q k d vᵀ)``; Newton's method, warm-started from what `rotations` holds.
    """
    given = x, fans, edges, k, v, rotations
    in_threads(lambda a, b: native.springs_fit_rotations(given, a, b), len(x), BLOCK)


def corotated_energy_and_gradient(
    x: Floats, fans: Fans, edges: Ints, k: Floats, r: Floats, v: Floats, mu: float, rotations: Floats, gradient: Floats
) -> float:
    """E = ½ Σ_q k [(l - r)² + ½ μ (|d - R_i v|² + |d - R_j v|²)], R = rotations (n, 3, 3), and its gradient (n, 3)."""
    share = np.empty(len(x))
    given = x, fans, edges, k, r, v, mu, rotations, gradient, share
    in_threads(lambda a, b: native.springs_corotated_energy_and_gradient(given, a, b), len(x), BLOCK)
    return 0.25 * float(share.sum())


def local_changes(base: Floats, points: Floats, rotvecs: Floats, edges: Ints, frames: Ints, chosen: Ints) -> Floats:
    """(k, 3) how the chosen edges of `points`, rotated back to the base, differ from those of the base (n, 3).

    An edge (e, 2) rotates by the mean rotation vector, of (m, 3), of its two frames (e, 2).
    """
    changes = np.empty((len(chosen), 3))
    given = base, points, rotvecs, edges, frames, chosen, changes
    in_threads(lambda a, b: native.springs_local_changes(given, a, b), len(chosen), SPRINGS)
    return changes


def add_changes(chosen: Ints, changes: Floats, weight: float, vectors: Floats) -> None:
    """Add to the chosen vectors (e, 3) their weighted changes (k, 3)."""
    in_threads(lambda a, b: native.springs_add_changes(chosen, changes, weight, vectors, a, b), len(chosen), SPRINGS)


def rotated_edges(vectors: Floats, rotvecs: Floats, frames: Ints) -> Floats:
    """(e, 3) each vector rotated by the mean rotation vector, of (m, 3), of its two frames (e, 2)."""
    out = np.empty(vectors.shape)
    in_threads(lambda a, b: native.springs_rotated_edges(vectors, rotvecs, frames, out, a, b), len(out), SPRINGS)
    return out


def edge_changes(chosen: Ints, local: Floats, own: Floats, blended: Floats, frames: Ints, vectors: Floats) -> Floats:
    """(e, 3) how blended vectors (e, 3), rotated by `blended` (m, 3), change with the weight of a shape.

    local: (k, 3) the `local_changes` of its chosen edges; own: (m, 3) the shape's rotation vectors.
    """
    changes = np.zeros(vectors.shape)
    given = chosen, local, own, blended, frames, vectors, changes
    in_threads(lambda a, b: native.springs_edge_changes(given, a, b), len(chosen), SPRINGS)
    return changes


def rest_forces(edges: Ints, x: Floats, vectors: Floats, changes: Floats, k: Floats, mu: float) -> Floats:
    """(q, 3) how the springs' forces at x (n, 3) change where their rest vectors (q, 3) change."""
    forces = np.empty((len(edges), 3))
    given = edges, x, vectors, changes, k, mu, forces
    in_threads(lambda a, b: native.springs_rest_forces(given, a, b), len(edges), SPRINGS)
    return forces


def lengths_and_directions(vectors: Floats) -> tuple[Floats, Floats]:
    """Lengths (q,) of vectors (q, 3), and the unit vectors along them; zero for a zero vector."""
    lengths, directions = np.empty(len(vectors)), np.empty((len(vectors), 3))
    given = vectors, lengths, directions
    in_threads(lambda a, b: native.springs_lengths_and_directions(*given, a, b), len(vectors), SPRINGS)
    return lengths, directions


def gathered(rows: SparseRows, vectors: Floats) -> Floats:
    """(q, 3) a sparse matrix (q, p) times vectors (p, 3)."""
    out = np.empty((len(rows[0]) - 1, 3))
    in_threads(lambda a, b: native.springs_gathered(rows, vectors, out, a, b), len(out), SPRINGS)
    return out


def rotated(vectors: Floats, rotvecs: Floats, sign: float) -> Floats:
    """(n, 3) each vector rotated by `sign` times its rotation vector."""
    out = np.empty(vectors.shape)
    in_threads(lambda a, b: native.springs_rotated_vectors(vectors, rotvecs, sign, out, a, b), len(vectors), SPRINGS)
    return out


def divergence(vectors: Floats, k: Floats, edges: Ints, fans: Fans) -> Floats:
    """(n, 3) Σ ± k_q vector_q over the springs at each vertex: the right-hand side of the Poisson problem L x = out."""
    start, _, spring = fans
    out = np.empty((len(start) - 1, 3))
    in_threads(lambda a, b: native.springs_divergence(vectors, k, edges, start, spring, out, a, b), len(out), BLOCK)
    return out


def inverted_tets(x: Floats, tets: Ints) -> int:
    """Number of tetrahedra (t, 4) of negative volume at x (n, 3)."""
    return int(native.springs_inverted_tets(x, tets))


def newly_inverted_tets(x: Floats, before: Floats, tets: Ints) -> int:
    """Number of tetrahedra (t, 4) of negative volume at x (n, 3) that had none at other points (n, 3)."""
    return int(native.springs_newly_inverted_tets(x, before, tets))


def unwrap(order: Ints, parent: Ints, rotvecs: Floats) -> Floats:
    """Rotation vectors made consistent down a tree: of ``axis (angle + 2π m)`` the one nearest to the parent's.

    Near a rotation by 2π the axis is ill-defined, and the nearest vector may be far from the parent's although the two
    rotations hardly differ. There the parent's vector plus the small rotation vector between the two is used: the mean
    of that before and that after the parent's rotation, so that inverse rotations have opposite vectors. That is
    approximate but sufficient: any choice of vectors reproduces the shapes at their own weights.
    """
    out = np.empty(rotvecs.shape)
    native.springs_unwrap(order, parent, rotvecs, out)
    return out


def unwrapped_near(rotvecs: Floats, near: Floats) -> Floats:
    """(n, 3) rotation vectors of the same rotations, chosen near to others as those of neighbours are (`unwrap`)."""
    count = len(rotvecs)
    parent = np.concatenate([np.full(count, -1), np.arange(count)])
    return unwrap(np.arange(2 * count), parent, np.concatenate([near, rotvecs]))[count:]

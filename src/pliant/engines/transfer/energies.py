"""The energies of a caged shape (Chen et al. 2010, Eqs. 6 to 11) as matrices that are computed once.

Scaled normals. A triangle with edge vectors a, b (at rest a₀, b₀, area A) has ``N = s n`` with ``n = a×b / |a×b|`` and
``s² = (|a|²|b₀|² − 2 (a·b)(a₀·b₀) + |b|²|a₀|²) / 8A²``. Its Jacobian over the corners is J, and ``N = J V``
(appendix A). Where a triangle collapses, n would flip and the energy jump, at which solvers get stuck. So with
``x = |a×b| / 2A s²``, which is 1 where the triangle is only rotated and scaled and 0 where it has collapsed, N is
shortened by ``2δx / (x² + δ²)`` where ``x < δ``: it passes through zero smoothly. x is invariant under scaling, so
``N = J V`` still holds.

Everything linear. φ and ψ are scalars, so with the cage's state ``X = [V; N]``, (c + f, 3), each of the terms is
``C X − T`` with one row of C for x, y and z alike: positions ``[φ ψ](p)``, gradients ``∂[φ ψ]/∂x`` (three rows a
control), smoothness ``∂²[φ ψ]/∂p∂q`` (six rows a sample, the mixed ones times √2, being there twice in the Frobenius
norm of Eq. 6; five for Green coordinates, which are harmonic). Of the smoothness only ``Q = CᵀC``, (c + f, c + f), is
kept: Eq. 8 is ``tr(Xᵀ Q X)``. A length is the difference of two positions, ``D = C X``, and its term
``(|D|² − l²)²``.

Samples. The nodes inside the cage of a regular lattice over its bounding box. Hessians grow without bound towards the
cage's edges, where the sum would depend on the position of the lattice, so nodes less than a spacing deep are weighted
by the square of their depth. (The paper's finite differences need the neighbours of a node, and leave out those nodes;
slender limbs then have no samples.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.green import green_rows, hessian_columns
from pliant.engines.transfer.mean_value import mean_value_rows
from pliant.engines.transfer.solver_kernels import chained, normal_curvatures
from pliant.native import in_threads
from pliant.numerics.linalg import one_blas_thread

Coordinates = Literal["green", "mean_value"]
SHALLOW = 0.05
"""Depth of a sample, over the lattice's spacing, below which it is left out."""
REPORT_CHUNK = 4096
"""Samples between two reports, at most."""
HESSIAN_BATCH = 512
"""Samples whose Hessians are multiplied at once, on one core."""
FEWEST_SAMPLES = 30
COLLAPSED = 1e-2
"""Area of a deformed triangle over that at rest below which it counts as collapsed."""
ROUNDED = 0.2
"""δ: x below which a triangle's scaled normal is shortened; its stretches then differ by a factor of ten."""


@dataclass(frozen=True, eq=False)
class ScaledNormals(Value):
    """The triangles of a cage at rest, and N as a function of its vertices."""

    triangles: Ints
    """(f, 3)"""
    a0: Floats
    b0: Floats
    """(f, 3) edge vectors at rest"""
    double_area: Floats
    """(f,) at rest"""

    @classmethod
    def of(cls, points: Floats, triangles: Ints) -> ScaledNormals:
        """At rest in `points`."""
        a, b = _edge_vectors(points, triangles)
        area = np.linalg.norm(np.cross(a, b), axis=1)
        return cls(triangles, locked(a), locked(b), locked(area))

    def values(self, points: Floats) -> Floats:
        """(f, 3) N."""
        a, b = _edge_vectors(points, self.triangles)
        s = self._stretch(a, b)
        u = np.cross(a, b) / (self.double_area * s**2)[:, None]
        return (s * _rounded(u)[0])[:, None] * u

    def jacobian(self, points: Floats) -> Floats:
        """(f, 3, 3, 3): ∂N_x / ∂(corner k)_y at [:, x, k, y]."""
        a, b = _edge_vectors(points, self.triangles)
        s = self._stretch(a, b)[:, None]
        area = self.double_area[:, None] * s**2
        u = np.cross(a, b) / area
        k, slope = _rounded(u)
        mixed = (self.a0 * self.b0).sum(axis=1)[:, None]
        over = 1 / (2 * self.double_area[:, None] ** 2 * s)
        s_a = over * ((self.b0**2).sum(axis=1)[:, None] * a - mixed * b)
        s_b = over * ((self.a0**2).sum(axis=1)[:, None] * b - mixed * a)
        by_u = s[:, :, None] * (k[:, None, None] * np.eye(3) + slope[:, None, None] * _outer(u, u))
        by_s = k[:, None] * u - 2 / s * np.einsum("txy,ty->tx", by_u, u)
        N_a = _outer(by_s, s_a) - by_u @ _cross_matrix(b / area)
        N_b = _outer(by_s, s_b) + by_u @ _cross_matrix(a / area)
        return np.stack([-N_a, N_a - N_b, N_b], axis=2)

    def curvature(self, points: Floats, force: Floats) -> Floats:
        """(f, 6, 6) force·∂²N/∂(a, b)² for a force (f, 3) on each N, projected to be positive semidefinite."""
        a, b = _edge_vectors(points, self.triangles)
        K = normal_curvatures(a, b, self.a0, self.b0, self.double_area, ROUNDED, np.ascontiguousarray(force))
        values, vectors = np.linalg.eigh(K)
        return (vectors * np.maximum(values, 0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)

    def collapsed(self, points: Floats) -> int:
        """Number of collapsed triangles."""
        a, b = _edge_vectors(points, self.triangles)
        return int((np.linalg.norm(np.cross(a, b), axis=1) < COLLAPSED * self.double_area).sum())

    def _stretch(self, a: Floats, b: Floats) -> Floats:
        """(f,) s, kept from zero."""

        def dot(u: Floats, v: Floats) -> Floats:
            return np.einsum("ij,ij->i", u, v)

        a0, b0 = self.a0, self.b0
        square = dot(a, a) * dot(b0, b0) - 2 * dot(a, b) * dot(a0, b0) + dot(b, b) * dot(a0, a0)
        return np.maximum(np.sqrt(np.maximum(square, 0) / 2) / self.double_area, np.finfo(float).eps)


def _rounded(u: Floats) -> tuple[Floats, Floats]:
    """(f,) k with N = s k u, and its derivative by |u| over |u|: k = 1/|u|, without the pole."""
    square = np.einsum("ij,ij->i", u, u)
    x = np.sqrt(np.maximum(square, ROUNDED**2))
    total = square + ROUNDED**2
    plain = square >= ROUNDED**2
    return np.where(plain, 1 / x, 2 * ROUNDED / total), np.where(plain, -1 / x**3, -4 * ROUNDED / total**2)


def _outer(u: Floats, v: Floats) -> Floats:
    return u[:, :, None] * v[:, None, :]


def _edge_vectors(points: Floats, triangles: Ints) -> tuple[Floats, Floats]:
    i, j, k = triangles.T
    return points[j] - points[i], points[k] - points[j]


def _cross_matrix(v: Floats) -> Floats:
    """(f, 3, 3) [v]×."""
    zero = np.zeros(len(v))
    x, y, z = v.T
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)


@dataclass(frozen=True, eq=False)
class Basis(Value):
    """A cage and the kind of coordinates in it: rows over its state X."""

    cage: Cage
    kind: Coordinates
    normals: ScaledNormals
    """Without triangles where coordinates need no normals."""

    @classmethod
    def of(cls, cage: Cage, kind: Coordinates) -> Basis:
        """Green coordinates use normals, mean value coordinates do not."""
        triangles = cage.triangles if kind == "green" else cage.triangles[:0]
        return cls(cage, kind, ScaledNormals.of(cage.points, triangles))

    @property
    def size(self) -> int:
        """Rows of X."""
        return len(self.cage.points) + len(self.normals.triangles)

    def state(self, points: Floats) -> Floats:
        """(c + f, 3) X of cage vertices (c, 3)."""
        return np.concatenate([points, self.normals.values(points)])

    def chained(self, rows: Floats, factors: Floats, J: Floats) -> Floats:
        """(k, 3 c) derivatives by V of ``Σ_r (rows X)·factors``: rows (k, r, c + f), factors (k, r, 3); G = [1; J]."""
        return chained(rows, factors, J, self.normals.triangles, len(self.cage.points))

    def rows(self, points: Floats, order: int, *, allow: bool = False, what: str = "points") -> tuple[Floats, ...]:
        """(n, c + f), and up to `order` (n, 3, c + f) and (n, 6, c + f)."""
        if self.kind == "green":
            return green_rows(points, self.cage, order=order, outside="allow" if allow else "refuse", what=what)
        return mean_value_rows(points, self.cage, order=order, outside="allow" if allow else "refuse", what=what)


def samples(cage: Cage, lattice: int, directions: Floats | None = None) -> tuple[Floats, Floats, Ints]:
    """(m, 3) nodes inside the cage, of a lattice with this many along the longest side, (m,) weights, (m, 3) numbers.

    directions: (3, 3) rows: the lattice's; the coordinate axes if none are given.
    """
    along = np.eye(3) if directions is None else directions
    low, high = (cage.points @ along.T).min(axis=0), (cage.points @ along.T).max(axis=0)
    spacing = float((high - low).max()) / lattice
    counts = np.maximum(np.rint((high - low) / spacing).astype(int), 1)
    # Half a cell off the box, where flat sides of cages often are.
    axes = [a + spacing * (np.arange(count) + 0.5) for a, count in zip(low, counts, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3) @ along
    inside = cage.tree.inside(nodes)
    within = nodes[inside]
    depth = cage.tree.closest(within).distance / spacing
    chosen = depth > SHALLOW
    if chosen.sum() < FEWEST_SAMPLES:
        raise InputError(
            f"a lattice of {lattice} has {int(chosen.sum())} nodes inside the cage; expected {FEWEST_SAMPLES} or more: "
            "give a larger lattice, or a roomier cage",
            argument="lattice",
        )
    numbers = np.stack(np.unravel_index(np.flatnonzero(inside)[chosen], counts), axis=1)
    return within[chosen], np.minimum(depth[chosen], 1) ** 2, numbers


def smoothness(
    basis: Basis, points: Floats, weights: Floats, report: Callable[[int, int], None] | None = None
) -> Floats:
    """Q (c + f, c + f) of Eq. 8 over sample points (m, 3) with weights (m,)."""
    Q = np.zeros((basis.size, basis.size))
    add = _green_squares if basis.kind == "green" else _squares
    done = 0
    for some in np.array_split(np.arange(len(points)), -(-len(points) // REPORT_CHUNK)):
        Q += add(basis, points[some], weights[some])
        done += len(some)
        if report is not None:
            report(done, len(points))
    return Q


def _green_squares(basis: Basis, points: Floats, weights: Floats) -> Floats:
    surface = basis.cage.surface

    def squares(first: int) -> Floats:
        some = slice(first, first + HESSIAN_BATCH)
        C = hessian_columns(points[some], weights[some], surface)
        return C @ C.T

    def batches(begin: int, end: int) -> list[Floats]:
        return [squares(k * HESSIAN_BATCH) for k in range(begin, end)]

    with one_blas_thread():
        parts = in_threads(batches, -(-len(points) // HESSIAN_BATCH), 1)
    return sum((Q for part in parts for Q in part), np.zeros((basis.size, basis.size)))


def _squares(basis: Basis, points: Floats, weights: Floats) -> Floats:
    C = basis.rows(points, 2, allow=True)[2]
    C *= np.sqrt(weights)[:, None, None] * np.sqrt([1, 1, 1, 2, 2, 2])[:, None]
    C = C.reshape(-1, basis.size)
    return C.T @ C

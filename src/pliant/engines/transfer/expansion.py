"""Points of large targets from expansions of the deformation in solid harmonics, about centres that many of them share.

Inside the cage the deformation ``x(p) = Σ φ_i(p) v_i + Σ ψ_j(p) N_j`` is harmonic. So within a ball of radius r about
c, at a distance D from the cage, with ``u = (p − c) / r`` and the (L + 1)² harmonic polynomials B_k up to degree L,

    x(p) = Σ_k a_k B_k(u) + O((r / D)^{L+1} D)          ∂_b x(p) = 1/r Σ_k a_k ∂_b B_k(u) + O((r / D)^L)

Points are grouped in such balls, `cells`: a cube is halved again and again, until r is at most `CELL_REACH` times D.
The rows of a_k over the cage's state are fitted to the coordinates of nodes on the ball's surface, inside of which no
harmonic function's error is larger. They take the place of four rows for each of its points. Points without a cell
(near the cage, outside, or with few others in reach) have rows of their own.

The polynomials are the real and imaginary parts, by degree l, then order m, of (Epton, Dembart 1995; without the signs)

    R_0^0 = 1                               R_m^m = (u_x + i u_y) / 2m R_{m−1}^{m−1}
    R_{l+1}^m = ((2l + 1) u_z R_l^m − |u|² R_{l−1}^m) / ((l + 1)² − m²)

Their derivatives are harmonic polynomials up to degree L − 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.transfer.bound import Bound
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.green import LANES
from pliant.geometry.splats import JACOBIAN_BLOCK
from pliant.native import in_blocks, kernels

MANY_POINTS = 50_000
"""Points from which on they are expanded."""
CELL_REACH = 0.18
"""Radius of a cell over the distance of its centre from the cage, at most."""
DEGREE = 4
"""L; as in expansion.cpp."""
FEWEST = (DEGREE + 1) ** 2
"""Points of a cell: as many as it has rows."""
NODES = 40
"""On a ball's surface."""
DEPTH = 20
"""Halvings along each axis."""
CELL_BLOCK = 1024
"""Cells whose slopes are computed at once; of another number they would be rounded otherwise."""
CELL_CHUNK = 4 * LANES
"""Cells whose nodes' coordinates are computed at once."""


@dataclass(frozen=True, eq=False)
class Expansion(Value):
    """The cells of a target's points (n, 3)."""

    count: int
    """Points n."""
    numbers: NDArray[np.int32]
    """(m,) the points that have a cell, block by block, and in a block cell by cell"""
    cell: NDArray[np.int32]
    """(m,) of each of them"""
    offsets: NDArray[np.float32]
    """(m, 3) u"""
    radii: Floats
    """(k,) r"""
    rows: Bound
    """(k, (L + 1)²) of a_k"""

    @classmethod
    def of(cls, points: Floats, basis: Basis) -> Expansion:
        """Of points in a cage with Green coordinates."""
        cell, centres, radii = cells(points, basis.cage)
        some = np.flatnonzero(cell >= 0)
        numbers = some[np.lexsort((cell[some], some // JACOBIAN_BLOCK))].astype(np.int32)
        own = cell[numbers]
        offsets = ((points[numbers] - centres[own]) / radii[own, None]).astype(np.float32)
        return cls(
            len(points), locked(numbers), locked(own), locked(offsets), locked(radii), _rows(centres, radii, basis)
        )

    @property
    def without(self) -> Ints:
        """Numbers of the points without a cell."""
        return np.setdiff1d(np.arange(self.count), self.numbers, assume_unique=True)

    def terms(self, states: NDArray[np.float32]) -> Iterator[Floats]:
        """(k, (L + 1)², 3) a_k for each of several states (frames, c + f, 3), about their centres."""
        found = np.empty((len(states), self.rows.count, 3, (DEGREE + 1) ** 2))
        self.rows.interpolate(states, np.zeros((len(states), 3)), found)
        for frame in found:
            yield np.swapaxes(frame, 1, 2)

    @cached_property
    def starts(self) -> Ints:
        """(blocks + 1,) where the numbers of each block of points begin."""
        return np.searchsorted(self.numbers // JACOBIAN_BLOCK, np.arange(-(-self.count // JACOBIAN_BLOCK) + 1))

    def fill(self, terms: Floats, centre: Floats, out: Floats) -> None:
        """Write the points (n, 3) that have a cell; centre: (3,) of the state."""
        padded = np.zeros((*terms.shape[:2], 4))
        padded[..., :3] = terms
        padded[:, 0, :3] += centre
        in_blocks(lambda a, b: self._sum(padded, out[a:b], a, b), self.count, JACOBIAN_BLOCK)

    def slopes(self, terms: Floats) -> Floats:
        """(k, L², 12) those of the Jacobians, nine and three zeros."""
        padded, table = np.zeros((len(terms), DEGREE**2, 12)), solid_harmonic_slopes()

        def work(a: int, b: int) -> None:
            slopes = np.einsum("blk,clx->ckxb", table, terms[a:b] / self.radii[a:b, None, None], optimize=True)
            padded[a:b, :, :9] = slopes.reshape(b - a, -1, 9)

        in_blocks(work, len(terms), CELL_BLOCK)
        return padded

    def fill_jacobians(self, slopes: Floats, out: Floats, begin: int) -> None:
        """Write the Jacobians (m, 3, 3) of those points that have a cell, of whole blocks from number `begin` on."""
        self._sum(slopes, out.reshape(-1, 9), begin, begin + len(out))

    def _sum(self, terms: Floats, out: Floats, begin: int, end: int) -> None:
        """Σ_k terms_k B_k(u) of terms (k, polynomials, 4 or 12) into (end - begin, 3 or 9)."""
        first, last = self.starts[begin // JACOBIAN_BLOCK], self.starts[-(-end // JACOBIAN_BLOCK)]
        kernels.cage_expand(self.numbers, self.cell, self.offsets, terms, out, begin, first, last)


def cells(points: Floats, cage: Cage) -> tuple[NDArray[np.int32], Floats, Floats]:
    """(n,) the cell of each point or -1, (k, 3) centres and (k,) radii: the largest boxes that are within reach."""
    code = _boxes(points)
    order = np.argsort(code, kind="stable")
    code = code[order]
    cell, centres, radii, count = np.full(len(points), -1, dtype=np.int32), [np.zeros((0, 3))], [np.zeros(0)], 0
    for level in range(3 * DEPTH + 1):
        key = code >> (3 * DEPTH - level)
        start = np.flatnonzero(np.diff(key, prepend=-1))
        sizes = np.diff(start, append=len(key))
        many = sizes >= FEWEST
        some = np.repeat(many, sizes)
        order, code, sizes = order[some], code[some], sizes[many]
        if not len(order):
            break
        start, own = np.cumsum(sizes) - sizes, points[order]
        centre = (np.minimum.reduceat(own, start) + np.maximum.reduceat(own, start)) / 2
        away = ((own - np.repeat(centre, sizes, axis=0)) ** 2).sum(axis=1)
        radius = np.sqrt(np.maximum.reduceat(away, start))
        good = (radius <= CELL_REACH * cage.tree.closest(centre).distance) & cage.tree.inside(centre) & (radius > 0)
        number = np.where(good, count + np.cumsum(good) - 1, -1)
        cell[order] = np.repeat(number, sizes)
        count += int(good.sum())
        centres.append(centre[good])
        radii.append(radius[good])
        left = np.repeat(~good, sizes)
        order, code = order[left], code[left]
    return cell, np.concatenate(centres), np.concatenate(radii)


def _boxes(points: Floats) -> Ints:
    """(n,) Morton codes: in which half of a cube, of that half, and so on, along the axes in turn."""
    within = points - points.min(axis=0)
    numbers = (within / (within.max() or 1.0) * (2**DEPTH - 1)).astype(np.int64)
    code = np.zeros(len(points), dtype=np.int64)
    for bit in range(DEPTH):
        for axis in range(3):
            code |= (numbers[:, axis] >> bit & 1) << 3 * bit + axis
    return code


def _rows(centres: Floats, radii: Floats, basis: Basis) -> Bound:
    """Those of a_k."""
    nodes = _sphere()
    fit = np.linalg.pinv(solid_harmonics(nodes, DEGREE))
    blocks = np.empty((-(-len(centres) // LANES), len(fit), basis.size, LANES), dtype=np.float32)
    for first in range(0, len(centres), CELL_CHUNK):
        some = slice(first, first + CELL_CHUNK)
        around = centres[some, None] + radii[some, None, None] * nodes
        rows = basis.rows(around.reshape(-1, 3), 0)[0].reshape(-1, NODES, basis.size)
        made = Bound.rows(basis, fit @ rows).blocks
        blocks[first // LANES : first // LANES + len(made)] = made
    return Bound(basis, len(centres), locked(blocks))


def _sphere() -> Floats:
    """(`NODES`, 3) spread evenly over the unit sphere, on a spiral."""
    k = np.arange(NODES) + 0.5
    z, angle = 1 - 2 * k / NODES, np.pi * (3 - np.sqrt(5)) * k
    return np.stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z], axis=1)


def solid_harmonics(u: Floats, degree: int) -> Floats:
    """(n, (degree + 1)²) the polynomials B at u (n, 3)."""
    along, w, square = (u[:, 0] + 1j * u[:, 1]), u[:, 2], (u**2).sum(axis=1)
    R = np.zeros((degree + 1, degree + 1, len(u)), dtype=complex)
    for m in range(degree + 1):
        R[m, m] = along / (2 * m) * R[m - 1, m - 1] if m else 1
        for l in range(m, degree):
            R[l + 1, m] = ((2 * l + 1) * w * R[l, m] - square * R[l - 1, m] * (l > m)) / ((l + 1) ** 2 - m**2)
    parts = [
        part for l in range(degree + 1) for m in range(l + 1) for part in (R[l, m].real, R[l, m].imag)[: 1 + (m > 0)]
    ]
    return np.stack(parts, axis=1)


@cache
def solid_harmonic_slopes() -> Floats:
    """(3, (L + 1)², L²) with ∂_b B_l = Σ_k slopes_blk B_k."""
    nodes, step = _sphere(), np.eye(3)[:, None]

    def at(steps: float) -> Floats:
        return solid_harmonics((nodes + steps * step).reshape(-1, 3), DEGREE).reshape(3, NODES, -1)

    derivative = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / 12  # exact for polynomials of degree four
    return np.swapaxes(np.linalg.pinv(solid_harmonics(nodes, DEGREE - 1)) @ derivative, 1, 2)

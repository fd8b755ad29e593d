"""Shape matching: the rotation and stretch of a group of points (Müller et al. 2005; Section 3 of the cage paper).

With q_i the group's points at rest and p_i those of a frame, both about their centres, the best linear map is

    A = A_pq A_qq⁻¹,   A_pq = Σ m_i p_i q_iᵀ,   A_qq = Σ m_i q_i q_iᵀ,

and the best rotation R is the polar factor of A_pq. A group that is flat, or lies on a line, does not determine the
map across it: A_qq is singular. Along each principal direction v_k of A_qq, with eigenvalue λ_k, the map is

    A v_k = w_k A_pq v_k / λ_k + (1 - w_k) R v_k,

where w_k goes from 0 to 1 as the group's extent along v_k goes from `FLAT_EXTENT` to `SOLID_EXTENT` times its largest.
So a solid group has its linear map exactly, and a flat one rotates its normal. Points on a line rotate by the smallest
angle.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from pliant.core import rotations
from pliant.core.normals import unit
from pliant.core.scaling import scaling_of
from pliant.core.topology import Floats

Fit = Literal["linear", "rotation"]
FLAT_EXTENT, SOLID_EXTENT = 0.02, 0.1
"""Extent of a group along a direction, over its largest: up to the first it is flat, from the second on solid."""


def match(rest: Floats, moved: Floats, weights: Floats, fit: Fit) -> tuple[Floats, Floats, Floats]:
    """The motion of points (n, 3) to (f, n, 3): their centre (3,), its positions (f, 3) and gradients (f, 3, 3)."""
    m = weights / weights.sum()
    centre, centres = m @ rest, np.einsum("n,fni->fi", m, moved)
    power = scaling_of(rest).power  # the gradients are the same at every scale
    q, p = np.ldexp(rest - centre, power), np.ldexp(moved - centres[:, None], power)
    A_pq = np.einsum("fni,nj->fij", p, m[:, None] * q)
    extent, axes = principal_axes(q, m)
    R = _rotations(A_pq, extent, axes)
    return centre, centres, R if fit == "rotation" else _linear(A_pq, R, extent, axes)


def principal_axes(q: Floats, m: Floats) -> tuple[Floats, Floats]:
    """Root mean square extent of centred points along three directions, largest first, and these as columns."""
    power = scaling_of(q).power
    scaled = np.ldexp(q, power)
    values, axes = np.linalg.eigh(np.einsum("ni,n,nj->ij", scaled, m, scaled))
    return np.ldexp(np.sqrt(np.maximum(values[::-1], 0.0)), -power), axes[:, ::-1]


def _rotations(A_pq: Floats, extent: Floats, axes: Floats) -> Floats:
    """(f, 3, 3) the rotations that fit best."""
    if extent[1] > FLAT_EXTENT * extent[0]:
        return rotations.polar(A_pq)
    along = unit(A_pq @ axes[:, 0])
    start = np.broadcast_to(axes[:, 0], along.shape)
    cosine = np.einsum("fi,fi->f", start, along)
    half = np.concatenate([1 + cosine[:, None], np.cross(start, along)], axis=1)
    across = np.concatenate([[0.0], axes[:, 1]])  # of the half turns, one about a direction across
    return rotations.matrix(rotations.normalize(np.where(cosine[:, None] < -1 + 1e-12, across, half)))


def _linear(A_pq: Floats, R: Floats, extent: Floats, axes: Floats) -> Floats:
    """(f, 3, 3) the linear maps that fit best, with the rotation in directions in which the group is flat."""
    w = np.clip((extent / extent[0] - FLAT_EXTENT) / (SOLID_EXTENT - FLAT_EXTENT), 0, 1)
    fitted = np.divide(w, extent**2, out=np.zeros(3), where=w > 0)
    return (A_pq @ (axes * fitted) + R @ (axes * (1 - w))) @ axes.T

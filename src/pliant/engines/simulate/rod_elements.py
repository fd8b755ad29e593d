"""The elastic energy of a rod's elements, with its exact first and second derivatives.

Geometrically exact rods (Simo and Reissner): every node has a position x and a rotation q from rest, a unit
quaternion. An element of rest length L between nodes 1 and 2, with ``e = x2 - x1``, ``s = 1 + q1·q2`` and the middle
rotation ``R = R(q1 + q2) / 2s``, has the strains

    Γ = (Rᵀ e − e⁰) / L                  stretch and shear
    κ = 4 vec(q1* q2) / (L s)            bending and twist: 4 tan(φ/4) / L for a rotation by φ from node 1 to node 2

and the energy ``L/2 (Γᵀ C_Γ Γ + κᵀ C_κ κ)``, C rotated to the element's rest frame. It is evaluated at the midpoint: no
locking, second order in L. A joint with its own stiffness is an element of zero length that has only the second term.

All strains are quotients of polynomials of (e, q1, q2), so derivatives are those of quotients. A rotation changes by
``q(θ) = q (1, θ/2) / |…| = q + ½ G(q) θ − ⅛ |θ|² q + …``, so that with g and H the derivatives by q

    ∂/∂θ = ½ Gᵀ g,     ∂²/∂θ² = ¼ Gᵀ H G − ¼ (g·q) 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pliant.core import rotations
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value


def _rotation_forms() -> Floats:
    """(3, 3, 4, 4) symmetric S with ``mᵀ S[j, k] m = R(m)_jk`` for the unnormalised rotation matrix of m."""
    forms = np.zeros((3, 3, 4, 4))
    for j in range(3):
        forms[j, j, 0, 0] = 1
        for axis in range(3):
            forms[j, j, 1 + axis, 1 + axis] = 1 if axis == j else -1
        for k in range(3):
            if j == k:
                continue
            forms[j, k, 1 + j, 1 + k] = forms[j, k, 1 + k, 1 + j] = 1
            third = 3 - j - k
            sign = -1.0 if (k - j) % 3 == 1 else 1.0
            forms[j, k, 0, 1 + third] = forms[j, k, 1 + third, 0] = sign
    return forms


def _relative_rotation_forms() -> Floats:
    """(3, 4, 4) B with ``pᵀ B[k] q = vec(p* q)_k``."""
    forms = np.zeros((3, 4, 4))
    for k in range(3):
        forms[k, 0, 1 + k], forms[k, 1 + k, 0] = 1, -1
        a, b = (k + 1) % 3, (k + 2) % 3
        forms[k, 1 + a, 1 + b], forms[k, 1 + b, 1 + a] = -1, 1
    return forms


S, B = _rotation_forms(), _relative_rotation_forms()


@dataclass(frozen=True, eq=False)
class Elements(Value):
    """Elements of a rod, and the joints that have a stiffness of their own."""

    position_nodes: Ints
    """(m, 2) position nodes at its ends; the same twice for a joint."""
    rotation_nodes: Ints
    """(m, 2) rotation nodes at its ends."""
    offset: Floats
    """(m, 4) rotation applied at its start, in the frame of the start node."""
    rest: Floats
    """(m, 3) e⁰."""
    length: Floats
    """(m,) L; 1 for a joint."""
    stiffness: Floats
    """(m, 6, 6) of Γ and κ."""

    def __len__(self) -> int:
        return len(self.length)

    def with_offset(self, offset: Floats) -> Elements:
        """The same elements with other offsets."""
        return replace(self, offset=offset)

    def energies(self, x: Floats, q: Floats) -> Floats:
        """(m,) the energy of each."""
        strain = _Strains(self, x, q).values
        return self.length / 2 * np.einsum("mi,mij,mj->m", strain, self.stiffness, strain)

    def derivatives(self, x: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
        """(m, 12) gradients by (x1, x2, θ1, θ2), and (m, 12, 12) the material and the geometric part of the Hessian."""
        strains = _Strains(self, x, q)
        J = strains.first()
        stress = self.length[:, None] * np.einsum("mij,mj->mi", self.stiffness, strains.values)
        gradient = np.einsum("mi,mia->ma", stress, J)
        P = self._moves(strains.q1, strains.q2)
        JP = J @ P
        material = self.length[:, None, None] * (JP.swapaxes(1, 2) @ self.stiffness @ JP)
        geometric = P.swapaxes(1, 2) @ strains.second(stress) @ P
        for k, end in enumerate((strains.q1, strains.q2)):
            radial = -0.25 * np.einsum("ma,ma->m", gradient[:, 3 + 4 * k : 7 + 4 * k], end)
            for a in range(6 + 3 * k, 9 + 3 * k):
                geometric[:, a, a] += radial
        return np.einsum("ma,mab->mb", gradient, P), material, geometric

    def pulls(self, q: Floats) -> tuple[Floats, Floats]:
        """For given rotations, (m, 3, 3) the stiffness of the ends' distance, and (m, 3) the force at distance zero.

        The energy is quadratic in the positions.
        """
        q1, q2 = self.ends(q)
        R = rotations.matrix(rotations.normalize(q1 + q2))
        stiffness = R @ self.stiffness[:, :3, :3] / self.length[:, None, None]
        return stiffness @ np.swapaxes(R, 1, 2), np.einsum("mij,mj->mi", stiffness, self.rest)

    def ends(self, q: Floats) -> tuple[Floats, Floats]:
        """(m, 4) the rotations at both ends, with consistent signs."""
        q1 = rotations.multiply(q[self.rotation_nodes[:, 0]], self.offset)
        return q1, rotations.align_signs(q[self.rotation_nodes[:, 1]], q1)

    def _moves(self, q1: Floats, q2: Floats) -> Floats:
        """(m, 11, 12) derivatives of (e, q1, q2) by (x1, x2, θ1, θ2)."""
        P = np.zeros((len(self), 11, 12))
        P[:, :3, :3], P[:, :3, 3:6] = -np.eye(3), np.eye(3)
        own = np.swapaxes(rotations.matrix(self.offset), 1, 2)  # from θ1 of the node to that after the offset
        P[:, 3:7, 6:9] = 0.5 * _tangents(q1) @ own
        P[:, 7:11, 9:12] = 0.5 * _tangents(q2)
        return P


class _Strains:
    """(m, 6) Γ and κ of elements as quotients ``top / (L s)``, minus those at rest, and their derivatives."""

    def __init__(self, elements: Elements, x: Floats, q: Floats) -> None:
        e = x[elements.position_nodes[:, 1]] - x[elements.position_nodes[:, 0]]
        self.q1, self.q2 = elements.ends(q)
        self.mean = self.q1 + self.q2
        self.s = 1 + np.einsum("ma,ma->m", self.q1, self.q2)
        self.forms = np.tensordot(e, S, axes=(1, 0))
        self.along = (self.forms @ self.mean[:, None, :, None])[..., 0]
        self.across = np.tensordot(self.q2, B, axes=(1, 2))
        stretch = (self.along @ self.mean[:, :, None])[..., 0] / 2
        self.top = np.concatenate([stretch, 4 * (self.across @ self.q1[:, :, None])[..., 0]], axis=1)
        self.scale = 1 / (elements.length * self.s)[:, None]
        self.values = self.top * self.scale
        self.values[:, :3] -= elements.rest / elements.length[:, None]
        self.down = np.concatenate([np.zeros((len(e), 3)), self.q2, self.q1], axis=1) / self.s[:, None]

    def first(self) -> Floats:
        """(m, 6, 11) derivatives by (e, q1, q2)."""
        self.mixed = np.moveaxis(np.tensordot(self.mean, S, axes=(1, 3)), 1, 2)
        dtop = np.zeros((len(self.s), 6, 11))
        dtop[:, :3, :3] = (self.mixed @ self.mean[:, None, :, None])[..., 0] / 2
        dtop[:, :3, 3:7] = dtop[:, :3, 7:11] = self.along
        dtop[:, 3:, 3:7], dtop[:, 3:, 7:11] = 4 * self.across, 4 * np.tensordot(self.q1, B, axes=(1, 1))
        self.dtop = dtop
        return (dtop - self.top[..., None] * self.down[:, None]) * self.scale[..., None]

    def second(self, stress: Floats) -> Floats:
        """(m, 11, 11) second derivatives of all strains, each times its stress (m, 6); after `first`."""
        stress = stress * self.scale
        out = np.zeros((len(stress), 11, 11))
        sheared = np.einsum("mk,mkja->mja", stress[:, :3], self.mixed)
        curved = np.einsum("mk,mkab->mab", stress[:, :3], self.forms)
        for a in (slice(3, 7), slice(7, 11)):
            out[:, :3, a], out[:, a, :3] = sheared, np.swapaxes(sheared, 1, 2)
            out[:, a, 3:7], out[:, a, 7:11] = curved, curved
        bent = 4 * np.tensordot(stress[:, 3:], B, axes=(1, 0))
        share = np.einsum("mi,mi->m", stress, self.top)
        out[:, 3:7, 7:11] += bent - (share / self.s)[:, None, None] * np.eye(4)
        out[:, 7:11, 3:7] += np.swapaxes(bent, 1, 2) - (share / self.s)[:, None, None] * np.eye(4)
        crossed = np.einsum("mi,mia->ma", stress, self.dtop)[:, :, None] * self.down[:, None, :]
        out -= crossed + np.swapaxes(crossed, 1, 2)
        return out + 2 * share[:, None, None] * (self.down[:, :, None] * self.down[:, None, :])


def _tangents(q: Floats) -> Floats:
    """(m, 4, 3) G with ``G θ = q (0, θ)``."""
    w, x, y, z = q.T
    return np.stack([np.stack(row, axis=1) for row in ((-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w))], axis=1)


def rotated(q: Floats, theta: Floats) -> Floats:
    """(r, 4) rotations q(θ) after the increments θ (r, 3)."""
    step = np.concatenate([np.ones((len(q), 1)), theta / 2], axis=1)
    return rotations.normalize(rotations.multiply(q, step))

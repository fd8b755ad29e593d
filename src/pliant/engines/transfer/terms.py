"""The weighted sum of the energies of a caged shape (Eq. 12), assembled once for given controls.

Weights apply to energies whose Gauss–Newton matrices at rest have a Frobenius norm of one, as in the paper's Section 4,
so they mean the same for every cage, lattice and number of controls. The terms that are linear in the cage's state X
are summed into one matrix A; only B and the lengths change from frame to frame.

The initial guess of a frame is the cage of the last frame, rotated with its gradient controls. From the last frame to
this one, gradient control k rotates by ``R_k = polar(G_k) polar(∇F_k)ᵀ``. These rotations are interpolated smoothly
over the cage, ``(L + α ΦᵀΦ) Q = α Φᵀ R``, with the Laplacian L of its edges and the coordinates Φ of the controls, and
projected to rotations. Then every edge e = v_i − v_j has the target ``(Q_i + Q_j) e / 2``, met in the least-squares
sense by one solve with L (as-rigid-as-possible; Sorkine and Alexa 2007). Where limbs rotate far in one frame, this is
much nearer to the solution than the last frame, from which straight steps would stretch the limbs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pliant.core.rotations import polar
from pliant.core.topology import Floats, Ints, unique_pairs
from pliant.core.values import Value
from pliant.engines.transfer.controls import Controls, ControlTargets, Weights
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.rigidity import Rigidity, RigidPoints
from pliant.engines.transfer.solver import Quadratic, length_slopes
from pliant.engines.transfer.solver_kernels import gauss_newton_matrix

CONTROL_WEIGHT = 1000.0
"""α: weight of the controls' rotations relative to smoothness."""
REGULARISATION = 1e-6
"""Added to the diagonal of L: parts of a cage without a control stay as they are."""


@dataclass(frozen=True, eq=False)
class RotationGuess(Value):
    """How a cage rotates with its gradient controls."""

    edges: Ints
    """(e, 2)"""
    weights: Floats
    """(e,)"""
    spread: Floats
    """(c, k) weights of the controls' rotations at each vertex"""
    inverse: Floats
    """(c, c) of L"""

    @classmethod
    def of(cls, basis: Basis, phi: Floats) -> RotationGuess:
        """phi: (k, c) coordinates of the gradient controls."""
        points, triangles = basis.cage.points, basis.cage.triangles
        edges = unique_pairs(np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]), len(points))
        long = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
        weights = np.median(long) / long
        L = np.zeros((len(points), len(points)))
        L[edges[:, 0], edges[:, 1]] = L[edges[:, 1], edges[:, 0]] = -weights
        L[np.diag_indices_from(L)] = REGULARISATION - L.sum(axis=1)
        shares = np.maximum(phi, 0)
        shares = shares / shares.sum(axis=1, keepdims=True)
        spread = np.linalg.solve(L + CONTROL_WEIGHT * shares.T @ shares, CONTROL_WEIGHT * shares.T)
        return cls(edges, weights, spread, np.linalg.inv(L).astype(np.float64))

    def rotated(self, points: Floats, rotations: Floats) -> Floats:
        """Cage vertices (c, 3) if the controls rotate by (k, 3, 3), up to a translation."""
        Q = np.einsum("ck,kij->cij", self.spread, rotations)
        Q = polar(Q + REGULARISATION * np.eye(3))
        i, j = self.edges.T
        wanted = self.weights[:, None] * np.einsum("eij,ej->ei", 0.5 * (Q[i] + Q[j]), points[i] - points[j])
        sums = REGULARISATION * points
        np.add.at(sums, i, wanted)
        np.add.at(sums, j, -wanted)
        out: Floats = self.inverse @ sums
        return out


@dataclass(frozen=True, eq=False)
class Terms(Value):
    """Rows over X of all controls, and the summed matrix of the terms that are linear in X."""

    basis: Basis
    controls: Controls
    position: Floats
    """(k, c + f)"""
    gradient: Floats
    """(3 k, c + f)"""
    length: Floats
    """(k, c + f)"""
    A: Floats
    """(c + f, c + f) with smoothness"""
    probes: Floats
    """(c + f, m) of some points of the target"""
    motions: Floats
    """(c + f, c + f) probes · probesᵀ"""
    rotation_guess: RotationGuess | None
    """None without gradient controls"""
    position_weight: float
    gradient_weight: float
    length_weight: float
    rigidity: Rigidity | None
    """Around rest; None without a weight"""
    stretch_shares: Floats
    """(m, k) of the gradient controls' stretches at its points"""

    @classmethod
    def of(
        cls,
        basis: Basis,
        controls: Controls,
        smooth: Floats,
        cells: RigidPoints,
        probes: Floats,
        weights: Weights,
        *,
        allow: bool,
    ) -> Terms:
        """smooth: Q of norm one at rest. allow: whether controls may be outside the cage."""
        position, gradient, length = control_rows(basis, controls, allow=allow)
        wp = weights.position / hessian_norm(basis, position.T @ position) if len(position) else 0.0
        wg = weights.gradient / hessian_norm(basis, gradient.T @ gradient) if len(gradient) else 0.0
        wl = weights.length / _length_norm(basis, length) if len(length) else 0.0
        A = weights.smooth * smooth + wp * position.T @ position + wg * gradient.T @ gradient
        wr = weights.rigidity / hessian_norm(basis, cells.squares)
        A += wr * cells.squares
        rotation_guess = (
            RotationGuess.of(basis, _vertex_shares(basis, controls.gradients, allow)) if len(gradient) else None
        )
        spread = rotation_guess.spread if rotation_guess is not None else np.zeros((len(basis.cage.points), 0))
        return cls(
            basis, controls, position, gradient, length, A, probes, probes @ probes.T, rotation_guess, wp, wg, wl,
            Rigidity(cells.gradients, wr * cells.weights, cells.regions) if wr else None, cells.shares(spread),
        )  # fmt: skip

    def energy(self, targets: ControlTargets) -> Quadratic:
        """Eq. 12 for the first frame of `targets`."""
        P, G = targets.positions[0], _columns(targets.gradients[0])
        B = self.position_weight * self.position.T @ P + self.gradient_weight * self.gradient.T @ G
        constant = self.position_weight * float((P**2).sum()) + self.gradient_weight * float((G**2).sum())
        lengths, weight = targets.lengths[0], self.length_weight
        return Quadratic(
            self.basis, self.A, B, constant, self.length, lengths, weight, self.probes, self.motions,
            self._stretched(targets.gradients[0]),
        )  # fmt: skip

    def _stretched(self, G: Floats) -> Rigidity | None:
        """Rigidity about the stretches of the controls' targets (k, 3, 3)."""
        if self.rigidity is None or not len(G):
            return self.rigidity
        S = np.swapaxes(polar(G), 1, 2) @ G
        return replace(self.rigidity, stretches=np.einsum("mk,kij->mij", self.stretch_shares, S))

    def moved_rigidly(self, targets: ControlTargets, points: Floats) -> Floats:
        """Cage vertices (c, 3) after the rigid motion that best matches the targets of the first frame."""
        X = self.basis.state(points)
        now, P = self.position @ X, targets.positions[0]
        centre, goal = now.mean(axis=0), P.mean(axis=0)
        spread = self.basis.cage.diagonal
        covariance = (P - goal).T @ (now - centre) / spread**2
        rotated = np.swapaxes((self.gradient @ X).reshape(-1, 3, 3), 1, 2)
        covariance += np.einsum("kij,klj->il", targets.gradients[0], rotated)
        R = polar(covariance) if np.linalg.matrix_rank(covariance, tol=1e-9) >= 2 else np.eye(3)
        return (points - centre) @ R.T + goal

    def guesses(self, targets: ControlTargets, points: Floats) -> list[Floats]:
        """Candidates for the start: cage vertices, given those of the last frame (c, 3)."""
        made = [points, self.moved_rigidly(targets, points)]
        if self.rotation_guess is not None:
            made.append(self._rotated(targets, points))
            made.append(self._rotated(targets, made[-1]))
        return made

    def _rotated(self, targets: ControlTargets, points: Floats) -> Floats:
        """Cage vertices (c, 3) rotated by the rotations from the controls' gradients to their targets."""
        assert self.rotation_guess is not None
        now = polar(self.reached(points)[1])
        rotated = self.rotation_guess.rotated(points, polar(targets.gradients[0]) @ np.swapaxes(now, 1, 2))
        off: Floats = (targets.positions[0] - self.position @ self.basis.state(rotated)).mean(axis=0)
        return rotated + off

    def reached(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """Positions (k, 3), gradients (k, 3, 3) and lengths (k,) of the controls in a deformed cage (c, 3)."""
        X = self.basis.state(points)
        gradients = np.swapaxes((self.gradient @ X).reshape(-1, 3, 3), 1, 2)
        return self.position @ X, gradients, np.linalg.norm(self.length @ X, axis=1)


def control_rows(basis: Basis, controls: Controls, *, allow: bool) -> tuple[Floats, Floats, Floats]:
    """Rows of positions (k, c + f), gradients (3 k, c + f; the columns of ∇F) and lengths (k, c + f)."""
    position = basis.rows(controls.positions, 0, allow=allow, what="position controls")[0]
    gradient = basis.rows(controls.gradients, 1, allow=allow, what="gradient controls")[1]
    ends = [basis.rows(controls.lengths[:, end], 0, allow=allow, what="ends of length controls")[0] for end in (0, 1)]
    return position, gradient.reshape(-1, basis.size), ends[1] - ends[0]


def _vertex_shares(basis: Basis, points: Floats, allow: bool) -> Floats:
    """(k, c) coordinates φ of points (k, 3)."""
    return basis.rows(points, 0, allow=allow, what="gradient controls")[0][:, : len(basis.cage.points)]


def hessian_norm(basis: Basis, A: Floats) -> float:
    """Frobenius norm of Gᵀ (A ⊗ 1) G at rest."""
    rest, normals = basis.cage.points, basis.normals
    lower = np.tril(gauss_newton_matrix(A, normals.jacobian(rest), normals.triangles, len(rest)))
    return float(np.linalg.norm(lower + np.tril(lower, -1).T))


def _length_norm(basis: Basis, rows: Floats) -> float:
    """Frobenius norm of the lengths' Gauss–Newton matrix at rest."""
    rest = basis.cage.points
    slopes = length_slopes(basis, rows, rows @ basis.state(rest), basis.normals.jacobian(rest))
    return float(np.linalg.norm(4 * slopes @ slopes.T))


def _columns(G: Floats) -> Floats:
    """(3 k, 3) the columns of matrices (k, 3, 3), as the gradient rows give them."""
    return np.swapaxes(G, 1, 2).reshape(-1, 3)

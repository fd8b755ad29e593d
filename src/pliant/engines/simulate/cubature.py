"""Cubature: sums over a body's nodes, quadrature points and springs, taken over some of them.

Each stands for the cluster that it is in the middle of. Weights are then fitted, none below 0, so that forces on the
modes are those of the whole sums (An, Kim and James 2008).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.diffusion import RotationWeights
from pliant.engines.simulate.nodes import cluster_centres
from pliant.engines.simulate.warping import Singles

SYMMETRIC = ((1, 2), (0, 2), (0, 1))
"""The entries of a symmetric matrix beside its diagonal."""
SHARE_RIDGE = 1e-3
"""How much weights stay near those of their clusters."""


@dataclass(frozen=True, eq=False)
class Carried(Value):
    """Points of the field: where bones carry them, and how they move with the modes."""

    skinned: Any
    """Sparse (p, 4 b): what multiplies the bones' transforms."""
    blend: Any
    """Sparse (p, b): w."""
    modes: Any
    """(p, 3, k) φ; in double precision for masses, whose accelerations are differences."""
    weights: Floats
    """(p,) masses, or stiffnesses of springs."""

    def at(self, posed: PosedBones) -> tuple[Floats, Any]:
        """(p, 3) the points at z = 0, and (3 p, k) their derivatives by z times the roots of the weights."""
        rotated = np.sqrt(self.weights)[:, None, None] * (self.blend @ posed.R).reshape(-1, 3, 3)
        moved = rotated.astype(self.modes.dtype) @ self.modes
        return self.skinned @ posed.transforms, moved.reshape(-1, self.modes.shape[2])


@dataclass(frozen=True, eq=False)
class StrainPoints(Value):
    """Quadrature points, with the tables of the product rule."""

    skinned: tuple[Any, ...]
    """Three sparse (p, 4 b), the derivatives of those of `Carried`."""
    blend: tuple[Any, ...]
    """Four sparse (p, b): w, and its derivatives."""
    modes: Singles
    """(p, 3, k) φ."""
    slopes: Singles
    """(p, 3, 3, k) ∇φ: component, then axis."""
    rotations: RotationWeights
    volumes: Floats
    """(p,) of the clusters."""
    lam: Floats
    """(p,) Lamé's constants."""
    mu: Floats
    limited: Floats
    """(p,) 1 where there are strain limits, else 0."""
    weights: Floats
    """(p,) volumes that were fitted."""

    def at(self, posed: PosedBones) -> tuple[Floats, Singles]:
        """Rᵀ F: (p, 3, 3) at z = 0, and (p, 3, 3, k) its derivatives by z."""
        back = np.swapaxes(self.rotations.matrices(posed.quaternions).reshape(-1, 3, 3), 1, 2)
        rotated = [(back @ (w @ posed.R).reshape(-1, 3, 3)).astype(np.float32) for w in self.blend]
        F = np.stack([table @ posed.transforms for table in self.skinned], axis=2)
        moved = (rotated[0] @ self.slopes.reshape(len(F), 3, -1)).reshape(self.slopes.shape)
        for axis in range(3):
            moved[:, :, axis] += rotated[1 + axis] @ self.modes
        return back @ F, moved

    def strains(self, S: Floats, moved: Singles) -> tuple[Floats, Singles]:
        """(7 p,) strains times the roots of their stiffness, so that half of their square is the energy, and the same
        of derivatives (7 p, k): xx, yy, zz, yz, xz, xy and the trace."""
        shear, bulk = np.sqrt(2 * self.mu * self.weights), np.sqrt(self.lam * self.weights)
        own = [shear * (S[:, i, i] - 1) for i in range(3)]
        own += [shear / 2**0.5 * (S[:, i, j] + S[:, j, i]) for i, j in SYMMETRIC]
        own.append(bulk * (np.trace(S, axis1=1, axis2=2) - 3))
        p, (shear, bulk) = len(S), (shear.astype(np.float32)[:, None], bulk.astype(np.float32)[:, None])
        rows = np.empty((7, p, moved.shape[3]), np.float32)
        for i in range(3):
            np.multiply(shear, moved[:, i, i], out=rows[i])
        for k, (i, j) in enumerate(SYMMETRIC):
            np.multiply(shear * np.float32(0.5**0.5), moved[:, i, j] + moved[:, j, i], out=rows[3 + k])
        np.multiply(bulk, moved[:, 0, 0] + moved[:, 1, 1] + moved[:, 2, 2], out=rows[6])
        return np.concatenate(own), rows.reshape(7 * p, -1)


@dataclass(frozen=True, eq=False)
class PosedBones:
    """Bones at a moment."""

    R: Floats
    """(b, 9)"""
    transforms: Floats
    """(4 b, 3) of each, Rᵀ and then the translation."""
    quaternions: Floats
    """(b, 4)"""
    frames: Frames
    """This one."""


@dataclass
class CubatureFit:
    """Shares of what points contribute to sums, that give those sums."""

    parts: list[Floats] = field(default_factory=list)
    sums: list[Floats] = field(default_factory=list)

    def add(self, parts: Floats, sums: Floats) -> None:
        """Contributions (p, k) of points, which should sum to (k,)."""
        size = float(np.linalg.norm(sums)) or 1.0
        self.parts.append(parts.T / size)
        self.sums.append(sums / size)

    def shares(self) -> Floats:
        """(p,) none below 0, and near 1 where nothing speaks against it."""
        C, t = np.concatenate(self.parts).astype(np.float64), np.concatenate(self.sums)
        share, kept = np.ones(C.shape[1]), np.ones(C.shape[1], dtype=bool)
        while True:
            A = C[:, kept]
            share[kept] = np.linalg.solve(A.T @ A + SHARE_RIDGE * np.eye(A.shape[1]), A.T @ t + SHARE_RIDGE)
            if (share >= 0).all():
                return share
            kept &= share >= 0
            share[~kept] = 0


def clustered(points: Floats, sizes: Floats, count: int, dense: Floats | None = None) -> tuple[Ints, Floats]:
    """Points in the middle of about `count` clusters, and the clusters' sizes. dense: (p,) there are more where this is
    large."""
    from scipy.spatial import cKDTree

    if len(points) <= count:
        return np.arange(len(points)), sizes
    wanted = sizes if dense is None else sizes * dense
    rng = np.random.default_rng(0)
    centres = points[np.sort(rng.choice(len(points), count, replace=False, p=wanted / wanted.sum()))]
    chosen = cluster_centres(points, centres, wanted)
    owner = cKDTree(points[chosen]).query(points)[1]
    return chosen, np.asarray(np.bincount(owner, sizes, minlength=len(chosen)), dtype=np.float64)

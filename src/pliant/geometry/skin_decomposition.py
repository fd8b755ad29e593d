"""Smooth skinning decomposition with rigid bones (SSDR: Le and Deng 2012): a clip as bones, weights and correctives.

Vertex i at rest is p_i, in frame f it is v_if. Found are rigid bones [R_jf | t_jf], weights w_ij (Eq. 1),

    min  Σ_if | v_if − Σ_j w_ij (R_jf p_i + t_jf) |²      w_ij ≥ 0,  Σ_j w_ij = 1,  at most k of them not 0,

by turns: the weights of a vertex are a least-squares problem on a simplex (Sec. 4.2), the frames of a bone a weighted
Procrustes problem with the other bones fixed (Sec. 4.3). Of the products that the weights need,

    (M_j p)·(M_k p) = p̃ᵀ (Σ_f M_jfᵀ M_kf) p̃          M = [R | t],  p̃ = (p, 1)

the sums over frames are the same for every vertex, so that a clip is read once an iteration however long it is. Bones
start from rigid clusters, split where the clip is fitted worst.

The rest, e_if, is given to m corrective shapes that act before the bones do, as morph targets of a skinned mesh:

    min  Σ_if | e_if − B_if Σ_m c_fm d_im |²              B_if = Σ_j w_ij R_jf

with c from the principal components of Bᵀ e. Engines let c run from 0 to 1, so one shape is always there in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pliant.core import rotations
from pliant.core.topology import Floats, Ints
from pliant.native import in_threads, kernels

SKIN_ROUNDS = 20
"""Of weights and bones by turns, at most."""
STEP_GAIN = 1e-3
"""Relative drop of the error below which a round is the last."""
CLUSTER_ROUNDS = 4
"""Of fitting and assigning after each split of clusters."""
SKINNED_PER_THREAD = 256
SMALLEST_CORRECTIVE = 2e-5
"""Diagonals below which a corrective leaves a vertex where it is."""
BLEND_ENTRIES = 1 << 22
"""Entries of blended matrices in memory at a time."""


@dataclass(frozen=True, eq=False)
class Decomposition:
    """What a clip was taken apart into."""

    bone: Ints
    """(n, k) the bones of each vertex."""
    weight: Floats
    """(n, k) their weights, which sum to 1; 0 fills the rows."""
    R: Floats
    """(bones, frames, 3, 3) from rest to each frame."""
    t: Floats
    """(bones, frames, 3)"""

    def moved(self, p: Floats) -> Floats:
        """(n, frames, 3) where points at rest, (n, 3) or (n, frames, 3), go."""
        out = np.zeros((len(p), self.t.shape[1], 3))
        for j, rows, w in self.by_bone():
            at = p[rows]
            rotated = np.einsum("fab,ifb->ifa", self.R[j], at) if at.ndim == 3 else at @ _columns(self.R[j])
            out[rows] += w[:, None, None] * (rotated.reshape(len(rows), -1, 3) + self.t[j])
        return out

    def by_bone(self) -> Iterator[tuple[int, Ints, Floats]]:
        """Of each bone that has any: its number, its vertices and their weights."""
        flat = np.where(self.weight > 0, self.bone, -1).reshape(-1)
        order = np.argsort(flat, kind="stable")
        starts = np.searchsorted(flat[order], np.arange(len(self.R) + 1))
        for j in range(len(self.R)):
            slots = order[starts[j] : starts[j + 1]]
            if len(slots):
                yield j, slots // self.bone.shape[1], self.weight.reshape(-1)[slots]


def decompose(p: Floats, v: Floats, bones: int, influences: int) -> Decomposition:
    """Bones and weights of points p (n, 3) that move through v (n, frames, 3), in units of the diagonal."""
    R, t = _clusters(p, v, bones)
    found = fit_weights(p, v, R, t, influences)
    before = np.inf
    for _ in range(SKIN_ROUNDS):
        found = _fit_bones(p, v, found)
        found = fit_weights(p, v, found.R, found.t, influences)
        error = float(np.linalg.norm(v - found.moved(p)))
        if error > (1 - STEP_GAIN) * before:
            break
        before = error
    return _fit_bones(p, v, found)


def fit_weights(p: Floats, v: Floats, R: Floats, t: Floats, influences: int) -> Decomposition:
    """The best weights for given bones."""
    M = np.concatenate([R, t[..., None]], axis=-1)
    H = np.einsum("jfra,kfrb->jkab", M, M, optimize=True)
    along, length2 = _along(p, v, M), np.einsum("ifa,ifa->i", v, v)
    bone = np.zeros((len(p), influences), dtype=np.int64)
    weight = np.zeros(bone.shape)
    in_threads(lambda a, b: kernels.skin_weights(p, H, along, length2, bone, weight, a, b), len(p), SKINNED_PER_THREAD)
    return Decomposition(bone, weight, R, t)


def _fit_bones(p: Floats, v: Floats, skin: Decomposition) -> Decomposition:
    """The best frames of one bone after another, given the weights (Eqs. 8 to 11)."""
    R, t = skin.R.copy(), skin.t.copy()
    left = v - skin.moved(p)
    for j, rows, w in skin.by_bone():
        heavy, at = w[:, None] ** 2, p[rows]
        old = at @ _columns(R[j])
        q = left[rows] + w[:, None, None] * (old.reshape(len(rows), -1, 3) + t[j])
        R[j], t[j] = _procrustes(at, q, w, heavy, R[j])
        new = at @ _columns(R[j])
        left[rows] = q - w[:, None, None] * (new.reshape(len(rows), -1, 3) + t[j])
    return Decomposition(skin.bone, skin.weight, R, t)


def _procrustes(p: Floats, q: Floats, w: Floats, heavy: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Rotations and translations that minimise Σ |w (R p + t) − q|² in each frame; `before` where p leaves R open."""
    total = heavy.sum()
    centre = (heavy * p).sum(axis=0) / total
    target = np.einsum("i,ifa->fa", w, q) / total
    arms = w[:, None] * (p - centre)
    covariance = (arms.T @ q.reshape(len(q), -1)).reshape(3, -1, 3).transpose(1, 2, 0)
    size = (arms**2).sum() + 1e-12 * total * (np.ptp(p, axis=0) ** 2).sum() + 1e-300
    R = rotations.polar(covariance + 1e-6 * size * before)
    return R, target - R @ centre


def _columns(R: Floats) -> Floats:
    """(3, frames · 3): ``p @ columns`` is R p in every frame."""
    return R.transpose(2, 0, 1).reshape(3, -1)


def _homogeneous(p: Floats) -> Floats:
    return np.concatenate([p, np.ones((len(p), 1))], axis=1)


def _clusters(p: Floats, v: Floats, bones: int) -> tuple[Floats, Floats]:
    """(bones, frames, 3, 3) and (bones, frames, 3): clusters of vertices that move rigidly, at most so many."""
    length2 = np.einsum("ifa,ifa->i", v, v)
    home = np.zeros(len(p), dtype=np.int64)
    while True:
        for _ in range(CLUSTER_ROUNDS):
            R, t = _rigid_fits(p, v, home)
            misfit = _misfits(p, v, length2, R, t)
            home = misfit.argmin(axis=1)
            home = np.unique(home, return_inverse=True)[1].reshape(-1)
        worst = np.maximum(misfit.min(axis=1), 0)
        count = int(home.max()) + 1
        total = np.bincount(home, worst)
        if count >= min(bones, len(p)) or not total.any():
            return R, t
        for k in np.argsort(-total)[: max(1, min(bones - count, (count + 1) // 2))]:
            inside = np.flatnonzero(home == k)
            if len(inside) > 3 and worst[inside].any():
                home[_split(p[inside], worst[inside], inside)] = home.max() + 1
        if int(home.max()) + 1 == count:
            return R, t


def _split(p: Floats, misfit: Floats, vertices: Ints) -> Ints:
    """The half of a cluster's vertices that is nearest to where it fits worst, far from its middle."""
    centre = p.mean(axis=0)
    away = np.linalg.norm(p - centre, axis=1)
    seed = p[np.argmax(misfit * away)]
    return vertices[np.linalg.norm(p - seed, axis=1) < np.linalg.norm(p - centre, axis=1)]


def _rigid_fits(p: Floats, v: Floats, home: Ints) -> tuple[Floats, Floats]:
    fits = []
    for k in range(int(home.max()) + 1):
        rows = np.flatnonzero(home == k)
        w = np.ones(len(rows))
        fits.append(_procrustes(p[rows], v[rows], w, w[:, None], np.broadcast_to(np.eye(3), (v.shape[1], 3, 3))))
    return np.stack([R for R, _ in fits]), np.stack([t for _, t in fits])


def _misfits(p: Floats, v: Floats, length2: Floats, R: Floats, t: Floats) -> Floats:
    """(n, clusters) Σ_f |R p + t − v|²."""
    M = np.concatenate([R, t[..., None]], axis=-1)
    own, h = np.einsum("jfra,jfrb->jab", M, M), _homogeneous(p)
    squares: Floats = np.einsum("ia,jab,ib->ij", h, own, h, optimize=True)
    return squares - 2 * _along(p, v, M) + length2[:, None]


def _along(p: Floats, v: Floats, M: Floats) -> Floats:
    """(n, bones) Σ_f (M p)·v."""
    columns = M.transpose(1, 2, 0, 3).reshape(v[0].size, -1)
    return np.einsum("ija,ia->ij", (v.reshape(len(v), -1) @ columns).reshape(len(v), len(M), 4), _homogeneous(p))


def fit_correctives(p: Floats, v: Floats, skin: Decomposition, count: int) -> tuple[Floats, Floats]:
    """Shapes d (m, n, 3) to be added at rest, and their weights c (frames, m) from 0 to 1, as sliders are."""
    left = v - skin.moved(p)
    c = _sliders(left, skin, count)
    if not c.shape[1]:
        return np.zeros((0, *p.shape)), c
    d = _corrective_shapes(c, left, skin)
    d[np.linalg.norm(d, axis=2) < SMALLEST_CORRECTIVE] = 0
    return d.transpose(1, 0, 2), c


def slider_shapes(moves: Floats, count: int) -> tuple[Floats, Floats]:
    """Displacements (frames, n, 3), in diagonals, as shapes (m, n, 3) times weights (frames, m) from 0 to 1."""
    frames, n = moves.shape[:2]
    unmoved = Decomposition(
        np.zeros((n, 1), dtype=np.int64),
        np.ones((n, 1)),
        np.tile(np.eye(3), (1, frames, 1, 1)),
        np.zeros((1, frames, 3)),
    )
    return fit_correctives(np.zeros((n, 3)), np.ascontiguousarray(moves.transpose(1, 0, 2)), unmoved, count)


def _sliders(left: Floats, skin: Decomposition, count: int) -> Floats:
    """(frames, m) weights from 0 to 1: what is always there in full, then the principal components of what changes."""
    frames = left.shape[1]
    changing, constant = np.zeros((frames, frames)), 0.0
    for _, _, Bte in _normal_equations(left, skin):
        flat = Bte.transpose(1, 0, 2).reshape(frames, -1)
        mean = flat.mean(axis=0)
        constant += frames * float(mean @ mean)
        changing += (flat - mean) @ (flat - mean).T
    value, vector = np.linalg.eigh(changing)
    least = SMALLEST_CORRECTIVE**2 * len(left)
    always = np.ones((frames, 1 if count > 1 and max(constant, value[-1]) > least else 0))
    found = vector[:, ::-1][:, : count - always.shape[1]][:, value[::-1][: count - always.shape[1]] > least]
    low, high = found.min(axis=0, initial=0), found.max(axis=0, initial=0)
    return np.concatenate([always, (found - low) / np.maximum(high - low, 1e-300)], axis=1)


def _normal_equations(left: Floats, skin: Decomposition) -> Iterator[tuple[slice, Floats, Floats]]:
    """Some vertices at a time, BᵀB (n, frames, 3, 3) and Bᵀe (n, frames, 3)."""
    step = max(1, BLEND_ENTRIES // (9 * left.shape[1]))
    for start in range(0, len(left), step):
        rows = slice(start, start + step)
        weight, bone = skin.weight[rows, :, None, None, None], skin.bone[rows]
        B = sum(weight[:, k] * skin.R[bone[:, k]] for k in range(bone.shape[1]))
        Bt = np.swapaxes(B, -1, -2)
        yield rows, Bt @ B, (Bt @ left[rows, ..., None])[..., 0]


def _corrective_shapes(c: Floats, left: Floats, skin: Decomposition) -> Floats:
    """(n, m, 3) for given weights: 3m equations a vertex."""
    m = c.shape[1]
    d = np.zeros((len(left), m, 3))
    pairs = (c[:, :, None] * c[:, None, :]).reshape(len(c), -1)
    for rows, BtB, Bte in _normal_equations(left, skin):
        n = len(BtB)
        A = (pairs.T @ BtB.reshape(n, -1, 9)).reshape(n, m, m, 3, 3).transpose(0, 1, 3, 2, 4).reshape(n, 3 * m, 3 * m)
        b = np.einsum("fm,ifa->ima", c, Bte).reshape(n, 3 * m, 1)
        ridge = 1e-6 * np.trace(A, axis1=1, axis2=2)[:, None, None] / (3 * m) + 1e-300
        d[rows] = np.linalg.solve(A + ridge * np.eye(3 * m), b).reshape(n, m, 3)
    return d

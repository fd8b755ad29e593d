"""The compiled loops of blending beside plain NumPy, and that threads do not change a result."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import native
from pliant.core import rotations
from pliant.engines.blend import kernels

N, Q = 60, 300


@pytest.fixture(scope="module")
def springs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, N, (Q, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    vectors = rng.normal(size=(len(edges), 3))
    return {
        "x": rng.normal(size=(N, 3)),
        "edges": edges,
        "k": rng.uniform(0.5, 2, len(edges)),
        "r": rng.uniform(0.5, 2, len(edges)),
        "vectors": vectors,
        "p": vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
    }


def scattered(edges: np.ndarray, of_spring: np.ndarray) -> np.ndarray:
    """(n, ...) what springs give their first vertices, less what they give their second."""
    total = np.zeros((N, *of_spring.shape[1:]))
    np.add.at(total, edges[:, 0], of_spring)
    np.add.at(total, edges[:, 1], -of_spring)
    return total


def rotated(vectors: np.ndarray, turns: np.ndarray) -> np.ndarray:
    return rotations.rotate(rotations.exp(turns), vectors)


def test_fans_list_the_springs_of_each_vertex(springs: dict[str, np.ndarray]) -> None:
    edges = springs["edges"]
    start, other, spring = kernels.fans(edges, N)
    for i in range(N):
        mine = np.flatnonzero((edges == i).any(axis=1))
        np.testing.assert_array_equal(spring[start[i] : start[i + 1]], mine)
        np.testing.assert_array_equal(other[start[i] : start[i + 1]], edges[mine].sum(axis=1) - i)


@pytest.mark.parametrize("mu", [0.0, 0.35])
def test_energy_and_force(springs: dict[str, np.ndarray], mu: float) -> None:
    x, edges, k, r, p = (springs[name] for name in ("x", "edges", "k", "r", "p"))
    d = x[edges[:, 0]] - x[edges[:, 1]]
    length = np.linalg.norm(d, axis=1)
    across = d - np.sum(d * p, axis=1, keepdims=True) * p
    energy = 0.5 * np.sum(k * ((length - r) ** 2 + mu * np.sum(across**2, axis=1)))
    force = scattered(edges, k[:, None] * ((1 - r / length)[:, None] * d + mu * across))
    gradient = np.empty((N, 3))
    assert kernels.energy_and_gradient(x, kernels.fans(edges, N), k, r, p, mu, gradient) == pytest.approx(energy)
    np.testing.assert_allclose(gradient, force, atol=1e-12)


def test_relaxed_vertices_are_in_balance_and_the_others_stay(springs: dict[str, np.ndarray]) -> None:
    x, edges, k, r, p = (springs[name] for name in ("x", "edges", "k", "r", "p"))
    fans, chosen, before, after = kernels.fans(edges, N), np.arange(5, 30), np.empty((N, 3)), np.empty((N, 3))
    moved = x.copy()
    for _ in range(4):  # every sweep lowers the energy
        first = kernels.energy_and_gradient(moved, fans, k, r, p, 0.35, before)
        kernels.relax(moved, fans, k, r, p, 0.35, chosen, 1, 0.0)
        assert kernels.energy_and_gradient(moved, fans, k, r, p, 0.35, after) < first
    kernels.relax(moved, fans, k, r, p, 0.35, chosen, 2000, 1e-13)
    kernels.energy_and_gradient(moved, fans, k, r, p, 0.35, after)
    assert np.abs(after[chosen]).max() < 1e-9 * np.abs(before).max()
    others = np.setdiff1d(np.arange(N), chosen)
    np.testing.assert_array_equal(moved[others], x[others])
    unmoved = moved.copy()
    kernels.relax(moved, fans, k, r, p, 0.35, chosen, 3, np.inf)  # no sweep at all
    np.testing.assert_array_equal(moved, unmoved)


def test_compression(springs: dict[str, np.ndarray]) -> None:
    x, edges, k, r = (springs[name] for name in ("x", "edges", "k", "r"))
    pressed = k * np.maximum(r / np.linalg.norm(x[edges[:, 0]] - x[edges[:, 1]], axis=1) - 1, 0)
    both = edges.ravel()
    expected = np.bincount(both, np.repeat(pressed, 2), N) / np.bincount(both, np.repeat(k, 2), N)
    np.testing.assert_allclose(kernels.compression(x, kernels.fans(edges, N), k, r), expected, rtol=1e-12)


def test_energy_and_force_with_rotations_of_the_vertices(springs: dict[str, np.ndarray]) -> None:
    x, edges, k, r, v, mu = (*(springs[name] for name in ("x", "edges", "k", "r", "vectors")), 0.35)
    turns = np.ascontiguousarray(rotations.matrix(rotations.exp(np.random.default_rng(1).normal(size=(N, 3)))))
    i, j = edges.T
    d = x[i] - x[j]
    length = np.linalg.norm(d, axis=1)
    a, b = (d - np.einsum("qrc,qc->qr", turns[end], v) for end in (i, j))
    energy = 0.5 * np.sum(k * ((length - r) ** 2 + 0.5 * mu * np.sum(a**2 + b**2, axis=1)))
    force = scattered(edges, k[:, None] * ((1 - r / length)[:, None] * d + 0.5 * mu * (a + b)))
    gradient, fans = np.empty((N, 3)), kernels.fans(edges, N)
    found = kernels.corotated_energy_and_gradient(x, fans, edges, k, r, v, mu, turns, gradient)
    assert found == pytest.approx(energy)
    np.testing.assert_allclose(gradient, force, atol=1e-12)


def test_the_best_rotations_are_polar_factors(springs: dict[str, np.ndarray]) -> None:
    edges, k, v = (springs[name] for name in ("edges", "k", "vectors"))
    known = np.random.default_rng(2).normal(size=3)
    x = rotated(np.random.default_rng(3).normal(size=(N, 3)), known)
    i, j = edges.T
    v = rotated(x[i] - x[j], -known) + 0.2 * v
    covariance = np.zeros((N, 3, 3))
    for end in (i, j):
        np.add.at(covariance, end, k[:, None, None] * (x[i] - x[j])[:, :, None] * v[:, None, :])
    turns = np.tile(np.eye(3), (N, 1, 1))
    kernels.fit_rotations(x, kernels.fans(edges, N), edges, k, v, turns)
    np.testing.assert_allclose(turns, rotations.polar(covariance), atol=1e-9)


def test_what_changes_in_the_frame_of_the_base(springs: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(4)
    edges = springs["edges"]
    i, j = edges.T
    base, points = rng.normal(size=(2, N, 3))
    turns = 2 * rng.normal(size=(N + 5, 3))  # some beyond half a turn
    turns[::2] = 0
    frames = rng.integers(0, N + 5, edges.shape)
    turn = 0.5 * (turns[frames[:, 0]] + turns[frames[:, 1]])
    assert np.linalg.norm(turn, axis=1).max() > np.pi
    chosen = np.flatnonzero(rng.random(len(edges)) < 0.7)
    changes = kernels.local_changes(base, points, turns, edges, frames, chosen)
    d = base[i] - base[j]
    expected = rotated(points[i] - points[j], -turn) - d
    np.testing.assert_allclose(changes, expected[chosen], atol=1e-13)
    local = d.copy()
    kernels.add_changes(chosen, changes, -0.4, local)
    expected = d - 0.4 * np.where(np.isin(np.arange(len(edges)), chosen)[:, None], expected, 0)
    np.testing.assert_allclose(local, expected, atol=1e-13)


def test_turning_and_gathering_vectors(springs: dict[str, np.ndarray]) -> None:
    x, edges, k, v = (springs[name] for name in ("x", "edges", "k", "vectors"))
    i, j = edges.T
    turns = np.random.default_rng(5).normal(size=(N, 3))
    turns[::3], turns[1::3] = 0, 1e-8
    np.testing.assert_allclose(kernels.rotated(x, turns, -1.0), rotated(x, -turns), atol=1e-13)
    expected = rotated(v, 0.5 * (turns[i] + turns[j]))
    np.testing.assert_allclose(kernels.rotated_edges(v, turns, edges), expected, atol=1e-13)
    gathered = kernels.divergence(v, k, edges, kernels.fans(edges, N))
    np.testing.assert_allclose(gathered, scattered(edges, k[:, None] * v), atol=1e-12)
    v = np.concatenate([v, np.zeros((1, 3))])
    lengths, directions = kernels.lengths_and_directions(v)
    np.testing.assert_allclose(lengths, np.linalg.norm(v, axis=1))
    np.testing.assert_allclose(directions * lengths[:, None], v, atol=1e-13)


def test_unwrapped_vectors_turn_alike_and_follow_their_parents() -> None:
    """Along a chain that turns on and on, also through whole turns, where a rotation has hardly an axis."""
    angle = np.linspace(0, 40, 2000)
    axis = np.stack([np.cos(0.02 * angle), np.sin(0.02 * angle), np.full_like(angle, 0.1)], axis=1)
    true = angle[:, None] * axis / np.linalg.norm(axis, axis=1, keepdims=True)
    short = rotations.log(rotations.shortest(rotations.exp(true)))
    found = kernels.unwrap(np.arange(len(angle)), np.arange(len(angle)) - 1, short)
    assert np.linalg.norm(np.diff(found, axis=0), axis=1).max() < 0.3
    np.testing.assert_allclose(np.linalg.norm(found[-1]), angle[-1], atol=0.5)
    rolled = rotated(np.array([1.0, 2.0, 3.0]), found)
    np.testing.assert_allclose(rolled, rotated(np.array([1.0, 2.0, 3.0]), true), atol=0.05)


def test_threads_do_not_change_a_result(springs: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    x, edges, k, r, p = (springs[name] for name in ("x", "edges", "k", "r", "p"))
    fans, results = kernels.fans(edges, N), []
    monkeypatch.setattr(kernels, "BLOCK", 7)
    for cores in (1, 2, 5):
        monkeypatch.setattr(native, "CORES", cores)
        gradient = np.empty((N, 3))
        results.append((kernels.energy_and_gradient(x, fans, k, r, p, 0.35, gradient), gradient))
    for energy, gradient in results[1:]:
        assert energy == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])

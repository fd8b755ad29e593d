"""The energies of a caged shape: scaled normals, derivatives, and the kernels against what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import gallery
from pliant.core import rotations
from pliant.engines.transfer import Cage
from pliant.engines.transfer.energies import ROUNDED, Basis, samples, smoothness
from pliant.engines.transfer.rigidity import BULK, Rigidity, cells_and_regions
from pliant.engines.transfer.solver import Quadratic
from pliant.gallery.primitives import box_mesh


@pytest.fixture(scope="module")
def basis() -> Basis:
    return Basis.of(Cage.of(box_mesh(100, np.array([4.4, 1.4, 1.4]), 0.0)), "green")


def jostled(basis: Basis, seed: int = 1, size: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return basis.cage.points + size * rng.normal(size=basis.cage.points.shape)


# Derivatives


@pytest.mark.parametrize("size", [0.1, 0.6])
def test_scaled_normals_are_their_jacobian_times_the_vertices(basis: Basis, size: float) -> None:
    V, corners = jostled(basis, size=size), basis.cage.triangles
    N, J = basis.normals.values(V), basis.normals.jacobian(V)
    np.testing.assert_allclose(np.einsum("txvy,tvy->tx", J, V[corners]), N, atol=1e-12)


def test_the_jacobian_of_the_normals_against_differences(basis: Basis) -> None:
    V, rng, step = jostled(basis, size=0.4), np.random.default_rng(3), 1e-4
    d = rng.normal(size=V.shape)
    at = [basis.normals.values(V + k * step * d) for k in (-2, -1, 1, 2)]
    slope = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step)
    exact = np.einsum("txvy,tvy->tx", basis.normals.jacobian(V), d[basis.cage.triangles])
    x = conformality(basis, V)
    smooth = np.abs(x - ROUNDED) > 0.02  # N has a kink in its second derivative where it begins to shrink
    assert (x < ROUNDED).any()
    assert np.abs(slope - exact)[smooth].max() < 1e-7 * np.abs(exact).max()


def conformality(basis: Basis, V: np.ndarray) -> np.ndarray:
    """(f,) 1 where a triangle is turned and scaled, 0 where it has collapsed."""
    i, j, k = basis.cage.triangles.T
    area = np.linalg.norm(np.cross(V[j] - V[i], V[k] - V[j]), axis=1)
    rest = basis.normals
    a, b, a0, b0 = V[j] - V[i], V[k] - V[j], rest.a0, rest.b0
    s2 = ((a**2).sum(1) * (b0**2).sum(1) - 2 * (a * b).sum(1) * (a0 * b0).sum(1) + (b**2).sum(1) * (a0**2).sum(1)) / (
        2 * rest.double_area**2
    )
    return area / rest.double_area / s2


def test_a_collapsing_triangle_does_not_flip(basis: Basis) -> None:
    """Pushed through itself, a triangle's scaled normal goes through zero instead of jumping."""
    i, j, k = basis.cage.triangles[0]
    V = basis.cage.points.copy()
    middle = (V[i] + V[j]) / 2
    across = V[k] - middle
    tracks = []
    for part in np.linspace(0.01, -0.01, 41):
        V[k] = middle + part * across
        tracks.append(basis.normals.values(V)[0])
    steps = np.linalg.norm(np.diff(tracks, axis=0), axis=1)
    assert steps.max() < 0.05
    assert np.dot(tracks[0], tracks[-1]) < 0


def rigidity(basis: Basis, stretched: bool = True) -> Rigidity:
    """At six points inside, in two regions."""
    rng = np.random.default_rng(9)
    points = basis.cage.points.mean(axis=0) + 0.1 * rng.normal(size=(6, 3))
    S = np.eye(3) + 0.1 * (lambda M: M + np.swapaxes(M, 1, 2))(rng.normal(size=(6, 3, 3))) * stretched
    return Rigidity(basis.rows(points, 1)[1], rng.uniform(1, 2, 6), np.array([0, 1, 0, 1, 1, 0]), S)


def problem(basis: Basis, seed: int = 0) -> Quadratic:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, basis.size))
    lengths = rng.normal(size=(3, basis.size)) / 10
    return Quadratic(
        basis,
        rows.T @ rows,
        rng.normal(size=(basis.size, 3)),
        0.7,
        lengths,
        np.array([1.0, 2, 3]),
        0.3,
        rows,
        np.zeros((basis.size, basis.size)),
        rigidity(basis),
    )


def test_rigidity_is_zero_for_rotations_alone(basis: Basis) -> None:
    """With its square, which is part of A."""
    rigid = rigidity(basis, stretched=False)

    def energy(M: np.ndarray) -> float:
        X = basis.state(basis.cage.points @ M.T)
        F = rigid.rows @ X
        return rigid.energy(X) + float(rigid.weights @ (F**2).sum(axis=(1, 2)))

    R = rotations.matrix(rotations.from_axis_angle([1, 2, -0.5], 2.5))
    assert abs(energy(R)) < 1e-9
    assert energy(1.1 * R) == pytest.approx(rigid.weights.sum() * (3 * 0.1**2 + BULK * (1.1**3 - 1) ** 2))


def test_the_curvature_of_rigidity_is_the_second_derivative(basis: Basis) -> None:
    """Without normals, and where nothing is clamped: |F|²'s part less the rotations', with the volume's."""
    plain = Basis.of(basis.cage, "mean_value")
    rigid = rigidity(plain, stretched=False)
    V, count = 1.05 * plain.cage.points, 3 * len(plain.cage.points)
    H = np.zeros((count, count))
    rigid.add_curvature(H, plain, plain.state(V), plain.normals.jacobian(V))
    H = np.tril(H) + np.tril(H, -1).T
    d, step = np.random.default_rng(3).normal(size=V.shape), 1e-3
    slopes = [(rigid.half_derivative(plain.state(V + k * step * d)) * d).sum() for k in (-1, 1)]
    off = rigid._means(np.linalg.det(rigid.rows @ V)) - 1  # Gauss–Newton leaves out the volume's own curvature
    F, dF = (np.swapaxes(rigid.rows @ x, 1, 2) for x in (V, d))
    second = (
        2
        * np.linalg.det(F)
        * 0.5
        * (
            np.trace(np.linalg.solve(F, dF), axis1=1, axis2=2) ** 2
            - np.trace(np.linalg.solve(F, dF) @ np.linalg.solve(F, dF), axis1=1, axis2=2)
        )
    )
    left_out = BULK * float(rigid.weights @ (off[rigid.regions] * second))
    assert d.ravel() @ H @ d.ravel() + left_out == pytest.approx((slopes[1] - slopes[0]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_cells_are_connected_and_few(size: int) -> None:
    """Two legs side by side in one cube are two cells."""
    legs = np.array([[x, y, 0] for x in (0, 1, 3, 4) for y in range(20)])
    cells, regions = cells_and_regions(legs, count=8 * size)
    assert cells.max() + 1 <= 8 * size
    assert len(regions) == cells.max() + 1
    sides = legs[:, 0] > 2
    assert not set(cells[sides]) & set(cells[~sides])


def test_the_energys_gradient_against_differences(basis: Basis) -> None:
    energy, V, rng, step = problem(basis), jostled(basis, size=0.03), np.random.default_rng(4), 1e-4
    d = rng.normal(size=V.shape)
    at = [energy.energy(basis.state(V + k * step * d)) for k in (-2, -1, 1, 2)]
    slope = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step)
    assert slope == pytest.approx(2 * (energy.half_gradient(V) * d).sum(), rel=1e-7)


def test_a_gauss_newton_step_solves_the_linearised_problem(basis: Basis) -> None:
    """Without normals the energy is quadratic, and one step is the minimum."""
    plain = Basis.of(basis.cage, "mean_value")
    rng = np.random.default_rng(5)
    rows, targets = rng.normal(size=(400, plain.size)), rng.normal(size=(400, 3))
    A, no = rows.T @ rows, np.zeros(0)
    energy = Quadratic(plain, A, rows.T @ targets, 0.0, rows[:0], no, 0.0, rows.T.copy(), A)
    V = basis.cage.points
    expected = np.linalg.lstsq(rows, targets, rcond=None)[0]
    np.testing.assert_allclose(V + energy.step(V, curved=False)[0], expected, atol=1e-6)


def test_the_curved_step_knows_the_second_derivative(basis: Basis) -> None:
    """Along the normals of one triangle pulled inwards, λ·∂²N/∂V² is positive and known to five digits."""
    V, force = jostled(basis, size=0.05), np.zeros((len(basis.cage.triangles), 3))
    force[0] = -basis.normals.values(V)[0]
    K = basis.normals.curvature(V, force)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    k = basis.cage.triangles[0, 2]
    n, step = force[0] / np.linalg.norm(force[0]), 1e-3
    values = []
    for part in (-step, 0, step):
        moved = V.copy()
        moved[k] += part * n
        values.append(basis.normals.values(moved)[0] @ force[0])
    second = (values[0] - 2 * values[1] + values[2]) / step**2
    assert n @ K[0, 3:, 3:] @ n == pytest.approx(second, rel=1e-3)


# Compiled kernels and what they stand for


def derivative_of_state(basis: Basis, V: np.ndarray) -> np.ndarray:
    """(3, c + f, 3 c) G = [1; J] for x, y and z, dense."""
    J, count = basis.normals.jacobian(V), len(V)
    G = np.zeros((3, basis.size, count, 3))
    for x in range(3):
        G[x, np.arange(count), np.arange(count), x] = 1
        for t, corners in enumerate(basis.cage.triangles):
            G[x, count + t, corners] += J[t, x]
    return G.reshape(3, basis.size, -1)


def test_the_gauss_newton_matrix_is_the_dense_product(basis: Basis) -> None:
    from pliant.engines.transfer.solver_kernels import gauss_newton_matrix

    V, A = jostled(basis), problem(basis).A
    G = derivative_of_state(basis, V)
    H = gauss_newton_matrix(A, basis.normals.jacobian(V), basis.cage.triangles, len(V))
    expected = np.einsum("xai,ab,xbj->ij", G, A, G, optimize=True)
    assert np.abs(np.tril(H - expected)).max() < 1e-13 * np.abs(expected).max()


def test_smoothness_is_the_sum_of_squared_hessians(basis: Basis) -> None:
    points, weights, _ = samples(basis.cage, 12)
    C = basis.rows(points, 2)[2] * np.sqrt([1, 1, 1, 2, 2, 2])[:, None] * np.sqrt(weights)[:, None, None]
    expected = np.einsum("nka,nkb->ab", C, C, optimize=True)
    assert np.abs(smoothness(basis, points, weights) - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("n", [1, 63, 64, 200])
def test_definite_systems_are_solved(n: int) -> None:
    from pliant.engines.transfer.solver_kernels import solve_definite

    rng = np.random.default_rng(n)
    M, b = rng.normal(size=(n, n + 3)), rng.normal(size=n)
    A = M @ M.T
    np.testing.assert_allclose(A @ solve_definite(A, b), b, atol=1e-9)
    assert np.isnan(solve_definite(A - 2 * np.trace(A) * np.eye(n), b)).all()


@pytest.mark.parametrize("rows", [0, 1, 4, 11])
def test_dense_products(rows: int) -> None:
    from pliant.engines.transfer.solver_kernels import add_squares, transposed_product

    rng = np.random.default_rng(rows)
    A, X, H = rng.normal(size=(rows, 37)), rng.normal(size=(rows, 3)), rng.normal(size=(37, 37))
    np.testing.assert_allclose(transposed_product(A, X), A.T @ X, atol=1e-13)
    expected = H + 1.7 * A.T @ A
    add_squares(H, A, 1.7)
    np.testing.assert_allclose(np.tril(H), np.tril(expected), atol=1e-12)


def test_curvatures_are_added_over_the_edge_vectors(basis: Basis) -> None:
    from pliant.engines.transfer.solver_kernels import add_curvatures

    triangles, count = basis.cage.triangles, len(basis.cage.points)
    K = np.random.default_rng(0).normal(size=(len(triangles), 6, 6))
    expected = np.zeros((3 * count, 3 * count))
    for block, corners in zip(K, triangles, strict=True):
        edges = np.zeros((2, count))  # a and b of the vertices
        edges[0, corners], edges[1, corners] = [-1, 1, 0], [0, -1, 1]
        D = np.kron(edges, np.eye(3))
        expected += D.T @ block @ D
    H = np.zeros_like(expected)
    add_curvatures(H, K, triangles)
    np.testing.assert_allclose(H, expected, atol=1e-12)


@pytest.mark.parametrize("cores", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_results_do_not_depend_on_the_number_of_threads(
    basis: Basis, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, weights, _ = samples(basis.cage, 40)

    def results(cores: int) -> list[np.ndarray]:
        monkeypatch.setattr("pliant.native.CORES", cores)
        return [*basis.rows(points, 1, allow=True), smoothness(basis, points, weights)]

    for one, many in zip(results(1), results(cores), strict=True):
        np.testing.assert_array_equal(one, many)


def test_smoothness_is_zero_for_similarities_alone(basis: Basis) -> None:
    Q = smoothness(basis, *samples(basis.cage, 12)[:2])

    def energy(points: np.ndarray) -> float:
        X = basis.state(points)
        return float(np.einsum("ij,ij->", X, Q @ X))

    V, R = basis.cage.points, rotations.matrix(rotations.from_axis_angle([1, 2, 3], 2.3))
    bent = gallery.bend(V, 60, length=4.4)
    assert energy(1.3 * V @ R.T + [3, 1, -2]) < 1e-9 * energy(bent)
    assert energy(V * [1.5, 1, 1]) > 1e-3 * energy(bent)


@pytest.mark.parametrize("count", [10, 25])
def test_so_many_samples_lie_along_the_longest_side(count: int) -> None:
    from pliant.engines.transfer.energies import samples
    from pliant.gallery.primitives import box_mesh

    cage = Cage.of(box_mesh(60, np.array([3.0, 1.2, 1.0]), 0.0))
    places = samples(cage, count)[0]
    assert len(np.unique(places[:, 0].round(9))) == count

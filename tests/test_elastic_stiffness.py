"""Materials and the matrices of a body at rest: patch test, beams, masses, and an independent finite-element code."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import InputError, Labels, Mesh, Skeleton
from pliant.core.regions import Sphere
from pliant.core.topology import Floats
from pliant.engines.simulate.consistency import consistent
from pliant.engines.simulate.material import Material
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import Nodes, sample_nodes
from pliant.engines.simulate.quadrature import quadrature
from pliant.engines.simulate.regions import material_at, nearest_joint
from pliant.engines.simulate.stiffness import laplacian, lumped_mass, mass, rest_stiffness
from pliant.numerics.linalg import factorize

FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
LENGTH, FORCE, POISSON = 6.0, 1e-3, 0.3


def bar(length: float = LENGTH) -> Mesh:
    return Mesh(np.array([[x, y, z] for x in (0, length) for y in (0, 1) for z in (0, 1)], dtype=float), FACES)


def discretised(mesh: Mesh, count: int, fixed: Floats) -> tuple[Nodes, Interpolation, Floats]:
    nodes = sample_nodes(mesh, count, fixed=fixed)
    points = quadrature(mesh, nodes)
    return nodes, consistent(mls(points.points, nodes, gradients=True), points, nodes), points.weights


def wall(count: int) -> Floats:
    """Fixed nodes all over the face x = 0."""
    across = np.linspace(0, 1, max(3, round((count / LENGTH) ** (1 / 3)) + 1))
    return np.array([[0, y, z] for y in across for z in across])


def tip_deflection(count: int) -> float:
    """Of a bar of E = 1, clamped at x = 0, pulled down at its other end."""
    nodes, functions, weights = discretised(bar(), count, wall(count))
    stiffness = rest_stiffness(functions, weights, Material(1.0, POISSON, 1.0).lame)
    middle = (np.arange(12) + 0.5) / 12
    end = mls([[LENGTH, y, z] for y in middle for z in middle], nodes).matrix
    force = np.zeros((len(nodes), 3))
    force[:, 2] = -FORCE * np.asarray(end.mean(axis=0)).ravel()
    free = 3 * nodes.free
    moved = np.zeros((len(nodes), 3))
    moved[: nodes.free] = factorize(stiffness[:free, :free]).solve(force.ravel()[:free]).reshape(-1, 3)
    return float(-(end @ moved)[:, 2].mean())


def timoshenko() -> float:
    """Deflection of the same bar by beam theory, with shear."""
    shear, kappa = 1 / (2 * (1 + POISSON)), 10 * (1 + POISSON) / (12 + 11 * POISSON)
    return FORCE * (LENGTH**3 / (3 / 12) + LENGTH / (kappa * shear))


def test_a_cantilever_bends_as_beam_theory_says() -> None:
    assert tip_deflection(1500) == pytest.approx(timoshenko(), rel=0.02)


def test_a_cantilever_bends_as_finite_elements_say() -> None:
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, eye, sym_grad, trace

    grid = skfem.MeshHex.init_tensor(np.linspace(0, LENGTH, 9), *[np.linspace(0, 1, 3)] * 2)
    basis = skfem.Basis(grid, skfem.ElementVector(skfem.ElementHex2()))
    lam, mu = Material(1.0, POISSON, 1.0).lame

    def energy(u, v, _):  # type: ignore[no-untyped-def]
        e = sym_grad(u)
        return ddot(lam * eye(trace(e), 3) + 2 * mu * e, sym_grad(v))

    K = skfem.BilinearForm(energy).assemble(basis)
    end = grid.facets_satisfying(lambda x: x[0] == LENGTH)
    load = skfem.LinearForm(lambda v, _: -FORCE * v[2]).assemble(skfem.FacetBasis(grid, basis.elem, facets=end))
    held = basis.get_dofs(grid.facets_satisfying(lambda x: x[0] == 0))
    moved = skfem.solve(*skfem.condense(K, load, D=held))
    assert tip_deflection(1500) == pytest.approx(-float(load @ moved) / -FORCE, rel=0.02)


@pytest.mark.slow
def test_deflections_converge() -> None:
    errors = [abs(tip_deflection(count) / timoshenko() - 1) for count in (60, 1000, 6000)]
    assert max(errors[1:]) < 0.01
    assert max(errors[1:]) < errors[0] / 5


@pytest.fixture(scope="module")
def block() -> tuple[Nodes, Interpolation, Floats]:
    return discretised(bar(3.0), 500, np.zeros((0, 3)))


def test_rigid_motions_and_linear_fields_cost_what_they_must(block: tuple[Nodes, Interpolation, Floats]) -> None:
    nodes, functions, weights = block
    lam, mu = Material(10.0, 0.4, 1.0).lame
    K = rest_stiffness(functions, weights, (lam, mu))
    assert abs(K - K.T).max() < 1e-10 * abs(K).max()
    spin = np.array([[0, -1, 2], [1, 0, 3], [-2, -3, 0.0]])
    for move in (np.ones((len(nodes), 3)), nodes.points @ spin.T):
        assert np.abs(K @ move.ravel()).max() < 1e-9 * abs(K).max()
    F = np.random.default_rng(2).normal(size=(3, 3))
    strain = (F + F.T) / 2
    energy = 3.0 * (lam / 2 * np.trace(strain) ** 2 + mu * (strain**2).sum())
    u = (nodes.points @ F.T).ravel()
    assert u @ (K @ u) / 2 == pytest.approx(energy, rel=1e-6)


def test_patch(block: tuple[Nodes, Interpolation, Floats]) -> None:
    """A block whose outer nodes are held in a linear field has that field inside."""
    nodes, functions, weights = block
    K = rest_stiffness(functions, weights, Material(1.0, 0.3, 1.0).lame)
    F = 0.1 * np.random.default_rng(4).normal(size=(3, 3))
    u = nodes.points @ F.T
    inner = np.repeat(nodes.depth > nodes.radii, 3)
    assert inner.sum() > 100
    solved = factorize(K[inner][:, inner]).solve(-(K[inner][:, ~inner] @ u.ravel()[~inner]))
    assert np.abs(solved - u.ravel()[inner]).max() < 0.03 * np.abs(u).max()


def test_blocks_match_their_equation(block: tuple[Nodes, Interpolation, Floats]) -> None:
    nodes, functions, weights = block
    rng = np.random.default_rng(8)
    lam, mu = rng.random(len(weights)) + 1, rng.random(len(weights)) + 1
    G = np.stack([functions.derivative(axis).toarray() for axis in range(3)], axis=2)
    few = np.array([3, 50, 51, 200, 333])
    g = G[:, few]
    dots = np.einsum("qia,qja->qij", g, g)
    expected = np.einsum("q,qia,qjb->iajb", weights * lam, g, g) + np.einsum("q,qja,qib->iajb", weights * mu, g, g)
    expected += np.einsum("q,qij,ab->iajb", weights * mu, dots, np.eye(3))
    K = rest_stiffness(functions, weights, (lam, mu)).toarray().reshape(len(nodes), 3, len(nodes), 3)
    assert K[few][:, :, few] == pytest.approx(expected, abs=1e-12)
    L = laplacian(functions, weights).toarray()
    assert L[np.ix_(few, few)] == pytest.approx(np.einsum("q,qij->ij", weights, dots), abs=1e-12)


def test_masses(block: tuple[Nodes, Interpolation, Floats]) -> None:
    nodes, functions, weights = block
    M, m = mass(functions, weights, 1000.0), lumped_mass(functions, weights, 1000.0)
    assert M.sum() == pytest.approx(3000, rel=0.01)
    assert m.sum() == pytest.approx(M.sum(), rel=1e-12)
    assert (m > 0).all()
    assert m @ nodes.points / m.sum() == pytest.approx(np.array([1.5, 0.5, 0.5]), abs=0.02)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"poisson": 0.5}, "below 0.5"),
        ({"poisson": -1.0}, "above -1"),
        ({"young": 0.0}, "young is 0.0; expected a positive number"),
        ({"young": float("nan")}, "young is nan; expected a positive number"),
        ({"density": -3.0}, "density"),
        ({"young": "stiff"}, "expected a positive number"),
    ],
)
def test_absurd_materials_are_refused(values: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Material(**values)


def test_lame_constants() -> None:
    lam, mu = Material(1.0, 0.25, 1.0).lame
    assert (lam, mu) == pytest.approx((0.4, 0.4))


def test_materials_by_region() -> None:
    mesh = bar(4.0)
    groups = {"end": (mesh.points[:, 0] == 4).astype(float)}
    labels = {"objects": Labels(("floor", "rest"), np.array([1, 1, 1, 1, 0, 1]))}
    mesh = Mesh(mesh.points, FACES, vertex_groups=groups, labels=labels)
    bones = Skeleton.from_positions([[0.5, 0.5, 0.5], [2, 0.5, 0.5], [3.5, 0.5, 0.5]], [-1, 0, 1], ["a", "b", "c"])
    soft, hard = Material(1.0, 0.3, 1.0), Material(100.0, 0.3, 7.0)
    places = np.array([[0.5, 0.5, 0.5], [1.0, 0.5, 0.1], [3.0, 0.5, 0.2], [3.98, 0.5, 0.5]])

    def dense(region: object) -> list[bool]:
        found = material_at(places, [(None, soft), (region, hard)], mesh=mesh, skeleton=bones)  # type: ignore[list-item]
        return (found.density == 7).tolist()

    assert dense(Sphere((1, 0.5, 0), 0.3)) == [False, True, False, False]
    assert dense("end") == [False, False, True, True]
    assert dense("b") == [False, False, True, False]
    assert dense("floor")[1:3] == [True, True]
    assert nearest_joint(places, bones).tolist() == [0, 0, 1, 2]
    assert material_at(places, hard).density.tolist() == [7.0] * 4
    with pytest.raises(InputError, match='"edn"; the closest are end'):
        dense("edn")
    with pytest.raises(InputError, match="pairs of a region"):
        material_at(places, [hard])  # type: ignore[list-item]

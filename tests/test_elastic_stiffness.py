"""Materials and the matrices of a body at rest: patch test, beams, masses, and an independent finite-element code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pliant import InputError, Labels, Mesh, Skeleton
from pliant.core.regions import Sphere
from pliant.core.topology import Floats
from pliant.engines.simulate.discretisation import Discretisation, discretise
from pliant.engines.simulate.material import Material
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import Nodes, sample_nodes
from pliant.engines.simulate.regions import material_at, nearest_joint
from pliant.engines.simulate.stiffness import laplacian, lumped_mass, mass, rest_stiffness
from pliant.numerics.linalg import factorize

FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
LENGTH = 6.0


def bar(length: float = LENGTH) -> Mesh:
    return Mesh(np.array([[x, y, z] for x in (0, length) for y in (0, 1) for z in (0, 1)], dtype=float), FACES)


def clamped(mesh: Mesh, count: int, wall: Floats, area: float) -> Discretisation:
    """A body whose flesh is held at points all over a plane face of some area."""
    nodes = sample_nodes(mesh, count, fixed=wall)
    areas = np.full(len(wall), 2 * area / len(wall))  # twice: flesh is on one side of the wall only
    return discretise(mesh, nodes, areas, np.full(len(wall), 1e6))


def patch(corners: Floats, count: int) -> Floats:
    """(count², 3) points spread evenly over the parallelogram or trapezium between four corners."""
    a, b = (x.reshape(-1, 1) for x in np.meshgrid(*[(np.arange(count) + 0.5) / count] * 2))
    return (1 - a) * (1 - b) * corners[0] + a * (1 - b) * corners[1] + a * b * corners[2] + (1 - a) * b * corners[3]


def prism(outline: Floats, thickness: float) -> Mesh:
    """A body over a quadrilateral of the plane of x and y.

    It is fixed between the last corner and the first, and loaded between the other two.
    """
    sides = [np.column_stack([outline, np.full(4, z)]) for z in (-thickness / 2, thickness / 2)]
    faces = [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]
    return Mesh(np.concatenate(sides), faces)


def deflections(outline: Floats, thickness: float, count: int, ratios: Sequence[float]) -> list[float]:
    """Of the loaded side in the mean, by a force of 1 along y spread over it, for E = 1 and several ratios ν."""
    mesh = prism(outline, thickness)
    corners = mesh.points
    spacing = (mesh.volume / count) ** (1 / 3)
    height = float(np.linalg.norm(outline[3] - outline[0]))
    wall = patch(corners[[0, 3, 7, 4]], int(np.ceil(height / (0.7 * spacing))))
    body = clamped(mesh, count, wall, height * thickness)
    load = np.asarray(mls(patch(corners[[1, 2, 6, 5]], 12), body.nodes).matrix.mean(axis=0)).ravel()
    force = np.zeros((body.nodes.free, 3))
    force[:, 1] = load[: body.nodes.free]
    size, found = force.size, []
    for poisson in ratios:
        K = body.operator(*Material(1.0, poisson, 1.0).lame).rest_stiffness()[:size, :size]
        found.append(float(force.ravel() @ factorize(K).solve(force.ravel())))
    return found


def finite_elements(outline: Floats, thickness: float, cells: tuple[int, int, int], poisson: float) -> float:
    """The same by displacements of second and pressures of first order, which do not lock (Taylor and Hood 1973)."""
    skfem = pytest.importorskip("skfem")
    from scipy.sparse import bmat
    from skfem.helpers import ddot, div, sym_grad

    unit = skfem.MeshHex.init_tensor(*(np.linspace(0, 1, n + 1) for n in cells)).to_meshtet()
    x, y, z = unit.p
    shares = np.stack([(1 - x) * (1 - y), x * (1 - y), x * y, (1 - x) * y])
    plane = np.asarray(outline).T @ shares
    mesh = skfem.MeshTet(np.concatenate([plane, thickness * (z[None] - 0.5)]), unit.t)
    element = skfem.ElementVector(skfem.ElementTetP2())
    u, p = skfem.Basis(mesh, element), skfem.Basis(mesh, skfem.ElementTetP1(), intorder=4)
    lam, mu = Material(1.0, poisson, 1.0).lame
    A = skfem.BilinearForm(lambda u, v, _: 2 * mu * ddot(sym_grad(u), sym_grad(v))).assemble(u)
    B = skfem.BilinearForm(lambda u, q, _: div(u) * q).assemble(u, p)
    C = skfem.BilinearForm(lambda p, q, _: p * q / lam).assemble(p)
    end = skfem.FacetBasis(mesh, element, facets=unit.facets_satisfying(lambda x: x[0] == 1))
    load = skfem.LinearForm(lambda v, _: v[1]).assemble(end)
    load = np.concatenate([load / load.sum(), np.zeros(p.N)])
    held = u.get_dofs(unit.facets_satisfying(lambda x: x[0] == 0)).flatten()
    free = np.setdiff1d(np.arange(len(load)), held)
    system = bmat([[A, B.T], [B, -C]]).tocsr()[free][:, free]
    return float(load[free] @ factorize(system, kind="symmetric").solve(load[free]))


BEAM = np.array([[0, -0.5], [LENGTH, -0.5], [LENGTH, 0.5], [0, 0.5]])
COOK = np.array([[0, 0], [48, 44], [48, 60], [0, 44.0]])
RATIOS = (0.3, 0.45, 0.499)


def timoshenko(poisson: float) -> float:
    """Deflection of the beam by beam theory, with shear."""
    shear, kappa = 1 / (2 * (1 + poisson)), 10 * (1 + poisson) / (12 + 11 * poisson)
    return LENGTH**3 / (3 / 12) + LENGTH / (kappa * shear)


def test_a_cantilever_bends_as_beam_theory_and_finite_elements_say() -> None:
    """Whether it is nearly incompressible or not: it does not lock."""
    found = deflections(BEAM, 1.0, 800, RATIOS)
    assert found[0] == pytest.approx(timoshenko(RATIOS[0]), rel=0.02)
    assert found == pytest.approx([finite_elements(BEAM, 1.0, (12, 3, 3), poisson) for poisson in RATIOS], rel=0.03)


@pytest.mark.slow
def test_cooks_membrane_bends_as_finite_elements_say() -> None:
    found = deflections(COOK, 12.0, 800, RATIOS)
    assert found == pytest.approx([finite_elements(COOK, 12.0, (8, 8, 3), poisson) for poisson in RATIOS], rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("outline", "thickness", "cells"), [(BEAM, 1.0, (24, 5, 5)), (COOK, 12.0, (16, 16, 4))])
def test_deflections_converge(outline: Floats, thickness: float, cells: tuple[int, int, int]) -> None:
    ratios = (*RATIOS, 0.4999)
    exact = np.array([finite_elements(outline, thickness, cells, poisson) for poisson in ratios])
    errors = [np.abs(deflections(outline, thickness, count, ratios) / exact - 1).max() for count in (60, 1000, 6000)]
    assert max(errors[1:]) < 0.02
    assert max(errors[1:]) < errors[0] / 5


@pytest.fixture(scope="module")
def free() -> Discretisation:
    """A block that nothing holds."""
    return discretise(bar(3.0), sample_nodes(bar(3.0), 500), np.zeros(0), np.zeros(0))


@pytest.fixture(scope="module")
def block(free: Discretisation) -> tuple[Nodes, Interpolation, Floats]:
    return free.nodes, free.functions, free.weights


@pytest.mark.parametrize("poisson", RATIOS)
def test_rigid_motions_and_linear_fields_cost_what_they_must(free: Discretisation, poisson: float) -> None:
    nodes = free.nodes
    lam, mu = Material(10.0, poisson, 1.0).lame
    K = free.operator(lam, mu).rest_stiffness()
    assert abs(K - K.T).max() < 1e-10 * abs(K).max()
    spin = np.array([[0, -1, 2], [1, 0, 3], [-2, -3, 0.0]])
    for move in (np.ones((len(nodes), 3)), nodes.points @ spin.T):
        assert np.abs(K @ move.ravel()).max() < 1e-9 * abs(K).max()
    F = np.random.default_rng(2).normal(size=(3, 3))
    strain = (F + F.T) / 2
    energy = 3.0 * (lam / 2 * np.trace(strain) ** 2 + mu * (strain**2).sum())
    u = (nodes.points @ F.T).ravel()
    assert u @ (K @ u) / 2 == pytest.approx(energy, rel=1e-6)


@pytest.mark.parametrize("poisson", RATIOS)
def test_patch(free: Discretisation, poisson: float) -> None:
    """A block whose outer nodes are held in the linear field of a constant stress has that field inside."""
    nodes = free.nodes
    K = free.operator(*Material(1.0, poisson, 1.0).lame).rest_stiffness().tocsr()
    stress, spin = 0.1 * np.random.default_rng(4).normal(size=(2, 3, 3))
    stress, spin = stress + stress.T, spin - spin.T
    u = nodes.points @ ((1 + poisson) * stress - poisson * np.trace(stress) * np.eye(3) + spin).T
    inner = np.repeat(nodes.depth > nodes.radii, 3)
    assert inner.sum() > 100
    solved = factorize(K[inner][:, inner]).solve(-(K[inner][:, ~inner] @ u.ravel()[~inner]))
    assert np.abs(solved - u.ravel()[inner]).max() < 0.01 * np.abs(u).max()


def test_only_rigid_motions_are_free_of_energy(free: Discretisation) -> None:
    """Averaging the dilatation leaves no motion that costs nothing, and softens none below those of ν = 0.4."""
    lowest = [
        np.linalg.eigvalsh(free.operator(*Material(1.0, nu, 1.0).lame).rest_stiffness().toarray())[:12]
        for nu in (0.4, 0.499)
    ]
    for values in lowest:
        assert np.abs(values[:6]).max() < 1e-9
        assert values[6] > 1e-3
    assert lowest[1][6:] == pytest.approx(lowest[0][6:], rel=0.2)


def test_the_stiffness_at_rest_is_that_of_forces(free: Discretisation) -> None:
    """Nearly incompressible, where cells share their dilatation."""
    operator = free.operator(*Material(1.0, 0.499, 1.0).lame)
    d = np.random.default_rng(9).normal(size=(len(free.nodes), 3))
    R = np.tile(np.eye(3).ravel(), (len(free.weights), 1))
    change = operator.forces(free.nodes.points + d, R)
    expected = (operator.rest_stiffness() @ d.ravel()).reshape(-1, 3)
    assert change == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())


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
    painted = material_at(places, [(None, soft), ("end", hard)], mesh=mesh, skeleton=bones).density
    assert 1 < painted[2] < painted[3]  # painted weights mix both materials
    assert dense("end") == [False, False, False, True]
    assert dense("b") == [False, False, True, False]
    assert dense("floor")[1:3] == [True, True]
    assert nearest_joint(places, bones).tolist() == [0, 0, 1, 2]
    assert material_at(places, hard).density.tolist() == [7.0] * 4
    with pytest.raises(InputError, match='"edn"; the closest are end'):
        dense("edn")
    with pytest.raises(InputError, match="pairs of a region"):
        material_at(places, [hard])  # type: ignore[list-item]

"""Many points share expansions of a cage's deformation: they agree with rows of their own, near the cage and far."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pliant
from pliant import CageRig, InputError, gallery
from pliant.core import rotations
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.expansion import (
    CELL_REACH,
    DEGREE,
    FEWEST,
    Expansion,
    cells,
    solid_harmonic_slopes,
    solid_harmonics,
)
from pliant.engines.transfer.green import green_rows
from pliant.engines.transfer.target_points import MANY_POINTS, TargetPoints
from pliant.gallery.primitives import box_mesh
from pliant.native import kernels

COUNT = 20_000


@pytest.fixture(scope="module")
def cage() -> Cage:
    return Cage.of(box_mesh(100, np.array([4.4, 1.4, 1.4]), 0.0))


@pytest.fixture(scope="module")
def basis(cage: Cage) -> Basis:
    return Basis.of(cage, "green")


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    """All over the cage's inside, denser near the middle; the last few close to the cage."""
    rng = np.random.default_rng(4)
    dense, even = rng.normal(size=(COUNT, 3)) * 0.1, rng.uniform(-1, 1, (COUNT, 3)) * [2.1, 0.6, 0.6]
    near = rng.uniform(-1, 1, (50, 3)) * [2.1, 0.6, 0] + [0, 0, 0.6999]
    return np.concatenate([dense, even, near])


@pytest.fixture
def target(points: np.ndarray, basis: Basis, monkeypatch: pytest.MonkeyPatch) -> TargetPoints:
    monkeypatch.setattr("pliant.engines.transfer.target_points.MANY_POINTS", COUNT)
    return TargetPoints(points, basis, outside="refuse")


def kinked(cage: Cage, degrees: float = 90) -> np.ndarray:
    """(c, 3) bent, with every vertex moved on its own."""
    moved = np.random.default_rng(1).normal(size=cage.points.shape) * 0.02
    return gallery.bend(cage.points, degrees, length=4.4) + moved


def exact(points: np.ndarray, basis: Basis, cage_points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) and Jacobians (n, 3, 3), in double precision."""
    values, gradients = green_rows(points, basis.cage, order=1, outside="allow")
    X = basis.state(cage_points)
    return values @ X, np.einsum("nds,sx->nxd", gradients, X)


def test_polynomials_are_harmonic_and_their_slopes_their_derivatives() -> None:
    u, step = np.random.default_rng(0).normal(size=(30, 3)), 1e-3
    sides = [[solid_harmonics(u + k * step * axis, DEGREE) for k in (-1, 1)] for axis in np.eye(3)]
    B, lower = solid_harmonics(u, DEGREE), solid_harmonics(u, DEGREE - 1)
    np.testing.assert_allclose(sum(a + b for a, b in sides), 6 * B, atol=1e-12)
    np.testing.assert_array_equal(lower, B[:, : DEGREE**2])
    assert np.linalg.matrix_rank(B) == (DEGREE + 1) ** 2
    for (before, after), slopes in zip(sides, solid_harmonic_slopes(), strict=True):
        np.testing.assert_allclose(lower @ slopes.T, (after - before) / (2 * step), atol=1e-5)


def test_cells_are_within_reach_of_their_centre_and_not_for_a_few(points: np.ndarray, cage: Cage) -> None:
    cell, centres, radii = cells(points, cage)
    some = np.flatnonzero(cell >= 0)
    assert COUNT / 2 < len(some) < len(points)
    assert (cell[-50:] < 0).all()
    assert (np.linalg.norm(points[some] - centres[cell[some]], axis=1) <= radii[cell[some]] * (1 + 1e-12)).all()
    assert (radii <= CELL_REACH * cage.tree.closest(centres).distance).all()
    assert np.bincount(cell[some]).min() >= FEWEST


def test_the_kernel_against_numpy_over_any_spans(points: np.ndarray, basis: Basis) -> None:
    found, rng = Expansion.of(points, basis), np.random.default_rng(6)
    for degree, width, count in ((DEGREE, 4, 3), (DEGREE - 1, 12, 9)):
        terms, out = rng.normal(size=(len(found.radii), (degree + 1) ** 2, width)), np.zeros((len(points), count))
        kernels.cage_expand(found.numbers, found.cell, found.offsets, terms, out, 0, 0, len(found.cell))
        B = solid_harmonics(found.offsets.astype(float), degree)
        wanted = np.einsum("nk,nkd->nd", B, terms[found.cell])[:, :count]
        np.testing.assert_allclose(out[found.numbers], wanted, atol=1e-12)
        assert not out[found.without].any()
        parts = np.zeros_like(out)
        for begin, end in ((777, len(found.cell)), (0, 777)):
            kernels.cage_expand(found.numbers, found.cell, found.offsets, terms, parts, 0, begin, end)
        np.testing.assert_array_equal(parts, out)


def test_similarities_are_reproduced(target: TargetPoints, points: np.ndarray, cage: Cage) -> None:
    A = 1.4 * rotations.matrix(rotations.from_axis_angle([1, -2, 0.5], 2.4))
    moved = (cage.points @ A.T + [100.0, 0, -3])[None]
    np.testing.assert_allclose(next(target.deform(moved)), points @ A.T + [100.0, 0, -3], atol=5e-6 * cage.diagonal)
    assert np.abs(target.jacobians(moved) - A)[0, :-50].max() < 2e-4


def test_points_and_jacobians_agree_with_rows_of_their_own(
    target: TargetPoints, points: np.ndarray, basis: Basis
) -> None:
    bent, cage = kinked(basis.cage), basis.cage
    assert target.expansion is not None
    assert len(target.single)
    assert len(target.expansion.numbers) > COUNT / 2
    x, J = next(target.deform(bent[None])), target.jacobians(bent[None])[0]
    wanted, slopes = exact(points, basis, bent)
    shared = target.expansion.numbers
    assert np.abs(x - wanted).max() < 1e-5 * cage.diagonal
    assert np.abs(J - slopes)[shared].max() < 1e-3
    np.testing.assert_array_equal(target.jacobians(bent[None], target.single)[0], J[target.single])
    again = pickle.loads(pickle.dumps(target))
    np.testing.assert_array_equal(next(again.deform(bent[None])), x)
    several = np.stack([cage.points, bent])
    np.testing.assert_array_equal(list(target.deform(several))[1], x)
    np.testing.assert_array_equal(target.jacobians(several)[1], J)


def test_errors_fall_with_the_degree_as_reach_does(basis: Basis, monkeypatch: pytest.MonkeyPatch) -> None:
    bent, rng = kinked(basis.cage), np.random.default_rng(3)
    errors = []
    for reach in (0.6, 0.3):
        monkeypatch.setattr("pliant.engines.transfer.expansion.CELL_REACH", reach)
        u = rng.normal(size=(400, 3))
        ball = [0.8, 0.1, 0.2] + reach * 0.49 * u / np.linalg.norm(u, axis=1)[:, None]
        found = Expansion.of(ball, basis)
        assert len(found.radii) == 1
        centre = bent.mean(axis=0)
        terms = next(found.terms(found.rows.states((bent - centre)[None])))
        x, J = np.zeros((400, 3)), np.zeros((400, 3, 3))
        found.fill(terms, centre, x)
        found.fill_jacobians(found.slopes(terms), J, 0)
        wanted, slopes = exact(ball, basis, bent)
        errors.append((np.abs(x - wanted).max(), np.abs(J - slopes).max()))
    (x0, J0), (x1, J1) = errors
    assert x1 < x0 / 2 ** (DEGREE + 0.5)
    assert J1 < J0 / 2 ** (DEGREE - 0.5)


def test_points_outside_are_named_or_continued_as_before(
    points: np.ndarray, basis: Basis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.engines.transfer.target_points.MANY_POINTS", COUNT)
    stray = np.concatenate([points[:-3], [[0, 0, 0.75]], points[-3:]])
    k = len(stray) - 4
    with pytest.raises(InputError, match=rf"1 of {len(stray)} points of the target lies .*: {k} at \(0, 0, 0.75\)"):
        TargetPoints(stray, basis, outside="refuse")
    found, bent = TargetPoints(stray, basis, outside="allow"), kinked(basis.cage)[None]
    wanted = exact(stray[k:], basis, bent[0])[0]
    assert np.abs(next(found.deform(bent))[k:] - wanted).max() < 1e-6 * basis.cage.diagonal


def test_small_targets_have_none(points: np.ndarray, cage: Cage) -> None:
    many = np.resize(points, (MANY_POINTS, 3))
    small = TargetPoints(many[1:], Basis.of(cage, "green"), outside="refuse")
    assert small.expansion is None
    np.testing.assert_array_equal(small.frame(kinked(cage))[0], next(small.deform(kinked(cage)[None])))
    assert not small._buffers._free, "no memory is kept for the next frame"
    rig = CageRig(many, cage, lattice=12)
    assert rig._target_points.expansion is not None
    assert rig.with_controls(positions=[0])._target_points is rig._target_points


@pytest.mark.slow
def test_a_gait_agrees_with_rows_of_their_own() -> None:
    """The gallery's gait on 400,000 points of an animal, in built cages of about 150 vertices."""
    gait, small, body = gallery.animal_gait(2000), gallery.animal(3000).base, gallery.animal(100_000).base
    points = np.concatenate([body.points + shift * body.diagonal for shift in (0, 3e-4, -3e-4, 6e-4)])
    for margin in (0.016, 0.05):
        cage = pliant.build_cage(body, faces=300, margin=margin)
        moved = pliant.transfer(gait, small, cage, "auto", frames=4, lattice=24, outside="allow")
        basis = Basis.of(moved.rig.cage, "green")
        target = TargetPoints(points, basis, outside="refuse")
        assert target.expansion is not None
        cages = basis.cage.taken(moved.cage.points)
        shared = target.expansion.numbers[::10]
        assert len(shared)
        for x, J, bent in zip(target.deform(cages), target.jacobians(cages), cages, strict=True):
            wanted, slopes = exact(points[shared], basis, bent)
            assert np.abs(x[shared] - wanted).max() < 1e-5 * cage.diagonal
            assert np.abs(J[shared] - slopes).max() < 1e-3

"""Skin that slides: it is free along the surface, keeps its distance, and is what finite elements say."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from pliant import ElasticBody, Material, Mesh, Skeleton
from pliant.core.errors import InputError
from pliant.engines.simulate import anchors
from pliant.engines.simulate.bone_samples import BoneSamples
from pliant.engines.simulate.bones import Bones
from pliant.engines.simulate.nodes import SUPPORT_FACTOR
from pliant.engines.simulate.options import StaticOptions
from pliant.engines.simulate.sliding import SLIDING, SLIDING_LAYER
from pliant.engines.simulate.statics import balanced

FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
SIDE, HEIGHT, SKIN = 3.0, 1.0, 0.3
BONE = Skeleton.from_positions([[0.5, 0.1, 1.5], [2.5, 0.1, 1.5]], [-1, 0])
YOUNG, NU = 1e5, 0.3


def floor(bones: Bones, tree: object, spacing: float) -> BoneSamples:
    """Samples of a single bone all over the face y = 0: a clamp."""
    side = SIDE * (np.arange(14) + 0.5) / 14
    points = np.array([[x, 0, z] for x in side for z in side])
    none = np.zeros(len(points))
    bone, joint, plane = none.astype(np.int64), np.full(len(points), -1), none + 1e6
    areas = none + 10 * SIDE**2 / len(points)
    return BoneSamples(bones, points, bone, none, points - bones.heads[0], joint, areas, plane)


def slab() -> Mesh:
    """A flat block."""
    corners = [[x, y, z] for x in (0, SIDE) for y in (0, HEIGHT) for z in (0, SIDE)]
    return Mesh(np.array(corners, dtype=float), FACES)


@pytest.fixture(scope="module")
def blocks() -> dict[bool, ElasticBody]:
    """A clamped block, with a skin that sticks and with one that slides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "sample_bones", floor)
        stuck = ElasticBody(slab(), BONE, material=Material(YOUNG, NU), nodes=1500)
        return {False: stuck, True: stuck.with_material(Material(YOUNG, NU, sliding=SKIN))}


def displaced(body: ElasticBody, acceleration: list[float]) -> float:
    """How far the middle of the upper face moves along a pull on the skin alone."""
    frames = body.frames_of(body.skeleton.rest_pose())
    posed, start = body.posed(frames, 0), body.carried(frames, 0)
    skin = body.nodes.points[: body.nodes.free, 1] > HEIGHT - SKIN / 2
    load = body.mass[: body.nodes.free, None] * skin[:, None] * np.array(acceleration)
    pull = partial(body.fibres().contraction, 0.0, frames.joints[0], posed.R)
    found = balanced(posed, start, load, pull, body.leash, body.static, body.limits("none"), StaticOptions(1e-6, 2000))
    assert found.converged
    moved, at = found.x - start, body.quadrature.points
    top = (at[:, 1] > 0.9 * HEIGHT) & (np.abs(at[:, [0, 2]] - SIDE / 2) < SIDE / 6).all(axis=1)
    force = load.sum(axis=0) @ acceleration
    return float(((body.operator.inner.functions.matrix @ moved)[top] @ acceleration).mean()) / float(force)


def by_finite_elements(slides: bool, acceleration: list[float], half: float) -> float:
    """The same by hexahedra of second order, with the same layer."""
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, dot, sym_grad, trace

    lam, mu = Material(YOUNG, NU).lame
    x, y = np.linspace(0, SIDE, 7), np.linspace(0, HEIGHT, 9)
    mesh = skfem.MeshHex.init_tensor(x, y, x)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementHex2()), intorder=4)

    @skfem.BilinearForm
    def stiffness(u, v, w):  # type: ignore[no-untyped-def]
        walls = np.stack([w.x[0], SIDE - w.x[0], w.x[1], HEIGHT - w.x[1], w.x[2], SIDE - w.x[2]])
        nearest, depth = walls.argmin(axis=0) // 2, walls.min(axis=0)
        n = np.stack([(nearest == axis).astype(float) for axis in range(3)])
        loose = SLIDING * slides * (np.abs(depth - SKIN) <= half)
        parts = []
        for strain in (sym_grad(u), sym_grad(v)):
            along = np.einsum("ij...,j...->i...", strain, n)
            parts.append(along - dot(along, n) * n)
        own = lam * trace(sym_grad(u)) * trace(sym_grad(v)) + 2 * mu * ddot(sym_grad(u), sym_grad(v))
        return own - 4 * mu * loose * dot(*parts)

    @skfem.LinearForm
    def load(v, w):  # type: ignore[no-untyped-def]
        return (w.x[1] > HEIGHT - SKIN / 2) * sum(a * part for a, part in zip(acceleration, v, strict=True))

    K, f = stiffness.assemble(basis), load.assemble(basis)
    held = basis.get_dofs(lambda x: x[1] < 1e-9).all()
    u = skfem.solve(*skfem.condense(K, f, D=held))
    axis = int(np.argmax(np.abs(acceleration)))
    at = basis.doflocs
    top = (at[1] > 0.9 * HEIGHT) & (np.abs(at[0] - SIDE / 2) < SIDE / 6) & (np.abs(at[2] - SIDE / 2) < SIDE / 6)
    own = np.flatnonzero(np.isin(np.arange(len(u)), _component(basis, axis)) & top)
    return float(u[own].mean()) * acceleration[axis] / float(f[_component(basis, axis)].sum() * acceleration[axis])


def _component(basis, axis: int):  # type: ignore[no-untyped-def]
    """Degrees of freedom of a component of a vector field."""
    return np.concatenate([basis.get_dofs(elements=True).all(f"u^{axis + 1}")])


def test_a_layer_has_no_stress_of_shear_along_it_and_all_other(blocks):
    """Energies of fields that are linear in space, in the layer below the upper face alone."""
    stuck, slides = (blocks[key].operator for key in (False, True))
    at, q = blocks[True].nodes.points, len(stuck.weights)
    level = (slides.sliding > 0) & (np.abs(slides.normals[:, 1]) > 0.999)
    assert level.sum() > 100
    same = np.tile(np.eye(3).ravel(), (len(stuck.mu), 1))

    def energies(direction: int, along: int) -> list[float]:
        moved = at.copy()
        moved[:, direction] += 0.01 * at[:, along]
        strain = stuck.strains(moved, same)[0] * level[:, None]
        return [operator.energy(strain) for operator in (slides, stuck)]

    for direction, along in ((0, 1), (2, 1), (1, 0)):
        loose, whole = energies(direction, along)
        assert loose == pytest.approx((1 - SLIDING) * whole, rel=1e-6)
    for direction, along in ((0, 0), (1, 1), (2, 2), (0, 2)):
        loose, whole = energies(direction, along)
        assert loose == pytest.approx(whole, rel=1e-9)
    assert level[q:].sum() == 0


def test_forces_stiffness_and_energy_agree(blocks):
    operator, nodes = blocks[True].operator, blocks[True].nodes
    rng = np.random.default_rng(0)
    d = rng.standard_normal((len(nodes), 3))
    d[nodes.free :] = 0
    same, X = np.tile(np.eye(3).ravel(), (len(operator.mu), 1)), nodes.points
    force = operator.forces(X + d, same) - operator.forces(X, same)
    product = (operator.rest_stiffness() @ d.ravel()).reshape(-1, 3)[: nodes.free]
    np.testing.assert_allclose(force, product, atol=1e-12 * np.abs(product).max())
    energy = operator.energy(operator.strains(X + d, same)[0])
    assert 2 * energy == pytest.approx(float(np.sum(force * d[: nodes.free])), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("pull", [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
def test_a_block_gives_way_as_finite_elements_say(blocks, pull):
    """A skin that wraps a clamped block slides over its upper face several times as far, and is pressed as little."""
    half = 0.5 * SLIDING_LAYER * float(np.median(blocks[True].nodes.radii)) / SUPPORT_FACTOR
    ratio = displaced(blocks[True], pull) / displaced(blocks[False], pull)
    exact = by_finite_elements(True, pull, half) / by_finite_elements(False, pull, half)
    assert ratio == pytest.approx(exact, rel=0.15)
    assert ratio > 10 if pull[0] else ratio < 1.3


def test_skin_that_is_not_there_changes_nothing(blocks):
    body = blocks[False].with_material(Material(YOUNG, NU, sliding=0.0))
    assert len(body.operator.sliding) == 0
    with pytest.raises(InputError, match="sliding"):
        Material(sliding=-1.0)


def test_eigenmodes_have_no_skin_that_slides(blocks):
    with pytest.raises(InputError, match="a skin that slides does not act on eigenmodes"):
        blocks[True].reduced(10)

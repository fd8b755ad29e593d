"""Muscles: fibres that shorten and bulge, checked against finite elements, and how they are written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import ElasticBody, Flexion, InputError, Material, Motion, Muscle, Simulation, Skeleton, gallery, rotations
from pliant.app.scene import read_scene
from pliant.core.clips import WeightClip
from pliant.core.regions import Sphere
from pliant.core.topology import Floats
from pliant.engines.simulate.bone_samples import BONE_RADIUS
from pliant.engines.simulate.diffusion import RotationWeights
from pliant.engines.simulate.discretisation import discretise
from pliant.engines.simulate.dynamics import BodyState
from pliant.engines.simulate.fibres import find_fibres
from pliant.engines.simulate.mls import mls
from pliant.engines.simulate.nodes import sample_nodes
from pliant.engines.simulate.regions import material_at
from pliant.numerics.linalg import factorize
from test_elastic_attachment import section
from test_elastic_stiffness import bar, clamped, patch

LENGTH, TENSION = 4.0, 0.02
BONE = replace(Skeleton.from_positions([[0.3, 0, 0], [0.8, 0, 0]], [-1, 0], ["a", "b"]), ends={1: (1e-9, 0, 0)})
ARM = replace(
    Skeleton.from_positions([[0.6, 0, 0], [2.6, 0, 0]], [-1, 0], ["upper", "fore"]), ends={1: (1.8, 0.0, 0.0)}
)
BICEPS = Muscle(Sphere((1.3, 0.3, 0), 0.7), Flexion("fore"), [[0.2, 0.1, 0], [2.2, 0.2, 0]], 1500.0, "biceps")


def arm_box(vertices: int = 1000) -> pliant.Mesh:
    return gallery.box(vertices, (5.0, 1, 1), (2.5, 0, 0))


@pytest.fixture(scope="module")
def arm() -> ElasticBody:
    return ElasticBody(arm_box(), ARM, material=Material(1000.0, 0.45, 1.0), nodes=400)


def free_bar(poisson: float, nodes: int = 400) -> ElasticBody:
    """Held at one end, E = 1."""
    shape = gallery.box(800, (LENGTH, 1, 1), (LENGTH / 2, 0, 0))
    return ElasticBody(shape, BONE, material=Material(1.0, poisson, 1.0), nodes=nodes)


def flexed(degrees: float) -> pliant.SkeletonPose:
    half = np.radians(degrees) / 2
    return ARM.pose({"fore": [np.cos(half), 0, 0, np.sin(half)]})


def flexing(degrees: float, frames: int = 7, fps: float = 30.0) -> Motion:
    poses = [flexed(share * degrees) for share in np.linspace(0, 1, frames)]
    return Motion(ARM, np.stack([p.rotations for p in poses]), np.stack([p.translations for p in poses]), fps)


# What comes of it


def contracted_bar(poisson: float) -> tuple[float, float]:
    """How far the free end of a clamped bar goes back, and by how much its middle half widens, in the mean; E = 1."""
    mesh, material = bar(LENGTH), Material(1.0, poisson, 1.0)
    wall = patch(np.array([[0, y, z] for y, z in ((0, 0), (1, 0), (1, 1), (0, 1))], dtype=float), 7)
    body = clamped(mesh, 500, wall, 1.0)
    operator, points = body.operator(*material.lame), body.quadrature.points
    fibres = find_fibres(
        [Muscle(None, 1.0, (1, 0, 0), TENSION)], operator, points, material_at(points, material), mesh=mesh,
        skeleton=BONE,
    )  # fmt: skip
    R = np.tile(np.eye(3).ravel(), (len(body.weights), 1))
    load = fibres.contraction(0.0, BONE.rest_rotations, R, body.nodes.points).load
    assert isinstance(load, np.ndarray)
    size, u = load.size, np.zeros((len(body.nodes), 3))
    u[: body.nodes.free] = factorize(operator.rest_stiffness()[:size, :size]).solve(load.ravel()).reshape(-1, 3)

    def mean(*corners: tuple[float, float, float]) -> Floats:
        return np.asarray(mls(patch(np.array(corners), 8), body.nodes).matrix @ u).mean(axis=0)

    back = mean((LENGTH, 0, 0), (LENGTH, 1, 0), (LENGTH, 1, 1), (LENGTH, 0, 1))[0]
    low, high = (mean((1, y, 0), (3, y, 0), (3, y, 1), (1, y, 1))[1] for y in (0, 1))
    return -float(back), float(high - low)


def finite_bar(poisson: float) -> tuple[float, float]:
    """The same by finite elements of second order."""
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, eye, sym_grad, trace

    unit = skfem.MeshHex.init_tensor(np.linspace(0, LENGTH, 9), *[np.linspace(0, 1, 5)] * 2).to_meshtet()
    basis = skfem.Basis(unit, skfem.ElementVector(skfem.ElementTetP2()), intorder=2)
    lam, mu = Material(1.0, poisson, 1.0).lame
    K = skfem.BilinearForm(
        lambda u, v, _: ddot(lam * eye(trace(sym_grad(u)), 3) + 2 * mu * sym_grad(u), sym_grad(v))
    ).assemble(basis)
    load = skfem.LinearForm(lambda v, _: -TENSION * v.grad[0, 0]).assemble(basis)
    free = np.flatnonzero(basis.doflocs[0] > 1e-9)
    u = np.zeros(basis.N)
    u[free] = factorize(K[free][:, free], check=False).solve(load[free])

    def mean(component: int, inside: Callable[[Floats], Any]) -> float:
        part = skfem.FacetBasis(unit, basis.elem, facets=unit.facets_satisfying(inside))
        form = skfem.LinearForm(lambda v, _: v[component]).assemble(part)
        return float(form @ u) / float(part.dx.sum())

    sides = [mean(1, lambda x, y=y: (x[1] == y) & (np.abs(x[0] - 2) < 1)) for y in (0, 1)]
    return -mean(0, lambda x: x[0] == LENGTH), sides[1] - sides[0]


@pytest.mark.parametrize("poisson", [0.3, 0.45])
def test_a_clamped_bar_shortens_and_bulges_as_finite_elements_with_the_same_active_stress(poisson: float) -> None:
    found = contracted_bar(poisson)
    assert found == pytest.approx(finite_bar(poisson), rel=0.015)
    assert found[0] == pytest.approx(LENGTH * TENSION, rel=0.1)  # s = T / E, but for the clamp
    assert found[1] == pytest.approx(poisson * TENSION, rel=0.05)


def finite_elbow(body: ElasticBody, muscle: Muscle, pose: pliant.SkeletonPose, poisson: float, cells: int) -> Floats:
    """(vertices, 3) by which a muscle displaces flesh whose Hooke's law is warped by the body's own rotations.

    Tetrahedra of second order; the cores of the bones and the ball at the joint are held.
    """
    skfem = pytest.importorskip("skfem")
    from scipy.sparse import coo_matrix, diags, kron

    samples, length, elbow = body.samples, 5.0, ARM.rest_world[0][1, 0]
    on_bones = [samples.points[(samples.bone == b) & (samples.joint < 0), 0] for b in range(2)]
    spans = [(float(x.min()), float(x.max())) for x in on_bones]
    points, quads, core = section(("square", length, 0.5, (0, 1), poisson), cells)
    ball = BONE_RADIUS * 0.5
    marks = np.unique(np.round([0, length, elbow - ball, elbow + ball, *np.ravel(spans)], 9))
    parts = [np.linspace(a, b, 1 + int(np.ceil((b - a) / 0.3)))[:-1] for a, b in pairwise(marks)]
    along = np.concatenate([*parts, [length]])
    places = np.concatenate([np.column_stack([np.full(len(points), at), points]) for at in along])
    below = np.concatenate([quads + k * len(points) for k in range(len(along) - 1)])
    (a, b, c, d), (e, f, g, h) = below.T, (below + len(points)).T
    mesh = skfem.MeshHex(np.ascontiguousarray(places.T), np.stack([a, e, d, b, h, f, c, g])).to_meshtet()
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTetP2()), intorder=3)
    at = basis.global_coordinates().value
    P, shape = at.reshape(3, -1).T, at.shape[1:]
    weights = body.node_weights
    table = np.zeros((len(body.nodes), len(body.bones)))
    table[np.repeat(np.arange(len(table)), np.diff(weights.start)), weights.bone] = weights.weight
    turned = RotationWeights.of(mls(P, body.nodes).matrix @ table).matrices(body.frames_of(pose).quaternions[0])
    R = turned.reshape(-1, 3, 3)
    fibre = sum(
        v / np.linalg.norm(v, axis=1, keepdims=True) ** 3 for v in (P - muscle.direction[0], muscle.direction[1] - P)
    )
    fibre /= np.linalg.norm(fibre, axis=1, keepdims=True)
    region, tension = muscle.region, muscle.tension
    assert isinstance(region, Sphere)
    assert tension is not None
    taper = np.maximum(0, 1 - np.square(P - region.centre).sum(axis=1) / region.radius**2)
    pairs = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
    stress = np.stack([tension * taper * fibre[:, i] * fibre[:, j] * (1 + (i != j)) for i, j in pairs], axis=1)
    rows, entries = 6 * np.arange(len(P)).reshape(shape), []
    for k in range(basis.Nbfun):
        grad = np.asarray(basis.basis[k][0].grad).reshape(3, 3, -1)
        S = np.einsum("qki,kjq->ijq", R, grad)
        for c, (i, j) in enumerate(pairs):
            nodes = np.repeat(basis.element_dofs[k], shape[1])
            entries.append(((rows + c).ravel(), nodes, (S[i, j] + S[j, i]) / 2))
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    B = coo_matrix((value, (row, column)), shape=(6 * len(P), basis.N)).tocsr()
    (lam, mu), dx = Material(1.0, poisson, 1.0).lame, basis.dx.ravel()
    C = np.diag([2, 2, 2, 4, 4, 4.0]) * mu
    C[:3, :3] += lam
    K, load = (B.T @ (kron(diags(dx), C) @ B)).tocsr(), -(B.T @ (stress * dx[:, None]).ravel())
    x, away = basis.doflocs[0], np.hypot(*basis.doflocs[1:])
    radius = 1.001 * np.hypot(*points[core].T).max()
    inside = np.any([(x > a - 1e-9) & (x < b + 1e-9) for a, b in spans], axis=0) & (away < radius)
    free = np.flatnonzero(~(inside | (np.hypot(away, x - elbow) < radius)))
    u = np.zeros(basis.N)
    u[free] = factorize(K[free][:, free], check=False).solve(load[free])
    low, high = np.array([[0, -0.5, -0.5], [5.0, 0.5, 0.5]])
    probed = basis.probes(np.clip(body.shape.points, low + 1e-9, high - 1e-9).T) @ u
    return np.asarray(probed.reshape(3, -1).T)


@pytest.mark.slow
@pytest.mark.parametrize(("poisson", "degrees"), [(0.3, 60.0), (0.4, 60.0), (0.3, 0.0)])
def test_a_biceps_at_a_flexed_elbow_moves_flesh_as_finite_elements_say(poisson: float, degrees: float) -> None:
    body = ElasticBody(arm_box(2000), ARM, material=Material(1.0, poisson, 1.0), nodes=1500)
    muscle, solving = replace(BICEPS, activation=1.0, tension=TENSION), {"accuracy": 1e-7, "stretch_limit": "none"}
    pose = flexed(degrees)
    found = body.pose(pose, muscles=[muscle], **solving).points - body.pose(pose, **solving).points
    expected = finite_elbow(body, muscle, pose, poisson, 4)
    assert np.linalg.norm(found - expected) < 0.07 * np.linalg.norm(expected)


@pytest.mark.parametrize(("poisson", "lost"), [(0.4, 0.06), (0.49, 0.01)])
def test_free_fibres_shorten_by_tension_over_young_and_keep_their_volume(poisson: float, lost: float) -> None:
    """As well as Poisson's ratio says; the end that the bone holds shortens less."""
    body = free_bar(poisson)
    found = body.pose(BONE.rest_pose(), muscles=[Muscle(None, 1.0, (1, 0, 0), 0.3)])
    assert found.converged
    assert found.shortening == pytest.approx([0.3], rel=0.05)
    assert 1 - lost < found.volume < 1.005
    assert np.ptp(found.points[:, 1]) == pytest.approx(1.2, abs=0.05)


@pytest.mark.parametrize("tension", [1.0, 2.0])
def test_fibres_that_would_shrink_to_nothing_invert_nothing(tension: float) -> None:
    found = free_bar(0.45, 200).pose(BONE.rest_pose(), muscles=[Muscle(None, 1.0, (1, 0, 0), tension)])
    assert found.inverted == 0
    assert np.isfinite(found.points).all()


def test_a_muscle_at_rest_changes_nothing(arm: ElasticBody) -> None:
    asleep, motion = replace(BICEPS, activation=0.0), flexing(60, 4)
    assert np.array_equal(arm.pose(flexed(70), muscles=[asleep]).points, arm.pose(flexed(70)).points)
    moved, alone = arm.simulate(motion, muscles=[asleep]), arm.simulate(motion)
    assert np.array_equal(moved.points, alone.points)
    assert [state.activation.tolist() for state in moved.states] == [[0.0]] * 4


def test_it_shortens_and_bulges_as_the_elbow_flexes(arm: ElasticBody) -> None:
    belly = np.linalg.norm(arm.shape.points - [1.3, 0.5, 0], axis=1) < 0.4
    bulges, shortenings = [], []
    for degrees in (0, 45, 90):
        alone, acting = arm.pose(flexed(degrees)), arm.pose(flexed(degrees), muscles=[BICEPS])
        assert acting.converged
        assert acting.activation == pytest.approx([degrees / 90])
        assert acting.volume == pytest.approx(1.0, abs=0.01)
        bulges.append((acting.points - alone.points)[belly, 1].mean())
        shortenings.append(acting.shortening[0])
    assert bulges[0] == pytest.approx(0, abs=1e-9)
    assert 0.02 < bulges[1] < bulges[2]
    assert shortenings[0] < 1e-9 < 0.05 < shortenings[1] < shortenings[2]


def test_a_rotated_body_contracts_alike(arm: ElasticBody) -> None:
    """By its bones, and made anew of rotated shape, skeleton and fibres."""
    q = rotations.normalize([0.8, 0.3, -0.4, 0.2])
    found = arm.pose(flexed(60), muscles=[BICEPS], accuracy=1e-6).points
    pose = flexed(60)
    rooted = pose.rotations.copy()
    rooted[0] = rotations.multiply(q, rooted[0])
    turned = arm.pose(pliant.SkeletonPose(ARM, rooted, pose.translations), muscles=[BICEPS], accuracy=1e-6).points
    pivot = ARM.rest_world[0][0]
    assert turned == pytest.approx(rotations.rotate(q, found - pivot) + pivot, abs=1e-5)


def test_the_forces_of_fibres_sum_to_nothing() -> None:
    mesh, material = bar(3.0), Material(1.0, 0.49, 1.0)
    body = discretise(mesh, sample_nodes(mesh, 300), np.zeros(0), np.zeros(0))
    points, operator = body.quadrature.points, body.operator(*material.lame)
    muscles = [Muscle(Sphere((1.2, 0.4, 0.5), 0.8), 0.7, (1, 2, -1), 0.5), Muscle(None, 0.4, (0, 0, 1), 0.3)]
    fibres = find_fibres(muscles, operator, points, material_at(points, material), mesh=mesh, skeleton=BONE)
    q = rotations.matrix(rotations.normalize([0.5, 0.1, 0.7, 0.2]))
    x = body.nodes.points @ q.T
    load = fibres.contraction(0.0, BONE.rest_rotations, np.tile(q.ravel(), (len(points), 1)), x).load
    assert isinstance(load, np.ndarray)
    assert load.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    assert np.cross(x, load).sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)  # σ_a is symmetric
    assert np.abs(load).max() > 1e-3


def test_fibres_run_along_bones_longest_axes_or_from_point_to_point() -> None:
    body = free_bar(0.3, 200)

    def ahead(direction: Any) -> Floats:
        return body.fibres([Muscle(None, 1.0, direction)]).direction

    for direction in (None, "a", (3, 0, 0)):
        assert np.abs(ahead(direction)) == pytest.approx(np.tile([1, 0, 0], (len(body.quadrature), 1)), abs=0.05)
    field, points = ahead([[0, 0, 0], [4, 0, 0]]), body.quadrature.points
    assert np.linalg.norm(field, axis=1) == pytest.approx(np.ones(len(field)))
    first, second = points[:, 0] < 1, points[:, 0] > 3
    across = np.einsum("pi,pi->p", field[:, 1:], points[:, 1:])
    assert (across[first] > 0).all()
    assert (across[second] < 0).all()


# Over time


def bar_motion(seconds: float = 0.4, fps: float = 10.0) -> Motion:
    frames, rest = 1 + round(seconds * fps), BONE.rest_pose()
    return Motion(BONE, np.stack([rest.rotations] * frames), np.stack([rest.translations] * frames), fps)


def test_steps_stay_of_second_order() -> None:
    body = free_bar(0.4, 150).with_material(Material(100.0, 0.4, 1.0))
    muscle = Muscle(None, lambda t: 0.5 * (1 - np.cos(10 * t)), (1, 0, 0), 30.0)

    def end(dt: float) -> Floats:
        return body.simulate(bar_motion(0.2), muscles=[muscle], dt=dt, accuracy=1e-6, damping=0.002).points[-1]

    best = end(1 / 960)
    coarse, fine = (np.abs(end(dt) - best).max() for dt in (1 / 120, 1 / 240))
    assert coarse / fine > 2**1.8
    assert coarse < 1e-3


def test_a_simulation_goes_on_exactly(arm: ElasticBody) -> None:
    motion, how = flexing(70), {"muscles": [BICEPS], "dt": 1 / 60}
    whole = arm.simulate(motion, **how)
    saved = BodyState.from_arrays({name: np.asarray(value) for name, value in whole.states[3].to_arrays().items()})
    rest = arm.simulate(motion, resume=saved, **how)
    assert np.array_equal(rest.points, whole.points[3:])
    assert saved.activation == pytest.approx([35 / 90])
    assert whole.converged


ACTIVATIONS: dict[str, Callable[[], Any]] = {
    "number": lambda: 0.5,
    "frames": lambda: np.linspace(0, 1, 5),
    "keys": lambda: [[0.0, 0.0], [0.4, 1.0]],
    "function": lambda: lambda t: min(max(t / 0.4, 0), 1),
    "table": lambda: WeightClip(("x", "m"), np.stack([np.zeros(5), np.linspace(0, 1, 5)], axis=1)),
    "table with a rate": lambda: WeightClip(("m",), np.linspace(0, 1, 9)[:, None], 20.0),
}


@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=list(ACTIVATIONS))
def test_activations(activation: Callable[[], Any]) -> None:
    body = free_bar(0.4, 150)
    muscle = Muscle(None, activation(), (1, 0, 0), 0.1, "m")
    clip: Simulation = body.simulate(bar_motion(), muscles=[muscle], dt=0.1, hold=0.1, pre_roll=0.2)
    found = np.array([state.activation[0] for state in clip.states])
    ramp = [0, 0.25, 0.5, 0.75, 1, 1]
    assert found == pytest.approx([0.5] * 6 if isinstance(activation(), float) else ramp)


def test_flexion_follows_the_whole_rotation() -> None:
    for degrees, angles, expected in (
        (30, (0, 90), 1 / 3),
        (30, (20, 120), 0.1),
        (10, (20, 40), 0),
        (60, (90, 0), 1 / 3),
    ):
        assert Flexion("fore", angles).at(ARM, flexed(degrees).rotations) == pytest.approx(expected)


# What is refused


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tension": 0.0}, "tension is 0.0; expected a positive number"),
        ({"tension": float("nan")}, "tension is nan"),
        ({"tension": 2.5}, "tension is 2.5 times Young's modulus of the flesh there; expected at most 2"),
        ({"region": "bicep"}, 'no vertex group, face label, colour or joint is called "bicep"'),
        ({"region": Sphere((99, 0, 0), 1.0)}, "no flesh is in the region"),
        ({"direction": "elbow"}, 'no joint is called "elbow"; the closest are b'),
        ({"direction": (0, 0, 0)}, "not all of them 0"),
        ({"direction": [[1, 0, 0], [1, 0, 0]]}, "points that are apart"),
        ({"direction": [1, 0]}, r"direction has shape \(2,\)"),
        ({"direction": (np.nan, 0, 0)}, "finite numbers"),
        ({"activation": 1.5}, "activation is 1.5; expected numbers from 0 to 1"),
        ({"activation": float("nan")}, "activation is nan"),
        ({"activation": [0.5, -1.0]}, "activation is -1.0"),
        ({"activation": []}, "activation has shape"),
        ({"activation": [[0.0, 0.0], [0.0, 1.0]]}, "times do not grow"),
        ({"activation": [0.5, 0.6]}, "one a frame; expected a number or keys"),
        ({"activation": lambda t: 2.0}, "at 0 s, the activation is 2.0; expected numbers from 0 to 1"),
        ({"activation": Flexion("c")}, 'no joint is called "c"'),
        ({"activation": WeightClip(("x",), np.ones((2, 1)))}, 'the table has no column "m"'),
    ],
)
def test_absurd_muscles_are_refused(given: dict[str, Any], words: str) -> None:
    body = free_bar(0.4, 60)
    with pytest.raises(InputError, match=words):
        body.pose(BONE.rest_pose(), muscles=[Muscle(**{"region": None, "name": "m"} | given)])


def test_what_is_no_muscle_is_refused() -> None:
    with pytest.raises(InputError, match="muscle is a str; expected a Muscle") as caught:
        free_bar(0.4, 60).pose(BONE.rest_pose(), muscles=[Muscle(None), "biceps"])  # type: ignore[list-item]
    assert caught.value.argument == ("muscles", 1)
    with pytest.raises(InputError, match="angles are both 30 degrees"):
        Flexion("fore", (30, 30))


# Scenes and the command line

SCENE = """engine = "simulate"
nodes = 200
static = true
size = "file"
[shape]
file = "arm.obj"
[material]
young = 1e5
[[skeleton.bones]]
name = "upper"
at = [0.6, 0.0, 0.0]
[[skeleton.bones]]
name = "fore"
parent = "upper"
at = [2.6, 0.0, 0.0]
end = [4.4, 0.0, 0.0]
[motion]
fps = 10.0
[[motion.keys]]
time = 0.0
[[motion.keys]]
time = 0.4
turns = { fore = { axis = [0, 0, 1], degrees = 60 } }
[muscles.biceps]
centre = [1.3, 0.3, 0.0]
radius = 0.7
direction = "upper"
tension = 1e5
activation = { joint = "fore", angles = [0, 60] }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pliant.write(tmp_path / "arm.obj", arm_box(500))
    return tmp_path


def scene(folder: Path, *change: str, text: str = SCENE) -> Any:
    (folder / "scene.toml").write_text(text.replace(*change) if change else text)
    return read_scene(folder / "scene.toml")


def activations(moved: Any) -> list[float]:
    return [float(frame.activation[0]) for frame in moved.frames]


ANGLE = 'activation = { joint = "fore", angles = [0, 60] }'


@pytest.mark.parametrize("static", [True, False])
def test_a_scene_says_muscles(folder: Path, static: bool) -> None:
    read = scene(folder, "static = true", f"static = {str(static).lower()}")
    moved = read.run()
    assert activations(moved) == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=1e-6)
    assert moved.frames[-1].shortening[0] > 0.05
    metres = replace(read, options=replace(read.options, size=50.0))  # ten times as large, of the same material
    assert metres.pulling[0].tension == pytest.approx(10 * read.pulling[0].tension)


def test_activations_of_scenes(folder: Path) -> None:
    (folder / "curves.csv").write_text("triceps,biceps\n" + "".join(f"0,{v}\n" for v in (0, 0.2, 0.4, 0.6, 0.8)))
    (folder / "timed.json").write_text('{"weights": {"biceps": [0.0, 0.8]}, "fps": 2.5}')
    for written in ('"curves.csv"', '"timed.json"', "[[0.0, 0.0], [0.4, 0.8]]"):
        read = scene(folder, ANGLE, f"activation = {written}")  # a column for another muscle does not matter
        assert activations(read.run()) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8]), written


def test_values_for_each_frame_are_as_many_as_frames(arm: ElasticBody) -> None:
    motion = flexing(90, 3)
    with pytest.raises(InputError, match="activation has 2 values, one a frame; expected 3"):
        arm.states(motion, muscles=[Muscle("upper", [0.0, 1.0])])
    arm.states(motion, muscles=[Muscle("upper", [0.0, 1.0, 1.0]), Muscle("fore", [[0.0, 0.0], [9.0, 1.0]])])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tension = 1e5", "tension = 0", r"line 28, muscles\.biceps\.tension: is 0; expected a positive number"),
        ("tension = 1e5", "tension = 5e6", r"line 28, muscles\.biceps\.tension: tension is .* Young's modulus"),
        ("tension = 1e5", "tension = nan", r"muscles\.biceps\.tension: is nan"),
        ('"upper"\ntension', '"uper"\ntension', r'muscles\.biceps\.direction: no joint is called "uper"'),
        ('joint = "fore"', 'joint = "hand"', r'muscles\.biceps\.activation: no joint is called "hand"'),
        ("angles = [0, 60]", "angles = [5, 5]", r"muscles\.biceps\.activation\.angles: angles are both 5"),
        (ANGLE, "activation = 2", r"muscles\.biceps\.activation: is 2; expected a number from 0 to 1"),
        (ANGLE, 'activation = "no.csv"', r"muscles\.biceps\.activation: .*no\.csv"),
        (ANGLE, 'activation = "zero.csv"', r'muscles\.biceps\.activation: "zero\.csv" never activates it'),
        (
            ANGLE,
            'activation = "short.csv"',
            r'"short\.csv" has 2 rows; expected one for each of the motion\'s 5 frames',
        ),
        (
            "centre = [1.3, 0.3, 0.0]\nradius = 0.7",
            'name = "bicep"',
            r"line 25, muscles\.biceps\.name: no vertex group",
        ),
        ("centre = [1.3, 0.3, 0.0]\nradius = 0.7", "", r"line 24, muscles\.biceps\.name: no vertex group"),
        ("radius = 0.7", "", r"muscles\.biceps\.centre: makes sense beside"),
        ("radius = 0.7", "radius = 0.7\nforce = 3", r"muscles\.biceps\.force: there is no such key"),
    ],
)
def test_errors_name_the_key(folder: Path, old: str, new: str, words: str) -> None:
    (folder / "zero.csv").write_text("biceps\n0\n0\n")
    (folder / "short.csv").write_text("biceps\n0\n1\n")
    with pytest.raises(InputError, match=words):
        scene(folder, old, new).prepare()


def test_the_command_line_says_muscles(folder: Path, command_line: Any) -> None:
    mesh = arm_box(500)
    pliant.write(folder / "bones.json", ARM)
    pliant.write(folder / "flex.npz", flexing(90, 3))
    pliant.write(folder / "arm.obj", mesh)
    base = ["simulate", folder / "arm.obj", "--skeleton", folder / "bones.json", "--motion", folder / "flex.npz",
            "--nodes", "200", "--static", "-o", folder / "out.npz", "--json"]  # fmt: skip
    given = ["--muscle", "upper:joint=fore,tension=5e4", "--muscle", "fore:activation=0.2"]
    code, out, err = command_line(*map(str, base), *given)
    assert code == 0, err
    frames = json.loads(out)["frames"]
    assert [frame["muscles"]["upper"]["activation"] for frame in frames] == pytest.approx([0, 0.5, 1], abs=1e-6)
    assert {frame["muscles"]["fore"]["activation"] for frame in frames} == {0.2}
    assert frames[2]["muscles"]["upper"]["shortening"] > 0.01
    for wrong, words in (
        ("upper:joint=hand", '--muscle: no joint is called "hand"'),
        ("uper", "--muscle: no vertex group"),
        ("upper:tension=0", 'tension: "0" is not a positive number'),
        ("upper:strength=3", '"strength=3" has none of the keys activation, joint, tension, direction'),
        ("upper:joint=fore,tension", '"tension" has none of the keys'),
        ("upper:joint=fore,joint=upper", "joint is given twice"),
        ("upper:joint=fore,activation=1", "joint and activation are given"),
        (":joint=fore", "it has no name; expected NAME[:KEY=VALUE,...], such as biceps:joint=forearm"),
    ):
        code, _, err = command_line(*map(str, base), "--muscle", wrong)
        assert code == 2
        assert words in err, err
        assert len(err.strip().splitlines()) == 1 or "usage" in err
    code, _, err = command_line(*map(str, base), "--muscle", "upper:tension=5e4", "--muscle", "upper:activation=1")
    assert code == 2
    assert "--muscle names one muscle twice" in err


def test_the_studio_keeps_muscles_along_with_their_joints() -> None:
    from pliant.engines.simulate.app.panel_document import Draft

    biceps = {"direction": "upper", "activation": {"joint": "fore", "angles": [0, 60]}}
    draft = Draft({"engine": "simulate", "muscles": {"biceps": biceps, "calf": {"activation": 0.5}}})
    draft.keep_joints(["arm", "fore"], {"upper": "arm"}, before=["upper", "fore"])
    assert draft.document()["muscles"] == {"biceps": biceps | {"direction": "arm"}, "calf": {"activation": 0.5}}
    draft.keep_joints(["arm"], before=["arm", "fore"])
    assert draft.document()["muscles"] == {"calf": {"activation": 0.5}}

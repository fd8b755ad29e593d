"""Large shapes solved on a coarse body that carries their surface."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import Blendshapes, Mesh, Pull, gallery, rotations
from pliant.contact import HalfSpace, Sphere
from pliant.contact.watched_rows import MAX_PENETRATION
from pliant.core.clips import Shapes
from pliant.core.errors import InputError
from pliant.engines.blend.detail import coarse_count, coarsened


@pytest.fixture(scope="module")
def animal() -> Shapes:
    shapes = gallery.animal(3000)
    return Shapes(shapes.base, shapes.points[[0, 2, 5]], ("a", "b", "c"))


@pytest.fixture(scope="module")
def rig(animal: Shapes) -> Blendshapes:
    return Blendshapes(animal, coarse=800)


def farthest(points: np.ndarray, others: np.ndarray) -> float:
    """Over the diagonal."""
    return float(np.linalg.norm(points - others, axis=1).max() / np.linalg.norm(np.ptp(others, axis=0)))


def test_fewer_vertices_are_solved_for(rig: Blendshapes, animal: Shapes) -> None:
    assert rig.detail is not None
    assert 600 < len(rig.detail.vertices) < 1100
    assert len(rig.solve([0.2, 0.3, 0.5]).points) == len(animal.base.points)


@pytest.mark.parametrize("shape", range(3))
def test_every_shape_is_met_exactly(rig: Blendshapes, animal: Shapes, shape: int) -> None:
    assert farthest(rig.solve(np.eye(3)[shape]).points, animal.points[shape]) < 1e-12


def test_it_is_near_what_all_vertices_give(rig: Blendshapes, animal: Shapes) -> None:
    full = Blendshapes(animal, coarse="none")
    for w in ([0.5, 0.5, 0.0], [0.3, 0.3, 0.4]):
        pose, other = rig.solve(w), full.solve(w)
        assert pose.converged
        assert farthest(pose.points, other.points) < 5e-3
        linear = np.einsum("s,snk->nk", w, animal.points)
        assert farthest(pose.points, other.points) < 0.3 * farthest(linear, other.points)


def test_turned_shapes_give_a_turned_result(rig: Blendshapes, animal: Shapes) -> None:
    turn = rotations.from_axis_angle([0.3, -0.5, 0.8], 1.1)
    points = rotations.rotate(turn, animal.points) + 3
    turned = Shapes(animal.base.with_points(points[0]), points, animal.names)
    w = [0.4, 0.6, 0.0]
    expected = rotations.rotate(turn, rig.solve(w).points) + 3
    assert farthest(Blendshapes(turned, coarse=800).solve(w).points, expected) < 1e-9


def test_the_surface_is_what_the_equation_says(rig: Blendshapes, animal: Shapes) -> None:
    """The kernels beside plain NumPy, for a solution that is none of the shapes."""
    detail, body, w = rig.detail, rig.body, np.array([0.3, 0.5, 0.2])
    assert detail is not None
    m = len(detail.vertices)
    x = body.frames.placed(body.linear(w), w) + 0.01 * np.random.default_rng(1).normal(size=body.points[0].shape)
    coarse, turned = detail._shapes(body)
    R = np.empty((m, 3, 3))
    for k in range(m):
        springs = np.flatnonzero((body.springs.edges == k).any(axis=1))
        other = body.springs.edges[springs].sum(axis=1) - k
        springs, other = springs[other < m], other[other < m]
        blended = sum(w[s] * (coarse[s, k] - coarse[s, other]) @ turned[s, k] for s in range(3))
        R[k] = rotations.polar((body.springs.stiffness[springs, None] * (x[k] - x[other])).T @ blended)
    carried = np.zeros_like(detail.points[0])
    for i in range(len(carried)):
        for k, a in zip(detail.carriers[i], detail.shares[i], strict=True):
            local = sum(w[s] * turned[s, k].T @ (detail.points[s, i] - coarse[s, k]) for s in range(3))
            carried[i] += a * (R[k] @ local + x[k])
    assert farthest(detail.carry(body, x, w), carried) < 1e-10


def test_shares_sum_up_to_one(rig: Blendshapes) -> None:
    assert rig.detail is not None
    assert np.abs(rig.detail.shares.sum(axis=1) - 1).max() < 1e-14
    assert (rig.detail.shares >= 0).all()


def closed(mesh: Mesh) -> bool:
    sides = np.sort(mesh.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    return bool((np.unique(sides, axis=0, return_counts=True)[1] == 2).all())


@pytest.mark.parametrize("shape", ["hand", "dinosaur", "tentacle"])
def test_what_is_closed_stays_closed(shape: str) -> None:
    made = getattr(gallery, shape)(2500)
    mesh = made.base if isinstance(made, Shapes) else made
    weld, _ = coarsened(mesh.welded(), mesh.points[None], 150, np.zeros(0, np.int64))
    assert closed(weld.mesh)
    assert weld.mesh.parts.max() == mesh.welded().mesh.parts.max()
    assert len(weld.mesh.points) < len(mesh.points) / 2


def test_thin_limbs_are_taken_more_densely() -> None:
    """A needle whose circumference is far below the distance of the vertices."""
    t, a = np.meshgrid(np.linspace(0, 1, 200), np.linspace(0, 2 * np.pi, 8, endpoint=False), indexing="ij")
    rings = np.stack([0.004 * np.cos(a), 0.004 * np.sin(a), t], axis=2).reshape(-1, 3)
    k, j = np.meshgrid(np.arange(199), np.arange(8), indexing="ij")
    p, q = (8 * k + j).ravel(), (8 * k + (j + 1) % 8).ravel()
    sides = np.concatenate([np.stack([p, q, q + 8], axis=1), np.stack([p, q + 8, p + 8], axis=1)])
    caps = [[0, i + 1, i] for i in range(1, 7)] + [[1592, 1592 + i, 1592 + i + 1] for i in range(1, 7)]
    needle = Mesh(rings, np.concatenate([sides, caps]))
    weld, _ = coarsened(needle.welded(), needle.points[None], 60, np.zeros(0, np.int64))
    assert closed(weld.mesh)
    assert weld.mesh.parts.max() == 0


def test_an_open_face_and_small_parts() -> None:
    face = gallery.face(4000)
    two = Shapes(face.base, face.points[:2], face.names[:2])
    rig = Blendshapes(two, coarse=600)
    assert rig.solve([0.5, 0.5]).converged
    assert farthest(rig.solve([0, 1]).points, two.points[1]) < 1e-12
    assert rig.detail is not None
    assert len(np.unique(rig._weld.mesh.parts)) == len(np.unique(two.base.welded().mesh.parts))


def test_a_pulled_vertex_comes_to_its_position(rig: Blendshapes, animal: Shapes) -> None:
    w = [0.5, 0.5, 0.0]
    free = rig.solve(w).points
    vertex = int(np.argmax(free[:, 0]))
    to = free[vertex] + 0.05 * animal.base.diagonal * np.array([0.3, 0.8, 0.2])
    pose = rig.solve(w, pulls=[Pull(vertex, to=to)])
    assert pose.converged
    assert np.linalg.norm(pose.points[vertex] - to) < 1e-3 * animal.base.diagonal


def test_pins_are_vertices_of_the_coarse_body(animal: Shapes) -> None:
    pins = np.array([5, 700, 1500])
    rig = Blendshapes(animal, coarse=800, pins=pins)
    at = animal.points[0, pins] + 0.01
    assert farthest(rig.solve([1, 0, 0], pinned=at).points[pins], at) < 0.05
    assert rig.detail is not None
    assert np.isin(rig.detail.weld.index[pins], rig.detail.vertices).all()


@pytest.mark.parametrize("kind", ["ball", "floor"])
def test_nothing_is_inside_an_obstacle(rig: Blendshapes, animal: Shapes, kind: str) -> None:
    low, size = animal.base.points.min(axis=0), animal.base.diagonal
    obstacle = (
        Sphere(animal.base.points[np.argmax(animal.base.points[:, 0])], 0.1 * size)
        if kind == "ball"
        else HalfSpace((0, low[1] + 0.03 * size, 0), (0, 1, 0))
    )
    pose = rig.solve([0.6, 0.4, 0.0], obstacles=[obstacle])
    assert pose.contacts > 0
    assert obstacle.signed(pose.points)[0].min() > -1e-6 * size
    assert pose.penetration < 1e-6
    corners = pose.points[animal.base.triangles]
    within = np.random.default_rng(0).dirichlet(np.ones(3), (20, len(corners)))
    anywhere = np.einsum("stk,tkj->stj", within, corners).reshape(-1, 3)
    assert obstacle.signed(anywhere)[0].min() > -MAX_PENETRATION * size


def test_a_pulled_vertex_that_misses_its_position_beside_an_obstacle_is_said(rig: Blendshapes, animal: Shapes) -> None:
    tip, size = int(np.argmax(animal.base.points[:, 0])), animal.base.diagonal
    at = animal.base.points[tip]
    out = (at - animal.base.points.mean(axis=0)) / np.linalg.norm(at - animal.base.points.mean(axis=0))
    side = np.cross(out, [0.3, 0.5, 0.8])
    ball = Sphere(at + 0.055 * size * side / np.linalg.norm(side) + 0.02 * size * out, 0.05 * size)
    pose = rig.solve([1, 0, 0], pulls=[Pull(tip, to=at)], obstacles=[ball])
    assert np.linalg.norm(pose.points[tip] - at) > 1e-3 * size
    assert not pose.converged
    assert "a pulled vertex is" in pose.message


def test_what_needs_all_vertices_says_so(rig: Blendshapes, animal: Shapes) -> None:
    for call in (
        lambda: rig.jacobian([1, 0, 0]),
        lambda: rig.fit(animal.base),
        lambda: rig.solve([1, 0, 0], self_contact=True),
        lambda: rig.learn_stiffness(animal.points, np.eye(3)),
    ):
        with pytest.raises(InputError, match='coarse="none"'):
            call()


def test_two_pulls_on_what_one_vertex_carries(rig: Blendshapes, animal: Shapes) -> None:
    owner = rig._weld.index
    shared = np.flatnonzero(owner == np.argmax(np.bincount(owner)))[:2]
    with pytest.raises(InputError, match="carries both"):
        rig.solve([1, 0, 0], pulls=[Pull(int(v), to=animal.base.points[v]) for v in shared])


def test_small_meshes_have_no_coarse_body() -> None:
    assert coarse_count("auto", 50_000) is None
    assert coarse_count(5000, 3000) is None
    assert coarse_count("auto", 50_001) == coarse_count("auto", 10**6) == 6000
    assert coarse_count("none", 10**6) is None


def test_the_command_takes_it(command_line, tmp_path, animal: Shapes) -> None:
    import pliant

    for k in range(2):
        pliant.write(tmp_path / f"{k}.ply", Mesh(animal.points[k], animal.base.triangles))
    words = [
        "blend",
        str(tmp_path / "0.ply"),
        str(tmp_path / "1.ply"),
        "-o",
        str(tmp_path / "out.npz"),
        "--frames",
        "3",
    ]
    code, out, _ = command_line(*words, "--coarse", "800")
    assert code == 0
    assert "carry the others" in out
    clip = pliant.read_animation(tmp_path / "out.npz")
    assert farthest(clip.points[-1], animal.points[1]) < 1e-6

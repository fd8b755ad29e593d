"""Nodes, moving least squares and quadrature: what every body of the elastic engine relies on."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial import cKDTree

import pliant
from pliant import InputError, Mesh, PointCloud, TetMesh
from pliant.core.topology import Floats
from pliant.engines.simulate.interior import _line_crossings
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import Nodes, sample_nodes
from pliant.engines.simulate.quadrature import quadrature
from pliant.geometry.spatial import SurfaceTree

BOX_FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]


def box(low: tuple[float, float, float], high: tuple[float, float, float]) -> Mesh:
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    return Mesh(np.array(low) + corners * (np.array(high) - low), BOX_FACES)


def together(*meshes: Mesh) -> Mesh:
    first = np.cumsum([0, *(len(mesh.points) for mesh in meshes)])
    return Mesh(
        np.concatenate([mesh.points for mesh in meshes]),
        np.concatenate([mesh.triangles + k for mesh, k in zip(meshes, first, strict=False)]),
    )


def horseshoe() -> Mesh:
    """Two legs, 0.02 apart, joined by a bridge: one closed surface."""
    outline = np.array([[0, 0], [1, 0], [1, 3], [1.02, 3], [1.02, 0], [2.02, 0], [2.02, 4], [0, 4]], dtype=float)
    points = np.concatenate([np.insert(outline, 2, z, axis=1) for z in (0.0, 1.0)])
    sides = [[k, (k + 1) % 8, (k + 1) % 8 + 8, k + 8] for k in range(8)]
    caps = [[0, 1, 2, 7], [2, 3, 6, 7], [3, 4, 5, 6]]
    return Mesh(points, [*sides, *([k + 8 for k in cap] for cap in caps), *(cap[::-1] for cap in caps)])


BODIES = {
    "box": lambda: box((0, 0, 0), (1, 1, 3)),
    "slab": lambda: box((0, 0, 0), (4, 4, 0.1)),
    "rod": lambda: box((0, 0, 0), (10, 0.2, 0.2)),
    "horseshoe": horseshoe,
    "far and large": lambda: box((1e6, 0, 0), (1e6 + 2e3, 1e3, 1e3)),
    "two parts": lambda: together(box((0, 0, 0), (1, 1, 1)), box((2, 0, 0), (3, 1, 1))),
    "overlapping": lambda: together(box((0, 0, 0), (1, 1, 2)), box((0.2, 0.2, 1.5), (0.8, 0.8, 3))),
}


@pytest.fixture(scope="module", params=BODIES)
def body(request: pytest.FixtureRequest) -> tuple[Mesh, Nodes]:
    mesh = BODIES[request.param]()
    return mesh, sample_nodes(mesh, 500)


def inside_points(mesh: Mesh, count: int) -> Floats:
    """Random places inside."""
    rng = np.random.default_rng(3)
    low, span = mesh.points.min(axis=0), np.ptp(mesh.points, axis=0)
    points = low + span * rng.random((40 * count, 3))
    return points[SurfaceTree(mesh).inside(points)][:count]


def reference(x: Floats, nodes: Nodes, chosen: Floats, grown: float = 1.0) -> tuple[Floats, Floats]:
    """φ and ∇φ of the chosen nodes at one place, from Eq. (6) and (8), the basis taken about it."""
    away = x - nodes.points[chosen]
    h = grown * nodes.radii[chosen]
    r = np.linalg.norm(away, axis=1) / h
    w = 1 - 6 * r**2 + 8 * r**3 - 3 * r**4
    dw = (-12 * (1 - r) ** 2 / h**2)[:, None] * away
    p = np.column_stack([np.ones(len(chosen)), -away])
    px, dp = np.eye(4)[0], np.eye(4)[1:]
    M = np.einsum("n,ni,nj->ij", w, p, p)
    inverse = np.linalg.inv(M)
    phi = w * (p @ inverse @ px)
    gradient = np.empty((len(chosen), 3))
    for k in range(3):
        dM = np.einsum("n,ni,nj->ij", dw[:, k], p, p)
        gradient[:, k] = dw[:, k] * (p @ inverse @ px) + w * (p @ (inverse @ dp[k] - inverse @ dM @ inverse @ px))
    return phi, gradient


def row(interpolation: Interpolation, k: int) -> slice:
    return slice(interpolation.start[k], interpolation.start[k + 1])


def test_nodes_fill_the_body(body: tuple[Mesh, Nodes]) -> None:
    mesh, nodes = body
    assert abs(len(nodes) - 500) <= 25
    assert nodes.free == len(nodes)
    assert SurfaceTree(mesh).inside(nodes.points).all()
    gap = np.linalg.norm(nodes.points[:, None] - nodes.points, axis=2) + 1e9 * np.eye(len(nodes))
    assert (gap.min(axis=1) > 0.1 * nodes.radii / 1.7).all()


def test_every_part_has_nodes() -> None:
    mesh = together(box((0, 0, 0), (4, 4, 4)), box((5, 0, 0), (5.3, 0.3, 0.3)))
    nodes = sample_nodes(mesh, 400)
    assert (nodes.points[:, 0] > 4.5).sum() >= 4


def test_quadrature_has_the_bodys_volume(body: tuple[Mesh, Nodes]) -> None:
    mesh, nodes = body
    q = quadrature(mesh, nodes)
    overlap = 0.6 * 0.6 * 0.5 if mesh.points[:, 2].max() == 3 and len(mesh.points) == 16 else 0
    assert q.weights.sum() == pytest.approx(mesh.volume - overlap, rel=0.01)
    assert (q.weights > 0).all()
    assert SurfaceTree(mesh).inside(q.points).mean() > 0.99
    assert 1.0 < len(q) / len(nodes) < 4.0


def test_quadrature_has_the_bodys_moments() -> None:
    mesh = box((0, 0, 0), (1, 1, 3))
    q = quadrature(mesh, sample_nodes(mesh, 500))
    assert q.weights @ q.points == pytest.approx(np.array([1.5, 1.5, 4.5]), rel=1e-3)
    assert q.weights @ q.points**2 == pytest.approx(np.array([1, 1, 9]), rel=0.03)


@pytest.mark.parametrize("where", ["inside", "surface"])
def test_linear_fields_are_reproduced(body: tuple[Mesh, Nodes], where: str) -> None:
    mesh, nodes = body
    points = inside_points(mesh, 300) if where == "inside" else mesh.points
    found = mls(points, nodes, gradients=True)
    centre = nodes.points.mean(axis=0)
    assert found.matrix @ np.ones(len(nodes)) == pytest.approx(1, abs=1e-12)
    assert found.matrix @ (nodes.points - centre) == pytest.approx(points - centre, abs=1e-12 * mesh.diagonal)
    for axis in range(3):
        slope = found.derivative(axis) @ (nodes.points - centre)
        assert slope == pytest.approx(np.tile(np.eye(3)[axis], (len(points), 1)), abs=1e-8)


def test_weights_stay_moderate(body: tuple[Mesh, Nodes]) -> None:
    mesh, nodes = body
    phi = mls(np.concatenate([inside_points(mesh, 300), mesh.points]), nodes).phi
    assert np.abs(phi).max() < 4


def test_against_the_equations() -> None:
    mesh = box((0, 0, 0), (1, 1, 1))
    nodes = sample_nodes(mesh, 300)
    points = 0.3 + 0.4 * np.random.default_rng(5).random((20, 3))
    found = mls(points, nodes, gradients=True)
    assert found.gradient is not None
    for k, x in enumerate(points):
        chosen = found.node[row(found, k)]
        assert set(chosen) == set(np.flatnonzero(np.linalg.norm(nodes.points - x, axis=1) < nodes.radii))
        phi, gradient = reference(x, nodes, chosen)
        assert found.phi[row(found, k)] == pytest.approx(phi, abs=1e-10)
        assert found.gradient[row(found, k)] == pytest.approx(gradient, abs=1e-8)


def test_gradients_are_derivatives() -> None:
    mesh = box((0, 0, 0), (1, 1, 1))
    nodes = sample_nodes(mesh, 300)
    points = 0.35 + 0.3 * np.random.default_rng(6).random((30, 3))
    slopes = mls(points, nodes, gradients=True)
    step = 1e-6
    for axis in range(3):
        ahead, behind = (mls(points + sign * step * np.eye(3)[axis], nodes).matrix for sign in (1, -1))
        difference = (ahead - behind) / (2 * step)
        assert abs(difference - slopes.derivative(axis)).max() < 1e-5 * abs(slopes.derivative(axis)).max()


def test_fixed_nodes_follow_the_others_and_have_no_functions() -> None:
    line = np.column_stack([np.full(9, 0.5), np.full(9, 0.5), np.linspace(0.3, 2.7, 9)])
    mesh = box((0, 0, 0), (1, 1, 3))
    nodes, free = sample_nodes(mesh, 400, fixed=line), sample_nodes(mesh, 400)
    assert np.array_equal(nodes.points, np.concatenate([free.points, line]))
    found, points = mls(line, nodes), inside_points(mesh, 20)
    assert found.node.max() < nodes.free == 400
    assert np.array_equal(mls(points, nodes).phi, mls(points, free).phi)
    assert found.matrix.shape == (9, 409)


def test_functions_do_not_cross_a_gap() -> None:
    mesh = horseshoe()
    nodes = sample_nodes(mesh, 600)
    points = inside_points(mesh, 400)
    legs = points[points[:, 1] < 2.0]
    found = mls(legs, nodes)
    point = np.repeat(np.arange(len(legs)), np.diff(found.start))
    across = (legs[point, 0] < 1.01) != (nodes.points[found.node, 0] < 1.01)
    assert not across[found.phi != 0].any()


def test_functions_are_continuous_along_a_surface() -> None:
    """Neighbouring vertices of a skin take nearly the same mixture, so that a smooth field stays smooth."""
    mesh = box((0, 0, 0), (1, 1, 3))
    nodes = sample_nodes(mesh, 500)
    line = np.column_stack([np.full(2001, 1.0), np.full(2001, 0.37), np.linspace(0.1, 2.9, 2001)])
    bent = mls(line, nodes).matrix @ np.sin(2 * nodes.points[:, 2])
    assert np.abs(np.diff(bent)).max() < 2.5 * np.abs(np.diff(np.sin(2 * line[:, 2]))).max()
    assert np.abs(bent - np.sin(2 * line[:, 2])).max() < 0.03


def test_units_and_place_do_not_matter() -> None:
    mesh = horseshoe()
    nodes, points = sample_nodes(mesh, 300), inside_points(mesh, 50)
    large = mesh.with_points(1000 * mesh.points)
    others = sample_nodes(large, 300)
    assert others.points == pytest.approx(1000 * nodes.points, abs=1e-6)
    phi, same = mls(points, nodes).matrix, mls(1000 * points, others).matrix
    assert abs(phi - same).max() < 1e-9


def test_places_outside_and_far_away_are_finite() -> None:
    nodes = sample_nodes(box((0, 0, 0), (1, 1, 1)), 100)
    found = mls([[1.05, 0.5, 0.5], [3, 0.5, 0.5], [-100, 40, 7]], nodes)
    assert np.isfinite(found.phi).all()
    assert found.matrix @ np.ones(len(nodes)) == pytest.approx(1, abs=1e-9)


def test_functions_are_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = horseshoe()
    nodes, points = sample_nodes(mesh, 300), inside_points(mesh, 700)
    whole = mls(points, nodes, gradients=True)
    monkeypatch.setattr("pliant.engines.simulate.mls.POINTS_PER_PIECE", 90)
    monkeypatch.setattr("pliant.engines.simulate.mls.NODES_PER_POINT", 3)
    pieces = mls(points, nodes, gradients=True)
    for name in ("start", "node", "phi", "gradient"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))
    assert whole.interpolated(nodes.points) == pytest.approx(whole.matrix @ nodes.points, abs=1e-12)
    assert len(mls(np.zeros((0, 3)), nodes, gradients=True)) == 0


def test_lines_cross_triangles_where_they_should() -> None:
    corners = np.random.default_rng(4).uniform(0, 6, (30, 3, 3))
    corners[0, 2] = corners[0, 1]
    line, height = _line_crossings(corners, 7)
    expected = []
    for a, b, c in corners:
        for i in range(6):
            for j in range(6):
                edges = np.column_stack([b - a, c - a])
                if np.linalg.det(edges[:2]) != 0:
                    v, w = np.linalg.solve(edges[:2], [i + 0.5 - a[0], j + 0.5 - a[1]])
                    if min(v, w, 1 - v - w) >= 0:
                        expected.append((7 * i + j, a[2] + edges[2] @ [v, w]))
    assert len(expected) > 50
    np.testing.assert_array_equal(line, [number for number, _ in expected])
    np.testing.assert_allclose(height, [at for _, at in expected], atol=1e-9)


def test_nodes_and_functions_pickle() -> None:
    nodes = sample_nodes(box((0, 0, 0), (1, 1, 1)), 60)
    again = pickle.loads(pickle.dumps(nodes))
    found, same = mls([[0.5, 0.5, 0.5]], nodes), mls([[0.5, 0.5, 0.5]], again)
    assert np.array_equal(found.phi, same.phi)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).matrix.toarray(), found.matrix.toarray())


def test_shapes_of_other_kinds() -> None:
    mesh = box((0, 0, 0), (1, 1, 2))
    inward = Mesh(mesh.points, mesh.triangles[:, ::-1])
    holed = Mesh(horseshoe().points, horseshoe().triangles[1:])
    rng = np.random.default_rng(0)
    places = rng.normal(size=(3000, 3))
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    for shape in (inward, holed, PointCloud(places, places)):
        nodes = sample_nodes(shape, 200)
        assert len(nodes) == 200
        assert nodes.surface.inside(nodes.points).mean() > 0.97
    cloud = quadrature(PointCloud(places, places), nodes)
    assert cloud.weights.sum() == pytest.approx(4 / 3 * np.pi, rel=0.05)
    tets = TetMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), [[0, 1, 2, 3]])
    assert SurfaceTree(tets).inside(sample_nodes(tets, 50).points).all()


@pytest.mark.parametrize(
    ("shape", "count", "words"),
    [
        (Mesh(np.eye(3), [[0, 1, 2]]), 100, "no volume"),
        (PointCloud(np.random.default_rng(0).random((50, 3))), 100, "normals"),
        (Mesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=int)), 100, "no faces"),
        (box((0, 0, 0), (1, 1, 1)), 3, "3 nodes are too few; expected a whole number, 8 or more"),
        (box((0, 0, 0), (1, 1, 1)), 2.5, "2.5 nodes .* expected a whole number"),
    ],
)
def test_what_has_no_inside_is_refused(shape: Mesh, count: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        sample_nodes(shape, count)


@pytest.mark.parametrize("size", [0.3, 0.03, 0.003, 3e-4])
def test_no_two_nodes_are_at_one_place_in_tiny_parts(size: float) -> None:
    large, tiny = box((0, 0, 0), (1, 1, 1)), box((2, 0, 0), (2 + size, size, size))
    both = Mesh(
        np.concatenate([large.points, tiny.points]),
        np.concatenate([large.triangles, tiny.triangles + len(large.points)]),
    )
    nodes = sample_nodes(both, 300)
    assert cKDTree(nodes.points).query(nodes.points, k=2)[0][:, 1].min() > 1e-2 * nodes.radii.min()
    found = mls(both.points, nodes, gradients=True)
    assert np.isfinite(found.gradient).all()
    if size > 0.01:  # a part without a node of its own goes along with what is nearest
        assert found.matrix @ nodes.points == pytest.approx(both.points, abs=1e-11)


def test_coincident_nodes_do_not_pass_for_a_spread() -> None:
    """Rounding gives four nodes at one place a spread whose determinant is not zero."""
    body = box((-1, -1, -1), (1, 1, 1))
    grid = np.stack(np.meshgrid(*[np.linspace(-0.8, 0.8, 5)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    rng = np.random.default_rng(4)
    for place in rng.uniform(-0.9, 0.9, (20, 3)):
        nodes = Nodes(np.concatenate([np.tile(place, (4, 1)), grid]), np.full(129, 0.35), 129, SurfaceTree(body))
        x = place[None] + rng.normal(size=3) * 0.02
        found = mls(x, nodes, gradients=True)
        assert found.matrix @ nodes.points == pytest.approx(x, abs=1e-9)


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "hand/hand.mesh",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("dino/dino.off", "fox/Fox.glb", "armadillo/arma2.obj", "dino/Trex.glb",
                         "cheburashka/cheburashka.off", "knight/knight.ply", "octopus/octopus-low.mesh")
        ),
    ],
)  # fmt: skip
def test_real_bodies(data: object, name: str) -> None:
    shape = pliant.read_mesh(data / "models" / name)  # type: ignore[operator]
    mesh = shape.surface if isinstance(shape, TetMesh) else shape.welded().mesh
    nodes = sample_nodes(mesh, 1200)
    assert (nodes.surface.inside(nodes.points) | (nodes.depth < 1e-8 * mesh.diagonal)).all()
    q = quadrature(mesh, nodes)
    assert q.weights.sum() == pytest.approx(abs(mesh.volume), rel=0.01)
    for points in (q.points, mesh.points[np.unique(mesh.triangles)]):
        found = mls(points, nodes, gradients=True)
        assert np.isfinite(found.gradient).all()
        assert found.matrix @ nodes.points == pytest.approx(points, abs=1e-11 * mesh.diagonal)
        assert np.abs(found.phi).max() < 6

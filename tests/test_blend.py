"""Physical blendshapes: derivatives, exact ends, lengths and volumes kept, no dependence on path, scale or place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from pliant import InputError, Mesh, Shapes, gallery
from pliant.core import rotations
from pliant.engines.blend import Blendshapes, kernels
from pliant.engines.blend.body import common_rotation, part_frames, rotation_vectors, vertex_rotations
from pliant.engines.blend.equilibrium import Network, Objective, lbfgs, newton, paper_newton
from pliant.engines.blend.interior import is_solid, lattice_interior
from pliant.engines.blend.rest_vectors import make_pieces
from pliant.engines.blend.springs import HUB, CorotatedRest, Rest, distance_two, laplacian, make_springs
from pliant.engines.blend.stiffness import stiffness
from pliant.geometry import quality
from sweeps import every

RNG = np.random.default_rng(5)
HALF = [0.5, 0.5]


def pair(shapes: Shapes, target: str) -> Shapes:
    """The base and one other shape."""
    return Shapes.of([shapes.base, shapes.named(target)], [shapes.names[0], target])


PAIRS = {
    "bar bent": lambda: pair(gallery.bar(600), "bent 180"),
    "bar twisted": lambda: pair(gallery.bar(600), "twisted 270"),
    "tube": lambda: pair(gallery.tube(800), "bent 120"),
    "tentacle": lambda: pair(gallery.tentacle(900), "curled"),
    "face": lambda: pair(gallery.face(500), "surprise"),
    "gingerbread": lambda: pair(gallery.gingerbread(900), "bowing"),
}


@pytest.fixture(scope="module")
def rigs():
    """Rigs by name, made once."""
    made: dict[str, Blendshapes] = {}

    def rig(name: str) -> Blendshapes:
        if name not in made:
            made[name] = Blendshapes(PAIRS[name](), interior="lattice")
        return made[name]

    return rig


@pytest.fixture(params=[0.0, 0.2], ids=["lengths", "directions too"])
def network(request) -> tuple[Network, np.ndarray, Rest]:
    """A network at a generic place: its springs neither at rest nor aligned with anything."""
    base = gallery.sphere(500)
    springs = make_springs(
        np.stack([base.points, base.points * [1, 2, 1.5]]),
        {"structure": base.edges, "bending": distance_two(base.edges, len(base.points))},
        diagonal=base.diagonal,
    )
    fixed = base.points[:, 1] < -0.7
    x = base.points * [1.3, 0.8, 1.1] + 0.1 * RNG.normal(size=base.points.shape)
    return (
        Network(springs, len(base.points), fixed),
        x,
        rest_of(springs, springs.rest.mean(axis=0), base.points, request.param),
    )


def rest_of(springs, lengths, points, direction_stiffness) -> Rest:
    """Rest lengths, with the directions that the springs have between some points."""
    d = points[springs.edges[:, 0]] - points[springs.edges[:, 1]]
    return Rest(lengths, d / np.linalg.norm(d, axis=1, keepdims=True), direction_stiffness)


def test_bending_springs_join_vertices_at_distance_two():
    path = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [3, 4]])
    assert sorted(distance_two(path, 5).tolist()) == [[0, 2], [0, 4], [1, 3], [2, 4]]


def wheel(valence: int) -> np.ndarray:
    """(e, 2) the edges of a hub with a closed ring around it; the hub comes first."""
    ring = 1 + np.arange(valence)
    rim = np.sort(np.stack([ring, np.roll(ring, -1)], axis=1), axis=1)
    return np.concatenate([np.stack([0 * ring, ring], axis=1), rim])


def test_bending_springs_across_an_ordinary_vertex_join_all_its_neighbours():
    assert len(distance_two(wheel(HUB), HUB + 1)) == HUB * (HUB - 1) / 2 - HUB


def test_bending_springs_across_a_hub_are_linear_in_its_valence_and_go_around_it_evenly():
    valence = 10 * HUB
    pairs = distance_two(wheel(valence), valence + 1)
    assert pairs.min() > 0  # the hub is next to all
    apart = np.abs(pairs[:, 1] - pairs[:, 0])
    strides, counts = np.unique(np.minimum(apart, valence - apart), return_counts=True)
    assert strides.tolist() == [2, valence // 8, valence // 4, valence // 2]
    assert counts.tolist() == [valence, valence, valence, valence // 2]


def test_bending_springs_across_a_hub_do_not_depend_on_how_vertices_are_numbered():
    count = 5 * HUB + 1
    number = np.random.default_rng(3).permutation(count)
    renumbered = distance_two(np.sort(number[wheel(count - 1)], axis=1), count)
    expected = np.sort(number[distance_two(wheel(count - 1), count)], axis=1)
    assert sorted(renumbered.tolist()) == sorted(expected.tolist())


def test_spring_constants_are_inverse_to_the_mean_rest_length():
    springs = make_springs(RNG.random((3, 9, 3)), {"structure": np.array([[0, 1], [2, 5]])}, diagonal=1.0)
    assert np.allclose(springs.stiffness * springs.rest.mean(axis=0), 1)


@pytest.mark.parametrize("softer", [{"stiffness": {"bending": 0.25}}, {"factors": np.full(9, 0.25)}])
def test_stiffness_by_kind_and_by_vertex(softer):
    groups = {"bending": np.array([[0, 1], [2, 5]])}
    points = RNG.random((2, 9, 3))
    plain = make_springs(points, groups, diagonal=1.0)
    soft = make_springs(points, groups, **softer, diagonal=1.0)
    assert np.allclose(soft.stiffness, plain.stiffness / 4)


def test_the_laplacian_has_zero_row_sums_and_no_negative_eigenvalue(network):
    L = laplacian(network[0].springs, network[0].count).toarray()
    assert np.abs(L.sum(axis=1)).max() < 1e-9 * np.abs(L).max()
    assert np.linalg.eigvalsh(L).min() > -1e-9 * np.abs(L).max()


def test_the_force_is_the_slope_of_the_energy(network):
    net, x, r = network
    gradient, ahead, behind = (np.empty_like(x) for _ in range(3))
    net.energy(x, r, gradient)
    direction = np.where(net.fixed[:, None], 0, RNG.normal(size=x.shape))
    for h in (1e-5, 1e-6):
        slope = (net.energy(x + h * direction, r, ahead) - net.energy(x - h * direction, r, behind)) / (2 * h)
        assert slope == pytest.approx(np.vdot(gradient, direction), rel=1e-6)


def test_the_stiffness_is_the_slope_of_the_force(network):
    net, x, r = network
    ahead, behind = np.empty_like(x), np.empty_like(x)
    direction = np.zeros_like(x)
    direction[net.unknown] = RNG.normal(size=(len(net.unknown), 3))
    h = 1e-6
    net.energy(x + h * direction, r, ahead)
    net.energy(x - h * direction, r, behind)
    product = stiffness(net, x, r) @ direction[net.unknown].ravel()
    assert np.allclose(product, ((ahead - behind) / (2 * h))[net.unknown].ravel(), rtol=1e-5, atol=1e-6)


def test_products_with_the_stiffness_are_differences_of_the_gradient(network):
    net, x, r = network
    objective, gradient = Objective(net, r), np.empty_like(x)
    objective.evaluate(x, gradient)
    direction = np.zeros_like(x)
    direction[net.unknown] = RNG.normal(size=(len(net.unknown), 3))
    product = stiffness(net, x, r) @ direction[net.unknown].ravel()
    found = objective.product(x, gradient, direction)[net.unknown].ravel()
    assert np.abs(found - product).max() < 1e-4 * np.abs(product).max()


def test_projected_stiffness_is_positive(network):
    net, x, r = network
    assert np.linalg.eigvalsh(stiffness(net, x, r, 0.0).toarray()).min() > -1e-9


def test_a_share_of_the_laplacian_makes_the_stiffness_positive(network):
    net, x, r = network
    assert np.linalg.eigvalsh(stiffness(net, x, r).toarray()).min() < 0  # compressed springs
    assert np.linalg.eigvalsh(stiffness(net, x, r, shift=50.0).toarray()).min() > 0


# CorotatedRest: the energy of a body that a load has turned


@pytest.fixture
def flesh(network):
    """A body, the shape it has without a load, and one far from it: turned, stretched and rough."""
    net, free, _ = network
    generic = rotations.rotate(rotations.from_axis_angle([1.0, 2, -1], 0.7 * free[:, 0]), free * [1.1, 0.9, 1.0])
    generic = np.ascontiguousarray(generic + 0.02 * RNG.normal(size=free.shape))
    return net, free, generic


def test_the_unloaded_shape_has_no_energy_wherever_it_is(flesh):
    net, free, _ = flesh
    R = rotations.matrix(rotations.from_axis_angle([0.3, -1, 2], 2.9))
    force = np.empty_like(free)
    for x in (free, np.ascontiguousarray(free @ R.T + [1, 2, 3])):
        assert net.energy(x, CorotatedRest.of(free, net.springs, 0.2), force) < 1e-18
        assert np.abs(force).max() < 1e-8


def test_the_force_of_flesh_is_the_slope_of_its_energy(flesh):
    net, free, x = flesh
    rest = CorotatedRest.of(free, net.springs, 0.2)
    gradient, other = np.empty_like(x), np.empty_like(x)
    net.energy(x, rest, gradient)
    direction = np.where(net.fixed[:, None], 0, RNG.normal(size=x.shape))
    h = 1e-5
    slope = (net.energy(x + h * direction, rest, other) - net.energy(x - h * direction, rest, other)) / (2 * h)
    assert slope == pytest.approx(np.vdot(gradient, direction), rel=1e-6)


def test_the_stiffness_of_flesh_is_the_slope_of_its_force(flesh):
    net, free, x = flesh
    rest = CorotatedRest.of(free, net.springs, 0.2)
    ahead, behind = np.empty_like(x), np.empty_like(x)
    direction = np.zeros_like(x)
    direction[net.unknown] = RNG.normal(size=(len(net.unknown), 3))
    h = 1e-5
    net.energy(x + h * direction, rest, ahead)
    net.energy(x - h * direction, rest, behind)
    net.energy(x, rest, np.empty_like(x))
    K = stiffness(net, x, rest).toarray()
    m = 3 * len(net.unknown)
    reduced = K[:m, :m] - K[:m, m:] @ np.linalg.solve(K[m:, m:], K[m:, :m])
    product = reduced @ direction[net.unknown].ravel()
    assert np.allclose(product, ((ahead - behind) / (2 * h))[net.unknown].ravel(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("solver", [lbfgs, newton, paper_newton])
def test_every_method_comes_as_near_to_equilibrium_as_it_is_told(network, solver):
    net, _, generic = network
    base = gallery.sphere(500).points
    objective = Objective(net, rest_of(net.springs, net.springs.rest[0], base, generic.direction_stiffness))
    start = base + 1e-3 * np.where(net.fixed[:, None], 0, RNG.normal(size=base.shape))
    for tolerance in (1e-4, 1e-6, 1e-8):
        found = solver(objective, start, tolerance=tolerance)
        assert found.converged
        assert np.linalg.norm(found.x - base, axis=1).max() < 3 * tolerance


def test_too_few_iterations_are_reported(network):
    net, x, r = network
    for outcome in (
        lbfgs(Objective(net, r), x, tolerance=1e-12, iterations=2),
        newton(Objective(net, r), x, tolerance=1e-12, iterations=1),
        paper_newton(Objective(net, r), x, tolerance=1e-12, iterations=1),
    ):
        assert not outcome.converged
        assert "stopped after" in outcome.message


def test_rotation_vectors_go_on_past_a_half_turn():
    shapes = gallery.bar(900, twists=(270,))
    base, twisted = shapes.base, shapes.named("twisted 270")
    q = vertex_rotations(base.points, twisted.points, base.edges, np.ones(len(base.edges)))
    turns = rotation_vectors(q, base.edges, np.zeros(len(q), dtype=bool))
    along = base.points[:, 0]
    slope = np.polyfit(along, turns[:, 0], 1)[0] * np.ptp(along)
    assert abs(np.degrees(slope)) == pytest.approx(270, abs=5)
    assert np.abs(np.diff(turns[np.argsort(along), 0])).max() < np.pi / 2


def test_parts_keep_their_rigid_motion():
    points = RNG.normal(size=(30, 3))
    R = rotations.matrix(rotations.from_axis_angle([1.0, 2, 3], 2.5))
    turned = np.stack([np.tile(rotations.IDENTITY, (30, 1)), np.tile(rotations.quaternion(R), (30, 1))])
    shapes = np.stack([points, points @ R.T + [4, 5, 6]])
    frames = part_frames(shapes, np.zeros(30, np.int64), np.zeros(30, dtype=bool), turned)
    assert np.allclose(frames.to_base(points @ R.T + [4, 5, 6], 1), points)
    assert np.allclose(frames.placed(points, np.array([0.0, 1.0])), points @ R.T + [4, 5, 6])


def test_limbs_do_not_say_how_a_body_turned():
    body = rotations.from_axis_angle([1.0, 2, 3], 2.5)
    limbs = rotations.multiply(body, rotations.from_axis_angle(RNG.normal(size=(40, 3)), np.full(40, 2.0)))
    median = common_rotation(np.concatenate([np.tile(body, (60, 1)), limbs]))
    assert 2 * np.arccos(min(1.0, abs(median @ body))) < np.radians(3)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("which", [0, 1])
def test_at_its_own_weight_a_shape_comes_back(rigs, name, which):
    rig = rigs(name)
    weights = np.eye(2)[which]
    pose = rig.solve(weights)
    assert pose.converged
    assert np.abs(pose.points - rig.shapes.points[which]).max() < 1e-6 * rig.shapes.base.diagonal
    force = np.empty((rig.body.network.count, 3))
    energy = rig.body.network.energy(rig.body.points[which], rig.body.rest(weights), force)
    assert energy < 1e-20
    assert np.abs(force).max() < 1e-9


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("t", [0.25, 0.5, 0.75])
def test_less_distorted_than_linear_blending(rigs, name, t):
    rig = rigs(name)
    weights = [1 - t, t]
    blended = rig.solve(weights).points
    linear = rig.shapes.mixed([weights]).points[0]

    def distortion(points):
        return np.abs(np.log(quality.edge_distortion(rig.shapes, points, weights=weights))).mean()

    assert distortion(blended) < distortion(linear)
    if rig.shapes.base.is_watertight:
        kept, lost = (
            abs(1 - quality.volume_ratio(rig.shapes, points, weights=weights)) for points in (blended, linear)
        )
        assert kept < lost


@pytest.mark.parametrize("t", np.linspace(0, 1, 9))
def test_a_bar_bent_by_180_degrees_keeps_its_length_and_volume(rigs, t):
    rig = rigs("bar bent")
    base = rig.shapes.base
    along = base.points[:, 0]
    stations = np.round((along - along.min()) / np.ptp(along) * 12).astype(int)

    def length(points):
        centres = np.stack([points[stations == s].mean(axis=0) for s in range(13)])
        return np.linalg.norm(np.diff(centres, axis=0), axis=1).sum()

    points = rig.solve([1 - t, t]).points
    expected = (1 - t) * length(rig.shapes.points[0]) + t * length(rig.shapes.points[1])
    assert length(points) == pytest.approx(expected, rel=0.01)
    assert quality.volume_ratio(base, points) == pytest.approx(1, abs=0.03)


def test_the_same_weights_give_the_same_shape_in_any_order(rigs):
    rig = rigs("tube")
    forward = [rig.solve([1 - t, t]).points for t in (0.2, 0.5, 0.9)]
    backward = [rig.solve([1 - t, t]).points for t in (0.9, 0.5, 0.2)]
    for a, b in zip(forward, backward[::-1], strict=True):
        assert np.array_equal(a, b)


def test_no_vertex_pops(rigs):
    clip = rigs("tube").animate(steps=36)
    assert quality.popping(clip).worst < 3


def test_scale_and_place_do_not_matter(rigs):
    rig = rigs("tube")
    here = rig.solve(HALF).points
    R = rotations.matrix(rotations.from_axis_angle([3.0, 1, 2], 1.1))
    moved = [mesh.with_points(1000 * mesh.points @ R.T + [5e3, -2e3, 1e3]) for mesh in rig.shapes]
    there = Blendshapes(moved, interior="none", anchor="none").solve(HALF).points
    plain = Blendshapes(list(rig.shapes), interior="none", anchor="none").solve(HALF).points
    assert np.abs(there - (1000 * plain @ R.T + [5e3, -2e3, 1e3])).max() < 1e-6 * 1000 * rig.shapes.base.diagonal
    assert here.shape == plain.shape


def test_the_base_takes_up_what_the_sliders_leave(rigs):
    rig = rigs("bar bent")
    by_name = rig.solve({"bent 180": 0.3}).points
    assert np.array_equal(by_name, rig.solve([0.7, 0.3]).points)
    assert np.array_equal(by_name, rig.solve([0.3]).points)
    assert np.array_equal(by_name, rig.solve([0.0, 0.3]).points)
    assert np.isfinite(rig.solve({"bent 180": 1.2}).points).all()


def test_static_and_pinned_vertices():
    shapes = pair(gallery.tentacle(900), "S")
    rig = Blendshapes(shapes, interior="none")
    still = np.abs(shapes.points[1] - shapes.points[0]).max(axis=1) == 0
    assert still.sum() > 3
    assert np.abs(rig.solve(HALF).points - shapes.base.points)[still].max() < 1e-12
    tip = int(np.argmax(shapes.base.points[:, 1]))
    pinned = Blendshapes(shapes, pins=[tip], interior="none").solve(HALF).points[tip]
    assert np.allclose(pinned, shapes.points[:, tip].mean(axis=0))


def test_split_vertices_stay_together():
    bar = pair(gallery.bar(600), "bent 90")
    base = bar.base
    corners = base.triangles.ravel()
    loose = [Mesh(mesh.points[corners], np.arange(len(corners)).reshape(-1, 3)) for mesh in bar]
    split = Blendshapes(loose, interior="none").solve(HALF).points
    weld = loose[0].welded()
    assert np.abs(split - weld.restore(split[weld.kept])).max() == 0
    assert quality.volume_ratio(base, weld.restore(split[weld.kept])[np.unique(corners, return_index=True)[1]]) > 0.9


def test_identical_shapes_give_that_shape():
    base = gallery.sphere(500)
    pose = Blendshapes([base, base]).solve(HALF)
    assert pose.converged
    assert np.abs(pose.points - base.points).max() < 1e-12


def test_separate_parts_each_keep_their_shape():
    ball = gallery.sphere(500)
    n = len(ball.points)
    faces = [*ball.polygons, *(polygon + n for polygon in ball.polygons)]
    R = rotations.matrix(rotations.from_axis_angle([0.0, 1, 0], 2.0))
    base = Mesh(np.concatenate([ball.points, ball.points + np.array([5, 0, 0])]), faces)
    target = base.with_points(np.concatenate([ball.points @ R.T, ball.points + np.array([5, 3, 0])]))
    pose = Blendshapes([base, target]).solve(HALF)
    assert np.allclose(np.linalg.norm(pose.points[:n], axis=1), np.linalg.norm(ball.points, axis=1))
    assert np.allclose(pose.points[n:], ball.points + np.array([5, 1.5, 0]))


def test_an_interior_lies_inside_and_has_no_inverted_tetrahedron():
    mesh = gallery.sphere(1500)
    filling = lattice_interior(mesh)
    assert len(filling.points) > 50
    assert np.linalg.norm(filling.points, axis=1).max() < 1
    points = np.concatenate([mesh.points, filling.points])
    a, b, c, d = (points[filling.tets[:, k]] for k in range(4))
    volumes = np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) / 6
    assert volumes.min() > 0
    assert volumes.sum() == pytest.approx(mesh.volume, rel=0.02)


def test_what_is_solid():
    assert is_solid(gallery.sphere(500))
    assert not is_solid(gallery.face(500).base)
    ball = gallery.sphere(2000)
    holed = Mesh(ball.points, ball.polygons.take(np.arange(len(ball.polygons)) > 3))
    assert is_solid(holed)
    assert not is_solid(
        Mesh(ball.points, ball.polygons.take(ball.points[ball.polygons.corners[ball.polygons.offsets[:-1]], 1] > 0))
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Blendshapes([gallery.sphere(500)]), "got one shape"),
        (lambda: Blendshapes([gallery.sphere(500), gallery.sphere(900)]), "does not match"),
        (lambda: Blendshapes([gallery.sphere(500)] * 2, pins=[99999]), "pins name vertex 99999"),
        (lambda: Blendshapes([gallery.sphere(500)] * 2, stiffness={"soft": 1.0}), 'stiffness names "soft"'),
        (lambda: Blendshapes([gallery.sphere(500)] * 2, stiffness={"bending": -1.0}), "positive"),
        (lambda: Blendshapes([gallery.sphere(500)] * 2).solve([1, 2, 3]), "weights have shape"),
        (lambda: Blendshapes([gallery.sphere(500)] * 2).solve([np.nan, 1]), "finite"),
        (lambda: Blendshapes([gallery.sphere(500)] * 2).solve({"smile": 1}), 'no shape is called "smile"'),
        (lambda: Blendshapes([gallery.sphere(500)] * 2).solve(HALF, accuracy=2), "accuracy is 2"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_the_former_name_of_static_vertices_warns():
    rig = Blendshapes(pair(gallery.bar(500), "bent 90"), interior="none")
    with pytest.warns(DeprecationWarning, match=r"is now Blendshapes\.static"):
        assert rig.still is rig.static


# Rest vectors


def dihedral_error(rig, body, w):
    """99th percentile of the dihedral angles' deviation from the blended ones, of a body's guess."""
    points = rig.statics.surface(body.guess(w), w)
    deviation = quality.dihedral_deviation(rig.shapes, points, weights=w)
    return float(np.quantile(np.abs(deviation), 0.99))


@pytest.mark.parametrize(
    ("name", "target"), every(3, [("gingerbread", "bowing"), ("hand", "fist"), ("dinosaur", "running")])
)
def test_triangles_bend_to_the_blended_dihedral_angles(name, target):
    """The rotations of vertices alone blend what is around them linearly, and crease it."""
    shapes = getattr(gallery, name)(900)
    rig = Blendshapes([shapes.base, shapes.named(target)])
    by_vertices = replace(rig.body, triangles=np.zeros((0, 3), np.int64), all_rotvecs=rig.body.rotvecs.copy())
    w = np.array([0.5, 0.5])
    assert dihedral_error(rig, rig.body, w) < 0.9 * dihedral_error(rig, by_vertices, w)


def test_rest_vectors_are_those_of_a_shape_at_its_own_weight():
    for shapes, options in ((gallery.hand(700), {}), (gallery.face(500), {}), (gallery.bar(500), {"interior": "none"})):
        rig = Blendshapes(shapes, **options)
        i, j = rig.springs.edges.T
        for s, w in enumerate(np.eye(len(rig.shapes))):
            x = rig.body.points[s]
            np.testing.assert_allclose(rig.body.vectors(w), x[i] - x[j], atol=1e-12 * rig.body.diagonal)


def test_pieces_follow_triangles_and_paths():
    """A strip of two triangles: sides by their triangles, the spring across it by the two paths around."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.5]], dtype=float)
    triangles = np.array([[0, 1, 2], [2, 1, 3]])
    edges = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]])
    springs = make_springs(points[None], {"structure": edges, "bending": np.array([[0, 3]])}, diagonal=1.0)
    pieces = make_pieces(springs, triangles, 4)
    start, columns, values = pieces.gather
    gather = sp.csr_array((values, columns, start), shape=(6, 6))  # three sides of each triangle
    by_piece = points[pieces.edges[:, 0]] - points[pieces.edges[:, 1]]
    gathered = kernels.gathered(pieces.gather, by_piece)
    np.testing.assert_allclose(gathered, gather @ by_piece, atol=1e-15)
    np.testing.assert_allclose(gathered, points[springs.edges[:, 0]] - points[springs.edges[:, 1]], atol=1e-15)
    weights = gather.toarray()
    middle = int(np.flatnonzero((springs.edges == [1, 2]).all(axis=1))[0])
    assert sorted(weights[middle][weights[middle] > 0]) == [0.5, 0.5]
    assert np.abs(weights[5]).sum() == 2.0  # four sides, half each

"""Skeletons from shapes alone, and joints by clicks."""

import itertools

import numpy as np
import pytest

import pliant
from pliant import InputError, Mesh, PliantWarning, Skeleton, gallery
from pliant.geometry.skeletons.clicks import click_joint
from pliant.geometry.skeletons.curve_skeleton import extract_skeleton
from pliant.geometry.skeletons.limbs import root_of
from pliant.geometry.skeletons.voxels import Solid, neighbours, peak_tree, shortest_paths, voxelised
from pliant.geometry.spatial import SurfaceTree

QUICK = 15_000
"""Voxels: a part of the default."""


def box(*size: float, centre=(0.0, 0, 0)) -> Mesh:
    cube = gallery.box(600)
    places = cube.points - (cube.points.min(axis=0) + cube.points.max(axis=0)) / 2
    return Mesh(places / np.ptp(places, axis=0) * size + centre, cube.triangles)


def together(*meshes: Mesh) -> Mesh:
    starts = np.cumsum([0, *(len(mesh.points) for mesh in meshes)])
    triangles = [mesh.triangles + start for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([mesh.points for mesh in meshes]), np.concatenate(triangles))


def star(limbs: int, *, length: float = 2.0, width: float = 0.4) -> Mesh:
    """Limbs that stick out of a ball, in one plane: parts that overlap."""
    ball = gallery.sphere(800)
    ball = Mesh(ball.points / np.abs(ball.points).max() * 0.6, ball.triangles)
    parts = [ball]
    for k in range(limbs):
        arm = box(length, width, width, centre=(length / 2, 0, 0))
        c, s = np.cos(2 * np.pi * k / limbs), np.sin(2 * np.pi * k / limbs)
        parts.append(Mesh(arm.points @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]), arm.triangles))
    return together(*parts)


def ends_of(skeleton: Skeleton) -> np.ndarray:
    return skeleton.rest_pose().world()[0][np.setdiff1d(np.arange(len(skeleton)), skeleton.parents)]


def bones_stay_inside(skeleton: Skeleton, mesh: Mesh) -> bool:
    places = skeleton.rest_pose().world()[0]
    starts, stops = places[skeleton.bones[:, 0]], places[skeleton.bones[:, 1]]
    steps = np.linspace(0, 1, 23)[:, None, None]
    tree = SurfaceTree(mesh)
    return bool((tree.winding((starts + steps * (stops - starts)).reshape(-1, 3)) * tree.facing > 0.5).all())


# Kernels against plain Python


@pytest.fixture(scope="module")
def lattice():
    """Voxels of a crooked shape, small."""
    rng = np.random.default_rng(2)
    inside = np.zeros((9, 8, 7), dtype=bool)
    inside[1:-1, 1:-1, 1:-1] = rng.random((7, 6, 5)) < 0.55
    cells = np.argwhere(inside)
    number = np.full(inside.shape, -1)
    number[tuple(cells.T)] = np.arange(len(cells))
    return cells, number


def test_neighbours(lattice):
    cells, number = lattice
    table, length = neighbours(cells, number)
    for k in range(len(cells)):
        beside = [j for j in range(len(cells)) if _can_step(cells[k], cells[j], number)]
        np.testing.assert_array_equal(np.sort(table[k][table[k] >= 0]), beside)
        there = table[k] >= 0
        np.testing.assert_allclose(np.linalg.norm(cells[table[k][there]] - cells[k], axis=1), length[there])


def _can_step(start, end, number) -> bool:
    """Whether two voxels are neighbours that can be gone between in single steps within their common box."""
    way = end - start
    if np.abs(way).max() != 1:
        return False
    axes = np.flatnonzero(way)
    for order in itertools.permutations(axes):
        at, inside = start.copy(), True
        for axis in order:
            at[axis] += way[axis]
            inside = inside and number[tuple(at)] >= 0
        if inside:
            return True
    return False


def test_shortest_paths(lattice):
    from scipy.sparse.csgraph import dijkstra

    cells, number = lattice
    table, length = neighbours(cells, number)
    cost = np.random.default_rng(0).uniform(0.5, 3, len(cells))
    graph = np.zeros((len(cells), len(cells)))
    for k in range(len(cells)):
        for j, other in enumerate(table[k]):
            if other >= 0:
                graph[k, other] = length[j] * (cost[k] + cost[other]) / 2
    reached, before = shortest_paths(table, length, cost, np.array([3, 40]))
    np.testing.assert_allclose(reached, dijkstra(graph, indices=[3, 40]).min(axis=0))
    inner = np.flatnonzero(before >= 0)
    np.testing.assert_allclose(reached[inner], reached[before[inner]] + graph[before[inner], inner])
    assert set(np.flatnonzero(np.isfinite(reached) & (before < 0))) == {3, 40}


def test_peaks(lattice):
    """Arcs hold what is connected above a level: the parts above each arc's end, by flooding."""
    cells, number = lattice
    table, _ = neighbours(cells, number)
    height = np.random.default_rng(1).random(len(cells))
    arc, into, peak, end = peak_tree(table, height, np.argsort(-height), 0.25)
    for one in range(len(into)):
        if end[one] < 0:
            continue
        members = [k for k in range(len(cells)) if one in _down(arc[k], into)]
        level = height[end[one]]
        assert sorted(members) == sorted(_flood(int(peak[one]), table, height, level))
        assert height[peak[one]] == max(height[members])


def _down(arc: int, into: np.ndarray) -> list[int]:
    way = [arc]
    while into[way[-1]] != way[-1]:
        way.append(int(into[way[-1]]))
    return way


def _flood(start: int, table: np.ndarray, height: np.ndarray, level: float) -> set[int]:
    found, left = {start}, [start]
    while left:
        fresh = {int(k) for k in table[left.pop()] if k >= 0 and height[k] > level} - found
        found |= fresh
        left += fresh
    return found


# Skeletons


@pytest.mark.parametrize("limbs", [3, 5])
def test_a_star_has_its_limbs(limbs):
    mesh = star(limbs)
    skeleton = extract_skeleton(mesh, voxels=QUICK)
    places = skeleton.rest_pose().world()[0]
    assert (skeleton.parents >= 0).sum() == len(skeleton) - 1  # one tree
    assert skeleton.names[0] == "root"
    assert np.linalg.norm(places[0]) < 0.2
    tips = ends_of(skeleton)
    assert len(tips) == limbs
    assert bones_stay_inside(skeleton, mesh)
    wanted = 2.0 * np.stack(
        [np.cos(2 * np.pi * np.arange(limbs) / limbs), np.sin(2 * np.pi * np.arange(limbs) / limbs)], 1
    )
    apart = np.linalg.norm(tips[:, None, :2] - wanted, axis=2)
    assert (apart.min(axis=0) < 0.3).all()
    radial = np.linalg.norm(places[:, :2], axis=1) > 0.7
    along = places[radial, :2] / np.linalg.norm(places[radial, :2], axis=1, keepdims=True)
    off = np.sqrt(np.maximum(0, 1 - (along @ (wanted / 2).T).max(axis=1) ** 2)) * np.linalg.norm(
        places[radial, :2], axis=1
    )
    assert off.max() < 0.06  # centred, where limbs are 0.4 wide
    assert np.abs(places[:, 2]).max() < 0.06


@pytest.mark.parametrize("length", [1.0, 2.5])
def test_limbs_of_twice_their_width_are_found(length):
    width = length / 2
    body = box(4, 2, 2)
    mesh = together(body, box(width, length + 0.5, width, centre=(1, 1 + length / 2 - 0.25, 0)))
    tips = ends_of(extract_skeleton(mesh, voxels=60_000))
    assert np.linalg.norm(tips - [1, 1 + length, 0], axis=1).min() < 0.6 * width


def test_a_thin_tail_is_found():
    mesh = together(box(4, 2, 2), box(3, 0.12, 0.12, centre=(3.4, 0, 0)))
    skeleton = extract_skeleton(mesh, voxels=100_000)
    assert np.linalg.norm(ends_of(skeleton) - [4.9, 0, 0], axis=1).min() < 0.15
    assert bones_stay_inside(skeleton, mesh)


@pytest.mark.parametrize(("shape", "joints"), [("ball", 2), ("bar", 3), ("plate", 6)])
def test_blobs_get_few_bones(shape, joints):
    mesh = {"ball": gallery.sphere(600), "bar": box(1, 1, 4), "plate": box(1, 0.08, 1.2)}[shape]
    skeleton = extract_skeleton(mesh, voxels=QUICK)
    assert 2 <= len(skeleton) <= joints
    assert bones_stay_inside(skeleton, mesh)


def test_a_bent_limb_has_a_joint_at_the_bend():
    mesh = together(box(3, 0.5, 0.5), box(0.5, 2.5, 0.5, centre=(1.25, 1.0, 0)))
    places = extract_skeleton(mesh, voxels=QUICK).rest_pose().world()[0]
    assert np.linalg.norm(places - [1.25, 0, 0], axis=1).min() < 0.35


def test_a_ring_is_cut_open():
    angle, around = np.meshgrid(np.arange(48), np.arange(16), indexing="ij")
    a, b = 2 * np.pi * angle / 48, 2 * np.pi * around / 16
    points = np.stack([(1 + 0.2 * np.cos(b)) * np.cos(a), (1 + 0.2 * np.cos(b)) * np.sin(a), 0.2 * np.sin(b)], -1)

    def corner(i, j):
        return (i % 48) * 16 + j % 16

    faces = np.stack(
        [corner(angle, around), corner(angle + 1, around), corner(angle + 1, around + 1), corner(angle, around + 1)], -1
    )
    skeleton = extract_skeleton(Mesh(points.reshape(-1, 3), faces.reshape(-1, 4)), voxels=QUICK)
    places = skeleton.rest_pose().world()[0]
    turns = np.sort(np.degrees(np.arctan2(places[:, 1], places[:, 0])))
    gaps = np.diff(np.append(turns, turns[0] + 360))
    assert gaps.max() < 110  # all round, but for where it is cut


@pytest.mark.parametrize("unit", [1e-3, 1000.0])
def test_units_and_place_do_not_matter(unit):
    mesh = gallery.gingerbread(1500)[0]
    elsewhere = Mesh(mesh.points * unit + 7 * unit, mesh.triangles)
    one, two = (extract_skeleton(shape, voxels=QUICK) for shape in (mesh, elsewhere))
    assert one.names == two.names
    apart = two.rest_pose().world()[0] / unit - 7 - one.rest_pose().world()[0]
    assert np.abs(apart).max() < 1e-6


def test_seams_holes_and_facing_do_not_matter():
    mesh = gallery.gingerbread(1500)[0]
    whole = extract_skeleton(mesh, voxels=QUICK)
    soup = Mesh(mesh.points[mesh.triangles].reshape(-1, 3), np.arange(3 * len(mesh.triangles)).reshape(-1, 3))
    np.testing.assert_allclose(extract_skeleton(soup, voxels=QUICK).offsets, whole.offsets, atol=1e-6)
    inwards = Mesh(mesh.points, mesh.triangles[:, ::-1])
    np.testing.assert_allclose(extract_skeleton(inwards, voxels=QUICK).offsets, whole.offsets, atol=1e-6)
    holed = Mesh(mesh.points, mesh.triangles[6:])
    assert len(ends_of(extract_skeleton(holed, voxels=QUICK))) == len(ends_of(whole)) == 5


@pytest.mark.parametrize("joints", [9, 12, 30])
def test_as_many_joints_as_asked(joints):
    mesh = gallery.gingerbread(1500)[0]
    skeleton = extract_skeleton(mesh, joints=joints, voxels=QUICK)
    assert len(skeleton) == joints
    assert bones_stay_inside(skeleton, mesh)


def test_names_count_limbs_outwards():
    skeleton = extract_skeleton(star(4), voxels=QUICK)
    for name, parent in zip(skeleton.names[1:], skeleton.parents[1:], strict=True):
        limb, number = name.removeprefix("limb").split(".")
        before = "root" if number == "1" else f"limb{limb}.{int(number) - 1}"
        assert skeleton.names[parent] == before


def test_parts_that_lie_apart_are_joined_with_a_note():
    with pytest.warns(PliantWarning, match="leave the surface"):
        skeleton = extract_skeleton(together(box(1, 1, 3), box(1, 1, 3, centre=(3, 0, 0))), voxels=QUICK)
    assert (skeleton.parents >= 0).sum() == len(skeleton) - 1
    places = skeleton.rest_pose().world()[0]
    assert places[:, 0].max() - places[:, 0].min() > 2


def test_overlapping_parts_are_one_solid():
    solid = Solid.of(together(box(2, 2, 6), box(6, 1, 1)))
    centre = np.zeros((1, 3))
    assert solid.tree.closest(centre).distance[0] == pytest.approx(0.5 / solid.size)
    assert solid.skin.closest(centre).distance[0] > 0.7 / solid.size  # those that lie inside as a whole are gone
    through = np.array([[-2.9, 0, 0]]) / solid.size
    assert solid.contains(through, -through)[0]
    assert not solid.contains(through, np.array([[0, 0, 0.9 * 3.5]]) / solid.size)[0]
    voxels = voxelised(solid, count=20_000)
    assert len(voxels.cells) * (voxels.cell * solid.size) ** 3 == pytest.approx(24 + 4, rel=0.02)


@pytest.mark.parametrize(
    ("mesh", "words"),
    [
        (Mesh(np.zeros((0, 3)), []), "has no faces"),
        (Mesh(np.zeros((3, 3)), [[0, 1, 2]]), "at one position"),
        (Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]), "encloses no volume"),
        ("face", "the mesh is open|encloses no volume"),
        (pliant.PointCloud(np.eye(3)), "expected a Mesh"),
    ],
)
def test_shapes_without_an_inside(mesh, words):
    with pytest.raises(InputError, match=words) as refused:
        extract_skeleton(gallery.face(1000)[0] if mesh == "face" else mesh, voxels=QUICK)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("options", [{"joints": 1}, {"joints": 2.5}, {"joints": 10**6}, {"shortest_limb": 0.0}])
def test_options_that_make_no_sense(options):
    with pytest.raises(InputError, match="expected"):
        extract_skeleton(gallery.box(500), **options)


# Real shapes

REAL = {
    "models/dino/dino.off": (9, 16),
    "models/armadillo/arma2.obj": (9, 20),
    "models/dino/Trex.glb": (7, 20),
    "models/fox/Fox.glb": (6, 9),
    "models/cheburashka/cheburashka.off": (6, 12),
    "models/knight/knight.ply": (5, 12),
    "models/elephant/elephant.obj": (7, 12),
    "models/arm/arm.obj": (6, 8),
    "models/hand/hand.mesh": (6, 7),
    "models/octopus/octopus-low.mesh": (8, 9),
    "poses/cat/cat-ref.obj": (6, 10),
    "poses/horse/horse-ref.obj": (6, 10),
}
"""How many ends there are: at least those of the large limbs, at most with fingers, toes and ears."""


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_shapes(data, name):
    mesh = pliant.read_mesh(data / name)
    skeleton = extract_skeleton(mesh)
    least, most = REAL[name]
    assert least <= len(ends_of(skeleton)) <= most
    assert bones_stay_inside(skeleton, mesh)


OUTSIDE = {"elephant": 2, "Trex": 2, "Velociraptor": 2, "Fox": 2}
"""Joints outside their mesh: two just outside the skin, and rigs' roots, which sit on the ground."""


@pytest.mark.data
@pytest.mark.parametrize(
    ("mesh", "bones"),
    [
        ("hand/hand.mesh", "hand/hand.tgf"),
        ("elephant/elephant.obj", "elephant/elephant.tgf"),
        ("arm/arm.obj", "arm/arm.tgf"),
        ("cheburashka/cheburashka.off", "cheburashka/cheburashka.tgf"),
        ("knight/knight.ply", "knight/knight.tgf"),
        ("armadillo/arma2.obj", "armadillo/skeleton2.out"),
        ("dino/Trex.glb", "dino/Trex.glb"),
        ("dino/Velociraptor.glb", "dino/Velociraptor.glb"),
        ("fox/Fox.glb", "fox/Fox.glb"),
    ],
)
def test_skeletons_from_files_lie_in_their_meshes(data, mesh, bones):
    shape = pliant.read_mesh(data / "models" / mesh)
    places = pliant.read_skeleton(data / "models" / bones).rest_pose().world()[0]
    assert (~SurfaceTree(shape).inside(places)).sum() == OUTSIDE.get(mesh.split("/")[1].split(".")[0], 0)


# Clicks


@pytest.fixture(scope="module")
def two_boxes() -> SurfaceTree:
    return SurfaceTree(together(box(2, 2, 2), box(2, 2, 2, centre=(5, 0, 0))))


@pytest.mark.parametrize(
    ("origin", "direction", "place"),
    [
        ([0.3, 0.2, 9], [0, 0, -1], [0.3, 0.2, 0]),
        ([0.3, 0.2, 9e6], [0, 0, -7], [0.3, 0.2, 0]),
        ([-9, 0.1, 0.1], [1, 0, 0], [0, 0.1, 0.1]),  # the first box, not the second
        ([0.25, 0.2, 0.1], [1, 0, 0], [5, 0.2, 0.1]),  # from inside the first: what it meets behind
        ([2.5, 0, 0], [1, 0, 0], [5, 0, 0]),
        ([0.3, 3, 9], [0, 0, -1], None),  # misses
        ([0.3, 0.2, 9], [0, 0, 1], None),  # behind the camera
        ([0.25, 0.2, 0.1], [-1, 0, 0], None),  # one hit only
        ([1.0, 0.2, 9], [0, 0, -1], None),  # along a side
    ],
)
def test_click(two_boxes, origin, direction, place):
    found = click_joint(two_boxes, origin, direction)
    if place is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, place, atol=1e-6)


def test_click_on_a_corner_does_not_fail(two_boxes):
    found = click_joint(two_boxes, [9, 9, 9], [-1, -1, -1])  # through a corner and the centre
    np.testing.assert_allclose(found, 0, atol=1e-6)
    assert click_joint(two_boxes, [-1, 1, 9], [0, 0, -1]) is None  # along an edge


def test_clicks_make_a_skeleton():
    arm = box(4, 1, 1)
    points = [click_joint(arm, [x, 0.1, 8], [0, 0, -1]) for x in (-1.5, 0, 1.5)]
    skeleton = Skeleton.from_positions(points, [-1, 0, 1])
    np.testing.assert_allclose(skeleton.rest_pose().world()[0][:, 2], 0, atol=1e-9)


@pytest.mark.parametrize(
    ("origin", "direction"),
    [([0, 0], [0, 0, 1]), ([0, 0, 9], [0, 0, 0]), ([0, 0, np.nan], [0, 0, 1]), ([0, 0, 9], "up")],
)
def test_rays_that_make_no_sense(two_boxes, origin, direction):
    with pytest.raises(InputError, match="expected"):
        click_joint(two_boxes, origin, direction)


def test_a_spiky_back_has_no_limb_for_every_spike():
    arms = [(2.0, 0.0), (0.0, 2.0), (-2.0, 0.0), (0.0, -2.0)]
    places = [(x * t, y * t) for x, y in arms for t in (0.5, 0.8)]
    spikes = [box(0.14, 0.14, 0.7, centre=(x, y, sign * 0.45)) for x, y in places for sign in (1, -1)]
    mesh = together(star(4), *spikes)
    skeleton = extract_skeleton(mesh, voxels=QUICK)
    assert len(skeleton) <= 60
    for x, y in arms:
        assert np.linalg.norm(skeleton.rest_pose().world()[0] - (x, y, 0), axis=1).min() < 0.5


def test_the_root_of_a_thin_ring_is_as_deep_as_any():
    bracelet = tube_between(1.0, 0.97, 0.3)
    voxels = voxelised(Solid.of(bracelet), count=20_000)
    assert voxels.depth[root_of(voxels)] > 0.5 * voxels.depth.max()


def tube_between(outer: float, inner: float, height: float, count: int = 96) -> Mesh:
    """A ring about y with a rectangular section."""
    angle = 2 * np.pi * np.arange(count) / count
    section = [(outer, 0), (outer, height), (inner, height), (inner, 0)]
    points = np.concatenate(
        [np.stack([r * np.cos(angle), np.full(count, y), r * np.sin(angle)], axis=1) for r, y in section]
    )
    k = np.arange(count)
    quads = [
        np.stack([a * count + k, b * count + k, b * count + (k + 1) % count, a * count + (k + 1) % count], axis=1)
        for a, b in ((0, 1), (1, 2), (2, 3), (3, 0))
    ]
    return Mesh(points, np.concatenate(quads).tolist())

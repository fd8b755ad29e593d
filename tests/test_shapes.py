"""Meshes, tetrahedra, clouds, shapes and animations as values."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from pliant import Animation, Labels, Layer, Mesh, PointCloud, Pose, Shapes, TetMesh, World
from pliant.core.errors import InputError
from pliant.core.shapes import bounding_diagonal

CORNERS = np.array([[x, y, z] for x in (0.0, 2) for y in (0.0, 3) for z in (0.0, 4)])
SIDES = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


def box() -> Mesh:
    return Mesh(CORNERS, SIDES)


def seam_box() -> Mesh:
    """The box as a glTF exporter writes it: every side has vertices of its own, with UVs and a colour."""
    index = np.arange(24)
    uvs = Layer(np.random.default_rng(0).random((24, 2)), index)
    color = np.random.default_rng(1).random((8, 3))[SIDES.ravel()]
    return Mesh(
        CORNERS[SIDES.ravel()],
        index.reshape(6, 4),
        uvs=uvs,
        labels={"material": Labels(("red", "blue"), np.array([0, 0, 0, 1, 1, 1]))},
        attributes={"color": color},
        vertex_groups={"top": (CORNERS[SIDES.ravel()][:, 2] > 1).astype(float)},
    )


def sphere(rings: int, *, radius: float = 1.0) -> Mesh:
    """A UV sphere whose pole quads repeat the pole, as many exporters write it."""
    theta = np.linspace(0, np.pi, rings + 1)
    phi = np.linspace(0, 2 * np.pi, 2 * rings, endpoint=False)
    grid = np.stack(
        [np.outer(np.sin(theta), np.cos(phi)), np.outer(np.sin(theta), np.sin(phi)), np.outer(np.cos(theta), phi**0)],
        axis=-1,
    )
    grid[0], grid[-1] = [0, 0, 1], [0, 0, -1]
    number = np.arange(grid[..., 0].size).reshape(grid.shape[:2])
    right = np.roll(number, -1, axis=1)
    quads = np.stack([number[:-1], number[1:], right[1:], right[:-1]], axis=-1).reshape(-1, 4)
    return Mesh(radius * grid.reshape(-1, 3), quads)


def two_tets(*, inverted: bool = False) -> TetMesh:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    tets = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    tets = np.where((TetMesh(points, tets).volumes < 0)[:, None], tets[:, [1, 0, 2, 3]], tets)
    return TetMesh(points, tets[:, [1, 0, 2, 3]] if inverted else tets)


# Measures


def test_a_box_has_the_volume_and_area_of_a_box() -> None:
    mesh = box()
    assert mesh.volume == pytest.approx(24)
    assert mesh.area == pytest.approx(2 * (6 + 8 + 12))
    assert mesh.diagonal == pytest.approx(np.sqrt(4 + 9 + 16))
    assert mesh.is_watertight
    assert len(mesh.edges) == 12
    assert not mesh.boundary_vertices.any()
    inside_out = Mesh(CORNERS, SIDES[:, ::-1])
    assert inside_out.volume == pytest.approx(-24)


def test_volume_does_not_depend_on_the_place() -> None:
    assert Mesh(CORNERS + 1e6, SIDES).volume == pytest.approx(24, rel=1e-9)


def test_a_sphere_tends_to_its_closed_form() -> None:
    radius = 1.7
    exact_volume, exact_area = 4 / 3 * np.pi * radius**3, 4 * np.pi * radius**2
    for measure, exact in (("volume", exact_volume), ("area", exact_area)):
        error = [abs(getattr(sphere(n, radius=radius), measure) - exact) / exact for n in (16, 32)]
        assert error[1] < 0.01
        assert error[0] / error[1] == pytest.approx(4, rel=0.1)  # second order


def test_scaling() -> None:
    mesh = box().scaled(2)
    assert mesh.volume == pytest.approx(24 * 8)
    for factor in (0, -1, np.nan, np.inf):
        with pytest.raises(InputError, match="expected a positive number"):
            box().scaled(factor)


def test_parts_and_boundary() -> None:
    mesh = Mesh(np.arange(21.0).reshape(7, 3), [[0, 1, 2], [4, 5, 6]])
    assert mesh.parts.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert mesh.boundary_vertices.tolist() == [True, True, True, False, True, True, True]
    assert not mesh.is_watertight


def test_an_empty_mesh() -> None:
    mesh = Mesh(np.zeros((0, 3)), [])
    assert (mesh.volume, mesh.area, mesh.diagonal) == (0, 0, 0)
    assert not mesh.is_watertight
    assert mesh.welded().mesh.points.shape == (0, 3)
    assert bounding_diagonal(np.zeros((0, 3))) == 0


# What is refused


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Mesh([[0, 0, 0], [0, np.nan, 0]], []), r"points: point 1 is \[0.0, nan, 0.0\] \(numbered from 0\)"),
        (
            lambda: Mesh([[0, 0, np.inf], [0, 0, 0], [0, np.nan, 0]], []),
            r"from 0; 2 of 3 are not finite\)",
        ),
        (lambda: Mesh([[0, 0, np.inf]], []), "point 0 is"),
        (lambda: Mesh([0, 0, 0], []), r"points have shape \(3,\); expected \(n, 3\)"),
        (lambda: Mesh(np.zeros((4, 2)), []), r"points have shape \(4, 2\)"),
        (lambda: Mesh(CORNERS, [[0, 1, 8]]), "faces refer to point 8; there are 8 points, numbered from 0"),
        (lambda: Mesh(CORNERS, [[0, -1, 2]]), "faces refer to point -1"),
        (lambda: Mesh(CORNERS, [[0, 1]]), "face 0 has 2 corners"),
        (
            lambda: Mesh(CORNERS, SIDES, uvs=Layer(np.zeros((4, 2)), np.zeros(23, int))),
            "uvs have 23 entries; .* 24 face",
        ),
        (lambda: Mesh(CORNERS, SIDES, uvs=Layer(np.zeros((4, 2)), np.full(24, 4))), "uvs refer to entry 4 of 4"),
        (lambda: Mesh(CORNERS, SIDES, normals=Layer(np.zeros((4, 3)), np.full(24, -1))), "normals refer to entry -1"),
        (
            lambda: Mesh(CORNERS, SIDES, labels={"group": Labels(("a",), np.zeros(5, int))}),
            'labels "group" have 5 entries',
        ),
        (
            lambda: Mesh(CORNERS, SIDES, labels={"group": Labels(("a",), np.ones(6, int))}),
            'labels "group" refer to entry 1',
        ),
        (lambda: Mesh(CORNERS, SIDES, attributes={"heat": np.zeros(7)}), 'attribute "heat" has 7 rows; .* 8 points'),
        (lambda: Mesh(CORNERS, SIDES, vertex_groups={"arm": np.zeros(9)}), 'vertex group "arm" has 9 rows'),
        (lambda: Mesh("abc", SIDES), "points are 'abc'; expected numbers in rows of equal length"),
        (lambda: Mesh([[0, 0, 0], [1, 2]], []), "points are .*; expected numbers in rows of equal length"),
        (lambda: Mesh([[0, 0, None]], []), r"point 0 is \[0.0, 0.0, nan\]"),
        (
            lambda: Mesh(CORNERS, SIDES, triangles=[[0, 1, 99]], triangle_polygon=[0]),
            "triangles refer to point 99; there are 8 points",
        ),
        (
            lambda: Mesh(CORNERS, SIDES, triangles=[[0, 1, 3]], triangle_polygon=[6]),
            "triangle_polygon refer to entry 6 of 6",
        ),
        (
            lambda: Mesh(CORNERS, SIDES, triangles=[[0, 1, 3]], triangle_polygon=[0, 0]),
            "triangle_polygon have 2 entries; expected one for each of 1 triangles",
        ),
        (lambda: Mesh(CORNERS, SIDES, triangles=[[0, 1, 3]]), "only one of triangles and triangle_polygon"),
        (lambda: Mesh(CORNERS, SIDES, triangles=[0, 1, 3], triangle_polygon=[0]), r"triangles have shape \(3,\)"),
        (lambda: Mesh(CORNERS, SIDES, attributes={"heat": 1.0}), 'attribute "heat" has 1 rows'),
        (lambda: Layer(np.zeros(3), np.zeros(3, int)), r"layer values have shape \(3,\); expected \(k, d\)"),
        (lambda: Layer(np.zeros((3, 2)), [0.5]), "layer indices have shape .* of float64; expected"),
        (lambda: Labels(("a",), [[0]]), r"labels have shape \(1, 1\) of int64; expected \(m,\) whole numbers"),
        (lambda: box().with_points(CORNERS[:5]), "got 5 points; this mesh has 8"),
        (lambda: box().welded(-1), "tolerance is -1"),
        (lambda: box().welded(np.nan), "tolerance is nan"),
        (lambda: box().welded(poses=[CORNERS[:3]]), "every pose needs 8 points"),
        (lambda: TetMesh(CORNERS, [[0, 1, 2, 9]]), "tets refer to point 9"),
        (lambda: TetMesh(CORNERS, np.zeros((4, 3), int)), r"tets have shape \(4, 3\) of int64; expected \(m, 4\)"),
        (lambda: TetMesh(CORNERS, [[0.5, 1, 2, 3]]), "of float64; expected"),
        (lambda: TetMesh(CORNERS, [[0, 1, 2, 3]], [[0, 1, 8]]), "triangles refer to point 8"),
        (lambda: TetMesh(CORNERS, []).with_points(CORNERS[:2]), "this tetrahedral mesh has 8"),
        (lambda: PointCloud(CORNERS, CORNERS[:3]), '"normals" has 3 rows'),
        (lambda: PointCloud(CORNERS, attributes={"a": np.zeros(2)}), 'attribute "a" has 2 rows'),
        (lambda: PointCloud(CORNERS).with_points(CORNERS[:2]), "this cloud has 8"),
        (lambda: Animation(box(), np.zeros((2, 7, 3))), r"shape \(2, 7, 3\); expected \(frames, 8, 3\)"),
        (lambda: Animation(box(), np.zeros((0, 8, 3))), r"shape \(0, 8, 3\)"),
        (lambda: Animation(box(), CORNERS), r"shape \(8, 3\)"),
        (lambda: Animation(box(), np.stack([CORNERS, CORNERS * np.nan])), "frame 1 has NaN"),
        (lambda: Animation(box(), CORNERS[None], fps=-1), "fps is -1"),
        (lambda: Animation(box(), CORNERS[None], fps="24"), "fps is '24'; expected a positive number"),
        (lambda: Animation(box(), CORNERS[None]).resampled("24"), "fps is '24'"),
        (lambda: Animation(box(), [CORNERS] * 31).resampled(1e9), "1e[+]09 fps would take .* GiB; expected at most 8"),
        (lambda: Animation(box(), [CORNERS] * 31).resampled(1e308), "GiB; expected at most 8"),
        (lambda: Animation(box(), "abc"), "animation points are 'abc'; expected numbers"),
        (lambda: Animation(box(), CORNERS[None]).resampled(0), "fps is 0"),
        (lambda: Animation(box(), CORNERS[None]).resampled(np.nan), "fps is nan"),
        (lambda: Shapes(box(), np.zeros((2, 7, 3)), ("a", "b")), r"expected \(shapes, 8, 3\)"),
        (lambda: Shapes(box(), CORNERS[None], ("a", "b")), "2 names for 1 shapes"),
        (lambda: Shapes(box(), CORNERS[None] * np.inf, ("a",)), 'shape "a" has NaN or infinite'),
        (lambda: Shapes(box(), np.zeros((0, 8, 3)), ()), r"shapes have shape \(0, 8, 3\)"),
        (lambda: Shapes(box(), CORNERS[None] + np.eye(8, 3, -5), ("a",)), '"a", is not the base: point 5 differs'),
        (lambda: Shapes.of([]), "got no shapes"),
        (lambda: Shapes.of([box(), Mesh(CORNERS[:3], [[0, 1, 2]])], ["a"]), "1 names for 2 shapes"),
        (lambda: Shapes.of([box()]).named("smile"), 'no shape is called "smile"; there are shape 0'),
        (lambda: Shapes.of([box()]).mixed([1.0]), r"weights have shape \(1,\); expected \(frames, 1\)"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught, np.errstate(invalid="ignore"):
        call()
    assert "\n" not in str(caught.value)


MISMATCHES = {
    "7 vertices against 8": (CORNERS[:7], SIDES[:1]),
    "5 faces against 6": (CORNERS, SIDES[:5]),
    "face 5 has 3 corners against 4": (CORNERS, [*SIDES[:5].tolist(), [1, 5, 7]]),
    r"face 2 joins vertices \[1, 0, 4, 5\] against \[0, 4, 5, 1\]": (
        CORNERS,
        np.insert(np.delete(SIDES, 2, 0), 2, [1, 0, 4, 5], 0),
    ),
}


@pytest.mark.parametrize("words", MISMATCHES)
def test_a_shape_of_other_topology_is_named(words: str) -> None:
    with pytest.raises(InputError, match=f'"smile" does not match "rest": {words}'):
        Shapes.of([box(), Mesh(*MISMATCHES[words])], ["rest", "smile"])


# Values that stay put


def test_arrays_cannot_be_changed_through_the_mesh() -> None:
    mesh = box()
    for array in (mesh.points, mesh.triangles, mesh.triangle_polygon, mesh.polygons.corners, mesh.polygons.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_callers_array_stays_the_callers() -> None:
    points = CORNERS.copy()
    mesh, cloud = Mesh(points, SIDES), PointCloud(points)
    moving = mesh.with_points(points)
    points[:] = 7  # still writeable, and out of reach of the mesh
    for shape in (mesh, cloud, moving):
        np.testing.assert_array_equal(shape.points, CORNERS)


def test_moving_the_points_keeps_faces_and_triangles() -> None:
    dart = Mesh([[0, 0, 0], [4, 0, 0], [1, 1, 0], [0, 4, 0]], [[0, 1, 2, 3]])
    moved = dart.with_points(np.array([[0, 0, 0], [4, 0, 0], [4, 4, 0], [0, 4, 0]]))  # now another cut would be as good
    np.testing.assert_array_equal(moved.triangles, dart.triangles)
    assert moved.polygons is dart.polygons
    assert moved.area == pytest.approx(16)


def test_attributes_and_labels_move_along() -> None:
    mesh = seam_box()
    moved = mesh.with_points(mesh.points * 2)
    assert moved.uvs is mesh.uvs
    assert moved.labels["material"] is mesh.labels["material"]
    np.testing.assert_array_equal(moved.attributes["color"], mesh.attributes["color"])


@pytest.mark.parametrize(
    "value",
    [seam_box(), two_tets(), PointCloud(CORNERS, CORNERS), Shapes.of([box()]), Animation(box(), CORNERS[None]),
     Pose(box(), 0.1, 3, True)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_pickle(value: object) -> None:
    twin = pickle.loads(pickle.dumps(value))
    assert repr(twin).split("(")[0] == type(value).__name__
    np.testing.assert_array_equal(twin.points, value.points)


def test_a_pickled_mesh_is_whole() -> None:
    mesh = seam_box()
    assert mesh.welded().mesh.is_watertight  # fill the caches first
    twin = pickle.loads(pickle.dumps(mesh))
    assert twin.welded().mesh.volume == pytest.approx(24)
    assert twin.labels["material"].names == ("red", "blue")
    np.testing.assert_array_equal(twin.uvs.at_corners, mesh.uvs.at_corners)


# Layers


def test_a_layer_per_vertex() -> None:
    layer = Layer(np.array([[1.0], [2]]), np.array([0, 1, 0, 1]))
    assert layer.per_vertex(np.array([0, 2, 0, 2]), 3).tolist() == [[1], [0], [2]]
    assert layer.per_vertex(np.array([0, 0, 1, 2]), 3) is None
    assert layer.at_corners.tolist() == [[1], [2], [1], [2]]


# Welding


def test_welding_a_box_split_at_its_seams() -> None:
    mesh = seam_box()
    assert not mesh.is_watertight
    weld = mesh.welded()
    assert len(weld.mesh.points) == 8
    assert weld.mesh.is_watertight
    assert weld.mesh.volume == pytest.approx(24)
    assert len(weld.mesh.polygons) == 6
    assert weld.mesh.uvs is mesh.uvs
    np.testing.assert_array_equal(weld.mesh.points[weld.index], mesh.points)
    np.testing.assert_array_equal(weld.restore(weld.mesh.points), mesh.points)
    np.testing.assert_array_equal(weld.mesh.points, mesh.points[weld.kept])
    np.testing.assert_array_equal(weld.restore(weld.mesh.attributes["color"]), mesh.attributes["color"])
    np.testing.assert_array_equal(weld.mesh.vertex_groups["top"][weld.index], mesh.vertex_groups["top"])
    clip = np.random.default_rng(0).normal(size=(5, 8, 3))
    assert weld.restore(clip).shape == (5, 24, 3)


def test_moving_the_weld_moves_the_file() -> None:
    mesh = seam_box()
    weld = mesh.welded()
    moved = mesh.with_points(weld.restore(weld.mesh.points * [1, 1, 2]))
    assert moved.welded().mesh.volume == pytest.approx(48)


def test_a_welded_mesh_is_welded() -> None:
    weld = box().welded()
    assert weld.index.tolist() == list(range(8))
    assert weld.kept.tolist() == list(range(8))


def test_closed_parts_that_touch_stay_apart() -> None:
    both = Mesh(np.concatenate([CORNERS, CORNERS + np.array([2, 0, 0])]), np.concatenate([SIDES, SIDES + 8]))
    weld = both.welded()
    assert len(weld.mesh.points) == 16
    assert weld.mesh.parts.max() == 1


def test_poses_that_separate_are_not_joined() -> None:
    halves = Mesh(CORNERS[SIDES.ravel()], np.arange(24).reshape(6, 4))
    apart = halves.points + np.repeat(np.arange(6.0), 4)[:, None]
    assert len(halves.welded(poses=[halves.points * 2]).mesh.points) == 8
    assert len(halves.welded(poses=[apart]).mesh.points) == 24


def test_tolerance_is_relative_to_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1, 1e3):
        noisy = seam_box().points + rng.normal(size=(24, 3)) * 1e-7
        mesh = Mesh(noisy * scale, np.arange(24).reshape(6, 4))
        assert len(mesh.welded().mesh.points) == 24
        assert len(mesh.welded(1e-5).mesh.points) == 8


def test_the_poles_of_a_sphere_weld_to_points() -> None:
    mesh = sphere(8)
    weld = mesh.welded()
    assert len(weld.mesh.points) == 7 * 16 + 2
    assert len(weld.mesh.polygons) == len(mesh.polygons)
    assert weld.mesh.is_watertight
    assert not weld.mesh.boundary_vertices.any()
    assert len(weld.mesh.points) - len(weld.mesh.edges) + len(weld.mesh.polygons) == 2
    assert weld.mesh.volume == pytest.approx(mesh.volume)
    sides = weld.mesh.triangles
    assert (sides != np.roll(sides, 1, axis=1)).all()
    assert len(weld.mesh.triangle_polygon) == len(sides)


# Tetrahedra


@pytest.mark.parametrize("inverted", [False, True])
def test_the_surface_of_tetrahedra_faces_outwards(inverted: bool) -> None:
    tets = two_tets(inverted=inverted)
    assert (np.sign(tets.volumes) == (-1 if inverted else 1)).all()
    surface = tets.surface
    assert surface.is_watertight
    assert len(surface.polygons) == 6
    assert surface.volume == pytest.approx(np.abs(tets.volumes).sum())


def test_signed_volumes_of_tetrahedra() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert TetMesh(points, [[0, 1, 2, 3], [1, 0, 2, 3]]).volumes == pytest.approx([1 / 6, -1 / 6])


def test_tetrahedra_of_nothing() -> None:
    tets = TetMesh(CORNERS, [])
    assert tets.tets.shape == (0, 4)
    assert len(tets.surface.polygons) == 0
    assert tets.with_points(CORNERS * 2).diagonal == pytest.approx(2 * np.sqrt(29))


# Clouds, shapes, animations


def test_a_moved_cloud_has_no_normals() -> None:
    cloud = PointCloud(CORNERS, CORNERS, {"size": np.ones(8)})
    moved = cloud.with_points(CORNERS + 1)
    assert moved.normals is None
    np.testing.assert_array_equal(moved.attributes["size"], np.ones(8))


def test_shapes_are_a_sequence_of_meshes() -> None:
    shapes = Shapes.of([box().with_points(CORNERS * k) for k in (1, 2, 3)], ["one", "two", "three"])
    assert len(shapes) == 3
    assert [mesh.volume for mesh in shapes] == pytest.approx([24, 24 * 8, 24 * 27])
    assert shapes.named("two").volume == pytest.approx(24 * 8)
    assert shapes[-1].volume == pytest.approx(24 * 27)
    assert len(shapes[1:]) == 2
    assert Shapes.of(shapes) is shapes
    assert Shapes.of(list(shapes)).names == ("shape 0", "shape 1", "shape 2")
    with pytest.raises(IndexError):
        shapes[3]


def test_linear_blending_of_shapes() -> None:
    shapes = Shapes.of([box(), box().with_points(CORNERS * 3)])
    clip = shapes.mixed([[1, 0], [0.5, 0.5], [0, 1]], fps=10)
    assert [frame.volume for frame in clip] == pytest.approx([24, 24 * 8, 24 * 27])
    assert clip.fps == 10


def ramp(frames: int, fps: float) -> Animation:
    """A box that moves at one unit a second."""
    return Animation(box(), CORNERS + (np.arange(frames) / fps)[:, None, None], fps=fps)


@pytest.mark.parametrize(("frames", "fps", "new"), [(31, 30, 60), (31, 30, 15), (31, 30, 24), (11, 10, 33), (2, 1, 5)])
def test_resampling_keeps_the_motion_in_time(frames: int, fps: float, new: float) -> None:
    clip = ramp(frames, fps).resampled(new)
    assert clip.fps == new
    assert clip.duration == pytest.approx((frames - 1) / fps, abs=0.5 / new)
    time = np.minimum(np.arange(len(clip)) / new, (frames - 1) / fps)
    np.testing.assert_allclose(clip.points, CORNERS + time[:, None, None], atol=1e-12)


def test_resampling_at_the_same_rate_changes_nothing() -> None:
    np.testing.assert_allclose(ramp(9, 30).resampled(30).points, ramp(9, 30).points, atol=1e-15)
    assert len(ramp(1, 30).resampled(60)) == 1


def test_an_animation_is_a_sequence_of_shapes() -> None:
    clip = ramp(4, 2)
    assert len(clip) == 4
    assert clip.duration == 1.5
    assert [type(frame) for frame in clip] == [Mesh] * 4
    np.testing.assert_array_equal(clip[3].points, clip.points[3])
    assert repr(clip) == "Animation(4 frames of Mesh(8 points, 6 faces) at 2 fps)"


# Axes and units


def test_a_files_axes_and_units_stay_with_its_shape() -> None:
    world = World("z", 0.01)
    mesh = replace(seam_box(), world=world)
    tets = replace(two_tets(), world=world)
    cloud = PointCloud(CORNERS, world=world)
    clip = Animation(mesh, mesh.points[None])
    kept = [mesh.with_points(mesh.points * 2), mesh.scaled(2), mesh.welded().mesh, clip[0], clip.resampled(60)[0]]
    kept += [tets.with_points(tets.points), tets.surface, cloud.with_points(CORNERS), pickle.loads(pickle.dumps(mesh))]
    assert [shape.world for shape in kept] == [world] * len(kept)
    assert box().world is None


@pytest.mark.parametrize(("up", "metres"), [("x", 1.0), ("Z", 1.0), ("y", 0.0), ("y", -1.0), ("y", np.nan)])
def test_axes_and_units_that_are_none(up: str, metres: float) -> None:
    with pytest.raises(InputError, match="expected"):
        World(up, metres)  # type: ignore[arg-type]

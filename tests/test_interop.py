"""Meshes of other libraries in a mesh's place: the same results, and there and back without loss."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import pliant
from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.core.errors import InputError
from pliant.core.interop import as_shape

BOX = pliant.gallery.box(500)
TETS = pliant.TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]])
MIXED = pliant.Mesh(
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0], [3, 1, 0], [2, 2, 0], [1, 2, 0]],
    [[0, 1, 2, 3], [1, 4, 2], [2, 4, 5, 6, 7]],
    attributes={"heat": np.arange(8.0)},
)


def forms(mesh: pliant.Mesh) -> dict:
    """A triangle mesh as each library has it; those that are not installed are left out."""
    given = {"arrays": (mesh.points, mesh.triangles), "lists": (mesh.points, mesh.triangles.tolist())}
    for name in ("trimesh", "pyvista", "meshio"):
        with contextlib.suppress(ImportError):
            given[name] = getattr(mesh, f"to_{name}")()
    return given


TRIANGLES = pliant.Mesh(BOX.points, BOX.triangles)
FORMS = forms(TRIANGLES)
MOVED = BOX.points * [1.0, 1.1, 1.0]
CENTRE = np.zeros((1, 3))
BONES = pliant.Skeleton.from_positions(np.array([[-0.2, 0, 0], [0, 0, 0], [0.2, 0, 0]]) * BOX.diagonal, [-1, 0, 1])


@cache
def cage() -> pliant.Mesh:
    return pliant.build_cage(TRIANGLES, faces=20)


FUNCTIONS = {
    "animation": lambda mesh: pliant.Animation(mesh, [MOVED]).shape.points,
    "blendshapes": lambda mesh: pliant.Blendshapes([mesh, TRIANGLES.with_points(MOVED)]).shapes.points,
    "build_cage": lambda mesh: pliant.build_cage(mesh, faces=20).points,
    "click_joint": lambda mesh: pliant.click_joint(mesh, [9, 0, 0], [-1, 0, 0]),
    "distortion": lambda mesh: pliant.quality.edge_distortion(mesh, MOVED),
    "elastic body": lambda mesh: pliant.ElasticBody(mesh, BONES, nodes=60).shape.points,
    "green_coordinates": lambda mesh: pliant.green_coordinates(CENTRE, mesh)[0],
    "inspect_mesh": lambda mesh: [pliant.inspection.inspect_mesh(mesh).volume],
    "mean_value_coordinates": lambda mesh: pliant.mean_value_coordinates(CENTRE, mesh),
    "obstacle": lambda mesh: MeshObstacle(mesh).surface.points,
    "render": lambda mesh: pliant.render.picture(mesh, size=(40, 30)),
    "skeleton": lambda mesh: pliant.extract_skeleton(mesh, voxels=2000).offsets,
    "target of a rig": lambda mesh: pliant.CageRig(mesh, cage(), lattice=12).target.points,
    "winding_numbers": lambda mesh: pliant.spatial.winding_numbers(CENTRE, mesh),
}


@pytest.fixture(params=["arrays", "lists", "trimesh", "pyvista", "meshio"])
def other(request):
    if request.param not in FORMS:
        pytest.skip(f"{request.param} is not installed")
    return FORMS[request.param]


@pytest.fixture(scope="module")
def expected():
    return cache(lambda name: FUNCTIONS[name](TRIANGLES))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "build_cage")) for name in FUNCTIONS]
)
def test_every_public_function_takes_them(other, expected, name):
    np.testing.assert_array_equal(FUNCTIONS[name](other), expected(name))


def test_they_are_written(other, tmp_path):
    pliant.write(tmp_path / "other.obj", other)
    pliant.write(tmp_path / "mesh.obj", TRIANGLES)
    assert (tmp_path / "other.obj").read_bytes() == (tmp_path / "mesh.obj").read_bytes()


@pytest.mark.parametrize("library", ["trimesh", "pyvista", "meshio"])
@pytest.mark.parametrize(
    "shape", [replace(BOX, uvs=None), TETS, MIXED, pliant.PointCloud(BOX.points)], ids=["box", "tets", "mixed", "cloud"]
)
def test_there_and_back(library, shape):
    pytest.importorskip(library)
    back = as_shape(getattr(shape, f"to_{library}")())
    triangles = library == "trimesh" and not isinstance(shape, pliant.PointCloud)
    assert type(back) is (pliant.Mesh if triangles else type(shape))
    np.testing.assert_array_equal(back.points, shape.points)
    if triangles:
        surface = shape.surface if isinstance(shape, pliant.TetMesh) else shape
        np.testing.assert_array_equal(back.triangles, surface.triangles)
    elif isinstance(shape, pliant.TetMesh):
        np.testing.assert_array_equal(back.tets, shape.tets)
    elif isinstance(shape, pliant.Mesh):
        np.testing.assert_array_equal(back.polygons.corners, shape.polygons.corners)
        np.testing.assert_array_equal(back.polygons.offsets, shape.polygons.offsets)
    for name, values in shape.attributes.items():
        np.testing.assert_array_equal(back.attributes[name], values)


def test_colors_and_uvs_go_through_trimesh():
    trimesh = pytest.importorskip("trimesh")
    uv = np.random.default_rng(3).random((len(BOX.points), 2))
    textured = trimesh.Trimesh(BOX.points, BOX.triangles, process=False)
    textured.visual = trimesh.visual.TextureVisuals(uv=uv)
    mesh = pliant.Mesh.from_trimesh(textured)
    np.testing.assert_array_equal(mesh.uvs.at_corners, uv[mesh.triangles.reshape(-1)])
    np.testing.assert_array_equal(mesh.to_trimesh().visual.uv, uv)
    painted = trimesh.Trimesh(
        BOX.points, BOX.triangles, process=False, vertex_colors=[[255, 128, 0, 255]] * len(BOX.points)
    )
    mesh = pliant.Mesh.from_trimesh(painted)
    np.testing.assert_allclose(mesh.attributes["color"][0], [1, 0.21586, 0, 1], atol=1e-5)
    np.testing.assert_array_equal(mesh.to_trimesh().visual.vertex_colors, painted.visual.vertex_colors)


@pytest.mark.parametrize("library", ["trimesh", "pyvista"])
def test_vertices_are_split_at_seams_of_uvs(library):
    pytest.importorskip(library)
    rng = np.random.default_rng(4)
    seam = MIXED.polygons.corners == MIXED.polygons.corners[0]  # each of its corners has a UV of its own
    uvs = rng.random((len(MIXED.points), 2))[MIXED.polygons.corners]
    uvs[seam] = rng.random((seam.sum(), 2))
    mesh = replace(MIXED, uvs=pliant.shapes.Layer(uvs, np.arange(len(uvs))))
    back = as_shape(getattr(mesh, f"to_{library}")())
    np.testing.assert_array_equal(back.points[: len(mesh.points)], mesh.points)
    assert len(back.points) == len(mesh.points) + seam.sum() - 1
    np.testing.assert_array_equal(back.points[back.triangles], mesh.points[mesh.triangles])
    np.testing.assert_array_equal(
        back.uvs.at_corners[back.triangle_corners], mesh.uvs.at_corners[mesh.triangle_corners]
    )


def test_the_right_form_is_named():
    with pytest.raises(InputError, match=r"a tuple is no TetMesh; expected Mesh.of"):
        pliant.TetMesh.of((BOX.points, BOX.triangles))
    with pytest.raises(InputError, match=r"a str is no Mesh; expected \(V, F\) arrays, or a mesh of trimesh"):
        pliant.Mesh.of("hand.obj")
    with pytest.raises(InputError, match=r"shape 0 is a str; expected a Mesh, \(V, F\) arrays"):
        pliant.Blendshapes(["a.obj", "b.obj"])
    hexahedra = SimpleNamespace(
        points=BOX.points,
        cells=[SimpleNamespace(type="hexahedron", data=np.arange(8)[None])],
        cells_dict={},
        point_data={},
    )
    with pytest.raises(InputError, match="cells of kind hexahedron; expected triangles"):
        pliant.build_cage(hexahedra)
    with pytest.raises(InputError, match="faces refer to"):
        pliant.build_cage((BOX.points, BOX.triangles + len(BOX.points)))


def test_plain_points_are_no_pair():
    """(2, n, 3) numbers, or two rows, are not taken for points and faces."""
    two = [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]
    assert as_shape(two) is two
    pair = (BOX.points, BOX.points)
    assert as_shape(pair) is pair

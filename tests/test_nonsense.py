"""Public functions refuse nonsense with a pliant error of one line, or make something of it; there is no traceback."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pliant
from pliant import Animation, InputError, Mesh, Motion, PliantError, PointCloud, Skeleton, TetMesh, gallery

P = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
F = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
BALL = gallery.sphere(500)
CLIP = Animation(BALL, np.stack([BALL.points * (1 + 0.1 * k) for k in range(3)]))
BONES = Skeleton(("root", "arm"), [-1, 0], [[0.0, 0, 0], [0.5, 0, 0]])
TURNS, PLACES = np.tile([1.0, 0, 0, 0], (3, 2, 1)), np.tile(BONES.offsets, (3, 1, 1))
MOTION = Motion(BONES, TURNS, PLACES)
TETS = TetMesh(P, [[0, 1, 2, 3]])
CAGE = Mesh((P - 0.25) * 20, F)

GOOD = {
    "Animation": (BALL, CLIP.points, 30.0),
    "Appearance": ((0.1, 0.2, 0.3, 1.0), None, {}),
    "CageRig": (P * 0.1, CAGE),
    "Control": (0,),
    "Follow": (0, "track"),
    "Labels": (("a",), [0] * 4),
    "Layer": (P, [0, 1]),
    "Material": (1e5, 0.4, 1000.0),
    "Mesh": (P, F),
    "Motion": (BONES, TURNS, PLACES, 30.0),
    "PointCloud": (P, P, {}),
    "Pull": (0, [0.0, 0, 0]),
    "Rod": (BONES,),
    "Shapes": (BALL, BALL.points[None], ("a",)),
    "Shapes.of": ([BALL],),
    "Skeleton": (("a", "b"), [-1, 0], [[0.0, 0, 0], [1, 1, 1]]),
    "SkeletonPose": (BONES, TURNS[0], PLACES[0]),
    "Sphere": ([0.0, 0, 0], 1.0),
    "TetMesh": (P, [[0, 1, 2, 3]]),
    "Track": ("a", np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3, 3))),
    "Weights": (1.0, 5.0, 0.5, 0.5),
    "World": ("y", 1.0),
    "after_from": (P, P + 1),
    "before_from": (P, P + 1),
    "bone_controls": (BONES, MOTION, {"root": "root"}),
    "build_cage": (TETS,),
    "cell_tracks": (CLIP, [0]),
    "click_joint": (BALL, [0.0, 0, 5], [0.0, 0, -1]),
    "gallery.sphere": (500,),
    "green_coordinates": (P * 0.1, CAGE),
    "group_tracks": (CLIP, {"a": [0, 1, 2, 3]}),
    "inspection.inspect": ("missing.obj",),
    "joint_tracks": (MOTION,),
    "matrix_tracks": (np.tile(np.eye(4), (3, 1, 1)),),
    "mean_value_coordinates": (P * 0.1, CAGE),
    "quality.area_distortion": (BALL, BALL.points),
    "quality.dihedral_angles": (BALL,),
    "quality.dihedral_deviation": (BALL, BALL.points),
    "quality.edge_distortion": (BALL, BALL.points),
    "quality.edges_of": (BALL,),
    "quality.inverted_tets": (TETS, P),
    "quality.measure": (CLIP, BALL),
    "quality.penetration": (P, BALL),
    "quality.popping": (CLIP,),
    "quality.self_intersections": (BALL,),
    "quality.summarize": ([1.0, 2.0],),
    "quality.tet_volume_ratio": (TETS, P),
    "quality.volume_ratio": (BALL, BALL.points),
    "read": ("missing.obj",),
    "read_animation": ("missing.obj",),
    "read_mesh": ("missing.obj",),
    "read_motion": ("missing.bvh",),
    "read_points": ("missing.ply",),
    "read_shapes": ("missing.obj",),
    "read_skeleton": ("missing.tgf",),
    "read_tets": ("missing.mesh",),
    "render.movie": (CLIP, "missing.folder"),
    "render.save": (None, "picture.png"),
    "render.turntable": (BALL, "missing.folder"),
    "retarget": (MOTION, BONES),
    "rigid_blocks": (None,),
    "rigid_groups": (CLIP, 2),
    "rod_tracks": (np.zeros((3, 4, 3)) + np.arange(4)[None, :, None], np.tile(np.eye(3), (3, 4, 1, 1))),
    "spatial.SurfaceTree": (BALL,),
    "write": ("out.npz", BALL),
}
"""Public functions with operands that they take; each of these is exchanged for nonsense in turn."""

NOTHING = Mesh(np.zeros((0, 3)), [])
NONSENSE = {
    "None": None,
    "text": "nonsense",
    "whole": 3,
    "negative": -7,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "huge": 1e300,
    "bytes": b"x",
    "object": object(),
    "function": len,
    "dictionary": {"a": 1},
    "empty list": [],
    "ragged": [[1, 2], [3]],
    "mixed": [1, "a"],
    "texts": np.array(["a", "b"]),
    "no points": np.zeros((0, 3)),
    "one axis": np.zeros(5),
    "two columns": np.zeros((4, 2)),
    "three axes": np.zeros((2, 2, 2)),
    "complex": np.zeros((4, 3), complex),
    "NaN points": np.full((4, 3), np.nan),
    "one place": np.zeros((4, 3)),
    "large": P * 1e150,
    "too large": P * 1e300,
    "too small": P * 1e-300,
    "faces": F,
    "V, F": (P, F),
    "V, V": (BALL.points, BALL.points),
    "listed V, V": [BALL.points, BALL.points],
    "mesh of nothing": NOTHING,
    "mesh in one place": Mesh(P * 0, F),
    "large mesh": Mesh(P * 1e150, F),
    "too large mesh": Mesh(P * 1e300, F),
    "too small mesh": Mesh(P * 1e-300, F),
    "cloud of nothing": PointCloud(np.zeros((0, 3))),
    "tets of nothing": TetMesh(np.zeros((0, 3)), []),
    "clip of nothing": Animation(NOTHING, np.zeros((2, 0, 3))),
    "too large clip": Animation(Mesh(P * 1e300, F), np.stack([P * 1e300, P * 1e299])),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.filterwarnings("ignore")
def test_nonsense_is_refused_with_a_pliant_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = pliant
    for part in name.split("."):
        function = getattr(function, part)
    said = []
    for position in range(len(GOOD[name])):
        for what, value in NONSENSE.items():
            given = (*GOOD[name][:position], value, *GOOD[name][position + 1 :])
            try:
                function(*given)
            except PliantError as error:
                said.append(str(error))
            except Exception as error:
                raise AssertionError(f"operand {position}: {what}") from error
    assert [text for text in said if "\n" in text or len(text) > 400] == []


@pytest.mark.parametrize("shape", [CLIP.points, CLIP.points[0], None, (P, P), "mesh"])
def test_an_animation_needs_its_shape_first(shape):
    with pytest.raises(InputError, match=r"expected a Mesh, TetMesh or PointCloud, as in Animation\(mesh, points\)"):
        Animation(shape, F)


@pytest.mark.parametrize(
    "function",
    [
        PointCloud,
        CLIP.shape.with_points,
    ],
)
def test_points_and_faces_are_no_points(function):
    for pair in ((P, F), [BALL.points, BALL.triangles]):
        with pytest.raises(InputError, match=r"are two arrays; expected .* pliant.Mesh\(points, faces\)"):
            function(pair)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(PointCloud([P[0], P[1]]).points) == 2

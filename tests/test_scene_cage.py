"""Scenes of the engine "cage": what they ask of a rig, the way from rest to pose, and what is said of wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import FileError, InputError, gallery
from pliant.app.scene import read_scene, scene_from, write_scene
from pliant.app.scene.schema import reference
from pliant.core import rotations
from pliant.engines.transfer import build_cage
from pliant.engines.transfer.app.posed_scene import CageScene, reposed
from pliant.engines.transfer.app.scene_keys import CAGE_SCENE

BAR = gallery.bar(500).base
CAGE = build_cage(BAR, faces=60)
TIP, ROOT = int(np.argmax(BAR.points[:, 0])), int(np.argmin(BAR.points[:, 0]))
MIDDLE = [0.1, 0.0, 0.0]
AXIS, DEGREES = [0.3, -0.4, 1.2], 50.0
TURN = rotations.matrix(rotations.from_axis_angle(AXIS, np.radians(DEGREES)))
STRETCH = np.diag([1.2, 0.9, 1.1])
SHEAR = np.array([[1.1, 0.3, 0.0], [0.0, 0.9, 0.1], [0.05, 0.0, 1.0]])
BASE = {
    "engine": "transfer",
    "target": {"file": "bar.obj"},
    "cage": {"file": "cage.obj"},
    "lattice": 16,
    "positions": [{"at": ROOT}],
}
BENT = BASE | {
    "gradients": [
        {"at": TIP, "turn": {"axis": AXIS, "degrees": DEGREES}, "stretch": [1.2, 0.9, 1.1]},
        {"at": MIDDLE, "matrix": (TURN @ SHEAR).tolist()},
        {"at": [-1.5, 0.0, 0.0]},
    ],
    "positions": [{"at": ROOT, "to": [-1.5, 0.3, 0.2]}, {"at": [-1.2, 0.0, 0.0]}],
    "lengths": [[ROOT, [0.0, 0.0, 0.0]]],
    "weights": {"length": 3.0},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cages")
    pliant.write(place / "bar.obj", BAR)
    pliant.write(place / "cage.obj", CAGE)
    return place


@pytest.fixture(scope="module")
def rig(folder):
    """A rig of the scenes' target and cage, which is long to make, without controls."""
    return scene_from(BASE, folder).rig()


def expected_rig(scene: CageScene) -> pliant.CageRig:
    return pliant.CageRig(
        scene.target,
        scene.cage,
        positions=[scene.target.points[ROOT], [-1.2, 0, 0]],
        gradients=[scene.target.points[TIP], MIDDLE, [-1.5, 0, 0]],
        lengths=[[scene.target.points[ROOT], [0, 0, 0]]],
        lattice=16,
        weights=pliant.Weights(length=3.0),
    )


def test_a_pose_is_what_the_rig_solves_for_the_same_controls(folder, rig):
    scene = scene_from(BENT, folder)
    found = scene.run()
    asked = [TURN @ STRETCH, TURN @ SHEAR, np.eye(3)]
    pose = expected_rig(scene).solve(positions=[[-1.5, 0.3, 0.2], [-1.2, 0, 0]], gradients=asked)
    assert len(found.clip) == len(scene) == 1
    assert pose.converged
    assert found.converged
    assert np.abs(found.clip.points[0] - pose.points).max() < 1e-9 * BAR.diagonal
    assert np.linalg.norm(pose.points[TIP] - BAR.points[TIP]) > 0.3  # it did bend
    assert np.abs(scene.run(rig=rig).clip.points - found.clip.points).max() < 1e-9 * BAR.diagonal


def test_frames_go_evenly_from_the_rest_to_the_pose(folder, rig):
    pose = scene_from(BENT, folder).run(rig=rig)
    seen = []
    scene = scene_from(BENT | {"frames": 5, "fps": 12.0}, folder)
    way = scene.run(lambda done, total: seen.append((done, total)), rig=rig)
    assert seen == [(k, 5) for k in range(6)]
    assert way.clip.fps == 12
    assert np.abs(way.clip.points[0] - scene.target.points).max() < 1e-5 * BAR.diagonal
    assert np.array_equal(way.clip.points[-1], pose.clip.points[0])
    steps = np.linalg.norm(np.diff(way.clip.points[:, TIP], axis=0), axis=1)
    assert steps.max() < 1.5 * steps.min()


def test_controls_exchanged_by_a_document_are_those_of_its_scene(folder, rig):
    changed = BENT | {"frames": 3, "fps": 10.0, "weights": {"smooth": 2.0}}
    whole, quick = scene_from(changed, folder), reposed(scene_from(BASE, folder), changed, rig.cage)
    assert (quick.options, quick.weights) == (whole.options, whole.weights)
    assert all(np.array_equal(a, b) for a, b in zip(quick.asked(), whole.asked(), strict=True))
    assert np.array_equal(quick.run(rig=rig).clip.points, whole.run(rig=rig).clip.points)
    with pytest.raises(FileError, match=r"positions\[0\]"):
        reposed(quick, BASE | {"positions": [{"at": len(BAR.points)}]}, rig.cage)


def test_turns_keep_their_axis_and_places_go_straight(folder):
    positions, gradients = scene_from(BENT | {"frames": 4}, folder).asked()
    third = rotations.matrix(rotations.from_axis_angle(AXIS, np.radians(DEGREES) / 3))
    assert np.allclose(gradients[0], np.eye(3))
    assert np.allclose(gradients[1, 0], third @ (np.eye(3) * 2 / 3 + STRETCH / 3))
    assert np.allclose(gradients[-1], [TURN @ STRETCH, TURN @ SHEAR, np.eye(3)])
    assert np.allclose(np.diff(positions, axis=0, n=2), 0)
    assert np.allclose(positions[-1], [[-1.5, 0.3, 0.2], [-1.2, 0, 0]])


def test_an_angle_past_half_a_turn_is_gone_all_the_way(folder):
    turned = BASE | {"gradients": [{"at": TIP, "turn": {"axis": [2, 0, 0], "degrees": 270}}], "frames": 4}
    _, gradients = scene_from(turned, folder).asked()
    quarters = [rotations.matrix(rotations.from_axis_angle([1, 0, 0], k * np.pi / 2)) for k in range(4)]
    assert np.allclose(gradients[:, 0], quarters)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("form", ["quaternion", "rows", "points"])
def test_a_turn_said_in_other_ways_is_the_same(folder, form, sign):
    quaternion = rotations.from_axis_angle(AXIS, np.radians(DEGREES))
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]])
    said = {
        "quaternion": (sign * 3 * quaternion).tolist(),
        "rows": TURN.tolist(),
        "points": {"from": corners.tolist(), "to": (corners @ TURN.T + sign).tolist()},
    }[form]
    one, other = (
        scene_from(BASE | {"gradients": [{"at": TIP, "turn": turn}], "frames": 3}, folder).asked()[1]
        for turn in (said, {"axis": AXIS, "degrees": DEGREES})
    )
    assert np.allclose(one, other)


def test_a_stretch_of_one_number_is_the_same_along_all_axes(folder, rig):
    scene = scene_from(BASE | {"gradients": [{"at": MIDDLE, "stretch": 1.3}], "weights": {"gradient": 500.0}}, folder)
    found = scene.run(rig=rig)
    assert np.allclose(scene.asked()[1][0, 0], 1.3 * np.eye(3))
    assert abs(found.solutions[0].gradient_stretches[0]) < 0.02
    assert np.ptp(found.clip.points[0, :, 0]) > 1.2 * np.ptp(BAR.points[:, 0])


def test_a_saved_scene_gives_the_same_points(folder):
    document = BENT | {"frames": 3}
    write_scene(folder / "saved.toml", document)
    read = read_scene(folder / "saved.toml").run()
    assert np.array_equal(read.clip.points, scene_from(document, folder).run().clip.points)
    assert read_scene(folder / "saved.toml", frames=2, fps=7.0).run().clip.points.shape == (2, len(BAR.points), 3)


@pytest.mark.slow
def test_cages_are_built_or_taken_from_the_gallery(folder, monkeypatch):
    monkeypatch.setattr("pliant.gallery.cages.SURFACE_SIZES", (2000,))
    hand = {"gallery": "hand", "vertices": 2000}
    document = {"engine": "transfer", "target": hand, "cage": {"gallery": "hand", "vertices": 40}}
    assert len(scene_from(document, folder).cage.points) == len(gallery.cage("hand", vertices=40).points)
    bar = {"engine": "transfer", "target": {"gallery": "bar", "vertices": 500}}
    assert len(scene_from(bar | {"cage": {"faces": 90}}, folder).cage.triangles) <= 90
    assert len(scene_from(bar, folder, faces=60).cage.triangles) <= 60


def test_normals_of_a_cloud_turn_along(folder):
    cloud = pliant.PointCloud(BAR.points, np.tile([0.0, 1.0, 0.0], (len(BAR.points), 1)))
    pliant.write(folder / "cloud.ply", cloud)
    turn = {"axis": [0, 0, 1], "degrees": 90}
    places = [{"at": p, "turn": turn} for p in ([-1.5, 0.0, 0.0], MIDDLE, [1.5, 0.0, 0.0])]
    document = BASE | {"target": {"file": "cloud.ply"}, "gradients": places, "weights": {"gradient": 500.0}}
    turned = scene_from(document, folder).run().shape(0)
    assert turned.normals is not None
    assert np.allclose(turned.normals, [-1, 0, 0], atol=0.15)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gradients": [{"turn": [1, 0, 0, 0]}]}, "gradients[0].at: is missing; expected a whole number from 0"),
        ({"gradients": [{"at": 10**6}]}, "gradients[0].at: is vertex 1000000; the target has"),
        ({"positions": [{"at": [0, 9, 0]}]}, "positions[0].at: is [0.0, 9.0, 0.0], which is not inside the cage"),
        ({"positions": [{"at": ROOT, "to": 4}]}, "positions[0].to: is 4; expected three coordinates"),
        (
            {"gradients": [{"at": 1, "turn": {"axis": [0, 0, 0], "degrees": 3}}]},
            "gradients[0].turn.axis: is [0, 0, 0]; ",
        ),
        ({"gradients": [{"at": 1, "turns": 3}]}, "gradients[0].turns: there is no such key of gradients[0]; did you"),
        ({"gradients": [{"at": 1, "stretch": -1.0}]}, "gradients[0].stretch: is -1.0; expected a positive number"),
        ({"gradients": [{"at": 1, "stretch": [-1, -1, 1]}]}, "gradients[0].stretch[0]: is -1; expected"),
        ({"gradients": [{"at": 1, "stretch": 1e5}]}, "gradients[0].stretch: the map: its target"),
        (
            {"gradients": [{"at": 1, "matrix": np.diag([1, 1, -1]).tolist()}]},
            "gradients[0].matrix: the map: its target in frame 0 has the determinant -1",
        ),
        (
            {"gradients": [{"at": 1, "matrix": np.eye(3).tolist(), "stretch": 2.0}]},
            'gradients[0].stretch: is given beside "matrix"; expected one or the other',
        ),
        ({"cage": {"file": "cage.obj", "faces": 40}}, "cage.faces: has no effect: the cage is not built"),
        ({"weights": {"length": 1.0}}, "weights.length: has no effect: there are no lengths"),
        ({"weights": {"gradient": 1.0}}, "weights.gradient: has no effect: there are no gradients"),
        ({"sources": {}}, "sources: there is no such key"),
        ({"frames": 0}, "frames: is 0; expected a whole number from 1"),
    ],
)
def test_what_is_wrong_is_said_with_the_key(folder, change, said):
    with pytest.raises(FileError) as error:
        scene_from(BASE | change, folder)
    assert str(error.value).startswith(f"the scene, {said}")
    assert "\n" not in str(error.value)


def test_errors_of_a_file_name_the_line(folder):
    write_scene(folder / "wrong.toml", BASE | {"gradients": [{"at": 1}, {"at": 10**6}]})
    with pytest.raises(FileError, match=r"wrong.toml, line \d+, gradients\[1\].at: is vertex 1000000"):
        read_scene(folder / "wrong.toml")


def test_a_scene_without_controls_can_be_set_up_but_not_run(folder, rig):
    bare = scene_from({key: BASE[key] for key in BASE if key != "positions"}, folder)
    assert len(bare.rig().controls.positions) == 0
    with pytest.raises(FileError, match=r"^the scene, positions: there are no controls; add \[\[positions\]\]"):
        bare.run(rig=rig)
    with pytest.raises(
        FileError, match=r"^the scene, positions: nothing fixes the position of the target; add \[\[positions\]\]"
    ):
        scene_from(BASE | {"positions": [], "gradients": [{"at": 1}]}, folder).run(rig=rig)


def test_a_rig_of_something_else_is_refused(folder, rig):
    other = scene_from(BASE | {"cage": {"faces": 40}}, folder)
    with pytest.raises(InputError, match=r"expected a rig of the scene's own target and cage"):
        other.run(rig=rig)


def test_every_key_has_a_meaning():
    keys = [key for key, _, _ in reference(CAGE_SCENE)]
    assert {"gradients[].turn", "gradients[].stretch", "positions[].to", "cage.faces", "output.file"} <= set(keys)

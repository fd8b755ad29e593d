"""The studio's elastic panel without a browser: bones that are drawn or come from files, and drafts of scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import pliant
from elastic_window import SKELETON, TENTACLE, TURN, Window, windows
from fake_viser import do
from pliant import gallery
from pliant.app.scene.posing import rotated_pose
from pliant.app.studio.desk import Document
from pliant.core import rotations
from pliant.core.skeleton import Motion, Skeleton
from pliant.engines.simulate.app.panel_bones import Drawing, first_to_rotate
from pliant.engines.simulate.app.panel_document import Draft, bone_tables, pose_table


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Callable[[Document], Window]]:
    with windows(tmp_path) as opened:
        yield opened


@pytest.fixture
def tentacle(window) -> Window:
    return window(TENTACLE)


# Drawing


def test_bones_are_drawn_by_clicking_through_the_body(tentacle):
    body = tentacle.session.scene({**TENTACLE, "motion": {"keys": [{"time": 0.0}]}}).shape.points
    places = SKELETON.rest_world[0]
    tentacle.widget("Draw by clicking").set(True)
    tentacle.rest()
    assert not tentacle.client.scene[TURN].visible
    tentacle.press("Remove all joints")
    for joint in (1, 4, 6, 2):
        tentacle.click(places[joint] + [0, 0, 5], [0, 0, -1])
        tentacle.noted()
    bones = tentacle.document["skeleton"]["bones"]
    assert np.allclose([bone["at"] for bone in bones], places[[1, 4, 6, 2]], atol=0.02)
    assert [bone.get("parent") for bone in bones] == [None, "joint1", "joint2", "joint3"]
    do(tentacle.session, "undo")
    assert len(tentacle.document["skeleton"]["bones"]) == 3
    tentacle.click(np.add(bones[1]["at"], [0, 0, 5]), [0, 0, -1])  # on the second joint: chosen, none added
    assert len(tentacle.document["skeleton"]["bones"]) == 3
    assert tentacle.widget("Name of the joint").value == "joint2"
    tentacle.widget("Name of the joint").set("elbow")
    tentacle.press("Rename it")
    tentacle.press("Put flesh on the bones")
    assert [bone.get("parent") for bone in tentacle.document["skeleton"]["bones"]] == [None, "joint1", "elbow"]
    assert tuple(tentacle.widget("Bone").options) == ("joint1", "elbow", "joint3")
    tentacle.choose("elbow")
    tentacle.turn([0, 1, 0], 40)
    tentacle.rest()
    assert np.array_equal(tentacle.points, tentacle.run().points[0])
    assert np.abs(tentacle.points - body).max() > 0.05


def test_materials_of_joints_go_with_them(tentacle):
    for name, firmness in ((SKELETON.names[8], 4.0), (SKELETON.names[0], 6.0)):
        tentacle.widget("Material of").set(name)
        tentacle.widget("Firmness").set(firmness)
    tentacle.widget("Draw by clicking").set(True)
    tentacle.rest()
    tentacle.click(SKELETON.rest_world[0][8] + [0, 0, 5], [0, 0, -1])
    tentacle.widget("Name of the joint").set("tip")
    tentacle.press("Rename it")
    assert [part["name"] for part in tentacle.document["regions"]] == ["tip", SKELETON.names[0]]
    tentacle.press("Remove all joints")
    tentacle.click(SKELETON.rest_world[0][2] + [0, 0, 5], [0, 0, -1])
    assert "regions" not in tentacle.document


def test_a_key_of_a_pose_from_before_other_bones_were_drawn_has_none_of_theirs():
    draft = Draft({"engine": "simulate", "skeleton": {"bones": [{"name": "old", "at": [0, 0, 0]}]}})
    bent = {"time": 0.5, "turns": {"old": [0.8, 0.6, 0.0, 0.0], "new": [0.6, 0.8, 0.0, 0.0]}}
    draft.set_bones([{"name": "new", "at": [0, 0, 0]}])
    draft.keep(bent)
    assert draft.document()["motion"]["keys"][1]["turns"] == {"new": [0.6, 0.8, 0.0, 0.0]}


def test_a_handle_of_a_bone_that_is_gone_does_nothing(tentacle, caplog):
    tentacle.choose(SKELETON.names[-1])
    before = tentacle.document
    tentacle.panel.pose = Skeleton(("only",), [-1], [[0.0, 0, 0]]).rest_pose()
    tentacle.turn([1, 0, 0], 40)
    assert tentacle.document == before
    assert not caplog.records


def test_clicks_that_miss_add_nothing(tentacle):
    tentacle.widget("Draw by clicking").set(True)
    before = tentacle.document
    tentacle.click([0, 100, 5], [0, 0, -1])
    assert tentacle.document == before
    assert "did not go through" in tentacle.session.page.state["hint"]


@pytest.mark.slow
def test_bones_are_found(window):
    one = window({**TENTACLE, "motion": {"keys": [{"time": 0.0, "turns": {SKELETON.names[2]: [0.9, 0.1, 0.2, 0.3]}}]}})
    one.widget("Draw by clicking").set(True)
    one.press("Find the bones")
    one.press("Put flesh on the bones")
    assert "root" in one.widget("Bone").options
    assert one.document["motion"]["keys"][0]["turns"] == {}
    assert np.array_equal(one.points, one.run().points[0])


def test_points_without_faces_cannot_be_clicked_through(window, tmp_path):
    ball = gallery.sphere(600).points
    pliant.write(tmp_path / "cloud.ply", pliant.PointCloud(ball, normals=ball))
    bones = [{"name": "a", "at": [0.0, -0.5, 0.0], "end": [0.0, 0.5, 0.0]}]
    one = window(
        {"engine": "simulate", "shape": {"file": "cloud.ply"}, "skeleton": {"bones": bones}, "nodes": 300, "hold": 0.1}
    )
    one.widget("Draw by clicking").set(True)
    assert "no inside to click through" in one.client.notes.pop()[1]


# Files


def test_a_skeleton_file_brings_bones_and_a_motion_moves_them(tentacle, tmp_path):
    fewer = pliant.Skeleton.from_positions(SKELETON.rest_world[0][::2], np.arange(len(SKELETON.names[::2])) - 1)
    pliant.write(tmp_path / "bones.json", fewer)
    assert tentacle.panel.take(tmp_path / "bones.json")
    tentacle.rest()
    assert tuple(tentacle.widget("Bone").options) == fewer.names
    assert tentacle.document["skeleton"] == {"file": str(tmp_path / "bones.json")}
    bend = [fewer.pose({"joint1": rotations.from_axis_angle([0, 0, 1], angle)}) for angle in (0.0, 0.4, 0.8)]
    motion = Motion(fewer, np.stack([p.rotations for p in bend]), np.stack([p.translations for p in bend]), 30.0)
    pliant.write(tmp_path / "bend.bvh", motion)
    assert tentacle.panel.take(tmp_path / "bend.bvh")
    tentacle.rest()
    tentacle.stand()
    assert not tentacle.client.scene[TURN].visible
    clip = tentacle.run()
    do(tentacle.session, "scrub", 2)
    assert np.array_equal(tentacle.points, clip.points[2])
    assert np.abs(clip.points[2] - clip.points[0]).max() > 0.05
    tentacle.widget("The bones follow").set("my poses")
    tentacle.rest()
    assert tentacle.document["motion"] == {"keys": [{"time": 0.0, "turns": {}}]}


def test_files_of_no_use_are_left_to_others(tentacle, tmp_path):
    pliant.write(tmp_path / "other.obj", gallery.box(600))
    (tmp_path / "notes.txt").write_text("nothing")
    before = tentacle.document
    assert not tentacle.panel.take(tmp_path / "other.obj")
    assert not tentacle.panel.take(tmp_path / "notes.txt")
    assert tentacle.document == before


def test_joints_with_other_names_are_paired_by_suggestion_and_by_hand(tentacle, tmp_path):
    names = [f"Rig {name} bone" for name in SKELETON.names]
    other = pliant.Skeleton(names, SKELETON.parents, 2 * SKELETON.offsets)
    turned = [other.pose({names[2]: rotations.from_axis_angle([0, 0, 1], angle)}) for angle in (0.0, 0.6)]
    motion = Motion(other, np.stack([p.rotations for p in turned]), np.stack([p.translations for p in turned]), 30.0)
    pliant.write(tmp_path / "other.bvh", motion)
    assert tentacle.panel.take(tmp_path / "other.bvh")
    tentacle.rest()
    tentacle.stand()
    pairing = tentacle.panel.pairing
    assert pairing.folder.visible
    assert set(pairing.followed.options) == {"(nothing)", *names}
    assert all(pairing.pairs.values()), pairing.pairs
    before = tentacle.run().points
    mover = next(bone for bone, joint in pairing.pairs.items() if joint == names[2])
    pairing.follower.set(next(label for label in pairing.follower.options if label.startswith(f"{mover} ")))
    assert pairing.followed.value == pairing.pairs[mover]
    pairing.followed.set("(nothing)")
    tentacle.rest()
    assert tentacle.document["motion"]["map"][mover] == ""
    assert pairing.follower.value == f"{mover} ← (nothing)"
    assert np.abs(tentacle.run().points - before).max() > 0.05, "the next bone bends instead"
    do(tentacle.session, "undo")
    tentacle.rest()
    assert pairing.pairs[mover] == names[2]


@pytest.mark.slow
def test_a_motion_of_the_gallery_plays(window):
    document = {"engine": "simulate", "shape": {"gallery": "dinosaur", "vertices": 500}, "nodes": 300}
    document |= {"skeleton": {"gallery": "dinosaur"}, "motion": {"gallery": "dinosaur_walk", "last": 3}}
    one = window(document)
    assert one.session.timeline.playing
    one.stand()
    clip = one.run()
    do(one.session, "scrub", 2)
    assert np.array_equal(one.points, clip.points[2])
    assert one.document == document


def test_a_closed_panel_leaves_nothing(tentacle):
    tentacle.press("Add a ball")
    tentacle.session.start(TENTACLE)
    tentacle.rest()
    assert "/elastic/obstacle 1/shape" not in tentacle.client.scene.nodes
    assert not tentacle.widget("With inertia").value


# Drafts


def test_a_pose_said_and_read_again_is_the_same():
    rng = np.random.default_rng(3)
    skeleton = gallery.creature_skeleton()
    turns = {name: rotations.exp(0.7 * rng.normal(size=3)) for name in skeleton.names}
    pose = skeleton.pose(turns, root=skeleton.offsets[0] + [0.1, 0.2, -0.3])
    again = Draft({"engine": "simulate", "shape": {}, "motion": {"keys": [{"time": 0.0} | pose_table(pose)]}})
    key = again.document()["motion"]["keys"][0]
    back = rotated_pose(skeleton, key["turns"], move=key["move"])
    assert np.allclose(back.world()[0], pose.world()[0], atol=1e-5)
    assert np.allclose(rotations.matrix(back.world()[1]), rotations.matrix(pose.world()[1]), atol=1e-5)


def test_bones_said_and_drawn_again_are_where_they_were():
    skeleton = gallery.creature_skeleton()
    drawn = Drawing(skeleton).skeleton
    assert drawn is not None
    assert drawn.names == skeleton.names
    assert np.allclose(drawn.rest_world[0], skeleton.rest_world[0], atol=1e-6)
    assert bone_tables(drawn) == bone_tables(skeleton)


def test_the_first_bone_to_turn_is_an_arm():
    skeleton = gallery.creature_skeleton()
    assert skeleton.names[first_to_rotate(skeleton, np.array([0.0, 1.0, 0.0]))].startswith("upperarm")

"""The studio's elastic panel without a browser: bones turned and drawn, flesh at rest and swinging, and its scene."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from fake_viser import Client, Widget
from pliant import gallery, rotations
from pliant.skeleton import Motion
from pliant.studio.elastic import ElasticPanel
from pliant.studio.elastic_bones import Drawing, first_to_turn
from pliant.studio.elastic_draft import Draft, said_bones, said_pose, world_turns
from pliant.studio.folders import Folders
from pliant.studio.panel import Document
from pliant.studio.session import Session

TENTACLE: Document = {
    "engine": "elastic",
    "shape": {"gallery": "tentacle", "vertices": 600},
    "skeleton": {"gallery": "tentacle"},
    "nodes": 300,
    "static": True,
}
SKELETON = gallery.tentacle_skeleton()
TURN = "/elastic/turn"


class Window:
    """A window on a document, and what a visitor does in it."""

    def __init__(self, folder: Path, document: Document) -> None:
        self.client = Client()
        (folder / "uploads").mkdir(exist_ok=True)
        folders = Folders.of([folder], folder / "uploads")
        self.session = Session(self.client, folders, {"elastic": ElasticPanel}, document, largest_upload=1 << 20)

    @property
    def panel(self) -> Any:
        return self.session.panel

    @property
    def document(self) -> Document:
        return self.panel.document()

    @property
    def points(self) -> np.ndarray:
        """What is shown."""
        return self.panel.drawn.points

    def run(self) -> Any:
        """The clip of the scene that would be saved."""
        return self.session.scene(self.document).run().clip

    def rest(self) -> None:
        assert self.session.live.idle(60)
        assert not self.client.notes

    def widget(self, label: str) -> Widget:
        return self.client.gui[label]

    def press(self, label: str) -> None:
        self.widget(label).press()
        self.rest()

    def stand(self) -> None:
        """Let nothing play."""
        self.session.timeline.stop()
        time.sleep(0.1)  # a frame may just be drawn

    def choose(self, joint: str) -> None:
        self.widget("Bone").set(joint)

    def turn(self, axis: list[float], degrees: float, steps: int = 1) -> None:
        """Turn the handle about an axis of the page."""
        handle = self.client.scene[TURN]
        first = np.array(handle.wxyz)
        handle.drag(phase="start")
        for k in range(1, steps + 1):
            way = rotations.from_axis_angle(axis, np.radians(degrees) * k / steps)
            handle.drag(wxyz=rotations.multiply(way, first))
        handle.drag(phase="end")

    def click(self, at: Any, towards: Any) -> None:
        """Click on the body along a ray of the world."""
        stage = self.session.stage
        start, end = stage.shown(at), stage.shown(np.add(at, towards))
        self.client.scene["/elastic/body"].click(start, end - start)
        self.rest()


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Callable[[Document], Window]]:
    made: list[Window] = []

    def opened(document: Document) -> Window:
        made.append(Window(tmp_path, document))
        made[-1].rest()
        return made[-1]

    yield opened
    for one in made:
        one.session.close()


@pytest.fixture
def tentacle(window) -> Window:
    return window(TENTACLE)


# Turning bones


def test_a_visitor_sees_a_bone_to_turn_and_the_shape_at_rest(tentacle):
    assert tentacle.client.scene[TURN].visible
    assert "ring" in tentacle.session._hint.content
    assert tentacle.widget("Bone").value in SKELETON.names
    assert np.array_equal(tentacle.points, tentacle.run().points[0])


def test_what_is_shown_when_a_bone_is_turned_is_what_the_scene_gives(tentacle):
    tentacle.choose(SKELETON.names[3])
    before = tentacle.points
    tentacle.turn([1, 0, 0], 50, steps=5)
    tentacle.rest()
    clip = tentacle.run()
    assert len(clip) == 1
    assert np.array_equal(tentacle.points, clip.points[0])
    assert np.abs(tentacle.points - before).max() > 0.05
    assert list(tentacle.document["motion"]["keys"][0]["turns"]) == [SKELETON.names[3]]


def test_the_handle_says_how_a_bone_stands_whatever_its_parents_do(tentacle):
    tentacle.choose(SKELETON.names[2])
    tentacle.turn([1, 0, 0], 40)
    tentacle.rest()
    tentacle.choose(SKELETON.names[5])
    tentacle.turn([0, 1, 0], 30)
    tentacle.rest()
    asked = tentacle.session.stage.world_turn(tentacle.client.scene[TURN].wxyz)
    scene = tentacle.session.scene(tentacle.document)
    found = world_turns(scene.motion[0])[1][5]
    assert abs(abs(found @ asked) - 1) < 1e-9


def test_the_root_is_moved_as_well_as_turned(tentacle):
    tentacle.choose(SKELETON.names[0])
    handle = tentacle.client.scene[TURN]
    assert not handle.disable_axes
    handle.drag(phase="start")
    handle.drag(position=np.add(handle.position, [0.0, 0.0, 0.5]))
    handle.drag(phase="end")
    tentacle.rest()
    moved = tentacle.points - tentacle.session.scene(tentacle.document).shape.points
    assert np.allclose(moved, [0.0, 0.5 * tentacle.session.stage.half, 0.0], atol=1e-6)
    assert np.array_equal(tentacle.points, tentacle.run().points[0])


def test_bones_go_back_to_rest(tentacle):
    rest = tentacle.points
    for joint in (1, 4):
        tentacle.choose(SKELETON.names[joint])
        tentacle.turn([1, 0, 0], 30)
        tentacle.rest()
    tentacle.press("Straighten this bone")
    assert list(tentacle.document["motion"]["keys"][0]["turns"]) == [SKELETON.names[1]]
    tentacle.press("All bones to rest")
    assert np.array_equal(tentacle.points, rest)


def test_a_click_on_the_body_chooses_its_bone(tentacle):
    places = SKELETON.rest_world[0]
    tentacle.widget("See the bones").set(False)
    assert tentacle.client.scene["/elastic/body"].opacity is None
    tentacle.click((places[4] + places[5]) / 2 + [0, 0, 5], [0, 0, -1])
    assert tentacle.widget("Bone").value == SKELETON.names[4]
    tentacle.widget("See the bones").set(True)
    tentacle.click(places[2] + [0, 0, 5], [0, 0, -1])
    assert tentacle.widget("Bone").value == SKELETON.names[2]


def test_what_is_turned_before_there_is_flesh_counts(tmp_path):
    one = Window(tmp_path, TENTACLE)
    while TURN not in one.client.scene.nodes:
        time.sleep(0.001)
    one.turn([1, 0, 0], 50)
    one.rest()
    assert one.document["motion"]["keys"][0]["turns"]
    assert np.array_equal(one.points, one.run().points[0])
    one.session.close()


# Poses over time


def test_poses_over_time_are_keys_of_the_scene(tentacle):
    tentacle.press("Add a pose later")
    assert tentacle.session.timeline.count == 16
    assert tentacle.session.timeline.frame == 15
    tentacle.turn([1, 0, 0], 60)
    tentacle.rest()
    clip = tentacle.run()
    assert [key["time"] for key in tentacle.document["motion"]["keys"]] == [0.0, 0.5]
    for frame in (0, 7, 15):
        tentacle.widget("Frame").set(frame)
        assert np.array_equal(tentacle.points, clip.points[frame])


def test_turning_between_two_keys_sets_a_third(tentacle):
    tentacle.press("Add a pose later")
    tentacle.turn([1, 0, 0], 60)
    tentacle.rest()
    tentacle.widget("Frame").set(6)
    tentacle.press("Set a key here")
    assert [key["time"] for key in tentacle.document["motion"]["keys"]] == [0.0, 0.2, 0.5]
    tentacle.widget("Frame").set(9)
    tentacle.turn([0, 1, 0], 20)
    tentacle.rest()
    assert [key["time"] for key in tentacle.document["motion"]["keys"]] == [0.0, 0.2, 0.3, 0.5]
    assert np.array_equal(tentacle.points, tentacle.run().points[9])
    tentacle.press("Remove the key here")
    assert [key["time"] for key in tentacle.document["motion"]["keys"]] == [0.0, 0.2, 0.5]
    tentacle.widget("Remove the key here").press()
    assert "no key" in tentacle.client.notes.pop()[1]


def test_a_set_key_changes_nothing(tentacle):
    tentacle.press("Add a pose later")
    tentacle.turn([1, 0, 0], 60)
    tentacle.rest()
    before = tentacle.run().points
    tentacle.widget("Frame").set(5)
    tentacle.press("Set a key here")
    assert np.allclose(tentacle.run().points, before, atol=1e-4)


# Inertia


def test_a_shaken_body_swings_as_its_scene_says(window):
    tentacle = window({**TENTACLE, "hold": 0.4})
    tentacle.press("Shake")
    assert tentacle.widget("With inertia").value
    clip = tentacle.run()
    assert len(clip) == tentacle.session.timeline.count == 25
    assert tentacle.session.timeline.playing
    tentacle.stand()
    for frame in (9, 18, 24):
        tentacle.widget("Frame").set(frame)
        assert np.array_equal(tentacle.points, clip.points[frame])
    still = tentacle.session.scene({**TENTACLE, "motion": {"keys": [{"time": 0.0}]}}).shape.points
    assert np.abs(clip.points[9] - clip.points[9].mean(0) - (still - still.mean(0))).max() > 0.01  # flesh lags


def test_what_is_for_inertia_alone_waits_while_there_is_none(window):
    tentacle = window({**TENTACLE, "hold": 0.2})
    tentacle.press("Shake")
    tentacle.widget("With inertia").set(False)
    tentacle.rest()
    assert tentacle.document["static"]
    assert "hold" not in tentacle.document
    frames = tentacle.session.timeline.count
    tentacle.widget("Frame").set(frames // 2)
    tentacle.rest()
    assert np.array_equal(tentacle.points, tentacle.run().points[frames // 2])
    tentacle.widget("With inertia").set(True)
    tentacle.rest()
    assert tentacle.document["hold"] == 0.2


def test_flesh_swings_live_while_a_bone_is_turned_and_comes_to_rest_in_the_scene(window):
    tentacle = window({**TENTACLE, "damping": 0.02})
    tentacle.widget("With inertia").set(True)
    tentacle.rest()
    shown: list[np.ndarray] = []
    move = tentacle.panel.drawn.move
    tentacle.panel.drawn.move = lambda points: (shown.append(points), move(points))
    tentacle.choose(SKELETON.names[1])
    tentacle.turn([1, 0, 0], 35)
    tentacle.rest()
    goal = tentacle.run().points
    assert len(goal) == 1
    assert np.array_equal(tentacle.points, goal[0])
    assert len(shown) > 10
    tip = np.argmax(np.linalg.norm(goal[0] - shown[0], axis=1))
    way = (goal[0][tip] - shown[0][tip]) / np.linalg.norm(goal[0][tip] - shown[0][tip])
    assert max(float((points[tip] - goal[0][tip]) @ way) for points in shown) > 0  # beyond where it comes to rest


def test_a_ball_pushes_flesh_aside(tentacle):
    tentacle.press("Add a ball")
    assert tentacle.widget("With inertia").value
    body = tentacle.session.scene(tentacle.document).shape.points
    centre = np.array([body[:, 0].max() - 0.1 * np.ptp(body[:, 0]), *body[:, 1:].mean(0)])
    ball = tentacle.client.scene["/elastic/balls/handle0"]
    ball.drag(position=tentacle.session.stage.shown(centre))
    ball.drag(phase="end")
    tentacle.rest()
    what = tentacle.document["obstacles"][0]["what"]
    x, y, z, radius = (float(number) for number in what.removeprefix("sphere:").split(","))
    assert np.allclose([x, y, z], centre, atol=1e-5)
    assert np.array_equal(tentacle.points, tentacle.run().points[0])
    inside = np.linalg.norm(tentacle.points - [x, y, z], axis=1)
    assert inside.min() > 0.98 * radius > np.linalg.norm(body - [x, y, z], axis=1).min()
    tentacle.press("Take the last ball away")
    assert "obstacles" not in tentacle.document


# Flesh


def test_another_material_needs_no_other_body(tentacle):
    tentacle.widget("Gravity").set(9.81)
    tentacle.rest()
    nodes, before = tentacle.panel.making._body.nodes, tentacle.points
    tentacle.widget("Firmness").set(4.0)
    tentacle.rest()
    assert tentacle.document["material"] == {"young": 1e4}
    assert tentacle.panel.making._body.nodes is nodes
    assert np.array_equal(tentacle.points, tentacle.run().points[0])
    assert np.abs(tentacle.points - before).max() > 1e-3
    tentacle.widget("Detail").set(500)
    tentacle.rest()
    assert len(tentacle.panel.making._body.nodes) > len(nodes)
    assert np.array_equal(tentacle.points, tentacle.run().points[0])


def test_a_part_of_the_flesh_has_its_own_material(tentacle):
    tentacle.widget("Gravity").set(9.81)
    tentacle.widget("Material of").set(SKELETON.names[3])
    tentacle.widget("Firmness").set(4.0)
    tentacle.rest()
    assert tentacle.document["regions"] == [{"name": SKELETON.names[3], "young": 1e4}]
    assert "material" not in tentacle.document
    assert np.array_equal(tentacle.points, tentacle.run().points[0])
    tentacle.widget("Material of").set("the whole body")
    assert tentacle.widget("Firmness").value == 5.0


# Drawing


def test_bones_are_drawn_by_clicking_through_the_body(tentacle):
    body = tentacle.session.scene({**TENTACLE, "motion": {"keys": [{"time": 0.0}]}}).shape.points
    places = SKELETON.rest_world[0]
    tentacle.widget("Draw by clicking").set(True)
    tentacle.rest()
    assert not tentacle.client.scene[TURN].visible
    tentacle.press("Start anew")
    for joint in (1, 4, 6, 2):
        tentacle.click(places[joint] + [0, 0, 5], [0, 0, -1])
    bones = tentacle.document["skeleton"]["bones"]
    assert np.allclose([bone["at"] for bone in bones], places[[1, 4, 6, 2]], atol=0.02)
    assert [bone.get("parent") for bone in bones] == [None, "joint1", "joint2", "joint3"]
    tentacle.press("Take back")
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
    tentacle.press("Start anew")
    tentacle.click(SKELETON.rest_world[0][2] + [0, 0, 5], [0, 0, -1])
    assert "regions" not in tentacle.document


def test_clicks_that_miss_add_nothing(tentacle):
    tentacle.widget("Draw by clicking").set(True)
    before = tentacle.document
    tentacle.click([0, 100, 5], [0, 0, -1])
    assert tentacle.document == before
    assert "did not go through" in tentacle.session._hint.content


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
    one = window({"engine": "elastic", "shape": {"file": "cloud.ply"}, "skeleton": {"bones": bones}, "nodes": 300})
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
    tentacle.widget("Frame").set(2)
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
    alien = pliant.Skeleton.from_positions([[0, 0, 0], [0, 1, 0]], [-1, 0], ["x", "y"])
    rest = alien.rest_pose()
    pliant.write(tmp_path / "alien.bvh", Motion(alien, rest.rotations[None], rest.translations[None]))
    with pytest.raises(pliant.InputError, match="no joint for 9"):
        tentacle.panel.take(tmp_path / "alien.bvh")
    assert tentacle.document == before


def test_a_motion_of_the_gallery_plays(window):
    document = {"engine": "elastic", "shape": {"gallery": "dinosaur", "vertices": 500}, "nodes": 300}
    document |= {"skeleton": {"gallery": "dinosaur"}, "motion": {"gallery": "dinosaur_walk", "last": 3}}
    one = window(document)
    assert one.session.timeline.playing
    one.stand()
    clip = one.run()
    one.widget("Frame").set(2)
    assert np.array_equal(one.points, clip.points[2])
    assert one.document == document


def test_a_closed_panel_leaves_nothing(tentacle):
    tentacle.press("Add a ball")
    tentacle.session.start(TENTACLE)
    tentacle.rest()
    assert "/elastic/balls/ball0" not in tentacle.client.scene.nodes
    assert not tentacle.widget("With inertia").value


# Drafts


def test_a_pose_said_and_read_again_is_the_same():
    rng = np.random.default_rng(3)
    skeleton = gallery.creature_skeleton()
    turns = {name: rotations.exp(0.7 * rng.normal(size=3)) for name in skeleton.names}
    pose = skeleton.pose(turns, root=skeleton.offsets[0] + [0.1, 0.2, -0.3])
    again = Draft({"engine": "elastic", "shape": {}, "motion": {"keys": [{"time": 0.0} | said_pose(pose)]}})
    from pliant.scene.posing import turned_pose

    key = again.document()["motion"]["keys"][0]
    back = turned_pose(skeleton, key["turns"], move=key["move"])
    assert np.allclose(back.world()[0], pose.world()[0], atol=1e-5)
    assert np.allclose(rotations.matrix(back.world()[1]), rotations.matrix(pose.world()[1]), atol=1e-5)


def test_bones_said_and_drawn_again_are_where_they_were():
    skeleton = gallery.creature_skeleton()
    drawn = Drawing(skeleton).skeleton
    assert drawn is not None
    assert drawn.names == skeleton.names
    assert np.allclose(drawn.rest_world[0], skeleton.rest_world[0], atol=1e-6)
    assert said_bones(drawn) == said_bones(skeleton)


def test_the_first_bone_to_turn_is_an_arm():
    skeleton = gallery.creature_skeleton()
    assert skeleton.names[first_to_turn(skeleton, np.array([0.0, 1.0, 0.0]))].startswith("upperarm")

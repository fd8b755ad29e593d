"""The studio's elastic panel without a browser: bones turned, flesh at rest and swinging, and what the scene says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import pliant
from elastic_window import SKELETON, SWINGING, TENTACLE, TURN, Window, windows
from fake_viser import do
from pliant import gallery
from pliant.app.studio.desk import Document
from pliant.core import rotations
from pliant.engines.simulate.app.panel import ElasticPanel
from pliant.engines.simulate.app.panel_document import world_rotations
from pliant.engines.simulate.app.panel_live import LiveBody


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Callable[[Document], Window]]:
    with windows(tmp_path) as opened:
        yield opened


@pytest.fixture
def tentacle(window) -> Window:
    return window(TENTACLE)


# Turning bones


def test_a_visitor_sees_a_bone_to_turn_and_the_shape_at_rest(tentacle):
    assert tentacle.client.scene[TURN].visible
    assert "ring" in tentacle.session.page.state["hint"]
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
    asked = tentacle.session.stage.world_rotation(tentacle.client.scene[TURN].wxyz)
    scene = tentacle.session.scene(tentacle.document)
    found = world_rotations(scene.motion[0])[1][5]
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


def test_material_is_painted_on_the_body(tentacle):
    places = SKELETON.rest_world[0]
    tentacle.widget("Paint stiffness").set(True)
    tentacle.click((places[4] + places[5]) / 2 + [0, 0, 5], [0, 0, -1])
    tentacle.rest()
    (dab,) = tentacle.document["regions"]
    scene = tentacle.session.scene(tentacle.document)
    assert dab["young"] == pytest.approx(10 * scene.options.young)
    assert np.linalg.norm(np.subtract(dab["centre"], scene.shape.points), axis=1).min() == 0.0
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


def test_what_is_set_before_the_shape_is_read_counts(tmp_path, monkeypatch):
    go_on, update = threading.Event(), ElasticPanel.update
    monkeypatch.setattr(ElasticPanel, "update", lambda self, job: go_on.wait(60) and update(self, job))
    one = Window(tmp_path, TENTACLE)
    while one.panel is None:
        time.sleep(0.001)
    one.widget("Gravity").set(9.81)
    one.widget("Detail").set(400)
    one.widget("With inertia").set(True)
    go_on.set()
    one.rest()
    assert one.document == SWINGING | {"gravity": 9.81, "nodes": 400}
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
        do(tentacle.session, "scrub", frame)
        assert np.array_equal(tentacle.points, clip.points[frame])


def test_turning_between_two_keys_sets_a_third(tentacle):
    tentacle.press("Add a pose later")
    tentacle.turn([1, 0, 0], 60)
    tentacle.rest()
    do(tentacle.session, "scrub", 6)
    tentacle.press("Set a key here")
    assert [key["time"] for key in tentacle.document["motion"]["keys"]] == [0.0, 0.2, 0.5]
    do(tentacle.session, "scrub", 9)
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
    do(tentacle.session, "scrub", 5)
    tentacle.press("Set a key here")
    assert np.allclose(tentacle.run().points, before, atol=1e-4)


# Inertia


def test_a_shaken_body_swings_as_its_scene_says(window):
    tentacle = window({**SWINGING, "hold": 0.4})
    tentacle.widget("With inertia").set(False)
    tentacle.press("Shake")
    assert tentacle.widget("With inertia").value
    clip = tentacle.run()
    assert len(clip) == tentacle.session.timeline.count == 25
    assert tentacle.session.timeline.playing
    tentacle.stand()
    for frame in (9, 18, 24):
        do(tentacle.session, "scrub", frame)
        assert np.array_equal(tentacle.points, clip.points[frame])
    still = tentacle.session.scene({**TENTACLE, "motion": {"keys": [{"time": 0.0}]}}).shape.points
    assert np.abs(clip.points[9] - clip.points[9].mean(0) - (still - still.mean(0))).max() > 0.01  # flesh lags


def test_what_is_for_inertia_alone_waits_while_there_is_none(window):
    tentacle = window({**SWINGING, "hold": 0.2})
    tentacle.press("Shake")
    tentacle.widget("With inertia").set(False)
    tentacle.rest()
    assert tentacle.document["static"]
    assert "hold" not in tentacle.document
    frames = tentacle.session.timeline.count
    do(tentacle.session, "scrub", frames // 2)
    tentacle.rest()
    assert np.array_equal(tentacle.points, tentacle.run().points[frames // 2])
    tentacle.widget("With inertia").set(True)
    tentacle.rest()
    assert tentacle.document["hold"] == 0.2


def test_flesh_swings_live_while_a_bone_is_turned_and_comes_to_rest_in_the_scene(window):
    tentacle = window({**SWINGING, "damping": 0.02})
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


def test_a_ball_pushes_flesh_aside(tentacle, monkeypatch):
    monkeypatch.setattr("pliant.engines.simulate.app.panel_live.AT_REST", 0.1)  # it need not swing for long
    tentacle.press("Add a ball")
    assert tentacle.widget("With inertia").value
    body = tentacle.session.scene(tentacle.document).shape.points
    centre = np.array([body[:, 0].max() - 0.1 * np.ptp(body[:, 0]), *body[:, 1:].mean(0)])
    ball = tentacle.client.scene["/elastic/obstacle 1/handle"]
    ball.drag(position=tentacle.session.stage.shown(centre))
    ball.drag(phase="end")
    tentacle.rest()
    what = tentacle.document["obstacles"][0]["what"]
    x, y, z, radius = (float(number) for number in what.removeprefix("sphere:").split(","))
    assert np.allclose([x, y, z], centre, atol=1e-5)
    assert np.array_equal(tentacle.points, tentacle.run().points[0])
    inside = np.linalg.norm(tentacle.points - [x, y, z], axis=1)
    assert inside.min() > 0.98 * radius > np.linalg.norm(body - [x, y, z], axis=1).min()
    tentacle.client.gui.inside("Ball 1")["Remove it"].press()
    tentacle.rest()
    assert "obstacles" not in tentacle.document


def test_all_that_flesh_gives_way_to_is_seen(window, tmp_path):
    block = gallery.box(500)
    pliant.write(tmp_path / "block.obj", block.with_points(0.3 * block.points + 9))
    (tmp_path / "rise.csv").write_text("frame,x,y,z\n0,0,0,0\n2,0,4,0\n")
    kinds = (
        "plane:0,-9,0,0,1,0",
        "box:9,0,0,1,2,1",
        "capsule:9,0,0,9,2,0,0.5",
        "cylinder:9,0,0,9,2,0,0.5",
        "block.obj",
    )
    said = [{"what": what} for what in kinds] + [{"what": "sphere:0,20,9,1", "motion": "rise.csv"}]
    one = window({**SWINGING, "hold": 0.07, "obstacles": said})
    one.stand()
    nodes = one.client.scene.nodes
    assert [f"/elastic/obstacle {k}/shape" in nodes for k in range(1, 7)] == [True] * 6
    dragged = [f"/elastic/obstacle {k}/handle" in nodes for k in range(1, 7)]
    assert dragged == [True, True, True, False, False, False]

    def height(frame: int) -> float:
        do(one.session, "scrub", frame)
        return one.session.stage.world(nodes["/elastic/obstacle 6/shape"].vertices)[:, 1].mean()

    assert np.isclose(height(2) - height(0), 4, atol=1e-4)
    assert one.document["obstacles"] == said


def test_a_rod_is_dragged_and_turned(window):
    one = window({**SWINGING, "obstacles": [{"what": "capsule:8,20,0,10,20,0,0.5"}]})
    handle = one.client.scene["/elastic/obstacle 1/handle"]
    place = one.session.stage.shown([9.0, 25.0, 0.0])
    for part in (0.3, 1.0):
        way = rotations.from_axis_angle([0, 0, 1], part * np.pi / 2)
        handle.drag(position=place, wxyz=one.session.stage.shown_rotation(way))
    handle.drag(phase="end")
    one.rest()
    numbers = [float(x) for x in one.document["obstacles"][0]["what"].removeprefix("capsule:").split(",")]
    assert np.allclose(numbers, [9, 24, 0, 9, 26, 0, 0.5])
    one.widget("Size in % of the shape").set(5.0)
    one.rest()
    radius = float(one.document["obstacles"][0]["what"].rpartition(",")[2])
    assert np.isclose(radius, 0.05 * one.session.stage.half)


def test_obstacles_stand_still_while_flesh_swings_live(window, tmp_path):
    (tmp_path / "pass.csv").write_text("frame,x,y,z\n0,0,0,0\n30,0,60,0\n")
    one = window({**SWINGING, "obstacles": [{"what": "sphere:0,-30,0,1", "motion": "pass.csv"}]})
    scene = one.session.scene(one.document)
    live = LiveBody(scene, one.panel.making.body(one.document, scene), scene.frame_poses[0], 2)
    for _ in range(3):
        live.step(scene.frame_poses[0])
    stood = [moving.at(60 * live.state.time).centre for moving in live._stepper.collisions.solver.obstacles]
    assert np.allclose(stood, [[0, -26, 0]])


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


def test_a_body_is_dragged_itself(tentacle):
    at, above = tentacle.panel.pose.world()[0][3:5]
    start = at + 0.6 * (above - at) + [0.05, 0.0, 0.05]  # on its surface
    end = at + np.linalg.norm(start - at) * np.array([0.6, 0.8, 0.0])
    for share, phase in ((0.0, "start"), (0.5, "update"), (1.0, "end")):
        shown = tentacle.session.stage.shown([start, start + share * (end - start)])
        tentacle.client.scene["/elastic/body"].pull(*shown, phase)
    tentacle.rest()
    (turned,) = tentacle.document["motion"]["keys"][0]["turns"].items()
    assert turned[0] == SKELETON.names[3]
    np.testing.assert_allclose(rotations.rotate(turned[1], start - at), end - at, atol=1e-5)
    assert np.array_equal(tentacle.points, tentacle.run().points[0])


def test_units_say_how_large_the_body_is_and_are_undone(tentacle):
    tentacle.widget("Gravity").set(9.81)
    tentacle.noted()
    before, units = tentacle.points, tentacle.widget("Units")
    units.set("centimetres")
    tentacle.noted()
    scene = tentacle.session.scene(tentacle.document)
    assert scene.unit == pytest.approx(0.01)
    assert tentacle.document["size"] == pytest.approx(0.01 * np.ptp(scene.shape.points, axis=0).max())
    assert np.array_equal(tentacle.points, tentacle.run().points[0])
    assert np.abs(tentacle.points - before).max() > 1e-3
    assert tentacle.session.page.state["units"] == "cm"
    assert tentacle.session.history.labels[-1] == "Units"
    saved = tentacle.document
    tentacle.session._begin(lambda: dict(saved), "again")  # a saved scene knows them
    tentacle.noted()
    assert units.value == "centimetres"
    for _ in range(2):
        tentacle.session.undo()
        tentacle.noted()
    assert "size" not in tentacle.document
    assert (units.value, tentacle.session.page.state["units"]) == ("as the shape says", "")


def test_a_part_of_the_flesh_has_its_own_material(tentacle):
    tentacle.widget("Gravity").set(9.81)
    tentacle.widget("Material of").set(SKELETON.names[3])
    tentacle.widget("Firmness").set(4.0)
    tentacle.noted()
    assert tentacle.session.history.labels[-1] == "Material of a part added"
    assert tentacle.document["regions"] == [{"name": SKELETON.names[3], "young": 1e4}]
    assert "material" not in tentacle.document
    assert np.array_equal(tentacle.points, tentacle.run().points[0])
    tentacle.widget("Material of").set("the whole body")
    assert tentacle.widget("Firmness").value == 5.0
    tentacle.widget("Firmness").set(4.5)
    tentacle.noted()
    assert tentacle.session.history.labels[-1] == "Material: Firmness"


def test_looking_at_a_material_changes_nothing(window):
    beyond = {"young": 5e7, "poisson": 0.495, "density": 5000.0}
    said = {**SWINGING, "material": beyond, "regions": [{"name": SKELETON.names[2], "density": 50.0, "young": 123.0}]}
    said |= {"damping": 0.2, "gravity": 40.0}
    one = window(said)
    for part in (SKELETON.names[2], SKELETON.names[5], "the whole body"):
        one.widget("Material of").set(part)
        one.rest()
        assert one.document == said
    assert one.widget("Density").value == 3000.0
    one.widget("Density").set(2000.0)
    one.rest()
    assert one.document == said | {"material": beyond | {"density": 2000.0}}


def test_a_gravity_that_has_a_direction_keeps_it(window):
    one = window({**TENTACLE, "gravity": [0.0, -3.0, 4.0]})
    gravity = one.widget("Gravity")
    assert (gravity.kind, gravity.value) == ("text", "0,-3,4")
    assert one.document["gravity"] == [0.0, -3.0, 4.0]


def test_an_axis_that_was_up_is_up_no_more(tentacle):
    """Gravity and the ground follow the scene, not what it said before."""
    making = tentacle.panel.making
    first, up_z, again = (making.scene(tentacle.document | {"gravity": 9.81, "up": up}) for up in ("auto", "z", "auto"))
    assert up_z.shape is first.shape is again.shape
    np.testing.assert_array_equal(up_z.pull, first.pull[[0, 2, 1]])
    np.testing.assert_array_equal(again.pull, first.pull)

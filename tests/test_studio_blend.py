"""The studio's panel for blended shapes, without a browser: what it shows at rest is what its scene gives."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pliant
import pliant.engines.blend.app.panel
from fake_viser import Client, do, fire, tell
from pliant import gallery
from pliant.app.scene import read_scene, scene_from, write_scene
from pliant.app.studio.folders import Folders
from pliant.app.studio.session import Session
from pliant.contact import Sphere, parse_obstacle
from pliant.engines.blend.app.panel import BlendPanel
from pliant.engines.blend.app.panel_keys import Keys
from pliant.engines.blend.app.panel_widgets import PAGE, Sliders
from pliant.engines.blend.app.scene import BlendScene
from pliant.io.gltf import write_shapes

NAMES = ("open", "fist", "grip", "spread")
HAND: dict[str, Any] = {
    "engine": "blend",
    "frames": 13,
    "shapes": {"gallery": "hand", "vertices": 600, "names": list(NAMES)},
}
SHORT = HAND | {"frames": 4}
PLAIN = {key: value for key, value in HAND.items() if key != "frames"}


class Window:
    """A window of the studio on a scene."""

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self.folder = folder
        (folder / "uploads").mkdir(exist_ok=True)
        self.client = Client()
        folders = Folders.of([folder], folder / "uploads")
        self.session = Session(self.client, folders, {"blend": BlendPanel}, document, largest_upload=1 << 20)
        self.rest()

    @property
    def panel(self) -> Any:
        return self.session.panel

    @property
    def gui(self) -> Any:
        return self.client.gui

    @property
    def scene(self) -> Any:
        return self.client.scene

    def rest(self, seconds: float = 60.0) -> None:
        """Wait until all is solved."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.session.live.idle(seconds)
            fire([], None)  # what the panel has set is heard by now
            if self.session.live.idle(0.0):
                return

    def run(self) -> pliant.Animation:
        """What the scene gives that would be saved, run anew."""
        return scene_from(self.panel.document(), self.folder).run().clip

    def shown(self) -> Any:
        return self.panel.drawn.points

    def scrub(self, frame: int) -> None:
        do(self.session, "scrub", frame)
        self.rest()

    def display(self, points: Any) -> Any:
        return self.session.stage.shown(points)


class PlainDesk:
    """A desk with widgets alone."""

    def __init__(self, client: Client) -> None:
        self.gui, self.timeline = client.gui, SimpleNamespace(lock=threading.RLock())

    def on(self, widget: Any, done: Any) -> None:
        widget.callbacks.append(lambda event: done())


@pytest.fixture
def window(tmp_path: Path) -> Any:
    made: list[Window] = []

    def make(document: dict[str, Any] = SHORT) -> Window:
        made.append(Window(tmp_path, document))
        return made[-1]

    yield make
    for one in made:
        one.session.close()
        assert [body for title, body in one.client.notes if "inside pliant" in body] == []


def test_a_rig_with_a_clip_of_its_own_shows_that(window: Any, tmp_path: Path) -> None:
    shapes = gallery.bar(500)
    values = np.zeros((5, len(shapes)))
    values[:, 1] = [0, 0.2, 0.4, 0.3, 0.1]
    write_shapes(tmp_path / "rig.glb", shapes, pliant.WeightClip(shapes.names, values, 12.0))
    document = {"engine": "blend", "shapes": {"file": "rig.glb"}, "springs": {"interior": "none"}}
    shown = window(document)
    assert shown.panel.document() == document | {"fps": 12.0}
    shown.scrub(2)
    assert shown.gui[shapes.names[1]].value == pytest.approx(0.4)
    assert np.allclose(shown.shown(), shown.run().points[2], atol=1e-6)
    shown.panel.forget_keys()
    shown.rest()
    assert shown.panel.document()["clip"] == "none"
    assert len(shown.run()) == shown.panel.view.frames
    shown.panel.set_frames(4)
    shown.rest()
    assert len(shown.run()) == 4


def test_what_is_seen_first_is_the_clip_through_all_shapes(window: Any) -> None:
    shown = window(HAND)
    assert "Drag a slider" in shown.session.page.state["hint"]
    clip = shown.run()
    assert len(clip) == shown.session.timeline.count == 13
    for frame in (0, 4, 7):
        shown.scrub(frame)
        np.testing.assert_allclose(shown.shown(), clip.points[frame], atol=1e-12)
    assert "All 13 frames are solved" in shown.panel.key_widgets._solved.content


def test_a_slider_makes_a_pose_that_its_scene_gives(window: Any) -> None:
    shown = window()
    shown.gui["fist"].set(0.3)
    shown.gui["spread"].set(0.25)
    shown.rest()
    assert shown.panel.document()["weights"] == [{"fist": 0.3, "spread": 0.25}]
    clip = shown.run()
    assert len(clip) == 1
    np.testing.assert_allclose(shown.shown(), clip.points[0], atol=1e-12)
    node = shown.scene["/blend/shape"]
    np.testing.assert_allclose(node.vertices, shown.display(clip.points[0]), atol=1e-5)


def test_a_slider_moved_before_the_springs_are_there_counts(tmp_path: Path) -> None:
    (tmp_path / "uploads").mkdir()
    client = Client()
    session = Session(
        client, Folders.of([tmp_path], tmp_path / "uploads"), {"blend": BlendPanel}, SHORT, largest_upload=1 << 20
    )
    while "fist" not in client.gui.widgets or "All sliders to 0" not in client.gui.widgets:
        time.sleep(0.001)
    client.gui["fist"].set(0.5)
    assert session.live.idle(60)
    points = session.panel.drawn.points  # type: ignore[union-attr]
    np.testing.assert_allclose(points, session.panel.rig.solve({"fist": 0.5}).points, atol=1e-12)  # type: ignore[union-attr]
    session.close()


def test_sliders_follow_the_timeline(window: Any) -> None:
    shown = window(HAND)
    shown.scrub(4)
    assert shown.gui["fist"].value == 1.0
    shown.scrub(7)
    assert [shown.gui[name].value for name in NAMES[1:]] == pytest.approx([0.25, 0.75, 0.0])
    assert shown.panel.document() == HAND


def test_keys_are_set_where_the_timeline_stands(window: Any) -> None:
    shown = window(HAND)
    shown.scrub(6)
    shown.gui["spread"].set(0.8)
    shown.gui["Set a key here"].press()
    shown.rest()
    document = shown.panel.document()
    assert document["weights"][3] == {"fist": 0.5, "grip": 0.5, "spread": 0.8}
    clip = shown.run()
    assert len(clip) == 13
    np.testing.assert_allclose(shown.shown(), clip.points[6], atol=1e-12)
    shown.scrub(7)
    assert shown.gui["spread"].value == pytest.approx(0.4)
    np.testing.assert_allclose(shown.shown(), clip.points[7], atol=1e-12)
    shown.gui["spread"].set(0.1)  # with keys of one's own, the timeline is what is saved
    shown.rest()
    assert shown.panel.document() == document
    shown.gui["What is saved"].set("The pose that is seen")
    shown.rest()
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-12)
    shown.gui["Remove the key here"].press()
    shown.gui["Forget all keys"].press()
    shown.rest()
    assert shown.panel.document() == PLAIN


def test_a_scene_with_keys_opens_as_it_was_saved(window: Any, tmp_path: Path) -> None:
    document = {**HAND, "weights": [{}, {"fist": 1.0}, {"spread": 0.5}], "frames": 5, "fps": 12.0}
    shown = window(document)
    assert shown.panel.document() == document
    shown.scrub(2)
    assert shown.gui["fist"].value == 1.0
    path = shown.session.save("mine")
    np.testing.assert_allclose(shown.shown(), read_scene(path).run().clip.points[2], atol=1e-12)


def test_a_ball_is_dragged_in_and_the_shape_gives_way(window: Any) -> None:
    shown = window()
    shown.gui["Add a ball"].press()
    handle = shown.scene["/blend/obstacle 1/handle"]
    base = shown.panel.scene.shapes.base.points
    tip = int(np.argmax(base[:, 1]))
    start = handle.position.copy()
    end = shown.display(base[tip] - [0.0, 0.03, -0.015])
    for share in np.linspace(0, 1, 8):
        handle.drag((1 - share) * start + share * end)
    shown.rest()
    (said,) = shown.panel.document()["obstacles"]
    ball = parse_obstacle(said["what"])
    assert isinstance(ball, Sphere)
    np.testing.assert_allclose(shown.display(ball.centre), end, atol=1e-9)
    assert ball.signed(base)[0].min() < -0.005 < ball.signed(shown.shown())[0].min()
    clip = shown.run()
    assert len(clip) == 1
    np.testing.assert_allclose(shown.shown(), clip.points[0], atol=1e-9)
    shown.gui["Size in % of the shape"].set(5.0)
    shown.rest()
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-9)
    shown.gui["Friction"].set(0.4)
    shown.rest()
    assert shown.panel.document()["friction"] == 0.4
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-9)
    shown.gui["Remove it"].press()
    shown.rest()
    assert "obstacles" not in shown.panel.document()
    assert "friction" not in shown.panel.document()
    assert not [name for name in shown.scene.nodes if "obstacle" in name]


def test_things_are_added_beside_each_other_and_are_said_in_words(window: Any) -> None:
    shown = window()
    for word in ("ball", "box", "rod"):
        shown.gui[f"Add a {word}"].press()
    shown.rest()
    things = [parse_obstacle(said["what"]) for said in shown.panel.document()["obstacles"]]
    assert [type(thing).__name__ for thing in things] == ["Sphere", "Box", "Capsule"]
    for k, thing in enumerate(things):
        assert all(thing.signed(other.middle[None])[0][0] > 0 for other in things[:k])
        assert thing.signed(shown.panel.scene.shapes.base.points)[0].min() > 0
    half = np.sqrt(0.5)
    shown.scene["/blend/obstacle 3/handle"].drag(wxyz=(half, 0.0, 0.0, half))  # a quarter turn about the vertical
    shown.rest()
    rod = parse_obstacle(shown.panel.document()["obstacles"][2]["what"])
    np.testing.assert_allclose(rod.middle, things[2].middle, atol=1e-12)
    np.testing.assert_allclose(np.abs(rod.b - rod.a), np.abs(things[2].b - things[2].a)[[2, 1, 0]], atol=1e-12)


def test_boxes_are_rotated(window: Any) -> None:
    shown = window({**SHORT, "obstacles": [{"what": "box:9,0,0,1,2,3,0,30,0"}]})
    handle = shown.scene["/blend/obstacle 1/handle"]
    handle.drag(np.add(handle.position, [0.0, 0.0, 0.5]))
    shown.rest()
    box = parse_obstacle(shown.panel.document()["obstacles"][0]["what"])
    np.testing.assert_allclose(pliant.rotations.log(box.rotation), [0, np.pi / 6, 0], atol=1e-12)
    handle.drag(wxyz=(1.0, 0.0, 0.0, 0.0))
    shown.rest()
    assert shown.panel.document()["obstacles"][0]["what"].count(",") == 5


def test_a_rotated_box_is_removed_and_brought_back(window: Any) -> None:
    """Written and read again, its angles differ in the last digit."""
    shown = window({**SHORT, "obstacles": [{"what": "box:9,0,0,1,2,3,0,30,0"}]})
    rng = np.random.default_rng(0)
    for _ in range(5):
        turn = pliant.rotations.exp(rng.normal(size=3))
        shown.scene[shown.panel.obstacles.shown[0].node + "/handle"].drag(wxyz=turn, phase="end")
        shown.rest()
        (box,) = shown.panel.document()["obstacles"]
        shown.panel.remove_selected()
        shown.rest()
        assert shown.panel.obstacles.put([box])
        assert shown.panel.document()["obstacles"] == [box]


def test_a_method_that_contact_has_none_for_waits_while_there_is_contact(window: Any) -> None:
    shown = window(SHORT)
    shown.gui["Method"].set("newton")
    shown.rest()
    assert shown.panel.document()["springs"]["method"] == "newton"
    shown.gui["Add a ball"].press()
    shown.rest()
    assert "springs" not in shown.panel.document()
    assert not shown.client.notes
    shown.gui["Remove it"].press()
    shown.rest()
    assert shown.panel.document()["springs"]["method"] == "newton"


def test_on_the_timeline_contact_is_that_of_the_clip(window: Any) -> None:
    shapes = gallery.hand(700)
    size = float(shapes.base.diagonal)
    ball = (
        f"sphere:{','.join(map(str, shapes.base.points.mean(axis=0) + np.array([0.0, 0.0, 0.15 * size])))},{0.1 * size}"
    )
    box = f"box:{9 * size},0,0,{size},{size},{size}"
    document = {
        **HAND,
        "weights": [{}, {"fist": 0.6}],
        "frames": 5,
        "friction": 0.2,
        "obstacles": [{"what": ball}, {"what": box}],
    }
    shown = window(document)
    clip = shown.run()
    assert shown.panel.document()["obstacles"][0]["what"].startswith("sphere:")
    for frame in (4, 2):
        shown.scrub(frame)
        np.testing.assert_allclose(shown.shown(), clip.points[frame], atol=1e-9)


def test_the_clip_plays_as_far_as_it_is_solved(window: Any) -> None:
    shown = window({**HAND, "fps": 200.0})
    shown.gui["Add a ball"].press()
    shown.rest()
    assert "press **Play**" in shown.panel.key_widgets._solved.content
    seen: set[int] = set()
    move = shown.panel.drawn.move

    def moved(points: Any) -> None:
        seen.add(shown.panel.view.frame)
        move(points)

    shown.panel.drawn.move = moved
    do(shown.session, "play")
    end = time.monotonic() + 60
    while len(seen) < 13 and time.monotonic() < end:
        time.sleep(0.01)
    do(shown.session, "play")
    assert seen == set(range(13))
    assert len(shown.panel.document()["obstacles"]) == 1
    assert shown.panel.view.whole


def test_a_shape_is_pulled_by_shift_and_by_handles(window: Any) -> None:
    shown = window()
    base = shown.panel.scene.shapes.base.points
    tip = int(np.argmax(base[:, 1]))
    to = base[tip] + np.array([0.0, 0.01, 0.04])
    node = shown.scene["/blend/shape"]
    node.pull(shown.display(base[tip]), shown.display(base[tip]), "start")
    for share in (0.3, 0.7, 1.0):
        node.pull(shown.display(base[tip]), shown.display(base[tip] + share * (to - base[tip])))
    node.pull(shown.display(base[tip]), shown.display(to), "end")
    shown.rest()
    (pull,) = shown.panel.document()["pulls"]
    assert pull["vertex"] == tip
    np.testing.assert_allclose(pull["to"], to, atol=1e-9)
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-12)
    ball, aside = shown.scene[f"/blend/pull {tip}/ball"], np.array([0.02, 0.0, 0.0])
    for share, phase in ((0.0, "start"), (1.0, "end")):  # by its ball
        ball.pull(shown.display(to), shown.display(to + share * aside), phase)
    shown.rest()
    to = to + aside
    np.testing.assert_allclose(shown.panel.document()["pulls"][0]["to"], to, atol=1e-9)
    np.testing.assert_allclose(shown.shown()[tip], to, atol=1e-9)
    shown.scene[f"/blend/pull {tip}/handle"].drag(shown.display(base[tip]))
    shown.rest()
    np.testing.assert_allclose(shown.shown()[tip], base[tip], atol=1e-9)
    shown.gui[f"Let go of vertex {tip}"].press()
    shown.rest()
    assert "pulls" not in shown.panel.document()
    assert not [name for name in shown.scene.nodes if "pull" in name]


def test_sliders_follow_what_is_dragged(window: Any) -> None:
    shown = window()
    panel = shown.panel
    shapes = panel.scene.shapes
    name = panel.sliders._known and next(iter(panel.sliders._known))
    goal = pliant.Blendshapes(shapes, interior="none").solve({name: 0.6}).points
    tip = int(np.argmax(np.linalg.norm(goal - shapes.base.points, axis=1)))
    shown.gui["Sliders follow"].set(True)
    node = shown.scene["/blend/shape"]
    for phase in ("start", "end"):
        node.pull(shown.display(shapes.base.points[tip]), shown.display(goal[tip]), phase)
        shown.rest()
    assert "pulls" not in panel.document()
    assert panel.sliders.values[name] == pytest.approx(0.6, abs=0.15)
    assert np.linalg.norm(shown.shown()[tip] - goal[tip]) < 0.03 * shapes.base.diagonal
    shown.gui[name].set(0.1)  # a visitor's slider counts
    shown.rest()
    assert panel.sliders.values[name] == 0.1
    assert not [node for node in shown.scene.nodes if "pull" in node]


def test_a_click_puts_a_handle_on_the_shape(window: Any) -> None:
    shown = window()
    base = shown.panel.scene.shapes.base.points
    tip = int(np.argmax(base[:, 1]))
    place = shown.display(base[tip])
    shown.scene["/blend/shape"].click(place + np.array([0.0, 0.0, 5.0]), (0.0, 0.0, -1.0))
    shown.rest()
    (name,) = [name for name in shown.scene.nodes if name.startswith("/blend/pull") and name.endswith("handle")]
    vertex = int(name.split()[1].split("/")[0])
    assert np.linalg.norm(base[vertex] - base[tip]) < 0.1 * shown.panel.obstacles.diagonal
    assert "pulls" not in shown.panel.document()  # a handle alone pulls nothing
    shown.scene[name].drag(place + np.array([0.0, -0.3, 0.1]))
    shown.rest()
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-12)
    assert shown.panel.document()["pulls"][0]["vertex"] == vertex


def test_not_through_itself_leads_from_the_base_to_the_pose(window: Any) -> None:
    shown = window()
    shown.gui["Not through itself"].set(True)
    shown.gui["grip"].set(0.9)
    shown.rest()
    document = shown.panel.document()
    assert document["self_contact"]
    assert document["weights"] == [{}, {"grip": 0.9}]
    np.testing.assert_allclose(shown.shown(), shown.run().points[-1], atol=1e-9)


def test_linear_blending_and_the_map_are_shown_beside(window: Any) -> None:
    shown = window()
    shown.gui["fist"].set(0.5)
    shown.gui["Linear blending beside it"].set(True)
    shown.rest()
    shapes = shown.panel.scene.shapes
    linear = (shapes.points[0] + shapes.points[shapes.names.index("fist")]) / 2
    ghost = shown.scene["/blend/linear"]
    away = ghost.vertices - shown.display(linear)
    np.testing.assert_allclose(away, away[:1].repeat(len(away), axis=0), atol=1e-5)
    assert ghost.vertices[:, 0].max() < shown.scene["/blend/shape"].vertices[:, 0].min()
    shown.gui["Where it is distorted"].set(True)
    shown.rest()
    words = shown.panel.looks._legend.content
    assert "This shape:" in words
    assert "Linear blending:" in words
    for drawn in (shown.panel.drawn, shown.panel.looks._ghost):
        assert len(np.unique(drawn.colors, axis=0)) > 20
    ours, theirs = (pliant.quality.edge_distortion(shapes, p, weights=shown.panel.rig.weights({"fist": 0.5})) - 1
                    for p in (shown.shown(), linear))  # fmt: skip
    assert f"{100 * np.abs(theirs).max():.0f} % at worst" in words
    assert np.sqrt(np.mean(ours**2)) < np.sqrt(np.mean(theirs**2))
    shown.gui["Where it is distorted"].set(False)
    shown.rest()
    assert shown.panel.drawn.colors is None


def test_further_files_become_shapes_and_keys(window: Any, tmp_path: Path) -> None:
    shown = window()
    shapes = shown.panel.scene.shapes
    pliant.write(tmp_path / "fat.npz", shapes.base.with_points(shapes.base.points * 1.1))
    pliant.write(tmp_path / "other.npz", gallery.hand(700).base)
    (tmp_path / "keys.csv").write_text("fist,spread\n0,0\n0.5,0\n1,0.25\n")
    assert not shown.panel.take(tmp_path / "other.npz")
    assert shown.panel.take(tmp_path / "keys.csv")
    shown.rest()
    assert shown.panel.document()["weights"] == [{}, {"fist": 0.5}, {"fist": 1.0, "spread": 0.25}]
    shown.session.open(tmp_path / "fat.npz")
    shown.rest()
    assert shown.panel.scene.shapes.names == (*shapes.names, "fat")
    shown.gui["fat"].set(0.5)
    shown.gui["What is saved"].set("The pose that is seen")
    shown.rest()
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-12)
    path = shown.session.save("with a shape")
    np.testing.assert_allclose(shown.shown(), read_scene(path).run().clip.points[0], atol=1e-12)


def test_windows_keep_the_shapes_that_they_join_apart(window: Any, tmp_path: Path) -> None:
    one, other = window(), window()
    base = one.panel.scene.shapes.base
    for shown, size in ((one, 1.1), (other, 1.3), (one, 1.5)):
        pliant.write(tmp_path / "fat.npz", base.with_points(base.points * size))
        shown.session.open(tmp_path / "fat.npz")
        shown.rest()
    assert one.panel.scene.shapes.names == (*NAMES, "fat", "fat_1")
    assert other.panel.scene.shapes.names == (*NAMES, "fat")
    for shown, sizes in ((one, (1.1, 1.5)), (other, (1.3,))):
        written = scene_from(shown.panel.document(), tmp_path).shapes.points
        for points, size in zip(written[len(NAMES) :], sizes, strict=True):
            np.testing.assert_allclose(points, size * base.points, atol=1e-12)


def fat_and_thin(shown: Window) -> tuple[Path, Path]:
    """Files of two further shapes."""
    files, base = (shown.folder / "fat.npz", shown.folder / "thin.npz"), shown.panel.scene.shapes.base
    for file, size in zip(files, (1.1, 0.9), strict=True):
        pliant.write(file, base.with_points(base.points * size))
    return files


def test_a_file_opened_while_another_is_joined_is_joined_too(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = window()
    fat, thin = fat_and_thin(shown)
    join, opened = pliant.engines.blend.app.panel.joined_shapes, []

    def slowly(*given: Any) -> Any:
        if not opened:
            opened.append(thin)
            shown.session.open(thin)
        return join(*given)

    monkeypatch.setattr(pliant.engines.blend.app.panel, "joined_shapes", slowly)
    shown.session.open(fat)
    shown.rest()
    assert shown.panel.scene.shapes.names == (*NAMES, "fat", "thin")


def test_work_on_a_scene_that_another_has_replaced_is_not_done(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = window()
    fat, thin = fat_and_thin(shown)
    slider, rigs, make = shown.gui["fist"], [], BlendScene.rig

    def counted(scene: BlendScene) -> Any:
        rigs.append(scene.shapes.names)
        return make(scene)

    monkeypatch.setattr(BlendScene, "rig", counted)
    go = threading.Event()
    shown.session.live.ask("hold", lambda job: go.wait())
    assert shown.panel.take(fat)
    assert shown.panel.take(thin)  # the springs of the shapes before still wait to be made
    slider._value = 0.5
    fire(slider.callbacks, None)  # was on its way when the slider was taken away
    assert shown.panel.view.frame == 0
    go.set()
    shown.rest()
    assert rigs == [(*NAMES, "fat", "thin")]
    assert "weights" not in shown.panel.document()
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-12)


def test_a_slider_moved_while_a_frame_is_looked_up_counts(window: Any) -> None:
    shown = window(HAND)
    table, moved = shown.panel._table, []

    def looked_up(*given: Any) -> Any:
        if not moved:
            moved.append(True)
            shown.gui["grip"].set(0.4)
        return table(*given)

    shown.panel._table = looked_up
    shown.panel.draw(4)  # as playing does, beside the page's loop
    shown.rest()
    assert moved
    assert shown.client.notes == []
    assert shown.panel.document()["weights"] == [{"grip": 0.4}]
    np.testing.assert_allclose(shown.shown(), shown.run().points[0], atol=1e-12)


def test_a_slider_is_moved_while_the_timeline_draws_a_frame(window: Any) -> None:
    """It stops the timeline, and the frame puts the sliders: neither waits for the other for ever."""
    shown, drawing = window(HAND), threading.Event()
    timeline, sliders, grip = shown.session.timeline, shown.panel.sliders, shown.gui["grip"]

    def draw() -> None:
        with timeline.lock:
            drawing.set()
            time.sleep(0.2)  # the page has heard of the slider by now
            sliders.put({"fist": 0.5, "grip": 0.4})

    drawn = threading.Thread(target=draw, daemon=True)
    drawn.start()
    assert drawing.wait(10)
    grip._value = 0.4
    tell(grip.callbacks, SimpleNamespace(target=grip, client=None)).result(10)
    drawn.join(10)
    assert not drawn.is_alive()
    assert sliders.values == {"fist": 0.5, "grip": 0.4}


def test_a_slider_just_moved_is_not_put_back() -> None:
    """The page sets the value first, and tells of it later; a worker may be at work between."""
    client, moved = Client(), []
    sliders = Sliders(PlainDesk(client), ("fist", "grip"), "open", lambda: moved.append(sliders.values))  # type: ignore[arg-type]
    slider = client.gui["fist"]
    slider._value = 0.9
    assert sliders.put({"grip": 0.5})
    fire(slider.callbacks, None)
    assert moved == [{"fist": 0.9, "grip": 0.5}]
    assert not sliders.put({}, lambda: False)
    assert sliders.values == {"fist": 0.9, "grip": 0.5}


def test_pulls_that_the_worker_reads_do_not_change_under_it(window: Any) -> None:
    shown = window({**SHORT, "pulls": [{"vertex": 5, "force": [0.0, 0.0, 1e-3]}]})
    node, tip = shown.scene["/blend/shape"], int(np.argmax(shown.shown()[:, 1]))
    place = shown.display(shown.shown()[tip])
    node.pull(place, place + 0.1, "start")
    pulls = shown.panel.pulls
    before, entries = pulls.tables, [dict(entry) for entry in pulls.tables]
    node.pull(place, place + 0.2, "end")
    assert list(before) == entries
    assert pulls.tables[1]["to"] != entries[1]["to"]
    assert [entry["vertex"] for entry in pulls.tables] == [5, tip]


def test_frames_that_are_solved_are_shown_without_reading_the_scene_anew(
    window: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = window({**HAND, "frames": 4})
    shown.scrub(1)
    read: list[str] = []
    for name in ("_common", "_scene_of"):
        monkeypatch.setattr(shown.panel, name, lambda *given, name=name: read.append(name))
    for frame in (3, 2, 0):
        do(shown.session, "scrub", frame)
    assert read == []


def test_friction_beyond_its_slider_is_kept(window: Any) -> None:
    document = {**HAND, "frames": 2, "friction": 1.5, "obstacles": [{"what": "sphere:0,0,1,0.1"}]}
    shown = window(document)
    assert shown.panel.document()["friction"] == 1.5
    assert shown.gui["Friction"].value == shown.gui["Friction"].max == 1.0  # pages refuse values out of range
    shown.gui["Friction"].set(0.5)
    assert shown.panel.document()["friction"] == 0.5


def test_many_shapes_come_in_pages() -> None:
    names = tuple(f"shape {k}" for k in range(40))
    client = Client()

    moved: list[int] = []
    sliders = Sliders(PlainDesk(client), names, "open", lambda: moved.append(1))  # type: ignore[arg-type]
    seen = [name for name in names if client.gui[name].visible]
    assert seen == list(names[:PAGE])
    client.gui["Find a shape"].set("shape 3")
    seen = [name for name in names if client.gui[name].visible]
    assert seen == ["shape 3", *(f"shape {k}" for k in range(30, 40))]
    client.gui["shape 33"].set(0.5)
    sliders.put({"shape 33": 0.5, "shape 2": 1.2})
    assert moved == [1]
    assert sliders.values == {"shape 2": 1.2, "shape 33": 0.5}


@pytest.mark.parametrize("frames", [1, 2, 9, 10, 36])
def test_keys_said_in_a_scene_give_the_same_frames(frames: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(frames)
    at = sorted(rng.choice(frames, size=min(frames, 3), replace=False).tolist())
    values = rng.uniform(-0.3, 1.2, size=len(at)).tolist()
    keys = Keys(frames, (0.0,), ({},)).without(0)
    assert keys is None
    keys = Keys(frames, (float(at[0]),), ({"fist": values[0]},))
    for frame, value in zip(at[1:], values[1:], strict=True):
        keys = keys.with_key(frame, {"fist": value, "spread": 0.0})
    write_scene(tmp_path / "keys.toml", {**PLAIN, **keys.tables()})
    scene = read_scene(tmp_path / "keys.toml")
    table = scene.table(None)  # type: ignore[arg-type]
    assert len(table) == len(scene) == frames
    np.testing.assert_allclose(table[:, 1], np.interp(np.arange(frames), at, values), atol=1e-12)
    assert not table[:, 2:].any()


def test_keys_stay_in_order_and_can_be_replaced() -> None:
    keys = Keys.spread([{}, {"a": 1.0}, {"b": 1.0}], 9)
    assert keys.at == (0.0, 4.0, 8.0)
    assert keys.tables() == {"weights": [{}, {"a": 1.0}, {"b": 1.0}], "frames": 9}
    with_one = keys.with_key(2, {"a": 0.25})
    assert with_one.tables()["weights"] == [{}, {"a": 0.25}, {"a": 1.0}, {"a": 0.5, "b": 0.5}, {"b": 1.0}]
    assert with_one.with_key(2, {"b": 2.0}).rows[1] == {"b": 2.0}
    assert with_one.without(2) == keys
    assert with_one.has(2)
    assert not keys.has(2)
    assert keys.lasting(5).at == (0.0, 2.0, 4.0)
    assert keys.lasting(1).tables() == {"weights": [{"b": 1.0}]}


def test_stiffness_is_painted_on_the_shape(window: Any) -> None:
    """Dabs and strokes are balls of the scene, seen in colours, undone, and part of what is solved."""
    shown = window(PLAIN | {"weights": [{"fist": 0.5}]})
    free, shape = shown.shown(), shown.scene["/blend/shape"]
    shown.gui["Paint stiffness"].set(True)
    shown.gui["How stiff"].set(2.0)
    shape.click(shown.display(free[np.argmax(free[:, 1])]) + np.array([0.0, 0.0, 5.0]), (0.0, 0.0, -1.0))
    shown.rest()
    (dab,) = shown.panel.document()["regions"]
    assert (dab["stiffness"], dab["radius"]) == (100.0, pytest.approx(0.08 * shown.panel.scene.shapes.base.diagonal))
    painted = shown.panel.drawn.colors
    assert (painted[:, 0] > 2 * painted[:, 2]).any()
    assert not (painted[:, 0] > 2 * painted[:, 2]).all()
    assert np.abs(shown.shown() - free).max() > 1e-4
    np.testing.assert_allclose(shown.shown(), shown.run().points[-1], atol=1e-9)
    eye = np.array(shown.client.camera.position)
    for k, vertex in enumerate((0, 200, 400)):
        shape.pull(eye, shown.display(shown.shown()[vertex]), phase=("start", "update", "end")[k])
    shown.rest()
    assert len(shown.panel.document()["regions"]) > 1
    assert shown.panel.document().get("pulls") is None
    shown.session.undo()
    shown.rest()
    assert shown.panel.document()["regions"] == [dab]
    shown.gui["Wash it off"].press()
    shown.rest()
    assert "regions" not in shown.panel.document()
    np.testing.assert_allclose(shown.shown(), free, atol=1e-9)
    shown.gui["Paint stiffness"].set(False)
    assert shown.panel.drawn.colors is None


def test_a_number_that_is_typed_beyond_the_ends_is_the_nearest(window: Any) -> None:
    shown = window(SHORT)
    frames = shown.client.gui["Frames in all"]
    frames.set(0)
    shown.rest()
    assert (frames.value, shown.session.timeline.count) == (1, 1)
    do(shown.session, "step", 1)
    assert not shown.client.notes


def test_a_handle_whose_arrow_points_at_the_eye_stays(window: Any) -> None:
    shown = window(SHORT | {"obstacles": [{"what": "sphere:0,0.2,0.1,0.02"}]})
    handle, before = shown.scene["/blend/obstacle 1/handle"], shown.panel.document()
    place = np.array(handle.position)
    handle.drag(np.full(3, np.nan))
    shown.rest()
    assert shown.panel.document() == before
    np.testing.assert_allclose(handle.position, place)
    shown.scene["/blend/obstacle 1/shape"].pull(place, np.full(3, np.nan))
    shown.rest()
    assert shown.panel.document() == before

"""The studio in a real browser: what a visitor does with the mouse, and what the page then shows.

Needs Chromium (Debian: ``apt install chromium``) or Chrome; without one these tests skip and say so.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import pliant
from pliant.app.scene import document_in, read_scene, write_scene

viser = pytest.importorskip("viser", reason="the extra studio is not installed")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from pliant.app.studio import Studio  # noqa: E402
from pliant.app.studio.viewport import Drawn  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist", "--disable-background-networking", "--no-first-run", "--disable-component-update",
    "--disable-sync", "--disable-quic",
]  # fmt: skip
HAND = {"engine": "blend", "frames": 7, "shapes": {"gallery": "hand", "vertices": 1500, "names": ["open", "fist"]}}
MAN = {
    "engine": "transfer",
    "target": {"gallery": "gingerbread", "vertices": 1000},
    "cage": {"faces": 120},
    "lattice": 16,
    "positions": [{"at": [-0.165, 0.07, 0.05]}, {"at": [0.165, 0.07, 0.05]}, {"at": [0.42, 0.59, 0.05]}],
}
CREATURE = {
    "engine": "simulate",
    "shape": {"gallery": "creature", "vertices": 1500},
    "skeleton": {"gallery": "creature"},
    "motion": {"keys": [{"time": 0.0}]},
    "static": True,
    "nodes": 300,
}
NOD = CREATURE | {"motion": {"keys": [{"time": 0.0}, {"time": 0.5, "move": [0.0, 0.05, 0.0]}]}}
WALK = {
    "engine": "transfer",
    "target": {"gallery": "gingerbread", "vertices": 1000},
    "sources": {"motion": {"gallery": "creature_walk", "without": ["tail1", "ear*"]}},
    "cage": {"faces": 120},
    "lattice": 16,
    "controls": "auto",
}
SWITCHES = 9
PIXELS = 0.5
"""Drawn for each pixel of the page's layout."""
PATIENCE = 90.0
"""Seconds that compiling for the first time may take."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser found; looked for {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


GUIDED = "localStorage.setItem('pliant-guided', JSON.stringify(['blend', 'transfer', 'simulate']))"
"""As if the guided starts had been seen."""


def begin(
    browser: Any,
    folder: Path,
    document: Any = None,
    *,
    studio: Studio | None = None,
    size: tuple[int, int] = (820, 560),
    guided: bool = True,
) -> Any:
    """A window on a studio that shows a scene, ready to be used."""
    files = [folder / "shown.toml"] if document else []
    if document:
        write_scene(files[0], document)
    made = studio or Studio(files, folders=[folder], port=0, largest_upload=1 << 20)
    known = set(made.sessions)
    # Drawn in software: the fewer pixels, the quicker.
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, device_scale_factor=PIXELS)
    if guided:
        page.add_init_script(GUIDED)
    page.set_default_timeout(1e3 * PATIENCE)
    page.goto(made.address)
    wait_for(lambda: set(made.sessions) - known, "the window's session")
    session = made.sessions[max(set(made.sessions) - known)]
    assert session.live.idle(PATIENCE)
    return SimpleNamespace(page=page, studio=made, session=session, folder=folder)


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens windows, and closes them in the end."""
    opened: list[Any] = []

    def visited(document: Any = None, *, studio: Studio | None = None, **how: Any) -> Any:
        window = begin(browser, tmp_path, document, studio=studio, **how)
        opened.extend([window.page] if studio else [window.page, window.studio])
        return window

    yield visited
    for thing in opened:
        thing.close()


@pytest.fixture(scope="module")
def hand(browser: Any, tmp_path_factory: Any) -> Iterator[Any]:
    """A window with a hand to blend, which several tests use one after the other."""
    window = begin(browser, tmp_path_factory.mktemp("hand"), HAND)
    open_folder(window.page, "Save and export")
    yield window
    window.page.close()
    window.studio.close()


def wait_for(found: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What a function gives, once it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come in {seconds:.0f} seconds")


def picture(page: Any) -> np.ndarray:
    """(h, w, 3) what the page shows left of its panel."""
    import io

    from PIL import Image

    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return np.asarray(shot, dtype=np.float64)[round(60 * PIXELS) :, : round(480 * PIXELS)]


def still_picture(page: Any) -> np.ndarray:
    """What the page shows once a shape is seen, and nothing moves any more."""
    last = [picture(page)]

    def stands() -> bool:
        page.wait_for_timeout(100)
        last.append(picture(page))
        return changed(*last[-2:]) == 0 and np.ptp(last[-1].reshape(-1, 3), axis=0).min() > 60

    wait_for(stands, "a picture that stands still")
    return last[-1]


def changed(before: np.ndarray, after: np.ndarray) -> float:
    """Share of the pixels that differ visibly."""
    return float((np.abs(before - after).max(axis=2) > 24).mean())


def set_number(page: Any, label: str, value: float) -> None:
    """Type into the field beside a slider."""
    row = page.locator(f"text={label}").first.locator("xpath=ancestor::div[.//input][1]")
    field = row.locator("input").last
    field.fill(str(value))
    field.press("Enter")


def open_folder(page: Any, name: str) -> None:
    """Unfold a part of the panel."""
    page.get_by_text(name, exact=True).last.click()
    page.wait_for_timeout(500)


def tick(page: Any, label: str) -> None:
    """Tick a box."""
    row = page.get_by_text(label, exact=True).last.locator("xpath=ancestor::div[.//input][1]")
    row.locator("input[type=checkbox]").first.evaluate("box => box.click()")


def close_messages(page: Any) -> None:
    """As a hand does before it clicks what they cover; some close by themselves meanwhile."""
    closing = "document.querySelectorAll('.mantine-Notification-closeButton').forEach((button) => button.click())"
    page.evaluate(closing)
    page.wait_for_function("!document.querySelector('.mantine-Notification-root')")


def upload(page: Any, file: Path) -> None:
    """Give a file to the page."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(str(file))


@pytest.fixture
def man(hand: Any) -> Iterator[Any]:
    """The window on another scene for a while."""
    before = hand.session.panel.document()
    hand.session.start(dict(MAN))
    assert hand.session.live.idle(PATIENCE)
    yield hand
    hand.session.start(before)
    assert hand.session.live.idle(PATIENCE)


@pytest.mark.slow
def test_a_handle_is_dragged_and_the_shape_goes_along(man: Any) -> None:
    page, session = man.page, man.session
    points, before = shown_points(session), still_picture(page)
    hand = session.panel.document()["positions"][2]["at"]
    tip = on_page(session, np.add(hand, [0.0, 0.2 * session.stage.half, 0.0]))
    drag(page, tip, (tip[0], tip[1] - 90))
    wait_for(lambda: "to" in session.panel.document()["positions"][2], "the place that the handle was dragged to")
    assert session.live.idle(PATIENCE)
    to = np.array(session.panel.document()["positions"][2]["to"])
    assert to[1] > hand[1] + 0.05, "the handle goes up with the mouse"
    moved = np.linalg.norm(shown_points(session) - points, axis=1)
    near = np.linalg.norm(points - hand, axis=1) < 0.08
    assert moved[near].mean() > 0.05
    assert changed(before, still_picture(page)) > 0.005
    again = session.scene(session.panel.document()).run().clip.points[-1]
    np.testing.assert_allclose(shown_points(session), again, atol=1e-9 * session.stage.half)


@pytest.mark.slow
def test_sliders_follow_the_mouse(visit: Any) -> None:
    window = visit(HAND)
    page, session = window.page, window.session
    close_messages(page)
    tick(page, "Sliders follow")
    still_picture(page)
    points, shapes = shown_points(session), session.panel.scene.shapes
    goal = pliant.Blendshapes(shapes).solve({"fist": 0.4}).points
    far = np.argsort(-np.linalg.norm(goal - points, axis=1))
    for tip in far[:500:50]:  # some are behind others, or behind the page's panels
        page.keyboard.down("Shift")
        drag(page, on_page(session, points[tip]), on_page(session, goal[tip]))
        page.keyboard.up("Shift")
        page.wait_for_timeout(500)
        if session.panel.pulls.tables:
            break
    wait_for(lambda: session.panel.sliders.values.get("fist", 0) > 0.05, "the slider")
    assert session.live.idle(PATIENCE)
    assert "pulls" not in session.panel.document()
    moved = np.linalg.norm(shown_points(session) - points, axis=1)
    assert moved.max() > 0.05 * shapes.base.diagonal


@pytest.mark.slow
def test_bones_are_drawn_by_clicks_through_the_body(visit: Any) -> None:
    window = visit(CREATURE)
    page, session = window.page, window.session
    close_messages(page)
    open_folder(page, "Draw bones")
    tick(page, "Draw by clicking")
    page.get_by_role("button", name="Remove all joints").click()
    page.wait_for_timeout(1000)
    mesh = session.panel.drawn.shape
    height = np.ptp(mesh.points[:, 1])
    middle = (mesh.points.min(axis=0) + mesh.points.max(axis=0)) / 2
    for part in (-0.05, 0.08, 0.2):
        page.mouse.click(*on_page(session, np.add(middle, [0.0, part * height, 0.0])))
        page.wait_for_timeout(700)
    bones = wait_for(
        lambda: (found := session.panel.document()["skeleton"].get("bones")) and len(found) == 3 and found,
        "three bones",
    )
    places = np.array([bone["at"] for bone in bones])
    tree = pliant.geometry.spatial.SurfaceTree(mesh)
    assert tree.inside(places).all()
    assert (np.diff(places[:, 1]) > 0).all(), "joints are where the clicks were"


@pytest.mark.slow
def test_windows_have_states_of_their_own_and_work_is_not_lost(visit: Any) -> None:
    first = visit(HAND)
    second = visit(studio=first.studio)
    set_number(second.page, "fist", 1.0)
    wait_for(lambda: np.abs(shown_points(second.session) - shown_points(first.session)).max() > 0.01, "another shape")
    assert first.session.panel.document() == HAND
    second.page.close()
    wait_for(lambda: len(first.studio.sessions) == 1, "the end of the session")
    third = visit(studio=first.studio)
    third.page.get_by_role("button", name="Bring back the last window's work").click()
    wait_for(lambda: third.session.panel.document() != HAND, "what the second window had")


@pytest.mark.slow
def test_scenes_are_switched_while_they_play(
    visit: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = Drawn.move

    def slowly(drawn: Drawn, points: Any) -> None:
        move(drawn, points)
        time.sleep(0.1)  # so that a switch comes while something is drawn

    monkeypatch.setattr(Drawn, "move", slowly)
    window = visit(HAND)
    page, session = window.page, window.session
    for k in range(1, SWITCHES + 1):
        wait_for(lambda: session.timeline.count > 1, "a clip")
        session.timeline.play()
        page.wait_for_timeout(40 * (k % 5))
        before, document = session.panel, (HAND, WALK, NOD)[k % 3]
        session._begin(lambda document=document: dict(document))
        wait_for(lambda before=before: session.panel is not before, "the next scene")
    assert session.live.idle(PATIENCE)
    nodes = session.client.scene._handle_from_node_name.items()
    drawn = {name.split("/")[1] for name, node in nodes if not isinstance(node, viser.FrameHandle)}  # viser's own
    assert drawn == {"blend", "ground"}
    assert caplog.records == []
    others = page.get_by_text("Turn bones", exact=True).or_(page.get_by_text("Follow a motion", exact=True))
    wait_for(lambda: others.count() == 0, "the end of the other scenes' widgets")
    assert page.get_by_role("button", name=re.compile("^(Play|Pause)$")).count() == 1
    assert "went wrong" not in page.inner_text("body")


def test_the_page_loads_and_says_what_to_drag(hand: Any) -> None:
    page = hand.page
    page.wait_for_selector("text=pliant studio")
    assert re.search(r"[Dd]rag", page.inner_text("body"))
    empty = np.ptp(still_picture(page).reshape(-1, 3), axis=0)
    assert empty.min() > 60, "nothing but background is to be seen"


def on_page(session: Any, place: Any) -> tuple[float, float]:
    """Where on the page a place of the world is seen, in pixels."""
    view = session.client.camera
    ahead = view.look_at - view.position
    ahead = ahead / np.linalg.norm(ahead)
    right = np.cross(ahead, view.up_direction)
    right = right / np.linalg.norm(right)
    way = session.stage.shown(place) - view.position
    scale = view.image_height / 2 / np.tan(view.fov / 2) / (way @ ahead)
    return (
        float(view.image_width / 2 + scale * (way @ right)),
        float(view.image_height / 2 - scale * (way @ np.cross(right, ahead))),
    )


def drag(page: Any, start: tuple[float, float], end: tuple[float, float], steps: int = 6) -> None:
    """Press, go there and let go, as a hand would."""
    page.mouse.move(*start)
    page.wait_for_timeout(300)
    page.mouse.down()
    for k in range(1, steps + 1):
        page.mouse.move(*(a + (b - a) * k / steps for a, b in zip(start, end, strict=True)))
        page.wait_for_timeout(40)
    page.mouse.up()


def shown_points(session: Any) -> np.ndarray:
    """Where the panel's shape is."""
    drawn = session.panel.drawn
    return np.array(drawn.points)


def test_a_slider_moves_the_shape(hand: Any) -> None:
    page, session = hand.page, hand.session
    set_number(page, "fist", 0.0)
    assert session.live.idle(PATIENCE)
    page.wait_for_selector("text=fist")
    before, points = still_picture(page), shown_points(session)
    set_number(page, "fist", 1.0)
    wait_for(lambda: np.abs(shown_points(session) - points).max() > 0.01, "another shape")
    assert session.live.idle(PATIENCE)
    assert changed(before, still_picture(page)) > 0.01
    fist = session.panel.rig.solve({"fist": 1.0}).points
    np.testing.assert_allclose(shown_points(session), fist, atol=1e-6 * session.stage.half)


def test_a_file_is_uploaded(hand: Any, tmp_path: Path) -> None:
    window, before = hand, hand.session.panel.document()
    file = tmp_path / "mine.glb"
    pliant.write(file, pliant.gallery.bar(500))
    upload(window.page, file)
    wait_for(lambda: "file" in window.session.panel.document()["shapes"], "the uploaded shapes")
    assert window.session.live.idle(PATIENCE)
    assert window.session.panel.document()["shapes"]["file"].endswith("mine.glb")
    window.session.start(before)
    assert window.session.live.idle(PATIENCE)


@pytest.mark.slow
def test_broken_uploads_are_told_in_a_sentence(hand: Any, tmp_path: Path) -> None:
    window, page, before = hand, hand.page, hand.session.panel
    broken = {
        "broken.glb": b"glTF\2\0\0\0not really",
        "empty.obj": b"# nothing\n",
        "wrong.exe": b"MZ",
        "nan.obj": b"v nan 0 0\n",
        "large.obj": b"v 0 0 0\n" * (1 << 18),
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        upload(page, tmp_path / name)
        told = "larger than 1 MiB" if name == "large.obj" else name
        page.wait_for_selector(f"text={told}")
    words = page.inner_text("body")
    assert "That did not work" in words
    assert "Traceback" not in words
    assert window.session.panel is before


def test_a_scene_is_saved_and_its_clip_exported(hand: Any) -> None:
    window, page = hand, hand.page
    page.get_by_role("button", name="Save the scene").click()
    wait_for((window.folder / "scene.toml").is_file, "the saved scene")
    page.get_by_role("button", name="Export the clip").click()
    with page.expect_download() as download:
        page.get_by_text("scene.glb (").click()
    assert download.value.suggested_filename == "scene.glb"
    exported = pliant.read(window.folder / "scene.glb")  # a pose, if a slider has been moved before
    again = read_scene(window.folder / "scene.toml").run().clip
    np.testing.assert_allclose(np.reshape(exported.points, again.points.shape), again.points, atol=1e-6)
    assert document_in(window.folder / "scene.toml")["shapes"] == HAND["shapes"]


@pytest.mark.slow
def test_stiffness_is_painted_with_the_mouse(hand: Any) -> None:
    """A click is a dab, a drag with shift a stroke; the camera stays."""
    page, session = hand.page, hand.session
    close_messages(page)
    page.get_by_text("Paint", exact=True).click()
    page.get_by_label("Paint stiffness").check()
    wait_for(lambda: session.panel.brush.on, "the brush")
    points, before = shown_points(session), still_picture(page)
    middle = points[np.argmin(np.linalg.norm(points - points.mean(axis=0), axis=1))]
    page.mouse.click(*on_page(session, middle))
    wait_for(lambda: len(session.panel.document().get("regions", [])) == 1, "a dab")
    assert changed(before, still_picture(page)) > 0.005
    page.keyboard.down("Shift")
    drag(page, on_page(session, middle), on_page(session, points[np.argmax(points[:, 1])]))
    page.keyboard.up("Shift")
    wait_for(lambda: len(session.panel.document()["regions"]) > 2, "a stroke")
    assert session.panel.document().get("pulls") is None
    page.get_by_role("button", name="Wash it off").click()
    wait_for(lambda: "regions" not in session.panel.document(), "a clean shape")


@pytest.mark.slow
def test_a_film_of_what_is_seen_is_saved(hand: Any, tmp_path: Path) -> None:
    page, timeline = hand.page, hand.session.timeline
    wait_for(lambda: timeline.count > 4 and timeline.ready == timeline.count, "a solved clip")
    timeline.set_range(0, 4)
    page.get_by_text("View", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save a film").click()
    download.value.save_as(tmp_path / "film.gif")
    film = Pillow.open(tmp_path / "film.gif")
    seen = [np.asarray(film.convert("RGB")) for frame in range(film.n_frames) if film.seek(frame) is None]
    assert film.n_frames > 1
    assert (seen[0] != seen[-1]).any(axis=2).mean() > 0.005


def test_the_page_answers_while_something_is_solved(hand: Any) -> None:
    window, before = hand, hand.session.panel.document()
    running = [True]

    def busy(job: Any) -> None:
        while running[0]:
            window.session.panel.rig.solve({"fist": 0.7}, accuracy=1e-9)

    window.session.slow.ask("export", busy)
    set_number(window.page, "fist", 0.37)
    wait_for(lambda: window.session.panel.document() != before, "the slider's value", seconds=5)
    running[0] = False


@pytest.mark.slow
def test_undo_and_the_timeline_by_keyboard_and_mouse(hand: Any) -> None:
    page, session, state = hand.page, hand.session, hand.session.page.state
    session.start(dict(HAND))
    assert session.live.idle(PATIENCE)
    first = state["step"]
    set_number(page, "fist", 0.8)
    wait_for(lambda: state["history"][-1] == "Slider: fist" and page.title().startswith("• "), "the step and the title")
    page.keyboard.press("Control+z")
    wait_for(lambda: not session.panel.sliders.values, "the slider as it was before")
    page.keyboard.press("Control+Shift+Z")
    wait_for(lambda: session.panel.sliders.values == {"fist": 0.8}, "the slider as it was set")
    page.keyboard.press("k")
    wait_for(lambda: state["keys"] == [0, 6] and page.locator("#pliant .key").count() == 2, "the key's diamond")
    view = np.array(session.client.camera.position)
    page.keyboard.press("ArrowRight")
    wait_for(lambda: session.timeline.frame == 1, "the next frame")
    np.testing.assert_array_equal(session.client.camera.position, view)  # which arrows move otherwise
    key, track = page.locator("#pliant .key").nth(1).bounding_box(), page.locator("#pliant .track").bounding_box()
    middle = key["y"] + key["height"] / 2
    drag(page, (key["x"] + 6, middle), (track["x"] + track["width"] * 0.67, middle))
    wait_for(lambda: state["keys"] == [0, 4], "the key where it was dragged")
    page.keyboard.press("Delete")
    wait_for(lambda: state["keys"] == [0], "the end of the key")
    page.keyboard.press("Space")
    wait_for(lambda: session.timeline.playing, "playing")
    page.keyboard.press("Space")
    wait_for(lambda: not session.timeline.playing, "the end of playing")
    page.locator("#pliant select[aria-label=History]").select_option(str(first))
    wait_for(lambda: state["step"] == first, "the first step")
    assert session.live.idle(PATIENCE)


@pytest.mark.slow
def test_a_file_is_dropped_on_the_page(hand: Any) -> None:
    session, before = hand.session, hand.session.panel
    hand.page.evaluate(
        """text => {
            const files = new DataTransfer();
            files.items.add(new File([text], "dropped.csv"));
            dispatchEvent(new DragEvent("drop", { dataTransfer: files, cancelable: true }));
        }""",
        "fist\n0\n0.5\n1\n",
    )
    wait_for(lambda: session.page.state["keys"] == [0, 1, 2], "the keys of the file")
    assert session.panel is before
    session.undo()
    assert session.live.idle(PATIENCE)
    assert session.page.state["keys"] == []

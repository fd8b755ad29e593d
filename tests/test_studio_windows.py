"""Windows of the studio without a browser: folders, opening, saving, exporting, and what is never lost."""

from __future__ import annotations

import os
import shlex
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import pliant
from fake_viser import Client, do
from pliant.app.scene import document_in, read_scene, scene_from, write_scene
from pliant.app.scene.examples import example_scenes
from pliant.app.scene.located_toml import tomllib
from pliant.app.studio.desk import Desk, Document
from pliant.app.studio.folders import Folders, kept_upload
from pliant.app.studio.opening import examples, opened, with_engine
from pliant.app.studio.session import Session
from pliant.core.errors import FileError, InputError
from pliant.engines.registry import ENGINES
from pliant.io.sandbox import confined

# Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    for name in ("given", "uploads", "secret"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret" / "key.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "given" / "mine.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "given" / "link.obj").symlink_to(tmp_path / "secret" / "key.obj")
    (tmp_path / "given" / "notes.txt").write_text("not for the page")
    return Folders.of([tmp_path / "given"], tmp_path / "uploads")


def test_files_in_the_folder_are_found_and_listed(folders: Folders) -> None:
    assert folders.to_read("mine.obj") == folders.given[0] / "mine.obj"
    assert ("mine.obj", "mine.obj", False) in folders.listing()
    assert "notes.txt" not in [label for label, _, _ in folders.listing()]


@pytest.mark.parametrize(
    "name", ["../secret/key.obj", "link.obj", "/etc/passwd", "a/../../secret/key.obj", "~/x.obj/.."]
)
def test_nothing_outside_the_folders_is_read(folders: Folders, name: str) -> None:
    with pytest.raises(FileError, match=r"outside the folders|no such file"):
        folders.to_read(name)


@pytest.mark.parametrize(
    "name", ["../out.toml", "/tmp/out.toml", ".hidden.toml", "a/b.toml", "a\\b.toml", "", "x\0.toml"]
)
def test_nothing_outside_the_folder_is_written(folders: Folders, name: str) -> None:
    with pytest.raises(FileError, match="plain name"):
        folders.to_write(name)


def test_a_link_that_leads_out_is_not_written_through(folders: Folders) -> None:
    with pytest.raises(FileError, match="is a link"):
        folders.to_write("link.obj")


def test_uploads_lose_their_folders_and_have_a_limit(folders: Folders) -> None:
    kept = kept_upload(folders.uploads, "..\\..\\evil/../../x y.obj", b"v 0 0 0")
    assert kept == folders.uploads / "x y.obj"
    assert kept_upload(folders.uploads, "../..", b"1").parent == folders.uploads
    with pytest.raises(FileError, match="at most 1 MiB"):
        kept_upload(folders.uploads, "big.obj", bytes(1 << 21), largest=1 << 20)
    with pytest.raises(FileError, match="empty"):
        kept_upload(folders.uploads, "none.obj", b"")


def test_reading_in_a_room_stays_there(folders: Folders) -> None:
    outside = folders.given[0].parent / "secret" / "key.obj"
    pliant.read_mesh(outside)
    with confined(folders.all):
        pliant.read_mesh(folders.given[0] / "mine.obj")
        for name in (outside, outside.parent, outside.parent / "*.obj", folders.given[0] / "link.obj"):
            with pytest.raises(FileError, match="outside the folders"):
                pliant.read_mesh(name)
    pliant.read_mesh(outside)


def test_a_scene_cannot_read_outside_its_room(folders: Folders) -> None:
    outside = folders.given[0].parent / "secret" / "key.obj"
    (folders.given[0] / "s.toml").write_text(f'engine = "simulate"\nstatic = true\n[shape]\nfile = "{outside}"\n')
    with confined(folders.all), pytest.raises(FileError, match="outside the folders"):
        read_scene(folders.given[0] / "s.toml")


# Windows


class Plain:
    """A panel that shows nothing, and says what it was given."""

    def __init__(self, desk: Desk, document: Document) -> None:
        self.desk, self._document, self.closed = desk, document, False
        desk.scope.own(self)

    def document(self) -> Document:
        return self._document

    key_names: ClassVar[dict[str, str]] = {}
    guide = ()

    def state(self) -> Document:
        return {"scene": self._document}

    def restore(self, state: Document) -> bool:
        return False

    def take(self, file: Path) -> bool:
        return file.suffix == ".bvh"

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def window(folders: Folders) -> Any:
    client = Client()
    panels: Any = dict.fromkeys(("blend", "transfer", "simulate"), Plain)
    document = {"engine": "blend", "shapes": {"gallery": "tentacle", "vertices": 500}, "frames": 3}
    session = Session(client, folders, panels, document, largest_upload=1 << 20)
    assert session.live.idle(20)
    yield SimpleNamespace(client=client, session=session, gui=client.gui, folder=folders.given[0])
    session.close()


def test_a_saved_scene_runs_from_the_command_line_as_the_studio_exports_it(window: Any, command_line: Any) -> None:
    window.gui["Name"].set("my hand")
    window.gui["Save the scene"].press()
    window.gui["Clip as"].set("GLB")
    window.gui["Export the clip"].press()
    assert window.session.slow.idle(60)
    assert [title for title, _ in window.client.notes] == ["Saved", "Exported"]
    exported = pliant.read_animation(window.folder / "my hand.glb")
    assert "my hand.glb" in window.client.downloads
    command_line("run", str(window.folder / "my hand.toml"), "-o", str(window.folder / "again.glb"))
    again = pliant.read_animation(window.folder / "again.glb")
    np.testing.assert_array_equal(exported.points, again.points)


@pytest.mark.filterwarnings("ignore:OBJ cannot hold vertex groups")
@pytest.mark.parametrize(("kind", "file"), [("USD", "clip.usdc"), ("OBJ sequence", "clip")])
def test_clips_are_exported_in_other_formats(window: Any, kind: str, file: str) -> None:
    if kind == "USD":
        pytest.importorskip("pxr")
    window.gui["Name"].set("clip")
    window.gui["Clip as"].set(kind)
    window.gui["Export the clip"].press()
    assert window.session.slow.idle(60)
    assert window.client.notes[-1][0] == "Exported", window.client.notes
    assert len(pliant.read_animation(window.folder / file)) == 3


def test_an_uploaded_shape_is_shown_and_goes_along_with_the_saved_scene(window: Any) -> None:
    pliant.write(window.folder / "t.glb", pliant.gallery.bar(500))
    content = (window.folder / "t.glb").read_bytes()
    (window.folder / "t.glb").unlink()
    do(window.session, "file", "t.glb", content)
    assert window.session.live.idle(20)
    assert window.session.engine == "blend"
    path = window.session.save("mine")
    document = document_in(path)
    assert document["shapes"] == {"file": "mine-files/t.glb"}
    read_scene(path)


def test_a_broken_upload_is_told_in_a_sentence_and_changes_nothing(window: Any) -> None:
    before = window.session.panel
    do(window.session, "file", "broken.glb", b"glTF but not really")
    assert window.session.live.idle(20)
    title, words = window.client.notes[-1]
    assert title == "That did not work"
    assert "broken.glb" in words
    assert "\n" not in words
    assert window.session.panel is before


def test_another_engine_keeps_the_shape(window: Any) -> None:
    window.gui["Work with"].set("Simulate")
    assert window.session.live.idle(20)
    assert window.session.panel.document()["shape"]["gallery"] == "tentacle"
    assert window.session.panel.document()["skeleton"] == {"gallery": "tentacle"}


def test_files_that_the_scene_can_use_go_to_its_panel(window: Any) -> None:
    (window.folder / "walk.bvh").write_text("HIERARCHY")
    before = window.session.panel
    window.session.open(window.folder / "walk.bvh")
    assert window.session.live.idle(20)
    assert window.session.panel is before
    assert not window.client.notes


def test_bad_names_are_told(window: Any) -> None:
    do(window.session, "open", "../secret/key.obj")
    window.gui["Name"].set("../../out")
    window.gui["Save the scene"].press()
    assert window.session.slow.idle(20)
    assert "outside the folders" in window.client.notes[0][1]
    assert "plain name" in window.client.notes[1][1]


def saved(window: Any, name: str) -> tuple[str, str]:
    """What the page says when a scene is saved."""
    window.gui["Name"].set(name)
    window.gui["Save the scene"].press()
    assert window.session.slow.idle(20)
    return window.client.notes[-1]


def exported(window: Any, name: str, kind: str = "GLB") -> tuple[str, str]:
    """What the page says when a clip is exported."""
    window.gui["Name"].set(name)
    window.gui["Clip as"].set(kind)
    window.gui["Export the clip"].press()
    assert window.session.slow.idle(60)
    return window.client.notes[-1]


@pytest.mark.skipif(os.name == "nt", reason="quotes for another shell")
@pytest.mark.parametrize("name", ["plain", "my hand", "hand (2)", "-o"])
def test_the_command_that_is_told_runs_the_saved_scene(window: Any, name: str) -> None:
    title, told = saved(window, name)
    assert title == "Saved"
    assert shlex.split(told.partition("Run it with: ")[2]) == ["pliant", "run", str(window.folder / f"{name}.toml")]


def test_a_file_that_was_there_is_replaced_only_when_asked_for_twice(window: Any) -> None:
    (window.folder / "mine.toml").write_text("precious")
    assert "is there already" in saved(window, "mine")[1]
    assert (window.folder / "mine.toml").read_text() == "precious"
    assert saved(window, "mine")[0] == "Saved"
    assert saved(window, "mine")[0] == "Saved", "its own scene may be saved again"


def test_what_the_scene_is_made_of_is_never_written_over(window: Any) -> None:
    pliant.write(window.folder / "rig.glb", pliant.gallery.tube(500))
    content = (window.folder / "rig.glb").read_bytes()
    window.session.open(window.folder / "rig.glb")
    assert window.session.live.idle(20)
    for _ in range(2):
        assert "made of" in exported(window, "rig")[1]
    assert (window.folder / "rig.glb").read_bytes() == content


def test_links_in_the_folder_are_not_written_through(window: Any, folders: Folders) -> None:
    secret = folders.given[0].parent / "secret"
    (window.folder / "clip-files").symlink_to(secret)
    pliant.write(window.folder.parent / "t.glb", pliant.gallery.bar(500))
    content = (window.folder.parent / "t.glb").read_bytes()
    do(window.session, "file", "t.glb", content)
    assert window.session.live.idle(20)
    assert saved(window, "clip")[0] == "That did not work"
    assert sorted(entry.name for entry in secret.iterdir()) == ["key.obj"]
    (window.folder / "frames").mkdir()
    (window.folder / "frames" / "frames_0000.obj").symlink_to(secret / "key.obj")
    assert "links" in exported(window, "frames", "OBJ sequence")[1]


@pytest.mark.parametrize("name", ["a.npz", "mine.obj", "x.usdc"])
def test_the_format_is_not_in_the_name(window: Any, name: str) -> None:
    assert "a name alone" in exported(window, name)[1]


def test_two_uploads_of_one_name_are_both_kept(folders: Folders) -> None:
    folder = folders.uploads / "window"
    folder.mkdir()
    first, second = (kept_upload(folder, "pose.ply", content) for content in (b"one", b"two"))
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    for _ in range(13):
        kept_upload(folder, "more.ply", bytes(600), largest=1000)
    with pytest.raises(FileError, match="too much"):
        kept_upload(folder, "more.ply", bytes(600), largest=1000)


@pytest.mark.slow
def test_files_opened_one_after_the_other_are_all_opened(window: Any) -> None:
    hold = threading.Event()
    window.session.live.ask("pose", lambda job: hold.wait(5))
    for k in (1, 2):
        pliant.write(window.folder / f"m{k}.ply", pliant.gallery.cylinder(500 + 50 * k))
        window.session.open(window.folder / f"m{k}.ply")
    hold.set()
    assert window.session.live.idle(30)
    assert window.session.panel.document()["shape"]["file"].endswith("m2.ply")
    window.gui["Back to the scene before"].press()
    assert window.session.live.idle(30)
    assert window.session.panel.document()["shape"]["file"].endswith("m1.ply")


def test_another_pose_of_the_mesh_that_is_shown_makes_a_blend(window: Any) -> None:
    bar = pliant.gallery.bar(500)
    for k in (0, 1):
        pliant.write(window.folder / f"pose{k}.ply", bar[k])
        window.session.open(window.folder / f"pose{k}.ply")
        assert window.session.live.idle(30)
        assert window.session.engine == ("simulate", "blend")[k]
    files = window.session.panel.document()["shapes"]["files"]
    assert [Path(file).name for file in files] == ["pose0.ply", "pose1.ply"]


def test_a_folder_of_poses_is_blended(window: Any) -> None:
    bar = pliant.gallery.bar(500)
    (window.folder / "poses").mkdir()
    for k in (0, 1):
        pliant.write(window.folder / "poses" / f"pose{k}.ply", bar[k])
    window.session.open(window.folder / "poses")
    assert window.session.live.idle(30)
    assert window.session.engine == "blend"
    assert window.session.panel.document()["shapes"] == {"file": str(window.folder / "poses")}


def test_a_rig_with_shapes_and_a_clip_is_blended(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pliant.write(window.folder / "rig.glb", pliant.gallery.tube(500))
    monkeypatch.setattr("pliant.app.studio.opening.kinds_in", lambda source: ("animation", "shapes", "mesh"))
    monkeypatch.setattr("pliant.read", lambda file: pliant.read_mesh(file))
    document, *_ = opened(window.folder / "rig.glb", "simulate")
    assert document == {"engine": "blend", "shapes": {"file": str(window.folder / "rig.glb")}}


def test_a_surface_without_inside_is_shown_in_a_cage(window: Any) -> None:
    pliant.write(window.folder / "cloud.ply", pliant.gallery.cloud(600))
    window.session.open(window.folder / "cloud.ply")
    assert window.session.live.idle(60)
    assert window.session.engine == "transfer"
    assert 'Shown with "Transfer", since "Simulate" cannot use it' in window.client.notes[-1][1]


def test_files_of_the_folder_are_listed_anew_and_opened(window: Any) -> None:
    bar = {"engine": "blend", "frames": 2, "shapes": {"gallery": "bar", "vertices": 500}}
    page = window.session.page.state
    do(window.session, "list", "")
    (window.folder / "deep" / "er").mkdir(parents=True)
    write_scene(window.folder / "deep" / "er" / "three.toml", bar)
    do(window.session, "list", "")
    assert ("deep", "deep", True) in page["listing"]["entries"], "the list follows the folder"
    do(window.session, "list", str(Path("deep/er")))
    file = str(Path("deep/er/three.toml"))
    assert page["listing"]["entries"] == [("..", "deep", True), ("three.toml", file, False)]
    do(window.session, "open", file)
    assert window.session.live.idle(20)
    assert (page["title"], page["recent"]) == ("three.toml", file)
    for name in ("../secret", "/", "gone"):
        do(window.session, "list", name)
        assert page["listing"]["folder"] == ""
    do(window.session, "open", "../secret/key.obj")
    assert window.client.notes[-1][0] == "That did not work"


def test_what_leads_out_of_the_folders_is_not_listed(folders: Folders) -> None:
    (folders.given[0] / "out").symlink_to(folders.given[0].parent)
    assert "out" not in [label for label, _, _ in folders.listing()]


def test_a_shape_that_cannot_be_used_leaves_the_scene_as_it_was(window: Any) -> None:
    before = window.session.panel
    (window.folder / "flat.obj").write_text("v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n")
    window.session.open(window.folder / "flat.obj")
    assert window.session.live.idle(20)
    assert window.client.notes[-1][0] == "That did not work"
    assert window.session.panel is before
    assert not before.closed


def test_a_closed_window_closes_its_panel(window: Any) -> None:
    left = window.session.close()
    assert left is not None
    assert left["engine"] == "blend"
    assert window.session.panel.closed


def test_a_scene_from_elsewhere_does_not_say_where_results_go(folders: Folders) -> None:
    (folders.given[0] / "s.toml").write_text(
        'engine = "blend"\nshapes.gallery = "tube"\n[output]\nfile = "/etc/out.glb"\nreport = "out.html"\n'
    )
    (document,) = opened(folders.given[0] / "s.toml", "blend")
    assert document["output"] == {"report": "out.html"}


def test_an_export_can_be_stopped(window: Any) -> None:
    window.session.panel._document["frames"] = 400
    window.gui["Export the clip"].press()
    deadline = time.monotonic() + 20
    while not window.gui["Stop the export"].visible and time.monotonic() < deadline:
        time.sleep(0.01)
    window.gui["Stop the export"].press()
    assert window.session.slow.idle(20)
    assert not list(window.folder.glob("*.glb"))


# Opening


EXAMPLES = examples()


SHIPPED = [tomllib.loads(text)["title"] for text in example_scenes().values()]
"""Other tests run these."""


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in SHIPPED or EXAMPLES[name]["engine"] == "transfer"))
        for name in EXAMPLES
    ],
)
def test_every_example_is_a_scene(example: str, tmp_path: Path) -> None:
    assert scene_from(EXAMPLES[example], tmp_path).engine == EXAMPLES[example]["engine"]


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_keeps_its_shape_with_another_engine(example: str, engine: str) -> None:
    shape = EXAMPLES[example][ENGINES[EXAMPLES[example]["engine"]].shape_key]
    if engine == "blend" and shape["gallery"] not in pliant.gallery.POSED:
        with pytest.raises(InputError, match="this shape has one pose"):
            with_engine(EXAMPLES[example], engine)
        return
    made = with_engine(EXAMPLES[example], engine)
    assert (made["engine"], made[ENGINES[engine].shape_key]["gallery"]) == (engine, shape["gallery"])


def test_a_creature_is_blended_as_itself(window: Any) -> None:
    window.session._begin(lambda: dict(EXAMPLES["Creature: flesh on bones"]))
    assert window.session.live.idle(20)
    window.gui["Work with"].set("Blend")
    assert window.session.live.idle(20)
    assert window.session.panel.document() == {"engine": "blend", "shapes": {"gallery": "creature"}}
    assert window.client.notes == []


def test_scenes_from_elsewhere_keep_their_files(folders: Folders) -> None:
    inner = folders.given[0] / "inner"
    inner.mkdir()
    pliant.write(inner / "m.ply", pliant.gallery.tube(500).base)
    (inner / "s.toml").write_text('engine = "simulate"\nhold = 1.0\nshape.file = "m.ply"\nskeleton.joints = 3\n')
    (document,) = opened(inner / "s.toml", "blend")
    assert document["shape"] == {"file": str(inner / "m.ply")}


def test_what_is_wrong_with_a_scene_is_said_with_its_line(window: Any) -> None:
    before = window.session.panel
    (window.folder / "bad.toml").write_text('engine = "simulate"\nhold = 1.0\nshape.file = "none.obj"\n')
    window.session.open(window.folder / "bad.toml")
    assert window.session.live.idle(20)
    assert "none.obj" in window.client.notes[-1][1]
    (window.folder / "bad.toml").write_text('engine = "simulate"\nhold = 1.0\nshapes = 3\n')
    window.session.open(window.folder / "bad.toml")
    assert window.session.live.idle(20)
    assert "line 3" in window.client.notes[-1][1]
    assert window.session.panel is before


# Real files


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "engine"),
    [
        ("models/fox/Fox.glb", "simulate"),
        ("poses/morph-glb/Horse.glb", "blend"),
        pytest.param("poses/plate/plate4SD.ply", "transfer", marks=pytest.mark.slow),
        pytest.param("poses/horse/horse-ref.obj", "simulate", marks=pytest.mark.slow),
    ],
)
def test_real_files_open_in_an_engine_that_can_use_them(data: Path, tmp_path: Path, file: str, engine: str) -> None:
    panels: Any = dict.fromkeys(("blend", "transfer", "simulate"), Plain)
    (tmp_path / "uploads").mkdir()
    folders = Folders.of([tmp_path, data], tmp_path / "uploads")
    client = Client()
    tube = {"engine": "blend", "shapes": {"gallery": "tube", "vertices": 500}}
    session = Session(client, folders, panels, tube, largest_upload=1 << 20)
    session.open(data / file)
    assert session.live.idle(120)
    assert session.engine == engine, client.notes
    session.close()

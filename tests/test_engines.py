"""Another engine is one entry in the table: its command, scene, schema, report and panel come with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import jsonschema
import numpy as np
import pytest

import pliant
from fake_viser import Client, all_done, do
from pliant.app.scene import engine_of, read_scene, scene_from
from pliant.app.scene.json_schema import json_schema
from pliant.app.scene.media import FILE, from_scene
from pliant.app.scene.schema import OUTPUT, Key, Record, option_keys, read_as, reference
from pliant.app.studio.folders import Folders
from pliant.app.studio.opening import document_for, opened, with_engine
from pliant.app.studio.server import panels
from pliant.app.studio.session import Session
from pliant.core.errors import InputError, PliantWarning
from pliant.core.options import Choice, Number, Options, Whole, option
from pliant.engines.registry import ENGINES, Engine, engine_named


@dataclass(frozen=True)
class SquashOptions(Options):
    """How a shape is flattened."""

    height: float = option(
        0.5, Number(0, 10, "a number between 0 and 10"), "how high it is in the end, over its height"
    )
    frames: int = option(3, Whole(1, 100), "how many", overrides=True)


SQUASH = Record(
    {
        "engine": Key(Choice(("squash",)), "what the scene is for", required=True),
        "shape": Key(FILE.kind, "what is flattened", required=True),
        **option_keys(SquashOptions),
        "output": OUTPUT,
    }
)


@dataclass(frozen=True)
class SquashScene:
    shape: pliant.Mesh
    options: SquashOptions
    text: Any = None

    def __len__(self) -> int:
        return self.options.frames

    def prepare(self) -> str:
        return "ready"


@dataclass(frozen=True)
class SquashRun:
    clip: pliant.Animation
    failure: str = ""
    figures: dict = field(default_factory=dict)

    def lines(self) -> list[str]:
        return ["squashed"]

    def to_dict(self) -> dict:
        return self.figures


def read_squash(text, *, frames: int | None = None) -> SquashScene:
    said = read_as(SQUASH, text, text.content, ())
    with text.about(("shape",)):
        mesh = pliant.read_mesh(from_scene(text, said["shape"]))
    return SquashScene(mesh, SquashOptions(said["height"], frames or said["frames"]), text)


def solve_squash(scene: SquashScene, solver: str, show, seconds: float) -> SquashRun:
    assert solver == "ready"
    scales = np.linspace(1, scene.options.height, len(scene))
    show(len(scene), len(scene))
    points = scene.shape.points * np.array([[[1, s, 1]] for s in scales])
    return SquashRun(pliant.Animation(scene.shape, points, 24.0), figures={"height": scales[-1]})


def report_squash(run: SquashRun, *, title: str, view, up) -> str:
    return f"<p>squashed to {run.figures['height']:g}</p>"


@pytest.fixture
def squash(monkeypatch, tmp_path):
    engine = Engine(
        "squash", "flattens a shape", SquashOptions, {"squash": SQUASH}, read=read_squash, solve=solve_squash,
        report=report_squash, aliases={"flat": 'engine = "squash"'},
    )  # fmt: skip
    monkeypatch.setitem(ENGINES, "squash", engine)
    monkeypatch.chdir(tmp_path)
    pliant.write("ball.obj", pliant.gallery.bar(500).base)
    return tmp_path


def test_it_has_a_command(squash, command_line):
    assert "flattens a shape" in command_line("--help")[1]
    assert "how high it is in the end" in " ".join(command_line("squash", "--help")[1].split())
    words = ("squash", "--shape", "ball.obj", "--height", "0.25", "--frames", "4", "-o", "out.npz")
    code, out, err = command_line(*words, "--report", "page.html", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["height"] == 0.25
    clip = pliant.read_animation("out.npz")
    assert len(clip) == 4
    assert np.allclose(np.ptp(clip.points[-1], axis=0)[1], 0.25 * np.ptp(clip.points[0], axis=0)[1])
    assert "squashed to 0.25" in (squash / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--height", "20"), '--height: "20" is not a number between 0 and 10'),
        (("--height", "1"), "shape: is missing; expected the name of a file"),
        (("--shape", "none.obj"), "none.obj: there is no such file"),
        (("scene.toml", "--height", "2"), "--height was given beside a scene file; write it into the file"),
    ],
)
def test_what_is_wrong_with_its_command_is_said_with_the_flag(squash, command_line, words, message):
    code, out, err = command_line("squash", *words, "-o", "out.npz")
    assert (code, out) == (2, "")
    assert message in err
    assert not (squash / "out.npz").exists()


def test_it_has_scenes_that_are_checked_with_key_and_line(squash, command_line):
    scene = squash / "flat.toml"
    scene.write_text('engine = "squash"\nshape = "ball.obj"\nheight = 0.1\n')
    assert engine_of(scene) == "squash"
    assert len(read_scene(scene, frames=7)) == 7
    assert command_line("run", "flat.toml", "--quiet") == (0, "", "")
    assert len(pliant.read_animation("flat.glb")) == 3
    assert command_line("squash", "flat.toml", "-o", "again.npz", "--frames", "2", "--quiet") == (0, "", "")
    assert len(pliant.read_animation("again.npz")) == 2
    assert 'a scene of the engine "squash", and right' in command_line("scene", "--check", "flat.toml")[1]
    scene.write_text('engine = "squash"\nshape = "ball.obj"\nheight = 20\n')
    assert "flat.toml, line 3, height: is 20; expected a number between 0 and 10" in command_line("run", "flat.toml")[2]
    scene.write_text('engine = "squash"\nshape = "ball.obj"\nhight = 1\n')
    assert 'hight: there is no such key; did you mean "height"?' in command_line("run", "flat.toml")[2]


def test_it_is_in_the_schema_and_the_reference(squash):
    schema = json_schema()
    assert "squash" in schema["properties"]["engine"]["enum"]
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid({"engine": "squash", "shape": "ball.obj", "height": 2})
    assert not check.is_valid({"engine": "squash", "shape": "ball.obj", "height": 20})
    assert {key: meaning for key, _, meaning in reference(SQUASH)}["frames"] == "how many (default: 3)"


def test_it_has_a_panel_in_the_studio(squash):
    assert list(panels()) == ["blend", "transfer", "simulate", "squash"]
    client, folders = Client(), Folders.of([squash], squash)
    document = {"engine": "squash", "shape": "ball.obj", "frames": 5}
    session = Session(client, folders, panels(), document, largest_upload=1 << 20)
    assert all_done(session.live)
    assert client.gui["Work with"].value == "Squash"
    height = client.gui["Height"]
    assert (height.kind, height.value, height.hint) == ("slider", 0.5, "How high it is in the end, over its height.")
    assert 0 < height.min <= 0.01 < 9.99 <= height.max < 10
    client.gui["Frames"].set(3)
    height.set(0.25)
    assert all_done(session.live)
    assert session.panel.document() == {"engine": "squash", "shape": "ball.obj", "frames": 3, "height": 0.25}
    clip = solve_squash(session.scene(session.panel.document()), "ready", lambda *_: None, 0.0).clip
    assert session.timeline.count == len(clip) == 3
    for frame in (2, 1):
        do(session, "scrub", frame)
        assert np.array_equal(session.panel.drawn.points, clip.points[frame])
    session.close()
    assert client.notes == []


def test_it_opens_what_it_says_it_can(squash, monkeypatch):
    def opens(shape, kinds):
        if "gallery" in shape or "mesh" not in kinds:
            raise InputError("only files are flattened")
        return 5, {"engine": "squash", "shape": shape["file"]}

    engine = replace(ENGINES["squash"], opens=opens, examples={"Flat ball": {"engine": "squash", "shape": "ball.obj"}})
    monkeypatch.setitem(ENGINES, "squash", engine)
    ball = str(squash / "ball.obj")
    assert document_for("Flat ball") == {"engine": "squash", "shape": "ball.obj"}
    assert [made["engine"] for made in opened(squash / "ball.obj", "transfer")] == ["squash", "transfer", "simulate"]
    assert with_engine({"engine": "transfer", "target": {"file": ball}}, "squash")["shape"] == ball
    with pytest.raises(InputError, match="only files are flattened"):
        with_engine({"engine": "transfer", "target": {"gallery": "hand"}}, "squash")


def test_former_names_are_read_with_a_note_of_what_to_write(squash):
    with pytest.warns(PliantWarning, match='engine = "flat" is deprecated; write engine = "squash"'):
        assert len(scene_from({"engine": "flat", "shape": "ball.obj"}, ".")) == 3
    for former, now in (("elastic", "simulate"), ("cage", "transfer")):
        with pytest.warns(PliantWarning, match=f'write engine = "{now}"'):
            assert engine_named(former).name == now


def test_an_unknown_engine_is_refused():
    with pytest.raises(InputError, match='there is no engine "blent"; did you mean "blend"'):
        engine_named("blent")
    with pytest.raises(InputError, match="there is no engine 3; expected one of blend, transfer, simulate"):
        engine_named(3)

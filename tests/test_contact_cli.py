"""``pliant blend`` with obstacles and self-contact: what goes in, what is told and drawn, and what is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import pliant
from pliant import Animation, Blendshapes, Shapes, gallery
from pliant.app.cli import main
from pliant.app.report import Contact
from pliant.contact import Box, HalfSpace, MovingObstacle, Sphere, as_obstacle
from pliant.engines.blend.app.report import Comparison, blend_report, findings
from pliant.engines.blend.app.result import BlendRun

BAR = gallery.bar(500)
SHAPES = Shapes.of([BAR.named("straight"), BAR.named("bent 90")], ["straight", "bent"])
BALL = gallery.sphere(500, 0.3)
FRAMES = 4
WAY = np.linspace([1.5, 1.2, 0], [1.5, 0.75, 0], FRAMES)
"""Where the middle of a ball is that comes down on the bar's end."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that all tests read."""
    folder = tmp_path_factory.mktemp("contact")
    pliant.write(folder / "a.obj", SHAPES[0])
    pliant.write(folder / "b.obj", SHAPES[1])
    clip = Animation(BALL, BALL.points + WAY[:, None])
    pliant.write(folder / "ball.obj", BALL)
    pliant.write(folder / "there.obj", BALL.with_points(BALL.points + WAY[-1]))
    for name in ("ball.pc2", "ball.glb", "frames"):
        pliant.write(folder / name, clip)
    pliant.write(folder / "open.obj", gallery.face(500)[0])
    (folder / "keys.csv").write_text("frame,x,y,z\n0,1.5,1.2,0\n3,1.5,0.75,0\n")
    keys = [{"frame": 0, "translate": WAY[0].tolist()}, {"frame": 3, "translate": WAY[-1].tolist()}]
    (folder / "keys.json").write_text(json.dumps(keys))
    (folder / "bad.csv").write_text("0,1,2\n")
    return folder


@pytest.fixture
def run(command_line, files):
    """Run ``pliant blend a.obj b.obj``: its exit code, what it printed, and what it complained of."""
    return lambda *arguments: command_line(
        "blend", "a.obj", "b.obj", "-o", "out.npz", "--frames", str(FRAMES), "--interior", "none", *arguments
    )


MOVING = {
    "a sphere by keys": ("--obstacle", "sphere:0,0,0,0.3", "--obstacle-motion", "keys.csv"),
    "a mesh by keys": ("--obstacle", "ball.obj", "--obstacle-motion", "keys.json"),
    "a mesh by a point cache": ("--obstacle", "ball.obj", "--obstacle-motion", "ball.pc2"),
    "a mesh by a clip": ("--obstacle", "ball.obj", "--obstacle-motion", "ball.glb"),
    "a clip": ("--obstacle", "ball.glb"),
    "a folder of frames": ("--obstacle", "frames"),
}


@pytest.fixture(scope="module")
def free():
    return Blendshapes(SHAPES).animate(steps=FRAMES)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, id=name, marks=[pytest.mark.slow] * (name in ("a mesh by a clip", "a folder of frames")))
        for name, words in MOVING.items()
    ],
)
def test_a_ball_comes_down_on_the_bar_however_it_is_given(run, free, words):
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)["frames"]
    clip = pliant.read_animation("out.npz")
    assert [len(frame["reactions"]) for frame in told] == [1] * FRAMES
    for k, at in enumerate(WAY):
        gap = (np.linalg.norm(clip.points[k] - at, axis=1).min() - 0.3) / SHAPES.base.diagonal
        assert gap > -5e-3  # a mesh of 500 vertices lies a little inside its sphere
        assert told[k]["penetration"] <= 1e-4
        assert told[k]["crossings"] is None
    assert np.linalg.norm(free.points[-1] - WAY[-1], axis=1).min() < 0.25  # without it the bar would be inside
    assert told[-1]["contacts"] > 0
    assert np.linalg.norm(told[-1]["reactions"][0]) > 0.01
    assert told[0]["contacts"] == 0


@pytest.mark.slow
def test_obstacles_are_repeatable_and_motions_belong_to_them_in_order(run):
    words = ("--obstacle", "plane:0,-0.55,0,0,1,0", "--obstacle-motion", "none", *MOVING["a mesh by keys"])
    code, out, err = run(*words, "--friction", "0.4", "--thickness", "0.02", "--report", "page.html")
    assert (code, err) == (0, "")
    points = pliant.read_animation("out.npz").points
    assert points[..., 1].min() > -0.551
    assert np.linalg.norm(points[-1] - WAY[-1], axis=1).min() > 0.3
    assert "plane:0,-0.55,0,0,1,0; ball.obj moved by keys.json" in out
    assert re.search(r"contact: \d+ contacts at most", out)
    with open("page.html", encoding="utf-8") as page:
        text = page.read()
    assert "Forces on obstacles" in text
    assert "force, ball.obj" in text
    assert "friction" in text


def test_self_contact_is_told_with_its_crossings(run):
    code, out, err = run("--self-contact", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert [frame["new_crossings"] for frame in told["frames"]] == [0] * FRAMES
    counted = [pliant.quality.self_intersections(mesh).count for mesh in pliant.read_animation("out.npz")]
    assert [frame["crossings"] for frame in told["frames"]] == counted
    assert told["frames"][0]["reactions"] is None
    assert told["frames"][0]["penetration"] is None


def test_without_contact_nothing_is_told_of_it(run):
    code, out, _ = run("--json")
    assert code == 0
    told = json.loads(out)["frames"][0]
    assert (told["penetration"], told["contacts"], told["crossings"], told["reactions"]) == (None,) * 4
    assert "contact" not in run()[1]


def test_what_did_not_converge_is_written_and_said(run):
    code, _, err = run(*MOVING["a sphere by keys"], "--iterations", "1")
    assert code == 1
    assert len(err.splitlines()) == 1
    assert "did not converge" in err
    assert len(pliant.read_animation("out.npz")) == FRAMES


REFUSED = [
    (("--obstacle", "sphere:1,2,3"), "expected sphere:X,Y,Z,R"),
    (("--obstacle", "sphere:0,0,0,-1"), "radius"),
    (("--obstacle", "blob:1,2,3"), "no obstacle called"),
    (("--obstacle", "nothing.obj"), "no such file"),
    (("--obstacle", "open.obj"), "open"),
    (("--obstacle", " "), "empty"),
    (("--obstacle", "ball.pc2"), "--obstacle-motion"),
    (("--obstacle-motion", "keys.csv"), "more --obstacle-motion"),
    (("--obstacle", "ball.obj", "--obstacle-motion", "bad.csv"), "bad.csv, line 1"),
    (("--obstacle", "ball.obj", "--obstacle-motion", "b.obj"), "b.obj: moves"),
    (("--obstacle", "ball.glb", "--obstacle-motion", "keys.csv"), "is a clip already"),
    (("--obstacle", "sphere:0,0,5,1", "--obstacle-motion", "ball.pc2"), "expected keyframes"),
    (("--obstacle", "sphere:0,0,5,1", "--friction", "-1"), "is not a number, 0 or more"),
    (("--obstacle", "sphere:0,0,5,1", "--thickness", "thin"), "is not a number, 0 or more"),
    (("--friction", "0.5"), "--friction: has no effect: it acts on obstacles"),
    (("--thickness", "0.1"), "--thickness: has no effect"),
    (("--self-contact", "--jobs", "2"), "--jobs"),
    (("--self-contact", "--method", "newton"), "--method"),
    (("--obstacle", "sphere:0,0,0,9"), "encloses"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_bad_contact_is_refused_in_one_line_and_nothing_is_written(run, tmp_path, words, said):
    code, out, err = run("--quiet", *words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert said in err
    assert not (tmp_path / "out.npz").exists()


def test_bad_contact_is_found_before_the_rig_is_built(run, monkeypatch):
    def built(*_, **__):
        raise AssertionError("the rig was built")

    monkeypatch.setattr(pliant, "Blendshapes", built, raising=False)
    assert run("--obstacle", "sphere:1,2", "--quiet")[0] == 2
    assert run("--self-contact", "--jobs", "2", "--quiet")[0] == 2


@pytest.fixture(scope="module")
def touched() -> BlendRun:
    keys = [(k, tuple(at), (1, 0, 0, 0)) for k, at in enumerate(WAY)]
    ball = MovingObstacle(Sphere([0, 0, 0], 0.3), keys)
    return blended(Contact([ball, HalfSpace([0, -0.7, 0], [0, 1, 0])], names=("ball", "floor")))


def blended(contact: Contact) -> BlendRun:
    rig = Blendshapes(SHAPES)
    weights = rig.path(FRAMES)
    return BlendRun(rig, weights, list(rig.poses(weights, **contact.options)), contact=contact)


def test_the_report_shows_contact_only_where_there_is_some(touched):
    text = blend_report(touched, view=(20, 10))
    for words in ("Penetration", "Contacts", "Forces on obstacles", "force, ball", "force, floor"):
        assert words in text
    assert "rossings" not in text  # without self-contact they are not counted
    own = blend_report(blended(Contact(self_contact=True)), view=(20, 10))
    assert "Crossings" in own
    assert "Penetration" not in own
    rig = touched.rig
    alone = blend_report(BlendRun(rig, touched.weights, list(rig.poses(touched.weights))), view=(20, 10))
    for words in ("Penetration", "penetration", "Contacts", "crossings", "Forces on obstacles"):
        assert words not in alone


def test_the_findings_compare_with_linear_blending(touched):
    found = Comparison.of(touched)
    lines = findings(found)
    assert any(line.startswith("Obstacles:") and "linear blending" in line for line in lines)
    own = findings(Comparison.of(blended(Contact(self_contact=True))))
    assert any(line.startswith("Itself: 0 pairs") for line in own)
    assert found.touching is not None
    assert found.touching.depths.max() <= 1e-4 < found.touching.linear_depths.max()


def test_what_is_drawn_beside_the_clip_is_where_the_obstacles_are(touched):
    ball, floor = touched.contact.extras(touched.clip)
    assert isinstance(ball.shape, Animation)
    assert np.allclose(ball.shape.points.mean(axis=1), WAY, atol=0.02)
    assert ball.fit
    assert not floor.fit  # a floor has no size to show
    assert np.allclose(floor.shape.points[:, 1], -0.7)
    still = touched.contact.extras_at(touched.clip, 2)[0]
    assert np.allclose(still.shape.points, ball.shape.points[2])


def test_an_obstacle_far_larger_than_the_shape_does_not_make_it_small(touched):
    (room,) = Contact([Box([0, -51, 0], [100, 100, 100])]).extras(touched.clip)
    assert not room.fit


def test_obstacles_are_taken_as_the_engine_takes_them():
    contact = Contact([BALL, Animation(BALL, np.stack([BALL.points, BALL.points + 1])), Sphere([0, 0, 0], 1)])
    assert all(isinstance(moving, MovingObstacle) for moving in contact.obstacles)
    assert contact.names == ("obstacle 1", "obstacle 2", "obstacle 3")
    assert not Contact()
    assert Contact(self_contact=True)
    assert contact.options["obstacles"][0] is as_obstacle(contact.obstacles[0])


@pytest.mark.data
@pytest.mark.slow
def test_a_real_cat_gives_way_to_a_ball(run, data, tmp_path):
    base, other = (str(data / "poses" / "cat" / f"cat-{name}.obj") for name in ("ref", "01"))
    mesh = pliant.read_mesh(base)
    flank = mesh.points[mesh.points[:, 0].argmax()]
    x, y, z = flank + np.array([0.04 * mesh.diagonal, 0, 0])
    words = ["blend", base, other, "-o", str(tmp_path / "cat.npz"), "--frames", "2", "--json", "--quiet"]
    with pytest.raises(SystemExit) as stop:
        main([*words, "--obstacle", f"sphere:{x},{y},{z},{0.08 * mesh.diagonal}"])
    assert stop.value.code == 0
    points = pliant.read_animation(tmp_path / "cat.npz").points
    assert np.linalg.norm(points - [x, y, z], axis=2).min() > 0.0799 * mesh.diagonal


def test_contact_that_turns_the_inside_out_is_a_warning_with_the_worst_frame_and_exits_with_1(command_line, files):
    """Two boxes pinch the bar, and let go again."""
    pinch: list[str] = []
    (files / "slightly.csv").write_text("b\n0\n0.01\n0.02\n")
    for name, side in (("above", 1), ("below", -1)):
        (files / f"{name}.csv").write_text(f"frame,x,y,z\n0,0,0,0\n1,0,{-0.45 * side},0\n2,0,0,0\n")
        pinch += ["--obstacle", f"box:0,{1.05 * side},0,1,1,1.5", "--obstacle-motion", f"{name}.csv"]
    blend = ["blend", "a.obj", "b.obj", "-o", "out.npz", "--weights", "slightly.csv", *pinch]
    code, out, complained = command_line(*blend, "--json")
    figures, worst = json.loads(out), "in the worst frame, 1, contact turns"
    crushed = [frame["crushed"] for frame in figures["frames"]]
    assert crushed[0] == crushed[2] == 0 < crushed[1]
    assert [frame["converged"] for frame in figures["frames"]] == [True] * 3
    assert (code, figures["converged"], worst in complained) == (1, False, True)
    assert (figures["not_converged"], worst in figures["failure"]) == ([], True)
    assert figures["warnings"][0].startswith(f"inversion: {worst} {crushed[1]} of ")
    code, out, _ = command_line(*blend, "--report", "r.html")
    assert code == 1
    assert f"warning: inversion: {worst}" in out
    assert f"inversion: {worst}" in (files / "r.html").read_text()

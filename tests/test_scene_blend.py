"""Scenes of the engine "blend": they give what ``pliant blend`` gives, and what is wrong with one is said."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pliant
from pliant import FileError, PliantWarning, Shapes, gallery
from pliant.app.scene import read_scene, scene_from
from pliant.engines.blend.app.scene import BlendScene
from pliant.engines.blend.app.scene_keys import POSED
from pliant.engines.blend.app.scene_weights import default_frames, spread

BAR = gallery.bar(500)
NAMES = ("straight", "bent 90", "bent 180")
SHAPES = Shapes.of([BAR.named(name) for name in NAMES], NAMES)
TIP = int(np.argmax(BAR.base.points[:, 0]))
COUNT = len(BAR.base.points)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the files that the scenes name, in a folder of their own."""
    folder = tmp_path_factory.mktemp("scenes")
    for name, mesh in zip("abc", SHAPES, strict=True):
        pliant.write(folder / "data" / f"{name}.obj", mesh)
    pliant.write(folder / "data" / "rig.npz", SHAPES)
    pliant.write(folder / "data" / "poses", SHAPES)
    pliant.write(folder / "data" / "ball.obj", gallery.sphere(500, radius=0.32, centre=(1.4, 0.8, 0)))
    (folder / "data" / "talk.csv").write_text("frame,Bent 90,bent 180\n1,0,0\n2,0.5,0.25\n")
    (folder / "data" / "pins.json").write_text(json.dumps({"vertices": [TIP], "path": [[[1, 1, 0]], [[1, 1.5, 0]]]}))
    (folder / "data" / "keys.csv").write_text("frame,x,y,z\n0,0,0,0\n3,0,0.3,0\n")
    (folder / "data" / "typo.csv").write_text("frame,bend\n1,1\n")
    (folder / "data" / "cut.obj").write_text("v 0 0 0\nv 1 0 0\nf 1 2 3\n")
    return folder


@pytest.fixture
def scene(made):
    """Read a scene from its text."""

    def write_and_read(text: str, **changes) -> BlendScene:
        (made / "scene.toml").write_text(text)
        return read_scene(made / "scene.toml", **changes)

    return write_and_read


HEAD = 'engine = "blend"\n'
RIG = '[shapes]\nfile = "data/rig.npz"\n[springs]\ninterior = "none"\n'


def test_a_scene_is_what_python_would_say(scene):
    found = scene(f"{HEAD}frames = 5\nfps = 12.0\n{RIG}").run()
    rig = pliant.Blendshapes(SHAPES, interior="none")
    assert np.array_equal(found.clip.points, rig.animate(steps=5).points)
    assert np.array_equal(found.table, rig.path(5))
    assert found.clip.fps == 12
    assert [pose.converged for pose in found.poses] == [True] * 5
    assert len(found.rig.springs) == len(rig.springs)


COMMANDS = [
    ("", RIG, ["data/rig.npz", "--interior", "none"]),
    ("frames = 4\n", RIG, ["data/rig.npz", "--interior", "none", "--frames", "4"]),
    (
        'weights = "data/talk.csv"\nframes = 3\n',
        RIG,
        ["data/rig.npz", "--interior", "none", "--weights", "data/talk.csv", "--frames", "3"],
    ),
    (
        'frames = 2\npins = "data/pins.json"\n',
        RIG,
        ["data/rig.npz", "--interior", "none", "--frames", "2", "--pin", "data/pins.json"],
    ),
    (
        'anchor = "none"\nframes = 3\n[shapes]\nfiles = ["data/a.obj", "data/b.obj"]\n'
        '[springs]\nmodel = "paper"\nmethod = "newton"\naccuracy = 1e-3\niterations = 7\n',
        f"[[pulls]]\nvertex = {TIP}\nforce = [0, 0, 0.5]\n",
        ["data/a.obj", "data/b.obj", "--anchor", "none", "--frames", "3", "--model", "paper", "--method", "newton",
         "--accuracy", "1e-3", "--iterations", "7", "--force", f"{TIP}:0,0,0.5"],
    ),
    (
        "frames = 3\nfriction = 0.3\nthickness = 0.01\n",
        '[shapes]\nfile = "data/poses"\nbase = "straight"\nnames = ["straight", "bent 90"]\n'
        '[[obstacles]]\nwhat = "data/ball.obj"\nmotion = "data/keys.csv"\n',
        ["data/poses", "--base", "straight", "--shapes", "straight,bent 90", "--frames", "3", "--friction", "0.3",
         "--thickness", "0.01", "--obstacle", "data/ball.obj", "--obstacle-motion", "data/keys.csv"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("head", "rest", "words"), COMMANDS)
def test_a_scene_gives_exactly_what_the_command_gives(command_line, files, head, rest, words):
    (files / "scene.toml").write_text(HEAD + head + rest)
    ran = command_line("run", "scene.toml", "-o", "a.npz", "--quiet")
    blended = command_line("blend", *words, "-o", "b.npz", "--quiet")
    assert (ran[0], ran[1]) == (blended[0], blended[1])
    assert ran[0] != 2
    a, b = (pliant.read_animation(files / name) for name in ("a.npz", "b.npz"))
    assert np.array_equal(a.points, b.points)
    assert a.fps == b.fps
    assert len(a) > 1
    assert np.abs(a.points[-1] - a.points[0]).max() > 0.1


def test_self_contact_is_that_of_the_engine(scene):
    found = scene(f"{HEAD}frames = 3\nself_contact = true\n{RIG}").run()
    rig = pliant.Blendshapes(SHAPES, interior="none")
    assert np.array_equal(found.clip.points, rig.animate(steps=3, self_contact=True).points)


def test_rows_of_numbers_and_of_names_say_the_same(scene):
    numbers = scene(f"{HEAD}weights = [[0, 1], [0.5, 0.25]]\n{RIG}")
    full = scene(f"{HEAD}weights = [[0, 0, 1], [0.25, 0.5, 0.25]]\n{RIG}")
    named = scene(f'{HEAD}weights = [{{ "bent 180" = 1 }}, {{ "Bent_90" = 0.5, "bent 180" = 0.25 }}]\n{RIG}')
    assert np.array_equal(numbers.keys, named.keys)
    assert np.array_equal(numbers.run().clip.points, full.run().clip.points)
    assert np.array_equal(numbers.run().clip.points, named.run().clip.points)


def test_pins_and_stiffness_of_the_scenes_own(scene):
    text = f"{HEAD}weights = [[0.5, 0.0]]\npins = [{TIP}]\n{RIG}stiffness = {{ bending = 0.2 }}\n"
    found = scene(text).run()
    rig = pliant.Blendshapes(SHAPES, interior="none", pins=[TIP], stiffness={"bending": 0.2})
    assert np.array_equal(found.clip.points[0], rig.solve([0.5, 0.0]).points)
    assert np.allclose(found.clip.points[0, TIP], SHAPES.points[:2, TIP].mean(axis=0))


def test_rows_are_keys_where_frames_are_said(scene):
    text = f"{HEAD}weights = [[0, 0], [1, 0], [0, 1]]\n{RIG}"
    assert len(scene(text)) == 3
    spaced = scene(text, frames=5, fps=10.0)
    assert (len(spaced), spaced.options.fps) == (5, 10.0)
    rig = spaced.rig()
    assert np.allclose(spaced.table(rig)[:, 1:], [[0, 0], [0.5, 0], [1, 0], [0.5, 0.5], [0, 1]])


@pytest.mark.parametrize(("shapes", "frames"), [(2, 36), (3, 35), (6, 41)])
def test_without_frames_every_shape_is_met(shapes, frames):
    assert default_frames(shapes) == frames
    assert (frames - 1) % (shapes - 1) == 0


def test_keys_are_spread_evenly():
    assert np.allclose(spread(np.array([[0.0, 2.0], [1.0, 0.0]]), 3), [[0, 2], [0.5, 1], [1, 0]])
    assert np.array_equal(spread(np.array([[0.5]]), 2), [[0.5], [0.5]])


def test_the_rig_may_be_made_once_and_work_is_reported(scene):
    found = scene(f"{HEAD}frames = 2\n{RIG}")
    rig, told = found.rig(), []
    first = found.run(lambda done, total: told.append((done, total)), rig=rig)
    assert told == [(1, 2), (2, 2)]
    assert first.rig is rig


def test_a_document_gives_what_its_file_gives(scene, made):
    document = {"engine": "blend", "frames": 2, "shapes": {"file": "data/rig.npz"}, "springs": {"interior": "none"}}
    found = scene_from(document, made).run()
    assert np.array_equal(found.clip.points, scene(f"{HEAD}frames = 2\n{RIG}").run().clip.points)


def test_the_gallery_has_every_shape_with_poses():
    several = [name for name in dir(gallery) if name.islower() and _poses(name)]
    assert sorted(POSED) == sorted(several)


def _poses(name: str) -> bool:
    made = getattr(gallery, name)
    return getattr(made, "__annotations__", {}).get("return") == "Shapes"


@pytest.mark.parametrize("name", POSED)
def test_shapes_of_the_gallery(scene, name):
    found = scene(f'{HEAD}[shapes]\ngallery = "{name}"\nvertices = 700\n')
    assert len(found.shapes) > 1
    assert np.array_equal(found.shapes.points, getattr(gallery, name)(700).points)


def test_percentages_and_shapes_that_are_the_base_are_noticed(scene, made):
    with pytest.warns(PliantWarning, match=r"scene.toml: weights go up to 100; 1, not 100, is a shape in full"):
        scene(f"{HEAD}weights = [[0, 100]]\n{RIG}")
    with pytest.warns(PliantWarning, match="the same as the base"):
        found = scene(f'{HEAD}[shapes]\nfiles = ["data/a.obj", "data/a.obj"]\n')
    assert found.shapes.names == ("a", "a_1")


SHAPED = '[shapes]\nfile = "data/rig.npz"\n'
WRONG = [
    ("", "scene.toml, engine", 'is missing; expected "blend" or'),
    ('engine = "blnd"\n', "line 1, engine", 'there is no engine "blnd"; did you mean "blend"?'),
    (HEAD, "line 1, shapes", "is missing"),
    (f"{HEAD}shapes = 3\n", "line 2, shapes", "is 3; expected a table"),
    (f"{HEAD}[shapes]\n", "line 2, shapes", "has no file or files or gallery; expected exactly one of them"),
    (f'{HEAD}[shapes]\nfile = "a"\ngallery = "hand"\n', "line 2, shapes", "has both file and gallery"),
    (f'{HEAD}[shapes]\ngallery = "hnd"\n', "line 3, shapes.gallery", 'did you mean "hand"?'),
    (f'{HEAD}[shapes]\ngallery = "robot"\n', "line 3, shapes.gallery", 'is "robot"; expected "animal" or'),
    (f'{HEAD}[shapes]\nfile = "data/rig.npz"\nvertices = 500\n', "line 4, shapes.vertices", 'beside "gallery" only'),
    (f'{HEAD}[shapes]\ngallery = "bar"\nvertices = 10\n', "line 4, shapes.vertices", "from 500 to 200000"),
    (f'{HEAD}[shapes]\ngallery = "bar"\nbase = "bent 90"\n', "line 4, shapes.base", "has no effect: the first name"),
    (f'{HEAD}[shapes]\nfiles = ["data/a.obj"]\n', "line 3, shapes.files", "has 1 entries; expected two or more"),
    (f'{HEAD}[shapes]\nfiles = ["data/a.obj", 2]\n', "line 3, shapes.files[1]", "is 2; expected the name of a mesh"),
    (f'{HEAD}[shapes]\nfile = "data/rig.npz"\nnames = ["straight", "bend 90"]\n', "line 4, shapes.names", "did you"),
    (f'{HEAD}[shapes]\nfile = "data/rig.npz"\nnames = ["straight"]\n', "line 4, shapes.names", "two or more names"),
    (f"{HEAD}[shape]\n", "line 2, shape", 'there is no such key; did you mean "shapes"?'),
    (f"{HEAD}frames = 0\n{SHAPED}", "line 2, frames", "is 0; expected a whole number from 1 to 100000"),
    (f"{HEAD}frames = 2.5\n{SHAPED}", "line 2, frames", "is 2.5; expected a whole number"),
    (f"{HEAD}fps = -1\n{SHAPED}", "line 2, fps", "is -1; expected a positive number"),
    (f"{HEAD}fps = nan\n{SHAPED}", "line 2, fps", "is nan; expected a positive number"),
    (f'{HEAD}anchor = "middle"\n{SHAPED}', "line 2, anchor", 'is "middle"; expected "auto" or "none"'),
    (f"{HEAD}anchor = [1, 2]\n{SHAPED}", "line 2, anchor", "three coordinates"),
    (f"{HEAD}weights = 1\n{SHAPED}", "line 2, weights", "is 1; expected the name of a table, .csv or .json"),
    (f"{HEAD}weights = []\n{SHAPED}", "line 2, weights", "has 0 entries; expected one or more rows"),
    (f"{HEAD}weights = [0, 1]\n{SHAPED}", "line 2, weights[0]", "is 0; expected a number for each shape"),
    (f"{HEAD}weights = [\n[1],\n]\n{SHAPED}", "line 3, weights[0]", "has 1 numbers; expected 3, one for each shape"),
    (f'{HEAD}weights = [[1, "x"]]\n{SHAPED}', "line 2, weights[0][1]", 'is "x"; expected a number'),
    (f"{HEAD}weights = [[1, inf]]\n{SHAPED}", "line 2, weights[0][1]", "is inf; expected a number"),
    (f"{HEAD}weights = [\n{{ bend = 1 }},\n]\n{SHAPED}", "line 3, weights[0].bend", 'no shape is called "bend"'),
    (f"{HEAD}pins = [{COUNT}]\n{SHAPED}", "line 2, pins[0]", f"is vertex {COUNT}; the mesh has {COUNT}"),
    (f"{HEAD}pins = [3, 3]\n{SHAPED}", "line 2, pins[1]", "vertex 3 is there twice"),
    (f"{HEAD}pins = [-1]\n{SHAPED}", "line 2, pins[0]", "is -1; expected a whole number from 0"),
    (f'{HEAD}frames = 3\npins = "data/pins.json"\n{SHAPED}', "line 3, pins", '"path" has 2 frames; the clip has 3'),
    (f"{HEAD}{SHAPED}[[pulls]]\nvertex = {COUNT}\nto = [0, 0, 0]\n", "line 5, pulls[0].vertex", f"is vertex {COUNT}"),
    (f"{HEAD}{SHAPED}[[pulls]]\nvertex = 1\n", "line 4, pulls[0]", "has no to or force"),
    (f"{HEAD}{SHAPED}[[pulls]]\nto = [0, 0, 0]\n", "line 4, pulls[0].vertex", "is missing"),
    (f"{HEAD}{SHAPED}[[pulls]]\nvertex = 1\nforce = [0, 0]\n", "line 6, pulls[0].force", "three coordinates"),
    (f"{HEAD}friction = 0.1\n{SHAPED}", "line 2, friction", "has no effect: it acts on obstacles"),
    (f"{HEAD}friction = -1\n{SHAPED}", "line 2, friction", "is -1; expected a number, 0 or more"),
    (f"{HEAD}thickness = 0.1\n{SHAPED}", "line 2, thickness", "has no effect: there are no obstacles"),
    (f"{HEAD}self_contact = 1\n{SHAPED}", "line 2, self_contact", "is 1; expected true or false"),
    (f'{HEAD}{SHAPED}[[obstacles]]\nmotion = "data/keys.csv"\n', "line 4, obstacles[0].what", "is missing"),
    (f'{HEAD}{SHAPED}[[obstacles]]\nwhat = "sphere:1,2"\n', "line 5, obstacles[0].what", "sphere:1,2"),
    (
        f'{HEAD}self_contact = true\n{SHAPED}[springs]\nmethod = "newton"\n',
        "line 6, springs.method",
        'contact is solved by "lbfgs" alone',
    ),
    (f'{HEAD}{SHAPED}[springs]\nmethod = "lbgfs"\n', "line 5, springs.method", 'did you mean "lbfgs"?'),
    (f'{HEAD}{SHAPED}[springs]\ninterior = "straw"\n', "line 5, springs.interior", 'is "straw"; expected "auto" or'),
    (f"{HEAD}{SHAPED}[springs]\naccuracy = 2\n", "line 5, springs.accuracy", "a number between 0 and 1"),
    (f"{HEAD}{SHAPED}[springs]\niterations = 0\n", "line 5, springs.iterations", "a whole number from 1"),
    (f"{HEAD}{SHAPED}[springs.stiffness]\nbend = 2\n", "line 5, springs.stiffness.bend", 'did you mean "bending"?'),
    (f"{HEAD}{SHAPED}[springs.stiffness]\nbending = 0\n", "line 5, springs.stiffness.bending", "a positive number"),
    (f'{HEAD}{SHAPED}[output]\nfiel = "x.glb"\n', "line 5, output.fiel", 'did you mean "file"?'),
    (f'{HEAD}output = "x.glb"\n{SHAPED}', "line 2, output", 'is "x.glb"; expected a table'),
    (f'{HEAD}title = ""\n{SHAPED}', "line 2, title", "is empty"),
    (f"{HEAD}frames = \n", "line 2, column", "is not TOML"),
]


@pytest.mark.parametrize(("text", "place", "message"), WRONG)
def test_what_is_wrong_is_said_with_the_line_and_the_key(scene, text, place, message):
    with pytest.raises(FileError) as raised:
        scene(text)
    told = str(raised.value)
    assert message in told
    assert place in told
    assert "scene.toml" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[shapes]\nfile = "data/none.glb"\n', "none.glb: there is no such file"),
        ('[shapes]\nfiles = ["data/a.obj", "data/cut.obj"]\n', "cut.obj, line 3"),
        ('[shapes]\nfiles = ["data/a.obj", "data/ball.obj"]\n', "ball.obj: does not match"),
        ('[shapes]\nfile = "data/a.obj"\n', "a.obj: holds one shape"),
        ('[shapes]\nfile = "data/rig.npz"\nbase = "crooked"\n', 'rig.npz: has no shape "crooked"'),
        (f'weights = "data/typo.csv"\n{SHAPED}', 'typo.csv, line 1, column 2: no shape is called "bend"'),
        (f'weights = "data/none.csv"\n{SHAPED}', "none.csv: there is no such file"),
        (f'pins = "data/none.txt"\n{SHAPED}', "none.txt: there is no such file"),
        (f'{SHAPED}[[obstacles]]\nwhat = "data/none.obj"\n', "none.obj: there is no such file"),
    ],
)
def test_files_that_are_wrong_are_named(scene, text, message):
    with pytest.raises(FileError, match=r"data") as raised:
        scene(HEAD + text)
    assert message in str(raised.value)


def test_what_the_engine_refuses_is_said_of_the_scene(scene):
    with pytest.raises(FileError, match=r"scene.toml, line 2, anchor: .*the anchor has fixed vertices"):
        scene(f"{HEAD}anchor = [99.0, 0.0, 0.0]\n{RIG}").run()
    held = f"{HEAD}frames = 2\npins = [{TIP}]\n{RIG}[[pulls]]\nvertex = {TIP}\nforce = [0, 1, 0]\n"
    with pytest.raises(FileError, match=r"scene.toml, line 8, pulls\[0\]: .*which is fixed"):
        scene(held).run()


def test_changes_of_other_engines_are_refused(scene):
    with pytest.raises(FileError, match='"nodes" means nothing to the engine "blend"'):
        scene(f"{HEAD}{RIG}", nodes=300)

"""Scene files: what they may say, what comes of it, and what is said of those that are wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pliant
from pliant import FileError, gallery
from pliant.app.scene import read_scene
from pliant.app.scene.located_toml import key_name, lines_of_keys, tomllib
from pliant.core import rotations
from pliant.engines.transfer import build_cage, group_tracks
from sweeps import every

BAR = gallery.bar(500)
CLIP = BAR.mixed(np.eye(len(BAR))[[0, 1, 2]], fps=24)
TIP, ROOT = int(np.argmax(BAR.base.points[:, 0])), int(np.argmin(BAR.base.points[:, 0]))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the files that the scenes name, in a folder of their own."""
    folder = tmp_path_factory.mktemp("scenes")
    pliant.write(folder / "data" / "frames" / "f.obj", CLIP)
    pliant.write(folder / "data" / "clip.npz", CLIP)
    pliant.write(folder / "data" / "bar.obj", BAR.base)
    pliant.write(folder / "data" / "cage.obj", build_cage(BAR.base, faces=40))
    pliant.write(folder / "data" / "walk.bvh", gallery.creature_walk(5))
    (folder / "data" / "open.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    return folder


@pytest.fixture
def scene(made):
    """Read a scene from its text."""

    def write_and_read(text: str, **changes):
        (made / "scene.toml").write_text(text)
        return read_scene(made / "scene.toml", **changes)

    return write_and_read


HEAD = """engine = "transfer"
[target]
file = "data/bar.obj"
[cage]
file = "data/cage.obj"
[sources.bend]
file = "data/frames"
"""
GROUPS = f"""[sources.bend.groups]
tip = {{ centre = {BAR.base.points[TIP].tolist()}, radius = 0.9 }}
root = [{", ".join(map(str, np.flatnonzero(BAR.base.points[:, 0] < -1.5)))}]
"""
CONTROLS = f"""[[controls]]
at = {TIP}
track = "tip"
[[controls]]
at = [-1.7, 0.0, 0.0]
track = "bend/root"
"""


def test_a_scene_is_what_python_would_say(scene):
    found = scene(f'title = "Bending"\nheld = [{ROOT}]\nlattice = 16\n' + HEAD + GROUPS + CONTROLS)
    assert found.title == "Bending"
    assert np.allclose(found.target.points, BAR.base.points)
    assert len(found.cage.triangles) <= 40
    groups = {"tip": pliant.Sphere(BAR.base.points[TIP], 0.9), "root": np.flatnonzero(BAR.base.points[:, 0] < -1.5)}
    tracks = group_tracks(CLIP, groups)
    controls = [pliant.Control(TIP, "tip"), pliant.Control([-1.7, 0, 0], "root")]
    expected = pliant.transfer(tracks, BAR.base, found.cage, controls, held=[ROOT], lattice=16)
    result = found.run()
    assert np.abs(result.clip.points - expected.clip.points).max() < 1e-6 * BAR.base.diagonal
    assert np.linalg.norm(result.clip.points[2, TIP] - BAR.base.points[TIP]) > 0.3  # it did bend
    assert set(result.tracks) == {"bend/tip", "bend/root"}


def test_paths_start_from_the_scene_wherever_one_is(scene, made, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert len(scene('controls = "auto"\n' + HEAD).sources["bend"]) == 3
    monkeypatch.chdir(made)
    (made / "scene.toml").write_text('controls = "auto"\n' + HEAD.replace("data/frames", "data/frames/*.obj"))
    assert len(read_scene("scene.toml").sources["bend"]) == 3
    text = HEAD.replace("data/frames", (made / "data" / "frames").as_posix())
    assert len(scene('controls = "auto"\n' + text).sources["bend"]) == 3


def test_changes_count_instead_of_what_the_file_says(scene):
    text = 'controls = "auto"\nframes = 7\nlattice = 16\n' + HEAD
    assert scene(text).options.frames == 7
    changed = scene(text, frames=2, fps=12.0, faces=30)
    assert (changed.options.frames, changed.options.fps) == (2, 12.0)
    assert len(changed.cage.triangles) <= 30
    assert len(changed.run().clip) == 2


def test_frames_and_the_rest_of_a_source(scene):
    text = 'controls = "auto"\n' + HEAD + "rest = 2\nfirst = 1\nlast = 2\nfps = 10\n"
    source = scene(text).sources["bend"]
    assert (len(source), source.fps) == (2, 10)
    assert np.allclose(source.shape.points, CLIP.points[2], atol=1e-6)
    assert np.allclose(source.points, CLIP.points[1:], atol=1e-6)
    walk = scene('controls = "auto"\n' + HEAD.replace("data/frames", "data/walk.bvh") + "rest = 1\n").sources["bend"]
    places, turns = walk.skeleton.rest_pose().world()
    assert np.allclose(places, walk.world()[0][1])
    assert np.allclose(np.abs((turns * walk.world()[1][1]).sum(axis=1)), 1)


def test_the_rest_of_a_source_may_be_another_file(scene, made):
    """A shape with as many points, or a pose of the same joints."""
    pliant.write(made / "data" / "bent.obj", BAR.base.with_points(CLIP.points[1]))
    source = scene('controls = "auto"\n' + HEAD + 'rest = "data/bent.obj"\n').sources["bend"]
    assert np.allclose(source.shape.points, CLIP.points[1], atol=1e-6)
    walk = gallery.creature_walk(5)
    pliant.write(made / "data" / "pose.bvh", pliant.Motion(walk.skeleton, walk.rotations[2:3], walk.translations[2:3]))
    text = 'controls = "auto"\n' + HEAD.replace("data/frames", "data/walk.bvh")
    rested = scene(text + 'rest = "data/pose.bvh"\n').sources["bend"]
    assert np.allclose(rested.skeleton.rest_pose().world()[0], rested.world()[0][2], atol=1e-4)
    with pytest.raises(FileError, match=r"cage\.obj: has \d+ points; the sequence whose rest it is to be has"):
        scene('controls = "auto"\n' + HEAD + 'rest = "data/cage.obj"\n')
    pliant.write(made / "data" / "other.bvh", gallery.dinosaur_walk(2))
    with pytest.raises(FileError, match=r'other\.bvh: has no joint ".*", which the motion has'):
        scene(text + 'rest = "data/other.bvh"\n')


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{ axis = [0, 0, 2], degrees = 90 }", [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        ("[0.7071067811865476, 0, 0, 0.7071067811865476]", [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        ("[[0, -1, 0], [1, 0, 0], [0, 0, 1]]", [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
        ("{ from = [[0, 0, 0], [3, 0, 0]], to = [[5, 5, 5], [5, 6, 5]] }", [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
    ],
)
def test_turns_in_every_form(scene, said, expected):
    found = scene(f"held = [{ROOT}]\n" + HEAD + GROUPS + CONTROLS + f"before = {said}\nafter = {said}\n")
    assert np.allclose(found.controls[1].before, expected)
    assert np.allclose(found.controls[1].after, expected)
    assert found.controls[0].before is None


@pytest.mark.slow
def test_what_follows_is_scaled_by_the_sizes(scene):
    text = HEAD.replace("data/frames", "data/walk.bvh") + f'[[follow]]\nat = {TIP}\ntrack = "hips"\norigin = "first"\n'
    found = scene('controls = "auto"\nmap = "order"\nlattice = 16\n' + text)
    motion = found.sources["bend"]
    places = np.concatenate([motion.skeleton.rest_pose().world()[0]])
    ratio = found.target.diagonal / np.linalg.norm(np.ptp(places, axis=0))
    assert 0.5 * ratio < found.follow[0].scale <= ratio  # bone ends make the skeleton a little larger
    moved = found.run()
    hips = motion.world()[0][:, 0]
    way = found.follow[0].scale * (hips[-1] - hips[0])
    assert np.allclose(moved.positions[-1, 0] - moved.positions[0, 0], way)
    told = scene('controls = "auto"\n' + text + "scale = 2\nafter = { axis = [0, 1, 0], degrees = 180 }\n").follow[0]
    assert told.scale == 2
    assert np.allclose(told.after, rotations.matrix([0, 0, 1, 0]))


def test_joints_are_left_out_with_all_that_hang_on_them(scene):
    walk = HEAD.replace("data/frames", "data/walk.bvh")
    whole = scene('controls = "auto"\n' + walk).sources["bend"]
    some = scene('controls = "auto"\n' + walk + 'without = ["tail1", "index*", "middle*", "little*", "thumb*"]\n')
    motion = some.sources["bend"]
    assert set(whole.skeleton.names) - set(motion.skeleton.names) == {
        *(f"tail{k}" for k in (1, 2, 3, 4)),
        *(f"{finger}.{side}" for finger in ("index", "middle", "little", "thumb") for side in "LR"),
    }
    kept = [whole.skeleton.names.index(name) for name in motion.skeleton.names]
    assert np.allclose(motion.world()[0], whole.world()[0][:, kept])
    hand = motion.skeleton.names.index("hand.L")
    assert np.linalg.norm(motion.skeleton.ends[hand]) > 0  # it still has a bone


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("animal_gait", marks=pytest.mark.slow),
        "animal_gallop",
        "creature_walk",
        "dinosaur_walk",
        "tentacle_curl",
    ],
)
def test_motions_of_the_gallery(scene, source):
    points = "\nvertices = 600" if source in ("animal_gait", "tentacle_curl") else ""
    text = HEAD.replace('file = "data/frames"', f'gallery = "{source}"{points}')
    assert len(scene('controls = "auto"\n' + text).sources["bend"]) > 10


@pytest.mark.parametrize("target", every(4, ["tets", "soup", "animal", "cloud"]))
def test_targets_of_the_gallery(scene, target):
    text = HEAD.replace('file = "data/bar.obj"', f'gallery = "{target}"\nvertices = 500')
    text = text.replace('file = "data/cage.obj"', "faces = 60\nmargin = 0.05")
    found = scene('controls = "auto"\n' + text)
    assert 400 < len(found.target.points) < 700
    assert len(found.cage.triangles) <= 60


def test_a_cage_and_a_pose_of_the_gallery(scene, monkeypatch):
    asked = []
    around = gallery.bar(500).base
    monkeypatch.setattr(gallery, "cage", lambda name, vertices: asked.append((name, vertices)) or around)
    text = HEAD.replace('file = "data/bar.obj"', 'gallery = "tube"\nvertices = 500\npose = "bent 120"')
    text = text.replace('file = "data/cage.obj"', 'gallery = "hand"\nvertices = 60')
    found = scene('controls = "auto"\n' + text)
    assert asked == [("hand", 60)]
    assert np.allclose(found.target.points, gallery.tube(500).named("bent 120").points)
    with pytest.raises(FileError, match=r'target.pose: no pose has this name; did you mean "bent 120"\?'):
        scene('controls = "auto"\n' + text.replace("bent 120", "bent 12"))


AUTO = 'controls = "auto"\n' + HEAD
FULL = f"held = [{ROOT}]\n" + HEAD + GROUPS + CONTROLS
WALK = AUTO.replace('file = "data/frames"', 'gallery = "creature_walk"')


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "engine", 'is missing; expected "blend" or "transfer" or'),
        ("engine = transfer\n", "line 1, column 10", "is not TOML (invalid value)"),
        ('engine = "transfer"\nheld = [1, 2\n', "", "is not TOML"),
        ('engine = "transfer"\nengine = "transfer"\n', "line 2", "is not TOML (cannot overwrite a value)"),
        ('engine = "transfr"\n', "line 1, engine", 'there is no engine "transfr"; did you mean "transfer"?'),
        ("engine = 3\n", "line 1, engine", "there is no engine 3; expected one of blend, transfer, simulate"),
        ('engine = "transfer"\n', "line 1, target", "is missing; expected a table"),
        (AUTO + "[weigths]\n", "line 9, weigths", 'there is no such key; did you mean "weights"?'),
        (
            AUTO + "fille = 3\n",
            "line 9, sources.bend.fille",
            'there is no such key of sources.bend; did you mean "file"?',
        ),
        (AUTO.replace('"data/frames"', "7"), "line 8, sources.bend.file", "is 7; expected the name of a file"),
        (AUTO.replace('"data/frames"', '""'), "line 8, sources.bend.file", "is empty; expected the name of a file"),
        (AUTO + 'gallery = "animal_gait"\n', "line 7, sources.bend", "has both file and gallery; expected exactly one"),
        (AUTO.replace('file = "data/frames"', ""), "line 7, sources.bend", "has no file or gallery"),
        (AUTO.replace('"auto"', '"aut"'), "line 1, controls", 'is "aut"; did you mean "auto"?'),
        (AUTO.replace('"auto"', "3"), "line 1, controls", 'is 3; expected "auto", or one or more tables [[controls]]'),
        ("frames = 0\n" + AUTO, "line 1, frames", "is 0; expected a whole number from 1 to 100000"),
        ("frames = true\n" + AUTO, "line 1, frames", "is true; expected a whole number from 1 to 100000"),
        ("fps = -1\n" + AUTO, "line 1, fps", "is -1; expected a positive number"),
        ("fps = nan\n" + AUTO, "line 1, fps", "is nan; expected a positive number"),
        ("held = 3\n" + AUTO, "line 1, held", "is 3; expected points of the target"),
        (
            "held = [1,\n 2.5]\n" + AUTO,
            "line 2, held[1]",
            "is 2.5; expected a whole number from 0, or three coordinates",
        ),
        ("held = [[0, 0, inf]]\n" + AUTO, "line 1, held[0][2]", "is inf; expected a finite number"),
        ("held = [9999]\n" + AUTO, "line 1, held[0]", "is vertex 9999; the target has"),
        ("held = [[9, 9, 9]]\n" + AUTO, "line 1, held[0]", "is [9.0, 9.0, 9.0], which is not inside the cage"),
        ("lengths = [[1, 2],\n [3]]\n" + AUTO, "line 2, lengths[1]", "has 1 entries; expected the two ends"),
        (AUTO + "rest = 3\n", "line 9, sources.bend.rest", "is 3; there are 3 frames, numbered from 0"),
        (AUTO + "first = 2\nlast = 1\n", "line 10, sources.bend.last", "is 1; the first frame to take is 2"),
        (AUTO.replace("[target]", "[target]\nvertices = 500"), "line 4, target.vertices", 'beside "gallery" only'),
        (FULL.replace('"tip"', '"tipp"'), "track", 'no group or joint of bend is called "tipp"; did you mean "tip"?'),
        (FULL.replace("[-1.7, 0.0, 0.0]", "[-1.7, 50.0, 0.0]"), "controls[1].at", "which is not inside the cage"),
        (FULL.replace("radius = 0.9", "radius = 0"), "sources.bend.groups.tip.radius", "expected a positive number"),
        (FULL.replace("centre", "center"), "sources.bend.groups.tip.center", 'did you mean "centre"?'),
        (FULL + "before = [1, 2]\n", "controls[1].before", "is [1, 2]; expected a quaternion [w, x, y, z], or"),
        (FULL + "before = [[1, 0, 0], [0, 2, 0], [0, 0, 1]]\n", "controls[1].before", "it is no rotation"),
        (FULL + "before = { axis = [0, 1, 0] }\n", "controls[1].before.axis", 'makes sense beside "degrees" only'),
        (AUTO + 'without = ["tail"]\n', "sources.bend.without", "a sequence of points has no joints"),
        (
            AUTO.replace("frames", "walk.bvh") + 'without = ["tail"]\n',
            "line 9, sources.bend.without",
            'no joint is called "tail"; did you mean "tail',
        ),
        (AUTO.replace("frames", "walk.bvh") + 'without = ["*"]\n', "sources.bend.without", "would leave no joint"),
        (FULL + "scale = 2\n", "controls[1].scale", "there is no such key of controls[1]"),
        ("groups = 3\n" + FULL, "line 1, groups", 'has no effect: it is for controls = "auto"'),
        (AUTO + GROUPS, "line 9, sources.bend.groups", 'has no effect: controls = "auto" finds tracks by itself'),
        (AUTO + "along = 0.5\n", "line 9, sources.bend.along", "has no effect: the source is a mesh sequence"),
        (
            AUTO.replace("frames", "walk.bvh") + 'fit = "rotation"\n',
            "sources.bend.fit",
            "has no effect: the source is a",
        ),
        (AUTO + "vertices = 600\n", "line 9, sources.bend.vertices", "has no effect: only shapes of the gallery"),
        (WALK + "vertices = 600\n", "line 9, sources.bend.vertices", "has no effect: only shapes of the gallery"),
        (WALK + 'clip = "run"\n', "line 9, sources.bend.clip", "has no effect: the gallery's motions have one clip"),
        (
            AUTO.replace("[sources", "faces = 40\n[sources"),
            "line 7, cage.faces",
            'has no effect: the cage is not built, "fi',
        ),
        (
            AUTO.replace("[sources", "margin = 0.02\n[sources"),
            "line 7, cage.margin",
            "has no effect: the cage is not built",
        ),
        (AUTO + "[weights]\nlength = 3\n", "line 10, weights.length", "has no effect: there are no lengths"),
        (AUTO.replace('file = "data/cage.obj"', "margin = 0.7"), "line 6, cage.margin", "a number from 0.004 to 0.5"),
    ],
)
def test_what_is_wrong_is_said_with_the_line_and_the_key(scene, text, place, message):
    with pytest.raises(FileError) as caught:
        scene(text)
    told = str(caught.value)
    assert "scene.toml" in told
    assert place in told.split(": ")[0]
    assert message in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("data/frames", "data/none"), "none: there is no such file"),
        (("data/frames", "data/bar.obj"), "bar.obj: holds one shape that does not move"),
        (("data/bar.obj", "data/none.obj"), "none.obj: there is no such file"),
        (("data/cage.obj", "data/open.obj"), "open.obj: "),
    ],
)
def test_files_that_are_wrong_are_named(scene, change, message):
    with pytest.raises(FileError, match=message.replace(".", r"\.")):
        scene(AUTO.replace(*change))


def test_what_the_solver_refuses_is_said_of_the_scene(scene):
    text = FULL.replace(f"held = [{ROOT}]\n", "")
    with pytest.raises(FileError, match=r"scene\.toml, line 1, follow: nothing fixes the position of the target"):
        scene(text).run()


def test_tracks_of_one_name_are_told_apart(scene):
    two = "held = [0]\n" + HEAD.replace("data/frames", "data/walk.bvh") + '[sources.again]\nfile = "data/walk.bvh"\n'
    with pytest.raises(FileError, match='"hips" is in bend and again; write "bend/hips"'):
        scene(two + f'[[controls]]\nat = {TIP}\ntrack = "hips"\n')
    both = scene(
        two + f'[[controls]]\nat = {TIP}\ntrack = "again/hips"\n[[controls]]\nat = {ROOT}\ntrack = "bend/head"\n'
    )
    assert {source: set(tracks) for source, tracks in both.tracks.items()} == {"again": {"hips"}, "bend": {"head"}}
    with pytest.raises(FileError, match=r'no joint of again is called "hipps"; did you mean "hips"\?'):
        scene(two + f'[[controls]]\nat = {TIP}\ntrack = "again/hipps"\n')


@pytest.mark.slow
def test_a_gallop_found_automatically_gives_it_again(scene):
    found = scene(
        'engine = "transfer"\ncontrols = "auto"\n[sources.gallop]\ngallery = "animal_gait"\nvertices = 600\n'
        '[target]\ngallery = "animal"\nvertices = 600\n[cage]\nfaces = 160\n'
    )
    whole = found.sources["gallop"]
    gallop = replace(whole, points=whole.points[::8])
    moved = replace(found, sources={"gallop": gallop}).run()
    error = np.linalg.norm(moved.clip.points - gallop.points, axis=2).mean(axis=1)
    assert error.max() < 0.02 * gallop.shape.diagonal


# Where values stand


def test_lines_of_everything_toml_has():
    text = (
        '''# a comment with [brackets] = "and quotes"
a.b = 1
"quoted \\u0041" = { x = [1,
  2, # two
  { y = 3 }] }
text = """
not = a key
"""""
[ table . "in ner" ]
k = 'it'''
        + """'
[[list]]
[list.sub]
z = 1
[[list]]
z = 1979-05-27T07:32:00Z
[[list.sub]]
w = [
  [1, 2],
  [3, 4],
]
"""
    )
    tomllib.loads(text)
    lines = {key_name(path): line for path, line in lines_of_keys(text).items()}
    assert lines["a.b"] == 2
    assert lines['"quoted A".x[1]'] == 4
    assert lines['"quoted A".x[2].y'] == 5
    assert lines["text"] == 6
    assert lines['table."in ner".k'] == 10
    assert lines["list[0].sub.z"] == 13
    assert lines["list[1].z"] == 15
    assert lines["list[1].sub[0].w[1][0]"] == 19


KEYS = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
VALUES = st.recursive(
    st.one_of(
        st.integers(-999, 999).map(str),
        st.sampled_from(["true", "1.5e-3", '"a # b"', "'c]d'", '"""e\nf"""', "'''g\n''h'''", "12:30:00"]),
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda entries: "[" + ",\n ".join(entries) + "]"),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
def test_the_scan_finds_every_value_of_any_document(tables):
    text = "".join(
        f"[{name}]\n" + "".join(f"{k} = {v} # x\n" for k, v in keys.items()) for name, keys in tables.items()
    )
    content = tomllib.loads(text)
    lines = lines_of_keys(text)

    def paths(value, path):
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in entries:
            yield (*path, key)
            yield from paths(inner, (*path, key))

    assert set(lines) == set(paths(content, ()))
    for name, keys in tables.items():
        assert text.splitlines()[lines[name,] - 1] == f"[{name}]"
        for key in keys:
            assert text.splitlines()[lines[name, key] - 1].startswith(f"{key} =")

"""The JSON schema of scene files says what their reader says, and the examples that ship with the package are right."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest

from pliant import FileError
from pliant.app.scene import ENGINES, examples, read_scene, scene_from
from pliant.app.scene.examples import example_scenes
from pliant.app.scene.json_schema import json_schema, records
from pliant.app.scene.located_toml import tomllib
from pliant.app.scene.schema import read_as, reference
from scene_mutations import SCENES, changed as changed_scene, is_declared, mutations, unlocated

jsonschema = pytest.importorskip("jsonschema", reason="only tests need it")

FOLDER = Path(examples.__file__).parent
RECORDS = records()
EXAMPLES = {name: tomllib.loads(text) for name, text in example_scenes().items()}
CHECK = jsonschema.Draft202012Validator(json_schema())
QUICK = {
    "closing_hand.toml": {"frames": 2},
    "dinosaur_walk.toml": {"nodes": 300},
    "flexing_arm.toml": {"nodes": 300},
    "looking_back.toml": {"frames": 3},
    "pulled_face.toml": {"frames": 4},
    "reaching_tentacle.toml": {"nodes": 200},
    "two_walks.toml": {"frames": 3},
    "waving_tentacle.toml": {"nodes": 200},
}
"""What makes each example quick."""
LONG = {"dinosaur_walk.toml", "looking_back.toml", "two_walks.toml"}
"""Those that take seconds all the same; others of their engines run by default."""


def test_every_engine_has_two_examples_or_more():
    engines = sorted(document["engine"] for document in EXAMPLES.values())
    assert engines == ["blend"] * 2 + ["simulate"] * 4 + ["transfer"] * 2
    assert set(EXAMPLES) == set(QUICK)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in EXAMPLES])
def test_an_example_runs_converges_and_moves(name):
    moved = read_scene(FOLDER / name, **QUICK[name]).run()
    frames = next(getattr(moved, what) for what in ("poses", "solutions", "frames") if hasattr(moved, what))
    assert all(frame.converged for frame in frames)
    points = moved.clip.points
    size = moved.clip.shape.diagonal
    assert np.isfinite(points).all()
    assert np.linalg.norm(points - points[0], axis=2).max() > 0.05 * size
    assert np.linalg.norm(points - moved.clip.shape.points, axis=2).max() < 2 * size
    if moved.clip.shape.is_watertight:
        assert abs(moved.clip[-1].volume / moved.clip.shape.volume - 1) < 0.2
    if name in CHECKS:
        CHECKS[name](moved)


def walks_on_the_ground(moved):
    assert not moved.stopped
    assert moved.clip.points[1:, :, 1].min() > -0.011  # the first frame is the static one, which touches nothing
    assert max(frame.contacts for frame in moved.frames) > 0


def meets_its_controls(moved):
    for solution in moved.solutions:
        assert solution.gradient_angles.max() < 5
        assert solution.gradient_strains.max() < 0.05
        assert np.abs(solution.length_errors).max() < 0.02


def bulges(moved):
    assert moved.frames[-1].activation == pytest.approx([1.0])
    assert moved.frames[-1].shortening[0] > 0.1


CHECKS = {"flexing_arm.toml": bulges, "dinosaur_walk.toml": walks_on_the_ground, "two_walks.toml": meets_its_controls}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_explained_and_name_nothing_but_what_is_built_in(name):
    text = example_scenes()[name]
    assert text.startswith("# ")
    assert f"pliant run {name} --report" in text
    assert 'file = "' not in "".join(line.partition("#")[0] for line in text.splitlines(True))


# The schema


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert json_schema()["properties"]["engine"]["enum"] == list(ENGINES)
    assert json.loads(json.dumps(json_schema(), allow_nan=False)) == json_schema()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_right_by_the_schema(name):
    assert list(CHECK.iter_errors(EXAMPLES[name])) == []


@pytest.mark.parametrize("engine", RECORDS)
def test_every_key_is_explained_in_the_schema(engine):
    told = json.dumps(json_schema()["$defs"][re.sub(r"\W+", "_", engine)], ensure_ascii=False)
    for key, _, meaning in reference(RECORDS[engine]):
        assert json.dumps(meaning, ensure_ascii=False)[1:-1] in told, key


def changed(name: str, path: tuple, value: object) -> dict:
    """An example with one value changed; ... leaves it out."""
    document = copy.deepcopy(EXAMPLES[name])
    place = document
    for key in path[:-1]:
        place = place[key] if isinstance(place, list) else place.setdefault(key, {})
    if value is ...:
        del place[path[-1]]
    elif isinstance(place, list) and path[-1] == len(place):
        place.append(value)
    else:
        place[path[-1]] = value
    return document


BROKEN = [
    ("closing_hand.toml", ("engine",), ...),
    ("closing_hand.toml", ("engine",), "blnd"),
    ("closing_hand.toml", ("frame",), 3),
    ("closing_hand.toml", ("frames",), 0),
    ("closing_hand.toml", ("frames",), "12"),
    ("closing_hand.toml", ("friction",), -0.1),
    ("closing_hand.toml", ("self_contact",), "yes"),
    ("closing_hand.toml", ("anchor",), [1, 2]),
    ("closing_hand.toml", ("anchor",), "middle"),
    ("closing_hand.toml", ("shapes",), ...),
    ("closing_hand.toml", ("shapes", "gallery"), ...),
    ("closing_hand.toml", ("shapes", "gallery"), "robot"),
    ("closing_hand.toml", ("shapes", "file"), "rig.glb"),
    ("closing_hand.toml", ("shapes", "names"), ["open"]),
    ("closing_hand.toml", ("shapes", "vertices"), 10),
    ("closing_hand.toml", ("obstacles", 0, "what"), ...),
    ("closing_hand.toml", ("obstacles",), {}),
    ("closing_hand.toml", ("springs", "accuracy"), 1),
    ("closing_hand.toml", ("springs", "stiffness"), {"bend": 1}),
    ("closing_hand.toml", ("output", "fiel"), "x.glb"),
    ("closing_hand.toml", ("output",), "x.glb"),
    ("closing_hand.toml", ("title",), " "),
    ("pulled_face.toml", ("weights",), []),
    ("pulled_face.toml", ("weights",), [1, 0]),
    ("pulled_face.toml", ("weights", 0), {"smile": "x"}),
    ("pulled_face.toml", ("pulls", 0, "vertex"), -1),
    ("pulled_face.toml", ("pulls", 0, "force"), [0, 0, 1]),
    ("looking_back.toml", ("gradients", 0, "at"), ...),
    ("looking_back.toml", ("gradients", 0, "turn"), {"axis": [0, 1, 0]}),
    ("looking_back.toml", ("gradients", 0, "turn"), [1, 0, 0]),
    ("looking_back.toml", ("positions", 0, "to"), [0, 0]),
    ("looking_back.toml", ("lengths", 0), [1]),
    ("looking_back.toml", ("cage", "faces"), 3),
    ("looking_back.toml", ("sources",), {}),
    ("two_walks.toml", ("controls",), "by hand"),
    ("two_walks.toml", ("controls",), []),
    ("two_walks.toml", ("controls", 0, "at"), "head"),
    ("two_walks.toml", ("sources", "legs", "gallery"), "hand"),
    ("two_walks.toml", ("sources", "legs", "file"), "walk.bvh"),
    ("two_walks.toml", ("weights", "gradient"), 0),
    ("two_walks.toml", ("target",), ...),
    ("flexing_arm.toml", ("muscles", "biceps", "tension"), 0),
    ("flexing_arm.toml", ("muscles", "biceps", "direction"), [0, 0, 0]),
    ("flexing_arm.toml", ("muscles", "biceps", "activation"), 2),
    ("flexing_arm.toml", ("muscles", "biceps", "activation", "joint"), ...),
    ("flexing_arm.toml", ("muscles", "biceps", "name"), "biceps"),
    ("dinosaur_walk.toml", ("nodes",), 3),
    ("dinosaur_walk.toml", ("material", "poisson"), 0.5),
    ("dinosaur_walk.toml", ("regions", 0, "centre"), [0, 0, 0]),
    ("dinosaur_walk.toml", ("up",), "w"),
    ("dinosaur_walk.toml", ("size",), "metres"),
    ("waving_tentacle.toml", ("skeleton", "bones", 0, "at"), ...),
    ("waving_tentacle.toml", ("skeleton", "bones"), []),
    ("waving_tentacle.toml", ("motion", "keys", 0, "time"), -1),
    ("waving_tentacle.toml", ("motion", "keys", 0, "turns"), {"tip": [1, 0]}),
    ("waving_tentacle.toml", ("motion", "rod"), {"joints": 0.1}),
    ("reaching_tentacle.toml", ("motion", "handles"), []),
    ("reaching_tentacle.toml", ("motion", "handles", 0, "joint"), ...),
    ("reaching_tentacle.toml", ("motion", "handles", 0, "position"), [0, 1]),
    ("reaching_tentacle.toml", ("motion", "handles", 0, "rotation"), {"axis": [0, 0, 1]}),
    ("reaching_tentacle.toml", ("motion", "keys"), [{"time": 1}]),
    ("reaching_tentacle.toml", ("motion", "rod", "joints"), {"tip": "loose"}),
    ("reaching_tentacle.toml", ("motion", "rod", "root"), "fixed"),
]


@pytest.mark.parametrize(("name", "path", "value"), BROKEN)
def test_what_the_schema_refuses_the_reader_refuses_and_the_other_way_round(name, path, value):
    document = changed(name, path, value)
    assert not CHECK.is_valid(document)
    with pytest.raises(FileError) as raised:
        scene_from(document, FOLDER)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ({"axis": [0, 0, 0], "degrees": 9}, "axis"),
        ({"axis": [0, -0.0, 0.0], "degrees": 9}, "axis"),
        ({"axis": [0, math.nan, 1], "degrees": 9}, "axis[1]"),
        ({"axis": [0, 0, 1], "degrees": math.nan}, "degrees"),
        ({"axis": [0, 0, 1], "degrees": math.inf}, "degrees"),
        ({"axis": [0, 0, 1], "degrees": -math.inf}, "degrees"),
        ([0.0, 0.0, 0.0, 0.0], ""),
        ([1.0, math.nan, 0.0, 0.0], "[1]"),
    ],
)
def test_turns_about_no_axis_or_by_no_angle_are_refused_by_schema_and_reader(value, key):
    document = changed("looking_back.toml", ("gradients", 0, "turn"), value)
    assert not CHECK.is_valid(document)
    with pytest.raises(FileError) as raised:
        read_as(RECORDS["transfer, posed by hand"], unlocated(document), document, ())
    assert f"gradients[0].turn{'.' if key[:1].isalpha() else ''}{key}: is " in str(raised.value)


@pytest.mark.parametrize("name", SCENES)
def test_schema_and_reader_agree_on_a_sample_of_changes(name):
    agree_on(name, random.Random(15).sample(list(mutations(SCENES[name])), 60))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_schema_and_reader_agree_on_every_change(name):
    agree_on(name, mutations(SCENES[name]))


def agree_on(name, changes):
    document = SCENES[name]
    for path, value in changes:
        other = changed_scene(document, path, value)
        assert CHECK.is_valid(other) == is_declared(other, document["engine"]), (path, value)


ALLOWED = [
    ("closing_hand.toml", ("output",), {"file": "x.glb", "report": "x.html"}),
    ("closing_hand.toml", ("anchor",), "none"),
    ("closing_hand.toml", ("springs",), {"stiffness": {"bending": 0.5}, "accuracy": 1e-3, "model": "paper"}),
    ("pulled_face.toml", ("weights",), [[0.0, 1.0], [1.0, 0.0, 0.0], {"smile": 1}]),
    ("pulled_face.toml", ("pins",), [3, 4]),
    ("pulled_face.toml", ("frames",), 4.0),
    ("looking_back.toml", ("gradients", 0, "turn"), [1.0, 0.0, 0.0, 0.0]),
    ("two_walks.toml", ("output",), {"file": "x.glb"}),
    ("waving_tentacle.toml", ("gravity",), [0, -9.81, 0]),
    ("waving_tentacle.toml", ("static",), False),
    (
        "reaching_tentacle.toml",
        ("motion", "rod"),
        {"joints": {"middle": "free", "upper": 0.1}, "radius": {"root": 0.2}},
    ),
    ("reaching_tentacle.toml", ("motion", "handles"), [{"joint": "tip", "time": 0.2, "force": [9, 0, 0]}]),
]


@pytest.mark.parametrize(("name", "path", "value"), ALLOWED)
def test_what_the_reader_takes_the_schema_takes(name, path, value):
    document = changed(name, path, value)
    CHECK.validate(document)
    assert scene_from(document, FOLDER).engine == document["engine"]

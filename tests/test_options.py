"""Options are declared once: what Python, the command line, scenes, the schema, the docs and the studio say derives."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.app.cli.flags import ArgumentGroups, flagged, help_of, joined, option_tables
from pliant.app.scene.json_schema import json_schema
from pliant.app.scene.schema import option_keys, reference
from pliant.core.errors import InputError
from pliant.core.options import (
    NOT_NEGATIVE,
    POINT,
    Choice,
    Either,
    Flag,
    Misfit,
    Number,
    Options,
    Whole,
    option,
    parse_word,
)
from pliant.engines.blend import options as blend
from pliant.engines.blend.options import BlendOptions
from pliant.engines.registry import ENGINES
from pliant.engines.simulate import options as simulate
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.simulate.simulation import Pace
from pliant.engines.transfer.options import TransferOptions, Weights

SOURCE = Path(pliant.__file__).parent
INPUT = {
    "blend": ["a.obj", "b.obj"],
    "transfer": ["--source", "a.bvh", "--target", "b.obj", "--auto"],
    "simulate": ["a.obj"],
}
"""What else each command has to be given."""


def written(text: str) -> list[str]:
    """Lines of the source that have a text."""
    found = [line for file in sorted(SOURCE.rglob("*.py")) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in found if text in line]


@pytest.mark.parametrize("options", [BlendOptions, SimulateOptions, TransferOptions, Weights])
def test_help_is_written_once(options):
    shared = {"Coulomb's coefficient on obstacles"}  # of two engines that are not alike
    for about in options.all():
        if about.help not in shared and len(about.help) > 20:
            assert len(written(f'"{about.help}"')) == 1, about.help


def test_the_default_accuracy_of_blending_is_written_once():
    assert BlendOptions.accuracy == 1e-4
    assert len([line for line in written("accuracy") if "1e-4" in line]) <= 1
    assert len([line for line in written("thickness") if "thousandth" in line and "option" not in line]) <= 1


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (pliant.Blendshapes.__init__, BlendOptions),
        (pliant.Blendshapes.solve, BlendOptions),
        (pliant.Blendshapes.poses, BlendOptions),
        (pliant.Blendshapes.animate, BlendOptions),
        (pliant.ElasticBody.simulate, SimulateOptions),
        (pliant.transfer, TransferOptions),
    ],
)
def test_keywords_have_the_options_defaults(function, options):
    keywords = inspect.signature(function).parameters
    shared = [about for about in options.all() if about.name in keywords]
    assert len(shared) >= 3
    assert [keywords[about.name].default for about in shared] == [about.default for about in shared]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_scenes_flags_and_schema_say_the_same_of_an_option(engine):
    record = next(iter(engine.all_records().values()))
    told = {(key.rpartition(".")[2], words, meaning) for key, words, meaning in reference(record)}
    schema = json.dumps(json_schema()["$defs"][engine.name], ensure_ascii=False)
    parser = argparse.ArgumentParser()
    ArgumentGroups(parser).add_options(engine.options)
    for about in engine.options.all():
        if about.table is not None:
            assert (about.name, about.kind.expected, about.meaning) in told
            assert json.dumps(about.meaning, ensure_ascii=False)[1:-1] in schema
        assert f"{about.flag}" in parser.format_help()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_option_is_a_flag_of_the_command(engine, command_line):
    _, out, _ = command_line(engine, "--help")
    words = " ".join(out.split())
    for about in ENGINES[engine].options.all():
        assert about.flag in words
        assert " ".join(help_of(about).replace("-", "").split()) in words.replace("-", ""), about.name


@dataclass(frozen=True)
class Made(Options):
    """For these tests."""

    size: float = option(2.0, NOT_NEGATIVE, "how large", "metres")
    count: int | None = option(None, Whole(1, 9), "how many", default_text="all")
    kind: str = option("soft", Choice(("soft", "hard")), "of what kind")
    at: object = option("auto", Either((Choice(("auto",)), POINT)), "where")
    on: bool = option(False, Flag(), "whether it is")


def test_values_are_checked_and_converted():
    made = Made(np.float32(0.5), np.int64(3), "hard", (1, 2, 3), np.True_)
    assert made == Made(0.5, 3, "hard", [1.0, 2.0, 3.0], True)
    assert type(made.size) is float
    assert type(made.count) is int


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": -1}, "size is -1; expected a number, 0 or more"),
        ({"size": np.nan}, "size is nan; expected a number"),
        ({"size": True}, "size is True; expected a number"),
        ({"size": None}, "size is None; expected a number"),
        ({"count": 0}, "count is 0; expected a whole number from 1 to 9"),
        ({"count": 1.5}, "count is 1.5; expected a whole number"),
        ({"kind": "wet"}, 'kind is "wet"; expected "soft" or "hard"'),
        ({"at": (1, 2)}, r"at is \(1, 2\); expected"),
        ({"on": 1}, "on is 1; expected true or false"),
    ],
)
def test_wrong_values_are_named_with_what_was_expected(given, words):
    with pytest.raises(InputError, match=words) as problem:
        Made(**given)
    assert problem.value.argument == (next(iter(given)),)


def test_words_of_the_command_line_are_parsed_by_the_same_kinds():
    assert parse_word(Made.about("size").kind, "1e2") == 100
    assert parse_word(Made.about("at").kind, "1,2,-3") == [1, 2, -3]
    assert parse_word(Made.about("at").kind, "auto") == "auto"
    for name, word in (("size", "-1"), ("size", "x"), ("size", "nan"), ("count", "0"), ("at", "1,2"), ("kind", "wet")):
        with pytest.raises(Misfit, match=re.escape(f'"{word}" is not {Made.about(name).kind.syntax}')):
            parse_word(Made.about(name).kind, word)
    assert parse_word(Number(0, 1), "0.5") == 0.5
    assert parse_word(Number(0, 1), "1/60") == 1 / 60
    for word in ("1/0", "1/", "/60", "1/2/3"):
        with pytest.raises(Misfit):
            parse_word(Number(0, 1), word)


def test_meanings_tell_unit_and_default():
    keys = option_keys(Made)
    assert keys["size"].meaning == "how large, in metres (default: 2)"
    assert keys["count"].meaning == "how many (default: all)"
    assert keys["on"].meaning == "whether it is"


def test_rules_between_options_name_the_option_and_the_reason():
    assert [name for name, _ in blend.impossible({"self_contact": True, "method": "newton", "jobs": 2})] == [
        "method",
        "jobs",
    ]
    assert [name for name, _ in blend.impossible({"method": "newton", "jobs": 2})] == []
    assert [name for name, _ in blend.idle({"friction": 0.1, "thickness": 0.1})] == ["friction", "thickness"]
    assert [name for name, _ in blend.idle({"obstacles": [1], "friction": 0.1, "thickness": 0.1})] == []
    assert [name for name, _ in simulate.idle({"static": True, "drag": 1})] == ["drag"]
    assert [name for name, _ in simulate.idle({"static": True, "friction": 1, "obstacles": [1]})] == ["friction"]
    assert len(written('is solved by "')) == 1


@dataclass(frozen=True)
class Placed(Options):
    """Options in several tables."""

    size: float = option(2.0, NOT_NEGATIVE, "how large", group="first")
    depth: float = option(1.0, NOT_NEGATIVE, "how deep", table="a.b", flag_name="deepness")
    inner: float = option(1.0, NOT_NEGATIVE, "what is inside", table="a", group=None)
    aside: int = option(1, Whole(1), "on this machine", table=None)


def test_a_document_holds_options_in_their_tables():
    assert Placed.about("depth").put({"a": {"inner": 3}, "size": 1}, 2) == {
        "a": {"inner": 3, "b": {"depth": 2}},
        "size": 1,
    }
    assert Placed.about("depth").put({"a": {"b": {"depth": 2}}}, None) == {}
    assert Placed.about("size").put({}, 3.0) == {"size": 3.0}
    said = {"size": 5, "a": {"b": {"depth": 4}, "inner": None}}
    assert Placed.read(said, aside=3, size=None) == Placed(5, 4, aside=3)
    assert Placed.read(said).changed() == {"size": 5.0, "depth": 4.0}
    assert Placed(3).taken_by(lambda size, other: None) == {"size": 3.0}


def test_flags_fill_the_tables():
    parser = argparse.ArgumentParser()
    ArgumentGroups(parser).add_options(Placed)
    assert [about.flag for about in flagged(Placed)] == ["--size", "--deepness", "--aside"]
    typed = parser.parse_args(["--deepness", "3", "--aside", "2"])
    assert option_tables(typed, Placed) == {"a": {"b": {"depth": 3.0}}}
    assert joined({"a": {"x": 1}, "none": None, "list": []}, {"a": {"b": {"y": 2}}}) == {"a": {"x": 1, "b": {"y": 2}}}
    assert "first:" in parser.format_help()


@pytest.mark.parametrize("name", ["young", "poisson", "density"])
def test_a_material_takes_what_its_options_declare(name):
    about = SimulateOptions.about(name)
    assert getattr(pliant.Material(), name) == about.default
    for value in (about.kind.above, about.kind.below, "much", True):
        with pytest.raises(InputError, match=f"{name} is .*; expected {about.kind.expected}") as refused:
            pliant.Material(**{name: value})
        assert refused.value.argument == (name,)


@pytest.mark.parametrize("name", ["dt", "fps", "hold"])
def test_the_pace_takes_what_its_options_declare(name):
    motion = gallery.dinosaur_walk(2)
    given = {"dt": 1 / 60, "fps": None, "hold": 0.0}
    about = SimulateOptions.about(name)
    for value in (about.kind.above, float("nan"), "much"):
        with pytest.raises(InputError, match=f"{name} is .*; expected {about.kind.expected}") as refused:
            Pace.of(motion, **given | {name: value})
        assert refused.value.argument == (name,)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_option_is_added_by_its_field_alone(engine):
    """In a process of its own, as modules read what is declared when they are imported."""
    code = f"""
        import dataclasses, json
        from pliant.core import options
        from pliant.engines.{engine} import options as declared

        name = "{engine.capitalize()}Options"
        whole = getattr(declared, name)
        new = options.option(0.25, options.Number(0, 1, "a share"), "how much of it is new", "shares")
        Added = dataclasses.make_dataclass(name, [("novelty", float, new)], bases=(whole,), frozen=True)
        setattr(declared, name, Added)

        from pliant.app.cli import parser_of_all
        from pliant.app.scene.json_schema import json_schema
        from pliant.app.scene.schema import reference
        from pliant.engines.registry import ENGINES
        from pliant.app.studio.panel import Panel

        about = Added.about("novelty")
        assert ENGINES["{engine}"].options is Added
        command = next(action for action in parser_of_all()._actions if action.dest == "command" or action.choices)
        help = " ".join(command.choices["{engine}"].format_help().split())
        assert "--novelty" in help and "how much of it is new, in shares (default: 0.25)" in help
        schema = json_schema()["$defs"]["{engine}"]["properties"]["novelty"]
        assert (schema["default"], schema["exclusiveMaximum"]) == (0.25, 1)
        record = next(iter(ENGINES["{engine}"].all_records().values()))
        assert ("novelty", "a share", "how much of it is new, in shares (default: 0.25)") in reference(record)
        assert about in list(Added.all(folder=""))  # which `Panel.add_further_options` shows
        typed = parser_of_all().parse_args(["{engine}", *{INPUT[engine]!r}, "-o", "out.glb", "--novelty", "0.5"])
        document, _ = ENGINES["{engine}"].part("command").document(typed)
        assert document["novelty"] == 0.5
        assert Added.read(document).novelty == 0.5
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)


@pytest.mark.parametrize(
    ("method", "wrong", "near"),
    [
        (pliant.ElasticBody.simulate, "frction", "friction"),
        (pliant.transfer, "latice", "lattice"),
        (pliant.Blendshapes.poses, "self_contacts", "self_contact"),
        (pliant.Blendshapes.animate, "acuracy", "accuracy"),
        (pliant.CageRig.animate, "iteration", "iterations"),
    ],
)
def test_arguments_that_are_passed_on_are_shown_and_checked(method, wrong, near):
    shown = inspect.signature(method).parameters
    assert near in shown
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in shown.values())
    with pytest.raises(TypeError, match=f'{method.__qualname__}.. has no argument "{wrong}"; did you mean "{near}"'):
        method(None, **{wrong: 1})


def test_what_is_not_passed_on_is_no_argument():
    assert "start" not in inspect.signature(pliant.Blendshapes.poses).parameters
    assert "watch" not in inspect.signature(pliant.Blendshapes.animate).parameters
    with pytest.raises(TypeError, match=r'no argument "zebra"; see help\(Blendshapes.animate\)'):
        pliant.Blendshapes.animate(None, zebra=1)

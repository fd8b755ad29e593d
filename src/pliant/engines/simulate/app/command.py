"""``pliant simulate``: its arguments, and the scene document made of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pliant.app.cli.arguments import count
from pliant.app.cli.flags import (
    OBSTACLE_NAMES,
    ArgumentGroups,
    add_obstacles,
    given,
    joined,
    obstacles_of,
    option_tables,
)
from pliant.app.scene.regions import REGION_NAMES, typed_region
from pliant.core.errors import InputError
from pliant.core.options import CONTACT_GROUP, Either, KeyPath, Misfit, Text, parse_word
from pliant.engines.simulate.app.muscles import ACTIVATION_FILE, SHARE
from pliant.engines.simulate.app.scene_keys import REGION_RECORD
from pliant.engines.simulate.options import MATERIAL_GROUP, MOTION_GROUP, MuscleOptions, RodOptions, SimulateOptions
from pliant.io.source import Source, text_of

REGION_SYNTAX = "NAME:KEY=VALUE,..."
MUSCLE_SYNTAX = "NAME[:KEY=VALUE,...]"
MUSCLE_KINDS = {
    "activation": Either((SHARE, ACTIVATION_FILE)),
    "joint": Text(),
    "tension": MuscleOptions.about("tension").kind,
    "direction": Text(),
}
REGION_KEYS = (*SimulateOptions.names(table="material"), "rigid")
REGION_KINDS = {key: REGION_RECORD.keys[key].kind for key in REGION_KEYS}
MOTION_FLAGS: dict[KeyPath, str] = {
    ("motion", "first"): "--frames",
    ("motion", "last"): "--frames",
    ("motion", "handles"): "--handle",
    ("motion", "handles", "position"): "--handle",
    ("motion", "handles", "rotation"): "--handle-rotation",
    ("motion", "handles", "force"): "--handle-force",
    ("motion", "rod"): RodOptions.about("joints").flag,
}
"""The flags for keys of the table [motion]."""
HANDLE_FLAGS = {
    "position": (
        "JOINT=X,Y,Z",
        "hand=1,0,-2",
        "pull a joint to a position within a second, or by a time: JOINT@SECONDS=X,Y,Z; bones bend as elastic rods; "
        "a JOINT alone stays where it is; may be given again",
    ),
    "rotation": (
        "JOINT=X,Y,Z,DEGREES",
        "hand=0,0,1,90",
        "rotate a joint about an axis, against rest, likewise",
    ),
    "force": ("JOINT=X,Y,Z", "hand=0,-50,0", "pull at a joint with a force in newtons, likewise"),
}
"""By what a handle gives: what is written on the command line, an example, and the help."""


def add_arguments(parser: Any, engine: Any) -> None:
    """Add the arguments."""
    parser.add_argument("input", metavar="MESH", help="a closed mesh, tetrahedra, points with normals, or a scene file")
    groups = ArgumentGroups(parser)
    what, made = groups[MOTION_GROUP], groups[MATERIAL_GROUP]
    what.add_argument(
        "--skeleton", metavar="FILE", help="bones inside the mesh (default: the mesh file's own, or else found in it)"
    )
    what.add_argument("--joints", type=count, help="how many joints the skeleton has that is found in the mesh")
    what.add_argument("--motion", metavar="FILE", help="how the bones move: .bvh .glb .npz (default: the mesh file's)")
    what.add_argument("--clip", help="name, part of a name or number of the clip, where there are several")
    what.add_argument(
        "--map",
        metavar="A=B,...",
        help="joints of the skeleton and those of the motion that they follow, or a .json; else by name or limb",
    )
    for name, (syntax, example, meaning) in HANDLE_FLAGS.items():
        what.add_argument(
            MOTION_FLAGS["motion", "handles", name],
            metavar=syntax,
            type=_handle(name, syntax, example),
            action="append",
            default=[],
            help=meaning,
        )
    what.add_argument("--frames", metavar="A:B", type=_span, help="of the motion, counted from 0, the last one too")
    made.add_argument(
        "--region",
        metavar=REGION_SYNTAX,
        type=_region,
        action="append",
        default=[],
        help=f"what a part is made of; NAME: {REGION_NAMES}, a joint, or an image on the UVs (white: this, black: "
        f"not); KEY: {', '.join(REGION_KEYS)}; may be given again",
    )
    made.add_argument(
        "--rigid",
        metavar="NAME",
        action="append",
        default=[],
        help="a part that moves with its bone, without bending; parts that the file binds to one bone do by themselves "
        "(--region NAME:rigid=false: they do not); may be given again",
    )
    made.add_argument(
        "--muscle",
        metavar=MUSCLE_SYNTAX,
        type=_muscle,
        action="append",
        default=[],
        help="a part whose fibres shorten and bulge; NAME: as of --region; KEY: activation (0 to 1, or a .csv or .json "
        "with a column called NAME), joint (which activates it as it turns, fully by 90 degrees), tension (pascals), "
        "direction (a joint whose bone fibres run along); may be given again",
    )
    add_obstacles(groups[CONTACT_GROUP])
    groups.add_options(RodOptions, SimulateOptions)


def scene_file(options: argparse.Namespace) -> str | None:
    """The scene that was given instead of a mesh."""
    from pliant.app.cli.engines import is_scene

    return options.input if is_scene(options.input) else None


def document(options: argparse.Namespace) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """The scene that the arguments say, and what its keys are called on the command line."""
    skeleton = given(options, "joints") | ({"file": options.skeleton} if options.skeleton else {})
    motion: dict[str, Any] = {"file": options.motion} if options.motion else {}
    if options.clip is not None:
        motion["clip"] = int(options.clip) if options.clip.isdigit() else options.clip
    if options.frames is not None:
        first, last = options.frames
        motion |= {"first": first} | ({} if last is None else {"last": last})
    handles = [*options.handle, *options.handle_rotation, *options.handle_force]
    if handles:
        if options.motion:
            raise InputError("--motion and --handle are both given; expected one of them")
        motion["handles"] = handles
    declared = option_tables(options, RodOptions, SimulateOptions)
    if "motion" in declared and not handles:
        raise InputError(f"{MOTION_FLAGS['motion', 'rod']} has no effect without --handle; leave it out")
    if options.map:
        motion["map"] = dict(_names(options.map))
    muscles = dict(options.muscle)
    if len(muscles) < len(options.muscle):
        raise InputError("--muscle names one muscle twice; give all its keys at once: NAME:KEY=VALUE,KEY=VALUE")
    by = f" by {Path(options.motion).name}" if options.motion else ""
    written = {
        "title": f"{Path(options.input).name}{by}",
        "shape": {"file": options.input},
        "skeleton": skeleton,
        "motion": motion,
        "regions": [*options.region, *({"name": name, "rigid": True} for name in options.rigid)],
        "muscles": muscles,
    }
    document = joined(written, declared, obstacles_of(options))
    parts: dict[KeyPath, str] = {("regions",): "--region", ("muscles",): "--muscle"}
    return document, {**OBSTACLE_NAMES, **MOTION_FLAGS, **parts, ("shape",): options.input}


def _region(text: str) -> dict[str, Any]:
    """An entry of regions: from NAME:KEY=VALUE,...; names may have colons."""
    name, colon, values = text.rpartition(":")
    try:
        if not colon or not name.strip():
            raise ValueError(text)
        pairs = dict(_pair(pair, REGION_KINDS) for pair in values.split(","))
    except (ValueError, Misfit):
        raise argparse.ArgumentTypeError(f'"{text}" is not {REGION_SYNTAX}, such as tail:young=2e4') from None
    return {**typed_region(name), **pairs}


def _muscle(text: str) -> tuple[str, dict[str, Any]]:
    """A table of muscles, with its name: from NAME:KEY=VALUE,..., or NAME alone."""
    name, _, values = text.rpartition(":") if "=" in text else (text, "", "")
    problem, table = "" if name.strip() else "it has no name", dict[str, Any]()
    for pair in (word for word in values.split(",") if word and not problem):
        key, equals, value = (word.strip() for word in pair.partition("="))
        if key not in MUSCLE_KINDS or not equals:
            problem = f'"{pair.strip()}" has none of the keys {", ".join(MUSCLE_KINDS)}'
        elif key in table:
            problem = f"{key} is given twice"
        else:
            try:
                table[key] = parse_word(MUSCLE_KINDS[key], value)
            except Misfit as misfit:
                problem = f"{key}: {misfit}"
    if {"joint", "activation"} <= set(table):
        problem = "joint and activation are given, and both say how much of it acts; leave out one of them"
    if problem:
        raise argparse.ArgumentTypeError(f'"{text}": {problem}; expected {MUSCLE_SYNTAX}, such as biceps:joint=forearm')
    if "joint" in table:
        table["activation"] = {"joint": table.pop("joint")}
    return name.strip(), {**typed_region(name), **table}


def _pair(text: str, kinds: Mapping[str, Any]) -> tuple[str, Any]:
    key, _, value = (word.strip() for word in text.partition("="))
    if key not in kinds:
        raise ValueError(text)
    return key, parse_word(kinds[key], value)


def _span(text: str) -> tuple[int, int | None]:
    first, colon, last = text.partition(":")
    good = colon and (first or "0").isdecimal() and (not last or last.isdecimal())
    if not good or (last and int(last) < int(first or 0)):
        raise argparse.ArgumentTypeError(f'"{text}" is not A:B, such as 0:47, 10: or :47')
    return int(first or 0), int(last) if last else None


def _handle(quantity: str, syntax: str, example: str) -> Callable[[str], dict[str, Any]]:
    """What argparse calls with a handle."""

    def parsed(text: str) -> dict[str, Any]:
        try:
            return _handle_entry(quantity, text)
        except ValueError:
            raise argparse.ArgumentTypeError(f'"{text}" is not {syntax}, such as {example}') from None

    return parsed


def _handle_entry(quantity: str, text: str) -> dict[str, Any]:
    """An entry of motion.handles: from JOINT=NUMBERS, JOINT@SECONDS=NUMBERS, or JOINT for one that stays."""
    name, equals, numbers = text.rpartition("=")
    joint, at, seconds = (name if equals else text).rpartition("@")
    entry = {"joint": joint, "time": float(seconds)} if at else {"joint": seconds}
    if quantity == "position" and not equals:
        return entry
    values = [float(number) for number in numbers.split(",")]
    if quantity == "rotation":
        x, y, z, degrees = values
        return entry | {"rotation": {"axis": [x, y, z], "degrees": degrees}}
    x, y, z = values
    return entry | {quantity: [x, y, z]}


def _names(text: str) -> Mapping[str, str]:
    """From joints of the skeleton to those of the motion, as written, or from a file."""
    if Path(text).suffix.lower() == ".json":
        source = Source(Path(text))
        written = text_of(source)
        try:
            found = json.loads(written)
        except (ValueError, RecursionError) as error:
            raise source.error(f"is not JSON ({error})") from None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise source.error('expected {"joint of the skeleton": "joint of the motion", ...}')
        return found
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not pairs or not all(equals and name.strip() for name, equals, _ in pairs):
        raise InputError(f'--map is "{text:.60}"; expected JOINT=JOINT,..., the skeleton\'s first, or a .json file')
    return {name.strip(): other.strip() for name, _, other in pairs}

"""Flags: those made from options, those for obstacles, and what of them was given.

As a module, the command of an engine that declares no arguments: a flag for each scene key whose value is one word.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from pliant.core.errors import InputError
from pliant.core.options import Choice, Flag, KeyPath, Misfit, Option, Options, parse_word

FURTHER = "further options"


class ArgumentGroups:
    """The groups of a command's arguments, by heading, in the order in which they are first named."""

    def __init__(self, parser: Any) -> None:
        self._parser, self._groups = parser, dict[str, Any]()

    def __getitem__(self, heading: str) -> Any:
        if heading not in self._groups:
            self._groups[heading] = self._parser.add_argument_group(heading)
        return self._groups[heading]

    def add_options(self, *kinds: type[Options]) -> None:
        """A flag for every option that has one, under its heading. One that is not given is None."""
        for about in flagged(*kinds):
            add_option(self[about.group or FURTHER], about)


def flagged(*kinds: type[Options]) -> Iterator[Option]:
    """The options that have flags."""
    return (about for options in kinds for about in options.all() if about.group is not None)


def option_tables(options: argparse.Namespace, *kinds: type[Options]) -> dict[str, Any]:
    """What was given of the flags of options, in the tables of a scene."""
    document: dict[str, Any] = {}
    for about in flagged(*kinds):
        value = getattr(options, about.dest)
        if value is not None and about.table is not None:
            document = about.put(document, value)
    return document


def joined(*documents: dict[str, Any]) -> dict[str, Any]:
    """Documents in one; what is in the same table of several is joined. Empty tables are left out."""
    made: dict[str, Any] = {}
    for document in documents:
        for key, value in document.items():
            made[key] = joined(made.get(key, {}), value) if isinstance(value, dict) else value
    return {key: value for key, value in made.items() if value not in ({}, [], None)}


def add_option(group: Any, about: Option) -> None:
    """A flag for an option, or for a scene key described as one."""
    if isinstance(about.kind, Flag):
        group.add_argument(about.flag, action="store_true", default=None, help=help_of(about))
    else:
        group.add_argument(about.flag, type=word_of(about.kind), help=help_of(about))


def help_of(about: Option) -> str:
    """What ``--help`` shows, and the reference in the docs."""
    choices = f": {', '.join(about.kind.choices)}" if isinstance(about.kind, Choice) else ""
    return about.described(choices, default=True).replace("%", "%%")


def word_of(kind: Any) -> Callable[[str], Any]:
    """What argparse calls with a word."""

    def parsed(word: str) -> Any:
        try:
            return parse_word(kind, word)
        except Misfit as misfit:
            raise argparse.ArgumentTypeError(misfit.problem) from None

    return parsed


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """What was given of some flags."""
    return {name: value for name in names if (value := getattr(options, name, None)) not in (None, [])}


def add_arguments(parser: Any, engine: Any) -> None:
    """Add the flags, and a scene file that may be given instead."""
    parser.add_argument("input", metavar="SCENE", nargs="?", help="a scene file (.toml)")
    keys = engine.record({}).keys
    names = [name for name, key in keys.items() if name != "engine" and hasattr(key.kind, "parse")]
    for name in names:
        add_option(parser, Option(name, None, keys[name].kind, keys[name].meaning))
    parser.set_defaults(keys=names)


def scene_file(options: argparse.Namespace) -> str | None:
    """The scene that was given."""
    file: str | None = options.input
    return file


def document(options: argparse.Namespace) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """The scene that the flags say."""
    return given(options, *options.keys), {}


NO_MOTION = "none"
"""Instead of a motion, for an obstacle that stays where it is."""
OBSTACLE_NAMES: dict[KeyPath, str] = {
    ("obstacles", "what"): "--obstacle",
    ("obstacles", "motion"): "--obstacle-motion",
    ("obstacles",): "--obstacle",
}
"""The flags for keys of the table [[obstacles]]."""


def add_obstacles(group: Any) -> None:
    """Add the flags."""
    more: dict[str, Any] = {"action": "append", "default": []}
    group.add_argument(
        "--obstacle",
        metavar="WHAT",
        help="a closed mesh, a clip of one, sphere:X,Y,Z,R, capsule:X,Y,Z,X,Y,Z,R, cylinder:X,Y,Z,X,Y,Z,R, "
        "box:X,Y,Z,SX,SY,SZ[,AX,AY,AZ] (rotated about that axis, as long as the degrees) or plane:X,Y,Z,NX,NY,NZ "
        "(solid below); may be given again",
        **more,
    )
    group.add_argument(
        "--obstacle-motion",
        metavar="FILE",
        help="keyframes (.csv, .json), or a clip or point cache of the mesh (.pc2, .mdd, .glb, ...); the first is that "
        'of the first obstacle, and so on; "none": it stays',
        **more,
    )


def obstacles_of(options: argparse.Namespace) -> dict[str, Any]:
    """The key "obstacles" of a scene, if there are any."""
    things, motions = options.obstacle, options.obstacle_motion
    if len(motions) > len(things):
        given = f"{len(motions)} for {len(things)} obstacles"
        raise InputError(f"there are more --obstacle-motion than --obstacle: {given}; expected at most one each")
    entries: list[dict[str, str]] = [{"what": what} for what in things]
    for entry, motion in zip(entries, motions, strict=False):
        entry |= {} if motion == NO_MOTION else {"motion": motion}
    return {"obstacles": entries} if entries else {}

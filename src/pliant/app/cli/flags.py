"""Flags that are made from options, and what of them was given."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from pliant.core.options import Choice, Flag, Misfit, Option, Options, Path, parse_word


def add_options(group: Any, options: type[Options], *names: str) -> None:
    """A flag for each of some options. A flag that is not given is None and leaves its key out of the document."""
    for name in names:
        add_option(group, options.about(name))


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


def document(options: argparse.Namespace) -> tuple[dict[str, Any], dict[Path, str]]:
    """The scene that the flags say."""
    return given(options, *options.keys), {}

"""What the commands share: a parser that complains in one line, numbers, places, and how an input is read."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

import pliant
from pliant.errors import InputError
from pliant.io import Kind


class Parser(argparse.ArgumentParser):
    """A parser whose complaints fit on one line."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise InputError(f"{message} (see: {self.prog} --help)")


def joined_negatives(words: list[str]) -> list[str]:
    """Words of which an option's value that starts with a minus, as in ``--view -30,20``, is joined to the option."""
    joined: list[str] = []
    for word in words:
        if re.match(r"-[\d.]", word) and joined and re.fullmatch(r"--[a-z][a-z-]*", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def add_command(commands: Any, run: Any, name: str, help: str) -> argparse.ArgumentParser:
    """A command whose description is the docstring of the function that runs it."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=run.__doc__)
    parser.set_defaults(run=run)
    return parser


def add_input(parser: argparse.ArgumentParser, *, shapes: bool = True) -> None:
    """The options that say how a file is to be read."""
    parser.add_argument(
        "input", metavar="IN", help="file, folder, glob, .tar or .zip (or a name inside: rig.zip/*.obj)"
    )
    parser.add_argument("--clip", help="name or number of the clip, where the file has several")
    parser.add_argument("--fps", type=positive, help="frames a second to sample at, or that a sequence was made at")
    parser.add_argument("--mesh", help="the mesh that a point cache (.pc2, .mdd) moves")
    if shapes:
        parser.add_argument("--base", help="the base shape: a file, or the name of one of the shapes")


def positive(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f'"{text}" is not a positive number')
    return value


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number from 1')
    return int(text)


def read_input(options: argparse.Namespace, kind: Kind | None) -> Any:
    """What the input holds, as the given kind or as the richest it has."""
    clip = int(options.clip) if options.clip and options.clip.isdigit() else options.clip
    if kind is None and (options.clip or options.mesh):
        kind = "animation"
    base = getattr(options, "base", None)
    if kind is None and base:
        kind = "shapes"
    if kind == "animation":
        return pliant.read_animation(options.input, clip=clip, fps=options.fps, mesh=options.mesh)
    if kind == "motion":
        motion = pliant.read_motion(options.input, clip=clip)
        return motion.resampled(options.fps) if options.fps else motion
    if kind == "shapes":
        return pliant.read_shapes(options.input, base=base)
    content = pliant.read(options.input, kind)
    if isinstance(content, pliant.Motion) and options.fps:
        return content.resampled(options.fps)
    if isinstance(content, pliant.Animation) and options.fps:
        return pliant.read_animation(options.input, fps=options.fps)
    return content

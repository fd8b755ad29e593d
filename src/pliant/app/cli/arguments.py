"""What the commands share: a parser that complains in one line, numbers, points, and how an input is read."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn, get_args

import pliant
from pliant.app.cli.flags import word_of
from pliant.core.errors import InputError
from pliant.core.options import POINT, POSITIVE, Whole, suggestion
from pliant.io import ContentKind


class Parser(argparse.ArgumentParser):
    """A parser whose errors fit on one line."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As of argparse, but an unknown option is an error here, where all known ones can be compared with it."""
        tokens = list(args or [])
        for token in tokens[:1] if self._subparsers else tokens:  # what follows a command is the command's
            if token == "--":
                break
            name = token.partition("=")[0]
            if re.fullmatch(r"--[A-Za-z][\w-]*", name) and not any(known.startswith(name) for known in self._options):
                hint = suggestion(name, self._options)
                self.error(f"there is no option {name}{'; ' if hint else ''}{hint}")
        return super().parse_known_args(args, namespace)

    @property
    def _options(self) -> list[str]:
        return [name for name in self._option_string_actions if name.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise InputError(f"{message} (see: {self.prog} --help)")


@dataclass(frozen=True)
class Choices:
    """The words of a `Literal`, looked up where it is defined, and only when needed: that loads an engine."""

    module: str
    name: str

    def __iter__(self) -> Iterator[str]:
        return iter(get_args(getattr(importlib.import_module(self.module), self.name)))


def joined_negatives(tokens: list[str]) -> list[str]:
    """Join values that start with a minus to their option: ``--view -30,20`` becomes ``--view=-30,20``."""
    joined: list[str] = []
    for token in tokens:
        if re.match(r"-([\d.]|[xyz]$)", token) and joined and re.fullmatch(r"--[a-z][a-z-]*", joined[-1]):
            joined[-1] += f"={token}"
        else:
            joined.append(token)
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


positive = word_of(POSITIVE)
"""A number above 0."""
count = word_of(Whole(1))
"""A whole number from 1."""
point = word_of(replace(POINT, syntax="X,Y,Z such as 0,1.5,-2"))
"""Three numbers, ``X,Y,Z``."""


def vertex_point(text: str) -> tuple[int, list[float]]:
    """A vertex and three numbers, ``VERTEX:X,Y,Z``."""
    vertex, colon, rest = text.partition(":")
    if not colon or not vertex.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not VERTEX:X,Y,Z such as 12:0,1.5,-2')
    return int(vertex), point(rest)


def add_view(parser: Any, prefix: str = "", *, up: bool = True) -> None:
    """The options that say from where pictures are taken."""
    named = "front, side, top, three-quarter, or AZIMUTH,ELEVATION in degrees"
    parser.add_argument("--view", type=view, default="auto", help=prefix + named)
    axes = Choices("pliant.render.camera", "Up")
    chosen = f"{prefix}which axis points up: %(choices)s; auto: as the file says, or y"
    if up:
        parser.add_argument("--up", metavar="AXIS", default="auto", choices=axes, help=chosen)


def view(text: str) -> Any:
    """A view by name, or two angles."""
    if text in ("auto", "front", "side", "top", "three-quarter"):
        return text
    try:
        azimuth, elevation = (float(part) for part in text.split(","))
    except ValueError:
        names = "auto, front, side, top, three-quarter"
        raise argparse.ArgumentTypeError(f'"{text}" is not {names} or two angles such as 30,20') from None
    return azimuth, elevation


def read_input(options: argparse.Namespace, kind: ContentKind | None) -> Any:
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

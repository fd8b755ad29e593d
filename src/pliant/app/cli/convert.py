"""``pliant convert``: from any format to any other."""

from __future__ import annotations

import argparse
import warnings
from typing import Any, get_args

import pliant
from pliant.app.cli.arguments import add_command, add_input, read_input
from pliant.app.cli.targets import say_missing
from pliant.core.errors import PliantWarning
from pliant.core.terminal import say
from pliant.io import Kind


def add_commands(commands: Any) -> None:
    """Make them known."""
    _add_convert(commands)


def _add_convert(commands: Any) -> None:
    parser = add_command(commands, _convert, "convert", "from any format to any other that can hold it")
    add_input(parser)
    parser.add_argument("output", metavar="OUT", help="file; or, for a sequence of OBJ files, a folder")
    parser.add_argument(
        "--as", dest="kind", choices=get_args(Kind), help="what to take from the input (default: all that OUT holds)"
    )


def _convert(options: argparse.Namespace) -> int:
    """Read, and write by suffix. Polygons, vertex order, UVs, normals, materials and groups are kept."""
    from pliant.io import convertible_kind

    kind = options.kind
    if kind is None and not (options.mesh or options.base):
        kind = convertible_kind(options.input, options.output)
        _note_frames(options, kind)
    content = read_input(options, kind)
    say_missing(options.output)
    written = pliant.write(options.output, content)
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    say(f"{content!r} -> {written[0]}{more}")
    return 0


def _note_frames(options: argparse.Namespace, kind: Kind | None) -> None:
    """Say that what moves or comes in several shapes is written as one of them."""
    from pliant.io import KIND_NAMES, find, kinds_in

    richest = kinds_in(find(options.input, lambda name: True)[0])[0] if kind else kind
    if richest in ("animation", "shapes") and kind in ("mesh", "points"):
        words = f"{options.input}: of {KIND_NAMES[richest]} one shape is written; --as {richest} writes a file for each"
        warnings.warn(words, PliantWarning, stacklevel=2)

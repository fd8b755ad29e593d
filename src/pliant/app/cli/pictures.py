"""``pliant render`` and ``pliant demo``: what there is to look at."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pliant.app.cli.arguments import add_command, add_input, add_view, count, read_input
from pliant.app.cli.targets import say_missing
from pliant.core.errors import InputError
from pliant.core.progress import progress
from pliant.core.terminal import say


def add_commands(commands: Any) -> None:
    """Add the commands."""
    _add_demo(commands)
    _add_render(commands)


def _add_demo(commands: Any) -> None:
    parser = add_command(commands, _demo, "demo", "move the built-in shapes and show the result as a web page")
    parser.add_argument("-o", "--output", default="demo", help="folder to write to (default: demo)")
    parser.add_argument("--quick", action="store_true", help="smaller shapes, for a first look")
    parser.add_argument("--quiet", action="store_true", help="say nothing")


def _demo(options: argparse.Namespace) -> int:
    """Make clips of the built-in shapes, their pictures, and an index.html that shows them without a network."""
    from pliant.app.demo import make_demo

    say_missing(options.output)
    page = make_demo(Path(options.output), quick=options.quick, quiet=options.quiet)
    if not options.quiet:
        say(f"open {page}")
    return 0


def _add_render(commands: Any) -> None:
    parser = add_command(commands, _render, "render", "a picture, a contact sheet, or a moving one (.gif, .mp4)")
    add_input(parser)
    parser.add_argument("-o", "--output", required=True, help=".png or .jpg; .gif or .mp4 for a movie")
    parser.add_argument("--frames", type=count, help="how many to show (default: 8 of a clip, all shapes of a rig)")
    parser.add_argument("--frame", type=int, help="draw this frame alone, counted from 0")
    parser.add_argument("--turntable", action="store_true", help="turn the camera once around (.gif, .mp4)")
    add_view(parser)
    parser.add_argument("--size", default="", help="WIDTHxHEIGHT of the picture (of each cell on a contact sheet)")
    parser.add_argument("--edges", action="store_true", help="draw the polygons' edges")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument(
        "--measure", help="colour by edge, area, displacement, or a vertex attribute or group of the file"
    )


def _render(options: argparse.Namespace) -> int:
    """Draw without a display. One camera fits the whole clip; colours by measure come with a legend."""
    from pliant.app.drawing import draw_to_file

    content = read_input(options, None)
    say_missing(options.output)
    with progress("drawing", quiet=options.quiet) as show:
        draw_to_file(
            content,
            Path(options.output),
            frames=options.frames,
            frame=options.frame,
            turntable=options.turntable,
            view=options.view,
            up=options.up,
            size=_size(options.size),
            edges=options.edges,
            measure=options.measure,
            progress=show,
        )
    say(options.output)
    return 0


def _size(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InputError(f'--size is "{text}"; expected WIDTHxHEIGHT such as 960x720') from None
    return width, height

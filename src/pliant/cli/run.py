"""``pliant run``: what a scene file says, of any engine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from pliant.cli import blend, simulate, transfer
from pliant.cli.arguments import add_command
from pliant.cli.results import add_told
from pliant.cli.targets import Located

MAKERS: dict[str, Callable[..., int]] = {
    "blend": blend.made,
    "cage": transfer.made,
    "transfer": transfer.made,
    "elastic": simulate.made,
}
"""By engine: what reads a scene, runs it, writes its clip and tells of it."""


def add_commands(commands: Any) -> None:
    """Make it known."""
    parser = add_command(commands, _run, "run", "do what a scene file says")
    engines = " or ".join(f'"{engine}"' for engine in MAKERS)
    parser.add_argument("input", metavar="SCENE", help=f"a scene file (.toml): engine = {engines}")
    words = "clip: .glb .usdc .pc2 .npz, or a folder (default: as the scene says, or else as it is called, with .glb)"
    parser.add_argument("-o", "--output", metavar="OUT", help=words)
    add_told(parser, "what was made, frame by frame, with curves")


def _run(options: argparse.Namespace) -> int:
    """Do what a scene file says: its engine, its files, its options. Write the clip, and the report if there is to be
    one, to where it says, or to where you say.
    """
    from pliant.scene import engine_of, read_scene

    maker = MAKERS[engine_of(options.input)]
    options.output, options.report, located = destinations(options.input, options.output, options.report)
    return maker(options, lambda: read_scene(options.input), located=located)


def destinations(file: str, output: str | None = None, report: str | None = None) -> tuple[str, str | None, Located]:
    """The clip and the report of a scene: those given, or else those that it says; and where these names come from."""
    from pliant.scene import output_of

    said = output_of(file)
    given = {"file": output, "report": report}
    clip = said.file or said.beside if output is None else output
    said.check_not_read(clip)
    return clip, report or said.report, lambda key: said.about(key) if given[key] is None else nullcontext()

"""``pliant run``: what a scene file says, of any engine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pliant.cli import blend, simulate, transfer
from pliant.cli.arguments import add_command
from pliant.cli.results import add_told
from pliant.cli.targets import check_clip, check_page
from pliant.errors import FileError

if TYPE_CHECKING:
    from pliant.scene import Output

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
    from pliant.scene import engine_of, output_of, read_scene

    maker = MAKERS[engine_of(options.input)]
    said = output_of(options.input)
    if options.output is None:
        options.output = checked(said, "file") or said.beside
    said.check_not_read(options.output)
    if options.report is None:
        options.report = checked(said, "report")
    return maker(options, lambda: read_scene(options.input))


def checked(said: Output, key: Literal["file", "report"]) -> str | None:
    """The name that a scene says, if it is one that can be written to."""
    name = said.file if key == "file" else said.report
    if name is not None:
        try:
            check_clip(name) if key == "file" else check_page(name)
        except FileError as error:
            raise said.error(key, error.problem) from None
    return name

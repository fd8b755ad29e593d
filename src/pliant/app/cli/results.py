"""What commands that make a clip have in common: what is told of it, and the exit code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pliant.app.cli.arguments import add_view
from pliant.core.terminal import complain, say, say_json


def add_summary_options(parser: argparse.ArgumentParser, report: str, *, up: bool = True) -> None:
    """The options that say what is told. up: whether which axis points up is one of them."""
    group = parser.add_argument_group("what is told")
    group.add_argument("--report", metavar="FILE", help=f"a web page: {report}")
    add_view(group, "of the report: ", up=up)
    group.add_argument("--quiet", action="store_true", help="say nothing but errors and notes")
    group.add_argument("--json", action="store_true", help="print all figures, frame by frame, for scripts")


def print_summary(options: argparse.Namespace, run: Any, written: list[Path]) -> int:
    """Say what was made; the exit code."""
    if options.json:
        files = {"output": [str(path) for path in written], "report": options.report}
        say_json({**files, **run.to_dict()})
    elif not options.quiet:
        more = f" and {len(written) - 1} more" if len(written) > 1 else ""
        say(*run.lines(), f"{run.clip!r} -> {written[0]}{more}")
        if options.report:
            say(f"open {options.report}")
    if run.failure:
        complain(f"pliant: {run.failure}; what was reached is in {written[0]}")
    return 1 if run.failure else 0

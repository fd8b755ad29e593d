"""``pliant completion``: what a shell needs to complete commands, options and file names."""

from __future__ import annotations

import argparse
from typing import Any

from pliant.app.cli.arguments import add_command
from pliant.core.errors import MissingExtraError
from pliant.core.terminal import say

SHELLS = ("bash", "zsh", "tcsh")


def add_commands(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, _complete, "completion", "print what your shell needs to complete what you type")
    parser.add_argument("shell", choices=SHELLS, help='such as: eval "$(pliant completion bash)"')


def _complete(options: argparse.Namespace) -> int:
    """Print a script for a shell. For bash, put ``eval "$(pliant completion bash)"`` into ~/.bashrc."""
    try:
        import shtab
    except ImportError:
        raise MissingExtraError("completion", "completion") from None
    from pliant.app.cli import parser_of_all

    say(*shtab.complete(parser_of_all(), options.shell).splitlines())
    return 0

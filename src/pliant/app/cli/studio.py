"""``pliant studio``: the engines in a browser."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pliant.app.cli.arguments import add_command, count
from pliant.core.terminal import finish, say


def add_commands(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, _studio, "studio", "play with the engines in a browser, with the mouse")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="a scene (.toml), shapes of one topology, a rig, or a mesh; with none, built-in shapes",
    )
    parser.add_argument(
        "--folder",
        action="append",
        default=[],
        help="what the page may read and write, and nothing else; the first is where it saves; may be given again "
        "(default: the files' folders, or the one you are in)",
    )
    help_text = "where it listens; 0: any that is free (default: 8080, or the next free)"
    parser.add_argument("--port", type=_port, default=8080, help=help_text)
    parser.add_argument("--largest-upload", metavar="MIB", type=count, default=512, help="in MiB (default: 512)")
    help_text = "answer other users of this machine, too: the address has no token"
    parser.add_argument("--no-token", action="store_false", dest="token", help=help_text)
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")


def _port(text: str) -> int:
    """A whole number from 0 to 65535."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port; expected a whole number from 0 to 65535')
    return int(text)


def _studio(options: argparse.Namespace) -> int:
    """Open a web page where all engines can be used with the mouse. It listens on this machine's loopback address
    alone, so no other machine can reach it.
    """
    from pliant.app.studio import Studio

    studio = Studio(
        options.files,
        folders=options.folder,
        port=options.port,
        largest_upload=options.largest_upload << 20,
        token=options.token,
    )
    folders = ", ".join(str(folder) for folder in studio.folders.given)
    say(f"pliant studio: {studio.address}")
    say("It listens on the loopback address only: no other machine can reach it.")
    say(f"The page can read and write in {folders} and nowhere else. Stop it with Ctrl+C.")
    finish()
    if not options.no_browser and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(studio.invitation())
    try:
        studio.wait()
    except KeyboardInterrupt:
        say("", "stopped")
    finally:
        studio.close()
    return 0

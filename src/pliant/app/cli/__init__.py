"""The ``pliant`` command: parse, call, show progress, write. One module a family of commands.

Exit codes: 0 done; 1 a computation did not converge (what was reached is written, and said); 2 bad input or usage, with
one line on stderr that names it; 128 and its number where a signal ended it (130: Ctrl+C). Set ``PLIANT_DEBUG=1`` to
see where an error came from.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from pliant import __version__
from pliant.app.cli.stopping import clean_up_when_stopped, interruption
from pliant.core import terminal
from pliant.core.errors import PliantError, PliantWarning

if TYPE_CHECKING:
    import argparse


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one command and exit with its code."""
    terminal.prepare()
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", PliantWarning)
    clean_up_when_stopped()
    code = _code_of(lambda: _run(sys.argv[1:] if arguments is None else arguments))
    sys.exit(_code_of(terminal.finish) or code)


def _run(tokens: list[str]) -> int:
    if tokens == ["--version"]:  # at once: nothing else is imported
        terminal.say(f"pliant {__version__}")
        return 0
    with _leaving_at_once():
        from pliant.app.cli.arguments import joined_negatives

        parser = parser_of_all()
    options = parser.parse_args(joined_negatives(tokens) or ["--help"])
    return int(options.run(options))


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """While the commands are imported, an interrupt ends the process: there is nothing to clean up yet."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: Any) -> None:
        terminal.complain("pliant: interrupted")
        os._exit(128 + signal.SIGINT)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _code_of(work: Callable[[], int | None]) -> int:
    """The exit code of some work, with one line on stderr if it fails."""
    try:
        return work() or 0
    except SystemExit as leaving:  # how --help and --version end
        return leaving.code if isinstance(leaving.code, int) else 0
    except PliantError as error:
        return _fail(error, str(error), 2)
    except OSError as error:
        return _fail(error, f"cannot write to the terminal or pipe ({(error.strerror or str(error)).lower()})", 2)
    except MemoryError as error:
        return _fail(error, "there is not enough memory for this", 2)
    except (Exception, KeyboardInterrupt) as error:
        if code := interruption(error):
            return _fail(error, "interrupted; nothing was left half-written", code)
        what = f"{type(error).__name__}: {error}"  # a fault of ours: still one line, and a way to see more
        return _fail(error, f"internal error, please report it ({what}); PLIANT_DEBUG=1 shows where", 2)


def _fail(error: BaseException, message: str, code: int) -> int:
    if os.environ.get("PLIANT_DEBUG"):
        raise error
    terminal.refuse(f"pliant: {' '.join(message.split())}")
    return code


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Each note once: the frames of a sequence have the same things to say."""
    if issubclass(category, PliantWarning):
        terminal.note(f"pliant: note: {message}")


def parser_of_all() -> argparse.ArgumentParser:
    """Of every command."""
    from pliant.app.cli import (
        batch,
        completion,
        convert,
        engines,
        fit,
        inspect,
        pictures,
        sample,
        scene,
        skeleton,
        studio,
    )
    from pliant.app.cli.arguments import Parser

    parser = Parser(prog="pliant", description="Shapes that deform the way bodies do.")
    parser.add_argument("--version", action="version", version=f"pliant {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for family in (pictures, engines, fit, scene, batch, sample, skeleton, studio, inspect, convert, completion):
        family.add_commands(commands)
    return parser

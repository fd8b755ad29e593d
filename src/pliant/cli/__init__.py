"""The ``pliant`` command: parse, call, show progress, write. One module a family of commands.

Exit codes: 0 done; 1 a computation did not converge (what was reached is written, and said); 2 bad input or usage, with
one line on stderr that names it; 128 and its number where a signal ended it (130: Ctrl+C). Set ``PLIANT_DEBUG=1`` to
see where an error came from.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from typing import Any

import pliant
from pliant.cli import blend, cage, convert, inspect, pictures, run, scene, simulate, skeleton, studio, transfer
from pliant.cli.arguments import Parser, joined_negatives
from pliant.cli.stopping import clean_up_when_stopped, exit_code
from pliant.errors import PliantError, PliantWarning

INTERRUPTED = "interrupted; nothing was left half-written"


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its code."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", PliantWarning)
    clean_up_when_stopped()
    for stream in (sys.stdout, sys.stderr):  # a terminal without × or ° gets ? instead of an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        words = sys.argv[1:] if arguments is None else arguments
        options = _parser().parse_args(joined_negatives(words) or ["--help"])
        code = options.run(options)
        sys.stdout.flush()
    except PliantError as error:
        code = _fail(error, str(error), 2)
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        code = _fail(error, f"cannot write to the terminal or pipe ({(error.strerror or str(error)).lower()})", 2)
    except KeyboardInterrupt as error:
        code = _fail(error, INTERRUPTED, exit_code(error))
    except MemoryError as error:
        code = _fail(error, "there is not enough memory for this", 2)
    except SystemError as error:  # how Python reports an interrupt inside compiled code
        cause = error.__cause__ or error.__context__
        interrupted = isinstance(cause, KeyboardInterrupt)
        what = INTERRUPTED if interrupted else f"internal error ({error})"
        code = _fail(error, what, exit_code(cause) if interrupted else 2)
    except Exception as error:  # a fault of ours: still one line, and a way to see more
        what = f"{type(error).__name__}: {error}".replace("\n", " ")
        code = _fail(error, f"internal error, please report it ({what}); PLIANT_DEBUG=1 shows where", 2)
    sys.exit(code)


def _fail(error: BaseException, message: str, code: int) -> int:
    if os.environ.get("PLIANT_DEBUG"):
        raise error
    print(f"pliant: {' '.join(message.split())}", file=sys.stderr)
    return code


_said: set[str] = set()


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Each note once: the frames of a sequence have the same things to say."""
    if issubclass(category, PliantWarning) and str(message) not in _said:
        _said.add(str(message))
        print(f"pliant: note: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="pliant", description="Shapes that deform the way bodies do.")
    parser.add_argument("--version", action="version", version=f"pliant {pliant.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for family in (pictures, blend, transfer, simulate, run, scene, cage, skeleton, studio, inspect, convert):
        family.add_commands(commands)
    return parser

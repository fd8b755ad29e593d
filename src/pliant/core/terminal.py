"""Printing for all commands: no name from a file or a scene can send control sequences to the terminal.

A line is printed as one line. Characters that a terminal obeys, or that hide or reorder others, are shown as escapes;
so are lone surrogates, which file names may have and no encoding can represent. A closed pipe is no error: what is
printed to it is discarded, and the exit code stays that of the work.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

_ACTIVE = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with control characters, marks of direction and halves of characters as escapes such as ``\\x1b``."""
    return _ACTIVE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


_notes: dict[str, bool] = {}
"""Each note, and whether it was printed."""


def say(*lines: str) -> None:
    """Print lines to the standard output, after notes that wait."""
    show_notes()
    _print(sys.stdout, lines)


def complain(*lines: str) -> None:
    """Print lines to the standard error, after notes that wait; errors in doing so are ignored."""
    show_notes()
    _complain(lines)


def note(line: str) -> None:
    """Print a line to the standard error, once, before what is printed next, unless that is a refusal."""
    _notes.setdefault(line, False)


def show_notes() -> None:
    """Print the notes that wait; other threads may note more."""
    waiting = [line for line, printed in _notes.copy().items() if not printed]
    _notes.update(dict.fromkeys(waiting, True))
    if waiting:
        _complain(waiting)


def refuse(line: str) -> None:
    """Print a line to the standard error, without the notes that wait."""
    _notes.clear()
    _complain([line])


def _complain(lines: Sequence[str]) -> None:
    with suppress(OSError):
        _print(sys.stderr, lines)


def say_json(value: Any) -> None:
    """Print a value as JSON: with escapes for all but ASCII, and an error for NaN and infinity."""
    text = json.dumps(value, indent=2, allow_nan=False).replace("\x7f", "\\u007f")
    say(*text.split("\n"))


def prepare() -> None:
    """Make the standard streams safe to print to, whatever they are connected to."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Left closed, it would be given to the next file opened, and what libraries print would go in there.
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):  # a terminal without × or ° gets ? instead of an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def finish() -> None:
    """Flush the buffers, so that this does not fail when Python exits."""
    complain()
    _print(sys.stdout, (), flush=True)


def _print(stream: TextIO | None, lines: Sequence[str], *, flush: bool = False) -> None:
    if stream is None:
        return
    try:
        stream.write("".join(f"{visible(line)}\n" for line in lines))
        if flush or stream is sys.stderr:
            stream.flush()
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        _forget(stream)
    except OSError:
        _forget(stream)
        raise


def _forget(stream: TextIO) -> None:
    """Let all that is printed from now on, and at the end, go nowhere."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def shell_command(*tokens: str | Path) -> str:
    """A command to be pasted into this system's shell: spaces and the like are quoted, and no path is an option."""
    join = subprocess.list2cmdline if os.name == "nt" else shlex.join
    return join([f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in tokens])

"""What engines say of Python's arguments, in the words of scene files and of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pliant.errors import FileError, InputError

WORDS = {
    'give outside="allow"': ('set outside = "allow"', "give --outside allow"),
    "give fps=... to resample them, or frames=... to retime them, to one count": (
        "set fps to resample them, or frames to retime them, to one count",
        "give --fps to resample them, or --frames to retime them, to one count",
    ),
    "give controls as a list of Control": ("write [[controls]]", "write a scene file with [[controls]]"),
    "give a list of Control instead": ("write [[controls]] instead", "write a scene file with [[controls]] instead"),
    "give follow=[Follow(at, track)] for a point that goes along with a source, or held=[vertex] for one that stays": (
        "add [[follow]] for a point that goes along with a source, or held = [vertex] for one that stays",
        "write a scene file with [[follow]] or held",
    ),
    'controls="auto" takes one Animation or Motion': ('controls = "auto" takes one source', "--auto takes one source"),
}
"""A phrase of Python's: in a scene file's words, and in the command line's."""


def worded(message: str, where: Literal["scene", "command"]) -> str:
    """The same message for who wrote a scene file, or a command."""
    for python, (scene, command) in WORDS.items():
        message = message.replace(python, scene if where == "scene" else command)
    return message


@contextmanager
def about(file: str) -> Iterator[None]:
    """Errors of what was read from a file name it; an empty name is of what was not."""
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        raise (FileError(file, worded(str(error), "scene")) if file else error) from None

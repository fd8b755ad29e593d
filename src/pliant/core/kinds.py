"""Kinds of values that options and scene files have.

A `Kind` of value validates a value, parses an argument of the command line, and describes what it expects.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol, get_args

KeyPath = tuple[int | str, ...]
"""Keys and positions that lead from a whole document to a value."""


class Misfit(Exception):  # noqa: N818 (becomes an InputError, with what it is about, wherever it is caught)
    """A value that is not of the kind that was expected, and where in what was read it is."""

    def __init__(self, problem: str, path: KeyPath = ()) -> None:
        self.problem, self.path = problem, path
        super().__init__(problem)


class Kind(Protocol):
    """A kind of value."""

    @property
    def expected(self) -> str:
        """What is expected."""
        ...

    def takes(self, value: Any) -> bool:
        """Whether a value is of this kind at all, whatever else may be wrong with it."""
        ...

    def read(self, value: Any, path: KeyPath = ()) -> Any:
        """The value, checked; `value` is one that this kind takes."""
        ...


class ParsedKind(Kind, Protocol):
    """A kind whose values can be written as one argument of a command line."""

    @property
    def syntax(self) -> str:
        """What is expected of the argument."""
        ...

    def parse(self, word: str) -> Any:
        """The value of an argument, not checked yet; raises ValueError if it has none."""
        ...


def read_value(kind: Kind, value: Any, path: KeyPath = ()) -> Any:
    """A value of a kind; raises `Misfit` with what was expected."""
    if not kind.takes(value):
        raise Misfit(f"is {shown(value)}; expected {kind.expected}", path)
    return kind.read(value, path)


def parse_word(kind: ParsedKind, word: str) -> Any:
    """The checked value of an argument of the command line; raises `Misfit`."""
    try:
        return read_value(kind, kind.parse(word))
    except (ValueError, Misfit):
        raise Misfit(f'"{word}" is not {kind.syntax}') from None


def shown(value: Any) -> str:
    """A value as a scene file may have it, short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 50 else f"{text[:47]}..."


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question that names the closest of the known names; empty if none is close."""
    near = difflib.get_close_matches(name, list(known), 1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else ""


def closest(name: str, known: Mapping[str, Any] | list[str]) -> str:
    """The suggestion for a name that is not known, or a list of all that are."""
    return suggestion(name, known) or f"expected one of {', '.join(known)}"


def key_name(path: KeyPath) -> str:
    """A path as one would write it: ``controls[2].track``."""
    parts = [f"[{key}]" if isinstance(key, int) else f".{_quoted(key)}" for key in path]
    return "".join(parts).removeprefix(".")


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


# Kinds


@dataclass(frozen=True)
class Flag:
    """Yes or no."""

    expected: str = "true or false"
    syntax: str = expected

    def takes(self, value: Any) -> bool:
        return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # NumPy's

    def read(self, value: Any, path: KeyPath = ()) -> bool:
        return bool(value)

    def parse(self, word: str) -> bool:
        if word not in ("true", "false"):
            raise ValueError(word)
        return word == "true"


@dataclass(frozen=True)
class Choice:
    """One of a few names."""

    choices: tuple[str, ...]

    @classmethod
    def of(cls, literal: Any) -> Choice:
        """The names of a `Literal`."""
        return cls(get_args(literal))

    @property
    def expected(self) -> str:
        return " or ".join(f'"{word}"' for word in self.choices)

    @property
    def syntax(self) -> str:
        return " or ".join(self.choices)

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, value: Any, path: KeyPath = ()) -> str:
        if value not in self.choices:
            hint = suggestion(value, self.choices) or f"expected {self.expected}"
            raise Misfit(f"is {shown(value)}; {hint}", path)
        return str(value)

    def parse(self, word: str) -> str:
        if word not in self.choices:
            raise ValueError(word)
        return word


@dataclass(frozen=True)
class Text:
    """Words."""

    expected: str = "a text in quotes"
    syntax: str = "a text"
    empty: bool = False
    """Whether it may be empty."""
    pattern: str = ""
    """That it has to match as a whole; empty: any text does."""

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, value: Any, path: KeyPath = ()) -> str:
        if not self.empty and not value.strip():
            raise Misfit(f"is empty; expected {self.expected}", path)
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise Misfit(f"is {shown(value)}; expected {self.expected}", path)
        return str(value)

    def parse(self, word: str) -> str:
        if self.pattern and not re.fullmatch(self.pattern, word):
            raise ValueError(word)
        return word


NUMBER_LIMIT = 1e12
"""Numbers are smaller than this: the squares and cubes of what is larger leave the range of floating point."""


@dataclass(frozen=True)
class Number:
    """A finite number in a range."""

    above: float = -NUMBER_LIMIT
    below: float = NUMBER_LIMIT
    expected: str = "a number"

    @property
    def syntax(self) -> str:
        return self.expected

    def takes(self, value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool)

    def read(self, value: Any, path: KeyPath = ()) -> float:
        if not self.above < value < self.below:
            most = max(abs(self.above), abs(self.below))
            limit = f", below {most:g} in size" if abs(value) >= most >= NUMBER_LIMIT else ""
            raise Misfit(f"is {shown(value)}; expected {self.expected}{limit}", path)
        return float(value)

    def parse(self, word: str) -> float:
        """A number or a fraction, such as 1/60."""
        above, fraction, below = word.partition("/")
        if fraction and float(below) == 0:
            raise ValueError(word)
        return float(above) / (float(below) if fraction else 1)


@dataclass(frozen=True)
class Share(Number):
    """A number that may be typed in percent."""

    def parse(self, word: str) -> float:
        return float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)


POSITIVE = Number(0, expected="a positive number")
NOT_NEGATIVE = Number(-1e-300, expected="a number, 0 or more")


@dataclass(frozen=True)
class Whole:
    """A whole number in a range."""

    least: int = 0
    most: int = 2**31

    @property
    def expected(self) -> str:
        top = "" if self.most == 2**31 else f" to {self.most}"
        return f"a whole number from {self.least}{top}"

    @property
    def syntax(self) -> str:
        return self.expected

    def takes(self, value: Any) -> bool:
        return not isinstance(value, bool) and (
            isinstance(value, Integral) or (isinstance(value, float) and value % 1 == 0)
        )

    def read(self, value: Any, path: KeyPath = ()) -> int:
        if not self.least <= value <= self.most:
            raise Misfit(f"is {shown(value)}; expected {self.expected}", path)
        return int(value)

    def parse(self, word: str) -> int:
        return int(word)


@dataclass(frozen=True)
class Row:
    """So many numbers, or rows of such."""

    shape: tuple[int, ...]
    expected: str
    number: Number = Number(expected="a finite number")
    nonzero: bool = False
    """Whether one or more of the numbers are not 0."""
    syntax: str = "X,Y,Z"

    @property
    def inner(self) -> Number | Row:
        """What each entry is."""
        return Row(self.shape[1:], self.expected, self.number) if len(self.shape) > 1 else self.number

    def takes(self, value: Any) -> bool:
        if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__"):
            return False
        return len(value) == self.shape[0] and all(map(self.inner.takes, value))

    def read(self, value: Any, path: KeyPath = ()) -> list[Any]:
        if self.nonzero and not any(value):
            raise Misfit(f"is {shown(value)}; expected {self.expected}, not all of them 0", path)
        return [self.inner.read(entry, (*path, k)) for k, entry in enumerate(value)]

    def parse(self, word: str) -> list[float]:
        return [float(part) for part in word.split(",")]


POINT = Row((3,), "three coordinates, [x, y, z]")
DIRECTION = replace(POINT, nonzero=True)


@dataclass(frozen=True)
class Either:
    """One of several kinds; the first that takes a value reads it."""

    kinds: tuple[Any, ...]

    @property
    def expected(self) -> str:
        return ", or ".join(kind.expected for kind in self.kinds)

    @property
    def syntax(self) -> str:
        return " or ".join(kind.syntax for kind in self.kinds)

    def takes(self, value: Any) -> bool:
        return any(kind.takes(value) for kind in self.kinds)

    def read(self, value: Any, path: KeyPath = ()) -> Any:
        return next(kind for kind in self.kinds if kind.takes(value)).read(value, path)

    def parse(self, word: str) -> Any:
        for kind in self.kinds:
            try:
                return kind.parse(word)
            except ValueError:
                continue
        raise ValueError(word)

"""Options of the engines: each is declared once, and all that shows, reads or checks it is derived from that.

    @dataclass(frozen=True)
    class StirOptions(Options):
        speed: float = option(2.0, POSITIVE, "how quickly to stir", "turns a second")

The defaults of Python's keywords are ``StirOptions.speed``; an instance is checked when it is made. Flags of the
command line, keys of scene files, with them the JSON schema and the reference in the docs, and the studio's widgets
take default, range, unit and help from ``StirOptions.about(name)``.

A kind of value knows which values it takes, checks one, parses a word of the command line, and says what it expects.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Protocol, get_args

from pliant.core.errors import InputError

Path = tuple[int | str, ...]
"""Keys and positions that lead from a whole document to a value."""


class Misfit(Exception):  # noqa: N818 (becomes an InputError, with what it is about, wherever it is caught)
    """A value that is not of the kind that was expected, and where in what was read it is."""

    def __init__(self, problem: str, path: Path = ()) -> None:
        self.problem, self.path = problem, path
        super().__init__(problem)


class Kind(Protocol):
    """A kind of value."""

    @property
    def words(self) -> str:
        """What is expected."""
        ...

    def takes(self, value: Any) -> bool:
        """Whether a value is of this kind at all, whatever else may be wrong with it."""
        ...

    def read(self, value: Any, path: Path = ()) -> Any:
        """The value, checked; `value` is one that this kind takes."""
        ...


class ParsedKind(Kind, Protocol):
    """A kind whose values can be written as one word of a command line."""

    @property
    def syntax(self) -> str:
        """What is expected of the word."""
        ...

    def parse(self, word: str) -> Any:
        """The value that a word stands for, not checked yet; raises ValueError if it cannot stand for one."""
        ...


def read_value(kind: Kind, value: Any, path: Path = ()) -> Any:
    """A value of a kind; raises `Misfit` with what was expected."""
    if not kind.takes(value):
        raise Misfit(f"is {shown(value)}; expected {kind.words}", path)
    return kind.read(value, path)


def parse_word(kind: ParsedKind, word: str) -> Any:
    """The checked value of a word of the command line; raises `Misfit`."""
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


def closest(name: str, known: Mapping[str, Any] | list[str]) -> str:
    """Words that name what may have been meant."""
    near = difflib.get_close_matches(name, list(known), 1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else f"expected one of {', '.join(known)}"


def key_name(path: Path) -> str:
    """A path as one would write it: ``controls[2].track``."""
    words = [f"[{key}]" if isinstance(key, int) else f".{_quoted(key)}" for key in path]
    return "".join(words).removeprefix(".")


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


# Kinds


@dataclass(frozen=True)
class Flag:
    """Yes or no."""

    words: str = "true or false"
    syntax: str = words

    def takes(self, value: Any) -> bool:
        return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # NumPy's

    def read(self, value: Any, path: Path = ()) -> bool:
        return bool(value)

    def parse(self, word: str) -> bool:
        if word not in ("true", "false"):
            raise ValueError(word)
        return word == "true"


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    choices: tuple[str, ...]

    @classmethod
    def of(cls, literal: Any) -> Choice:
        """The words of a `Literal`."""
        return cls(get_args(literal))

    @property
    def words(self) -> str:
        return " or ".join(f'"{word}"' for word in self.choices)

    @property
    def syntax(self) -> str:
        return " or ".join(self.choices)

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, value: Any, path: Path = ()) -> str:
        if value not in self.choices:
            hint = closest(value, list(self.choices))
            raise Misfit(f"is {shown(value)}; {hint if 'mean' in hint else f'expected {self.words}'}", path)
        return str(value)

    def parse(self, word: str) -> str:
        if word not in self.choices:
            raise ValueError(word)
        return word


@dataclass(frozen=True)
class Text:
    """Words."""

    words: str = "a text in quotes"
    syntax: str = "a text"
    empty: bool = False
    """Whether it may be empty."""

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, value: Any, path: Path = ()) -> str:
        if not self.empty and not value.strip():
            raise Misfit(f"is empty; expected {self.words}", path)
        return str(value)

    def parse(self, word: str) -> str:
        return word


LARGEST = 1e12
"""Numbers are smaller than this: the squares and cubes of what is larger leave the range of floating point."""


@dataclass(frozen=True)
class Number:
    """A finite number in a range."""

    above: float = -LARGEST
    below: float = LARGEST
    words: str = "a number"

    @property
    def syntax(self) -> str:
        return self.words

    def takes(self, value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool)

    def read(self, value: Any, path: Path = ()) -> float:
        if not self.above < value < self.below:
            limit = f", below {LARGEST:g} in size" if abs(value) >= LARGEST else ""
            raise Misfit(f"is {shown(value)}; expected {self.words}{limit}", path)
        return float(value)

    def parse(self, word: str) -> float:
        return float(word)


POSITIVE = Number(0, words="a positive number")
NOT_NEGATIVE = Number(-1e-300, words="a number, 0 or more")


@dataclass(frozen=True)
class Whole:
    """A whole number in a range."""

    least: int = 0
    most: int = 2**31

    @property
    def words(self) -> str:
        top = "" if self.most == 2**31 else f" to {self.most}"
        return f"a whole number from {self.least}{top}"

    @property
    def syntax(self) -> str:
        return self.words

    def takes(self, value: Any) -> bool:
        return not isinstance(value, bool) and (
            isinstance(value, Integral) or (isinstance(value, float) and value % 1 == 0)
        )

    def read(self, value: Any, path: Path = ()) -> int:
        if not self.least <= value <= self.most:
            raise Misfit(f"is {shown(value)}; expected {self.words}", path)
        return int(value)

    def parse(self, word: str) -> int:
        return int(word)


@dataclass(frozen=True)
class Row:
    """So many numbers, or rows of such."""

    shape: tuple[int, ...]
    words: str
    number: Number = Number(words="a finite number")
    nonzero: bool = False
    """Whether one or more of the numbers are not 0."""
    syntax: str = "X,Y,Z"

    @property
    def inner(self) -> Number | Row:
        """What each entry is."""
        return Row(self.shape[1:], self.words, self.number) if len(self.shape) > 1 else self.number

    def takes(self, value: Any) -> bool:
        if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__"):
            return False
        return len(value) == self.shape[0] and all(map(self.inner.takes, value))

    def read(self, value: Any, path: Path = ()) -> list[Any]:
        if self.nonzero and not any(value):
            raise Misfit(f"is {shown(value)}; expected {self.words}, not all of them 0", path)
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
    def words(self) -> str:
        return ", or ".join(kind.words for kind in self.kinds)

    @property
    def syntax(self) -> str:
        return " or ".join(kind.syntax for kind in self.kinds)

    def takes(self, value: Any) -> bool:
        return any(kind.takes(value) for kind in self.kinds)

    def read(self, value: Any, path: Path = ()) -> Any:
        return next(kind for kind in self.kinds if kind.takes(value)).read(value, path)

    def parse(self, word: str) -> Any:
        for kind in self.kinds:
            try:
                return kind.parse(word)
            except ValueError:
                continue
        raise ValueError(word)


# Options


@dataclass(frozen=True)
class Option:
    """What there is to know of an option."""

    name: str
    default: Any
    kind: Any
    help: str
    """In one line, without the default."""
    unit: str = ""
    default_words: str = ""
    """What is shown of the default, where the value does not say it."""

    @property
    def flag(self) -> str:
        """On the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def meaning(self) -> str:
        """Help, unit and default."""
        default = self.default_words or (
            "" if self.default is None or self.default is False else _default(self.default)
        )
        unit = f", in {self.unit}" if self.unit else ""
        return f"{self.help}{unit}" + (f" (default: {default})" if default else "")

    def checked(self, value: Any) -> Any:
        """A value, or an InputError that names the option; None where that is the default."""
        if value is None and self.default is None:
            return None
        try:
            return read_value(self.kind, value)
        except Misfit:
            given = f'"{value}"' if isinstance(value, str) else f"{value!r:.40}"
            raise InputError(f"{self.name} is {given}; expected {self.kind.words}", argument=self.name) from None


def _default(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def option(default: Any, kind: Kind, help: str, unit: str = "", *, default_words: str = "") -> Any:
    """A field of `Options`."""
    return field(default=default, metadata={"kind": kind, "help": help, "unit": unit, "default_words": default_words})


class Options:
    """Base of frozen dataclasses whose fields are made by `option`: an instance has checked values."""

    def __post_init__(self) -> None:
        for one in self.all():
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))

    @classmethod
    def all(cls) -> Iterator[Option]:
        """Every option, in order."""
        for each in fields(cls):  # type: ignore[arg-type]
            if "kind" in each.metadata:
                yield Option(each.name, each.default, **each.metadata)

    @classmethod
    def about(cls, name: str) -> Option:
        """What there is to know of one of them."""
        return next(one for one in cls.all() if one.name == name)

    @classmethod
    def check(cls, **given: Any) -> dict[str, Any]:
        """The values of some of them, checked."""
        return {name: cls.about(name).checked(value) for name, value in given.items()}


Conflict = tuple[str, str]
"""An option, and why it cannot be used beside the others that are given."""


def refuse(conflicts: Iterator[Conflict] | Sequence[Conflict]) -> None:
    """Raise an InputError about the first of some conflicts."""
    for name, reason in conflicts:
        raise InputError(f"{name} cannot be used here: {reason}; leave it out", argument=name)

"""What a scene file may say: kinds of values, and tables of keys, each with its meaning.

A kind knows which values it takes, checks one, and says in words what it expects. A `Record` is a table whose keys are
declared; a key that is not gets an error that names the closest one. What is declared here is also what the reference
in the docs lists (`reference`), so the two cannot part.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pliant.scene.located_toml import Path, TomlText, key_name


class Kind(Protocol):
    """A kind of value."""

    @property
    def words(self) -> str:
        """What is expected."""
        ...

    def takes(self, value: Any) -> bool:
        """Whether a value is of this kind at all, whatever else may be wrong with it."""
        ...

    def read(self, text: TomlText, value: Any, path: Path) -> Any:
        """The value, checked; `value` is one that this kind takes."""
        ...


def read_as(kind: Kind, text: TomlText, value: Any, path: Path) -> Any:
    """A value of a kind, or an error that says what was expected."""
    if not kind.takes(value):
        raise text.error(f"is {shown(value)}; expected {kind.words}", path)
    return kind.read(text, value, path)


def shown(value: Any) -> str:
    """A value as the file may have it, short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    told = f'"{value}"' if isinstance(value, str) else str(value)
    return told if len(told) <= 50 else f"{told[:47]}..."


def closest(name: str, known: Mapping[str, Any] | list[str]) -> str:
    """Words that name what may have been meant."""
    near = difflib.get_close_matches(name, list(known), 1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else f"expected one of {', '.join(known)}"


@dataclass(frozen=True)
class Text:
    """Words."""

    words: str = "a text in quotes"

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, text: TomlText, value: Any, path: Path) -> str:
        if not value.strip():
            raise text.error(f"is empty; expected {self.words}", path)
        return str(value)


def _never(text: str) -> bool:
    return False


@dataclass(frozen=True)
class FileName(Text):
    """The name of a file to read, or of many: a folder, a glob, an archive or what is in one."""

    words: str = "the name of a file, from the scene's folder"
    not_for: Callable[[str], bool] = _never
    """Tells texts that mean something else, such as sphere:0,0,0,1."""
    or_name: bool = False
    """Whether it is the name of something else if there is no such file."""


@dataclass(frozen=True)
class Flag:
    """Yes or no."""

    words: str = "true or false"

    def takes(self, value: Any) -> bool:
        return isinstance(value, bool)

    def read(self, text: TomlText, value: Any, path: Path) -> bool:
        return bool(value)


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:
        return " or ".join(f'"{word}"' for word in self.choices)

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, text: TomlText, value: Any, path: Path) -> str:
        if value not in self.choices:
            hint = closest(value, list(self.choices))
            raise text.error(f"is {shown(value)}; {hint if 'mean' in hint else f'expected {self.words}'}", path)
        return str(value)


LARGEST = 1e12
"""Numbers are smaller than this: the squares and cubes of what is larger leave the range of floating point."""


@dataclass(frozen=True)
class Number:
    """A finite number in a range."""

    above: float = -LARGEST
    below: float = LARGEST
    words: str = "a number"

    def takes(self, value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def read(self, text: TomlText, value: Any, path: Path) -> float:
        if not self.above < value < self.below:
            limit = f", below {LARGEST:g} in size" if abs(value) >= LARGEST else ""
            raise text.error(f"is {shown(value)}; expected {self.words}{limit}", path)
        return float(value)


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

    def takes(self, value: Any) -> bool:
        return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value % 1 == 0))

    def read(self, text: TomlText, value: Any, path: Path) -> int:
        if not self.least <= value <= self.most:
            raise text.error(f"is {shown(value)}; expected {self.words}", path)
        return int(value)


@dataclass(frozen=True)
class Row:
    """So many numbers, or rows of such."""

    shape: tuple[int, ...]
    words: str
    number: Number = Number(words="a finite number")
    nonzero: bool = False
    """Whether one or more of the numbers are not 0."""

    @property
    def inner(self) -> Number | Row:
        """What each entry is."""
        return Row(self.shape[1:], self.words, self.number) if len(self.shape) > 1 else self.number

    def takes(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) == self.shape[0] and all(map(self.inner.takes, value))

    def read(self, text: TomlText, value: Any, path: Path) -> list[Any]:
        if self.nonzero and not any(value):
            raise text.error(f"is {shown(value)}; expected {self.words}, not all of them 0", path)
        return [self.inner.read(text, entry, (*path, k)) for k, entry in enumerate(value)]


POINT = Row((3,), "three coordinates, [x, y, z]")
DIRECTION = replace(POINT, nonzero=True)


@dataclass(frozen=True)
class Either:
    """One of several kinds; the first that takes a value reads it."""

    kinds: tuple[Kind, ...]

    @property
    def words(self) -> str:
        return ", or ".join(kind.words for kind in self.kinds)

    def takes(self, value: Any) -> bool:
        return any(kind.takes(value) for kind in self.kinds)

    def read(self, text: TomlText, value: Any, path: Path) -> Any:
        return next(kind for kind in self.kinds if kind.takes(value)).read(text, value, path)


@dataclass(frozen=True)
class ListOf:
    """Any number of values of a kind, or between two counts."""

    kind: Kind
    words: str
    least: int = 0
    most: int = 10**6

    def takes(self, value: Any) -> bool:
        return isinstance(value, list)

    def read(self, text: TomlText, value: Any, path: Path) -> list[Any]:
        if not self.least <= len(value) <= self.most:
            raise text.error(f"has {len(value)} entries; expected {self.words}", path)
        return [read_as(self.kind, text, entry, (*path, k)) for k, entry in enumerate(value)]


@dataclass(frozen=True)
class Named:
    """A table from names of your own to values of a kind."""

    kind: Kind
    words: str

    def takes(self, value: Any) -> bool:
        return isinstance(value, dict)

    def read(self, text: TomlText, value: Any, path: Path) -> dict[str, Any]:
        return {name: read_as(self.kind, text, entry, (*path, name)) for name, entry in value.items()}


@dataclass(frozen=True)
class Key:
    """A key of a table."""

    kind: Kind
    meaning: str
    required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Record:
    """A table whose keys are known."""

    keys: Mapping[str, Key]
    words: str = "a table"
    one_of: tuple[str, ...] = ()
    """Keys of which exactly one has to be there."""
    most_one_of: tuple[str, ...] = ()
    """Keys of which at most one may be there."""
    only_with: Mapping[str, str] = field(default_factory=dict)
    """Keys that make sense beside another one only."""

    def takes(self, value: Any) -> bool:
        return isinstance(value, dict)

    def read(self, text: TomlText, value: Any, path: Path) -> dict[str, Any]:
        for name in value:
            if name not in self.keys:
                where = f" of {key_name(path)}" if path else ""
                raise text.error(f"there is no such key{where}; {closest(name, self.keys)}", (*path, name))
        self._check_choice(text, value, path)
        for name, key in self.keys.items():
            if key.required and name not in value:
                raise text.error(f"is missing; expected {key.kind.words}", (*path, name))
        return {
            name: read_as(key.kind, text, value[name], (*path, name)) if name in value else key.default
            for name, key in self.keys.items()
        }

    def _check_choice(self, text: TomlText, value: dict[str, Any], path: Path) -> None:
        there = [name for name in self.one_of if name in value]
        if self.one_of and len(there) != 1:
            found = f"has both {' and '.join(there)}" if there else f"has no {' or '.join(self.one_of)}"
            raise text.error(f"{found}; expected exactly one of them", path)
        both = [name for name in self.most_one_of if name in value]
        if len(both) > 1:
            raise text.error(f"has both {' and '.join(both)}; expected one of them", path)
        for name, beside in self.only_with.items():
            if name in value and beside not in value:
                raise text.error(f'makes sense beside "{beside}" only', (*path, name))


def reference(record: Record, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Every key that a table may have, as (key, what is expected, what it means), those of tables inside it too."""
    for name, key in record.keys.items():
        needed = " (required)" if key.required else ""
        yield f"{prefix}{name}", f"{key.kind.words}{needed}", key.meaning
        for inside, kind in _inner(key.kind):
            yield from reference(kind, f"{prefix}{name}{inside}.")


def _inner(kind: Kind) -> Iterator[tuple[str, Record]]:
    if isinstance(kind, Record) and kind.words == Record.words:  # others are small, and their words say it all
        yield "", kind
    elif isinstance(kind, ListOf):
        yield from ((f"[]{rest}", record) for rest, record in _inner(kind.kind))
    elif isinstance(kind, Named):
        yield from ((f".NAME{rest}", record) for rest, record in _inner(kind.kind))
    elif isinstance(kind, Either):
        for one in kind.kinds:
            yield from _inner(one)

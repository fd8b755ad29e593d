"""What a scene file may say: kinds of values, and tables of keys, each with its meaning.

Numbers, choices and the like are those of `pliant.core.options`; here are names of files, lists and tables. A `Record`
is a table whose keys are declared; a key that is not gets an error that names the closest one. What is declared here is
also what the reference in the docs lists (`reference`), so the two cannot part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pliant.app.scene.located_toml import TomlText
from pliant.core.options import (
    Either,
    KeyPath,
    Kind,
    Misfit,
    Options,
    Text as Text,
    closest,
    key_name,
    read_value,
)


def read_as(kind: Kind, text: TomlText, value: Any, path: KeyPath) -> Any:
    """A value of a kind, or an error that says what was expected, with its key and line."""
    try:
        return read_value(kind, value, path)
    except Misfit as misfit:
        raise text.error(misfit.problem, misfit.path) from None


def _never(text: str) -> bool:
    return False


@dataclass(frozen=True)
class FileName(Text):
    """The name of a file to read, or of many: a folder, a glob, an archive or what is in one."""

    expected: str = "the name of a file, from the scene's folder"
    not_for: Callable[[str], bool] = _never
    """Tells texts that mean something else, such as sphere:0,0,0,1."""
    or_name: bool = False
    """Whether it is the name of something else if there is no such file."""


@dataclass(frozen=True)
class ListOf:
    """Any number of values of a kind, or between two counts."""

    kind: Kind
    expected: str
    least: int = 0
    most: int = 10**6

    def takes(self, value: Any) -> bool:
        return isinstance(value, list)

    def read(self, value: Any, path: KeyPath = ()) -> list[Any]:
        if not self.least <= len(value) <= self.most:
            raise Misfit(f"has {len(value)} entries; expected {self.expected}", path)
        return [read_value(self.kind, entry, (*path, k)) for k, entry in enumerate(value)]


@dataclass(frozen=True)
class Named:
    """A table from names of your own to values of a kind."""

    kind: Kind
    expected: str

    def takes(self, value: Any) -> bool:
        return isinstance(value, dict)

    def read(self, value: Any, path: KeyPath = ()) -> dict[str, Any]:
        return {name: read_value(self.kind, entry, (*path, name)) for name, entry in value.items()}


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
    expected: str = "a table"
    one_of: tuple[str, ...] = ()
    """Keys of which exactly one has to be there."""
    most_one_of: tuple[str, ...] = ()
    """Keys of which at most one may be there."""
    only_with: Mapping[str, str] = field(default_factory=dict)
    """Keys that make sense beside another one only."""

    def takes(self, value: Any) -> bool:
        return isinstance(value, dict)

    def read(self, value: Any, path: KeyPath = ()) -> dict[str, Any]:
        for name in value:
            if name not in self.keys:
                where = f" of {key_name(path)}" if path else ""
                raise Misfit(f"there is no such key{where}; {closest(name, self.keys)}", (*path, name))
        self._check_choice(value, path)
        for name, key in self.keys.items():
            if key.required and name not in value:
                raise Misfit(f"is missing; expected {key.kind.expected}", (*path, name))
        return {
            name: read_value(key.kind, value[name], (*path, name)) if name in value else key.default
            for name, key in self.keys.items()
        }

    def _check_choice(self, value: dict[str, Any], path: KeyPath) -> None:
        there = [name for name in self.one_of if name in value]
        if self.one_of and len(there) != 1:
            found = f"has both {' and '.join(there)}" if there else f"has no {' or '.join(self.one_of)}"
            raise Misfit(f"{found}; expected exactly one of them", path)
        both = [name for name in self.most_one_of if name in value]
        if len(both) > 1:
            raise Misfit(f"has both {' and '.join(both)}; expected one of them", path)
        for name, beside in self.only_with.items():
            if name in value and beside not in value:
                raise Misfit(f'makes sense beside "{beside}" only', (*path, name))


def option_keys(options: type[Options], table: str = "") -> dict[str, Key]:
    """Keys for all options of a table, by default of those of the scene itself."""
    return {one.name: Key(one.kind, one.meaning, default=one.default) for one in options.all(table=table)}


def reference(record: Record, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Every key that a table may have, as (key, what is expected, what it means), those of tables inside it too."""
    for name, key in record.keys.items():
        needed = " (required)" if key.required else ""
        yield f"{prefix}{name}", f"{key.kind.expected}{needed}", key.meaning
        for inside, kind in _inner(key.kind):
            yield from reference(kind, f"{prefix}{name}{inside}.")


def _inner(kind: Kind) -> Iterator[tuple[str, Record]]:
    if isinstance(kind, Record) and kind.expected == Record.expected:  # others are small: what they expect says it all
        yield "", kind
    elif isinstance(kind, ListOf):
        yield from ((f"[]{rest}", record) for rest, record in _inner(kind.kind))
    elif isinstance(kind, Named):
        yield from ((f".NAME{rest}", record) for rest, record in _inner(kind.kind))
    elif isinstance(kind, Either):
        for one in kind.kinds:
            yield from _inner(one)


@dataclass(frozen=True, eq=False)
class EngineScene:
    """A scene of any engine, with the text that it was read from."""

    text: TomlText | None = field(default=None, kw_only=True)
    """None if it was not read from a document."""

    @property
    def file(self) -> str:
        """The file that it was read from; empty if there is none."""
        return "" if self.text is None else self.text.source.label


OUTPUT = Key(
    Record(
        {
            "file": Key(
                Text("the name of a clip, .glb .usdc .pc2 .npz ..., or of a folder, from the scene's folder"),
                "the clip to write; without one, it is called as the scene is, with .glb",
            ),
            "report": Key(Text("the name of a web page, .html, from the scene's folder"), "a report to write"),
        }
    ),
    "where the results go; -o and --report count instead",
)

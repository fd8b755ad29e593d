"""TOML with positions: errors about a value name its key and line.

The standard reader says where a document breaks off, but not where its values stand. `lines_of_keys` finds that for a
text that is known to be TOML: the line on which every key, table and list entry begins. Where flags of a command fill a
document (`TypedText`), errors name the flag, or the file, that gave the value.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pliant.core.errors import FileError, InputError
from pliant.core.options import KeyPath, key_name
from pliant.io.located_json import DEEPEST_JSON, not_too_deep
from pliant.io.source import Source, text_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ArgumentKeys = Mapping[KeyPath, KeyPath]
"""From arguments of an engine, as `InputError` names them, to the keys that say them."""


class SceneError(FileError):
    """What is wrong with a scene file, at its key and line."""


@dataclass(frozen=True)
class TomlText:
    """A TOML document, and where in its text each value stands."""

    source: Source
    content: dict[str, Any]
    lines: dict[KeyPath, int]

    def name(self, path: KeyPath) -> str:
        """What the value at `path` is called where it is given."""
        return key_name(path)

    def error(self, problem: str, path: KeyPath) -> InputError:
        """An error about the value at `path`, or about what is missing there: then at the line of its table."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        line = f"line {self.lines[known] if known else 1}, " if self.lines else ""
        return SceneError(self.source.label, problem, location=f"{line}{key_name(path)}")

    @contextmanager
    def about(self, path: KeyPath, keys: ArgumentKeys = MappingProxyType({})) -> Iterator[None]:
        """What is found wrong meanwhile, also with a file that the scene names, is wrong with the value at `path`, or
        with that of the key for the argument that the error names.
        """
        try:
            yield
        except SceneError:
            raise
        except InputError as error:
            raise self.error(str(error), key_of(error.argument, keys) or path) from error


def key_of(argument: KeyPath, keys: ArgumentKeys) -> KeyPath:
    """The key that says an argument, or the part of it that is named; empty if none does."""
    for end in range(len(argument), 0, -1):
        if argument[:end] in keys:
            return (*keys[argument[:end]], *argument[end:])
    return ()


def located(text: TomlText | None, path: KeyPath, keys: ArgumentKeys) -> AbstractContextManager[None]:
    """As `TomlText.about`, for what may be in no document: then errors stay as they are."""
    return nullcontext() if text is None else text.about(path, keys)


_LONG_KEY = re.compile(rf"(?m)(?:^|[\[{{,])(?:[^.,=#\n\[\]{{}}]+\.){{{DEEPEST_JSON}}}")
"""A key of more parts than tables may be nested."""


def read_toml(source: Source) -> TomlText:
    """The document in a file."""
    text = text_of(source).replace("\r\n", "\n")
    try:
        if _LONG_KEY.search(text):
            raise RecursionError  # tomllib's time for such a key grows with its square
        content = not_too_deep(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        match = re.fullmatch(r"(.*?)(?: \(at (line \d+, column \d+|end of document)\))?", str(error), re.DOTALL)
        problem, position = (match[1], match[2] or "") if match else (str(error), "")
        raise source.error(f"is not TOML ({problem[:1].lower()}{problem[1:]})", location=position) from error
    except RecursionError as error:
        raise source.error("is nested too deeply to be read") from error
    except ValueError as error:  # a number of thousands of digits
        raise source.error(f"is not TOML ({error})") from error
    return TomlText(source, content, lines_of_keys(text))


def lines_of_keys(text: str) -> dict[KeyPath, int]:
    """The line of every key, table and list entry in a text that is known to be TOML."""
    scan = _Scan(text)
    table: KeyPath = ()
    while scan.skip(" \t\n"):
        if text[scan.at] == "[":
            table = scan.header()
        else:
            scan.pair(table)
    return scan.lines


class _Scan:
    """A position in a TOML text, and what was found before it."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.lines = text, 0, dict[KeyPath, int]()
        self.breaks = [k for k, letter in enumerate(text) if letter == "\n"]
        self.counts: dict[KeyPath, int] = {}
        """How many tables each list of tables has so far."""

    def skip(self, blanks: str) -> bool:
        """Go past blanks and comments; whether there is more."""
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at] in blanks:
                self.at += 1
            else:
                return True
        return False

    def note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, bisect_left(self.breaks, self.at) + 1)

    def header(self) -> KeyPath:
        """``[table]`` or ``[[table]]``: the path that its keys belong to."""
        begun, several = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if several else 1
        path: KeyPath = ()
        keys = self.keys()
        for k, key in enumerate(keys):
            path = (*path, key)
            if several and k == len(keys) - 1:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        end, self.at = self.at + (2 if several else 1), begun
        for k in range(1, len(path) + 1):
            self.note(path[:k])
        self.at = end
        return path

    def keys(self) -> list[str]:
        """A key, or several joined by dots, up to what ends them."""
        found = []
        while True:
            self.skip(" \t")
            if self.text[self.at] in "\"'":
                begun = self.at
                self.string()
                found.append(next(iter(tomllib.loads(f"{self.text[begun : self.at]} = 0"))))
            else:
                bare = re.compile(r"[\w-]+").match(self.text, self.at)
                assert bare is not None
                found.append(bare[0])
                self.at = bare.end()
            self.skip(" \t")
            if self.text[self.at] != ".":
                return found
            self.at += 1

    def pair(self, table: KeyPath) -> None:
        """``key = value``."""
        begun = self.at
        path = table
        for key in self.keys():
            path = (*path, key)
            end, self.at = self.at, begun
            self.note(path)
            self.at = end
        self.at += 1  # the equals sign
        self.skip(" \t")
        self.value(path)

    def value(self, path: KeyPath) -> None:
        self.note(path)
        here = self.text[self.at]
        if here in "\"'":
            self.string()
        elif here in "[{":
            self.entries(path, here)
        else:
            ends = re.compile(r"[^,\]}\n#]*").match(self.text, self.at)
            assert ends is not None
            self.at = ends.end()

    def entries(self, path: KeyPath, bracket: str) -> None:
        """A list or an inline table."""
        close = "]" if bracket == "[" else "}"
        self.at += 1
        position = 0
        while self.skip(" \t\n,") and self.text[self.at] != close:
            if bracket == "[":
                self.value((*path, position))
                position += 1
            else:
                self.pair(path)
        self.at += 1

    def string(self) -> None:
        """Go past a string of any of the four kinds."""
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(mark)
        while not self.text.startswith(mark, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(mark)
        while len(mark) == 3 and self.text.startswith(quote, self.at):  # a quote before the closing three
            self.at += 1


@dataclass(frozen=True)
class _Typed(Source):
    """In no file: paths start from the folder that the command is run in."""

    @property
    def label(self) -> str:
        return ""


@dataclass(frozen=True)
class TypedText(TomlText):
    """A document that flags have filled."""

    source: Source = field(default_factory=lambda: _Typed(Path("command")))
    content: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    names: Mapping[KeyPath, str] = field(default_factory=dict)
    """The flag, or the file, that says what is at a path; positions in lists may be left out."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flags by the last key of a path."""

    def error(self, problem: str, path: KeyPath) -> InputError:
        """An error about the flag that says the value at `path`."""
        label = self.name(path)
        return SceneError(label, problem) if label else InputError(problem)

    def name(self, path: KeyPath) -> str:
        """The flag or the file; empty if neither gives the value."""
        for end in range(len(path), 0, -1):
            bare = tuple(key for key in path[:end] if isinstance(key, str))
            found = self.names.get(path[:end]) or self.names.get(bare) or self.flags.get(str(path[end - 1]))
            if found:
                return found
        return ""

    @contextmanager
    def about(self, path: KeyPath, keys: ArgumentKeys = MappingProxyType({})) -> Iterator[None]:
        """As of `TomlText`; errors about files name these already."""
        try:
            yield
        except FileError:
            raise
        except InputError as error:
            raise self.error(str(error), key_of(error.argument, keys) or path) from None


__all__ = [
    "ArgumentKeys",
    "KeyPath",
    "SceneError",
    "TomlText",
    "TypedText",
    "key_name",
    "lines_of_keys",
    "located",
    "read_toml",
    "tomllib",
]

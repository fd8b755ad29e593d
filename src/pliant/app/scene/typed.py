"""A scene given by command-line flags: errors name the flag, or the file, that gave the value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any

from pliant.app.scene.located_toml import Keys, SceneError, TomlText, key_of
from pliant.core.errors import FileError, InputError
from pliant.core.options import Path
from pliant.io.source import Source


@dataclass(frozen=True)
class _Typed(Source):
    """In no file: paths start from the folder that the command is run in."""

    @property
    def label(self) -> str:
        return ""


@dataclass(frozen=True)
class TypedText(TomlText):
    """A document that flags have filled."""

    source: Source = field(default_factory=lambda: _Typed(FilePath("command")))
    content: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    names: Mapping[Path, str] = field(default_factory=dict)
    """The flag, or the file, that says what is at a path; positions in lists may be left out."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flags by the last key of a path."""

    def error(self, problem: str, path: Path) -> InputError:
        """An error about the flag that says the value at `path`."""
        label = self.name(path)
        return SceneError(label, problem) if label else InputError(problem)

    def name(self, path: Path) -> str:
        """The flag or the file; empty if neither gives the value."""
        for end in range(len(path), 0, -1):
            bare = tuple(key for key in path[:end] if isinstance(key, str))
            found = self.names.get(path[:end]) or self.names.get(bare) or self.flags.get(str(path[end - 1]))
            if found:
                return found
        return ""

    @contextmanager
    def about(self, path: Path, keys: Keys = MappingProxyType({})) -> Iterator[None]:
        """As of `TomlText`; errors about files name these already."""
        try:
            yield
        except FileError:
            raise
        except InputError as error:
            raise self.error(str(error), key_of(error.argument, keys) or path) from None

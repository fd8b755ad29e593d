"""A checked view of glTF's JSON: every value is read by key and type, and errors name the location of a wrong one.

A glTF file is a JSON object of tables (nodes, meshes, accessors, ...) whose entries refer to each other by number.
`Entry` wraps one such object; no reader touches the raw dictionaries, so no file can cause a KeyError or a TypeError.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from pliant.core.errors import FileError
from pliant.core.topology import Floats
from pliant.io.located_json import not_too_deep
from pliant.io.source import Source


def _described(value: object) -> str:
    """A JSON value, shortened for an error message."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _as_whole(value: object) -> int | None:
    """The whole number that a JSON value stands for (3 or 3.0), or None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def _as_number(value: object) -> float | None:
    """The finite number that a JSON value stands for, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Entry:
    """One JSON object of a file, with a description of its location."""

    source: Source
    value: Mapping[str, Any]
    location: str

    def error(self, problem: str) -> FileError:
        """A `FileError` about this object."""
        return self.source.error(problem, location=self.location)

    def _refuse(self, key: str, expected: str) -> NoReturn:
        if key not in self.value:
            raise self.error(f'has no "{key}"; expected {expected}')
        raise self.error(f'"{key}" is {_described(self.value[key])}; expected {expected}')

    def __contains__(self, key: str) -> bool:
        return self.value.get(key) is not None

    def whole(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """A whole number of at least `least`; required if there is no default."""
        if key not in self and default is not None:
            return default
        number = _as_whole(self.value.get(key))
        if number is None or number < least:
            self._refuse(key, f"a whole number from {least}")
        return number

    def index(self, key: str, table: int, what: str) -> int | None:
        """A number in a table of that length, or None if the key is absent."""
        if key not in self:
            return None
        number = self.whole(key)
        if number >= table:
            raise self.error(f'"{key}" is {number}; expected a {what} from 0 to {table - 1}, as the file has {table}')
        return number

    def needed_index(self, key: str, table: int, what: str) -> int:
        """As `index`, for a key that must be there."""
        number = self.index(key, table, what)
        if number is None:
            self._refuse(key, f"the number of a {what}")
        return number

    def indices(self, key: str, table: int, what: str) -> list[int]:
        """A list of numbers in a table of that length; empty if the key is absent."""
        numbers = [_as_whole(item) for item in self.items(key)]
        for k, number in enumerate(numbers):
            if number is None or not 0 <= number < table:
                shown = _described(self.value[key][k])
                raise self.error(f'"{key}" holds {shown}; expected numbers of the {table} {what}s')
        return [number for number in numbers if number is not None]

    def numbers(self, key: str, count: int | None = None) -> Floats | None:
        """A list of `count` finite numbers (any count if None), or None if the key is absent."""
        if key not in self:
            return None
        values = [_as_number(item) for item in self.items(key)]
        expected = "finite numbers" if count is None else f"{count} finite numbers"
        if any(value is None for value in values) or (count is not None and len(values) != count):
            self._refuse(key, expected)
        return np.array(values, dtype=np.float64)

    def text(self, key: str, default: str = "") -> str:
        """A text; the default if the key is absent."""
        if key not in self:
            return default
        value = self.value[key]
        if not isinstance(value, str):
            self._refuse(key, "a text")
        return value.encode("utf-8", "replace").decode("utf-8")

    def flag(self, key: str) -> bool:
        """True or false; false if the key is absent."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, bool):
            self._refuse(key, "true or false")
        return bool(value)

    def items(self, key: str) -> list[Any]:
        """A list of anything; empty if the key is absent."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, list):
            self._refuse(key, "a list")
        return value or []

    def texts(self, key: str) -> list[str]:
        """A list of texts; empty if the key is absent."""
        values = self.items(key)
        if any(not isinstance(value, str) for value in values):
            self._refuse(key, "a list of texts")
        return [value.encode("utf-8", "replace").decode("utf-8") for value in values]

    def entry(self, key: str) -> Entry:
        """The object under a key; an empty one if the key is absent."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, dict):
            self._refuse(key, "an object")
        return Entry(self.source, value or {}, f"{self.location} {key}".strip())

    def entries(self, key: str, what: str) -> list[Entry]:
        """A list of objects, placed as "<what> 0", "<what> 1", ...; empty if the key is absent."""
        values = self.items(key)
        for k, value in enumerate(values):
            if not isinstance(value, dict):
                raise self.source.error(f"is {_described(value)}; expected an object", location=self._placed(what, k))
        return [Entry(self.source, value, self._placed(what, k)) for k, value in enumerate(values)]

    def _placed(self, what: str, k: int) -> str:
        return f"{self.location}, {what} {k}" if self.location else f"{what} {k}"


def parse_json(source: Source, data: bytes) -> Entry:
    """The root object of a file's JSON text."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not allowed in JSON")

    try:
        value = not_too_deep(json.loads(data.decode("utf-8-sig"), parse_constant=refuse))
    except UnicodeDecodeError as error:
        raise source.error("is not UTF-8 text", location=f"JSON byte {error.start}") from error
    except json.JSONDecodeError as error:
        location = f"JSON line {error.lineno} column {error.colno}"
        raise source.error(f"is not JSON ({error.msg[0].lower()}{error.msg[1:]})", location=location) from error
    except (ValueError, RecursionError) as error:
        problem = "is nested too deeply" if isinstance(error, RecursionError) else f"is not JSON ({error})"
        raise source.error(problem, location="JSON") from error
    if not isinstance(value, dict):
        raise source.error(f"holds {_described(value)}; expected a glTF object", location="JSON")
    return Entry(source, value, "")

"""JSON written by hand: errors about a value give its line and column."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from pliant.core.errors import FileError
from pliant.core.kinds import KeyPath
from pliant.io.source import Source, text_of

DEEPEST_JSON = 100
"""Lists and objects that may stand inside each other."""


@dataclass(frozen=True)
class JsonText:
    """A JSON document, and the text it was read from."""

    source: Source
    text: str
    content: Any

    def error(self, problem: str, path: KeyPath = ()) -> FileError:
        """An error about the value at `path`."""
        at = _offset(self.text, path)
        return self.source.error(problem, location=_location(self.text, at))

    def number(self, value: Any, path: KeyPath) -> float:
        """A finite number."""
        try:
            number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.error(f"{_shown(value)} is not a finite number", path)
        return number

    def whole(self, value: Any, path: KeyPath) -> int:
        """A whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"{_shown(value)} is not a whole number", path)
        return value


def not_too_deep(content: Any, deepest: int = DEEPEST_JSON) -> Any:
    """Parsed JSON or TOML as it is, or a RecursionError: a few kB can nest so deep that no function can walk it."""
    level = [content]
    for _ in range(deepest + 1):
        level = [value for value in level if isinstance(value, (dict, list))]
        if not level:
            return content
        level = [item for value in level for item in (value.values() if isinstance(value, dict) else value)]
    raise RecursionError(f"more than {deepest} lists and objects inside each other")


def read_json(source: Source) -> JsonText:
    """The document in a file."""
    text = text_of(source)
    try:
        return JsonText(source, text, not_too_deep(json.loads(text)))
    except json.JSONDecodeError as error:
        problem = "is empty" if not text.strip() else f"is not JSON ({error.msg.lower()})"
        raise source.error(problem, location=f"line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise source.error("is nested too deeply to be read") from error
    except ValueError as error:  # a number of thousands of digits
        raise source.error(f"is not JSON ({error})") from error


def _shown(value: Any) -> str:
    return json.dumps(value)[:40]


def _location(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def _offset(text: str, path: KeyPath) -> int:
    """Where the value at `path` begins in a text that is known to be JSON."""
    decoder = json.JSONDecoder()
    at = _after_space(text, 0)
    for key in path:
        at = _after_space(text, at + 1)  # past the opening bracket
        position = 0
        found = at
        while text[at] not in "]}":
            name: int | str = position
            if text[at] == '"' and isinstance(key, str):
                name, at = decoder.raw_decode(text, at)
                at = _after_space(text, _after_space(text, at) + 1)  # past the colon
            if name == key:
                found = at  # of equal keys the last one counts
            at = _after_space(text, decoder.raw_decode(text, at)[1])
            if name == key and isinstance(key, int):
                break
            at = _after_space(text, at + 1) if text[at] == "," else at
            position += 1
        at = found
    return at


def _after_space(text: str, at: int) -> int:
    match = re.compile(r"[ \t\r\n]*").match(text, at)
    assert match is not None
    return match.end()

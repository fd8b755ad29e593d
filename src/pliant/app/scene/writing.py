"""Scene files written out: a document, as the TOML reader gives one, to TOML that reads back equal.

Values come first and tables below them, under headers, as a person would write them; small tables inside the entries of
a list of tables, such as ``turn = { axis = [0, 1, 0], degrees = 40 }``, stay on a line. Numbers keep all their digits.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pliant.app.scene.located_toml import KeyPath, TomlText, key_name, tomllib
from pliant.core.errors import FileError, InputError
from pliant.core.options import shown
from pliant.io.output import staged
from pliant.io.source import PathLike, Source

Document = dict[str, Any]
"""The plain tables that a scene file has (docs/scene.md)."""
LINE_WIDTH = 100
"""Letters of a line, beyond which lists are broken."""
DEEPEST_TABLE = 40
"""Tables and lists inside each other; readers of TOML have a limit too."""
ESCAPED_CHARACTERS = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def write_scene(path: PathLike, document: Document) -> None:
    """Write a document to a .toml file; one that was there is replaced when the new one is complete."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path is {path!r:.60}; expected the name of a file to write to")
    target = Path(path)
    if target.suffix.lower() != ".toml":
        raise FileError(path, "is no name of a scene file; expected one that ends in .toml")
    content = scene_text(document).encode()
    with staged(target) as stage:
        stage.write_bytes(content)


def scene_text(document: Document) -> str:
    """A document as TOML, from which it reads back equal."""
    if not isinstance(document, dict):
        raise InputError(f"the scene is {document!r:.60}; expected a dictionary, as TOML is read into")
    _check(document, ())
    return "\n".join(_lines(document)).lstrip("\n") + "\n"


def unwritten(document: Document, folder: PathLike) -> TomlText:
    """A document that is in no file: paths in it start from the folder, and errors name the key alone."""
    if not isinstance(folder, (str, os.PathLike)):
        raise InputError(f"folder is {folder!r:.60}; expected the folder that the scene's paths start from")
    return TomlText(_Unwritten(Path(folder) / "scene"), tomllib.loads(scene_text(document)), {})


@dataclass(frozen=True)
class _Unwritten(Source):
    """What would be a file, once it is written."""

    @property
    def label(self) -> str:
        return "the scene"


# What TOML can hold


def _check(value: Any, path: KeyPath) -> None:
    """Refuse the first value that does not read back as it is."""
    if len(path) > DEEPEST_TABLE:
        raise InputError(f"{key_name(path[:3])}... is nested more than {DEEPEST_TABLE} deep; expected less")
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise InputError(f"{key_name(path) or 'the scene'} has the key {key!r:.40}; expected a text")
            _check_letters(key, (*path, key))
            _check(entry, (*path, key))
    elif isinstance(value, list):
        for k, entry in enumerate(value):
            _check(entry, (*path, k))
    elif isinstance(value, str):
        _check_letters(value, path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{key_name(path)} is {float(value)}; expected a finite number")
    elif not isinstance(value, int):
        found = f"{shown(value)}, a {type(value).__name__}"
        raise InputError(f"{key_name(path)} is {found}; expected a text, number, true or false, list or table")
    elif not -(2**63) <= value < 2**63:
        raise InputError(f"{key_name(path)} is a whole number of more than 64 bits; expected a smaller one")


def _check_letters(text: str, path: KeyPath) -> None:
    if re.search("[\ud800-\udfff]", text):
        named = key_name(path).encode("ascii", "backslashreplace").decode()
        raise InputError(f"{named} holds half of a surrogate pair, which no file can; expected whole characters")


# Layout


def _lines(table: dict[str, Any], prefix: str = "", *, in_list: bool = False) -> Iterator[str]:
    """A table's own pairs, then the tables below it."""
    below = {key: value for key, value in table.items() if _has_header(key, value, in_list)}
    for key, value in table.items():
        if key not in below:
            name = f"{_key(key)} = "
            yield name + _broken(value, "", len(name))
    for key, value in below.items():
        name = prefix + _key(key)
        if isinstance(value, list):
            for entry in value:
                yield from ("", f"[[{name}]]", *_lines(entry, f"{name}.", in_list=True))
        else:
            inner = list(_lines(value, f"{name}.", in_list=in_list))
            yield from inner if inner and not inner[0] else ("", f"[{name}]", *inner)


def _has_header(key: str, value: Any, in_list: bool) -> bool:
    """Whether a value is a table, or a list of such, that does not stay on its key's line."""
    if isinstance(value, dict):
        return not (in_list and len(_key(key)) + len(_inline(value)) + 3 <= LINE_WIDTH)
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _broken(value: Any, indent: str, used: int) -> str:
    """A value on a line of which some is used; a list that does not fit is broken into lines."""
    line = _inline(value)
    if not isinstance(value, list) or used + len(line) <= LINE_WIDTH:
        return line
    further = indent + "  "
    if any(isinstance(entry, (list, dict)) for entry in value):
        rows = [_broken(entry, further, len(further) + 1) for entry in value]
    else:
        rows = _filled([_inline(entry) for entry in value], LINE_WIDTH - len(further))
    return "\n".join(["[", *(f"{further}{row}," for row in rows), f"{indent}]"])


def _filled(items: list[str], width: int) -> list[str]:
    """Words joined by commas into rows of at most so many letters, if a word is no longer."""
    rows = [items[0]]
    for word in items[1:]:
        if len(rows[-1]) + len(word) + 3 <= width:
            rows[-1] += f", {word}"
        else:
            rows.append(word)
    return rows


def _inline(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_inline(entry) for entry in value)}]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(key)} = {_inline(entry)}" for key, entry in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return float.__repr__(value) if isinstance(value, float) else int.__repr__(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def _quoted(text: str) -> str:
    letters = (ESCAPED_CHARACTERS.get(c) or (f"\\u{ord(c):04X}" if ord(c) < 32 or ord(c) == 127 else c) for c in text)
    return f'"{"".join(letters)}"'

"""Scene files as a JSON schema (draft 2020-12), for editors: what to write next, and what is wrong, while one types.

It is made from the tables that scenes are read by, so the two cannot part. It knows keys, kinds and ranges; files that
are missing and vertices that do not exist are found when a scene is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

from pliant.app.scene.schema import FileName, Key, ListOf, Named, Record, Text
from pliant.core.options import Choice, Either, Flag, Kind, Number, Row, Share, Whole
from pliant.engines.registry import ENGINES

Schema = dict[str, Any]


def records() -> dict[str, Record]:
    """What scenes of all engines may say, by title."""
    return {title: record for engine in ENGINES.values() for title, record in engine.all_records().items()}


def json_schema() -> Schema:
    """The schema of all scene files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scene of pliant",
        "description": "What an engine is to do; see docs/scene.md.",
        "type": "object",
        "required": ["engine"],
        "properties": {"engine": {"description": "what the scene is for", "enum": list(ENGINES)}},
        "oneOf": [{"$ref": f"#/$defs/{_identifier(title)}"} for title in records()],
        "$defs": {_identifier(title): {"title": title, **_of(record)} for title, record in records().items()},
    }


def _identifier(title: str) -> str:
    return "_".join(re.findall(r"\w+", title))


def _of(kind: Kind) -> Schema:
    """The schema of a kind of value."""
    return _MAKERS[type(kind)](kind)


def _number(kind: Number) -> Schema:
    """A number in a range. NaN, which TOML has, is on no side of a bound: it meets `minimum`, and `not` refuses it."""
    bounds = {"exclusiveMinimum": kind.above, "exclusiveMaximum": kind.below}
    return {"type": "number", **bounds, "not": {"minimum": kind.below}}


def _row(kind: Row) -> Schema:
    """So many numbers, or rows of such."""
    count = kind.shape[0]
    made = {"type": "array", "items": _of(kind.inner), "minItems": count, "maxItems": count}
    return {**made, "not": {"items": {"const": 0}}} if kind.nonzero else made


def _list(kind: ListOf) -> Schema:
    bounds = {"minItems": kind.least, "maxItems": kind.most}
    known = {name: bound for name, bound in bounds.items() if bound not in (0, ListOf.most)}
    return {"type": "array", "items": _of(kind.kind), **known}


def _record(kind: Record) -> Schema:
    made: Schema = {
        "type": "object",
        "properties": {name: _key(key) for name, key in kind.keys.items()},
        "additionalProperties": False,
    }
    required = [name for name, key in kind.keys.items() if key.required]
    if required:
        made["required"] = required
    if kind.one_of:
        made["oneOf"] = [{"required": [name]} for name in kind.one_of]
    if kind.most_one_of:
        made["not"] = {"anyOf": [{"required": list(pair)} for pair in combinations(kind.most_one_of, 2)]}
    if kind.only_with:
        made["dependentRequired"] = {name: [beside] for name, beside in kind.only_with.items()}
    return made


def _key(key: Key) -> Schema:
    made = {"description": f"{key.meaning}: {key.kind.expected}", **_of(key.kind)}
    return made if key.default in (None, []) else {**made, "default": key.default}


def _pattern(kind: Text) -> str:
    return f"^(?:{kind.pattern})$" if kind.pattern else r"\S"


_MAKERS: dict[type, Callable[[Any], Schema]] = {
    Text: lambda kind: {"type": "string"} if kind.empty else {"type": "string", "pattern": _pattern(kind)},
    FileName: lambda kind: {"type": "string", "pattern": r"\S"},
    Flag: lambda kind: {"type": "boolean"},
    Choice: lambda kind: {"enum": list(kind.choices)},
    Number: _number,
    Share: _number,
    Whole: lambda kind: {"type": "integer", "minimum": kind.least, "maximum": kind.most},
    Row: _row,
    Either: lambda kind: {"anyOf": [_of(one) for one in kind.kinds]},
    ListOf: _list,
    Named: lambda kind: {"type": "object", "additionalProperties": _of(kind.kind)},
    Record: _record,
}

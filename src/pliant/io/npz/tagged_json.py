"""Materials and names as JSON that reads back unchanged: what JSON cannot express is tagged or stored as an array.

{"~bytes": "blob_0"}      bytes, stored as a uint8 array      {"~array": "blob_1"}   a NumPy array or scalar
{"~tuple": [...]}         a tuple                             {"~dict": [[k, v]]}    a mapping JSON cannot hold
{"~image": {...}}         an `Image`                          {"~appearance": {...}} an `Appearance`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InputError
from pliant.core.shapes import Appearance, Image

PLAIN = (str, bool, int, float, type(None))


def to_json(value: Any, blobs: dict[str, NDArray[Any]]) -> Any:
    """`value` as JSON data; bytes and arrays are added to `blobs`."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, (bytes, bytearray)):
        return {"~bytes": _put(blobs, np.frombuffer(bytes(value), dtype=np.uint8))}
    if isinstance(value, (np.ndarray, np.generic)):
        return {"~array": _put(blobs, np.asarray(value))}
    if isinstance(value, list):
        return [to_json(item, blobs) for item in value]
    if isinstance(value, tuple):
        return {"~tuple": [to_json(item, blobs) for item in value]}
    if isinstance(value, Image):
        return {"~image": to_json({"name": value.name, "data": value.data, "mime": value.mime}, blobs)}
    if isinstance(value, Appearance):
        fields = {"color": tuple(value.color), "texture": value.texture, "native": dict(value.native)}
        return {"~appearance": to_json(fields, blobs)}
    if isinstance(value, Mapping):
        if all(type(key) is str and not key.startswith("~") for key in value):
            return {key: to_json(item, blobs) for key, item in value.items()}
        return {"~dict": [[to_json(key, blobs), to_json(item, blobs)] for key, item in value.items()]}
    raise InputError(f"cannot keep a {type(value).__name__} in an NPZ file; expected numbers, text, bytes or arrays")


def _put(blobs: dict[str, NDArray[Any]], array: NDArray[Any]) -> str:
    key = f"blob_{len(blobs)}"
    blobs[key] = array
    return key


def from_json(value: Any, array: Callable[[str], NDArray[Any]]) -> Any:
    """The reverse of `to_words`; `array` looks up a blob. Anything malformed is an `InputError`."""
    if isinstance(value, list):
        return [from_json(item, array) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if len(value) != 1 or not tag.startswith("~"):
        return {key: from_json(item, array) for key, item in value.items()}
    inner = value[tag]
    if tag in ("~bytes", "~array") and isinstance(inner, str):
        found = array(inner)
        if tag == "~bytes":
            return found.tobytes()
        return found if found.ndim else found[()]
    return _tagged(tag, from_json(inner, array))


def _tagged(tag: str, inner: Any) -> Any:
    if tag == "~tuple" and isinstance(inner, list):
        return tuple(inner)
    if tag == "~dict" and isinstance(inner, list):
        return _mapping(inner)
    if tag == "~image" and isinstance(inner, dict) and isinstance(inner.get("data"), bytes):
        name, mime = inner.get("name"), inner.get("mime")
        if isinstance(name, str) and isinstance(mime, str):
            return Image(name, inner["data"], mime)
    if tag == "~appearance" and isinstance(inner, dict):
        return _appearance(inner)
    raise InputError(f'has metadata tagged "{tag:.40}" that does not fit the tag')


def _mapping(pairs: list[Any]) -> dict[Any, Any]:
    try:
        return {key: item for key, item in pairs}  # noqa: C416  dict() would split strings into pairs
    except (TypeError, ValueError) as error:
        raise InputError("has a mapping without pairs of key and value") from error


def _appearance(fields: dict[str, Any]) -> Appearance:
    color: Any = fields.get("color")
    texture, native = fields.get("texture"), fields.get("native", {})
    fits = isinstance(color, tuple) and len(color) == 4 and all(isinstance(c, (int, float)) for c in color)
    if not fits or not (texture is None or isinstance(texture, Image)) or not isinstance(native, dict):
        raise InputError("has a material without a colour of four numbers")
    return Appearance(color, texture, native)

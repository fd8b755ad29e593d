"""The contents of an NPZ file: arrays and metadata, checked on access; plain files of other programs by their keys."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import FileError, InputError
from pliant.io.located_json import DEEPEST_JSON, not_too_deep
from pliant.io.npz.arrays import read_arrays
from pliant.io.npz.tagged_json import from_json
from pliant.io.source import Source

VERSION = 1
"""Of the layout that `pliant.io.npz` describes."""

LARGEST_NUMBER = 1e300
"""Of the metadata; JSON has no limit."""

PLAIN_KEYS = {
    "points": ("vertices", "points", "v", "verts", "positions"),
    "faces": ("faces", "triangles", "f", "tris"),
    "tets": ("tets", "tetrahedra", "t"),
    "frames": ("frames", "animation"),
}
KINDS_IN = {
    "mesh": ("mesh", "points"),
    "tets": ("tets", "mesh", "points"),
    "points": ("points",),
    "shapes": ("shapes", "mesh", "points"),
    "motion": ("motion", "skeleton"),
    "skeleton": ("skeleton",),
}


class Contents:
    """The arrays and metadata of a file, with checked access to each."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.arrays = read_arrays(source)
        self.kind: str = ""
        self.metadata: dict[str, Any] = {}
        if "pliant" in self.arrays:
            self._open()
        else:
            self._guess()

    def _open(self) -> None:
        version, kind = self.array("pliant"), self.array("kind")
        if version.shape != () or not np.issubdtype(version.dtype, np.integer) or not 1 <= int(version) <= VERSION:
            raise self.source.error(
                f"has layout {version!s:.40}; this pliant reads up to {VERSION}", location="pliant.npy"
            )
        self.kind = str(kind) if kind.dtype.kind == "U" else ""
        if self.kind not in (*KINDS_IN, "animation"):
            raise self.source.error(
                f'holds kind "{self.kind:.40}"; expected {", ".join(KINDS_IN)}', location="kind.npy"
            )
        try:
            metadata = not_too_deep(json.loads(str(self.array("words"))), 3 * DEEPEST_JSON)
        except RecursionError as error:
            raise self.source.error("is nested too deeply to be read", location="words.npy") from error
        except ValueError as error:
            raise self.source.error("is not JSON; expected the names in it", location="words.npy") from error
        try:
            self.metadata = from_json(metadata, self.array)
        except FileError:
            raise
        except InputError as error:
            raise self.source.error(str(error), location="words.npy") from error
        if not isinstance(self.metadata, dict):
            raise self.source.error(f"holds a {type(metadata).__name__}; expected an object", location="words.npy")

    def _guess(self) -> None:
        """Rename the keys of a plain file, and guess its kind from them."""
        by_name = {key.lower(): self.arrays[key] for key in reversed(self.arrays)}
        has = {}
        for meaning, keys in PLAIN_KEYS.items():
            tables = [by_name[key] for key in keys if key in by_name and by_name[key].ndim >= 2]
            if tables:
                has[meaning] = tables[0]
        self.arrays = {**self.arrays, **has}
        if "points" not in has and "frames" in has and len(has["frames"]):
            self.arrays["points"] = has["frames"][0]
        elif "points" not in has:
            there = ", ".join(list(self.arrays)[:6]) or "none"
            raise self.source.error(f"has the arrays {there:.200}; expected points, or vertices and faces")
        shape = "mesh" if "faces" in has else "tets" if "tets" in has else "points"
        self.kind = "animation" if "frames" in has else shape
        self.metadata = {"shape": shape}

    def array(self, key: str) -> NDArray[Any]:
        """An array that must be there."""
        if key not in self.arrays:
            raise self.source.error(f'has no array "{key}"; expected one in a file that holds "{self.kind}"')
        return self.arrays[key]

    def numbers(self, key: str, ndim: int) -> NDArray[Any]:
        """Finite numbers in an array of that many axes."""
        table = self.array(key)
        location = f"{key}.npy"
        if table.ndim != ndim or table.dtype.kind not in "fiu":
            raise self.source.error(
                f"holds {table.dtype} {table.shape}; expected numbers on {ndim} axes", location=location
            )
        for k, part in enumerate(table if ndim == 3 else [table]):  # a clip may be longer than memory
            finite = np.isfinite(part)
            if not finite.all():
                at = [int(i) for i in ([k] if ndim == 3 else []) + list(np.argwhere(~finite)[0])]
                raise self.source.error(f"is {table[tuple(at)]} at {at}; expected finite numbers", location=location)
        return table

    def field(self, key: str, kind: type, default: Any) -> Any:
        """A metadata value of the given type."""
        value = self.metadata.get(key, default)
        fits = isinstance(value, (kind, int) if kind is float else kind) and not isinstance(value, bool)
        if not fits or (kind is float and abs(value) > LARGEST_NUMBER):
            raise self.source.error(f'"{key}" is {value!r:.40}; expected a {kind.__name__}', location="words.npy")
        return value

    def indices(self, key: str, below: int, what: str, ndim: int = 1) -> NDArray[np.int64]:
        """Whole numbers from 0 to `below` - 1."""
        table = self.array(key)
        if table.ndim != ndim or not np.issubdtype(table.dtype, np.integer):
            raise self.source.error(f"holds {table.dtype} {table.shape}; expected whole numbers", location=f"{key}.npy")
        if table.size and (table.min() < 0 or table.max() >= below):
            bad = int(table[(table < 0) | (table >= below)].flat[0])
            raise self.source.error(f"refers to {what} {bad}; there are {below}", location=f"{key}.npy")
        return table.astype(np.int64, copy=False)

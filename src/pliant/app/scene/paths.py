"""The files that a scene names: which of its texts they are, how to rename them, and what is read because of them.

Which texts are names of files is said where the keys are declared (`FileName`), and nowhere else. A text that may be
the name of something else too, such as the base of some shapes, counts if there is such a file.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pliant.app.scene.located_toml import KeyPath
from pliant.app.scene.media import from_folder
from pliant.app.scene.schema import FileName, ListOf, Named, Record
from pliant.core.errors import PliantError
from pliant.core.options import Either, Kind
from pliant.engines.registry import engine_named
from pliant.io import BY_SUFFIX, siblings_of
from pliant.io.source import PathLike, Source, find


def file_names(document: dict[str, Any], folder: PathLike = "") -> list[tuple[KeyPath, str]]:
    """Every name of a file, folder, glob or archive that a scene reads, with where it stands in the document.

    folder: what names start from; by default the folder you are in.
    """
    record = engine_named(document.get("engine")).record(document)
    return list(_named(record, document, (), Path(folder)))


def renamed_files(document: dict[str, Any], change: Callable[[str], str], folder: PathLike = "") -> dict[str, Any]:
    """The same scene with `change(name)` in place of each name of a file."""
    renamed = copy.deepcopy(document)
    for path, name in file_names(document, folder):
        inner: Any = renamed
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = change(name)
    return renamed


def absolute(document: dict[str, Any], folder: PathLike) -> dict[str, Any]:
    """The same scene with names that mean the same from anywhere; folder: what they start from now."""
    whole = Path(folder).absolute()
    return renamed_files(document, lambda name: from_folder(whole, name), whole)


def files_read(document: dict[str, Any], folder: PathLike) -> list[Path]:
    """Every file that is there and that the scene would read; an archive for what is in it.

    Those too that a model needs beside it: materials, pictures, binary data.
    """
    named = (files_named(name, folder) for _, name in file_names(document, folder))
    return list(dict.fromkeys(file for files in named for file in files))


def files_named(name: str, folder: PathLike) -> list[Path]:
    """The files that are read for one name, with those that they need; none if nothing has this name."""
    try:
        sources = find(from_folder(Path(folder), name), lambda file: Path(file).suffix.lower() in BY_SUFFIX)
    except PliantError:  # whoever reads it says what is wrong
        return []
    beside = [sibling for source in sources for sibling in _siblings(source)]
    return list(dict.fromkeys(source.path for source in (*sources, *beside)))


def _siblings(source: Source) -> list[Source]:
    try:
        return siblings_of(source)
    except PliantError:  # damaged
        return []


def _named(kind: Kind, value: Any, path: KeyPath, folder: Path) -> Iterator[tuple[KeyPath, str]]:
    """The names of files in a value of a kind; what does not fit it has none."""
    if not kind.takes(value):
        return
    if isinstance(kind, FileName):
        if not kind.not_for(value) and not (kind.or_name and not os.path.isfile(from_folder(folder, value))):
            yield path, value
    elif isinstance(kind, Either):
        yield from _named(next(one for one in kind.kinds if one.takes(value)), value, path, folder)
    elif isinstance(kind, ListOf):
        for k, entry in enumerate(value):
            yield from _named(kind.kind, entry, (*path, k), folder)
    elif isinstance(kind, Named):
        for key, entry in value.items():
            yield from _named(kind.kind, entry, (*path, key), folder)
    elif isinstance(kind, Record):
        for key in filter(kind.keys.__contains__, value):
            yield from _named(kind.keys[key].kind, value[key], (*path, key), folder)

"""What files and built-in shapes become: documents that the panels show, in the tables of scene files.

Which engine can use a shape, and with what scene it begins, each engine knows itself (`Engine.opens`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pliant
from pliant.app.scene import document_in
from pliant.app.scene.examples import example_scenes
from pliant.app.scene.located_toml import tomllib
from pliant.app.scene.paths import absolute
from pliant.app.studio.desk import Document
from pliant.core.clips import Shapes
from pliant.core.errors import InputError, PliantError
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.engines.registry import ENGINES, Engine
from pliant.io import kinds_in
from pliant.io.source import find

SHAPE_KINDS = {"mesh", "tets", "points", "animation", "shapes"}
"""Kinds of files that hold a shape."""
FOLDER_KINDS = ("animation", "shapes")
"""Kinds of a folder of poses."""
SHOWN_RANK = 3
"""Rank of the engine that is shown, if it can use a shape."""


def examples() -> dict[str, Document]:
    """What a visitor may begin with, by title: shapes to play with, and the scenes that ship with pliant."""
    found = [engine.part("examples") for engine in ENGINES.values() if engine.examples is not None]
    shipped = {content["title"]: content for content in map(tomllib.loads, example_scenes().values())}
    return {title: document for scenes in (*found, shipped) for title, document in scenes.items()}


def document_for(example: str) -> Document:
    """A built-in example's scene."""
    return copy.deepcopy(examples()[example])


def opened(file: Path, shown: str) -> list[Document]:
    """The scene that a file is, or those that engines make of it, the best first; none if it has no shape of its own.

    shown: the engine that is shown.
    """
    if file.suffix.lower() == ".toml":
        return [_confined(absolute(document_in(file), file.parent))]
    kinds = kinds_of(file) or ("mesh",)
    if kinds == ("motion",):
        return []
    content = pliant.read(str(file))
    if isinstance(content, Shapes) and len(content) > 1:
        kinds = ("shapes",)
    return offers({"file": str(file)}, kinds, shown) if SHAPE_KINDS & set(kinds) else []


def offers(shape: dict[str, Any], kinds: tuple[str, ...] = (), shown: str = "") -> list[Document]:
    """The scenes that engines make of a shape, as scene files name it, the best first."""
    found: list[tuple[int, Document]] = []
    for name, engine in ENGINES.items():
        try:
            rank, document = _open_with(engine, shape, kinds)
        except InputError:
            continue
        found.append((max(rank, SHOWN_RANK) if name == shown and rank else rank, document))
    return [document for _, document in sorted(found, key=lambda offer: -offer[0])]


def other_pose(document: Document, file: Path, read: Callable[[Document], Any]) -> Document | None:
    """A scene of the mesh that is shown, from a file, and another pose of it; None if the file is no such. read:
    checks a document."""
    shape = _shape_of(document)
    if "file" not in shape:
        return None
    for made in offers({"files": [shape["file"], str(file)]}):
        try:
            read(made)
        except PliantError:
            continue
        return made if made["engine"] != document["engine"] else None
    return None


def with_engine(document: Document, name: str) -> Document:
    """The same shape for another engine; raises an InputError if that cannot use it."""
    shape, engine = _shape_of(document), ENGINES[name]
    if "files" in shape:
        try:
            return _open_with(engine, shape, ())[1]
        except InputError:
            shape = {"file": shape["files"][0]}
    return _open_with(engine, shape, kinds_of(Path(shape["file"])) if "file" in shape else ())[1]


def shape_alone(document: Document) -> Shape | None:
    """The shape that a scene is about, as its file has it; None if the file has another, or cannot be read."""
    table = _shape_table(document)
    file = table.get("file") or next(iter(table.get("files", ())), None)
    if file is None or not table.keys() <= {"file", "files", "names", "base"}:
        return None
    with suppress(PliantError, OSError):
        found = pliant.read(file)
        return next(
            (one for one in (found, getattr(found, "base", None)) if isinstance(one, (Mesh, TetMesh, PointCloud))), None
        )
    return None


def title_of(document: Document) -> str:
    """What a scene is called: its title, or its shape's."""
    shape = _shape_of(document)
    named = shape.get("files") or [shape.get("file") or shape.get("gallery") or "scene"]
    return str(document.get("title") or ", ".join(Path(name).name for name in named))


def _shape_of(document: Document) -> dict[str, Any]:
    """The table that names a scene's shape, but for what only its engine knows."""
    table = _shape_table(document)
    return {key: value for key, value in table.items() if key in ("file", "files", "gallery", "vertices")}


def _shape_table(document: Document) -> dict[str, Any]:
    table = document.get(ENGINES[document["engine"]].shape_key, {})
    return {"file": table} if isinstance(table, str) else table


def _open_with(engine: Engine, shape: dict[str, Any], kinds: tuple[str, ...]) -> tuple[int, Document]:
    if engine.opens is None:
        raise InputError(f'"{engine.title}" opens scene files only; open one')
    rank, document = engine.part("opens")(shape, kinds)
    return rank, copy.deepcopy(document)


def kinds_of(file: Path) -> tuple[str, ...]:
    """What a file holds: several poses in a folder are frames of a clip, or shapes."""
    sources = find(file, lambda name: True)
    if len(sources) == 1:
        return tuple(kinds_in(sources[0]))
    posed = sources and all(kinds_in(source)[0] in ("mesh", "tets", "points") for source in sources)
    return FOLDER_KINDS if posed else ()


def _confined(document: Document) -> Document:
    """Without results that would go elsewhere than below the scene."""
    output = document.get("output", {})
    within = {
        key: name for key, name in output.items() if not Path(name).is_absolute() and ".." not in Path(name).parts
    }
    kept = {key: value for key, value in document.items() if key != "output"}
    return kept | ({"output": within} if within else {})

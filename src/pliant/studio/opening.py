"""What files and built-in shapes become: documents that the panels show, in the tables of scene files."""

from __future__ import annotations

import copy
import glob
from pathlib import Path
from typing import Any

import pliant
from pliant.clips import Shapes
from pliant.errors import FileError
from pliant.io import kinds_in
from pliant.io.source import find
from pliant.scene import document_in, read_scene
from pliant.scene.examples import example_scenes
from pliant.scene.located_toml import tomllib
from pliant.studio.folders import Folders
from pliant.studio.panel import Document

ENGINES = {"blend": "Blend shapes", "cage": "Cage", "elastic": "Flesh on bones"}
"""What an engine is called on the page; "transfer" scenes are the cage's."""

_FIRST: dict[str, Document] = {
    "Hand: blend poses": {"engine": "blend", "shapes": {"gallery": "hand"}},
    "Face: blend expressions": {"engine": "blend", "shapes": {"gallery": "face"}},
    "Animal: blend poses": {"engine": "blend", "shapes": {"gallery": "animal"}},
    "Gingerbread man in a cage": {
        "engine": "cage",
        "target": {"gallery": "gingerbread"},
        "cage": {"faces": 250},
        "lattice": 30,
        "weights": {"position": 10.0, "gradient": 20.0},
        "gradients": [{"at": [0.0, 0.45, 0.05]}, {"at": [0.0, 0.93, 0.05]}],
        "positions": [
            {"at": [-0.165, 0.07, 0.05]},
            {"at": [0.165, 0.07, 0.05]},
            {"at": [0.0, 0.45, 0.05]},
            {"at": [0.42, 0.59, 0.05]},
        ],
    },
    "Gingerbread man in a cage, walking": {
        "engine": "transfer",
        "target": {"gallery": "gingerbread"},
        "sources": {"motion": {"gallery": "creature_walk", "without": ["tail1", "ear*"]}},
        "cage": {"faces": 250},
        "lattice": 30,
        "controls": "auto",
    },
    "Creature: flesh on bones": {
        "engine": "elastic",
        "shape": {"gallery": "creature"},
        "skeleton": {"gallery": "creature"},
        "motion": {"keys": [{"time": 0.0}]},
        "static": True,
    },
    "Dinosaur: flesh that walks": {
        "engine": "elastic",
        "shape": {"gallery": "dinosaur"},
        "skeleton": {"gallery": "dinosaur"},
        "motion": {"gallery": "dinosaur_walk"},
        "gravity": 9.81,
    },
}
EXAMPLES: dict[str, Document] = _FIRST | {
    content["title"]: content for content in map(tomllib.loads, example_scenes().values())
}
"""What a visitor may begin with, by words: shapes to play with, and the scenes that ship with pliant."""
PATHS = frozenset(("file", "files", "pins", "weights", "motion", "what", "rest"))
"""Keys of scenes whose texts may be names of files."""


def document_for(example: str) -> Document:
    """A built-in example's scene."""
    return copy.deepcopy(EXAMPLES[example])


def opened(file: Path, engine: str) -> Document | None:
    """The scene that a file is or calls for; None if it has no shape of its own, such as a motion."""
    if file.suffix.lower() == ".toml":
        read_scene(file)  # what is wrong is said now, with its line
        document: Document = _absolute(document_in(file), file.parent)
        return document
    sources = find(file, lambda name: True)
    kinds = kinds_in(sources[0]) if len(sources) == 1 else ("mesh",)
    content = pliant.read(str(file)) if "motion" not in kinds or len(kinds) > 1 else None
    if isinstance(content, Shapes) and len(content) > 1:
        return {"engine": "blend", "shapes": {"file": str(file)}}
    if content is None or not {"mesh", "tets", "points", "animation", "shapes"} & set(kinds):
        return None
    made = document_of_shape({"file": str(file)}, "elastic" if engine == "blend" else engine)
    if made["engine"] == "elastic" and "motion" in kinds:  # it moves by itself
        del made["motion"], made["static"]
    return made


def document_of_shape(shape: dict[str, Any], family: str) -> Document:
    """The plainest scene of a shape, as scene files name it, for an engine."""
    if family == "cage":
        return {"engine": "cage", "target": shape}
    if family == "elastic":
        return {"engine": "elastic", "shape": shape, "motion": {"keys": [{"time": 0.0}]}, "static": True}
    return {"engine": "blend", "shapes": shape}


def with_engine(document: Document, family: str, folders: Folders) -> Document:
    """The same shape for another engine; its own example where it has none that would do."""
    shape = document.get("shape") or document.get("target") or document.get("shapes") or {}
    if family == "blend":
        poses = shape.get("gallery") in ("hand", "face", "animal") or _has_shapes(shape.get("file"))
        return document_of_shape(shape, "blend") if poses else document_for("Hand: blend poses")
    if shape.get("files"):
        shape = {"file": shape["files"][0]}
    kept = {key: value for key, value in shape.items() if key in ("file", "gallery", "vertices")}
    made = document_of_shape(kept, family)
    name = kept.get("gallery")
    if family == "elastic" and name in ("animal", "creature", "dinosaur", "gingerbread", "hand", "tentacle"):
        made["skeleton"] = {"gallery": name}
    if family == "cage" and name in ("animal", "creature", "dinosaur", "gingerbread", "hand"):
        made["cage"] = {"gallery": name}
    return made


def _has_shapes(file: str | None) -> bool:
    if file is None:
        return False
    try:
        return len(pliant.read_shapes(file)) > 1
    except FileError:
        return False


def _absolute(value: Any, folder: Path, key: str = "") -> Any:
    """A scene's tables with names of files from the scene's folder made whole."""
    if isinstance(value, dict):
        return {name: _absolute(inner, folder, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_absolute(inner, folder, key) for inner in value]
    if isinstance(value, str) and key in PATHS and not Path(value).is_absolute():
        whole = folder / value
        return str(whole) if whole.exists() or glob.has_magic(value) else value
    return value

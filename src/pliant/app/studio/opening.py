"""What files and built-in shapes become: documents that the panels show, in the tables of scene files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pliant
from pliant import gallery
from pliant.app.scene import document_in
from pliant.app.scene.examples import example_scenes
from pliant.app.scene.located_toml import tomllib
from pliant.app.scene.paths import absolute
from pliant.app.studio.panel import Document
from pliant.core.clips import Shapes
from pliant.core.errors import FileError, InputError, PliantError
from pliant.io import kinds_in
from pliant.io.source import find

_FIRST: dict[str, Document] = {
    "Hand: blend poses": {"engine": "blend", "shapes": {"gallery": "hand"}},
    "Face: blend expressions": {"engine": "blend", "shapes": {"gallery": "face"}},
    "Animal: blend poses": {"engine": "blend", "shapes": {"gallery": "animal"}},
    "Gingerbread man in a cage": {
        "engine": "transfer",
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
        "engine": "simulate",
        "shape": {"gallery": "creature"},
        "skeleton": {"gallery": "creature"},
        "motion": {"keys": [{"time": 0.0}]},
        "static": True,
    },
    "Dinosaur: flesh that walks": {
        "engine": "simulate",
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


def document_for(example: str) -> Document:
    """A built-in example's scene."""
    return copy.deepcopy(EXAMPLES[example])


def opened(file: Path, engine: str) -> Document | None:
    """The scene that a file is or calls for; None if it has no shape of its own, such as a motion."""
    if file.suffix.lower() == ".toml":
        return _confined(absolute(document_in(file), file.parent))
    sources = find(file, lambda name: True)
    kinds = kinds_in(sources[0]) if len(sources) == 1 else ("mesh",)
    content = pliant.read(str(file)) if "motion" not in kinds or len(kinds) > 1 else None
    posed = "shapes" in kinds and "motion" not in kinds and _has_shapes(str(file))  # bones say more than poses
    if posed or (isinstance(content, Shapes) and len(content) > 1):
        return {"engine": "blend", "shapes": {"file": str(file)}}
    if content is None or not {"mesh", "tets", "points", "animation", "shapes"} & set(kinds):
        return None
    made = document_of_shape({"file": str(file)}, "simulate" if engine == "blend" else engine)
    if made["engine"] == "simulate" and "motion" in kinds:  # it moves by itself
        del made["motion"], made["static"]
    return made


def document_of_shape(shape: dict[str, Any], family: str) -> Document:
    """The plainest scene of a shape, as scene files name it, for an engine."""
    if family == "transfer":
        return {"engine": "transfer", "target": shape}
    if family == "simulate":
        return {"engine": "simulate", "shape": shape, "motion": {"keys": [{"time": 0.0}]}, "static": True}
    return {"engine": "blend", "shapes": shape}


def other_pose(document: Document, file: Path) -> Document | None:
    """The blend of the mesh that a scene shows, from a file, with another pose of it; None if the file is no such."""
    shape = document.get("shape") or document.get("target") or {}
    if "file" not in shape:
        return None
    try:
        shapes = pliant.read_shapes([shape["file"], str(file)])
    except PliantError:
        return None
    return {"engine": "blend", "shapes": {"files": [shape["file"], str(file)]}} if len(shapes) == 2 else None


def with_engine(document: Document, family: str) -> Document:
    """The same shape for another engine; its own example where it has none that would do."""
    shape = document.get("shape") or document.get("target") or document.get("shapes") or {}
    if family == "blend":
        poses = shape.get("gallery") in gallery.POSED or _has_shapes(shape.get("file"))
        if not poses and "gallery" not in shape:
            raise InputError("this shape has one pose; open another pose of the same mesh, and they are blended")
        return document_of_shape(shape, "blend") if poses else document_for("Hand: blend poses")
    if shape.get("files"):
        shape = {"file": shape["files"][0]}
    kept = {key: value for key, value in shape.items() if key in ("file", "gallery", "vertices")}
    made = document_of_shape(kept, family)
    name = kept.get("gallery")
    if family == "simulate" and name in gallery.SKELETONS:
        made["skeleton"] = {"gallery": name}
    if family == "transfer" and name in gallery.CAGES:
        made["cage"] = {"gallery": name}
    return made


def _has_shapes(file: str | None) -> bool:
    if file is None:
        return False
    try:
        return len(pliant.read_shapes(file)) > 1
    except FileError:
        return False


def _confined(document: Document) -> Document:
    """Without results that would go elsewhere than below the scene."""
    said = document.get("output", {})
    within = {key: name for key, name in said.items() if not Path(name).is_absolute() and ".." not in Path(name).parts}
    kept = {key: value for key, value in document.items() if key != "output"}
    return kept | ({"output": within} if within else {})

"""Scene files: what an engine is to do, declared in TOML, checked, and ready to run.

    scene = read_scene("gallop.toml")
    result = scene.run()
    write_scene("copy.toml", {"engine": "transfer", ...})

A scene names its engine (``engine = "transfer"``), and files from its own folder on. Errors are one
line with the file, the line and the key; for an unknown key they suggest the closest known one.
"""

from __future__ import annotations

from typing import Any

from pliant.app.scene.located_toml import TomlText, read_toml
from pliant.app.scene.output import Output, output_in
from pliant.app.scene.writing import scene_text, unwritten, write_scene
from pliant.core.errors import FileError
from pliant.engines.registry import ENGINES, Engine, engine_named
from pliant.former import attribute as __getattr__  # noqa: F401
from pliant.io.source import PathLike, find

Scene = Any
"""A scene of any engine: what its ``read`` gives, such as `pliant.engines.blend.BlendScene`."""


def read_scene(path: PathLike, **changes: Any) -> Scene:
    """The scene in a file; `changes` that are not None count instead of what it says.

    Of a blend: frames, fps, jobs; of a transfer: faces, frames, fps; of a simulation: nodes, fps.
    """
    return scene_in(_text(path), **changes)


def scene_from(document: dict[str, Any], folder: PathLike, **changes: Any) -> Scene:
    """The scene of a document that is in no file, such as `write_scene` takes; its paths start from the folder."""
    return scene_in(unwritten(document, folder), **changes)


def scene_in(text: TomlText, **changes: Any) -> Scene:
    """The scene of a document, wherever that is from."""
    engine = _engine(text)
    given = {name: value for name, value in changes.items() if value is not None}
    other = [name for name in given if name not in engine.changes]
    if other:
        raise text.error(f'"{other[0]}" means nothing to the engine "{engine.name}"; leave it out', ("engine",))
    return engine.part("read")(text, **given)


def engine_of(path: PathLike) -> str:
    """Which engine the scene in a file is for."""
    return _engine(_text(path)).name


def output_of(path: PathLike) -> Output:
    """Where the results of the scene in a file are to go."""
    return output_in(_text(path))


def document_in(path: PathLike) -> dict[str, Any]:
    """What a scene file says, as `write_scene` would take it; only its engine is checked."""
    text = _text(path)
    _engine(text)
    return dict(text.content)


def _text(path: PathLike) -> TomlText:
    sources = find(path, lambda name: name.endswith(".toml"))
    if len(sources) != 1:
        raise FileError(path, f"holds {len(sources)} scene files; expected the name of one, such as scene.toml")
    return read_toml(sources[0])


def _engine(text: TomlText) -> Engine:
    """The engine that a document names; a former name is replaced by the one that it has now."""
    if "engine" not in text.content:
        named = " or ".join(f'"{name}"' for name in ENGINES)
        raise text.error(f"is missing; expected {named}", ("engine",))
    with text.about(("engine",)):
        engine = engine_named(text.content["engine"])
    text.content["engine"] = engine.name
    return engine


__all__ = [
    "ENGINES",
    "Output",
    "Scene",
    "document_in",
    "engine_of",
    "output_of",
    "read_scene",
    "scene_from",
    "scene_in",
    "scene_text",
    "write_scene",
]

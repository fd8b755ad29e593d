"""Scene files: what an engine is to do, declared in TOML, checked, and ready to run.

    scene = read_scene("gallop.toml")
    result = scene.run()
    write_scene("copy.toml", {"engine": "transfer", ...})

A scene names its engine (``engine = "transfer"``), and files from its own folder on. Whatever is wrong is said in one
line with the file, the line and the key; a key that does not exist comes with the closest one that does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pliant.errors import FileError
from pliant.io.source import PathLike, find
from pliant.options import closest, shown
from pliant.scene.blend import BlendScene, read_blend
from pliant.scene.cage import CageScene, read_cage
from pliant.scene.elastic import ElasticScene, read_elastic
from pliant.scene.located_toml import TomlText, read_toml
from pliant.scene.output import Output, output_in
from pliant.scene.transfer import TransferScene, read_transfer
from pliant.scene.writing import scene_text, unwritten, write_scene

Scene = BlendScene | CageScene | TransferScene | ElasticScene
ENGINES: dict[str, Callable[..., Scene]] = {
    "blend": read_blend,
    "cage": read_cage,
    "transfer": read_transfer,
    "elastic": read_elastic,
}
CHANGES = {
    "blend": ("frames", "fps"),
    "cage": ("faces", "frames", "fps"),
    "transfer": ("faces", "frames", "fps"),
    "elastic": ("nodes", "fps"),
}


def read_scene(path: PathLike, **changes: Any) -> Scene:
    """The scene in a file; `changes` that are not None count instead of what it says.

    Of a blend: frames, fps; of a cage or a transfer: faces, frames, fps; of an elastic body: nodes, fps.
    """
    return _scene(_text(path), changes)


def scene_from(document: dict[str, Any], folder: PathLike, **changes: Any) -> Scene:
    """The scene of a document that is in no file, such as `write_scene` takes; its paths start from the folder."""
    return _scene(unwritten(document, folder), changes)


def _scene(text: TomlText, changes: dict[str, Any]) -> Scene:
    engine = _engine(text)
    given = {name: value for name, value in changes.items() if value is not None}
    other = [name for name in given if name not in CHANGES[engine]]
    if other:
        raise text.error(f'"{other[0]}" means nothing to the engine "{engine}"; leave it out', ("engine",))
    return ENGINES[engine](text, **given)


def engine_of(path: PathLike) -> str:
    """Which engine the scene in a file is for."""
    return _engine(_text(path))


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


def _engine(text: TomlText) -> str:
    engine = text.content.get("engine")
    if engine is None:
        named = " or ".join(f'"{name}"' for name in ENGINES)
        raise text.error(f"is missing; expected {named}", ("engine",))
    if not isinstance(engine, str) or engine not in ENGINES:
        hint = closest(engine, list(ENGINES)) if isinstance(engine, str) else f"expected one of {', '.join(ENGINES)}"
        raise text.error(f"there is no engine {shown(engine)}; {hint}", ("engine",))
    return engine


__all__ = [
    "ENGINES",
    "BlendScene",
    "CageScene",
    "ElasticScene",
    "Output",
    "Scene",
    "TransferScene",
    "document_in",
    "engine_of",
    "output_of",
    "read_scene",
    "scene_from",
    "scene_text",
    "write_scene",
]

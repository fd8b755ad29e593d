"""Scene files: what an engine is to do, declared in TOML, checked, and ready to run.

    scene = read_scene("gallop.toml")
    result = scene.run()

A scene names its engine (``engine = "transfer"``), and files from its own folder on. Whatever is wrong is said in one
line with the file, the line and the key; a key that does not exist comes with the closest one that does.
"""

from __future__ import annotations

from typing import Any

from pliant.errors import FileError
from pliant.io.source import PathLike, find
from pliant.scene.located_toml import read_toml
from pliant.scene.schema import closest, shown
from pliant.scene.transfer import TransferScene, read_transfer

ENGINES = {"transfer": read_transfer}


def read_scene(path: PathLike, **changes: Any) -> TransferScene:
    """The scene in a file; `changes` count instead of what it says (of a transfer: faces, frames, fps)."""
    sources = find(path, lambda name: name.endswith(".toml"))
    if len(sources) != 1:
        raise FileError(path, f"holds {len(sources)} scene files; expected the name of one, such as scene.toml")
    text = read_toml(sources[0])
    engine = text.content.get("engine")
    if engine is None:
        raise text.error(f'"engine" is missing; expected engine = "{next(iter(ENGINES))}"')
    if not isinstance(engine, str) or engine not in ENGINES:
        hint = closest(engine, list(ENGINES)) if isinstance(engine, str) else f"expected one of {', '.join(ENGINES)}"
        raise text.error(f"there is no engine {shown(engine)}; {hint}", ("engine",))
    return ENGINES[engine](text, **changes)


__all__ = ["ENGINES", "TransferScene", "read_scene"]

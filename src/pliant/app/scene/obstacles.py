"""What a shape gives way to, as scenes of every engine say it: tables [[obstacles]]."""

from __future__ import annotations

from typing import Any

from pliant.app.scene.located_toml import Path, TomlText
from pliant.app.scene.media import from_scene
from pliant.app.scene.schema import FileName, Key, ListOf, Record
from pliant.contact import MovingObstacle
from pliant.contact.named_obstacles import is_solid, named_obstacle

OBSTACLE_RECORD = Record(
    {
        "what": Key(FileName("a closed mesh, a clip of one, or a solid such as sphere:X,Y,Z,R", not_for=is_solid),
                    "what is in the way", required=True),
        "motion": Key(FileName("a file with keyframes or a clip of the mesh"), "how it moves; without one, it stays"),
    }
)  # fmt: skip
OBSTACLES = Key(ListOf(OBSTACLE_RECORD, "tables [[obstacles]]"), "what it gives way to", default=[])


def read_obstacles(text: TomlText, entries: list[dict[str, Any]]) -> list[MovingObstacle]:
    """The obstacles of a scene, with their motions."""
    return [_obstacle(text, entry, k) for k, entry in enumerate(entries)]


def obstacle_summary(scene: Any) -> dict[str, str]:
    """What stands in the way of a scene, in words; empty if nothing does."""
    entries = [] if scene.text is None else scene.text.content.get("obstacles", [])
    moved = [f"{entry['what']} moved by {entry['motion']}" if "motion" in entry else entry["what"] for entry in entries]
    names = moved or list(scene.obstacle_names)
    return {"obstacles": "; ".join(names)} if scene.obstacles else {}


def _obstacle(text: TomlText, entry: dict[str, Any], number: int) -> MovingObstacle:
    key: Path = ("obstacles", number)
    what = entry["what"] if is_solid(entry["what"]) else from_scene(text, entry["what"])
    with text.about((*key, "what"), {("motion",): (*key, "motion")}):
        return named_obstacle(what, from_scene(text, entry["motion"]) if entry["motion"] else None)

"""What a shape gives way to, as scenes of every engine say it: tables [[obstacles]]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pliant
from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.media import from_scene
from pliant.app.scene.schema import FileName, Key, ListOf, Record
from pliant.contact import MovingObstacle, as_obstacle, parse_obstacle, read_motion
from pliant.contact.obstacle_files import OBSTACLE_KINDS
from pliant.core.errors import FileError, InputError, about_argument
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.naming import is_numbered
from pliant.io.source import find

KEYFRAME_SUFFIXES = (".csv", ".json", ".txt")
"""Suffixes of files with keyframes; others hold clips."""


def is_solid(what: str) -> bool:
    """Whether words mean a solid, such as ``sphere:0,0,0,1``, and not a file."""
    return what.partition(":")[0].strip().lower() in OBSTACLE_KINDS


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
    """What stands in the way of a scene, as text; empty if nothing does."""
    entries = [] if scene.text is None else scene.text.content.get("obstacles", [])
    moved = [f"{entry['what']} moved by {entry['motion']}" if "motion" in entry else entry["what"] for entry in entries]
    names = moved or list(scene.obstacle_names)
    return {"obstacles": "; ".join(names)} if scene.obstacles else {}


def _obstacle(text: TomlText, entry: dict[str, Any], number: int) -> MovingObstacle:
    key: KeyPath = ("obstacles", number)
    what = entry["what"] if is_solid(entry["what"]) else from_scene(text, entry["what"])
    with text.about((*key, "what"), {("motion",): (*key, "motion")}):
        return named_obstacle(what, from_scene(text, entry["motion"]) if entry["motion"] else None)


def named_obstacle(what: str, motion: str | None = None) -> MovingObstacle:
    """An obstacle as named, with its motion; without one, it stays where it is."""
    if _is_clip(what):
        if motion is not None:
            problem = f'the obstacle "{what}" is a clip already; leave out its motion, or say "none"'
            raise InputError(problem, argument="motion")
        return _deforming(what, pliant.read_animation(what))
    if motion is None:
        return as_obstacle(parse_obstacle(what))
    if Path(motion).suffix.lower() in KEYFRAME_SUFFIXES:
        obstacle = parse_obstacle(what)
        with about_argument("motion"):
            return MovingObstacle(obstacle, read_motion(motion))
    with about_argument("motion"):
        if is_solid(what):
            raise FileError(motion, f'a clip cannot move "{what}"; expected keyframes in a .csv or .json file')
        clip = pliant.read_animation(motion)
    mesh = pliant.read_mesh(what)
    with about_argument("motion"):
        if len(mesh.points) != clip.points.shape[1]:
            raise FileError(motion, f"moves {clip.points.shape[1]} points; the obstacle {what} has {len(mesh.points)}")
        return _deforming(motion, pliant.Animation(mesh, clip.points, clip.fps))


def _deforming(path: str, clip: pliant.Animation) -> MovingObstacle:
    if isinstance(clip.shape, pliant.PointCloud):
        raise FileError(path, "moves points, not a mesh; give the mesh, and this as its motion (--obstacle-motion)")
    try:
        return as_obstacle(clip)
    except FileError:
        raise
    except InputError as error:
        raise FileError(path, str(error)) from None


def _is_clip(what: str) -> bool:
    """Whether a name means a clip, and not a solid or a mesh that stays as it is."""
    if is_solid(what) or not what.strip():
        return False
    try:
        sources = find(what, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
    except FileError:  # no such file: whoever reads it will say so
        return False
    if len(sources) > 1:
        return is_numbered([source.stem for source in sources])
    return bool(sources) and kinds_in(sources[0])[0] == "animation"

"""Scenes of every engine that are quick to run, and what can be done wrong in them, key by key."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant import gallery
from pliant.app.scene.located_toml import TomlText
from pliant.app.scene.schema import FileName, ListOf, Named, Record, Text, read_as
from pliant.core.errors import FileError
from pliant.core.options import Choice, Either, Flag, Kind, Number, Row, Whole
from pliant.engines.registry import ENGINES
from pliant.engines.transfer.build import build_cage
from pliant.gallery.primitives import sphere_mesh
from pliant.io.source import Source

BONES = [
    {"name": "root", "at": [0.0, 0.1, 0.0]},
    {"name": "tip", "parent": "root", "at": [0.0, 0.5, 0.0], "end": [0.0, 0.9, 0.0]},
]
TURN = {"axis": [0, 0, 1], "degrees": 30}
SCENES: dict[str, dict[str, Any]] = {
    "blend": {
        "engine": "blend", "frames": 2, "fps": 24.0, "anchor": [0.0, 0.5, 0.0], "friction": 0.1, "thickness": 0.001,
        "weights": [{}, {"bent": 0.5}],
        "shapes": {"files": ["straight.obj", "bent.obj"], "base": "straight"},
        "springs": {"interior": "none", "model": "turned", "accuracy": 0.01, "iterations": 20,
                    "stiffness": {"bending": 0.5}},
        "pulls": [{"vertex": 3, "to": [0.1, 0.0, 0.0]}],
        "obstacles": [{"what": "sphere:0.6,0.5,0,0.3", "motion": "keys.csv"}],
        "output": {"file": "out.npz"},
    },
    "gallery": {
        "engine": "blend", "frames": 2, "pins": [0, 1],
        "shapes": {"gallery": "tube", "vertices": 500, "names": ["straight", "bent 120"]},
        "springs": {"interior": "none", "accuracy": 0.1},
    },
    "elastic": {
        "engine": "simulate", "nodes": 120, "hold": 0.05, "gravity": 9.81, "friction": 0.1, "damping": 0.01, "dt": 0.05,
        "fps": 20.0, "size": 1.0,
        "shape": {"file": "straight.obj"},
        "skeleton": {"bones": BONES},
        "motion": {"fps": 20.0, "keys": [{"time": 0.1, "turns": {"tip": TURN}}]},
        "material": {"young": 1e5, "poisson": 0.4, "density": 1000.0},
        "regions": [{"name": "tip", "young": 1e6}, {"centre": [0.0, 0.8, 0.0], "radius": 0.2, "young": 2e5}],
        "muscles": {"m": {"name": "root", "tension": 1e4, "activation": {"joint": "tip", "angles": [0, 40]}}},
        "obstacles": [{"what": "plane:0,-0.5,0,0,1,0"}],
    },
    "static": {
        "engine": "simulate", "static": True, "nodes": 120,
        "shape": {"file": "straight.obj"},
        "skeleton": {"file": "bones.json"},
        "motion": {"file": "walk.npz", "first": 0, "last": 1, "map": {"tip": "tip", "root": "root"}},
    },
    "cage": {
        "engine": "transfer", "frames": 2, "lattice": 12,
        "target": {"file": "straight.obj"},
        "cage": {"file": "cage.obj"},
        "weights": {"gradient": 40.0, "length": 1.0},
        "gradients": [{"at": 0, "turn": TURN, "stretch": [1.0, 1.1, 1.0]}],
        "positions": [{"at": [0.0, 0.5, 0.0]}, {"at": 1, "to": [0.2, 0.0, 0.0]}],
        "lengths": [[0, 1]],
    },
    "transfer": {
        "engine": "transfer", "frames": 2, "lattice": 12, "held": [0],
        "sources": {"walk": {"file": "walk.npz", "along": 0.5, "without": ["hand"]}},
        "target": {"file": "straight.obj"},
        "cage": {"faces": 40, "margin": 0.1},
        "controls": [{"at": 5, "track": "tip", "after": TURN}],
        "follow": [{"at": 1, "track": "walk/root", "scale": 1.0}],
    },
    "automatic": {
        "engine": "transfer", "frames": 2, "lattice": 12, "controls": "auto", "groups": 3,
        "sources": {"clip": {"file": "clip.npz", "rest": 0}},
        "target": {"file": "straight.obj"},
        "cage": {"file": "cage.obj"},
    },
}  # fmt: skip
FILES = (
    "none.obj", "scene.toml", "notes.txt", "empty.obj", "plane.obj", "far.obj", "bent.obj", "sphere.obj", "points.ply",
    "cage.obj", "bones.json", "large.json", "walk.npz", "clip.npz", "keys.csv", "pins.json", ".", "*.obj",
)  # fmt: skip
"""Files that are missing, of the wrong kind, of the wrong size, or elsewhere."""


def write_files(folder: Path) -> None:
    """What the scenes name, and what they might name by mistake."""
    bar = gallery.tube(500).named("straight")
    low, high = bar.points.min(axis=0), bar.points.max(axis=0)
    straight = bar.with_points((bar.points - (low + high) / 2) / (high - low).max() + [0, 0.5, 0])
    x, y, z = straight.points.T
    bent = straight.with_points(np.stack([x + 0.3 * y * y, y, z], axis=1))
    cage = build_cage(straight, faces=40)
    skeleton = pliant.Skeleton.from_positions(
        [[0, 0.1, 0], [0, 0.5, 0], [0, 0.9, 0]], [-1, 0, 1], ["root", "tip", "hand"]
    )
    rest = skeleton.rest_pose()
    large = pliant.Skeleton(skeleton.names, skeleton.parents, 1000 * skeleton.offsets)
    turned = skeleton.pose({"tip": [np.cos(0.2), 0, 0, np.sin(0.2)]})
    motion = pliant.Motion(
        skeleton,
        np.stack([rest.rotations, turned.rotations, turned.rotations]),
        np.stack([rest.translations] * 3),
        30.0,
        "walk",
    )
    made: dict[str, Any] = {
        "straight.obj": straight, "bent.obj": bent, "cage.obj": cage, "sphere.obj": sphere_mesh(60, 1.0),
        "far.obj": straight.with_points(straight.points + 100), "points.ply": pliant.PointCloud(straight.points),
        "plane.obj": pliant.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]),
        "bones.json": skeleton, "large.json": large, "walk.npz": motion,
        "clip.npz": pliant.Animation(straight, np.stack([straight.points, bent.points])),
    }  # fmt: skip
    for name, content in made.items():
        pliant.write(folder / name, content)
    (folder / "keys.csv").write_text("frame,x,y,z\n0,0,0,0\n1,0.1,0,0\n")
    (folder / "pins.json").write_text('{"vertices": [0], "path": [[[0, 0, 0]], [[0, 1, 0]], [[0, 2, 0]]]}')
    (folder / "notes.txt").write_text("nothing\n")
    (folder / "empty.obj").write_text("")


NUMBERS = (0, -1, 1, 7, 10**6, 2.5, 1e-9, 1e11, 1e300, math.nan, math.inf, -math.inf)
OTHERS = ("x", "", True, [], {}, [0, 0, 0], [math.nan, 0, 0], [0, 0, 0, 0], [1, 2], [[0, 0, 0]], {"x": 1})


def changed(document: dict[str, Any], path: tuple[int | str, ...], value: Any) -> dict[str, Any]:
    """The document with another value there; ... leaves it out."""
    made = copy.deepcopy(document)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return made


def mutations(document: dict[str, Any]) -> Iterator[tuple[tuple[int | str, ...], Any]]:
    """What may be done to each key that is there, and keys that might be."""
    for path, value, kind in _values(ENGINES[document["engine"]].record(document), document, ()):
        if path:
            yield from ((path, other) for other in (..., *NUMBERS, *OTHERS))
            if isinstance(value, str):
                yield from ((path, name) for name in FILES)
            if isinstance(value, list) and value:
                yield path, [*value, value[0]]
                yield path, value[:-1]
        if isinstance(kind, Record):
            yield (*path, "colour"), 1
            for name, key in kind.keys.items():
                if name not in value:
                    yield from (((*path, name), sample) for sample in _samples(key.kind))


def _values(kind: Kind, value: Any, path: tuple[int | str, ...]) -> Iterator[tuple[Any, Any, Kind]]:
    """Every value in a document, with its path and its kind."""
    yield path, value, kind
    if isinstance(kind, Either):
        yield from _below(next(one for one in kind.kinds if one.takes(value)), value, path)
    else:
        yield from _below(kind, value, path)


def _below(kind: Kind, value: Any, path: tuple[int | str, ...]) -> Iterator[tuple[Any, Any, Kind]]:
    if isinstance(kind, Record):
        for name, entry in value.items():
            yield from _values(kind.keys[name].kind, entry, (*path, name))
    elif isinstance(kind, (ListOf, Row)):
        for k, entry in enumerate(value):
            yield from _values(kind.kind if isinstance(kind, ListOf) else kind.inner, entry, (*path, k))
    elif isinstance(kind, Named):
        for name, entry in value.items():
            yield from _values(kind.kind, entry, (*path, name))


def _samples(kind: Kind) -> list[Any]:
    """Values that a kind may take, and some that it may not."""
    if isinstance(kind, Choice):
        return list(kind.choices)
    if isinstance(kind, FileName):
        return list(FILES)
    if isinstance(kind, Text):
        return ["x", "tip", "straight"]
    if isinstance(kind, Flag):
        return [True, False]
    if isinstance(kind, Number):
        return [0.5, 10.0, math.nan]
    if isinstance(kind, Whole):
        return [max(kind.least, 3), kind.most]
    if isinstance(kind, Row):
        return [np.zeros(kind.shape).tolist(), np.eye(*kind.shape).tolist() if len(kind.shape) > 1 else [0.1, 0.5, 0.0]]
    if isinstance(kind, Either):
        return [sample for one in kind.kinds for sample in _samples(one)]
    if isinstance(kind, ListOf):
        return [[sample] for sample in _samples(kind.kind)]
    if isinstance(kind, Named):
        return [{name: sample} for name in ("tip", "x") for sample in _samples(kind.kind)]
    assert isinstance(kind, Record)
    first = {name: _samples(key.kind)[0] for name, key in kind.keys.items()}
    return [first, *({name: first[name]} for name in first)]


def is_declared(document: dict[str, Any], engine: str) -> bool:
    """Whether a document has the keys and the kinds of values that scenes of an engine may have."""
    try:
        read_as(ENGINES[engine].record(document), unlocated(document), document, ())
    except FileError:
        return False
    return True


def unlocated(document: dict[str, Any]) -> TomlText:
    """A document that may hold what `write_scene` refuses to write, such as NaN."""
    return TomlText(Source(Path("scene.toml")), document, {})


def toml(document: dict[str, Any]) -> str:
    """A line for each key; unlike `scene_text` also of NaN and infinity."""
    return "".join(f"{key} = {_inline(value)}\n" for key, value in document.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_inline(entry)}' for key, entry in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value)

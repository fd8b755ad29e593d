"""Obstacles as text, ``sphere:0,1,0,0.5`` or a mesh file, and their keyframes from CSV and JSON files."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pliant.contact.mesh_obstacle import MeshObstacle
from pliant.contact.obstacles import Keyframe, Obstacle
from pliant.contact.solids import Box, Capsule, Cylinder, HalfSpace, Sphere
from pliant.core import rotations
from pliant.core.errors import FileError, InputError
from pliant.core.rotations import IDENTITY
from pliant.core.topology import Floats
from pliant.io import read_mesh
from pliant.io.located_json import JsonText, read_json
from pliant.io.source import PathLike, Source, text_of

OBSTACLE_KINDS: dict[str, tuple[str, Callable[[Floats], Obstacle]]] = {
    "sphere": ("X,Y,Z,R", lambda n: Sphere(n[:3], n[3])),
    "capsule": ("X,Y,Z,X,Y,Z,R", lambda n: Capsule(n[:3], n[3:6], n[6])),
    "cylinder": ("X,Y,Z,X,Y,Z,R", lambda n: Cylinder(n[:3], n[3:6], n[6])),
    "box": (
        "X,Y,Z,SX,SY,SZ[,AX,AY,AZ]",
        lambda n: Box(n[:3], n[3:6], rotations.exp(np.radians(n[6:])) if len(n) > 6 else IDENTITY),
    ),
    "plane": ("X,Y,Z,NX,NY,NZ", lambda n: HalfSpace(n[:3], n[3:6])),
}
"""What can be named in one word: its numbers, those in brackets if wanted, and what they make. AX,AY,AZ: an axis that
it is rotated about, as long as the degrees."""


def parse_obstacle(text: str) -> Obstacle:
    """An obstacle from a command line: ``sphere:X,Y,Z,R`` and so on (see `OBSTACLE_KINDS`), or a closed mesh file.

    Below the plane, where its normal does not point, is solid.
    """
    kind, colon, rest = str(text).partition(":")
    kind = kind.strip().lower()
    if colon and kind in OBSTACLE_KINDS:
        form, make = OBSTACLE_KINDS[kind]
        numbers = _numbers(rest)
        if numbers is None or len(numbers) not in (form.count(",") + 1, form.partition("[")[0].count(",") + 1):
            raise InputError(f'the obstacle is "{text:.80}"; expected {kind}:{form}, numbers parted by commas')
        try:
            return make(np.array(numbers))
        except InputError as error:
            raise InputError(f'the obstacle "{text:.80}": {error}') from None
    if colon and len(kind) > 1 and _numbers(rest) is not None:
        raise InputError(
            f'there is no obstacle called "{kind:.40}"; expected {", ".join(OBSTACLE_KINDS)}, or a mesh file'
        )
    if not str(text).strip():
        raise InputError(
            f"the obstacle is empty; expected {', '.join(OBSTACLE_KINDS)} with its numbers, or a mesh file"
        )
    mesh = read_mesh(text)
    try:
        return MeshObstacle(mesh)
    except InputError as error:
        raise FileError(text, str(error)) from None


def _numbers(text: str) -> list[float] | None:
    """Numbers parted by commas; None if some are not."""
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def read_motion(path: PathLike) -> list[Keyframe]:
    """Keyframes from a file: CSV with the columns frame,x,y,z[,qw,qx,qy,qz] (a header is optional), or JSON.

    JSON: ``[{"frame": 0, "translate": [x, y, z], "rotate": [w, x, y, z]}, ...]``; either of the two may be left out.
    """
    source = Source(Path(path))
    keys = _keys_from_json(source) if source.suffix == ".json" else _keys_from_csv(source, text_of(source))
    if not keys:
        raise source.error("has no keyframes; expected lines of frame,x,y,z or frame,x,y,z,qw,qx,qy,qz")
    return keys


def _keys_from_csv(source: Source, text: str) -> list[Keyframe]:
    keys: dict[float, Keyframe] = {}
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in next(csv.reader([line.split("#")[0]]), [])]
        if not any(cells) or (not keys and re.fullmatch(r"[A-Za-z_]+", cells[0])):
            continue
        numbers = _numbers(",".join(cells))
        if numbers is None or len(numbers) not in (4, 8):
            expected = "expected frame,x,y,z or frame,x,y,z,qw,qx,qy,qz"
            raise source.error(f'"{line:.60}" is no keyframe; {expected}', location=f"line {number}")
        try:
            _add_key(keys, numbers[0], numbers[1:4], numbers[4:])
        except InputError as error:
            raise source.error(str(error), location=f"line {number}") from None
    return list(keys.values())


def _keys_from_json(source: Source) -> list[Keyframe]:
    document = read_json(source)
    expected = '{"frame": 0, "translate": [x, y, z], "rotate": [w, x, y, z]}'
    if not isinstance(document.content, list):
        raise document.error(f"expected a list of {expected}")
    keys: dict[float, Keyframe] = {}
    for k, entry in enumerate(document.content):
        if not isinstance(entry, dict) or "frame" not in entry:
            raise document.error(f"expected {expected}", (k,))
        for name in entry:
            if name not in ("frame", "translate", "rotate"):
                raise document.error(f'"{name}" is not known here; expected {expected}', (k, name))
        frame = document.number(entry["frame"], (k, "frame"))
        translation = _listed(document, k, "translate", 3) or [0.0, 0.0, 0.0]
        try:
            _add_key(keys, frame, translation, _listed(document, k, "rotate", 4))
        except FileError:
            raise
        except InputError as error:
            raise document.error(str(error), (k,)) from None
    return list(keys.values())


def _listed(document: JsonText, k: int, name: str, count: int) -> list[float]:
    """The numbers that an entry has under a name; none if it does not have it."""
    values = document.content[k].get(name)
    if values is None:
        return []
    if not isinstance(values, list) or len(values) != count:
        raise document.error(f"expected a list of {count} numbers", (k, name))
    return [document.number(value, (k, name, i)) for i, value in enumerate(values)]


def _add_key(keys: dict[float, Keyframe], frame: float, translation: list[float], rotation: list[float]) -> None:
    if frame in keys:
        raise InputError(f"frame {frame:g} is there twice; expected one keyframe for each frame")
    rotation = rotation or IDENTITY.tolist()
    if not any(rotation):
        raise InputError("the rotation is zero; expected a quaternion qw,qx,qy,qz, such as 1,0,0,0")
    keys[frame] = frame, tuple(translation), tuple(rotations.normalize(rotation).tolist())

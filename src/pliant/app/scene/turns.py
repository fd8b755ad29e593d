"""Turns, as scenes may say them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.app.scene.located_toml import Path, TomlText
from pliant.app.scene.schema import Key, ListOf, Record
from pliant.core import rotations
from pliant.core.alignment import aligning_rotation, as_rotation
from pliant.core.options import DIRECTION, POINT, Either, Number, Row
from pliant.core.topology import Floats

TURN = Either(
    (
        Row((4,), "a quaternion [w, x, y, z]", nonzero=True),
        Row((3, 3), "a rotation matrix, three rows of three"),
        Record(
            {
                "axis": Key(DIRECTION, "what to turn about"),
                "degrees": Key(Number(expected="an angle in degrees"), "by how much"),
                "from": Key(ListOf(POINT, "two or more points", least=2), "points before the turn"),
                "to": Key(ListOf(POINT, "two or more points", least=2), "the same points after it, wherever they are"),
            },
            expected="{ axis = [x, y, z], degrees = 90 }, or { from = [two points or more], to = [as many] }",
            one_of=("axis", "from"),
            only_with={"axis": "degrees", "degrees": "axis", "from": "to", "to": "from"},
        ),
    )
)


def turn(text: TomlText, said: Any, path: Path) -> Floats | None:
    """(3, 3) a rotation, from a quaternion, rows, an axis and an angle, or points before and after it."""
    with text.about(path):
        if not isinstance(said, dict):
            return None if said is None else as_rotation(said, "it")
        if said["from"] is not None:
            return aligning_rotation(said["from"], said["to"])
        return rotations.matrix(rotations.from_axis_angle(said["axis"], np.radians(said["degrees"])))


def turn_vector(text: TomlText, said: Any, path: Path) -> Floats:
    """(3,) axis times radians of a turn: past 180° where an axis and an angle say so, and else the short way."""
    R = turn(text, said, path)
    if isinstance(said, dict) and said["axis"] is not None:
        return np.array(said["axis"]) / np.linalg.norm(said["axis"]) * np.radians(said["degrees"])
    return rotations.log(rotations.shortest(rotations.quaternion(np.eye(3) if R is None else R)))

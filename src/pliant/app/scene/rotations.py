"""Rotations in scene files: as a quaternion, a matrix, an axis and an angle, or points before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.schema import Key, ListOf, Record
from pliant.core import rotations
from pliant.core.options import DIRECTION, POINT, Either, Number, Row
from pliant.core.rotations import aligning_rotation, as_rotation
from pliant.core.topology import Floats

ROTATION_KIND = Either(
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


def read_rotation(text: TomlText, table: Any, path: KeyPath) -> Floats | None:
    """(3, 3) a rotation, from a quaternion, rows, an axis and an angle, or points before and after it."""
    with text.about(path):
        if not isinstance(table, dict):
            return None if table is None else as_rotation(table, "it")
        if table["from"] is not None:
            return aligning_rotation(table["from"], table["to"])
        return rotations.matrix(rotations.from_axis_angle(table["axis"], np.radians(table["degrees"])))


def rotation_vector(text: TomlText, table: Any, path: KeyPath) -> Floats:
    """(3,) axis times radians of a turn: past 180° where an axis and an angle say so, and else the short way."""
    R = read_rotation(text, table, path)
    if isinstance(table, dict) and table["axis"] is not None:
        return np.array(table["axis"]) / np.linalg.norm(table["axis"]) * np.radians(table["degrees"])
    return rotations.log(rotations.shortest(rotations.quaternion(np.eye(3) if R is None else R)))

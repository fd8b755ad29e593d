"""Muscles of a scene, ``[muscles.NAME]``: what may be said of them, and the `Muscle`s that come of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.media import from_scene
from pliant.app.scene.regions import LOCATOR_PAIRS, LOCATORS, read_region, region_keys
from pliant.app.scene.schema import FileName, Key, ListOf, Named, Record, Text, option_keys
from pliant.core.options import DIRECTION, Either, Number, Row
from pliant.core.skeleton import Motion
from pliant.engines.simulate.options import MuscleOptions
from pliant.io.shape_names import ShapeNames
from pliant.io.source import Source
from pliant.io.weight_tables import WEIGHT_TABLES, read_table

if TYPE_CHECKING:
    from pliant.engines.simulate.muscles import Activation, Muscle

OPTION_KEYS = option_keys(MuscleOptions)
SHARE = Number(-1e-300, math.nextafter(1, 2), "a number from 0 to 1")
ACTIVATION_FILE = FileName("the name of a .csv or .json, a column for each muscle")
FLEXION_RECORD = Record(
    {
        "joint": Key(Text("the name of a joint"), "whose rotation from rest activates it", required=True),
        "angles": replace(OPTION_KEYS["angles"], default=list(MuscleOptions.angles)),
    }
)
ACTIVATION = Either(
    (
        SHARE,
        ListOf(Row((2,), "seconds and a value"), "keys, [[seconds, value], ...]", least=1),
        FLEXION_RECORD,
        ACTIVATION_FILE,
    )
)
ENDS = Row((2, 3), "two points, [[x, y, z], [x, y, z]]")
MUSCLE_RECORD = Record(
    {
        **region_keys(", or a joint; the muscle's own name, if none of name, map and centre is given", "has fibres"),
        "direction": Key(
            Either((DIRECTION, ENDS, Text("the name of a joint"))),
            "how fibres run at rest: along a vector, from one point to another, spreading in between, or along the "
            "bone of a joint (default: along the longest axis of the part)",
        ),
        "tension": OPTION_KEYS["tension"],
        "activation": Key(
            ACTIVATION,
            "how much of it acts: a number; values at times, linear in between; by the rotation of a joint; or a table "
            "with a row for each frame of the motion, unless its rows have times (default: 1)",
            default=1.0,
        ),
    },
    most_one_of=LOCATORS,
    only_with=LOCATOR_PAIRS,
)
MUSCLES_KEY = Key(
    Named(MUSCLE_RECORD, "tables [muscles.NAME]"), "parts with fibres, which shorten and bulge as they act", default={}
)


def read_muscles(text: TomlText, tables: Mapping[str, dict[str, Any]], motion: Motion) -> list[Muscle]:
    """The muscles of a scene. motion: what moves its bones."""
    from pliant.engines.simulate.muscles import Muscle

    made = []
    for name, table in tables.items():
        path = ("muscles", name)
        anywhere = not any(table[key] for key in LOCATORS)
        region = read_region(text, table | {"name": name} if anywhere else table, path)
        with text.about(path, {(key,): (*path, key) for key in (*MUSCLE_RECORD.keys, "angles")}):
            act = _activation(text, table["activation"], name, list(tables), (*path, "activation"), motion)
            made.append(Muscle(region, act, table["direction"], table["tension"], name))
    return made


def _activation(text: TomlText, given: Any, name: str, names: list[str], path: KeyPath, motion: Motion) -> Activation:
    from pliant.engines.simulate.muscles import Flexion

    if isinstance(given, dict):
        with text.about(path, {("angles",): (*path, "angles")}):
            return Flexion(**given)
    if not isinstance(given, str):
        return given
    with text.about(path):
        source = Source(Path(from_scene(text, given)))
        if source.suffix not in WEIGHT_TABLES:
            raise source.error(f"is no table; expected one of {' '.join(WEIGHT_TABLES)}")
        table = read_table(source, ShapeNames(names, others=True))
    if not table.values[:, names.index(name)].any():
        raise text.error(f'"{given}" never activates it: it has no column "{name}", or only zeros in it', path)
    if table.fps is None and len(table) != len(motion):
        expected = f"expected one for each of the motion's {len(motion)} frames, or a column of seconds"
        raise text.error(f'"{given}" has {len(table)} rows; {expected}', path)
    return table if table.fps else table.resampled(motion.fps)


def muscle_keys(muscles: list[Muscle]) -> dict[KeyPath, KeyPath]:
    """By argument of `ElasticBody.simulate`, the keys of the scene that say it."""
    keys: dict[KeyPath, KeyPath] = {("muscles",): ("muscles",)}
    for k, muscle in enumerate(muscles):
        keys |= {("muscles", k): ("muscles", muscle.name), ("muscles", k, "region"): ("muscles", muscle.name, "name")}
    return keys

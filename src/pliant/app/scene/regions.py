"""Parts of a surface that a scene names: keys of the tables [[regions]], and flags that write one of them."""

from __future__ import annotations

from typing import Any

from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.media import from_scene
from pliant.app.scene.schema import FileName, Key, Text
from pliant.core.options import POINT, POSITIVE
from pliant.core.regions import Sphere
from pliant.geometry.regions import Region
from pliant.io.pictures import IMAGE_SUFFIXES, read_grey_map

LOCATORS = ("name", "map", "centre")
"""Keys of a region of which exactly one says where it is."""
LOCATOR_PAIRS = {"centre": "radius", "radius": "centre"}
REGION_NAMES = "a vertex group (its weights count), a material, object or group of the faces, color or color.red"
"""What may be written for the name of a region."""


def region_keys(names: str, effect: str) -> dict[str, Key]:
    """Keys that say where a region is. names: what else its name may be; effect: what becomes of it there."""
    return {
        "name": Key(
            Text(f"a vertex group, a face label, color or a channel of it such as color.red{names}"),
            f"the part that {effect}; a vertex group and a colour do it by their weights",
        ),
        "map": Key(
            FileName("the name of an image, from the scene's folder"),
            f"an image on the shape's UVs instead of a name: white {effect}, black does not, grey in part",
        ),
        "centre": Key(POINT, f"of a ball that {effect}"),
        "radius": Key(POSITIVE, "of that ball, in the shape's own units"),
    }


def read_region(text: TomlText, table: dict[str, Any], path: KeyPath) -> Region:
    """Where the region of a table is."""
    if table["map"]:
        with text.about((*path, "map")):
            return read_grey_map(from_scene(text, table["map"]))
    return Sphere(table["centre"], table["radius"]) if table["centre"] else table["name"]


def typed_region(name: str) -> dict[str, str]:
    """The key for a region that is named on the command line: a file if it is called like an image."""
    return {"map" if name.lower().endswith(IMAGE_SUFFIXES) else "name": name.strip()}

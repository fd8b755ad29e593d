"""Further files for shapes that are blended: another shape of the same mesh, or weights for the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import pliant
from pliant.app.studio.desk import Document
from pliant.core.clips import Shapes
from pliant.core.shapes import Mesh
from pliant.engines.blend.app.panel_keys import SliderRow, rows_of
from pliant.io import BY_SUFFIX
from pliant.io.naming import unique_name
from pliant.io.weight_tables import WEIGHT_TABLES
from pliant.io.weights import read_weights


def weight_rows(file: Path, names: Sequence[str]) -> list[SliderRow] | None:
    """The sliders of each frame that a file has; None if it is not one of weights."""
    if file.suffix.lower() not in WEIGHT_TABLES:
        return None
    return rows_of(read_weights(file, names).values, names)


def joined_shapes(file: Path, shapes: Shapes, given: Document, uploads: Path) -> Document | None:
    """A scene's table [shapes] with the mesh in a file as one more; None if it is no mesh of as many vertices.

    Files can be listed; of a rig or built-in shapes, the shapes go into a file of their own in the folder `uploads`.
    """
    if file.suffix.lower() not in BY_SUFFIX:
        return None
    found = pliant.read(str(file))
    if not isinstance(found, Mesh) or len(found.points) != len(shapes.base.points):
        return None
    if "files" in given and "names" not in given:
        return {**given, "files": [*given["files"], str(file)]}
    taken = set(shapes.names)
    names = (*shapes.names, unique_name(file.stem, taken))
    together = Shapes(shapes.base, np.concatenate([shapes.points, found.points[None]]), names)
    there = {path.stem for path in uploads.iterdir()}
    path = uploads / f"{unique_name(f'{file.stem}-shapes', there)}.npz"
    pliant.write(path, together)
    return {"file": str(path)}

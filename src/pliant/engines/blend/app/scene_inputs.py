"""Shapes and their weights as a command or a scene names them: which shapes, by which names, in how many frames."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import pliant
from pliant.core.clips import Shapes
from pliant.core.errors import InputError, PliantWarning
from pliant.core.topology import Floats
from pliant.io.naming import unique_name
from pliant.io.pins import Pins
from pliant.io.weights import ShapeNames

PERCENT = 10.0
"""Weights above this look like percentages."""


def read_posed(files: Sequence[str], base: str | None = None) -> Shapes:
    """The shapes of a rig, folder, glob or archive, or of several files; of those the first is the base, whatever it
    is called, unless another is named.
    """
    if len(files) == 1:
        return pliant.read_shapes(files[0], base=base)
    first = str(Path(files[0])) if base is None and Path(files[0]).is_file() else base
    return pliant.read_shapes(list(files), base=first)


def chosen_shapes(shapes: Shapes, names: Sequence[str]) -> Shapes:
    """Those called `names`, in this order."""
    known = ShapeNames(shapes.names)
    try:
        chosen = [known.shape(name) for name in names]
    except KeyError as error:
        raise InputError(error.args[0]) from None
    return Shapes(shapes[chosen[0]], shapes.points[chosen], tuple(shapes.names[k] for k in chosen))


def with_unique_names(shapes: Shapes) -> Shapes:
    """The same shapes with unique names; warns of shapes that equal the base."""
    base = shapes.base.points
    same = [name for name, at in zip(shapes.names[1:], shapes.points[1:], strict=True) if np.array_equal(at, base)]
    if same:
        listed = ", ".join(same[:6]) + (", ..." if len(same) > 6 else "")
        warnings.warn(f"the same as the base, so its weight changes nothing: {listed}", PliantWarning, stacklevel=2)
    taken: set[str] = set()
    return Shapes(shapes.base, shapes.points, tuple(unique_name(name, taken) for name in shapes.names))


def note_percentages(table: Floats, where: str) -> None:
    """Warn of weights that look like percentages."""
    largest = float(np.abs(table).max(initial=0))
    if largest > PERCENT:
        what = f"{where}: weights go up to {largest:g}; 1, not 100, is a shape in full"
        warnings.warn(what, PliantWarning, stacklevel=2)


def default_frames(shapes: int) -> int:
    """About 36, and at least 8 from shape to shape, such that each shape has a frame of its own."""
    legs = shapes - 1
    return legs * max(8, 35 // legs) + 1


def spread(keys: Floats, frames: int) -> Floats:
    """(frames, shapes) weights with the rows of `keys` spread evenly over them."""
    at = np.linspace(0, len(keys) - 1, frames)
    return np.stack([np.interp(at, np.arange(len(keys)), column) for column in keys.T], axis=1)


def check_path(pins: Pins, frames: int) -> None:
    """Check that pins with given paths have a position in every frame."""
    if pins.path is not None and len(pins.path) != frames:
        raise InputError(f'"path" has {len(pins.path)} frames; the clip has {frames}')

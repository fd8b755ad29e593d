"""The sliders of a blend's scene, frame by frame: rows of its own, a file, or the clip that its rig comes with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.media import from_scene
from pliant.core.clips import DEFAULT_FPS, Shapes, WeightClip
from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.blend.options import NO_CLIP, BlendOptions
from pliant.io.shape_names import ShapeNames
from pliant.io.weight_tables import WEIGHT_TABLES
from pliant.io.weights import fitted, own_weights, read_weights

PERCENT = 10.0
"""Weights above this look like percentages."""


@dataclass(frozen=True, eq=False)
class SceneWeights:
    """What a scene says of its sliders."""

    keys: Floats | None
    """(rows, shapes); None: from the first shape through all to the last."""
    fps: float
    source: str = ""
    """Where they come from, as text; empty if from the scene itself."""


def scene_weights(text: TomlText, config: dict[str, Any], options: BlendOptions, shapes: Shapes) -> SceneWeights:
    """The sliders of a document, for these shapes."""
    weights, clip, fps = config["weights"], options.clip, options.fps
    if isinstance(weights, list):
        _refuse_clip(text, clip, "the weights are written out")
        names = ShapeNames(shapes.names)
        table = np.stack([_row(text, row, ("weights", k), names) for k, row in enumerate(weights)])
        return _checked(WeightClip(shapes.names, locked(table), fps), text.source.label)
    found: WeightClip | None = None
    label = ""
    if weights is not None:
        label = weights
        if Path(weights).suffix.lower() in WEIGHT_TABLES:
            _refuse_clip(text, clip, f"{weights} is a table")
        with text.about(("weights",), {("clip",): ("clip",)}):
            found = read_weights(from_scene(text, weights), shapes.names, clip=clip, fps=fps)
    elif clip != NO_CLIP:
        file = config["shapes"]["file"]
        own = None
        with text.about(("shapes", "file"), {("clip",): ("clip",)}):
            if file is not None and (own := own_weights(from_scene(text, file), clip=clip, fps=fps)) is not None:
                label = file
                found = fitted(own[0], shapes.names, own[1])
        if own is None:
            _refuse_clip(text, clip, "the shapes are in no file with clips")
    if found is None:
        return SceneWeights(None, fps or DEFAULT_FPS)
    source = f"{Path(label).name}, {len(found)} frames" + ("" if found.fps is None else f" at {found.fps:g} fps")
    if Path(label).suffix.lower() not in WEIGHT_TABLES:
        source = f'clip "{found.name}" of {source}'
        _note_poses(found, label)
    return _checked(found, label, source)


def _refuse_clip(text: TomlText, clip: Any, why: str) -> None:
    if clip is not None:
        raise text.error(f"has no effect: {why}; leave it out", ("clip",))


def _checked(clip: WeightClip, label: str, source: str = "") -> SceneWeights:
    largest = float(np.abs(clip.values[:, 1:]).max(initial=0))
    if largest > PERCENT:
        what = f"{label}: weights go up to {largest:g}; 1, not 100, is a shape in full"
        warnings.warn(what, PliantWarning, stacklevel=2)
    return SceneWeights(clip.values, clip.fps or DEFAULT_FPS, source)


def _note_poses(clip: WeightClip, label: str) -> None:
    """Note a clip in which nothing is blended: none of its weights move, or it goes from shape to shape."""
    sliders = clip.values[:, 1:]
    if not np.ptp(sliders, axis=0).any():
        warnings.warn(f'{label}: the clip "{clip.name}" does not move the weights', PliantWarning, stacklevel=2)
    elif np.isin(sliders, (0, 1)).all() and (sliders.sum(axis=1) <= 1).all():
        what = f"every frame of its clip at {clip.fps:g} fps is one of the shapes as it is"
        warnings.warn(f"{label}: {what}; a higher --fps has frames between them", PliantWarning, stacklevel=2)


def _row(text: TomlText, config: list[float] | dict[str, float], path: KeyPath, names: ShapeNames) -> Floats:
    """One frame: numbers in the shapes' order, or by name."""
    if isinstance(config, list):
        if not names.fits(len(config)):
            raise text.error(f"has {len(config)} numbers; expected {names.wanted}", path)
        return names.row(config)
    full = np.zeros(len(names))
    for name, value in config.items():
        try:
            full[names.shape(name)] = value
        except KeyError as error:
            raise text.error(error.args[0], (*path, name)) from None
    return full


def default_frames(shapes: int) -> int:
    """About 36, and at least 8 from shape to shape, such that each shape has a frame of its own."""
    legs = shapes - 1
    return legs * max(8, 35 // legs) + 1


def spread(keys: Floats, frames: int) -> Floats:
    """(frames, shapes) weights with the rows of `keys` spread evenly over them."""
    at = np.linspace(0, len(keys) - 1, frames)
    return np.stack([np.interp(at, np.arange(len(keys)), column) for column in keys.T], axis=1)

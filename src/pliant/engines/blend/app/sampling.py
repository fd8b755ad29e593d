"""Poses of a rig with morph targets for data sets: its sliders at random, or as a clip of weights has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.app.batch.data_set import POINTS_ARRAY, Sampled, SampleOptions, chosen
from pliant.core.errors import FileError
from pliant.core.topology import Floats
from pliant.engines.blend import Blendshapes
from pliant.engines.blend.app.scene import BlendScene
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.source import find


def document(rig: str, options: SampleOptions) -> dict[str, Any]:
    """See `Engine.samples`."""
    sources = find(rig, lambda name: "." + name.rpartition(".")[2].lower() in BY_SUFFIX)
    if len(sources) == 1 and "shapes" not in kinds_in(sources[0]):
        raise FileError(rig, "has no morph targets; expected a rig with some, or a folder of shapes")
    scene: dict[str, Any] = {"shapes": {"file": rig}}
    return scene | ({"clip": "none"} if options.motion is None else {"weights": options.motion})


def dimensions(scene: BlendScene, options: SampleOptions) -> int:
    """One for each slider, or for the moment."""
    return len(scene.sliders().numbers) if options.motion is None else 1


def posed(scene: BlendScene, rig: Blendshapes, numbers: Floats, k: int, options: SampleOptions) -> Sampled:
    """The shape at sliders that were drawn, or at those of the clip at a moment, interpolated."""
    sliders = scene.sliders().numbers
    row = np.zeros(len(scene.shapes))
    if options.motion is None:
        values = options.low + (options.high - options.low) * numbers
        row[sliders] = np.where(chosen(len(sliders), k, options), values, 0.0)
    else:
        table = scene.table(rig)
        at = numbers[0] * (len(table) - 1)
        before = min(int(at), max(len(table) - 2, 0))
        share = at - before
        row = (1 - share) * table[before] + share * table[min(before + 1, len(table) - 1)]
    pose = rig.solve(row, pulls=scene.pulls, **scene.options.taken_by(Blendshapes.solve))
    return {
        "weights": row[sliders].astype(np.float32),
        "converged": np.bool_(pose.converged),
        POINTS_ARRAY: pose.points.astype(np.float32),
    }


def facts(scene: BlendScene, rig: Blendshapes) -> dict[str, Any]:
    """The names of the sliders, in the order of the weights."""
    return {"sliders": list(rig.sliders.names)}

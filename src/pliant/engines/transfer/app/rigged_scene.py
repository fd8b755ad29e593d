"""Scenes of the engine "transfer" whose target has a skeleton and a skin: the motion drives these, without a cage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pliant
from pliant.app.scene.located_toml import KeyPath, TomlText, located
from pliant.app.scene.media import from_scene
from pliant.app.scene.schema import EngineScene
from pliant.core.clips import Animation
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh, Shape
from pliant.core.skeleton import Motion, Skeleton
from pliant.engines.transfer.app.scene_keys import TRANSFER
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.rigged import PreparedRig, RiggedTransfer, prepare_rig
from pliant.geometry.skinning import skin_of
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.source import find

RIG_KEYS: dict[KeyPath, KeyPath] = {(name,): (name,) for name in TRANSFER.keys} | {
    ("skeleton",): ("target", "skeleton")
}
"""Scene keys of the arguments of `pliant.transfer_to_rig`."""
IN_CAGES = ("cage", "blocks", "held", "follow", "lengths", "weights")
"""Keys that have an effect in cages alone."""


@dataclass(frozen=True, eq=False)
class RiggedScene(EngineScene):
    """A transfer to a rig that is ready to run: what `pliant.transfer_to_rig` takes."""

    sources: Mapping[str, Animation | Motion]
    target: Mesh
    skeleton: Skeleton
    options: TransferOptions = field(default_factory=TransferOptions)
    title: str = "transfer"
    engine: Literal["transfer"] = "transfer"

    @property
    def shape(self) -> Shape:
        """The shape that moves."""
        return self.target

    def prepare(self) -> PreparedRig:
        """Find the motion."""
        with located(self.text, ("controls",), RIG_KEYS):
            return prepare_rig(self.sources, self.target, self.skeleton, **self.options.taken_by(prepare_rig))

    def run(self, report: ReportFrames | None = None, ready: PreparedRig | None = None) -> RiggedTransfer:
        """Move the target. ready: the result of `prepare`, if it was called before."""
        return (self.prepare() if ready is None else ready).solve(report)


def read_skeleton(text: TomlText, table: dict[str, Any]) -> Skeleton | None:
    """The target's, as its table says; None if its file has none, or it is not to be used."""
    named = table["skeleton"]
    if named == "none" or (named == "own" and not table["file"]):
        return None
    file = from_scene(text, table["file"] if named == "own" else named)
    if named == "own":
        sources = find(file, lambda name: Path(name).suffix.lower() in BY_SUFFIX)
        if len(sources) != 1 or "skeleton" not in kinds_in(sources[0]):
            return None
    with text.about(("target", "skeleton")):
        return pliant.read_skeleton(file)


def rigged_scene(
    text: TomlText,
    config: dict[str, Any],
    sources: Mapping[str, Animation | Motion],
    target: Shape,
    skeleton: Skeleton | None,
    options: TransferOptions,
) -> RiggedScene | None:
    """The scene of a document whose target has a skin for the skeleton; None where it has not."""
    if skeleton is None or not isinstance(target, Mesh) or skin_of(target, skeleton) is None:
        return None
    for key in IN_CAGES:
        if config.get(key):
            raise text.error("has no effect where a skin moves the target; set target.skeleton to none", (key,))
    return RiggedScene(sources, target, skeleton, options, config["title"] or text.source.stem, text=text)

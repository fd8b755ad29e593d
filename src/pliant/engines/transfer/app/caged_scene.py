"""Target, cage, rest points of controls and weights in scene files of the engine "transfer"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import pliant
from pliant import gallery
from pliant.app.scene.located_toml import Path, TomlText
from pliant.app.scene.media import from_scene
from pliant.core.errors import FileError, InputError
from pliant.core.shapes import Mesh, Shape
from pliant.core.topology import Floats
from pliant.engines.transfer.build import build_cage
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.controls import Weights
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.symmetry import body_axes

VertexOrPoint = int | list[float]
"""A vertex of the target, or a point."""


@dataclass(frozen=True)
class CagedTarget:
    """The target in its cage, to look up the rest points of controls."""

    text: TomlText
    target: Shape
    cage: Cage
    allow: bool
    """Whether points may be outside the cage."""

    def point(self, at: VertexOrPoint, path: Path) -> Floats:
        """(3,) the point of a vertex, or the point itself, checked."""
        count = len(self.target.points)
        if isinstance(at, int):
            if at >= count:
                raise self.text.error(f"is vertex {at}; the target has {count}, numbered from 0", path)
            return self.target.points[at]
        point = np.array(at)
        if not self.allow and not self.cage.tree.inside(point[None])[0]:
            raise self.text.error(f"is {at}, which is not inside the cage; expected a vertex or a point in it", path)
        return point

    def ends(self, pairs: list[list[VertexOrPoint]]) -> Floats:
        """(k, 2, 3) the points of the key "lengths"."""
        rows = [[self.point(p, ("lengths", k, e)) for e, p in enumerate(pair)] for k, pair in enumerate(pairs)]
        return np.reshape(rows, (-1, 2, 3))


def cage_around(
    text: TomlText, config: dict[str, Any], target: Shape, faces: int | None, *, automatic: bool = False
) -> Cage:
    """The cage of a scene: read, from the gallery, or built. faces: build one with this many instead.

    automatic: for automatic controls, so that it rotates with the target.
    """
    if faces is None and config.get("file"):
        file = from_scene(text, config["file"])
        with text.about(("cage", "file")):
            return checked_cage(pliant.read_mesh(file), file)
    if faces is None and config.get("gallery"):
        with text.about(("cage", "vertices")):
            return Cage.of(gallery.cage(config["gallery"], vertices=config["vertices"] or 120))
    asked = {"faces": TransferOptions.faces, "margin": TransferOptions.margin} | {
        key: config[key] for key in ("faces", "margin") if key in config
    }
    with text.about(("cage",)):
        axes = body_axes(target) if automatic else None
        return Cage.of(build_cage(target, **(asked if faces is None else asked | {"faces": faces}), axes=axes))


def checked_cage(mesh: Mesh, file: str) -> Cage:
    """A cage from a file, or an error that names the file."""
    try:
        return Cage.of(mesh)
    except InputError as error:
        raise FileError(file, str(error)) from None


def weights_of(config: dict[str, Any]) -> dict[str, Weights]:
    """The option "weights" of rigs, if it is in the scene."""
    return {"weights": Weights(**config["weights"])} if config["weights"] else {}

"""A target in its cage, as scenes of the engine "transfer" say it: the cage, and places in it."""

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
from pliant.engines.transfer.checked import Cage
from pliant.engines.transfer.controls import Weights
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.symmetry import body_axes

Place = int | list[float]
"""A vertex of the target, or a point."""


@dataclass(frozen=True)
class CagedTarget:
    """The target in its cage, where controls have their places."""

    text: TomlText
    target: Shape
    cage: Cage
    allow: bool
    """Whether points may be outside the cage."""

    def point(self, place: Place, path: Path) -> Floats:
        """(3,) where it is."""
        count = len(self.target.points)
        if isinstance(place, int):
            if place >= count:
                raise self.text.error(f"is vertex {place}; the target has {count}, numbered from 0", path)
            return self.target.points[place]
        point = np.array(place)
        if not self.allow and not self.cage.tree.inside(point[None])[0]:
            raise self.text.error(f"is {place}, which is not inside the cage; expected a vertex or a point in it", path)
        return point

    def ends(self, pairs: list[list[Place]]) -> Floats:
        """(k, 2, 3) where pairs of places are, of the key "lengths"."""
        rows = [[self.point(p, ("lengths", k, e)) for e, p in enumerate(pair)] for k, pair in enumerate(pairs)]
        return np.reshape(rows, (-1, 2, 3))


def cage_around(
    text: TomlText, said: dict[str, Any], target: Shape, faces: int | None, *, automatic: bool = False
) -> Cage:
    """The cage that a scene says, or one that is built, checked; `faces`: one of so many is built whatever it says.

    automatic: for automatic controls, so that it turns along with the target.
    """
    if faces is None and said.get("file"):
        file = from_scene(text, said["file"])
        with text.about(("cage", "file")):
            return checked_cage(pliant.read_mesh(file), file)
    if faces is None and said.get("gallery"):
        with text.about(("cage", "vertices")):
            return Cage.of(gallery.cage(said["gallery"], vertices=said["vertices"] or 120))
    asked = {"faces": TransferOptions.faces, "margin": TransferOptions.margin} | {
        key: said[key] for key in ("faces", "margin") if key in said
    }
    with text.about(("cage",)):
        axes = body_axes(target) if automatic else None
        return Cage.of(build_cage(target, **(asked if faces is None else asked | {"faces": faces}), axes=axes))


def checked_cage(mesh: Mesh, file: str) -> Cage:
    """A cage from a file, or what is wrong with it."""
    try:
        return Cage.of(mesh)
    except InputError as error:
        raise FileError(file, str(error)) from None


def weights_of(said: dict[str, Any]) -> dict[str, Weights]:
    """The option "weights" of rigs, if a scene says something of it."""
    return {"weights": Weights(**said["weights"])} if said["weights"] else {}

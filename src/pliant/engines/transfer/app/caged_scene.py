"""Target, cage, rest points of controls and weights in scenes of the engine "transfer"; keys without an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import pliant
from pliant import gallery
from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.media import from_scene
from pliant.core.clips import Animation
from pliant.core.errors import FileError, InputError
from pliant.core.shapes import Mesh, Shape
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.transfer.build import build_cage
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.options import AUTOMATIC, CageOptions, TransferOptions, Weights

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

    def point(self, at: VertexOrPoint, path: KeyPath) -> Floats:
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
    text: TomlText,
    config: dict[str, Any],
    target: Shape,
    options: CageOptions,
    *,
    axes: Callable[[], Floats | None] = lambda: None,
) -> Cage:
    """The cage of a scene: read, from the gallery, or built.

    axes: (3, 3) rows, the directions that a cage is built along, found if it is.
    """
    if config.get("file"):
        file = from_scene(text, config["file"])
        with text.about(("cage", "file")):
            return checked_cage(pliant.read_mesh(file), file)
    if config.get("gallery"):
        with text.about(("cage", "vertices")):
            return Cage.of(gallery.cage(config["gallery"], vertices=config["vertices"] or 120))
    with text.about(("cage",)):
        return Cage.of(build_cage(target, axes=axes(), **options.taken_by(build_cage)))


def checked_cage(mesh: Mesh, file: str) -> Cage:
    """A cage from a file, or an error that names the file."""
    try:
        return Cage.of(mesh)
    except InputError as error:
        raise FileError(file, str(error)) from None


Idle = tuple[KeyPath, str]
"""A key, and why it has no effect."""


def check_effects(text: TomlText, sources: Mapping[str, Animation | Motion]) -> None:
    """Refuse the first key of a transfer's scene that has no effect."""
    config = text.content
    automatic = config["controls"] == "auto"
    for path, why in (*_of_sources(config, sources, automatic), *_of_cage(config), *_of_rest(config, automatic)):
        raise text.error(f"has no effect: {why}", path)


def check_cage_effects(text: TomlText) -> None:
    """Refuse the first key of a posed cage's scene that has no effect."""
    config = text.content
    for path, why in (*_of_cage(config), *_of_weights(config, "gradients", "lengths")):
        raise text.error(f"has no effect: {why}", path)


def _of_sources(config: dict[str, Any], sources: Mapping[str, Animation | Motion], automatic: bool) -> Iterator[Idle]:
    for name, source in sources.items():
        entry, path = config["sources"][name], ("sources", name)
        moves_points = isinstance(source, Animation)
        for key in ("clip", "as"):
            if key in entry and "gallery" in entry:
                yield (*path, key), "the gallery's motions have one clip of one kind"
        if "vertices" in entry and not ("gallery" in entry and moves_points):
            yield (*path, "vertices"), "only shapes of the gallery are made with so many"
        for key in ("groups", "fit"):
            if key in entry and not moves_points:
                yield (*path, key), "the source is a motion of joints, which are its tracks"
        if "along" in entry and moves_points:
            yield (*path, "along"), "the source is a mesh sequence, which has no bones"
        for key in ("groups", "fit", "along"):
            if key in entry and automatic and not config.get("follow"):
                yield (*path, key), 'controls = "auto" finds tracks by itself'


def _of_cage(config: dict[str, Any]) -> Iterator[Idle]:
    cage = config.get("cage", {})
    for given in ("file", "gallery"):
        for key in CageOptions.names(table="cage"):
            if key in cage and given in cage:
                yield ("cage", key), f'the cage is not built, "{given}" says which it is'


def _of_rest(config: dict[str, Any], automatic: bool) -> Iterator[Idle]:
    if "groups" in config and not automatic:
        yield ("groups",), 'it is for controls = "auto"; pieces of a source are [sources.NAME.groups]'
    lacking = {} if automatic else {AUTOMATIC[0]: 'it is for controls = "auto"'}
    for name, why in TransferOptions.idle(config, lacking):
        yield (name,), why
    yield from _of_weights(config, "lengths")


def _of_weights(config: dict[str, Any], *controls: str) -> Iterator[Idle]:
    lacking = {key: f"there are no {key}" for key in controls if not config.get(key)}
    for name, why in Weights.idle(config.get("weights", {}), lacking):
        yield ("weights", name), why

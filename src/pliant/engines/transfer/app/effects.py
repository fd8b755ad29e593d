"""Scene keys that would have no effect beside the others: each is an error, and none is ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pliant.app.scene.located_toml import Path, TomlText
from pliant.core.clips import Animation
from pliant.core.skeleton import Motion
from pliant.engines.transfer.options import STANDING

Idle = tuple[Path, str]
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
    for path, why in (*_of_cage(config), *_of_weights(config, ("gradient", "gradients"), ("length", "lengths"))):
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
        for key in ("faces", "margin"):
            if key in cage and given in cage:
                yield ("cage", key), f'the cage is not built, "{given}" says which it is'


def _of_rest(config: dict[str, Any], automatic: bool) -> Iterator[Idle]:
    if "groups" in config and not automatic:
        yield ("groups",), 'it is for controls = "auto"; pieces of a source are [sources.NAME.groups]'
    for name in STANDING:
        if name in config and not automatic:
            yield (name,), 'it is for controls = "auto"'
    yield from _of_weights(config, ("length", "lengths"))


def _of_weights(config: dict[str, Any], *pairs: tuple[str, str]) -> Iterator[Idle]:
    for key, controls in pairs:
        if key in config.get("weights", {}) and not config.get(controls):
            yield ("weights", key), f"there are no {controls}"

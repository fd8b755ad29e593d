"""Scenes of the engine "transfer": sources that move, a target in its cage, and the controls that join them.

`read_transfer` turns a file that follows `TRANSFER` (`scene_keys`) into a `TransferScene`. Every name
in it has been looked up and every place checked, so that what is wrong is said with the key and the line it stands on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pliant.app.scene.located_toml import Path, TomlText, located
from pliant.app.scene.media import read_source, read_target
from pliant.app.scene.schema import chosen, read_as
from pliant.app.scene.turns import turn
from pliant.core.clips import Animation
from pliant.core.options import closest
from pliant.core.progress import Report
from pliant.core.regions import Sphere
from pliant.core.shapes import Mesh, Shape, bounding_diagonal
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.registry import ENGINES
from pliant.engines.transfer.app.caged_scene import CagedTarget, cage_around, weights_of
from pliant.engines.transfer.app.effects import check_effects
from pliant.engines.transfer.app.posed_scene import CageScene, read_cage
from pliant.engines.transfer.app.posed_scene_keys import CAGE_SCENE
from pliant.engines.transfer.app.scene_keys import TRANSFER
from pliant.engines.transfer.blocks import block_numbers, rigid_blocks
from pliant.engines.transfer.deformation_transfer import PreparedTransfer, Transfer, prepare_transfer
from pliant.engines.transfer.feeds import read_sources
from pliant.engines.transfer.groups import Group
from pliant.engines.transfer.options import STANDING, TransferOptions
from pliant.engines.transfer.plan import Control, Follow
from pliant.engines.transfer.sources import Track, group_tracks, joint_tracks

KEYS: dict[Path, Path] = {(name,): (name,) for name in TRANSFER.keys}
"""Of the arguments of `pliant.transfer`."""


@dataclass(frozen=True, eq=False)
class TransferScene:
    """A transfer that is ready to run: what `pliant.transfer` takes."""

    sources: Mapping[str, Animation | Motion]
    target: Shape
    cage: Mesh
    controls: Literal["auto"] | tuple[Control, ...]
    follow: tuple[Follow, ...] = ()
    lengths: Floats = field(default_factory=lambda: np.zeros((0, 2, 3)))
    """(k, 2, 3)"""
    held: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """(k, 3)"""
    tracks: Mapping[str, Mapping[str, Track]] = field(default_factory=dict)
    """Those that the controls name, by source."""
    blocks: bool = False
    """Whether each connected part of the target moves as a rigid block."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `pliant.transfer`."""
    title: str = "transfer"
    engine: Literal["transfer"] = "transfer"
    text: TomlText | None = None
    """What it was read from, if it was."""

    @property
    def file(self) -> str:
        """Where it was read from; empty if it was not."""
        return "" if self.text is None else self.text.source.label

    @property
    def shape(self) -> Shape:
        """What moves."""
        return self.target

    def prepare(self) -> PreparedTransfer:
        """All that is done once, with all checked that can be before frames are solved."""
        automatic = self.controls == "auto"
        with located(self.text, ("controls",), KEYS):
            if self.blocks:
                block_numbers(self.target, None)
            return prepare_transfer(
                self.sources if automatic else self.tracks,
                self.target,
                self.cage,
                self.controls,
                follow=[replace(item, track=self._track(item)) for item in self.follow] if automatic else self.follow,
                lengths=self.lengths,
                held=self.held,
                **self.options,
            )

    def run(self, report: Report | None = None, ready: PreparedTransfer | None = None) -> Transfer:
        """Move the target. ready: what `prepare` gave, to save that."""
        moved = (self.prepare() if ready is None else ready).solve(report)
        return replace(moved, clip=rigid_blocks(moved)) if self.blocks else moved

    def _track(self, item: Follow) -> Track:
        source, _, name = str(item.track).partition("/")
        return self.tracks[source][name]


def read_caged(
    text: TomlText, *, faces: int | None = None, frames: int | None = None, fps: float | None = None
) -> TransferScene | CageScene:
    """The scene in a document, with sources or posed by hand."""
    by_hand = ENGINES["transfer"].record(text.content) is CAGE_SCENE
    return (read_cage if by_hand else read_transfer)(text, faces=faces, frames=frames, fps=fps)


def read_transfer(
    text: TomlText, *, faces: int | None = None, frames: int | None = None, fps: float | None = None
) -> TransferScene:
    """The scene in a document; what is given here counts instead of what the document says."""
    said = read_as(TRANSFER, text, text.content, ())
    changed = {"frames": frames, "fps": fps}
    said |= {key: value for key, value in changed.items() if value is not None}
    if not said["sources"]:
        raise text.error("names no source; expected one or more tables [sources.NAME]", ("sources",))
    sources = {name: read_source(text, entry, ("sources", name)) for name, entry in said["sources"].items()}
    check_effects(text, sources)
    tracks = _Tracks(text, said["sources"], sources)
    turned = [] if said["controls"] == "auto" else said["controls"]
    moved = [tracks.named(entry["track"], ("controls", k, "track")) for k, entry in enumerate(turned)]
    led = [tracks.named(entry["track"], ("follow", k, "track")) for k, entry in enumerate(said["follow"])]
    target = read_target(text, said["target"], ("target",))
    cage = cage_around(text, said["cage"] or {}, target, faces, automatic=said["controls"] == "auto")
    space = _Space(text, target, cage, said["outside"] == "allow")
    controls = [space.control(entry, moved[k], ("controls", k)) for k, entry in enumerate(turned)]
    follow = [space.follow(entry, tracks, led[k], ("follow", k)) for k, entry in enumerate(said["follow"])]
    still = [space.point(place, ("held", k)) for k, place in enumerate(said["held"])]
    return TransferScene(
        sources=sources,
        target=target,
        cage=space.cage.mesh,
        controls=tuple(controls) if turned else "auto",
        follow=tuple(follow),
        lengths=space.ends(said["lengths"]),
        held=np.reshape(still, (-1, 3)),
        tracks=tracks.found,
        blocks=said["blocks"],
        options=_options(said),
        title=said["title"] or text.source.stem,
        text=text,
    )


def _options(said: dict[str, Any]) -> dict[str, Any]:
    """What is said of the solve, as `transfer` takes it."""
    return chosen(said, TransferOptions, "lattice", "frames", "fps", "groups", "outside", *STANDING) | weights_of(said)


@dataclass
class _Tracks:
    """The tracks that the sources have, and those that were asked for."""

    text: TomlText
    said: dict[str, Any]
    sources: Mapping[str, Animation | Motion]
    found: dict[str, dict[str, Track]] = field(default_factory=dict)

    def named(self, name: str | None, path: Path) -> str | None:
        """The full name, ``SOURCE/NAME``, of the track that is called so; where several sources have it, it is one."""
        if name is None:
            return None
        start, slash, rest = name.partition("/")
        chosen, wanted = ([start], rest) if slash and start in self.sources else (list(self.sources), name)
        owners = [source for source in chosen if wanted in self._names(source)]
        if len(owners) > 1:
            both = " and ".join(owners)
            raise self.text.error(f'"{wanted}" is in {both}; write "{owners[0]}/{wanted}" to choose one', path)
        if not owners:
            known = [known for source in chosen for known in self._names(source)]
            there = closest(wanted, known) if known else "its mesh has no vertex groups: give [sources.NAME.groups]"
            kind = "joint" if all(isinstance(self.sources[source], Motion) for source in chosen) else "group or joint"
            raise self.text.error(f'no {kind} of {" or ".join(chosen)} is called "{wanted}"; {there}', path)
        self.found.setdefault(owners[0], {}).setdefault(wanted, self._track(owners[0], wanted))
        return f"{owners[0]}/{wanted}"

    def _names(self, source: str) -> list[str]:
        motion = self.sources[source]
        if isinstance(motion, Motion):
            return list(motion.skeleton.names)
        inside = list(motion.shape.vertex_groups) if isinstance(motion.shape, Mesh) else []
        return [*(self.said[source]["groups"] or {}), *inside]

    def _track(self, source: str, name: str) -> Track:
        motion, said = self.sources[source], self.said[source]
        if isinstance(motion, Motion):
            with self.text.about(("sources", source, "along")):
                return joint_tracks(motion, name, along=said["along"])[name]
        groups = said["groups"] or {}
        at: Path = ("sources", source, "groups", name)
        with self.text.about(at):
            return group_tracks(motion, {name: _group(groups.get(name, name))}, fit=said["fit"] or "linear")[name]

    def size(self, full: str) -> float:
        """Diagonal of a track's source at rest."""
        return read_sources(self.sources[full.partition("/")[0]])[0].size


def _group(said: Any) -> Group:
    return Sphere(said["centre"], said["radius"]) if isinstance(said, dict) else said


@dataclass(frozen=True)
class _Space(CagedTarget):
    """The target in its cage, with controls that follow tracks."""

    def control(self, said: dict[str, Any], track: str | None, path: Path) -> Control:
        """A gradient control."""
        before, after = (turn(self.text, said[key], (*path, key)) for key in ("before", "after"))
        return Control(self.point(said["at"], (*path, "at")), track, before, after)

    def follow(self, said: dict[str, Any], tracks: _Tracks, track: str | None, path: Path) -> Follow:
        """A position control; its scale is the ratio of the sizes unless another is said."""
        scale = said["scale"] or bounding_diagonal(self.target.points) / tracks.size(str(track))
        after = turn(self.text, said["after"], (*path, "after"))
        return Follow(self.point(said["at"], (*path, "at")), str(track), scale, after, said["origin"])

"""Scenes of the engine "transfer": sources, a target in its cage, and the controls that connect them.

`read_transfer` turns a document that follows `TRANSFER` (`scene_keys`) into a `TransferScene`. Every name and point in
it is checked, so that errors name the key and its line.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pliant.app.scene.located_toml import KeyPath, TomlText, located
from pliant.app.scene.media import part_of, read_source, read_target
from pliant.app.scene.rotations import read_rotation
from pliant.app.scene.schema import EngineScene, read_as
from pliant.core.clips import Animation
from pliant.core.errors import PliantWarning
from pliant.core.options import closest
from pliant.core.progress import ReportFrames
from pliant.core.regions import Sphere
from pliant.core.shapes import Mesh, Shape, bounding_diagonal
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.engines.registry import ENGINES
from pliant.engines.transfer.app.caged_scene import CagedTarget, cage_around, check_effects
from pliant.engines.transfer.app.posed_scene import CageScene, read_cage
from pliant.engines.transfer.app.rigged_scene import RiggedScene, read_skeleton, rigged_scene
from pliant.engines.transfer.app.scene_keys import CAGE_SCENE, TRANSFER
from pliant.engines.transfer.automatic import cage_axes
from pliant.engines.transfer.blocks import block_numbers, rigid_blocks
from pliant.engines.transfer.deformation_transfer import PreparedTransfer, Transfer, prepare_transfer
from pliant.engines.transfer.groups import VertexGroup
from pliant.engines.transfer.options import TransferOptions, Weights
from pliant.engines.transfer.plan import Control, Follow
from pliant.engines.transfer.source_tracks import read_sources
from pliant.engines.transfer.sources import Track, group_tracks, joint_tracks
from pliant.geometry.body_plan.moving import reference_frames

TRANSFER_KEYS: dict[KeyPath, KeyPath] = {(name,): (name,) for name in TRANSFER.keys}
"""Scene keys of the arguments of `pliant.transfer`."""


@dataclass(frozen=True, eq=False)
class TransferScene(EngineScene):
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
    skeleton: Skeleton | None = None
    """Inside the target, whose bones automatic controls follow"""
    options: TransferOptions = field(default_factory=TransferOptions)
    weights: Weights = field(default_factory=Weights)
    title: str = "transfer"
    engine: Literal["transfer"] = "transfer"

    @property
    def shape(self) -> Shape:
        """The shape that moves."""
        return self.target

    @property
    def blocks(self) -> bool:
        """Whether each connected part of the target moves as a rigid block."""
        return self.options.blocks

    def prepare(self) -> PreparedTransfer:
        """Check everything that can be checked before frames are solved, and precompute."""
        automatic = self.controls == "auto"
        with located(self.text, ("controls",), TRANSFER_KEYS):
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
                weights=self.weights,
                skeleton=self.skeleton,
                **self.options.taken_by(prepare_transfer),
            )

    def run(self, report: ReportFrames | None = None, ready: PreparedTransfer | None = None) -> Transfer:
        """Solve all frames. ready: the result of `prepare`, if it was called before."""
        moved = (self.prepare() if ready is None else ready).solve(report)
        return replace(moved, clip=rigid_blocks(moved)) if self.blocks else moved

    def _track(self, item: Follow) -> Track:
        source, _, name = str(item.track).partition("/")
        return self.tracks[source][name]


def read_caged(text: TomlText, **changes: Any) -> TransferScene | RiggedScene | CageScene:
    """The scene of a document, with sources or posed by hand."""
    by_hand = ENGINES["transfer"].record(text.content) is CAGE_SCENE
    return (read_cage if by_hand else read_transfer)(text, **changes)


def read_transfer(text: TomlText, **changes: Any) -> TransferScene | RiggedScene:
    """The scene of a document; options that are given here take precedence over the document."""
    config = read_as(TRANSFER, text, text.content, ())
    options = TransferOptions.read(config, **changes)
    if not config["sources"]:
        raise text.error("names no source; expected one or more tables [sources.NAME]", ("sources",))
    automatic = config["controls"] == "auto"  # joints say by name what a shape only suggests
    sources = {
        name: read_source(text, entry, ("sources", name), bones=automatic) for name, entry in config["sources"].items()
    }
    check_effects(text, sources)
    sources = {
        name: _shown(text, source, config["sources"][name], options, automatic) for name, source in sources.items()
    }
    options = replace(options, frames=options.frames if isinstance(options.frames, int) else None)
    tracks = _Tracks(text, config["sources"], sources)
    gradient_entries = [] if config["controls"] == "auto" else config["controls"]
    moved = [tracks.named(entry["track"], ("controls", k, "track")) for k, entry in enumerate(gradient_entries)]
    led = [tracks.named(entry["track"], ("follow", k, "track")) for k, entry in enumerate(config["follow"])]
    target = read_target(text, config["target"], ("target",))
    named = {} if "faces" in changes else config["cage"] or {}
    source = next(iter(sources.values()))
    skeleton = read_skeleton(text, config["target"]) if automatic else None
    rigged = rigged_scene(text, config, sources, target, skeleton, options)
    if rigged is not None:
        return rigged
    cage = cage_around(
        text,
        named,
        target,
        options,
        axes=lambda: cage_axes(source, target, options.target_up, options.heading) if automatic else None,
    )
    space = _Space(text, target, cage, options.outside == "allow")
    controls = [space.control(entry, moved[k], ("controls", k)) for k, entry in enumerate(gradient_entries)]
    follow = [space.follow(entry, tracks, led[k], ("follow", k)) for k, entry in enumerate(config["follow"])]
    fixed = [space.point(at, ("held", k)) for k, at in enumerate(config["held"])]
    return TransferScene(
        sources=sources,
        target=target,
        cage=space.cage.mesh,
        controls=tuple(controls) if gradient_entries else "auto",
        follow=tuple(follow),
        lengths=space.ends(config["lengths"]),
        held=np.reshape(fixed, (-1, 3)),
        tracks=tracks.found,
        skeleton=skeleton,
        options=options,
        weights=Weights.read(config),
        title=config["title"] or text.source.stem,
        text=text,
    )


def _shown(
    text: TomlText, source: Animation | Motion, table: dict[str, Any], options: TransferOptions, automatic: bool
) -> Animation | Motion:
    """The frames of a source that are asked for, as fast as asked for.

    A first frame that is a reference pose, which automatic controls do not follow, is left out, and that is said.
    """
    begin, last = 0, len(source) - 1
    if isinstance(options.frames, str):
        ends = zip(options.frames.split(":"), (0, last), strict=True)
        begin, last = (int(end) if end else default for end, default in ends)
        if not begin <= last < len(source):
            raise text.error(
                f'is "{options.frames}"; the source has {len(source)} frames, numbered from 0', ("frames",)
            )
    elif automatic and isinstance(source, Motion) and not table["first"] and reference_frames(source):
        warnings.warn(
            "the source's first frame is a reference pose that it jumps from: left out",
            PliantWarning,
            stacklevel=2,
        )
        begin = 1
    return replace(part_of(source, begin, last), fps=options.speed * source.fps)


@dataclass
class _Tracks:
    """The tracks of the sources; those that controls follow are computed."""

    text: TomlText
    config: dict[str, Any]
    sources: Mapping[str, Animation | Motion]
    found: dict[str, dict[str, Track]] = field(default_factory=dict)

    def named(self, name: str | None, path: KeyPath) -> str | None:
        """The full name, ``SOURCE/NAME``, of a track; an error if several sources have it, or none."""
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
        return [*(self.config[source]["groups"] or {}), *inside]

    def _track(self, source: str, name: str) -> Track:
        motion, config = self.sources[source], self.config[source]
        if isinstance(motion, Motion):
            with self.text.about(("sources", source, "along")):
                return joint_tracks(motion, name, along=config["along"])[name]
        groups = config["groups"] or {}
        at: KeyPath = ("sources", source, "groups", name)
        with self.text.about(at):
            return group_tracks(motion, {name: _group(groups.get(name, name))}, fit=config["fit"] or "linear")[name]

    def size(self, full: str) -> float:
        """Diagonal of a track's source at rest."""
        return read_sources(self.sources[full.partition("/")[0]])[0].size


def _group(config: Any) -> VertexGroup:
    return Sphere(config["centre"], config["radius"]) if isinstance(config, dict) else config


@dataclass(frozen=True)
class _Space(CagedTarget):
    """The target in its cage, with controls that follow tracks."""

    def control(self, config: dict[str, Any], track: str | None, path: KeyPath) -> Control:
        """A gradient control."""
        before, after = (read_rotation(self.text, config[key], (*path, key)) for key in ("before", "after"))
        return Control(self.point(config["at"], (*path, "at")), track, before, after)

    def follow(self, config: dict[str, Any], tracks: _Tracks, track: str | None, path: KeyPath) -> Follow:
        """A position control; by default its scale is the ratio of the sizes."""
        scale = config["scale"] or bounding_diagonal(self.target.points) / tracks.size(str(track))
        after = read_rotation(self.text, config["after"], (*path, "after"))
        return Follow(self.point(config["at"], (*path, "at")), str(track), scale, after, config["origin"])

"""Scenes of the engine "transfer": sources that move, a target in its cage, and the controls that join them.

`read_transfer` turns a file that follows `TRANSFER` (`pliant.scene.transfer_keys`) into a `TransferScene`. Every name
in it has been looked up and every place checked, so that what is wrong is said with the key and the line it stands on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

import pliant
from pliant import gallery, rotations
from pliant.cage.adapt import as_rotation, turn_between
from pliant.cage.blocks import rigid_blocks
from pliant.cage.build import build_cage
from pliant.cage.checked import Cage
from pliant.cage.controls import Weights
from pliant.cage.feeds import read_sources
from pliant.cage.groups import Group
from pliant.cage.plan import Control, Follow
from pliant.cage.sources import Track, group_tracks, joint_tracks
from pliant.cage.transfer import CAGE_FACES, Transfer, transfer
from pliant.clips import Animation
from pliant.errors import FileError, InputError
from pliant.progress import Report
from pliant.regions import Sphere
from pliant.scene.effects import check_effects
from pliant.scene.located_toml import Path, TomlText
from pliant.scene.media import located, read_source, read_target
from pliant.scene.schema import closest, read_as
from pliant.scene.transfer_keys import TRANSFER
from pliant.scene.wording import worded
from pliant.shapes import Mesh, Shape, bounding_diagonal
from pliant.skeleton import Motion
from pliant.topology import Floats

Place = int | list[float]
"""A vertex of the target, or a point."""


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
    file: str = ""
    """Where it was read from; empty if it was not."""

    def run(self, report: Report | None = None) -> Transfer:
        """Move the target."""
        automatic = self.controls == "auto"
        try:
            moved = transfer(
                self.sources if automatic else self.tracks,
                self.target,
                self.cage,
                self.controls,
                follow=[replace(item, track=self._track(item)) for item in self.follow] if automatic else self.follow,
                lengths=self.lengths,
                held=self.held,
                report=report,
                **self.options,
            )
            return replace(moved, clip=rigid_blocks(moved)) if self.blocks else moved
        except FileError:
            raise
        except InputError as error:
            if self.file:
                raise FileError(self.file, worded(str(error), "scene")) from None
            raise InputError(worded(str(error), "command")) from None

    def _track(self, item: Follow) -> Track:
        source, _, name = str(item.track).partition("/")
        return self.tracks[source][name]


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
    space = _Space(text, target, _cage(text, said["cage"] or {}, target, faces), said["outside"] == "allow")
    controls = [space.control(entry, moved[k], ("controls", k)) for k, entry in enumerate(turned)]
    follow = [space.follow(entry, tracks, led[k], ("follow", k)) for k, entry in enumerate(said["follow"])]
    ends = [[space.point(p, ("lengths", k, e)) for e, p in enumerate(pair)] for k, pair in enumerate(said["lengths"])]
    still = [space.point(place, ("held", k)) for k, place in enumerate(said["held"])]
    return TransferScene(
        sources=sources,
        target=target,
        cage=space.cage.mesh,
        controls=tuple(controls) if turned else "auto",
        follow=tuple(follow),
        lengths=np.reshape(ends, (-1, 2, 3)),
        held=np.reshape(still, (-1, 3)),
        tracks=tracks.found,
        blocks=said["blocks"],
        options=_options(said),
        title=said["title"] or text.source.stem,
        file=text.source.label,
    )


def _options(said: dict[str, Any]) -> dict[str, Any]:
    """What is said of the solve, as `transfer` takes it."""
    chosen = {key: said[key] for key in ("lattice", "frames", "fps", "groups", "outside") if said[key] is not None}
    if said["weights"]:
        chosen["weights"] = Weights(**{name: value for name, value in said["weights"].items() if value is not None})
    return chosen


def turn(text: TomlText, said: Any, path: Path) -> Floats | None:
    """(3, 3) a rotation, from a quaternion, rows, an axis and an angle, or points before and after it."""
    try:
        if not isinstance(said, dict):
            return None if said is None else as_rotation(said, "it")
        if said["from"] is not None:
            return turn_between(said["from"], said["to"])
        return rotations.matrix(rotations.from_axis_angle(said["axis"], np.radians(said["degrees"])))
    except InputError as error:
        raise text.error(str(error), path) from None


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
            return joint_tracks(motion, name, along=said["along"])[name]
        groups = said["groups"] or {}
        at: Path = ("sources", source, "groups", name)
        try:
            return group_tracks(motion, {name: _group(groups.get(name, name))}, fit=said["fit"] or "linear")[name]
        except InputError as error:
            raise self.text.error(str(error), at) from None

    def size(self, full: str) -> float:
        """Diagonal of a track's source at rest."""
        return read_sources(self.sources[full.partition("/")[0]])[0].size


def _group(said: Any) -> Group:
    return Sphere(said["centre"], said["radius"]) if isinstance(said, dict) else said


def _cage(text: TomlText, said: dict[str, Any], target: Shape, faces: int | None) -> Cage:
    """The cage, checked."""
    if said.get("file") and said.get("gallery"):
        raise text.error("has both file and gallery; expected one of them", ("cage",))
    if faces is None and said.get("file"):
        file = located(text, said["file"])
        return checked_cage(pliant.read_mesh(file), file)
    if faces is None and said.get("gallery"):
        return Cage.of(gallery.cage(said["gallery"], vertices=said["vertices"] or 120))
    margin = {} if said.get("margin") is None else {"margin": said["margin"]}
    try:
        return Cage.of(build_cage(target, faces=faces or said.get("faces") or CAGE_FACES, **margin))
    except InputError as error:
        raise text.error(str(error), ("cage",)) from None


def checked_cage(mesh: Mesh, file: str) -> Cage:
    """A cage from a file, or what is wrong with it."""
    try:
        return Cage.of(mesh)
    except InputError as error:
        raise FileError(file, str(error)) from None


@dataclass(frozen=True)
class _Space:
    """The target in its cage, where controls have their places."""

    text: TomlText
    target: Shape
    cage: Cage
    allow: bool
    """Whether points may be outside the cage."""

    def control(self, said: dict[str, Any], track: str | None, path: Path) -> Control:
        """A gradient control."""
        before, after = (turn(self.text, said[key], (*path, key)) for key in ("before", "after"))
        return Control(self.point(said["at"], (*path, "at")), track, before, after)

    def follow(self, said: dict[str, Any], tracks: _Tracks, track: str | None, path: Path) -> Follow:
        """A position control; its scale is the ratio of the sizes unless another is said."""
        scale = said["scale"] or bounding_diagonal(self.target.points) / tracks.size(str(track))
        after = turn(self.text, said["after"], (*path, "after"))
        return Follow(self.point(said["at"], (*path, "at")), str(track), scale, after, said["origin"])

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

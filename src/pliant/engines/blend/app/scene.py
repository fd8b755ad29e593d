"""Scenes of the engine "blend": poses of one mesh, weights over time, and what holds, pulls and stands in the way.

`read_blend` turns a file that follows `BLEND` (`scene_keys`) into a `BlendScene`; ``pliant blend`` makes
one of its options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Literal

import numpy as np

from pliant import gallery
from pliant.app.scene.located_toml import Path, TomlText, located
from pliant.app.scene.media import from_scene
from pliant.app.scene.obstacles import read_obstacles
from pliant.app.scene.schema import chosen, read_as
from pliant.app.scene.writing import unwritten
from pliant.core.clips import Animation, Pose, Shapes
from pliant.core.progress import Report
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.blend import Blendshapes, Pull
from pliant.engines.blend import options as blend_options
from pliant.engines.blend.app.scene_inputs import (
    check_path,
    chosen_shapes,
    default_frames,
    note_percentages,
    read_posed,
    spread,
    told_apart,
)
from pliant.engines.blend.app.scene_keys import BLEND, SPRINGS
from pliant.engines.blend.equilibrium import Watch
from pliant.engines.blend.options import BlendOptions
from pliant.io.pins import Pins, read_pins
from pliant.io.source import PathLike, find
from pliant.io.weights import ShapeNames, read_weights

KEYS: dict[Path, Path] = {
    **{(name,): (name,) for name in BLEND.keys},
    **{(name,): ("springs", name) for name in SPRINGS.keys},
    ("pinned",): ("pins",),
}
"""Of the arguments of `Blendshapes` and its `poses`."""


@dataclass(frozen=True, eq=False)
class Blended:
    """What came of a scene."""

    rig: Blendshapes
    table: Floats
    """(frames, shapes) the sliders of each frame."""
    clip: Animation
    poses: tuple[Pose, ...]
    """What the solver knows of each frame."""


@dataclass(frozen=True, eq=False)
class BlendScene:
    """Shapes and their weights, ready to run."""

    shapes: Shapes
    """The base first."""
    keys: Floats | None = None
    """(rows, shapes) sliders; None: from the first shape through all to the last."""
    frames: int | None = None
    """The rows of `keys` are spread evenly over so many; None: one a row, or about 36 from the first shape on."""
    fps: float = BlendOptions.fps
    anchor: Any = BlendOptions.anchor
    """As of `Blendshapes`."""
    pins: Pins | None = None
    pulls: Sequence[Pull] = ()
    obstacles: Sequence[Any] = ()
    obstacle_names: tuple[str, ...] = ()
    friction: float = BlendOptions.friction
    self_contact: bool = BlendOptions.self_contact
    thickness: float | None = BlendOptions.thickness
    springs: Mapping[str, Any] = field(default_factory=dict)
    """Interior, model and stiffness of `Blendshapes`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Method, accuracy, iterations and jobs of `Blendshapes.poses`."""
    title: str = ""
    """What the report is called; empty: by the shapes that move."""
    engine: Literal["blend"] = "blend"
    text: TomlText | None = None
    """What it was read from, if it was."""

    @property
    def file(self) -> str:
        """Where it was read from; empty if it was not."""
        return "" if self.text is None else self.text.source.label

    @property
    def shape(self) -> Mesh:
        """What moves."""
        return self.shapes.base

    def __len__(self) -> int:
        """How many frames there are."""
        if self.frames is not None:
            return self.frames
        return default_frames(len(self.shapes)) if self.keys is None else len(self.keys)

    def rig(self) -> Blendshapes:
        """The shapes with their springs."""
        pins = None if self.pins is None else self.pins.vertices
        with located(self.text, ("shapes",), KEYS):
            return Blendshapes(self.shapes, anchor=self.anchor, pins=pins, **self.springs)

    def prepare(self) -> Blendshapes:
        """The rig, with all checked that can be before frames are solved."""
        made = self.rig()
        self.poses(made)
        return made

    def table(self, rig: Blendshapes) -> Floats:
        """(frames, shapes) the sliders of each frame."""
        if self.keys is None:
            return rig.path(len(self))
        return self.keys if self.frames is None else spread(self.keys, self.frames)

    def poses(self, rig: Blendshapes, *, watch: Watch | None = None) -> Iterator[Pose]:
        """Every frame, one after the other; what is wrong is said at once. watch: as of `Blendshapes.poses`."""
        with located(self.text, ("shapes",), KEYS):
            return rig.poses(
                self.table(rig),
                pulls=self.pulls,
                pinned=None if self.pins is None else self.pins.path,
                obstacles=self.obstacles,
                friction=self.friction,
                self_contact=self.self_contact,
                thickness=self.thickness,
                watch=watch,
                **self.options,
            )

    def run(self, report: Report | None = None, *, rig: Blendshapes | None = None) -> Blended:
        """Blend them."""
        made = self.prepare() if rig is None else rig
        table = self.table(made)
        poses: list[Pose] = []
        for pose in self.poses(made):
            poses.append(pose)
            if report is not None:
                report(len(poses), len(table))
        points = locked(np.stack([pose.points for pose in poses]))
        return Blended(made, table, Animation(self.shapes.base, points, self.fps, "blend"), tuple(poses))


# Scene files


def read_blend(
    text: TomlText, *, frames: int | None = None, fps: float | None = None, jobs: int | None = None
) -> BlendScene:
    """The scene in a document; what is given here counts instead of what the document says."""
    said = _said(text, **({} if jobs is None else {"jobs": jobs})) | {
        key: value for key, value in (("frames", frames), ("fps", fps)) if value is not None
    }
    scene = _blended(text, said, _shapes(text, said["shapes"]))
    return scene if jobs is None else replace(scene, options={**scene.options, "jobs": jobs})


def reblended(scene: BlendScene, document: dict[str, Any], folder: PathLike) -> BlendScene:
    """The same shapes with what a document says of everything else.

    It is the scene of the document (`pliant.app.scene.scene_from`), if that has these shapes, but quickly made.
    """
    text = unwritten(document, folder)
    return _blended(text, _said(text), scene.shapes)


def _said(text: TomlText, **beside: Any) -> dict[str, Any]:
    said = read_as(BLEND, text, text.content, ())
    check_blend_effects(text, **beside)
    return said


def _blended(text: TomlText, said: dict[str, Any], shapes: Shapes) -> BlendScene:
    """The scene of shapes with what a document says."""
    springs = said["springs"] or {}
    factors = {kind: factor for kind, factor in (springs.get("stiffness") or {}).items() if factor is not None}
    scene = BlendScene(
        shapes,
        _keys(text, said["weights"], shapes),
        said["frames"],
        said["fps"],
        anchor=said["anchor"],
        pins=_pins(text, said["pins"], len(shapes.base.points)),
        pulls=[_pull(text, entry, k, len(shapes.base.points)) for k, entry in enumerate(said["pulls"])],
        obstacles=read_obstacles(text, said["obstacles"]),
        obstacle_names=tuple(FilePath(entry["what"]).name for entry in said["obstacles"]),
        friction=said["friction"],
        self_contact=said["self_contact"],
        thickness=said["thickness"],
        springs=chosen(springs, BlendOptions, "interior", "model") | ({"stiffness": factors} if factors else {}),
        options=chosen(springs, BlendOptions, "method", "accuracy", "iterations"),
        title=said["title"] or "",
        text=text,
    )
    if scene.pins is not None:
        with text.about(("pins",)):
            check_path(scene.pins, len(scene))
    return scene


def _shapes(text: TomlText, said: dict[str, Any]) -> Shapes:
    """The shapes, by names that differ."""
    if said["gallery"]:
        with text.about(("shapes", "vertices")):
            make = getattr(gallery, said["gallery"])
            shapes: Shapes = make() if said["vertices"] is None else make(said["vertices"])
    else:
        shapes = _posed(text, said)
    if said["names"]:
        with text.about(("shapes", "names")):
            shapes = chosen_shapes(shapes, said["names"])
    if len(shapes) < 2:
        raise text.error("holds one shape; expected a rig with morph targets, or more files", ("shapes", "file"))
    return told_apart(shapes)


def _posed(text: TomlText, said: dict[str, Any]) -> Shapes:
    """The shapes in files."""
    key: Path = ("shapes", "files" if said["files"] else "file")
    files = [from_scene(text, name) for name in (said["files"] or [said["file"]])]
    for k, file in enumerate(files):
        with text.about((*key, k) if said["files"] else key):
            find(file, lambda name: True)
    with text.about(key, {("base",): ("shapes", "base")}):
        return read_posed(files, _base(text, said["base"]))


def _base(text: TomlText, name: str | None) -> str | None:
    """The base's file, if there is one beside the scene, or else the name of a shape."""
    if name is None:
        return None
    file = from_scene(text, name)
    return file if FilePath(file).is_file() else name


def _keys(text: TomlText, said: Any, shapes: Shapes) -> Floats | None:
    """(rows, shapes) sliders, from rows or a file."""
    if said is None:
        return None
    if isinstance(said, str):
        with text.about(("weights",)):
            table = read_weights(from_scene(text, said), shapes.names)
    else:
        names = ShapeNames(shapes.names)
        table = np.stack([_row(text, row, ("weights", k), names) for k, row in enumerate(said)])
    note_percentages(table, said if isinstance(said, str) else text.source.label)
    return locked(table)


def _row(text: TomlText, said: list[float] | dict[str, float], path: Path, names: ShapeNames) -> Floats:
    """One frame: numbers in the shapes' order, or by name."""
    if isinstance(said, list):
        if not names.fits(len(said)):
            raise text.error(f"has {len(said)} numbers; expected {names.wanted}", path)
        return names.row(said)
    full = np.zeros(len(names))
    for name, value in said.items():
        try:
            full[names.shape(name)] = value
        except KeyError as error:
            raise text.error(error.args[0], (*path, name)) from None
    return full


def _pins(text: TomlText, said: Any, count: int) -> Pins | None:
    if said is None or isinstance(said, str):
        with text.about(("pins",)):
            return None if said is None else read_pins(from_scene(text, said), count)
    for k, vertex in enumerate(said):
        if vertex >= count:
            raise text.error(f"is vertex {vertex}; the mesh has {count}, numbered from 0", ("pins", k))
        if vertex in said[:k]:
            raise text.error(f"vertex {vertex} is there twice", ("pins", k))
    return Pins(np.array(said, dtype=np.int64))


def _pull(text: TomlText, said: dict[str, Any], number: int, count: int) -> Pull:
    if said["vertex"] >= count:
        found = f"is vertex {said['vertex']}; the mesh has {count}, numbered from 0"
        raise text.error(found, ("pulls", number, "vertex"))
    return Pull(said["vertex"], to=said["to"], force=said["force"])


def check_blend_effects(text: TomlText, **beside: Any) -> None:
    """Refuse the first key of a blend's scene that nothing comes of. beside: options that are not in the scene."""
    said = text.content
    if "base" in said["shapes"] and "gallery" in said["shapes"]:
        raise text.error("has no effect: the first name is the base; leave it out", ("shapes", "base"))
    given = said | said.get("springs", {}) | beside
    for key, why in (*blend_options.idle(given), *blend_options.impossible(given)):
        path = ("springs", key) if key in said.get("springs", {}) else (key,)
        raise text.error(f"has no effect: {why}; leave it out", path)

"""Scenes of the engine "blend": poses of one mesh, weights over time, constraints and obstacles.

`read_blend` turns a document that follows `BLEND` (`scene_keys`), from a file or the command line, into a `BlendScene`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import pliant
from pliant import gallery
from pliant.app.scene.located_toml import KeyPath, TomlText, located
from pliant.app.scene.media import from_scene
from pliant.app.scene.obstacles import read_obstacles
from pliant.app.scene.regions import read_region
from pliant.app.scene.schema import EngineScene, option_keys, read_as
from pliant.app.scene.writing import unwritten
from pliant.core.clips import DEFAULT_FPS, Animation, Pose, Shapes
from pliant.core.errors import InputError, PliantWarning
from pliant.core.options import Conflict
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.blend import Blendshapes, Pull, options as blend_options
from pliant.engines.blend.app.scene_keys import BLEND, SPRINGS_KEYS
from pliant.engines.blend.app.scene_weights import default_frames, scene_weights, spread
from pliant.engines.blend.correctives import without_correctives
from pliant.engines.blend.equilibrium import Watch
from pliant.engines.blend.options import BlendOptions
from pliant.engines.blend.sliders import RigSliders
from pliant.engines.blend.springs import SpringKind
from pliant.geometry.regions import Region
from pliant.io.naming import unique_name
from pliant.io.pins import Pins, read_pins
from pliant.io.shape_names import ShapeNames
from pliant.io.source import PathLike, find

BLEND_KEYS: dict[KeyPath, KeyPath] = {
    **{(name,): (name,) for name in BLEND.keys},
    **{(name,): ("springs", name) for name in SPRINGS_KEYS.keys},
    **{(name,): ("shapes", name) for name in option_keys(BlendOptions, "shapes")},
    ("pinned",): ("pins",),
}
"""Scene keys of the arguments of `Blendshapes` and its `poses`."""


@dataclass(frozen=True, eq=False)
class Blended:
    """The result of a scene."""

    rig: Blendshapes
    table: Floats
    """(frames, shapes) the sliders of each frame."""
    clip: Animation
    poses: tuple[Pose, ...]
    """One for each frame."""


@dataclass(frozen=True, eq=False)
class BlendScene(EngineScene):
    """Shapes and their weights, ready to run."""

    shapes: Shapes
    """The base first."""
    keys: Floats | None = None
    """(rows, shapes) sliders; None: from the first shape through all to the last."""
    options: BlendOptions = field(default_factory=BlendOptions)
    weights_from: str = ""
    """The file that `keys` come from, as text."""
    pins: Pins | None = None
    pulls: Sequence[Pull] = ()
    obstacles: Sequence[Any] = ()
    obstacle_names: tuple[str, ...] = ()
    stiffness: Mapping[SpringKind, float] = field(default_factory=dict)
    """Factors on the spring constants."""
    regions: Sequence[tuple[Region, float]] = ()
    """Factors for parts."""
    title: str = ""
    """What the report is called; empty: by the shapes that move."""
    engine: Literal["blend"] = "blend"

    @property
    def shape(self) -> Mesh:
        """The shape that moves."""
        return self.shapes.base

    @property
    def fps(self) -> float:
        """Frames a second."""
        return self.options.fps or DEFAULT_FPS

    def __len__(self) -> int:
        """Number of frames."""
        if self.options.frames is not None:
            return self.options.frames
        return default_frames(len(self.shapes)) if self.keys is None else len(self.keys)

    def rig(self) -> Blendshapes:
        """The shapes with their springs."""
        pins = None if self.pins is None else self.pins.vertices
        with located(self.text, ("shapes",), BLEND_KEYS):
            return Blendshapes(
                self.shapes,
                pins=pins,
                stiffness=self.stiffness,
                regions=self.regions,
                **self.options.taken_by(Blendshapes),
            )

    def sliders(self) -> RigSliders:
        """Which of the shapes are sliders."""
        return RigSliders(self.shapes, **self.options.taken_by(RigSliders))

    def prepare(self) -> Blendshapes:
        """The rig, with everything checked that can be before frames are solved."""
        made = self.rig()
        self.poses(made)
        return made

    def table(self, rig: Blendshapes) -> Floats:
        """(frames, shapes) the sliders of each frame."""
        if self.keys is None:
            return rig.path(len(self))
        return self.keys if self.options.frames is None else spread(self.keys, self.options.frames)

    def poses(
        self, rig: Blendshapes, *, frames: Sequence[int] | None = None, watch: Watch | None = None
    ) -> Iterator[Pose]:
        """Every frame, one after the other; input is checked at once. watch: as in `Blendshapes.poses`.

        frames: only these, by this process.
        """
        alone = {} if frames is None else {"jobs": 1, "only": frames}
        with located(self.text, ("shapes",), BLEND_KEYS):
            return rig.poses(
                self.table(rig),
                pulls=self.pulls,
                pinned=None if self.pins is None else self.pins.path,
                obstacles=self.obstacles,
                watch=watch,
                **self.options.taken_by(Blendshapes.poses) | alone,
            )

    def run(self, report: ReportFrames | None = None, *, rig: Blendshapes | None = None) -> Blended:
        """Solve all frames."""
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


def read_blend(text: TomlText, **changes: Any) -> BlendScene:
    """The scene of a document; options that are given here take precedence over the document."""
    config = _config(text, **changes)
    return _blended(text, config, _shapes(text, config["shapes"]), **changes)


def reblended(scene: BlendScene, document: dict[str, Any], folder: PathLike) -> BlendScene:
    """The same shapes with everything else from a document.

    It equals the scene of the document (`pliant.app.scene.scene_from`) if that has these shapes, but is made without
    reading them again.
    """
    text = unwritten(document, folder)
    return _blended(text, _config(text), scene.shapes)


def _config(text: TomlText, **changes: Any) -> dict[str, Any]:
    config = read_as(BLEND, text, text.content, ())
    check_blend_effects(text, **changes)
    return config


def _blended(text: TomlText, config: dict[str, Any], shapes: Shapes, **changes: Any) -> BlendScene:
    """The scene of shapes with the values of a document."""
    factors = (config["springs"] or {}).get("stiffness") or {}
    options = BlendOptions.read(config, **changes)
    weights = scene_weights(text, config, options, shapes)
    scene = BlendScene(
        shapes,
        weights.keys,
        replace(options, fps=weights.fps),
        weights_from=weights.source,
        pins=_pins(text, config["pins"], len(shapes.base.points)),
        pulls=[_pull(text, entry, k, len(shapes.base.points)) for k, entry in enumerate(config["pulls"])],
        obstacles=read_obstacles(text, config["obstacles"]),
        obstacle_names=tuple(Path(entry["what"]).name for entry in config["obstacles"]),
        stiffness={kind: factor for kind, factor in factors.items() if factor is not None},
        regions=[
            (read_region(text, entry, ("regions", k)), entry["stiffness"]) for k, entry in enumerate(config["regions"])
        ],
        title=config["title"] or "",
        text=text,
    )
    if scene.pins is not None:
        with text.about(("pins",)):
            check_path(scene.pins, len(scene))
    return scene


def _shapes(text: TomlText, config: dict[str, Any]) -> Shapes:
    """The shapes, with unique names."""
    if config["gallery"]:
        with text.about(("shapes", "vertices")):
            make = getattr(gallery, config["gallery"])
            shapes: Shapes = make() if config["vertices"] is None else make(config["vertices"])
    else:
        shapes = without_correctives(_posed(text, config))
    if config["names"]:
        with text.about(("shapes", "names")):
            shapes = chosen_shapes(shapes, config["names"])
    if len(shapes) < 2:
        raise text.error("holds one shape; expected a rig with morph targets, or more files", ("shapes", "file"))
    return with_unique_names(shapes)


def _posed(text: TomlText, config: dict[str, Any]) -> Shapes:
    """The shapes in files."""
    key: KeyPath = ("shapes", "files" if config["files"] else "file")
    files = [from_scene(text, name) for name in (config["files"] or [config["file"]])]
    for k, file in enumerate(files):
        with text.about((*key, k) if config["files"] else key):
            find(file, lambda name: True)
    with text.about(key, {("base",): ("shapes", "base")}):
        return read_posed(files, _base(text, config["base"]))


def _base(text: TomlText, name: str | None) -> str | None:
    """The base's file, if there is one beside the scene, or else the name of a shape."""
    if name is None:
        return None
    file = from_scene(text, name)
    return file if Path(file).is_file() else name


def _pins(text: TomlText, config: Any, count: int) -> Pins | None:
    if config is None or isinstance(config, str):
        with text.about(("pins",)):
            return None if config is None else read_pins(from_scene(text, config), count)
    for k, vertex in enumerate(config):
        if vertex >= count:
            raise text.error(f"is vertex {vertex}; the mesh has {count}, numbered from 0", ("pins", k))
        if vertex in config[:k]:
            raise text.error(f"vertex {vertex} is there twice", ("pins", k))
    return Pins(np.array(config, dtype=np.int64))


def _pull(text: TomlText, config: dict[str, Any], number: int, count: int) -> Pull:
    if config["vertex"] >= count:
        found = f"is vertex {config['vertex']}; the mesh has {count}, numbered from 0"
        raise text.error(found, ("pulls", number, "vertex"))
    return Pull(config["vertex"], to=config["to"], force=config["force"])


def check_blend_effects(text: TomlText, **changes: Any) -> None:
    """Refuse the first key of a blend's scene that has no effect. changes: options that are not from the scene."""
    config = text.content
    if "base" in config["shapes"] and "gallery" in config["shapes"]:
        raise text.error("has no effect: the first name is the base; leave it out", ("shapes", "base"))
    for key, why in _without_effect(config, **changes):
        path = ("springs", key) if key in config.get("springs", {}) else (key,)
        raise text.error(f"has no effect: {why}; leave it out", path)


def with_effect(config: dict[str, Any]) -> dict[str, Any]:
    """A blend's scene but for the options that `check_blend_effects` would refuse."""
    without = {key for key, _ in _without_effect(config)}
    springs = {key: value for key, value in config.get("springs", {}).items() if key not in without}
    kept = {key: value for key, value in config.items() if key not in without and key != "springs"}
    return kept | ({"springs": springs} if springs else {})


def _without_effect(config: dict[str, Any], **changes: Any) -> Iterator[Conflict]:
    given = config | config.get("springs", {}) | changes
    yield from blend_options.idle(given)
    yield from blend_options.impossible(given)


def read_posed(files: Sequence[str], base: str | None = None) -> Shapes:
    """The shapes of a rig, folder, glob or archive, or of several files; of those the first is the base, whatever it
    is called, unless another is named.
    """
    if len(files) == 1:
        return pliant.read_shapes(files[0], base=base)
    first = str(Path(files[0])) if base is None and Path(files[0]).is_file() else base
    return pliant.read_shapes(list(files), base=first)


def chosen_shapes(shapes: Shapes, names: Sequence[str]) -> Shapes:
    """Those called `names`, in this order."""
    known = ShapeNames(shapes.names)
    try:
        chosen = [known.shape(name) for name in names]
    except KeyError as error:
        raise InputError(error.args[0]) from None
    return Shapes(shapes[chosen[0]], shapes.points[chosen], tuple(shapes.names[k] for k in chosen))


def with_unique_names(shapes: Shapes) -> Shapes:
    """The same shapes with unique names; warns of shapes that equal the base."""
    base = shapes.base.points
    same = [name for name, at in zip(shapes.names[1:], shapes.points[1:], strict=True) if np.array_equal(at, base)]
    if same:
        listed = ", ".join(same[:6]) + (", ..." if len(same) > 6 else "")
        warnings.warn(f"the same as the base, so its weight changes nothing: {listed}", PliantWarning, stacklevel=2)
    taken: set[str] = set()
    return Shapes(shapes.base, shapes.points, tuple(unique_name(name, taken) for name in shapes.names))


def check_path(pins: Pins, frames: int) -> None:
    """Check that pins with given paths have a position in every frame."""
    if pins.path is not None and len(pins.path) != frames:
        raise InputError(f'"path" has {len(pins.path)} frames; the clip has {frames}')

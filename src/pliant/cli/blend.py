"""``pliant blend``: shapes in, a clip out, and a report on it."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import pliant
from pliant.cli.arguments import (
    Choices,
    add_command,
    count,
    fraction,
    frame_count,
    place,
    positive,
    vertex_place,
)
from pliant.cli.contact import add_contact, contact_words, read_contact
from pliant.cli.results import add_told, tell, written_clip
from pliant.cli.targets import check_clip, check_frames, check_page
from pliant.errors import FileError, InputError, PliantWarning
from pliant.io.naming import unique_name
from pliant.io.pins import Pins, read_pins
from pliant.io.weights import ShapeNames, read_weights
from pliant.progress import progress
from pliant.topology import Floats

if TYPE_CHECKING:
    from pliant.report import BlendRun

PERCENT = 10.0
"""Weights above this look like percentages."""


def add_commands(commands: Any) -> None:
    """Make it known."""
    parser = add_command(commands, _blend, "blend", "poses of one mesh, blended as a body: limbs turn, volume is kept")
    parser.add_argument(
        "input",
        metavar="IN",
        nargs="+",
        help="two or more meshes of one topology, the base first; or a rig with morph targets, a folder, glob, .tar or "
        ".zip of shapes",
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="clip: .glb .usdc .pc2 .npz, or a folder")
    parser.add_argument("--base", help="the base shape: a file, or the name of one of the shapes")
    what = parser.add_argument_group("what to blend")
    what.add_argument("--shapes", metavar="NAMES", help="of a rig only these, in this order: Open,Fist")
    what.add_argument("--weights", metavar="FILE", help=".csv or .json: a row of sliders for each frame")
    what.add_argument(
        "--frames",
        type=frame_count,
        help="how many (default: 36 for two shapes); with --weights its rows are keys, spread evenly over them",
    )
    what.add_argument("--fps", type=positive, default=30.0, help="frames a second (default: 30)")
    held = parser.add_argument_group("what holds and what pulls (vertices are numbered from 0)")
    held.add_argument("--anchor", type=_anchor, default="auto", help="auto, none, or X,Y,Z inside the base shape")
    held.add_argument("--pin", metavar="FILE", help="vertices to lead on straight lines, or on paths of your own")
    pull: dict[str, Any] = {"type": vertex_place, "action": "append", "default": [], "metavar": "VERTEX:X,Y,Z"}
    held.add_argument("--pull", help="hold a vertex at a place; may be given again", **pull)
    held.add_argument("--force", help="drag a vertex; 1 stretches one spring by about three quarters", **pull)
    add_contact(parser)
    how = parser.add_argument_group("how to solve")
    _add_choice(how, "--interior", Choices("pliant.blend.interior", "InteriorMethod"), "auto", "what fills the shape")
    _add_choice(how, "--model", Choices("pliant.blend.body", "Model"), "turned", "what springs strive for")
    _add_choice(how, "--method", Choices("pliant.blend.equilibrium", "Method"), "lbfgs", "which solver")
    how.add_argument("--accuracy", type=fraction, default=1e-4, help="how near to equilibrium (default: 1e-4)")
    how.add_argument("--iterations", type=count, help="most iterations a frame may take")
    how.add_argument("--jobs", type=count, default=1, help="processes to solve frames in (default: 1)")
    add_told(parser, "beside linear blending, with curves and figures")


def _add_choice(group: Any, name: str, choices: Choices, default: str, words: str) -> None:
    listed = f"{words}: %(choices)s (default: {default})"
    group.add_argument(name, metavar=name[2:].upper(), choices=choices, default=default, help=listed)


def _anchor(text: str) -> str | tuple[float, float, float]:
    return text if text in ("auto", "none") else place(text)


def _blend(options: argparse.Namespace) -> int:
    """Blend shapes of one topology as a body of springs, from the first through all to the last or by a table of
    weights, and write the clip by suffix.
    """
    check_clip(options.output)
    if options.report:
        check_page(options.report)
    shapes = _shapes(options)
    run = _solved(options, shapes)
    written = written_clip(run, options.output)
    if options.report:
        from pliant.report import write_blend_report

        with progress("drawing the report", quiet=options.quiet):
            write_blend_report(options.report, run, view=options.view, up=options.up)
    return tell(options, run, written)


def _shapes(options: argparse.Namespace) -> pliant.Shapes:
    """The shapes, by names that differ; of several files the first is the base, whatever it is called."""
    inputs = options.input
    several = len(inputs) > 1
    base = str(Path(inputs[0])) if several and options.base is None and Path(inputs[0]).is_file() else options.base
    shapes = _chosen(pliant.read_shapes(inputs if several else inputs[0], base=base), options.shapes)
    if len(shapes) < 2:
        raise FileError(inputs[0], "holds one shape; expected a rig with morph targets, or more files to blend with")
    same = [name for name, points in zip(shapes.names[1:], shapes.points[1:], strict=True) if _same(points, shapes)]
    if same:
        listed = ", ".join(same[:6]) + (", ..." if len(same) > 6 else "")
        warnings.warn(f"the same as the base, so its weight changes nothing: {listed}", PliantWarning, stacklevel=2)
    taken: set[str] = set()
    return pliant.Shapes(shapes.base, shapes.points, tuple(unique_name(name, taken) for name in shapes.names))


def _chosen(shapes: pliant.Shapes, names: str | None) -> pliant.Shapes:
    """All shapes, or those called `names`, parted by commas."""
    if names is None:
        return shapes
    known = ShapeNames(shapes.names)
    try:
        chosen = [known.shape(name.strip()) for name in names.split(",")]
    except KeyError as error:
        raise InputError(f"--shapes: {error.args[0]}") from None
    return pliant.Shapes(shapes[chosen[0]], shapes.points[chosen], tuple(shapes.names[k] for k in chosen))


def _same(points: Floats, shapes: pliant.Shapes) -> bool:
    return bool(np.array_equal(points, shapes.base.points))


def _solved(options: argparse.Namespace, shapes: pliant.Shapes) -> BlendRun:
    """Set up, and solve all frames."""
    sliders = _sliders(options, shapes)
    frames = _default_frames(options, shapes) if sliders is None else len(sliders)
    check_frames(options.output, frames)
    pins = _pins(options, shapes, frames)
    pulls = _pulls(options, len(shapes.base.points))
    contact = read_contact(options)
    from pliant.report import BlendRun

    begun = time.perf_counter()
    with progress("setting up", quiet=options.quiet):
        rig = pliant.Blendshapes(
            shapes,
            anchor=options.anchor,
            pins=None if pins is None else pins.vertices,
            interior=options.interior,
            model=options.model,
        )
    ready = time.perf_counter()
    table = rig.path(frames) if sliders is None else sliders
    poses: list[pliant.Pose] = []
    with progress("blending", quiet=options.quiet) as show:
        for pose in rig.poses(
            table,
            pulls=pulls,
            pinned=None if pins is None else pins.path,
            method=options.method,
            accuracy=options.accuracy,
            iterations=options.iterations,
            jobs=options.jobs,
            **contact.options,
        ):
            poses.append(pose)
            steps = f"{pose.iterations} iteration{'s' if pose.iterations != 1 else ''}"
            touch = f", {pose.contacts} contacts" if contact else ""
            show(len(poses), len(table), f"{steps}, residual {pose.residual:.0e}{touch}")
    done = time.perf_counter()
    settings = _settings(options, pins) | contact_words(options)
    return BlendRun(rig, table, poses, options.fps, ready - begun, done - ready, settings, contact)


def _default_frames(options: argparse.Namespace, shapes: pliant.Shapes) -> int:
    """As asked, or about 36 and at least 8 from shape to shape, so that each shape is met."""
    legs = len(shapes) - 1
    return options.frames or legs * max(8, 35 // legs) + 1


def _sliders(options: argparse.Namespace, shapes: pliant.Shapes) -> Floats | None:
    """The table of weights, or None if there is none."""
    if options.weights is None:
        return None
    table = read_weights(options.weights, shapes.names)
    if np.abs(table).max() > PERCENT:
        what = f"{options.weights}: weights go up to {np.abs(table).max():g}; 1, not 100, is a shape in full"
        warnings.warn(what, PliantWarning, stacklevel=2)
    if options.frames is None:
        return table
    at = np.linspace(0, len(table) - 1, options.frames)
    return np.stack([np.interp(at, np.arange(len(table)), column) for column in table.T], axis=1)


def _pins(options: argparse.Namespace, shapes: pliant.Shapes, frames: int) -> Pins | None:
    if options.pin is None:
        return None
    pins = read_pins(options.pin, len(shapes.base.points))
    if pins.path is not None and len(pins.path) != frames:
        raise FileError(options.pin, f'"path" has {len(pins.path)} frames; the clip has {frames} (see --frames)')
    return pins


def _pulls(options: argparse.Namespace, count: int) -> list[pliant.Pull]:
    for name in ("pull", "force"):
        for vertex, _ in getattr(options, name):
            if vertex >= count:
                raise InputError(
                    f"--{name} names vertex {vertex}; the mesh has {count}, numbered from 0 to {count - 1}"
                )
    pulls = [pliant.Pull(vertex, to=at) for vertex, at in options.pull]
    return pulls + [pliant.Pull(vertex, force=force) for vertex, force in options.force]


def _settings(options: argparse.Namespace, pins: Pins | None) -> dict[str, str]:
    words = {"model": options.model, "method": f"{options.method}, to an accuracy of {options.accuracy:g}"}
    if pins is not None:
        words["pins"] = f"{len(pins.vertices)}, {'on straight lines' if pins.path is None else 'on given paths'}"
    for name in ("pull", "force"):
        if getattr(options, name):
            words[f"{name}s"] = "; ".join(f"{v} {at}" for v, at in getattr(options, name))
    return words

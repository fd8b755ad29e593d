"""``pliant blend``: shapes in, a clip out, and a report on it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

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
from pliant.cli.contact import add_contact, check_contact, obstacle_words, read_obstacles
from pliant.cli.results import add_told, tell
from pliant.cli.targets import Located, named_by_user, set_up
from pliant.engines.blend.options import BlendOptions
from pliant.errors import FileError, InputError
from pliant.io import write_clip
from pliant.io.pins import read_pins
from pliant.io.weights import read_weights
from pliant.progress import progress
from pliant.topology import Floats

if TYPE_CHECKING:
    from pliant.report import BlendRun
    from pliant.scene import BlendScene


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
    _add_choice(
        how, "--interior", Choices("pliant.engines.blend.options", "InteriorMethod"), "auto", "what fills the shape"
    )
    _add_choice(how, "--model", Choices("pliant.engines.blend.options", "Model"), "turned", "what springs strive for")
    _add_choice(how, "--method", Choices("pliant.engines.blend.options", "Method"), "lbfgs", "which solver")
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
    return made(options, lambda: _scene(options), obstacle_words(options))


def made(
    options: argparse.Namespace,
    read: Callable[[], BlendScene],
    words: Mapping[str, str] | None = None,
    located: Located = named_by_user,
) -> int:
    """The clip of a scene, and what is told of it; the exit code. `words` tell of its obstacles, if given."""
    begun = time.perf_counter()
    with progress("setting up", quiet=options.quiet):
        scene, rig = set_up(options.output, options.report, read, located)
    run = _solved(options, scene, rig, time.perf_counter() - begun, words or {})
    written = write_clip(options.output, run.clip)
    if options.report:
        from pliant.report import write_blend_report

        with progress("drawing the report", quiet=options.quiet):
            write_blend_report(options.report, run, title=scene.title, view=options.view, up=options.up)
    return tell(options, run, written)


def _scene(options: argparse.Namespace) -> BlendScene:
    """From the options, which stand for one."""
    check_contact(options)
    from pliant.scene.blend import BlendScene

    shapes = _shapes(options)
    obstacles, names = read_obstacles(options)
    scene = BlendScene(
        shapes,
        _keys(options, shapes),
        options.frames,
        options.fps,
        anchor=options.anchor,
        pins=None if options.pin is None else read_pins(options.pin, len(shapes.base.points)),
        pulls=_pulls(options, len(shapes.base.points)),
        obstacles=obstacles,
        obstacle_names=names,
        friction=options.friction or 0.0,
        self_contact=options.self_contact,
        thickness=options.thickness,
        springs={"interior": options.interior, "model": options.model},
        options={name: getattr(options, name) for name in ("method", "accuracy", "iterations", "jobs")},
    )
    _check_pins(options, scene)
    return scene


def _shapes(options: argparse.Namespace) -> pliant.Shapes:
    """The shapes, by names that differ."""
    from pliant.scene.blend_inputs import chosen_shapes, read_posed, told_apart

    shapes = read_posed(options.input, options.base)
    if options.shapes is not None:
        try:
            shapes = chosen_shapes(shapes, [name.strip() for name in options.shapes.split(",")])
        except InputError as error:
            raise InputError(f"--shapes: {error}") from None
    if len(shapes) < 2:
        first = options.input[0]
        raise FileError(first, "holds one shape; expected a rig with morph targets, or more files to blend with")
    return told_apart(shapes)


def _keys(options: argparse.Namespace, shapes: pliant.Shapes) -> Floats | None:
    """The table of weights, or None if there is none."""
    from pliant.scene.blend_inputs import note_percentages

    if options.weights is None:
        return None
    table = read_weights(options.weights, shapes.names)
    note_percentages(table, options.weights)
    return table


def _check_pins(options: argparse.Namespace, scene: BlendScene) -> None:
    from pliant.scene.blend_inputs import check_path

    if scene.pins is not None:
        try:
            check_path(scene.pins, len(scene))
        except InputError as error:
            raise FileError(options.pin, f"{error} (see --frames)") from None


def _pulls(options: argparse.Namespace, count: int) -> list[pliant.Pull]:
    for name in ("pull", "force"):
        for vertex, _ in getattr(options, name):
            if vertex >= count:
                raise InputError(
                    f"--{name} names vertex {vertex}; the mesh has {count}, numbered from 0 to {count - 1}"
                )
    pulls = [pliant.Pull(vertex, to=at) for vertex, at in options.pull]
    return pulls + [pliant.Pull(vertex, force=force) for vertex, force in options.force]


def _solved(
    options: argparse.Namespace, scene: BlendScene, rig: pliant.Blendshapes, seconds: float, words: Mapping[str, str]
) -> BlendRun:
    """Solve all frames; seconds: what it took to set up."""
    from pliant.report import BlendRun, Contact

    ready = time.perf_counter()
    poses: list[pliant.Pose] = []
    with progress("blending", quiet=options.quiet) as show:
        for pose in scene.poses(rig):
            poses.append(pose)
            steps = f"{pose.iterations} iteration{'s' if pose.iterations != 1 else ''}"
            touch = f", {pose.contacts} contacts" if scene.obstacles or scene.self_contact else ""
            show(len(poses), len(scene), f"{steps}, residual {pose.residual:.0e}{touch}")
    done = time.perf_counter()
    contact = Contact(scene.obstacles, scene.friction, scene.self_contact, scene.thickness, scene.obstacle_names)
    settings = {**_settings(scene), **words}
    return BlendRun(rig, scene.table(rig), poses, scene.fps, seconds, done - ready, settings, contact)


def _settings(scene: BlendScene) -> dict[str, str]:
    """What was asked for, in words."""
    how = BlendOptions(**scene.options)
    words = {"scene": scene.file} if scene.file else {}
    words["model"] = scene.springs.get("model", BlendOptions.model)
    words["method"] = f"{how.method}, to an accuracy of {how.accuracy:g}"
    if scene.pins is not None:
        lines = "on straight lines" if scene.pins.path is None else "on given paths"
        words["pins"] = f"{len(scene.pins.vertices)}, {lines}"
    for name, key in (("pulls", "to"), ("forces", "force")):
        pulled = [f"{pull.vertex} {getattr(pull, key)}" for pull in scene.pulls if getattr(pull, key) is not None]
        words |= {name: "; ".join(pulled)} if pulled else {}
    words |= {"obstacles": "; ".join(scene.obstacle_names)} if scene.obstacles else {}
    words |= {"friction": f"{scene.friction:g}"} if scene.friction else {}
    words |= {"itself": "does not pass through itself"} if scene.self_contact else {}
    return words | ({"thickness": f"{scene.thickness:g}"} if scene.thickness is not None else {})

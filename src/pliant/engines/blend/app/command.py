"""``pliant blend``: its arguments, and the scene document made from them."""

from __future__ import annotations

import argparse
from typing import Any

from pliant.app.cli.arguments import vertex_point
from pliant.app.cli.flags import OBSTACLE_NAMES, add_obstacles, add_options, given, obstacles_of
from pliant.core.options import Path
from pliant.engines.blend.options import BlendOptions

ASIDE = ("jobs",)
"""Options of the command that are not scene keys."""
SPRING_OPTIONS = ("interior", "model", "method", "accuracy", "iterations")


def add_arguments(parser: Any, engine: Any) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "input",
        metavar="IN",
        nargs="+",
        help="two or more meshes of one topology, the base first; or a rig with morph targets, a folder, glob, .tar or "
        ".zip of shapes; or a scene file",
    )
    parser.add_argument("--base", help="the base shape: a file, or the name of one of the shapes")
    what = parser.add_argument_group("what to blend")
    what.add_argument("--shapes", metavar="NAMES", help="of a rig only these, in this order: Open,Fist")
    what.add_argument("--weights", metavar="FILE", help=".csv or .json: a row of sliders for each frame")
    add_options(what, BlendOptions, "frames", "fps")
    constraints = parser.add_argument_group("what holds and what pulls (vertices are numbered from 0)")
    add_options(constraints, BlendOptions, "anchor")
    constraints.add_argument(
        "--pin", metavar="FILE", help="vertices to lead on straight lines, or on paths of your own"
    )
    pull: dict[str, Any] = {"type": vertex_point, "action": "append", "default": [], "metavar": "VERTEX:X,Y,Z"}
    constraints.add_argument("--pull", help="hold a vertex at a place; may be given again", **pull)
    constraints.add_argument("--force", help="drag a vertex; 1 stretches one spring by about three quarters", **pull)
    contact = parser.add_argument_group("what it gives way to (frames are then solved in order)")
    add_obstacles(contact)
    add_options(contact, BlendOptions, "friction", "self_contact", "thickness")
    how = parser.add_argument_group("how to solve")
    add_options(how, BlendOptions, *SPRING_OPTIONS, "jobs")


def scene_file(options: argparse.Namespace) -> str | None:
    """The scene that was given instead of shapes."""
    from pliant.app.cli.engines import is_scene

    return options.input[0] if len(options.input) == 1 and is_scene(options.input[0]) else None


def document(options: argparse.Namespace) -> tuple[dict[str, Any], dict[Path, str]]:
    """The scene document of the arguments, and the flags of its keys for error messages."""
    files = options.input
    shapes: dict[str, Any] = {"file": files[0]} if len(files) == 1 else {"files": files}
    shapes |= given(options, "base")
    if options.shapes is not None:
        shapes["names"] = [name.strip() for name in options.shapes.split(",")]
    pulls = [{"vertex": vertex, "to": list(at)} for vertex, at in options.pull]
    pulls += [{"vertex": vertex, "force": list(at)} for vertex, at in options.force]
    config = {
        "shapes": shapes,
        **given(options, "weights", "frames", "fps", "anchor", "friction", "self_contact", "thickness"),
        **({} if options.pin is None else {"pins": options.pin}),
        **({"pulls": pulls} if pulls else {}),
        **obstacles_of(options),
        **({"springs": springs} if (springs := given(options, *SPRING_OPTIONS)) else {}),
    }
    names: dict[Path, str] = {("shapes", "names"): "--shapes", ("shapes", "file"): files[0], ("pins",): "--pin"}
    names |= {("pulls", k): "--pull" if k < len(options.pull) else "--force" for k in range(len(pulls))}
    return config, {**OBSTACLE_NAMES, **names}

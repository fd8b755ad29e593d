"""``pliant blend``: its arguments, and the scene document made from them."""

from __future__ import annotations

import argparse
from typing import Any

from pliant.app.cli.arguments import vertex_point
from pliant.app.cli.flags import (
    OBSTACLE_NAMES,
    ArgumentGroups,
    add_obstacles,
    given,
    joined,
    obstacles_of,
    option_tables,
)
from pliant.app.scene.regions import REGION_NAMES, typed_region
from pliant.core.options import CONTACT_GROUP, POSITIVE, SOLVER_GROUP, KeyPath, Misfit, parse_word
from pliant.engines.blend.options import CONSTRAINTS_GROUP, SHAPES_GROUP, BlendOptions

STIFFNESS_SYNTAX = "NAME=FACTOR"


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
    groups = ArgumentGroups(parser)
    what, constraints = groups[SHAPES_GROUP], groups[CONSTRAINTS_GROUP]
    what.add_argument("--shapes", metavar="NAMES", help="of a rig only these, in this order: Open,Fist")
    what.add_argument(
        "--weights",
        metavar="FILE",
        help="sliders over time: a table with a row for each frame (.csv .json), a recording of a face (.csv), or "
        "another rig's clip (.glb .usd) (default: the rig's own clip, if it has one)",
    )
    constraints.add_argument(
        "--pin", metavar="FILE", help="vertices to lead on straight lines, or on paths of your own"
    )
    pull: dict[str, Any] = {"type": vertex_point, "action": "append", "default": [], "metavar": "VERTEX:X,Y,Z"}
    constraints.add_argument("--pull", help="hold a vertex at a point; may be given again", **pull)
    constraints.add_argument("--force", help="drag a vertex; 1 stretches one spring by about three quarters", **pull)
    add_obstacles(groups[CONTACT_GROUP])
    groups[SOLVER_GROUP].add_argument(
        "--stiffness",
        metavar=STIFFNESS_SYNTAX,
        type=_region,
        action="append",
        default=[],
        help=f"how stiff a part is: 10 is stiff, 0.1 is soft; NAME: {REGION_NAMES}, or an image on the UVs (white: so "
        "stiff, black: 1); may be given again",
    )
    groups.add_options(BlendOptions)


def scene_file(options: argparse.Namespace) -> str | None:
    """The scene that was given instead of shapes."""
    from pliant.app.cli.engines import is_scene

    return options.input[0] if len(options.input) == 1 and is_scene(options.input[0]) else None


def document(options: argparse.Namespace) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """The scene document of the arguments, and the flags of its keys for error messages."""
    files = options.input
    shapes: dict[str, Any] = {"file": files[0]} if len(files) == 1 else {"files": files}
    shapes |= given(options, "base")
    if options.shapes is not None:
        shapes["names"] = [name.strip() for name in options.shapes.split(",")]
    pulls = [{"vertex": vertex, "to": at} for vertex, at in options.pull]
    pulls += [{"vertex": vertex, "force": at} for vertex, at in options.force]
    written = {
        "shapes": shapes,
        "weights": options.weights,
        "pins": options.pin,
        "pulls": pulls,
        "regions": options.stiffness,
    }
    config = joined(written, option_tables(options, BlendOptions), obstacles_of(options))
    names: dict[KeyPath, str] = {("shapes", "names"): "--shapes", ("shapes", "file"): files[0], ("pins",): "--pin"}
    names |= {("pulls", k): "--pull" if k < len(options.pull) else "--force" for k in range(len(pulls))}
    return config, {**OBSTACLE_NAMES, **names, ("regions",): "--stiffness"}


def _region(text: str) -> dict[str, Any]:
    """An entry of regions: from NAME=FACTOR."""
    name, equals, factor = text.rpartition("=")
    try:
        if not equals or not name.strip():
            raise ValueError(text)
        return {**typed_region(name), "stiffness": parse_word(POSITIVE, factor)}
    except (ValueError, Misfit):
        raise argparse.ArgumentTypeError(f'"{text}" is not {STIFFNESS_SYNTAX}, such as skull=20') from None

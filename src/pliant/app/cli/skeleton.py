"""``pliant skeleton``: a skeleton from a shape alone."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import pliant
from pliant.app.cli.arguments import add_command, add_view, count, positive
from pliant.app.cli.flags import given
from pliant.app.cli.targets import check_picture, check_skeleton, written_line
from pliant.core.errors import FileError, InputError
from pliant.core.progress import progress
from pliant.core.terminal import say, say_json


def add_commands(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, _skeleton, "skeleton", "find a skeleton inside a mesh")
    parser.add_argument("input", metavar="MESH", help="a closed mesh (small holes do not matter), or tetrahedra")
    parser.add_argument("-o", "--output", required=True, help="the skeleton's file: .json .tgf .bvh .npz")
    parser.add_argument("--joints", type=count, help="how many (default: as the shape has it)")
    parser.add_argument(
        "--shortest-limb",
        type=positive,
        help="length over width from which on something that sticks out gets bones (default: 1.05)",
    )
    parser.add_argument(
        "--voxels",
        type=count,
        help="how many the inside is cut into; limbs thinner than two of them are missed (default: 100000)",
    )
    parser.add_argument("--picture", metavar="FILE", help="draw the skeleton in the mesh: .png .jpg")
    add_view(parser, "of the picture: ")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--quiet", action="store_true", help="say nothing")


def _skeleton(options: argparse.Namespace) -> int:
    """Find a skeleton in a shape: a tree of bones in the middle of its limbs, inside the surface.

    What stands on legs gets hips, knees, shoulders, elbows, ... by name. Other shapes, and any with --joints,
    --shortest-limb or --voxels, get the curve skeleton.
    """
    from pliant.app.scene.media import shape_in
    from pliant.geometry.body_plan.joints import body_skeleton
    from pliant.geometry.skeletons.curve_skeleton import extract_skeleton

    check_skeleton(options.output)
    if options.picture:
        check_picture(options.picture)
    shape = shape_in(options.input)
    if isinstance(shape, pliant.PointCloud):
        raise FileError(options.input, "holds points without faces; expected a mesh with an inside")
    begun = time.perf_counter()
    with progress("finding the skeleton", quiet=options.quiet or options.json):
        try:
            asked = given(options, "joints", "shortest_limb", "voxels")
            planned = None if asked else body_skeleton(shape)
            found = extract_skeleton(shape, **asked) if planned is None else planned[0]
        except InputError as error:
            raise FileError(options.input, str(error)) from error
    seconds = time.perf_counter() - begun
    written = pliant.write(options.output, found)
    if options.picture:
        _draw(shape, found, options)
    facts = _facts(found) | {"output": str(written[0]), "picture": options.picture, "seconds": round(seconds, 3)}
    if options.json:
        say_json(facts)
    elif not options.quiet:
        say(f"{facts['joints']} joints, {facts['limbs']} limbs, {facts['ends']} ends; {seconds:.1f} s")
        say(written_line(found, written))
        if options.picture:
            say(options.picture)
    return 0


def _facts(skeleton: pliant.Skeleton) -> dict[str, Any]:
    """What scripts ask for."""
    ends = np.setdiff1d(np.arange(len(skeleton)), skeleton.parents)
    positions, _ = skeleton.rest_pose().world()
    lengths = np.linalg.norm(np.diff(positions[skeleton.bones], axis=1)[:, 0], axis=1)
    return {
        "joints": len(skeleton),
        "limbs": len({name.rpartition(".")[0] or name for name in skeleton.names} - TRUNK),
        "ends": len(ends),
        "length": float(lengths.sum()),
        "names": list(skeleton.names),
    }


def _draw(shape: pliant.Mesh | pliant.TetMesh, skeleton: pliant.Skeleton, options: argparse.Namespace) -> None:
    from pliant import render

    seen = render.Extra(skeleton, color=SKELETON_COLOR)
    image = render.picture(shape, view=options.view, up=options.up, ground=False, extra=[seen])
    render.save(image, options.picture)


TRUNK = {"root", "hips", "spine", "neck"}
"""Joints, and starts of their names, that belong to no limb."""
SKELETON_COLOR = "#b03020"
"""Colour of the bones that shine through."""

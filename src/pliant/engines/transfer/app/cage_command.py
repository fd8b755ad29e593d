"""``pliant cage``: a coarse cage around anything."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant.app.cli.arguments import add_command
from pliant.app.cli.flags import add_option, given
from pliant.app.cli.targets import check_mesh
from pliant.core.errors import FileError
from pliant.core.progress import progress
from pliant.core.terminal import say, say_json
from pliant.engines.transfer.options import CageOptions

COARSE_ERROR = 0.02
"""Error of a cage, from which the summary says where."""


def add_commands(commands: Any) -> None:
    """Make them known."""
    parser = add_command(commands, _cage, "cage", "a coarse closed cage around a mesh, a point cloud or tetrahedra")
    parser.add_argument("input", metavar="MESH", help="a mesh, polygon soup, point cloud or tetrahedra, in any format")
    parser.add_argument("-o", "--output", required=True, help="the cage's file: .obj .ply .stl .off .glb ...")
    for about in CageOptions.all(table="cage"):
        add_option(parser, about)
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--quiet", action="store_true", help="say nothing")


def _cage(options: argparse.Namespace) -> int:
    """Enclose a shape: the cage is closed, faces out, does not cross itself, and has every point inside."""
    from pliant.app.scene.media import shape_in
    from pliant.engines.transfer.build import build_cage, cage_distances, cage_error
    from pliant.geometry.spatial import SurfaceTree

    check_mesh(options.output)
    if Path(options.output).resolve() == Path(options.input).resolve():
        raise FileError(options.output, "is the mesh itself, which its cage would be written over; give another name")
    target = shape_in(options.input)
    begun = time.perf_counter()
    with progress("building the cage", quiet=options.quiet or options.json):
        cage = build_cage(target, **given(options, *CageOptions.names(table="cage")))
    seconds = time.perf_counter() - begun
    away = cage_distances(cage, target.points)
    farthest, margin = int(np.argmax(away)), CageOptions.margin if options.margin is None else options.margin
    error = cage_error(cage, target.points, margin)
    nearest = float(-SurfaceTree(cage).signed_distance(target.points).max()) / target.diagonal
    written = pliant.write(options.output, cage)
    facts = {
        "output": str(written[0]),
        "vertices": len(cage.points),
        "faces": len(cage.triangles),
        "parts": int(cage.parts.max()) + 1,
        "nearest": nearest,
        "error": error,
        "farthest": {"vertex": farthest, "distance": float(away[farthest]), "point": target.points[farthest].tolist()},
        "seconds": round(seconds, 3),
    }
    if options.json:
        say_json(facts)
    elif not options.quiet:
        parts = f" in {facts['parts']} parts" if facts["parts"] != 1 else ""
        say(f"{facts['vertices']} vertices, {facts['faces']} faces{parts}; all {len(target.points)} points inside,")
        say(f"the nearest {100 * nearest:.2g} % of the diagonal from it; {seconds:.1f} s")
        if error > COARSE_ERROR:
            x, y, z = target.points[farthest]
            say(f"it is coarse: {100 * error:.2g} % of the diagonal beyond its clearance at 5 % of the points, most at")
            at = f"vertex {farthest} ({x:.4g}, {y:.4g}, {z:.4g})"
            say(f"{at}, {100 * away[farthest]:.2g} % away; --error 1% refines it")
        say(f"{cage!r} -> {written[0]}")
    return 0

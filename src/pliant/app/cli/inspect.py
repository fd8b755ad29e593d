"""``pliant info`` and ``pliant report``: what is in a file, and how good a clip is."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pliant
from pliant.app.cli.arguments import add_command, add_input, read_input
from pliant.core.progress import progress
from pliant.core.terminal import say, say_json

if TYPE_CHECKING:
    from pliant.geometry.quality import Report

MEANINGS = {
    "popping": "largest step of a point since the frame before, over the median of its own steps; 1 is even motion",
    "step": "longest step of a point since the frame before, over the diagonal of the bounding box",
    "volume": "over that at rest; 1 is kept",
    "edge_rms": "edge length over that at rest, less 1: root mean square over all edges; 0 is kept",
    "edge_min": "the least edge length over that at rest; 1 is kept, 0.5 is halved",
    "edge_max": "the largest edge length over that at rest",
    "area_rms": "triangle area over that at rest, less 1: root mean square over all triangles; 0 is kept",
    "area_min": "the least triangle area over that at rest",
    "area_max": "the largest triangle area over that at rest",
    "bend_rms": "change of the angles between neighbouring faces, in radians, root mean square: wrinkles",
    "inverted": "tetrahedra that are turned inside out",
    "self_intersections": "pairs of triangles that cross each other",
    "penetration": "deepest a point is inside the obstacle, over the diagonal",
}


def add_commands(commands: Any) -> None:
    """Add the commands."""
    _add_info(commands)
    _add_report(commands)


def _add_info(commands: Any) -> None:
    parser = add_command(commands, _info, "info", "what is in a file, and what is wrong with it")
    parser.add_argument("input", metavar="FILE", help="file, folder, glob, .tar or .zip")
    parser.add_argument("--deep", action="store_true", help="also look for triangles that cross each other (slower)")
    parser.add_argument("--json", action="store_true", help="for scripts")


def _info(options: argparse.Namespace) -> int:
    """Counts, bounds, and whether it is watertight, manifold, welded and sound; what to do where it is not."""
    from pliant.app.inspection import inspect

    inspection = inspect(options.input, deep=options.deep)
    if options.json:
        say_json(inspection.to_dict())
    else:
        say(*inspection.lines())
    return 0


def _add_report(commands: Any) -> None:
    parser = add_command(commands, _report, "report", "measure a clip: volume, distortion, popping, inversion")
    add_input(parser, shapes=False)
    parser.add_argument("--rest", help="the shape to measure against (default: the clip's own rest shape)")
    parser.add_argument("--crossings", action="store_true", help="also count triangles that cross each other (slower)")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _report(options: argparse.Namespace) -> int:
    """How far each frame departs from the rest shape: a line a frame and what the columns mean, or JSON."""
    from pliant.geometry import quality
    from pliant.geometry.solidity import is_solid

    content = read_input(options, None)
    if isinstance(content, pliant.Shapes):  # a rig: each shape is measured against its base
        content = pliant.Animation(content.base, content.points, name="shapes")
    clip = content if isinstance(content, pliant.Animation) else read_input(options, "animation")
    rest = pliant.read_mesh(options.rest) if options.rest else None
    with progress("measuring", quiet=options.quiet) as show:
        report = quality.measure(clip, rest=rest, self_intersections=options.crossings, progress=show)
    hollow = isinstance(clip.shape, pliant.Mesh) and not is_solid(clip.shape.welded().mesh)
    report = replace(report, volume=None) if hollow else report
    if options.json:
        say_json(report.to_dict())
    else:
        say(*report.table().split("\n"), "", *_legend(report, hollow))
    return 0


def _legend(report: Report, hollow: bool) -> list[str]:
    """What the columns of the table mean."""
    meanings = {name.replace("_", " "): MEANINGS[name] for name in report.curves}
    if hollow:
        meanings["volume"] = "not measured: the surface is open or flat, it has no inside"
    width = max(map(len, meanings))
    return [f"{name:>{width}}: {meaning}" for name, meaning in meanings.items()]

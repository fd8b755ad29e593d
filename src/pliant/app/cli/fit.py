"""``pliant fit``: from shapes back to a rig's sliders."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant.app.cli.arguments import add_command
from pliant.app.cli.flags import given
from pliant.app.cli.targets import check_clip, check_weights, written_line
from pliant.core.errors import FileError, InputError
from pliant.core.progress import progress
from pliant.core.terminal import say, say_json

MARKER_TABLES = (".csv", ".tsv", ".txt")


def add_commands(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, _fit, "fit", "find the sliders of a rig for a shape, markers, a scan or a clip")
    parser.add_argument("rig", metavar="RIG", help="a rig with morph targets, or a folder, glob or archive of shapes")
    parser.add_argument(
        "observation",
        metavar="SEEN",
        help="a mesh or clip with the rig's vertices; a scan: another mesh, or points; or markers: a .csv with the "
        "columns vertex,x,y,z and, for several frames, frame; both count from 0",
    )
    parser.add_argument("-o", "--output", required=True, help="the sliders, a row for each frame: .csv .json")
    parser.add_argument("--clip", metavar="FILE", help="write the fitted shapes, too, where they were seen")
    parser.add_argument("--base", help="the rig's base shape: a file, or the name of one of the shapes")
    parser.add_argument("--bounds", metavar="LOW,HIGH", type=_bounds, help="of the sliders (default: of full shapes)")
    parser.add_argument("--fixed", action="store_true", help="the shape does not move as a whole")
    parser.add_argument(
        "--sparsity", type=float, help="prefer few sliders: cost of one at 1, such as 1e-7 (default: none)"
    )
    parser.add_argument(
        "--smoothness", type=float, help="of a clip in time: larger is smoother, such as 1e-5 (default: none)"
    )
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--quiet", action="store_true", help="say nothing")


def _fit(options: argparse.Namespace) -> int:
    """Find the sliders, and the rigid motion, for which a rig's shape is where it was seen.

    Where the mesh that was seen has the rig's vertices, each is taken for the rig's vertex of its number. Any other
    mesh or point cloud is taken for a scan: it need not be aligned, and parts of it may be missing. Exit code 1 if a
    frame did not converge, or is far from what was seen.
    """
    check_weights(options.output)
    if options.clip:
        check_clip(options.clip)
    shapes = pliant.read_shapes(options.rig, base=options.base)
    target, markers = _seen(options.observation)
    begun = time.perf_counter()
    with progress("fitting", quiet=options.quiet or options.json) as show:
        try:
            found = pliant.Blendshapes(shapes).fit(
                target,
                markers=markers,
                rigid=not options.fixed,
                **given(options, "bounds", "sparsity", "smoothness"),
                progress=lambda done, total: show(done, total, "fitting"),
            )
        except InputError as error:
            if error.argument and error.argument[0] in ("target", "markers"):
                raise FileError(options.observation, str(error)) from error
            raise
    seconds = time.perf_counter() - begun
    written = [pliant.write_weights(options.output, found.weights)]
    clips = pliant.write(options.clip, found.clip) if options.clip else []
    worst = int(np.argmax(found.errors))
    failed = [k for k, converged in enumerate(found.converged) if not converged]
    facts = {
        "frames": len(found.weights),
        "sliders": len(found.weights.names),
        "error": float(found.errors[worst]),
        "linear_error": float(found.linear_errors[worst]),
        "unconverged": failed,
        "far": list(found.far),
        "rotations": found.rotations.tolist(),
        "translations": found.translations.tolist(),
        "output": str(written[0]),
        "clip": options.clip,
        "seconds": round(seconds, 3),
    }
    if options.json:
        say_json(facts)
    elif not options.quiet:
        near, linear = (f"{each[worst] / shapes.base.diagonal:.2%}" for each in (found.errors, found.linear_errors))
        frames = f"{len(found.weights)} frame" + "s" * (len(found.weights) > 1)
        say(f"{frames}, {len(found.weights.names)} sliders; {seconds:.1f} s")
        say(f"{near} of the diagonal from what was seen, root mean square, worst frame (linear blending: {linear})")
        if failed:
            say(f"{len(failed)} frames did not converge, the first of them frame {failed[0]}")
        say(str(written[0]))
        if clips:
            say(written_line(found.clip, clips))
    return 1 if failed or found.far else 0


def _bounds(text: str) -> tuple[float, float]:
    try:
        low, high = (float(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not LOW,HIGH, such as -0.5,1.5') from None
    return low, high


def _seen(file: str) -> tuple[Any, Any]:
    """What was seen, and the vertices that it is of if it is markers."""
    from pliant.io.markers import read_markers

    if Path(file).suffix.lower() in MARKER_TABLES:
        vertices, points = read_markers(file)
        return points, vertices
    content = pliant.read(file)
    if isinstance(content, pliant.Shapes):
        return content.base, None
    if isinstance(content, pliant.TetMesh):
        return content.surface, None
    if not isinstance(content, (pliant.Mesh, pliant.PointCloud, pliant.Animation)):
        raise FileError(file, "holds no shape; expected a mesh, points, a clip, or markers (.csv)")
    return content, None

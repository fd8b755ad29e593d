"""``pliant correctives``: morph targets with which engines that only blend linearly come near a rig's equilibria."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pliant
from pliant.app.cli.arguments import add_command, count
from pliant.app.cli.flags import given
from pliant.app.cli.targets import check_shapes
from pliant.core.clips import WeightClip
from pliant.core.errors import FileError
from pliant.core.progress import progress
from pliant.core.terminal import say, say_json
from pliant.engines.blend.options import MOST_CORRECTIVES
from pliant.io.formats import describe
from pliant.io.output import staged
from pliant.io.source import find
from pliant.io.weights import own_weights, read_weights

if TYPE_CHECKING:
    from pliant.engines.blend.correctives import LinearRig

GLTF = (".glb", ".gltf")


def add_commands(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands, _correctives, "correctives", "add morph targets that make linear blending give pliant's shapes"
    )
    parser.add_argument("rig", metavar="RIG", help="a rig with morph targets, or a folder, glob or archive of shapes")
    parser.add_argument(
        "-o", "--output", required=True, help="the rig with correctives: .glb .gltf .usd* ...; their curves beside it"
    )
    parser.add_argument(
        "--error", type=_share, help="distance that is accepted, over the diagonal: 0.2%% or 0.002 (default: 0.2%%)"
    )
    parser.add_argument(
        "--together", type=count, help="sliders that may act on the same places at once, 1 to 4 (default: 2)"
    )
    parser.add_argument(
        "--most", type=count, default=MOST_CORRECTIVES, help=f"correctives, at most (default: {MOST_CORRECTIVES})"
    )
    parser.add_argument("--weights", metavar="FILE", help="a clip or table of sliders instead of the rig's own clip")
    parser.add_argument("--clip", help="name or number of the clip")
    parser.add_argument("--base", help="the rig's base shape: a file, or the name of one of the shapes")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--quiet", action="store_true", help="say nothing")


def _correctives(options: argparse.Namespace) -> int:
    """Add the fewest morph targets with which linear blending reproduces pliant's shapes within an error.

    Their weights are polynomials of the sliders, written to NAME.correctives.json beside the rig. The rig's own clip,
    or that of --weights, is kept within the error, too, and written with the weights of all targets. Correctives that a
    file has already are replaced. Exit code 1 if the error was not reached.
    """
    from pliant.engines.blend.correctives import without_correctives

    check_shapes(options.output)
    _check_targets(options.rig)
    shapes = without_correctives(pliant.read_shapes(options.rig, base=options.base))
    clip = _clip(options, shapes)
    begun = time.perf_counter()
    with progress("correctives", quiet=options.quiet or options.json) as show:
        found = pliant.Blendshapes(shapes).correctives(
            weights=clip,
            **given(options, "error", "together", "most"),
            progress=lambda done, total: show(done, total, "solving"),
        )
    seconds = time.perf_counter() - begun
    baked = None if clip is None else found.weights(clip)
    written = write(Path(options.output), found, baked)
    if options.json:
        say_json(
            {
                "correctives": len(found.drivers),
                "errors": found.errors.tolist(),
                "checked": found.checked,
                "converged": found.converged,
                "frames": 0 if clip is None else len(clip),
                "output": [str(path) for path in written],
                "seconds": round(seconds, 3),
            }
        )
    elif not options.quiet:
        say(f"{len(found.drivers)} correctives for {len(shapes) - 1} shapes; {seconds:.1f} s")
        say(
            f"{max(found.errors[-1], found.checked):.2%} of the diagonal from pliant's shapes at most, "
            f"{found.errors[0]:.2%} without"
        )
        if not found.converged:
            advice = "--error or --most" if len(found.drivers) == options.most else "--error"
            say(f"the error that was asked for is not reached everywhere; allow more: {advice}")
        for path in written:
            say(str(path))
    return 0 if found.converged else 1


def write(target: Path, rig: LinearRig, clip: WeightClip | None) -> list[Path]:
    """Write a `LinearRig`, its curves, and the weights of a clip: in glTF as an animation, else as a table."""
    from pliant.io.gltf.write import write_shapes
    from pliant.io.weights import write_weights

    curves = target.with_name(f"{target.stem}.correctives.json")
    with staged(target) as part:
        if target.suffix.lower() in GLTF:
            write_shapes(part, rig.shapes, clip)
        else:
            pliant.write(part, rig.shapes)
            if clip is not None:
                write_weights(part.with_name(f"{target.stem}.weights.csv"), clip)
        text = json.dumps(rig.to_dict(), separators=(",", ":"))
        part.with_name(curves.name).write_text(f"{text}\n", encoding="utf-8")
        beside = sorted(path.name for path in part.parent.iterdir() if path.name != target.name)
    return [target.with_name(name) for name in [target.name, *beside] if target.with_name(name).exists()]


def _check_targets(rig: str) -> None:
    """Refuse a skinned file without morph targets, of which `read_shapes` makes a pose of each clip."""
    sources = find(rig, lambda name: Path(name).suffix.lower() in GLTF)
    if len(sources) == 1 and sources[0].suffix in GLTF and not describe(sources[0])["morph targets"]:
        raise sources[0].error("holds no morph targets to which correctives could be added; expected a rig with some")


def _clip(options: argparse.Namespace, shapes: pliant.Shapes) -> WeightClip | None:
    clip = int(options.clip) if options.clip and options.clip.isdigit() else options.clip
    if options.weights:
        return read_weights(options.weights, shapes.names, clip=clip)
    own = own_weights(options.rig, clip=clip)
    if own is None and clip is not None:
        raise FileError(options.rig, f'holds no clip "{clip}" that moves morph targets; leave --clip out')
    return None if own is None else own[0]


def _share(text: str) -> float:
    """A share, as 0.2% or 0.002."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is no share of the diagonal, such as 0.2% or 0.002')
    return value

"""``pliant transfer``: a motion in, whatever is to have it in, a clip out, and a report on it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pliant
from pliant.cli.arguments import Choices, add_command, count, frame_count, positive
from pliant.cli.results import add_told, tell
from pliant.cli.targets import Located, named_by_user, set_up
from pliant.engines.transfer.options import TransferOptions
from pliant.errors import FileError, InputError
from pliant.io import BY_SUFFIX, write_clip, write_frames
from pliant.progress import progress
from pliant.terminal import complain

if TYPE_CHECKING:
    from pliant.report import TransferRun
    from pliant.scene import CageScene, TransferScene

AUTOMATIC = ("source", "target", "cage", "auto", "clip", "rest", "without", "groups", "blocks", "outside")
"""Options that say what a scene file would."""


def add_commands(commands: Any) -> None:
    """Make it known."""
    parser = add_command(commands, _transfer, "transfer", "the motion of one thing on another, in a cage")
    parser.add_argument(
        "scene", metavar="SCENE", nargs="?", help="a scene file (.toml): sources, target, cage, controls"
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="clip: .glb .usdc .pc2 .npz, or a folder")
    what = parser.add_argument_group("without a scene file")
    what.add_argument("--source", metavar="IN", help="what moves: a sequence of meshes, a clip, or a BVH")
    what.add_argument("--target", metavar="MESH", help="what is to move: mesh, polygon soup, point cloud, tetrahedra")
    what.add_argument("--cage", metavar="FILE", help="a closed mesh around the target (default: one is built)")
    what.add_argument("--auto", action="store_true", help="find by itself which part of the target follows what")
    what.add_argument("--clip", help="name or number of the source's clip, where it has several")
    rest = "the source's rest: one of its frames, from 0, or a file with the same points or joints (default: its own)"
    what.add_argument("--rest", metavar="FRAME|FILE", help=rest)
    what.add_argument("--without", metavar="NAMES", help="joints of the source to leave out: tail*,thumb*,index*")
    what.add_argument("--groups", type=count, help="pieces to divide a mesh sequence into, at most (default: 24)")
    what.add_argument("--blocks", action="store_true", help="move each connected part of the target as a rigid block")
    outside = Choices("pliant.engines.transfer.options", "Outside")
    words = "what to do with points on or outside the cage: %(choices)s (default: refuse)"
    what.add_argument("--outside", metavar="WORD", choices=outside, help=words)
    how = parser.add_argument_group("how")
    how.add_argument("--faces", type=count, help="build a cage of so many triangles (default: 400)")
    how.add_argument("--frames", type=frame_count, help="how many to make of the source's motion (default: all)")
    how.add_argument("--fps", type=positive, help="frames a second of the result (default: the source's)")
    add_told(parser, "source, target and cage, the energy, and how well the controls are met")


def _transfer(options: argparse.Namespace) -> int:
    """Carry a motion over to another shape: its pieces turn and stretch the target's cage from inside, and the cage
    carries the target along, details and all.
    """
    return made(options, lambda: _scene(options))


def made(
    options: argparse.Namespace, read: Callable[[], TransferScene | CageScene], located: Located = named_by_user
) -> int:
    """The clip of a scene, and what is told of it; the exit code. A target that is posed in its cage has no sources."""
    run = _solved(options, read, located)
    written = _written(run, options.output)
    if options.report:
        from pliant.report import write_transfer_report

        with progress("drawing the report", quiet=options.quiet):
            write_transfer_report(options.report, run, view=options.view, up=options.up)
    return tell(options, run, written)


def _written(run: TransferRun, output: str) -> list[Path]:
    """Write the clip; where every frame is a file of its own, normals and splats turn along."""
    from pliant.cage.splats import is_splats

    format = BY_SUFFIX.get(Path(output).suffix.lower() or ".obj")
    if run.carried and format is not None and "animation" not in format.writes:
        return write_frames(output, run.frames) if len(run.frames) > 1 else pliant.write(output, run.frames[0])
    shape = run.clip.shape
    if isinstance(shape, pliant.PointCloud) and is_splats(shape):
        complain(f"pliant: {output} holds where the splats go, not how they turn and stretch; write .ply")
    return write_clip(output, run.clip)


def _solved(
    options: argparse.Namespace, read: Callable[[], TransferScene | CageScene], located: Located
) -> TransferRun:
    """Read, and move the target."""
    from pliant.report import TransferRun

    begun = time.perf_counter()
    with progress("setting up", quiet=options.quiet):
        scene, solver = set_up(options.output, options.report, read, located)
    ready = time.perf_counter()
    with progress("posing" if scene.engine == "cage" else "transferring", quiet=options.quiet) as show:
        moved = scene.run(show, rig=solver) if scene.engine == "cage" else scene.run(show, ready=solver)
    solved = time.perf_counter() - ready
    sources, blocks = ({}, False) if scene.engine == "cage" else (scene.sources, scene.blocks)
    return TransferRun(moved, sources, scene.title, ready - begun, solved, _settings(scene), not blocks)


def _settings(scene: TransferScene | CageScene) -> dict[str, str]:
    words = {"scene": scene.file} if scene.file else {}
    if scene.engine == "transfer" and scene.blocks:
        words["blocks"] = "each connected part moves rigidly"
    return words | {name: str(value) for name, value in scene.options.items()}


def _scene(options: argparse.Namespace) -> TransferScene:
    """From the scene file, or from the options that stand for one."""
    from pliant.scene import TransferScene, read_scene

    given = [f"--{name}" for name in AUTOMATIC if getattr(options, name) not in (None, False)]
    if options.scene:
        if given:
            raise InputError(f"{given[0]} was given beside a scene file; expected one or the other")
        scene = read_scene(options.scene, faces=options.faces, frames=options.frames, fps=options.fps)
        if not isinstance(scene, TransferScene):
            raise FileError(options.scene, f'is a scene of the engine "{scene.engine}"; use: pliant run')
        return scene
    return _automatic(options)


def _automatic(options: argparse.Namespace) -> TransferScene:
    from pliant.cage.build import build_cage
    from pliant.scene.caged import checked_cage
    from pliant.scene.media import motion_in, shape_in, with_rest, without_joints
    from pliant.scene.transfer import TransferScene

    if not options.source or not options.target:
        missing = "--target" if options.source else "--source" if options.target else "a scene file, or --source"
        raise InputError(f"{missing} is missing; expected SCENE, or --source IN --target MESH --auto")
    if not options.auto:
        raise InputError("nothing says which part of the target follows what; add --auto, or write a scene file")
    clip = int(options.clip) if options.clip and options.clip.isdigit() else options.clip
    source = motion_in(options.source, clip=clip)
    if options.rest is not None:
        rest = int(options.rest) if options.rest.lstrip("-").isdigit() else options.rest
        if isinstance(rest, int) and not 0 <= rest < len(source):
            raise InputError(f"--rest is {rest}; {options.source} has {len(source)} frames, numbered from 0")
        source = with_rest(source, rest)
    if options.without:
        if not isinstance(source, pliant.Motion):
            raise InputError(f"--without was given, but {options.source} holds points that move, not joints")
        source = without_joints(source, [name.strip() for name in options.without.split(",")])
    target = shape_in(options.target)
    if options.cage:
        if options.faces:
            raise InputError("--faces was given beside --cage; expected one or the other")
        cage = checked_cage(pliant.read_mesh(options.cage), options.cage).mesh
    else:
        cage = build_cage(target, faces=options.faces or TransferOptions.faces)
    asked = {name: getattr(options, name) for name in ("groups", "frames", "fps", "outside")}
    return TransferScene(
        sources={"source": source},
        target=target,
        cage=cage,
        controls="auto",
        blocks=options.blocks,
        options={name: value for name, value in asked.items() if value is not None},
        title=f"{options.source} on {options.target}",
    )

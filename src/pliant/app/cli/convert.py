"""``pliant convert``: from any format to any other."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any, get_args

import pliant
from pliant.app.cli.arguments import add_command, add_input, read_input
from pliant.app.cli.flags import add_option, given
from pliant.app.cli.targets import say_missing, written_line
from pliant.core.errors import FileError, InputError, PliantWarning
from pliant.core.terminal import say
from pliant.geometry.skinning import SkinOptions
from pliant.io import BY_SUFFIX, KIND_NAMES, KIND_OF, Content, ContentKind, convertible_kind, find, kinds_in
from pliant.io.formats import describe
from pliant.io.naming import frame_names, shape_names
from pliant.io.weights import own_weights
from pliant.io.writing import skin_writer


def add_commands(commands: Any) -> None:
    """Add the command."""
    _add_convert(commands)


def _add_convert(commands: Any) -> None:
    parser = add_command(commands, _convert, "convert", "from any format to any other that can hold it")
    add_input(parser)
    parser.add_argument("output", metavar="OUT", help="file; or, for a sequence of OBJ files, a folder")
    parser.add_argument(
        "--as",
        dest="kind",
        choices=get_args(ContentKind),
        help="what to take from the input (default: all that OUT holds)",
    )
    parser.add_argument("--quantize", action="store_true", help="coordinates of 16 bits in a glTF file: half its size")
    skins = parser.add_argument_group("a clip as joints that carry it, for game engines (.glb, .gltf, .usd)")
    skins.add_argument("--skin", action="store_true", help="joints, weights and a few morph targets, not one a frame")
    skins.add_argument("--rig", metavar="FILE", help="whose skeleton moved the clip (default: the input's own, if any)")
    for about in SkinOptions.all():
        add_option(skins, about)


def _convert(options: argparse.Namespace) -> int:
    """Read, and write by suffix. Polygons, vertex order, UVs, normals, materials and groups are kept."""
    kind = options.kind
    _check_skin(options)
    if kind in (None, "tets") and not (options.mesh or options.base):
        kind = kind or convertible_kind(options.input, options.output)
        _note_losses(options, kind)
    content = read_input(options, kind)
    _check_not_read(options, content)
    say_missing(options.output)
    if isinstance(content, pliant.Animation):
        _note_clip(options, content)
    if options.skin:
        content = _skinned(options, content)
    written = pliant.write(options.output, content, quantize=options.quantize)
    say(written_line(content, written))
    return 0


def _check_skin(options: argparse.Namespace) -> None:
    """Refuse options of skins without --skin, and formats that hold none."""
    if options.skin:
        options.kind = options.kind or "animation"
        if options.kind != "animation":
            raise InputError(f"--skin makes a clip into a skin; expected --as animation, not {options.kind}")
        if not skin_writer(Path(options.output)):
            raise FileError(options.output, "holds no skins; expected .glb, .gltf, .usd, .usda, .usdc or .usdz")
        return
    for name in ("rig", *SkinOptions.names()):
        if getattr(options, name) is not None:
            raise InputError(f"--{name} needs --skin")


def _skinned(options: argparse.Namespace, clip: pliant.Animation) -> pliant.SkinnedAnimation:
    """The clip on the skeleton that moved it, where that is known; else on bones that are found."""
    motion = None
    if options.rig:
        try:
            motion = pliant.read_motion(options.rig, clip=clip.name)
        except TypeError:  # a format with one motion a file
            motion = pliant.read_motion(options.rig)
        except InputError:
            motion = pliant.read_motion(options.rig)
            warnings.warn(f'{options.rig} has no clip "{clip.name}"; its first was taken', PliantWarning, stacklevel=2)
    elif options.mesh is None and _moves_joints(options.input):
        number = int(options.clip) if options.clip and options.clip.isdigit() else options.clip
        motion = pliant.read_motion(options.input, clip=number)
    if motion is not None and options.bones is not None:
        raise InputError(f"--bones has no effect: {options.rig or options.input} has a skeleton; leave it out")
    return pliant.skin(clip, motion, **given(options, *SkinOptions.names()))


def _moves_joints(path: str) -> bool:
    sources = find(path, lambda name: True)
    return len(sources) == 1 and "motion" in kinds_in(sources[0])


def _check_not_read(options: argparse.Namespace, content: Content) -> None:
    """Refuse to write over a file that is read."""
    written = {file.resolve() for file in _files_written(Path(options.output), content)}
    for name in filter(None, (options.input, options.mesh, options.base, options.rig)):
        if name is not options.input and not Path(name).exists():  # the name of a shape
            continue
        for source in find(name, lambda _: True):
            if source.path.resolve() in written:
                raise FileError(
                    options.output, f"would be written over {source.path}, which is read; give another name"
                )


def _note_clip(options: argparse.Namespace, clip: pliant.Animation) -> None:
    """Note which of several clips was taken, and that sliders do not go into a skin."""
    sources = find(options.input, lambda name: True)
    facts = describe(sources[0]) if len(sources) == 1 else {}
    names = [one["name"] for one in facts.get("clips", ())]
    if len(names) > 1 and options.clip is None:
        note = f'took "{clip.name}" of {len(names)} clips; --clip chooses another'
        warnings.warn(f"{options.input}: {note}", PliantWarning, stacklevel=2)
    sliders = set(facts.get("morph targets") or facts.get("blend shapes") or ())
    if options.skin and sliders:
        try:
            own = own_weights(options.input, clip=clip.name if names else None)
        except InputError:  # the clip moves none
            own = None
        columns = () if own is None else zip(own[0].names, own[0].values.T, strict=True)
        sliders -= {name for name, column in columns if column.any()}
    if options.skin and sliders:
        note = f"{len(sliders)} morph targets that the clip does not move are left out of the skin"
        warnings.warn(f"{options.input}: {note}", PliantWarning, stacklevel=2)


def _files_written(target: Path, content: Content) -> list[Path]:
    """The file, or those of the single frames or shapes."""
    format = BY_SUFFIX.get(target.suffix.lower())
    whole = format is not None and KIND_OF[type(content)] in format.writes
    if whole or not isinstance(content, (pliant.Animation, pliant.Shapes)):
        return [target]
    shapes = isinstance(content, pliant.Shapes)
    folder, stem = (target.parent, target.stem) if target.suffix else (target, "" if shapes else "frame")
    names = shape_names(stem, content.names) if isinstance(content, pliant.Shapes) else frame_names(stem, len(content))
    return [folder / f"{name}{target.suffix.lower() or '.obj'}" for name in names]


def _note_losses(options: argparse.Namespace, kind: ContentKind | None) -> None:
    """Note that of a motion or of several shapes only one is written, or that tetrahedra are not written."""
    richest = kinds_in(find(options.input, lambda name: True)[0])[0] if kind else kind
    if richest in ("animation", "shapes") and kind in ("mesh", "points"):
        note = f"of {KIND_NAMES[richest]} one shape is written; --as {richest} writes a file for each"
        warnings.warn(f"{options.input}: {note}", PliantWarning, stacklevel=2)
    elif richest == "mesh" and kind == "points":
        note = "of a mesh the points alone are written, without faces, UVs and materials"
        warnings.warn(f"{options.input}: {note}", PliantWarning, stacklevel=2)
    holding = [suffix for suffix, format in BY_SUFFIX.items() if "tets" in format.writes]
    if richest == "tets" and kind in (None, "tets", "mesh") and Path(options.output).suffix.lower() not in holding:
        suffixes = " and ".join(holding)
        note = f"only the surface of the tetrahedra is written; {suffixes} hold tetrahedra"
        warnings.warn(f"{options.input}: {note}", PliantWarning, stacklevel=2)

"""The ``pliant`` command: parse, call, show progress, write.

Exit codes: 0 done; 1 a computation did not converge (what was reached is written, and said); 2 bad input or usage, with
one line on stderr that names it. Set ``PLIANT_DEBUG=1`` to see where an error came from.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn, get_args

import pliant
from pliant.errors import InputError, PliantError, PliantWarning
from pliant.io import Kind
from pliant.progress import progress


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints fit on one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see: {self.prog} --help)")


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit with its code."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", PliantWarning)
    for stream in (sys.stdout, sys.stderr):  # a terminal without × or ° gets ? instead of an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        words = sys.argv[1:] if arguments is None else arguments
        options = _parser().parse_args(words or ["--help"])
        code = options.run(options)
        sys.stdout.flush()
    except PliantError as error:
        code = _fail(error, str(error), 2)
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        code = _fail(error, f"cannot write to the terminal or pipe ({(error.strerror or str(error)).lower()})", 2)
    except KeyboardInterrupt as error:
        code = _fail(error, "interrupted; nothing was left half-written", 130)
    except MemoryError as error:
        code = _fail(error, "there is not enough memory for this", 2)
    except SystemError as error:  # how Python reports an interrupt inside compiled code
        interrupted = isinstance(error.__cause__ or error.__context__, KeyboardInterrupt)
        what = "interrupted; nothing was left half-written" if interrupted else f"internal error ({error})"
        code = _fail(error, what, 130 if interrupted else 2)
    except Exception as error:  # a fault of ours: still one line, and a way to see more
        what = f"{type(error).__name__}: {error}".replace("\n", " ")
        code = _fail(error, f"internal error, please report it ({what}); PLIANT_DEBUG=1 shows where", 2)
    sys.exit(code)


def _fail(error: BaseException, message: str, code: int) -> int:
    if os.environ.get("PLIANT_DEBUG"):
        raise error
    print(f"pliant: {' '.join(message.split())}", file=sys.stderr)
    return code


_said: set[str] = set()


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Each note once: the frames of a sequence have the same things to say."""
    if issubclass(category, PliantWarning) and str(message) not in _said:
        _said.add(str(message))
        print(f"pliant: note: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="pliant", description="Shapes that deform the way bodies do.")
    parser.add_argument("--version", action="version", version=f"pliant {pliant.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for add in (_add_demo, _add_info, _add_convert, _add_render, _add_report):
        add(commands)
    return parser


def _command(commands: Any, run: Any, name: str, help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=run.__doc__)
    parser.set_defaults(run=run)
    return parser


def _add_input(parser: argparse.ArgumentParser, *, shapes: bool = True) -> None:
    """The options that say how a file is to be read."""
    parser.add_argument(
        "input", metavar="IN", help="file, folder, glob, .tar or .zip (or a name inside: rig.zip/*.obj)"
    )
    parser.add_argument("--clip", help="name or number of the clip, where the file has several")
    parser.add_argument("--fps", type=_positive, help="frames a second to sample at, or that a sequence was made at")
    parser.add_argument("--mesh", help="the mesh that a point cache (.pc2, .mdd) moves")
    if shapes:
        parser.add_argument("--base", help="the base shape: a file, or the name of one of the shapes")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f'"{text}" is not a positive number')
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number from 1')
    return int(text)


def _read(options: argparse.Namespace, kind: Kind | None) -> Any:
    """What the input holds, as the given kind or as the richest it has."""
    clip = int(options.clip) if options.clip and options.clip.isdigit() else options.clip
    if kind is None and (options.clip or options.mesh):
        kind = "animation"
    base = getattr(options, "base", None)
    if kind is None and base:
        kind = "shapes"
    if kind == "animation":
        return pliant.read_animation(options.input, clip=clip, fps=options.fps, mesh=options.mesh)
    if kind == "motion":
        motion = pliant.read_motion(options.input, clip=clip)
        return motion.resampled(options.fps) if options.fps else motion
    if kind == "shapes":
        return pliant.read_shapes(options.input, base=base)
    content = pliant.read(options.input, kind)
    if isinstance(content, pliant.Motion) and options.fps:
        return content.resampled(options.fps)
    if isinstance(content, pliant.Animation) and options.fps:
        return pliant.read_animation(options.input, fps=options.fps)
    return content


def _add_demo(commands: Any) -> None:
    parser = _command(commands, _demo, "demo", "blend the built-in shapes and show the result as a web page")
    parser.add_argument("-o", "--output", default="demo", help="folder to write to (default: demo)")
    parser.add_argument("--quick", action="store_true", help="smaller shapes, for a first look")
    parser.add_argument("--quiet", action="store_true", help="say nothing")


def _demo(options: argparse.Namespace) -> int:
    """Make clips of the built-in shapes, their pictures, and an index.html that shows them without a network."""
    from pliant.demo import make_demo

    page = make_demo(Path(options.output), quick=options.quick, quiet=options.quiet)
    if not options.quiet:
        print(f"open {page}")
    return 0


def _add_info(commands: Any) -> None:
    parser = _command(commands, _info, "info", "what is in a file, and what is wrong with it")
    parser.add_argument("input", metavar="FILE", help="file, folder, glob, .tar or .zip")
    parser.add_argument("--deep", action="store_true", help="also look for triangles that cross each other (slower)")
    parser.add_argument("--json", action="store_true", help="for scripts")


def _info(options: argparse.Namespace) -> int:
    """Counts, bounds, and whether it is watertight, manifold, welded and sound; what to do where it is not."""
    from pliant.inspection import inspect

    inspection = inspect(options.input, deep=options.deep)
    print(
        json.dumps(inspection.to_dict(), indent=2, allow_nan=False) if options.json else "\n".join(inspection.lines())
    )
    return 0


def _add_convert(commands: Any) -> None:
    parser = _command(commands, _convert, "convert", "from any format to any other that can hold it")
    _add_input(parser)
    parser.add_argument("output", metavar="OUT", help="file; or, for a sequence of OBJ files, a folder")
    parser.add_argument(
        "--as", dest="kind", choices=get_args(Kind), help="what to take from the input (default: all that OUT holds)"
    )


def _convert(options: argparse.Namespace) -> int:
    """Read, and write by suffix. Polygons, vertex order, UVs, normals, materials and groups are kept."""
    from pliant.io import convertible_kind

    kind = options.kind
    if kind is None and not (options.mesh or options.base):
        kind = convertible_kind(options.input, options.output)
    content = _read(options, kind)
    written = pliant.write(options.output, content)
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    print(f"{content!r} -> {written[0]}{more}")
    return 0


def _add_render(commands: Any) -> None:
    parser = _command(commands, _render, "render", "a picture, a contact sheet, or a moving one (.gif, .mp4)")
    _add_input(parser)
    parser.add_argument("-o", "--output", required=True, help=".png or .jpg; .gif or .mp4 for a movie")
    parser.add_argument("--frames", type=_count, help="how many to show (default: 8 of a clip, all shapes of a rig)")
    parser.add_argument("--frame", type=int, help="draw this frame alone, counted from 0")
    parser.add_argument("--turntable", action="store_true", help="turn the camera once around (.gif, .mp4)")
    parser.add_argument(
        "--view", default="auto", help="auto, front, side, top, three-quarter, or AZIMUTH,ELEVATION in degrees"
    )
    parser.add_argument("--up", default="auto", choices=("auto", "y", "z"), help="which axis points up")
    parser.add_argument("--size", default="", help="WIDTHxHEIGHT of the picture (of each cell on a contact sheet)")
    parser.add_argument("--edges", action="store_true", help="draw the polygons' edges")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument(
        "--measure", help="colour by edge, area, displacement, or a vertex attribute or group of the file"
    )


def _render(options: argparse.Namespace) -> int:
    """Draw without a display. One camera fits the whole clip; colours by measure come with a legend."""
    from pliant.drawing import draw_to_file

    content = _read(options, None)
    with progress("drawing", quiet=options.quiet) as show:
        draw_to_file(
            content,
            Path(options.output),
            frames=options.frames,
            frame=options.frame,
            turntable=options.turntable,
            view=_view(options.view),
            up=options.up,
            size=_size(options.size),
            edges=options.edges,
            measure=options.measure,
            progress=show,
        )
    print(options.output)
    return 0


def _view(text: str) -> Any:
    if text in ("auto", "front", "side", "top", "three-quarter"):
        return text
    try:
        azimuth, elevation = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f'--view is "{text}"; expected auto, front, side, top, three-quarter or two angles such as 30,20'
        ) from None
    return azimuth, elevation


def _size(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InputError(f'--size is "{text}"; expected WIDTHxHEIGHT such as 960x720') from None
    return width, height


def _add_report(commands: Any) -> None:
    parser = _command(commands, _report, "report", "measure a clip: volume, distortion, popping, inversion")
    _add_input(parser, shapes=False)
    parser.add_argument("--rest", help="the shape to measure against (default: the clip's own rest shape)")
    parser.add_argument("--crossings", action="store_true", help="also count triangles that cross each other (slower)")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _report(options: argparse.Namespace) -> int:
    """How far each frame departs from the rest shape: a line a frame, or JSON."""
    from pliant import quality

    content = _read(options, None)
    if isinstance(content, pliant.Shapes):  # a rig: each shape is measured against its base
        content = pliant.Animation(content.base, content.points, name="shapes")
    clip = content if isinstance(content, pliant.Animation) else _read(options, "animation")
    rest = pliant.read_mesh(options.rest) if options.rest else None
    with progress("measuring", quiet=options.quiet) as show:
        report = quality.measure(clip, rest=rest, self_intersections=options.crossings, progress=show)
    print(json.dumps(report.to_dict(), indent=2, allow_nan=False) if options.json else report.table())
    return 0


if __name__ == "__main__":
    main()

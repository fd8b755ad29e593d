"""The commands of the engines, and ``pliant run``: a document, its engine, what came of it, its report and its files.

Flags fill the same document that a scene file has; errors name the flag instead of the key and line.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from pliant.app.cli.arguments import add_command, add_view
from pliant.app.cli.flags import flagged
from pliant.app.cli.targets import Located, named_by_user, set_up, written_line
from pliant.core.errors import FileError, InputError
from pliant.core.progress import progress
from pliant.core.terminal import complain, say, say_json
from pliant.engines.registry import ENGINES, Engine, imported
from pliant.geometry.axes import with_up
from pliant.io import write_clip

CLIP = "clip: .glb .usdc .pc2 .npz, or a folder"


def add_commands(commands: Any) -> None:
    """Add a command for each engine, and ``run`` for scene files of any engine."""
    for engine in ENGINES.values():
        _add_engine(commands, engine)
        for module in engine.further:
            imported(module).add_commands(commands)
    parser = add_command(commands, _run, "run", "do what a scene file says")
    names = " or ".join(f'"{name}"' for name in ENGINES)
    parser.add_argument("input", metavar="SCENE", help=f"a scene file (.toml): engine = {names}")
    unnamed = "(default: as the scene says, or else as it is called, with .glb)"
    parser.add_argument("-o", "--output", metavar="OUT", help=f"{CLIP} {unnamed}")
    add_summary_options(parser, "what was made, frame by frame, with curves")


def _add_engine(commands: Any, engine: Engine) -> None:
    parser = commands.add_parser(engine.name, help=engine.summary, description=engine.description or engine.summary)
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help=CLIP)
    before = len(parser._actions)
    engine.part("command").add_arguments(parser, engine)
    own = {action.dest: action.option_strings[0] for action in parser._actions[before:] if action.option_strings}
    add_summary_options(parser, engine.page or "what was made, frame by frame", up="up" not in own)
    parser.set_defaults(run=lambda options: _solve_typed(options, engine, own))


def _solve_typed(options: argparse.Namespace, engine: Engine, flags: dict[str, str]) -> int:
    """What a command says, by a scene file or by flags."""
    command = engine.part("command")
    file = command.scene_file(options)
    if file is None:
        return made(engine, options, lambda: _typed_scene(options, engine, flags))
    for name, flag in flags.items():
        if getattr(options, name) not in (None, []) and name not in engine.changes:
            raise InputError(f"{flag} was given beside a scene file; write it into the file")
    return made(engine, options, lambda: _scene_in_file(options, engine, file))


def _scene_in_file(options: argparse.Namespace, engine: Engine, file: str) -> Any:
    from pliant.app.scene import engine_of, read_scene

    if (other := engine_of(file)) != engine.name:
        raise FileError(file, f'is a scene of the engine "{other}"; use: pliant run')
    return read_scene(file, **{name: getattr(options, name, None) for name in engine.changes})


def _typed_scene(options: argparse.Namespace, engine: Engine, flags: dict[str, str]) -> Any:
    from pliant.app.scene import Output, scene_in
    from pliant.app.scene.located_toml import TypedText

    command = engine.part("command")
    document, names = command.document(options)
    names = {about.path: about.flag for about in flagged(*engine.all_options())} | names
    text = TypedText(content={"engine": engine.name, **document}, names=names, flags=flags)
    Output(text).check_not_read(options.output)
    aside = [about.name for about in engine.options.all(table=None)]
    return scene_in(text, **{name: getattr(options, name, None) for name in aside})


def made(engine: Engine, options: argparse.Namespace, read: Callable[[], Any], located: Located = named_by_user) -> int:
    """The clip of a scene, its report and its summary; the exit code."""
    begun, quiet = time.perf_counter(), options.quiet or options.json
    with progress("setting up", quiet=quiet):
        scene, solver = set_up(options.output, options.report, read, located, joints=engine.joints)
    seconds = time.perf_counter() - begun
    with progress("solving", quiet=quiet) as show:
        run = engine.part("solve")(scene, solver, show, seconds)
    write, up = engine.part("write"), getattr(scene, "up", "auto") if options.up in (None, "auto") else options.up
    if write:
        written = write(options.output, run)
    else:
        written = write_clip(options.output, replace(run.clip, shape=with_up(run.clip.shape, up)))
    if options.report:
        from pliant.app.report import page

        with progress("drawing the report", quiet=options.quiet):
            report = engine.part("report")(run, title=getattr(scene, "title", ""), view=options.view, up=up)
            page.write(options.report, report)
    return print_summary(options, run, written)


def _run(options: argparse.Namespace) -> int:
    """Do what a scene file says: its engine, its files, its options. Write the clip, and the report if there is to be
    one, to where it says, or to where you say.
    """
    from pliant.app.scene import engine_of, read_scene

    engine = ENGINES[engine_of(options.input)]
    options.output, options.report, located = destinations(options.input, options.output, options.report)
    return made(engine, options, lambda: read_scene(options.input), located)


def destinations(file: str, output: str | None = None, report: str | None = None) -> tuple[str, str | None, Located]:
    """The clip and the report of a scene: those given, or else those that it says; and where these names come from."""
    from pliant.app.scene import output_of

    destination = output_of(file)
    given = {"file": output, "report": report}
    clip = destination.file or destination.beside if output is None else output
    destination.check_not_read(clip)
    return (
        clip,
        report or destination.report,
        lambda key: destination.about(key) if given[key] is None else nullcontext(),
    )


def is_scene(file: str) -> bool:
    """Whether a file is a scene, by its name."""
    return Path(file).suffix.lower() == ".toml"


def add_summary_options(parser: argparse.ArgumentParser, report: str, *, up: bool = True) -> None:
    """The options of what is printed and reported. up: whether which axis points up is one of them."""
    group = parser.add_argument_group("output")
    group.add_argument("--report", metavar="FILE", help=f"a web page: {report}")
    add_view(group, "of the report: ", up=up)
    group.add_argument("--quiet", action="store_true", help="say nothing but errors and notes")
    group.add_argument("--json", action="store_true", help="print all figures, frame by frame, for scripts")


def print_summary(options: argparse.Namespace, run: Any, written: list[Path]) -> int:
    """Say what was made; the exit code."""
    if options.json:
        files = {"output": [str(path) for path in written], "report": options.report}
        say_json({**files, **run.to_dict()})
    elif not options.quiet:
        say(*run.lines(), written_line(run.clip, written))
        if options.report:
            say(f"open {options.report}")
    if run.failure:
        complain(f"pliant: {run.failure}; what was reached is in {written[0]}")
    return 1 if run.failure else 0

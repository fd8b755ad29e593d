"""``pliant scene``: the schema of scene files for editors, examples to start from, and whether a scene is right."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pliant.app.cli.arguments import add_command
from pliant.app.cli.targets import say_missing, set_up
from pliant.core.errors import FileError
from pliant.core.terminal import say, say_json, shell_command
from pliant.io.output import staged


def add_commands(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, _scene, "scene", "scene files: examples, their schema, and whether one is right")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--check", metavar="FILE", help="do all that run does before it solves, and say whether a scene is right"
    )
    what.add_argument("--examples", metavar="DIR", help="write the examples that ship with pliant into a folder")
    what.add_argument("--schema", action="store_true", help="print the JSON schema of scene files, for editors")


def _scene(options: argparse.Namespace) -> int:
    """What there is to know of scene files: examples to start from, the schema that editors complete and check by, and
    whether a scene is right before it is run.
    """
    if options.schema:
        from pliant.app.scene.json_schema import json_schema

        say_json(json_schema())
    elif options.examples is not None:
        say_missing(options.examples)
        _write_examples(Path(options.examples))
    else:
        _check(options.check)
    return 0


def _write_examples(folder: Path) -> None:
    """All of them, or none; one that was changed is not lost."""
    from pliant.app.scene.examples import example_scenes

    scenes = {folder / name: text.encode() for name, text in example_scenes().items()}
    for path, content in scenes.items():
        if path.is_file() and path.read_bytes() != content:
            raise FileError(path, "is there already, and differs from the example; give another folder")
    first, *others = scenes
    with staged(first) as stage:
        stage.write_bytes(scenes[first])
        for path in others:
            (stage.parent / path.name).write_bytes(scenes[path])
    say(*(shell_command("pliant", "run", path) for path in scenes))


def _check(file: str) -> None:
    """All that ``pliant run`` does before it solves the first frame."""
    from pliant.app.cli.engines import destinations
    from pliant.app.scene import engine_of, read_scene

    engine = engine_of(file)
    clip, page, located = destinations(file)
    set_up(clip, page, lambda: read_scene(file), located)
    makes = f"{clip} and {page}" if page else clip
    say(f'{file}: a scene of the engine "{engine}", and right; it makes {makes}')

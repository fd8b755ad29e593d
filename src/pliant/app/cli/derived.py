"""The arguments of an engine that declares none: a flag for each scene key whose value is one word."""

from __future__ import annotations

import argparse
from typing import Any

from pliant.app.cli.flags import add_option, given
from pliant.core.options import Option, Path


def add_arguments(parser: Any, engine: Any) -> None:
    """Add the flags, and a scene file that may be given instead."""
    parser.add_argument("input", metavar="SCENE", nargs="?", help="a scene file (.toml)")
    keys = engine.record({}).keys
    names = [name for name, key in keys.items() if name != "engine" and hasattr(key.kind, "parse")]
    for name in names:
        add_option(parser, Option(name, None, keys[name].kind, keys[name].meaning))
    parser.set_defaults(keys=names)


def scene_file(options: argparse.Namespace) -> str | None:
    """The scene that was given."""
    file: str | None = options.input
    return file


def document(options: argparse.Namespace) -> tuple[dict[str, Any], dict[Path, str]]:
    """The scene that the flags say."""
    return given(options, *options.keys), {}

"""``pliant transfer``: its arguments, and the scene document made from them."""

from __future__ import annotations

import argparse
from typing import Any

from pliant.app.cli.flags import ArgumentGroups, given, joined, option_tables
from pliant.core.errors import InputError
from pliant.core.options import KeyPath
from pliant.engines.transfer.options import SOURCE_GROUP, TransferOptions
from pliant.geometry.body_plan.names import OVERLAYS


def add_arguments(parser: Any, engine: Any) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "input", metavar="SCENE", nargs="?", help="a scene file (.toml): sources, target, cage, controls"
    )
    groups = ArgumentGroups(parser)
    what = groups[SOURCE_GROUP]
    moving = (
        "what moves: a sequence of meshes, a clip, or a BVH; several, each for a part of the body, as legs=IN arms=IN"
    )
    what.add_argument("--source", metavar="IN", action="extend", nargs="+", help=moving)
    what.add_argument("--target", metavar="MESH", help="what is to move: mesh, polygon soup, point cloud, tetrahedra")
    what.add_argument("--cage", metavar="FILE", help="a closed mesh around the target (default: one is built)")
    bones = "own: the target file's, where it has one; none; or a file with joints inside the target (default: own)"
    what.add_argument("--skeleton", metavar="own|none|FILE", help=bones)
    found = "find by itself which part of the target follows what"
    what.add_argument("--auto", action="store_true", default=None, help=found)
    what.add_argument("--clip", help="name or number of the source's clip, where it has several")
    rest = "the source's rest: one of its frames, from 0, or a file with the same points or joints (default: its own)"
    what.add_argument("--rest", metavar="FRAME|FILE", help=rest)
    what.add_argument("--without", metavar="NAMES", help="joints of the source to leave out: tail*,thumb*,index*")
    groups.add_options(TransferOptions)


def scene_file(options: argparse.Namespace) -> str | None:
    """The scene that was given."""
    file: str | None = options.input
    return file


def document(options: argparse.Namespace) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """The scene document of the arguments, and the flags of its keys for error messages."""
    if not options.source or not options.target:
        missing = "--target" if options.source else "--source" if options.target else "a scene file, or --source"
        raise InputError(f"{missing} is missing; expected SCENE, or --source IN --target MESH --auto")
    if not options.auto:
        raise InputError("nothing says which part of the target follows what; add --auto, or write a scene file")
    chosen: dict[str, Any] = {name: _number(value) for name, value in given(options, "clip", "rest").items()}
    if options.without:
        chosen["without"] = [name.strip() for name in options.without.split(",")]
    sources = _sources(options.source)
    if chosen and len(sources) > 1:
        raise InputError(f"--{next(iter(chosen))} was given beside several sources; write a scene file")
    written = {
        "title": f"{', '.join(options.source)} on {options.target}",
        "sources": {name: {"file": file, **chosen} for name, file in sources.items()},
        "target": {"file": options.target, "skeleton": _skeleton(options)},
        "controls": "auto",
        "cage": {"file": options.cage},
        "target_up": options.up if options.up != "auto" else None,
    }
    return joined(written, option_tables(options, TransferOptions)), {
        ("sources", "source", "groups"): "--source",
        ("controls",): "--auto",
    }


def _sources(given: list[str]) -> dict[str, str]:
    """Files by name; one alone needs none."""
    parts = [word.partition("=") for word in given]
    named = {name: file for name, equals, file in parts if equals and name in (*OVERLAYS, "body")}
    if len(given) == 1:
        return named or {"source": given[0]}
    if len(named) < len(given):
        raise InputError(
            f"--source names {len(given)} files; expected each as NAME=FILE with another of the names "
            f"body, {', '.join(OVERLAYS)}"
        )
    return named


def _skeleton(options: argparse.Namespace) -> str:
    """The target's own, unless a cage is given, or what only a cage can do."""
    in_cage = options.cage or options.blocks or options.faces or options.error
    skeleton: str = options.skeleton or ("none" if in_cage else "own")
    return skeleton


def _number(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text

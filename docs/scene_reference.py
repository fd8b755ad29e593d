"""Writes what the docs list of options, from where they are declared: ``python docs/scene_reference.py``.

The tables of keys in scene.md, one for each engine, scene.schema.json for editors, and the tables of flags in
command-line.md, one for each engine's command.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pliant.app.cli.flags import flagged
from pliant.app.scene.json_schema import json_schema, records
from pliant.app.scene.schema import reference
from pliant.core.options import Flag
from pliant.engines.registry import ENGINES

FOLDER = Path(__file__).parent
PAGE, SCHEMA, COMMANDS = FOLDER / "scene.md", FOLDER / "scene.schema.json", FOLDER / "command-line.md"


def updated_page(page: str) -> str:
    """The page with the table of every engine, under its heading, as it is now."""
    for engine, record in records().items():
        rows = "\n".join(f"| `{key}` | {expected} | {meaning} |" for key, expected, meaning in reference(record))
        table = f"| key | expected | meaning |\n| --- | --- | --- |\n{rows}\n"
        below = re.compile(rf"(?<=\n### {engine}\n)(.*?\n)\| key \|.*?\n(?=\n|$)", re.DOTALL)
        page, found = below.subn(lambda match, table=table: match[1] + table, page, count=1)
        assert found, f"scene.md has no table under ### {engine}"
    return page


def updated_commands(page: str) -> str:
    """The page of the command line with the flags of every engine's options, under its heading, as they are now."""
    for engine in ENGINES.values():
        flags = {about.flag: about for about in flagged(*engine.all_options())}
        rows = "\n".join(f"| `{flag}` | {_syntax(about.kind)} | {about.meaning} |" for flag, about in flags.items())
        table = f"| flag | expected | meaning |\n| --- | --- | --- |\n{rows}\n"
        below = re.compile(rf"(?<=\n### {engine.name}\n)(.*?\n)\| flag \|.*?\n(?=\n|$)", re.DOTALL)
        page, found = below.subn(lambda match, table=table: match[1] + table, page, count=1)
        assert found, f"command-line.md has no table under ### {engine.name}"
    return page


def _syntax(kind: Any) -> str:
    return "nothing" if isinstance(kind, Flag) else kind.syntax


def schema_text() -> str:
    """The JSON schema, as ``pliant scene --schema`` prints it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    COMMANDS.write_text(updated_commands(COMMANDS.read_text(encoding="utf-8")), encoding="utf-8")

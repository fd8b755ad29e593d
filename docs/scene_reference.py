"""Writes what the docs list of options, from where they are declared: ``python docs/scene_reference.py``.

The tables of keys in scene.md, one for each engine, and in batch.md, scene.schema.json for editors, and the tables of
flags in command-line.md, one for each engine's command and one for batches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pliant.app.batch.jobs import BATCH
from pliant.app.batch.options import BatchOptions
from pliant.app.cli.flags import flagged
from pliant.app.scene.json_schema import json_schema, records
from pliant.app.scene.schema import reference
from pliant.core.options import Flag
from pliant.engines.registry import ENGINES

FOLDER = Path(__file__).parent
PAGE, SCHEMA, COMMANDS = FOLDER / "scene.md", FOLDER / "scene.schema.json", FOLDER / "command-line.md"
JOBS = FOLDER / "batch.md"


def updated_page(page: str) -> str:
    """The page with the table of every engine, under its heading, as it is now."""
    for engine, record in records().items():
        page = _with_table(page, engine, "key", reference(record))
    return page


def updated_jobs(page: str) -> str:
    """The page of batches with the table of keys as it is now."""
    return _with_table(page, "Every key", "key", reference(BATCH))


def updated_commands(page: str) -> str:
    """The page of the command line with the flags of every command's options, under its heading, as they are now."""
    declared = {engine.name: engine.all_options() for engine in ENGINES.values()} | {"batch": (BatchOptions,)}
    for command, options in declared.items():
        flags = {about.flag: about for about in flagged(*options)}
        rows = [(flag, _syntax(about.kind), about.meaning) for flag, about in flags.items()]
        page = _with_table(page, command, "flag", rows)
    return page


def _with_table(page: str, heading: str, what: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """The page with another table below a heading; what: its first column lists."""
    lines = "\n".join(f"| `{key}` | {expected} | {meaning} |" for key, expected, meaning in rows)
    table = f"| {what} | expected | meaning |\n| --- | --- | --- |\n{lines}\n"
    below = re.compile(rf"(?<=\n### {heading}\n)(.*?\n)\| {what} \|.*?\n(?=\n|$)", re.DOTALL)
    page, found = below.subn(lambda match: match[1] + table, page, count=1)
    assert found, f"there is no table under ### {heading}"
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
    JOBS.write_text(updated_jobs(JOBS.read_text(encoding="utf-8")), encoding="utf-8")

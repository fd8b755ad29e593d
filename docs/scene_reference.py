"""Writes what the docs list of scene files, from what scenes are read by: ``python docs/scene_reference.py``.

The tables of keys in scene.md, one for each engine, and scene.schema.json for editors.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pliant.scene.json_schema import RECORDS, json_schema
from pliant.scene.schema import reference

FOLDER = Path(__file__).parent
PAGE, SCHEMA = FOLDER / "scene.md", FOLDER / "scene.schema.json"


def updated_page(page: str) -> str:
    """The page with the table of every engine, under its heading, as it is now."""
    for engine, record in RECORDS.items():
        rows = "\n".join(f"| `{key}` | {expected} | {meaning} |" for key, expected, meaning in reference(record))
        table = f"| key | expected | meaning |\n| --- | --- | --- |\n{rows}\n"
        below = re.compile(rf"(?<=\n### {engine}\n)(.*?\n)\| key \|.*?\n(?=\n|$)", re.DOTALL)
        page, found = below.subn(lambda match, table=table: match[1] + table, page, count=1)
        assert found, f"scene.md has no table under ### {engine}"
    return page


def schema_text() -> str:
    """The JSON schema, as ``pliant scene --schema`` prints it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(updated_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")

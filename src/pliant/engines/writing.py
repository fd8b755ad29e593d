"""How the result of an engine is written, unless it has a way of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pliant.io import write_clip


def write_run(output: str, run: Any) -> list[Path]:
    """Write the clip."""
    return write_clip(output, run.clip)

"""Scenes to start from, of every engine; all that they name is built in, and each runs in seconds.

``pliant scene --examples DIR`` writes them out.
"""

from __future__ import annotations

from importlib.resources import files


def example_scenes() -> dict[str, str]:
    """The text of each scene, by its file's name."""
    found = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".toml")]
    return {entry.name: entry.read_text(encoding="utf-8") for entry in sorted(found, key=lambda entry: entry.name)}

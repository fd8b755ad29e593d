"""What scenes of all engines have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pliant.app.scene.located_toml import TomlText


@dataclass(frozen=True, eq=False)
class EngineScene:
    """A scene of any engine, with the text that it was read from."""

    text: TomlText | None = field(default=None, kw_only=True)
    """None if it was not read from a document."""

    @property
    def file(self) -> str:
        """The file that it was read from; empty if there is none."""
        return "" if self.text is None else self.text.source.label


def overridden(config: dict[str, Any], **given: Any) -> dict[str, Any]:
    """A scene's values with those replaced that are given, from the command line, and not None."""
    return config | {key: value for key, value in given.items() if value is not None}

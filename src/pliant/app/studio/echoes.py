"""Widgets that a visitor and the program both set: what the program has put there comes back, and is no wish.

viser calls back whenever a widget gets another value, whoever gave it, and does so later, on the page's loop. A value
that a widget cannot show, such as one beyond a slider's end, is shown as near as may be, and stays as it was said.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pliant.app.studio.panel import Desk


class Echoes:
    """Tells wishes from echoes, for the widgets of one panel."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._own: dict[int, Any] = {}
        self._setting = threading.RLock()  # a callback waits until what is being set is known to be our own

    def on(self, widget: Any, done: Callable[[Any], None]) -> None:
        """Call `done` with the value that a visitor has given a widget."""
        self._own[id(widget)] = widget.value

        def told() -> None:
            with self._setting:
                value = widget.value
                echo = value == self._own[id(widget)]
                self._own[id(widget)] = value
            if not echo:
                done(value)

        self._desk.on(widget, told)

    def show(self, widget: Any, value: Any, options: tuple[str, ...] | None = None) -> None:
        """Have a widget show a value, a slider the nearest it can; options: what there is to choose from."""
        with self._setting:
            if hasattr(widget, "max"):
                value = min(max(value, widget.min), widget.max)
            own = self._own[id(widget)] = type(widget.value)(value)
            if options is not None and options != tuple(widget.options):
                widget.options = options
            widget.value = own

"""Widgets of a panel: those that both the visitor and the program set, and those that are made from declared options.

viser calls back whenever a widget gets another value, whoever gave it, and does so later, on the page's loop. What the
program has set comes back as an echo, which is no change. A value that a widget cannot show, such as one beyond a
slider's end, is shown as near as possible, and the document keeps it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import Any

from pliant.app.studio.desk import Desk
from pliant.core.errors import InputError
from pliant.core.options import Choice, Flag, Misfit, Number, Option, Whole, parse_word

SLIDER_STEPS = 500
"""Of a slider, at least."""
LINEAR_DECADES = 3
"""Sliders over more than so many powers of ten are logarithmic."""


class Widgets:
    """The widgets of one panel; their changes are told from echoes."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._own: dict[int, Any] = {}
        self._setting = threading.RLock()  # a callback waits until what is being set is known to be our own

    def on(self, widget: Any, changed: Callable[[Any], None]) -> None:
        """Call `changed` with the value that a visitor has given a widget."""
        self._own[id(widget)] = widget.value

        def heard() -> None:
            with self._setting:
                value = within(widget, widget.value)
                echo = value == self._own[id(widget)]
                self._own[id(widget)] = value
                if value != widget.value:  # viser lets numbers be typed that are beyond the ends
                    widget.value = value
            if not echo:
                changed(value)

        self.desk.on(widget, heard)

    def show(self, widget: Any, value: Any, options: tuple[str, ...] | None = None) -> None:
        """Have a widget show a value, a slider the nearest it can; options: what there is to choose from."""
        with self._setting:
            own = self._own[id(widget)] = type(widget.value)(within(widget, value))
            if options is not None and options != tuple(widget.options):
                widget.options = options
            if widget.value != own:
                widget.value = own

    def button(self, label: str, pressed: Callable[[], None], **more: Any) -> Any:
        """A button."""
        made = self.desk.gui.add_button(label, **more)
        self.desk.on(made, pressed)
        return made

    def options(
        self,
        options: Iterable[Option],
        value: Callable[[Option], Any],
        changed: Callable[[Option, Any], None],
        more: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> dict[str, OptionWidget]:
        """A widget for each of some options, by name: it shows a value; `changed` gets what a visitor sets, checked.

        None stands for the default of an option that has none of its own. more: what viser's widgets take besides.
        """
        return {
            about.name: OptionWidget(self, about, value(about), partial(changed, about), more.get(about.name, {}))
            for about in options
        }


def within(widget: Any, value: Any) -> Any:
    """The value that is nearest to one, of a slider's or a number's."""
    low, high = getattr(widget, "min", None), getattr(widget, "max", None)
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


class OptionWidget:
    """A checkbox, a list, a slider or a text field, whichever suits the option and its value. widget: viser's own."""

    def __init__(
        self, widgets: Widgets, about: Option, value: Any, changed: Callable[[Any], None], more: Mapping[str, Any]
    ) -> None:
        self._widgets, self.about = widgets, about
        label = about.label or about.name.replace("_", " ").capitalize()
        gui, more = widgets.desk.gui, {"hint": hint_of(about), **more}
        kind, span = about.kind, slider_range(about)
        self._logarithmic = span is not None and 0 < span[0] * 10**LINEAR_DECADES < span[1]
        self._typed, self._none = False, about.default_text if isinstance(kind, Choice) else ""
        if isinstance(kind, Flag):
            self.widget = gui.add_checkbox(label, bool(value), **more)
        elif isinstance(kind, Choice):
            choices = kind.choices if about.default is not None else (self._none, *kind.choices)
            self.widget = gui.add_dropdown(label, choices, initial_value=self._shown(value), **more)
        elif span is not None and (isinstance(value, Real) or (value is None and about.slider is not None)):
            low, high = (math.log10(end) for end in span) if self._logarithmic else span
            step = slider_step(low, high, whole=isinstance(kind, Whole))
            shown = low if value is None else min(max(self._shown(value), low), high)
            self.widget = gui.add_slider(label, low, high, step, shown, **more)
        else:
            self._typed = True
            self.widget = gui.add_text(label, self._shown(value), **more)
        widgets.on(self.widget, lambda shown: changed(self._read(shown)))

    @property
    def value(self) -> Any:
        """What it shows."""
        return self._read(self.widget.value)

    def show(self, value: Any) -> None:
        """Show a value, as near as it can."""
        self._widgets.show(self.widget, self._shown(value))

    def _shown(self, value: Any) -> Any:
        if self._typed:
            values = value if isinstance(value, list) else [] if value is None else [value]
            return ",".join(f"{one:.6g}" if isinstance(one, float) else str(one) for one in values)
        if value is None:
            return self._none if isinstance(self.about.kind, Choice) else self.widget.min
        return math.log10(value) if self._logarithmic else value

    def _read(self, shown: Any) -> Any:
        if not self._typed:
            value = float(f"{10**shown:.4g}") if self._logarithmic else shown
            if isinstance(self.about.kind, Choice) and value not in self.about.kind.choices:
                return None
            return int(value) if isinstance(self.about.kind, Whole) else value
        try:
            return parse_word(self.about.kind, shown.strip()) if shown.strip() else None
        except Misfit as misfit:
            raise InputError(f"{self.about.name}: {misfit.problem}") from None


def slider_range(about: Option) -> tuple[float, float] | None:
    """The values that a slider of an option goes through; None if the option has no range to slide through."""
    if about.slider is not None:
        return about.slider
    kind = about.kind
    if isinstance(kind, Whole) and kind.most < 2**31:
        return kind.least, kind.most
    if isinstance(kind, Number) and max(abs(kind.above), abs(kind.below)) < Number().below:
        inset = (kind.below - kind.above) / 1000  # the ends themselves are not allowed
        low, high = kind.above + inset, kind.below - inset
        return (low, high) if about.default is None or low <= about.default <= high else None
    return None


def slider_step(low: float, high: float, *, whole: bool = False) -> float:
    """A round step, 1, 2 or 5 times a power of ten, that divides a range into enough parts."""
    widest = (high - low) / SLIDER_STEPS
    power = 10.0 ** math.floor(math.log10(widest))
    step = power * max(factor for factor in (1, 2, 5) if factor * power <= widest * (1 + 1e-9))
    return max(1, round(step)) if whole else float(f"{step:.3g}")


def hint_of(about: Option) -> str:
    """What is shown beside a widget: a sentence."""
    unit = f", in {about.unit}" if about.unit else ""
    return f"{about.help[:1].upper()}{about.help[1:]}{unit}."

"""Widgets for options of the engines: default and hint are those that the option is declared with."""

from __future__ import annotations

from typing import Any

from pliant.core.options import Option


def option_slider(gui: Any, about: Option, label: str, low: float, high: float, step: float, **more: Any) -> Any:
    """A slider; low and high: the part of the option's range that is worth dragging through."""
    default = about.default if isinstance(about.default, (int, float)) else low
    return gui.add_slider(label, low, high, step, more.pop("value", default), **{"hint": hint_of(about), **more})


def hint_of(about: Option) -> str:
    """What is shown beside a widget: a sentence."""
    unit = f", in {about.unit}" if about.unit else ""
    return f"{about.help[:1].upper()}{about.help[1:]}{unit}."

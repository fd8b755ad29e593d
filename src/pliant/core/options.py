"""Declarations of engine options: each option is declared once, and all that shows, reads or checks it is derived.

    @dataclass(frozen=True)
    class StirOptions(Options):
        speed: float = option(2.0, POSITIVE, "how quickly to stir", "revolutions a second")

The defaults of Python's keywords are ``StirOptions.speed``; an instance is checked when it is made. A field also says
where an option is found: under which heading of the command's help, in which table of a scene file, in which folder of
the studio. Flags, scene keys, with them the JSON schema and the reference in the docs, and the studio's widgets are
made from what `Options.all` lists, so that no option is named again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pliant.core.errors import InputError
from pliant.core.kinds import (
    DIRECTION as DIRECTION,
    NOT_NEGATIVE as NOT_NEGATIVE,
    NUMBER_LIMIT as NUMBER_LIMIT,
    POINT as POINT,
    POSITIVE as POSITIVE,
    Choice as Choice,
    Either as Either,
    Flag as Flag,
    KeyPath as KeyPath,
    Kind as Kind,
    Misfit as Misfit,
    Number as Number,
    ParsedKind as ParsedKind,
    Row as Row,
    Share as Share,
    Text as Text,
    Whole as Whole,
    closest as closest,
    key_name as key_name,
    parse_word as parse_word,
    read_value as read_value,
    shown as shown,
    suggestion as suggestion,
)

if TYPE_CHECKING:
    from typing_extensions import Self

Conflict = tuple[str, str]
"""An option, and why it cannot be used beside the others that are given."""
CONTACT_GROUP, SOLVER_GROUP = "what it gives way to", "how to solve"
"""Headings that the commands of several engines have."""
OBSTACLES_FOLDER = "Obstacles"
"""Of the studio's widgets, in every engine with contact."""


@dataclass(frozen=True)
class Option:
    """What there is to know of an option."""

    name: str
    default: Any
    kind: Any
    help: str
    """In one line, without the default."""
    unit: str = ""
    default_text: str = ""
    """What is shown of the default, where the value does not say it."""
    slider: tuple[float, float] | None = None
    """The part of its range that a slider goes through, where the whole range is too wide to drag through."""
    group: str | None = ""
    """Heading of the command's help that its flag is under; empty: that of further options; None: it has no flag."""
    flag_name: str = ""
    """What its flag is called, where that is not its name."""
    overrides: bool = False
    """Whether its flag may be given beside a scene file, instead of what that says."""
    table: str | None = ""
    """Table of the scene that has its key, such as "motion.rod"; empty: the scene itself; None: it is no key."""
    needs: tuple[str, ...] = ()
    """What it has no effect without."""
    folder: str | None = ""
    """Of the studio's widgets; empty: that of further options; None: the panel shows it in a way of its own."""
    label: str = ""
    """In the studio; by default its name."""

    @property
    def flag(self) -> str:
        """On the command line."""
        return f"--{self.dest.replace('_', '-')}"

    @property
    def dest(self) -> str:
        """What the parsed command line calls it."""
        return self.flag_name or self.name

    @property
    def path(self) -> tuple[str, ...]:
        """Of its key in a scene."""
        return (*self.table.split("."), self.name) if self.table else (self.name,)

    @property
    def meaning(self) -> str:
        """Help, unit and default."""
        return self.described(default=True)

    def described(self, more: str = "", *, default: bool) -> str:
        """Help and unit, then `more`, then the default if it is asked for."""
        value = self.default_text or ("" if self.default is None or self.default is False else _default(self.default))
        unit = f", in {self.unit}" if self.unit else ""
        return f"{self.help}{unit}{more}" + (f" (default: {value})" if default and value else "")

    def checked(self, value: Any) -> Any:
        """A value, or an InputError that names the option; None where that is the default."""
        if value is None and self.default is None:
            return None
        try:
            return read_value(self.kind, value)
        except Misfit:
            given = f'"{value}"' if isinstance(value, str) else f"{value!r:.40}"
            raise InputError(f"{self.name} is {given}; expected {self.kind.expected}", argument=self.name) from None

    def value_in(self, document: Mapping[str, Any]) -> Any:
        """What a scene says; the default if it says nothing."""
        for key in self.path[:-1]:
            document = document.get(key) or {}
        value = document.get(self.name)
        return self.default if value is None else value

    def put(self, document: Mapping[str, Any], value: Any) -> dict[str, Any]:
        """A scene with another value; None: it says nothing. Tables are replaced, not changed in place."""
        return _put(document, self.path, value)


def _put(document: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    key, *inner = path
    value = _put(document.get(key) or {}, tuple(inner), value) or None if inner else value
    others = {name: other for name, other in document.items() if name != key}
    return others if value is None else {**document, key: value}


def _default(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def option(default: Any, kind: Kind, help: str, unit: str = "", **more: Any) -> Any:
    """A field of `Options`; the arguments are those of `Option`."""
    return field(default=default, metadata={"kind": kind, "help": help, "unit": unit, **more})


class Options:
    """Base of frozen dataclasses whose fields are made by `option`: an instance has checked values."""

    def __post_init__(self) -> None:
        for one in self.all():
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))

    @classmethod
    def all(cls, **declared: Any) -> Iterator[Option]:
        """Every option, in order, or those that declare some values: ``all(table="material")``."""
        for each in fields(cls):  # type: ignore[arg-type]
            one = Option(each.name, each.default, **each.metadata)
            if all(getattr(one, name) == value for name, value in declared.items()):
                yield one

    @classmethod
    def about(cls, name: str) -> Option:
        """What there is to know of one of them."""
        return next(cls.all(name=name))

    @classmethod
    def names(cls, **declared: Any) -> tuple[str, ...]:
        """The names of those that declare some values."""
        return tuple(one.name for one in cls.all(**declared))

    @classmethod
    def check(cls, **given: Any) -> dict[str, Any]:
        """The values of some of them, checked."""
        return {name: cls.about(name).checked(value) for name, value in given.items()}

    @classmethod
    def read(cls, document: Mapping[str, Any], **instead: Any) -> Self:
        """Those of a scene's tables; what is given `instead` counts if it is not None."""
        values = {one.name: one.value_in(document) for one in cls.all() if one.table is not None}
        return cls(**values | {name: value for name, value in instead.items() if value is not None})

    def changed(self) -> dict[str, Any]:
        """Those that differ from their defaults."""
        return {one.name: value for one in self.all() if (value := getattr(self, one.name)) != one.default}

    def taken_by(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Those that a function or class takes as keywords."""
        known = _keywords(function)
        return {one.name: getattr(self, one.name) for one in self.all() if one.name in known}

    @classmethod
    def idle(cls, given: Container[str], lacking: Mapping[str, str]) -> Iterator[Conflict]:
        """Options that have no effect. given: the names of those that are given. lacking: what there is not, and how
        that is said."""
        for need, reason in lacking.items():
            yield from ((one.name, reason) for one in cls.all() if need in one.needs and one.name in given)


def _keywords(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def refuse(conflicts: Iterator[Conflict] | Sequence[Conflict]) -> None:
    """Raise an InputError about the first of some conflicts."""
    for name, reason in conflicts:
        raise InputError(f"{name} cannot be used here: {reason}; leave it out", argument=name)

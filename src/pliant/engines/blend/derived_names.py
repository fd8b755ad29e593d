"""In-between and combination shapes, by their names or as they are given.

- ``smile50``, ``smile_50``, ``smile_0.5``, ``smile50_L`` are in-betweens of ``smile`` (or ``smile_L``), at 0.5.
- ``jawOpen_smile``, ``jawOpen+smile``, ``jawOpen50_smile`` are combinations of
  ``jawOpen`` (at 1, or at 0.5) and ``smile``.

What a name is made of has to be there: without a shape ``smile``, ``smile50`` is a slider of its own. So are numbers
that count: beside ``smile2`` or ``smile100``, ``smile50`` is the fiftieth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from pliant.core.errors import InputError
from pliant.engines.blend.options import CombinationKind, InBetweenKind
from pliant.io.shape_names import plain

GivenInBetweens = InBetweenKind | Mapping[str, tuple[str, float]]
GivenCombinations = CombinationKind | Mapping[str, Sequence[str] | Mapping[str, float]]
InBetweens = dict[str, tuple[str, float]]
"""By name, the slider and the value of it that a shape is for."""
Combinations = dict[str, dict[str, float]]
"""By name, the sliders and the values of them that a shape is for."""

NUMBERED = re.compile(r"(?P<stem>.*?\D)[\s_.-]*?(?P<number>0\.\d+|\d+)(?P<side>[\s_.-]?(?:L|R|Left|Right|left|right))?")
MARKS = {"combo", "comb", "cmb", "cs", "corr", "corrective", "combination"}
"""What names of combinations may begin with."""
LONGEST_DERIVED_NAME, MOST_TOKENS = 200, 12
"""Names that are longer, or have more parts, are those of sliders."""


def find_inbetweens(names: Sequence[str]) -> InBetweens:
    """Those of the shapes called `names`, the base first, that are in-betweens of others."""
    sliders = {plain(name): name for name in names[1:]}
    found: dict[str, list[tuple[str, str]]] = {}
    for name in names[1:]:
        parted = _numbered(name, sliders)
        if parted is not None:
            found.setdefault(parted[0], []).append((name, parted[1]))
    result: InBetweens = {}
    for slider, numbered in found.items():
        counted = [number for _, number in numbered if "." not in number]
        counts = any(len(number) != 2 or number == "00" for number in counted)
        for name, number in numbered:
            if "." in number or not counts:
                result[name] = slider, float(number) if "." in number else int(number) / 100
    chained = {name for name, (slider, _) in result.items() if slider in result}
    return {name: at for name, at in result.items() if name not in chained and 0 < at[1] < 1}


def _numbered(name: str, sliders: Mapping[str, str]) -> tuple[str, str] | None:
    """The slider that a name is numbered after, and the number."""
    match = NUMBERED.fullmatch(name) if len(name) <= LONGEST_DERIVED_NAME else None
    if match is None:
        return None
    slider = sliders.get(plain(match["stem"].rstrip(" _.-") + (match["side"] or "")))
    return None if slider is None or slider == name else (slider, match["number"])


def find_combinations(names: Sequence[str], inbetweens: InBetweens) -> Combinations:
    """Those of the shapes called `names`, the base first, that are combinations of others that are no in-betweens."""
    result: Combinations = {}
    others = [name for name in names[1:] if name not in inbetweens]
    sliders = {plain(name): name for name in others if re.search(r"[^\W\d_]", name)}
    for name in sorted(others, key=lambda name: len(_tokens(name))):  # so that combinations are no parts of others
        own = sliders.pop(plain(name), None)
        parts = _parts(_tokens(name), sliders)
        if parts is not None and len(parts) > 1:
            result[name] = parts
        elif own is not None:
            sliders[plain(own)] = own
    return {name: result[name] for name in names if name in result}


def _tokens(name: str) -> list[str]:
    tokens = [token for token in re.split(r"[_+&\s]+", name) if token] if len(name) <= LONGEST_DERIVED_NAME else []
    return tokens[1:] if len(tokens) > 2 and tokens[0].casefold() in MARKS else tokens


def _parts(tokens: list[str], sliders: Mapping[str, str]) -> dict[str, float] | None:
    """The fewest sliders, each with a value, whose names make up all the tokens; None if there are none such."""
    if not tokens or len(tokens) > MOST_TOKENS:
        return None if tokens else {}
    for length in range(len(tokens), 0, -1):
        part = _part("_".join(tokens[:length]), sliders)
        rest = None if part is None else _parts(tokens[length:], sliders)
        if part is not None and rest is not None and part[0] not in rest:
            return {part[0]: part[1], **rest}
    return None


def _part(name: str, sliders: Mapping[str, str]) -> tuple[str, float] | None:
    """A slider and its value: that of the name, or that of an in-between's name, whether that is there or not."""
    if (slider := sliders.get(plain(name))) is not None:
        return slider, 1.0
    parted = _numbered(name, sliders)
    if parted is None or not re.fullmatch(r"[1-9]\d|0[1-9]|0\.\d+", parted[1]):
        return None
    return parted[0], float(parted[1]) if "." in parted[1] else int(parted[1]) / 100


def given_inbetweens(names: Sequence[str], given: GivenInBetweens) -> InBetweens:
    """In-betweens that are named, checked, or found."""
    if isinstance(given, str):
        if given not in get_args(InBetweenKind):
            raise _unknown("inbetweens", given, InBetweenKind, '{"half smile": ("smile", 0.5)}')
        return find_inbetweens(names) if given == "auto" else {}
    found: InBetweens = {}
    for name, at in _mapping("inbetweens", given).items():
        try:
            slider, value = str(at[0]), float(at[1])
        except (TypeError, ValueError, IndexError, KeyError):
            raise InputError(
                f'inbetweens has {at!r:.40} for "{name}"; expected a slider and a value of it, such as ("smile", 0.5)',
                argument="inbetweens",
            ) from None
        _check_parts("inbetweens", names, name, [slider])
        if not np.isfinite(value) or value in (0, 1):
            problem = (
                f'inbetweens has "{name}" at {value:g}; expected a value other than 0, the base, and 1, the slider'
            )
            raise InputError(problem, argument="inbetweens")
        found[name] = slider, value
    for name, (slider, _) in found.items():
        if slider in found:
            raise InputError(f'"{name}" is an in-between of "{slider}", which is one itself', argument="inbetweens")
    return found


def given_combinations(names: Sequence[str], given: GivenCombinations, inbetweens: InBetweens) -> Combinations:
    """Combinations that are named, checked, or found."""
    if isinstance(given, str):
        if given not in get_args(CombinationKind):
            raise _unknown("combinations", given, CombinationKind, '{"both": ("jawOpen", "smile")}')
        return {} if given == "none" else find_combinations(names, inbetweens)
    found: Combinations = {}
    for name, parts in _mapping("combinations", given).items():
        named: Any = (
            parts if isinstance(parts, Mapping) else None if isinstance(parts, str) else dict.fromkeys(parts, 1.0)
        )
        if named is None or len(named) < 2:
            raise InputError(
                f'combinations has {parts!r:.40} for "{name}"; expected two or more sliders', argument="combinations"
            )
        _check_parts("combinations", names, name, list(named))
        for part, value in named.items():
            if not isinstance(value, (int, float)) or not 0 < value <= 1:
                problem = f'combinations has "{part}" at {value!r:.20} in "{name}"; expected a number above 0, up to 1'
                raise InputError(problem, argument="combinations")
            if part in inbetweens or part in given:
                problem = f'combinations has "{part}" in "{name}", which is no slider itself; name its sliders'
                raise InputError(problem, argument="combinations")
        if name in inbetweens:
            raise InputError(f'"{name}" is an in-between and a combination; expected one', argument="combinations")
        found[name] = {part: float(value) for part, value in named.items()}
    return found


def _unknown(argument: str, given: str, kinds: Any, example: str) -> InputError:
    choices = ", ".join(f'"{kind}"' for kind in get_args(kinds))
    return InputError(
        f'{argument} is "{given:.40}"; expected {choices}, or a table such as {example}', argument=argument
    )


def _mapping(argument: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{argument} is {given!r:.40}; expected a table from names of shapes", argument=argument)
    return given


def _check_parts(argument: str, names: Sequence[str], name: str, parts: Sequence[str]) -> None:
    for one in (name, *parts):
        if one not in names[1:]:
            problem = f'{argument} names "{one:.60}"; the shapes but the base are {", ".join(names[1:61])}'
            raise InputError(problem, argument=argument)
    if name in parts:
        raise InputError(f'{argument} makes "{name}" a part of itself; expected other shapes', argument=argument)

"""Shapes by name, as rigs, recordings and people spell them.

A name means the shape that is called so. If there is none, it means the one shape that is called so but for

1. capitals, blanks, dashes and underscores: ``Jaw Open``, ``jaw_open``, ``jawOpen``;
2. how left and right are written: ``mouthSmile_L``, ``L_mouthSmile``, ``MouthSmileLeft``;
3. what a program has put in front: ``blendShape1.jawOpen``.

A slider for both sides, such as ARKit's ``browInnerUp``, moves both shapes of a rig that has one for each.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pliant.core.topology import Floats

NOT_SHAPES = ("frame", "time", "seconds", "timecode", "blendshapecount")
"""Columns that tables of weights have beside the shapes, without capitals and underscores."""
RIGID_MOTION = re.compile(
    r"(left|right)?(head|neck|eye|eyes|camera)(left|right)?(pos(ition)?|rot(ation)?|translat(e|ion))?"
    r"(yaw|pitch|roll|[xyzw])(left|right)?"
)
"""Columns of recordings for the rotation of head and eyes, such as HeadYaw and LeftEyePitch, which no shape is for."""
ARKIT_SIDED = """browdown browouterup cheeksquint eyeblink eyelookdown eyelookin eyelookout eyelookup eyesquint eyewide
jaw mouth mouthdimple mouthfrown mouthlowerdown mouthpress mouthsmile mouthstretch mouthupperup nosesneer"""
ARKIT_WHOLE = """browinnerup cheekpuff jawforward jawopen mouthclose mouthfunnel mouthpucker mouthrolllower
mouthrollupper mouthshruglower mouthshrugupper tongueout"""
ARKIT = {*ARKIT_WHOLE.split(), *(name + side for name in ARKIT_SIDED.split() for side in ("left", "right"))}
"""The 52 sliders of ARKit: recordings have all of them, rigs often only some."""
MOST_NAMES_LISTED = 60
"""Names that an error lists."""
SIDE_SPELLINGS = {
    "l": "left",
    "left": "left",
    "lf": "left",
    "lt": "left",
    "r": "right",
    "right": "right",
    "rt": "right",
}


class ShapeNames:
    """The names of a rig's shapes, and which of them another name means.

    others: whether columns of tables may be for something else, whatever they are called.
    """

    def __init__(self, names: Sequence[str], *, others: bool = False) -> None:
        self.names, self.others = list(names), others
        self._alike = [_numbers(map(spelling, self.names)) for spelling in SPELLINGS]

    def __len__(self) -> int:
        return len(self.names)

    def column(self, name: str) -> tuple[int, ...]:
        """The shapes that a column of a table moves; none if it is for something else. Raises KeyError, with advice."""
        found = self._find(name)
        if found is not None:
            return (found,)
        sides = [self._find(f"{name}_{side}") for side in ("left", "right")]
        if None not in sides:
            return tuple(shape for shape in sides if shape is not None)
        if self.others or is_no_shape(name):
            return ()
        raise KeyError(self._advice(name))

    def shape(self, name: str) -> int:
        """The shape that a name means; raises KeyError, with advice, if there is none."""
        found = self._find(name)
        if found is None:
            raise KeyError(self._advice(name))
        return found

    def _find(self, name: str) -> int | None:
        if name in self.names:
            return self.names.index(name)
        for spelling, alike in zip(SPELLINGS, self._alike, strict=True):
            spelled = spelling(name)
            if spelled and len(found := alike.get(spelled, [])) == 1:
                return found[0]
        return None

    def _advice(self, name: str) -> str:
        alike = [self.names[k] for k in self._alike[0].get(plain(name), [])]
        near = " or ".join(f'"{one}"' for one in difflib.get_close_matches(name, self.names, 3) or alike)
        question = f"did you mean {near}? " if near else ""
        return f'no shape is called "{name:.60}"; {question}{self.listed}'

    @property
    def listed(self) -> str:
        """The names that there are, as text."""
        more = len(self) - MOST_NAMES_LISTED
        return f"there are {', '.join(self.names[:MOST_NAMES_LISTED])}" + (f" and {more} more" if more > 0 else "")

    def row(self, numbers: Sequence[float]) -> Floats:
        """One number for each shape; a missing first one, the base's, is 0."""
        return np.concatenate([np.zeros(len(self) - len(numbers)), numbers])

    def fits(self, count: int) -> bool:
        """Whether this many unnamed numbers can be assigned."""
        return count == len(self) or (count == len(self) - 1 and count > 0)

    @property
    def wanted(self) -> str:
        """How many unnamed numbers are expected, as text."""
        return f"{len(self)}, one for each shape, or {len(self) - 1}, without the base"


def is_no_shape(name: str) -> bool:
    """Whether a column is one that recordings have, for a shape that this rig lacks or for no shape at all."""
    return is_counter(name) or _sided(name) in ARKIT or RIGID_MOTION.fullmatch(plain(name)) is not None


def is_counter(name: str) -> bool:
    """Whether a column numbers or dates the rows."""
    return plain(name) in NOT_SHAPES


def plain(name: str) -> str:
    """Without capitals, blanks, dashes and underscores."""
    return re.sub(r"[\s_-]", "", name).casefold()


def _sided(name: str) -> str:
    """Plain, with the side spelled out at the end."""
    tokens = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_]+|[^\w\s-]", name)
    tokens = [token.casefold() for token in tokens if re.search(r"\w", token)]
    for at in (-1, 0):
        if len(tokens) > 1 and tokens[at] in SIDE_SPELLINGS:
            side = SIDE_SPELLINGS[tokens.pop(at)]
            return "".join([*tokens, side])
    return "".join(tokens)


def _bare(name: str) -> str:
    """The same of what follows the last dot, colon or bar, unless that is a side or a number."""
    last = re.split(r"[.:|]", name)[-1]
    return _sided(name if last.casefold() in SIDE_SPELLINGS or not re.search(r"[^\W\d]", last) else last)


SPELLINGS: tuple[Callable[[str], str], ...] = (plain, _sided, _bare)
"""Ways to write a name in which different spellings are the same, the strictest first."""


def _numbers(names: Iterable[str]) -> dict[str, list[int]]:
    """Which of the names are alike, by name."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        found.setdefault(name, []).append(k)
    return found

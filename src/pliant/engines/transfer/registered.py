"""What was told of a source and a target, and what was found: axes, limbs that match, limbs that are dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from pliant.core.shapes import Shape
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.transfer.limb_matching import LimbMatch, summary
from pliant.engines.transfer.orientation import Body, axis_name, shape_body
from pliant.geometry.retargeting import Up, up_axis, up_vector

JUMP = 6.0
"""How much farther joints turn from the first frame to the second than in most, if the first is a reference pose."""
LEAST_JUMP = np.radians(4)
"""Mean angle of that."""


@dataclass(frozen=True)
class RegistrationHints:
    """What is known of how source and target stand, and which limbs match; None where it is to be found."""

    target_up: Up | None = None
    heading: Up | None = None
    source_up: Up | None = None
    source_heading: Up | None = None
    map: str | None = None

    def axis(self, name: str) -> Floats | None:
        """(3,) one of the axes."""
        value: Up | None = getattr(self, name)
        return None if value is None else up_vector(value)

    def body(self, shape: Shape, up: str, heading: str) -> Body:
        """How a shape stands, and its limbs."""
        given: Up | None = getattr(self, up)
        known = given is not None or shape.world is not None
        return _body(shape, given or up_axis(shape), known, getattr(self, heading))


@lru_cache(maxsize=4)
def _body(shape: Shape, up: Up, fixed_up: bool, heading: Up | None) -> Body:
    """Found once for the same shape, which may be both the source's and the target; shapes never change."""
    faced = None if heading is None else up_vector(heading)
    return shape_body(shape, up_vector(up), fixed_up=fixed_up, heading=faced)


@dataclass(frozen=True, eq=False)
class Registered:
    """How a source and a target stand, and which limbs follow which."""

    source: Body
    target: Body
    match: LimbMatch
    world: Floats | None = None
    """(3, 3) of a motion: its frame where it moves"""

    def facts(self) -> dict[str, str]:
        """In words, by what they are about."""
        matched = [f"{self.source.anatomy.named(a)} → {self.target.anatomy.named(b)}" for a, b in self.match.pairs]
        facts = {
            "source stands": summary(self.source),
            "target stands": summary(self.target),
            "matched": f"{', '.join(matched)} (confidence {self.match.confidence:.2f})",
            "dropped": ", ".join(self.match.dropped),
            "resting": ", ".join(self.match.resting),
        }
        return {name: value for name, value in facts.items() if value}

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists, ready for JSON."""
        return {
            **{name: self._stands(body) for name, body in (("source", self.source), ("target", self.target))},
            "matched": [[self.source.anatomy.named(a), self.target.anatomy.named(b)] for a, b in self.match.pairs],
            "dropped": list(self.match.dropped),
            "resting": list(self.match.resting),
            "confidence": self.match.confidence,
        }

    @staticmethod
    def _stands(body: Body) -> dict[str, Any]:
        return {
            "up": axis_name(body.frame[1]),
            "heading": axis_name(body.frame[2]),
            "frame": body.frame.tolist(),
            "certainty": body.certainty,
            "evidence": list(body.evidence),
            "limbs": [body.anatomy.named(limb) for limb in body.anatomy.limbs],
        }


def without_reference_pose(motion: Motion) -> Motion:
    """The motion with its first frame as the second, where the first is a reference pose that the motion jumps from."""
    if len(motion) < 4:
        return motion
    quaternions = motion.rotations
    cosines = np.abs(np.einsum("fji,fji->fj", quaternions[:-1], quaternions[1:]))
    steps = 2 * np.arccos(np.clip(cosines, 0, 1)).mean(axis=1)
    if steps[0] < LEAST_JUMP or steps[0] < JUMP * np.quantile(steps[1:], 0.9):
        return motion
    locations = motion.translations.copy()
    quaternions = quaternions.copy()
    quaternions[0], locations[0] = quaternions[1], locations[1]
    return replace(motion, rotations=quaternions, translations=locations)

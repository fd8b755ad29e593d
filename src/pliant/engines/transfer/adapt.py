"""Gradients of a source adapted to the target: G = T S B (Section 3.1 of Chen et al. 2010).

B rotates the target's rest pose to the source's reference pose, such as a hanging arm to a raised one; S is the
source's gradient; T rotates the result, such as the whole body to the target's facing direction. Both are rotations,
one of each for a control, the same in all frames. If the axes differ, ``target = A source``, B = Aᵀ and T = A.

`before_from` and `after_from` compute them from two or more corresponding points: the ends of a bone, the corners of a
shoulder. `bone_controls` does so for the bones of two skeletons.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from pliant.core.alignment import aligning_rotation, as_rotation
from pliant.core.topology import Floats


def before_from(target: ArrayLike, source: ArrayLike) -> Floats:
    """B (3, 3), from points of the target at rest, and the same points of the source in its reference pose.

    Two on each side, such as the ends of a bone: (2, 3); or three and more that are not on a line.
    """
    return aligning_rotation(target, source)


def after_from(source: ArrayLike, target: ArrayLike) -> Floats:
    """T (3, 3), from points of the source as it moves, and the same points of the target as they should be instead."""
    return aligning_rotation(source, target)


def adapted(S: Floats, before: Any, after: Any, what: str) -> Floats:
    """(frames, 3, 3) G = T S B."""
    G: Floats = as_rotation(after, f"{what}: after") @ S @ as_rotation(before, f"{what}: before")
    return G

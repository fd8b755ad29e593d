"""What a frame or step of contact has to know of the one before it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pliant.contact.constraints import Anchors, SurfaceSamples
from pliant.contact.response import InverseHessian
from pliant.core.topology import Floats


@dataclass(frozen=True, eq=False)
class ContactState:
    """The end of a frame."""

    x: Floats
    """(n, 3) the points of the body."""
    number: float
    """Of the frame, for the obstacles' keyframes."""
    displacement: Floats | float = 0.0
    """(n, 3) x without the shape that the body had without contact."""
    drift: Floats | float = 0.0
    """How the displacement changes, a frame."""
    pressed: NDArray[np.bool_] | None = None
    """(n,) vertices that were."""
    anchors: tuple[Anchors | None, ...] = ()
    """Of each obstacle."""
    faces: tuple[SurfaceSamples, ...] = ()
    """Points on faces near each obstacle."""
    model: InverseHessian = field(default_factory=InverseHessian)

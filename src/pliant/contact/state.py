"""What a frame or step of contact has to know of the one before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact.constraints import Anchors, SurfaceSamples
from pliant.contact.inverse_hessian import InverseHessian
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
    tangled: NDArray[np.bool_] | None = None
    """(surface,) vertices where it has crossed itself since the first frame."""
    model: InverseHessian = field(default_factory=InverseHessian)
    """What is known of the energy's curvature; bodies with inertia begin every step without."""
    push: Floats | None = None
    """(n, 3) the forces of contacts at vertices."""
    push_drift: Floats | float = 0.0
    """How these change, a frame."""

    @property
    def in_contact(self) -> bool:
        """Whether something pressed."""
        return self.pressed is not None and bool(self.pressed.any())

    def push_at(self, number: float) -> Floats | None:
        """(n, 3) the forces of contacts that a frame probably has."""
        return None if self.push is None else self.push + (number - self.number) * self.push_drift

    def to_arrays(self) -> dict[str, Any]:
        """All but the model, as plain numbers and arrays."""
        out = {name: getattr(self, name) for name in PLAIN_FIELDS if getattr(self, name) is not None}
        anchored = [SurfaceSamples.none() if some is None else some.samples for some in self.anchors]
        positions = [np.zeros((0, 3)), *(some.positions for some in self.anchors if some is not None)]
        out |= _flat("anchors", anchored) | _flat("faces", self.faces)
        return out | {"anchors_positions": np.concatenate(positions)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> ContactState:
        """What `to_arrays` gave."""
        anchored, at = _by_obstacle("anchors", arrays), arrays["anchors_obstacle"]
        anchors = tuple(
            Anchors(samples, arrays["anchors_positions"][at == k]) if len(samples) else None
            for k, samples in enumerate(anchored)
        )
        plain = {name: arrays[name] for name in PLAIN_FIELDS if name in arrays}
        return cls(**plain, anchors=anchors, faces=_by_obstacle("faces", arrays))


PLAIN_FIELDS = ("x", "number", "displacement", "drift", "pressed", "push", "push_drift", "tangled")


def _flat(name: str, samples: Sequence[SurfaceSamples]) -> dict[str, Any]:
    """The points of every obstacle as arrays, one after the other."""
    every = reduce(SurfaceSamples.joined, samples, SurfaceSamples.none())
    obstacle = np.repeat(np.arange(len(samples)), [len(some) for some in samples])
    parts = {"count": len(samples), "obstacle": obstacle, "vertices": every.vertices, "weights": every.weights}
    return {f"{name}_{part}": value for part, value in parts.items()}


def _by_obstacle(name: str, arrays: Mapping[str, Any]) -> tuple[SurfaceSamples, ...]:
    every = SurfaceSamples(arrays[f"{name}_vertices"], arrays[f"{name}_weights"])
    return tuple(every.chosen(arrays[f"{name}_obstacle"] == k) for k in range(int(arrays[f"{name}_count"])))

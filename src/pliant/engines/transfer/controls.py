"""Controls of a caged shape, checked: their rest points, and their targets in every frame.

A control is at a point inside the cage or at a vertex of the target: whole numbers are vertices, rows of three
coordinates are points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.values import Value, as_array, locked
from pliant.engines.transfer.options import Weights

LARGEST_STRETCH = 1e3
"""Largest stretch that a gradient control may have as target."""


@dataclass(frozen=True, eq=False)
class Controls(Value):
    """Rest points of the controls."""

    positions: Floats
    """(k, 3)"""
    gradients: Floats
    """(k, 3)"""
    lengths: Floats
    """(k, 2, 3) the two ends"""

    @classmethod
    def of(cls, points: Floats, positions: Any, gradients: Any, lengths: Any) -> Controls:
        """points: (n, 3) of the target, which vertex numbers refer to."""
        made = cls(
            _points_at_rest(points, positions, "position controls", (3,)),
            _points_at_rest(points, gradients, "gradient controls", (3,)),
            _points_at_rest(points, lengths, "length controls", (2, 3)),
        )
        short = np.flatnonzero(np.linalg.norm(made.lengths[:, 1] - made.lengths[:, 0], axis=1) == 0)
        if len(short):
            raise InputError(
                f"length control {int(short[0])} has both ends at one point; expected two points",
                argument=("lengths", int(short[0])),
            )
        if not len(made.positions) and (len(made.gradients) or len(made.lengths)):
            raise InputError(
                "there is no position control, so nothing fixes the position of the target: gradients and lengths "
                "are the same wherever it moves; add a position control, such as one vertex that stays where it is",
                argument="positions",
            )
        return made

    def replaced(self, points: Floats, **given: Any) -> Controls:
        """The same with some kinds of control given anew; None keeps, an empty list removes."""
        merged = {name: getattr(self, name) if value is None else value for name, value in given.items()}
        return Controls.of(points, **merged)


def _points_at_rest(points: Floats, given: Any, what: str, shape: tuple[int, ...]) -> Floats:
    """(k, *shape) points, from points or vertex numbers (k, *shape[:-1])."""
    array = as_array(given if given is not None else [], what)
    if not array.size:
        return locked(np.zeros((0, *shape)))
    if np.issubdtype(array.dtype, np.integer) and array.shape[1:] == shape[:-1]:
        if array.min() < 0 or array.max() >= len(points):
            bad = int(array[(array < 0) | (array >= len(points))].flat[0])
            raise InputError(f"{what} name vertex {bad}; the target has {len(points)}, numbered from 0")
        return locked(points[array])
    if array.shape[1:] != shape or array.dtype.kind not in "fiu":
        expected = ", ".join(str(s) for s in shape)
        ends = "k" if len(shape) == 1 else "k, 2"
        raise InputError(f"{what} have shape {array.shape}; expected ({ends}) vertex numbers or (k, {expected}) points")
    if not np.isfinite(array).all():
        k = int(np.argmin(np.isfinite(array).reshape(len(array), -1).all(axis=1)))
        raise InputError(f"{what[:-1]} {k} is at {array[k].tolist()}; expected finite coordinates")
    return locked(array.astype(np.float64))


@dataclass(frozen=True, eq=False)
class ControlTargets(Value):
    """Targets of the controls in every frame."""

    positions: Floats
    """(frames, k, 3)"""
    gradients: Floats
    """(frames, k, 3, 3)"""
    lengths: Floats
    """(frames, k)"""

    def __len__(self) -> int:
        return len(self.positions)

    def frame(self, k: int) -> ControlTargets:
        """Those of one frame, as a table of one frame."""
        return replace(
            self,
            positions=self.positions[k : k + 1],
            gradients=self.gradients[k : k + 1],
            lengths=self.lengths[k : k + 1],
        )


def read_targets(controls: Controls, positions: Any, gradients: Any, lengths: Any, *, one: bool) -> ControlTargets:
    """Check targets: (frames, k, ...), or (k, ...) for `one` frame; None is the rest state in every frame."""
    rest = {
        "positions": controls.positions,
        "gradients": np.broadcast_to(np.eye(3), (len(controls.gradients), 3, 3)),
        "lengths": np.linalg.norm(controls.lengths[:, 1] - controls.lengths[:, 0], axis=1),
    }
    given = {"positions": positions, "gradients": gradients, "lengths": lengths}
    tables = {name: _table(name, given[name], rest[name].shape, one) for name in rest if given[name] is not None}
    counts = {name: len(table) for name, table in tables.items()}
    frames = max(counts.values(), default=1)
    for name, count in counts.items():
        if count not in (1, frames):
            other = next(n for n, c in counts.items() if c == frames)
            raise InputError(f"{name} have {count} frames and {other} {frames}; expected as many of each, or one")
    made = {name: np.broadcast_to(tables.get(name, rest[name][None]), (frames, *rest[name].shape)) for name in rest}
    check_gradients(made["gradients"], [f"gradient control {k}" for k in range(len(controls.gradients))])
    if (made["lengths"] <= 0).any():
        raise InputError("a length to be kept is zero or negative; expected positive lengths", argument="lengths")
    return ControlTargets(made["positions"], made["gradients"], made["lengths"])


def check_gradients(gradients: Floats, names: Sequence[str], argument: str = "gradients") -> None:
    """Refuse gradients (frames, k, 3, 3) that invert or flatten the target, or exceed `LARGEST_STRETCH`.

    names, argument: what the k controls are called, and the argument that they are.
    """
    size = np.linalg.svd(gradients, compute_uv=False)
    flat = ~(np.linalg.det(gradients) > 0)
    bad = np.argwhere(flat | (size[..., 0] > LARGEST_STRETCH) | (size[..., 2] < 1 / LARGEST_STRETCH))
    if not len(bad):
        return
    frame, k = (int(number) for number in bad[0])
    if flat[frame, k]:
        what = f"has the determinant {np.linalg.det(gradients[frame, k]):.3g}, which inverts or flattens the target"
    else:
        what = f"stretches from {size[frame, k, 2]:.3g} to {size[frame, k, 0]:.3g} times"
    raise InputError(
        f"{names[k]}: its target in frame {frame} {what}; expected a positive determinant, and stretches of "
        f"at most {LARGEST_STRETCH:g} times",
        argument=(argument, k),
    )


def _table(name: str, values: Any, shape: tuple[int, ...], one: bool) -> Floats:
    """(frames, *shape) finite targets; a single frame may come without its axis."""
    table = as_array(values, name, np.float64)
    if table.ndim == len(shape):
        table = table[None]
    expected = ", ".join(str(s) for s in shape)
    if table.shape[1:] != shape or not len(table) or (one and len(table) != 1):
        text = f"({expected})" if one else f"(frames, {expected})"
        raise InputError(f"{name} have shape {np.shape(values)}; expected {text}, for {shape[0]} controls")
    finite = np.isfinite(table).all(axis=tuple(range(2, table.ndim)))
    if not finite.all():
        frame, control = np.argwhere(~finite)[0]
        raise InputError(
            f"frame {int(frame)} of {name} is NaN or infinite at control {int(control)}", argument=(name, int(control))
        )
    return locked(table.copy())


__all__ = ["ControlTargets", "Controls", "Weights", "check_gradients", "read_targets"]

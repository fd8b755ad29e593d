"""Jumps of a motion: frames between which bones move farther than they do before and after, as no body moves.

Motion capture often has a T-pose for its first frame, clips are cut together, and roots are set back. Flesh cannot
follow such a step, and interpolation would only spread it over a frame. So a jump is a cut: the motion is sampled on
either side of it alone, and the flesh starts anew behind it. Where all bones move as one (a teleport), the flesh goes
along rigidly and keeps its swing; else it starts in the static shape of the new pose, moving with the bones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pliant.core import rotations
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.bones import Bones, Frames

LEAST_JUMP_RATIO = 0.05
"""Length of a jump, over the diagonal."""
LEAST_SPEED = 1.5
"""Of a jump, in diagonals a second: below it, flesh can follow whatever the frames around are like."""
OUTSTANDING = 5.0
"""Length of a jump over that of every step around it."""
AROUND = 3
"""Frames before and after it that are looked at."""
BODY_RADIUS = 0.1
"""Of flesh around a bone, over the diagonal: how far it moves where the bone rotates by 1."""
RIGID_SHARE = 0.02
"""Distance, over the diagonal, by which bones may fail to move as one in a teleport."""

MOST_NAMED = 3
"""Jumps that a warning names."""


@dataclass(frozen=True)
class Jump:
    """One step of a motion that is a jump."""

    frame: int
    """The first frame after it."""
    length: float
    """Of the bone that moves farthest, over the diagonal."""
    bone: str
    teleport: bool
    """Whether all bones move as one."""

    def __str__(self) -> str:
        if self.teleport:
            return f"at frame {self.frame} the whole skeleton moves by {self.length:.2g} diagonals at once"
        return f"at frame {self.frame} the bone {self.bone} moves by {self.length:.2g} diagonals at once"


def jump_notes(jumps: Sequence[Jump]) -> tuple[str, ...]:
    """What to know of a motion's jumps, as text; nothing if there are none."""
    shown = [str(jump) for jump in jumps[:MOST_NAMED]]
    if len(jumps) > MOST_NAMED:
        shown.append(f"{len(jumps) - MOST_NAMED} more")
    return (f"jump: {', '.join(shown)}; flesh starts anew there",) if shown else ()


def jump_steps(positions: Floats, quaternions: Floats, fps: float) -> Ints:
    """The steps that are jumps, of joints at (f, j, 3), over the diagonal, that are rotated by (f, j, 4)."""
    return _outstanding(_lengths(np.concatenate([positions, positions], axis=1), quaternions), fps)


def find_jumps(bones: Bones, frames: Frames, fps: float, diagonal: float) -> list[Jump]:
    """The jumps of a motion whose frames pose the bones so."""
    ends = np.concatenate([frames.heads, frames.tails], axis=1) / diagonal
    lengths = _lengths(ends, frames.quaternions)
    found = []
    for step in _outstanding(lengths, fps):
        bone = int(np.argmax(lengths[step]))
        teleport = rigid_step(frames, step, step + 1)[2] < RIGID_SHARE * diagonal
        found.append(Jump(int(step) + 1, float(lengths[step, bone]), bones.names[bone], teleport))
    return found


def _lengths(ends: Floats, quaternions: Floats) -> Floats:
    """(frames - 1, b) how far each bone moves in a step. ends: (frames, 2b, 3) heads and tails."""
    moved = np.linalg.norm(np.diff(ends, axis=0), axis=2)
    count = moved.shape[1] // 2
    cosine = np.abs(np.einsum("fbi,fbi->fb", quaternions[1:], quaternions[:-1]))
    angle = 2 * np.arccos(np.minimum(cosine, 1.0))
    return np.maximum(np.maximum(moved[:, :count], moved[:, count:]), BODY_RADIUS * angle)


def _outstanding(lengths: Floats, fps: float) -> Ints:
    """The steps in which a bone moves far, and much farther than in those around."""
    around = np.zeros_like(lengths)
    for shift in range(1, min(AROUND, len(lengths) - 1) + 1):
        around[shift:] = np.maximum(around[shift:], lengths[:-shift])
        around[:-shift] = np.maximum(around[:-shift], lengths[shift:])
    far = (lengths > LEAST_JUMP_RATIO) & (lengths * fps > LEAST_SPEED) & (lengths > OUTSTANDING * around)
    return np.flatnonzero(far.any(axis=1)) if len(lengths) > 1 else np.zeros(0, dtype=np.int64)


def rigid_step(frames: Frames, before: int, after: int) -> tuple[Floats, Floats, float]:
    """The rotation (3, 3) and translation (3,) of all bones from one frame to another; by how far they fail to be one.

    It is that of the first bone, whose rotation is known also where all bones lie in a line.
    """
    quaternions = rotations.multiply(frames.quaternions[after], rotations.inverse(frames.quaternions[before]))
    R = rotations.matrix(quaternions[0])
    heads, tails = (np.stack([ends[before], ends[after]]) for ends in (frames.heads, frames.tails))
    shift = heads[1, 0] - R @ heads[0, 0]
    off = max(float(np.abs(ends[0] @ R.T + shift - ends[1]).max()) for ends in (heads, tails))
    return R, shift, off

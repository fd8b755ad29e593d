"""Jumps of a motion: frames between which bones move farther than they do before and after, as no body moves.

Motion capture often has a T-pose for its first frame, clips are cut together, and roots are set back. Flesh cannot
follow such a step, and interpolation would only spread it over a frame. So a jump is a cut: the motion is sampled on
either side of it alone, and the flesh starts anew behind it. Where all bones move as one (a teleport), the flesh goes
along rigidly and keeps its swing; else it starts in the static shape of the new pose, moving with the bones.

Short of that, bones may move so unevenly that a step is too long for it: steps are divided until bones are nowhere
farther than `LARGEST_UNEVENNESS` from where they would get without acceleration (`unevenness`, `substeps`). Of steps
shorter than the default, each is divided as that would be, so that errors still fall with the square of the step.

A *glitch* is a jump and a jump back, a few frames later. The frames in between are errors, not poses: joints are eased
over them, from the frame before to the frame after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.bones import Bones, Frames
from pliant.engines.simulate.dynamics import GAMMA
from pliant.engines.simulate.options import SimulateOptions

LEAST_JUMP_RATIO = 0.05
"""Length of a jump, over the diagonal."""
LEAST_SPEED = 1.5
"""Of a jump, in diagonals a second: below it, flesh can follow whatever the frames around are like."""
OUTSTANDING = 5.0
"""Length of a jump over that of every step around it."""
AROUND = 3
"""Frames before and after it that are looked at; a glitch is no longer."""
RETURN_SHARE = 0.3
"""Distance between the frames before and after a glitch, over the length of its jumps."""
BODY_RADIUS = 0.1
"""Of flesh around a bone, over the diagonal: how far it moves where the bone rotates by 1."""
RIGID_SHARE = 0.02
"""Distance, over the diagonal, by which bones may fail to move as one in a teleport."""
LARGEST_UNEVENNESS, MOST_SUBSTEPS = 0.01, 16
"""Distance by which bones may leave an even motion within a step, over the diagonal; into how many a step is divided at
most."""
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


@dataclass(frozen=True)
class Glitch:
    """Frames of a motion that are errors."""

    frame: int
    """The first of them."""
    count: int
    length: float
    """Of the jumps there and back, over the diagonal."""
    bone: str

    def __str__(self) -> str:
        return f"at frame {self.frame} the bone {self.bone} moves by {self.length:.2g} diagonals and back"


def glitch_notes(glitches: Sequence[Glitch]) -> tuple[str, ...]:
    """What to know of a motion's glitches, as text; nothing if there are none."""
    return (f"glitch: {_listed(glitches)}; joints are eased over it",) if glitches else ()


def jump_notes(jumps: Sequence[Jump]) -> tuple[str, ...]:
    """What to know of a motion's jumps, as text; nothing if there are none."""
    return (f"jump: {_listed(jumps)}; flesh starts anew there",) if jumps else ()


def _listed(found: Sequence[Jump | Glitch]) -> str:
    more = [f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return ", ".join([*map(str, found[:MOST_NAMED]), *more])


def jump_steps(positions: Floats, quaternions: Floats, fps: float) -> Ints:
    """The steps that are jumps, those of glitches among them, of joints at (f, j, 3), over the diagonal, that are
    rotated by (f, j, 4)."""
    ends = np.concatenate([positions, positions], axis=1)
    returns = [[step, step + count] for step, count, _ in _returns(ends, quaternions, fps)]
    return np.unique(np.concatenate([_outstanding(_lengths(ends, quaternions), fps), *returns])).astype(np.int64)


def bridged(bones: Bones, motion: Motion, diagonal: float) -> tuple[Motion, list[Glitch]]:
    """The motion with its joints eased over its glitches, and those."""
    frames = bones.posed(motion.rotations, motion.translations)
    ends = np.concatenate([frames.heads, frames.tails], axis=1) / diagonal
    eased, moved, found = motion.rotations.copy(), motion.translations.copy(), []
    for step, count, bone in _returns(ends, frames.quaternions, motion.fps):
        length = float(_lengths(ends[step : step + 2], frames.quaternions[step : step + 2])[0, bone])
        found.append(Glitch(step + 1, count, length, bones.names[bone]))
        share = np.arange(1, count + 1)[:, None] / (count + 1)
        first, last = (np.broadcast_to(eased[k], (count, *eased[k].shape)) for k in (step, step + count + 1))
        eased[step + 1 : step + count + 1] = rotations.slerp(first, last, share)
        ahead = moved[step + count + 1] - moved[step]
        moved[step + 1 : step + count + 1] = moved[step] + share[..., None] * ahead
    return (replace(motion, rotations=eased, translations=moved) if found else motion), found


def _returns(ends: Floats, quaternions: Floats, fps: float) -> list[tuple[int, int, int]]:
    """Glitches: the step that leads there, how many frames are in between, and the bone that moves farthest."""
    lengths = _lengths(ends, quaternions)
    before, after = (np.zeros_like(lengths) for _ in range(2))
    for shift in range(1, min(AROUND, len(lengths) - 1) + 1):
        before[shift:] = np.maximum(before[shift:], lengths[:-shift])
        after[:-shift] = np.maximum(after[:-shift], lengths[shift:])
    found: list[tuple[int, int, int]] = []
    for count in range(1, min(AROUND, len(lengths) - 1) + 1):
        least = np.minimum(lengths[:-count], lengths[count:])
        around = np.maximum(before[:-count], after[count:])
        across = _lengths(ends, quaternions, count + 1)
        returns = _far(least, fps) & (least > OUTSTANDING * around) & (across < RETURN_SHARE * least)
        for step in np.flatnonzero(returns.any(axis=1)).tolist():
            if not any(start - count <= step <= start + more for start, more, _ in found):
                found.append((step, count, int(np.argmax(least[step] * returns[step]))))
    return sorted(found)


def _far(lengths: Floats, fps: float) -> NDArray[np.bool_]:
    return (lengths > LEAST_JUMP_RATIO) & (lengths * fps > LEAST_SPEED)


def unevenness(frames: Frames, diagonal: float) -> Floats:
    """(steps,) how far bones leave an even motion within each step, over `LARGEST_UNEVENNESS`.

    frames: the bones at the beginning and at the ends of both stages of every step.
    """
    first, middle, last = slice(0, -2, 2), slice(1, None, 2), slice(2, None, 2)
    ends, q = np.concatenate([frames.heads, frames.tails], axis=1) / diagonal, frames.quaternions
    moved = [ends[part] - ends[first] for part in (middle, last)]
    before = rotations.inverse(q[first])
    rotated = [rotations.log(rotations.shortest(rotations.multiply(before, q[part]))) for part in (middle, last)]
    off = [np.linalg.norm(y[1] - y[0] / GAMMA, axis=2).max(axis=1) / (1 - GAMMA) for y in (moved, rotated)]
    return np.maximum(off[0], BODY_RADIUS * off[1]) / LARGEST_UNEVENNESS


def substeps(uneven: Floats, seconds: float) -> Ints:
    """(steps,) into how many steps each, of a length in seconds, is divided: powers of 2.

    Unevenness is of second order in time, so that steps shorter than the default are as many as that is divided into.
    """
    in_default = uneven * max(1.0, SimulateOptions().dt / seconds) ** 2
    wanted = 2 ** np.ceil(np.log2(np.maximum(in_default, 1)) / 2)
    return np.minimum(wanted, MOST_SUBSTEPS).astype(np.int64)


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


def _lengths(ends: Floats, quaternions: Floats, stride: int = 1) -> Floats:
    """(frames - stride, b) how far each bone moves in some steps. ends: (frames, 2b, 3) heads and tails."""
    moved = np.linalg.norm(ends[stride:] - ends[:-stride], axis=2)
    count = moved.shape[1] // 2
    cosine = np.abs(np.einsum("fbi,fbi->fb", quaternions[stride:], quaternions[:-stride]))
    angle = 2 * np.arccos(np.minimum(cosine, 1.0))
    return np.maximum(np.maximum(moved[:, :count], moved[:, count:]), BODY_RADIUS * angle)


def _outstanding(lengths: Floats, fps: float) -> Ints:
    """The steps in which a bone moves far, and much farther than in those around."""
    around = np.zeros_like(lengths)
    for shift in range(1, min(AROUND, len(lengths) - 1) + 1):
        around[shift:] = np.maximum(around[shift:], lengths[:-shift])
        around[:-shift] = np.maximum(around[:-shift], lengths[shift:])
    far = _far(lengths, fps) & (lengths > OUTSTANDING * around)
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

"""BVH motion capture: a hierarchy of joints with named channels, then one row of channel values a frame.

Rotation channels apply in the order they are listed: ``Zrotation Xrotation Yrotation`` is ``R = Rz Rx Ry``, in degrees.
Position channels replace the joint's offset (as Blender and MotionBuilder have it), on any joint; in files where those
below the root are all but zero, they are added (as MakeHuman has it), or all joints would fall into one. Frames at rest
are aligned with the world; a skeleton whose frames are not (from glTF, say) is realigned before it is written.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pliant.core import rotations
from pliant.core.errors import PliantWarning
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.io.naming import one_line, written_names
from pliant.io.scan import scan_numbers
from pliant.io.source import Source

JOINTS_IN_ONE, FEWEST_IN_ONE = 0.05, 3
"""Length of given positions, over their distance from the offsets, up to which they are added to those; and the joints
below the root that have any, at least."""
_CHANNELS = tuple(f"{axis}{what}" for what in ("position", "rotation") for axis in "XYZ")


@dataclass
class _Hierarchy:
    """Joints in the file's order, which has parents first."""

    names: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    offsets: list[list[float]] = field(default_factory=list)
    channels: list[tuple[str, ...]] = field(default_factory=list)
    ends: dict[int, Floats] = field(default_factory=dict)

    def skeleton(self, source: Source) -> Skeleton:
        seen: dict[str, int] = {}
        names = []
        for name in self.names:
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
        repeated = [name for name, count in seen.items() if count > 1]
        if repeated:
            warnings.warn(f"{source.label}: joints called {repeated[0]} were numbered", PliantWarning, stacklevel=2)
        return Skeleton(tuple(names), np.array(self.parents), np.array(self.offsets), ends=self.ends)


def _hierarchy(source: Source, text: str) -> _Hierarchy:
    """The joints above the MOTION line."""
    joints = _Hierarchy()
    chain: list[int] = []  # the joints whose braces are open; -1 for an End Site
    awaiting: int | None = None  # the joint whose brace comes next
    for number, line in enumerate(text.replace("{", "\n{\n").replace("}", "\n}\n").split("\n"), 1):
        tokens = line.split()
        if not tokens:
            continue
        keyword = tokens[0].upper()
        location = f'at "{line.strip()[:40]}"'
        if keyword in ("ROOT", "JOINT"):
            if (keyword == "ROOT") != (not chain) or (chain and chain[-1] < 0):
                raise source.error(f"{keyword} is not expected here", location=location)
            joints.names.append(" ".join(tokens[1:]) or f"joint{len(joints.names)}")
            joints.parents.append(chain[-1] if chain else -1)
            joints.offsets.append([0.0, 0.0, 0.0])
            joints.channels.append(())
            awaiting = len(joints.names) - 1
        elif keyword == "END":
            awaiting = -1
        elif keyword == "{":
            if awaiting is None:
                raise source.error('a "{" does not belong to a joint', location=location)
            chain.append(awaiting)
            awaiting = None
        elif keyword == "}":
            if not chain:
                raise source.error('a "}" has no "{"', location=location)
            chain.pop()
        elif keyword == "OFFSET" and chain:
            offset = _offset(source, tokens[1:], location)
            if chain[-1] >= 0:
                joints.offsets[chain[-1]] = offset
            elif len(chain) > 1:
                joints.ends[chain[-2]] = np.array(offset)
        elif keyword == "CHANNELS" and chain and chain[-1] >= 0:
            joints.channels[chain[-1]] = _channels(source, tokens[1:], location)
        elif keyword != "HIERARCHY" or number > 3:
            raise source.error("expected a joint, OFFSET, CHANNELS or braces", location=location)
    if chain or not joints.names:
        raise source.error("its hierarchy is not closed: the file is cut off" if chain else "has no ROOT joint")
    return joints


def _offset(source: Source, tokens: list[str], location: str) -> list[float]:
    try:
        offset = [float(word) for word in tokens]
    except ValueError:
        offset = []
    if len(offset) != 3 or not np.isfinite(offset).all():
        raise source.error("expected OFFSET x y z", location=location)
    return offset


def _channels(source: Source, tokens: list[str], location: str) -> tuple[str, ...]:
    names = tuple(word[:1].upper() + word[1:].lower() for word in tokens[1:])
    unknown = [name for name in names if name not in _CHANNELS]
    if unknown or tokens[:1] != [str(len(names))] or len(set(names)) != len(names):
        raise source.error(f"expected a count and that many of {', '.join(_CHANNELS)}", location=location)
    return names


def _split(source: Source, data: bytes) -> tuple[str, bytes, int]:
    """The hierarchy's text, the whole file, and the byte where MOTION begins (-1 if it is missing)."""
    if not re.match(rb"\s*HIERARCHY\b", data, re.IGNORECASE):
        raise source.error(f'starts with {data[:12]!r}; a BVH file starts with "HIERARCHY"')
    motion = re.search(rb"(?m)^[^\S\n]*MOTION\b", data)
    return (
        data[: motion.start() if motion else len(data)].decode("utf-8", "replace"),
        data,
        motion.end() if motion else -1,
    )


def read_skeleton(source: Source) -> Skeleton:
    """The hierarchy at rest."""
    text, _, _ = _split(source, source.read())
    return _hierarchy(source, text).skeleton(source)


def read_motion(source: Source, clip: str | int | None = None) -> Motion:
    """The hierarchy and all frames. A BVH holds one clip, so `clip` can only be 0 or the file's name."""
    if clip not in (None, 0, source.stem):
        raise source.error(f'holds one motion, "{source.stem}"; there is no clip {clip!r}', argument="clip")
    text, data, at = _split(source, source.read())
    joints = _hierarchy(source, text)
    if at < 0:
        raise source.error("has no MOTION: the file is cut off, or holds a skeleton only (read_skeleton reads it)")
    head = re.compile(rb"\s*Frames:\s*(\d{1,18})\s+Frame\s+Time:\s*(\S+)", re.IGNORECASE).match(data, at)
    if head is None:
        raise source.error("MOTION is not followed by Frames: and Frame Time:")
    frames, seconds = int(head.group(1)), _seconds(source, head.group(2))
    table = scan_numbers(source, data, head.end())
    width = sum(map(len, joints.channels))
    if frames == 0 or width == 0:
        raise source.error(f"holds {frames} frames of {width} channels; expected some of both")
    rows = table.block(source, 0, frames, width, "frames")
    if rows.shape[1] != width:
        raise source.error(
            f"a frame has {rows.shape[1]} values; its channels are {width}", location=f"line {table.line[0]}"
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        k = int(np.argmin(finite))
        raise source.error(f"frame {k} has a value that is not a number", location=f"line {table.line[k]}")
    skeleton = joints.skeleton(source)
    quaternions, positions = _frames(skeleton, joints.channels, rows)
    return Motion(skeleton, quaternions, positions, 1 / seconds, tuple(joints.channels), source.stem)


def _seconds(source: Source, word: bytes) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not (np.isfinite(seconds) and seconds > 0):
        raise source.error(f"Frame Time is {word.decode('latin-1')[:20]}; expected a positive number of seconds")
    return seconds


def _frames(skeleton: Skeleton, channels: list[tuple[str, ...]], rows: Floats) -> tuple[Floats, Floats]:
    """Channel values (f, c) to local rotations (f, j, 4) and translations (f, j, 3)."""
    quaternions = np.tile(rotations.IDENTITY, (len(rows), len(skeleton), 1))
    positions = np.repeat(skeleton.offsets[None], len(rows), axis=0)
    first = 0
    for j, names in enumerate(channels):
        values = rows[:, first : first + len(names)]
        first += len(names)
        turning = [k for k, name in enumerate(names) if name.endswith("rotation")]
        if turning:
            order = "".join(names[k][0] for k in turning)
            quaternions[:, j] = rotations.from_euler(np.radians(values[:, turning]), order)
        for k, name in enumerate(names):
            if name.endswith("position"):
                positions[:, j, "XYZ".index(name[0])] = values[:, k]
    moved = [sum(name.endswith("position") for name in names) == 3 for names in channels]
    below = np.array(moved) & (skeleton.parents >= 0)
    given, offsets = positions[:, below], skeleton.offsets[below]
    lengths = [np.linalg.norm(values, axis=2).sum() for values in (given, given - offsets)]
    if below.sum() >= FEWEST_IN_ONE and lengths[0] < JOINTS_IN_ONE * lengths[1]:
        warnings.warn("joints have positions near zero, which are added to their offsets", PliantWarning, stacklevel=2)
        positions[:, below] += offsets
    return quaternions, positions


def write_motion(path: Path, motion: Motion) -> None:
    """In the channels of the file the motion came from, or positions on the root and ZXY rotations."""
    if not np.array_equal(motion.skeleton.rest_rotations, np.tile(rotations.IDENTITY, (len(motion.skeleton), 1))):
        motion = upright(motion)
    channels = [_written_channels(motion, j) for j in range(len(motion.skeleton))]
    hierarchy, order = _hierarchy_lines(motion.skeleton, channels)
    rows = np.hstack([_values(motion, j, channels[j]) for j in order])
    lines = ["HIERARCHY", *hierarchy, "MOTION", f"Frames: {len(motion)}", f"Frame Time: {1 / motion.fps!r}"]
    lines += [" ".join(f"{value:.9g}" for value in row) for row in rows.tolist()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_skeleton(path: Path, skeleton: Skeleton) -> None:
    """As a motion of one frame, at rest."""
    write_motion(path, Motion.of(skeleton))


def upright(motion: Motion) -> Motion:
    """The same motion on a skeleton whose frames at rest are aligned with the world."""
    rest_positions, rest_rotations = motion.skeleton.rest_pose().world()
    _, quaternions = motion.world()
    quaternions = rotations.multiply(quaternions, rotations.inverse(rest_rotations))
    local, positions = quaternions.copy(), motion.translations.copy()
    for j, parent in enumerate(motion.skeleton.parents):
        if parent >= 0:
            local[:, j] = rotations.multiply(rotations.inverse(quaternions[:, parent]), quaternions[:, j])
            positions[:, j] = rotations.rotate(rest_rotations[parent], motion.translations[:, j])
    ends = {j: rotations.rotate(rest_rotations[j], end) for j, end in motion.skeleton.ends.items()}
    straight = Skeleton.from_positions(rest_positions, motion.skeleton.parents, motion.skeleton.names)
    return replace(
        motion, skeleton=replace(straight, ends=ends), rotations=local, translations=positions, channels=None
    )


def _written_channels(motion: Motion, joint: int) -> tuple[str, ...]:
    """The joint's own channels if they can express its frames, else all that are needed."""
    moved = np.abs(motion.translations[:, joint] - motion.skeleton.offsets[joint]).max(axis=0)
    moving = moved > 1e-9 * (1 + np.abs(motion.skeleton.offsets).max())
    if motion.channels is not None:
        own = motion.channels[joint]
        positions = {name[0] for name in own if name.endswith("position")}
        turning = [name for name in own if name.endswith("rotation")]
        static = np.abs(motion.rotations[:, joint, 1:]).max() < 1e-12
        if (len(turning) == 3 or (static and not turning)) and all(
            axis in positions for axis, moves in zip("XYZ", moving, strict=True) if moves
        ):
            return own
    placed = motion.skeleton.parents[joint] < 0 or moving.any()
    return (*(_CHANNELS[:3] if placed else ()), "Zrotation", "Xrotation", "Yrotation")


def _values(motion: Motion, joint: int, channels: tuple[str, ...]) -> Floats:
    """(frames, channels) of one joint."""
    order = "".join(name[0] for name in channels if name.endswith("rotation"))
    angles = np.degrees(rotations.to_euler(motion.rotations[:, joint], order)) if order else None
    columns = []
    for name in channels:
        if name.endswith("position"):
            columns.append(motion.translations[:, joint, "XYZ".index(name[0])])
        else:
            assert angles is not None
            columns.append(angles[:, order.index(name[0])])
    return np.stack(columns, axis=1) if columns else np.zeros((len(motion), 0))


def _joint_name(name: str) -> str:
    """As BVH can hold it: braces end a line, and runs of blanks are read as one."""
    return " ".join(one_line(name).translate(str.maketrans("{}", "()")).split())


def _hierarchy_lines(skeleton: Skeleton, channels: list[tuple[str, ...]]) -> tuple[list[str], list[int]]:
    """The lines of all joints, and the joints in the order their braces open."""
    names = written_names(skeleton.names, _joint_name)
    children: list[list[int]] = [[] for _ in range(len(skeleton) + 1)]
    for joint, parent in enumerate(skeleton.parents.tolist()):
        children[parent].append(joint)  # roots: behind the last joint, which is -1
    lines: list[str] = []
    order: list[int] = []
    waiting = [(joint, 0) for joint in reversed(children[-1])]
    while waiting:
        joint, depth = waiting.pop()
        tab = "\t" * depth
        if joint < 0:  # all below joint -1 - joint is written
            lines += [*_end_lines(skeleton, -1 - joint, tab, leaf=not children[-1 - joint]), f"{tab}}}"]
            continue
        order.append(joint)
        x, y, z = skeleton.offsets[joint].tolist()
        lines += [f"{tab}{'JOINT' if depth else 'ROOT'} {names[skeleton.names[joint]]}", f"{tab}{{"]
        lines += [f"{tab}\tOFFSET {x!r} {y!r} {z!r}"]
        lines += [f"{tab}\tCHANNELS {' '.join([str(len(channels[joint])), *channels[joint]])}"]
        waiting += [(-1 - joint, depth), *((child, depth + 1) for child in reversed(children[joint]))]
    return lines, order


def _end_lines(skeleton: Skeleton, joint: int, tab: str, *, leaf: bool) -> list[str]:
    """The joint's End Site; a leaf without a known end has one at its own position."""
    if joint not in skeleton.ends and not leaf:
        return []
    x, y, z = np.asarray(skeleton.ends.get(joint, np.zeros(3))).tolist()
    return [f"{tab}\tEnd Site", f"{tab}\t{{", f"{tab}\t\tOFFSET {x!r} {y!r} {z!r}", f"{tab}\t}}"]

"""Motions by handles, ``[[motion.handles]]`` of a scene: joints are pulled, and the bones follow as elastic rods.

Each handle gives a position, a rotation or a force that one joint has at one time. Of each joint these are interpolated
from rest at time 0 through its handles: positions and forces linearly, rotations the short way; after the last they
stay. At every frame the skeleton is in the rod's equilibrium (`Rod.solve`), found from that of the frame before.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.posing import frame_times
from pliant.app.scene.rotations import ROTATION_KIND, rotation_vector
from pliant.app.scene.schema import Key, ListOf, Named, Record, Text, option_keys
from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS
from pliant.core.errors import PliantWarning
from pliant.core.options import NOT_NEGATIVE, POINT, Either, closest
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.simulate.options import RodOptions

if TYPE_CHECKING:
    from pliant.engines.simulate.rod import RodPose

HANDLES_KEY: KeyPath = ("motion", "handles")
ROD_KEY = ("motion", "rod")
LONGEST_STRETCH = 0.1
"""Change of a bone's length, over that at rest, from which on there is a warning."""
QUANTITIES = ("position", "rotation", "force")
BY_JOINT = ("joints", "radius")
"""Options of rods that joints may differ in."""

HANDLE_RECORD = Record(
    {
        "joint": Key(Text("the name of a joint"), "what is pulled", required=True),
        "time": Key(
            NOT_NEGATIVE,
            "seconds from the start (default: 1); until its first one, a joint comes from rest",
            default=1.0,
        ),
        "position": Key(
            POINT, "where the joint is then, in the shape's own units; with none of these it stays where it is at rest"
        ),
        "rotation": Key(
            ROTATION_KIND, "how it is rotated then against its rest pose, about the axes of the shape's space"
        ),
        "force": Key(POINT, "a force on it then, in newtons"),
    }
)


def _by_joint(key: Key) -> Key:
    table = Named(key.kind, f"a table from joints to {key.kind.expected}")
    return Key(Either((key.kind, table)), f"{key.meaning}; for all, or by joint")


ROD_KEYS = option_keys(RodOptions, ".".join(ROD_KEY))
ROD_RECORD = Record(ROD_KEYS | {name: _by_joint(ROD_KEYS[name]) for name in BY_JOINT})
HANDLE_KEYS = {
    "handles": Key(
        ListOf(HANDLE_RECORD, "one or more tables [[motion.handles]]", least=1),
        "joints that are pulled, while the bones bend as elastic rods; sampled at fps (30); with static = true, "
        "handles of one time are one frame",
    ),
    "rod": Key(ROD_RECORD, "with handles: how the bones bend"),
}
"""Keys of the table [motion]."""


def read_handles(
    text: TomlText, motion: dict[str, Any], skeleton: Skeleton, *, unit: float, one_frame: bool = False
) -> Motion:
    """The motion that the handles of a table [motion] give.

    unit: metres that a unit of the shape is long. one_frame: if all handles are at one time, that is all.
    """
    tracks = _tracks(text, motion["handles"], skeleton)
    last = max(handle["time"] for handle in motion["handles"])
    with text.about(HANDLES_KEY, {("fps",): ("motion", "fps")}):
        fps = motion["fps"] or DEFAULT_FPS
        times = frame_times(last, fps)
    if one_frame and len({handle["time"] for handle in motion["handles"]}) == 1:
        times = times[-1:]
    given = {name: value for name, value in (motion["rod"] or {}).items() if value is not None}
    root = given.pop("root", RodOptions.root)
    given["young"] = given.get("young", RodOptions.young) * unit
    with text.about(HANDLES_KEY, {(name,): (*ROD_KEY, name) for name in ROD_RECORD.keys}):
        from pliant.engines.simulate.rod import Rod  # which needs SciPy, as the command line does not

        rod = Rod(skeleton, **given)
        poses: list[RodPose] = []
        for time in times:
            loads = {name: {joint: _at(track, time) for joint, track in tracks[name].items()} for name in QUANTITIES}
            found = rod.solve(
                handles=loads["position"],
                orientations=loads["rotation"],
                forces={joint: force / unit for joint, force in loads["force"].items()},
                root=root,
                start=poses[-1] if poses else None,
            )
            if not found.converged:
                share = f"{100 * found.reached:.0f} % of the way"
                raise text.error(
                    f"the bones find no equilibrium at {time:.3g} s, after {share}; expected handles nearer to rest, "
                    "or softer joints",
                    HANDLES_KEY,
                )
            poses.append(found)
    _warn_of_stretch(skeleton, poses)
    rotated, positions = (
        np.stack([getattr(found.pose, name) for found in poses]) for name in ("rotations", "translations")
    )
    return Motion(skeleton, locked(rotated), locked(positions), fps, name="handles")


HandleTrack = dict[float, Floats]
"""Values by their time in seconds, from 0 on."""


def _tracks(text: TomlText, handles: list[dict[str, Any]], skeleton: Skeleton) -> dict[str, dict[str, HandleTrack]]:
    """By quantity and joint, what is given over time. Rotations are those of the joint's frame in the world."""
    positions, frames = skeleton.rest_world
    tracks: dict[str, dict[str, HandleTrack]] = {name: {} for name in QUANTITIES}
    known = set()
    for k, handle in enumerate(handles):
        path, joint, time = (*HANDLES_KEY, k), handle["joint"], handle["time"]
        if joint not in skeleton.names:
            hint = closest(joint, list(skeleton.names))
            raise text.error(f'no joint is called "{joint}"; {hint}', (*path, "joint"))
        j = skeleton.index(joint)
        rest = {"position": positions[j], "rotation": frames[j], "force": np.zeros(3)}
        given = {name: handle[name] for name in QUANTITIES if handle[name] is not None} or {"position": positions[j]}
        for name, value in given.items():
            if (name, joint, time) in known:
                problem = f'is {time:g}, as that of another {name} of "{joint}"; expected another time'
                raise text.error(problem, (*path, "time"))
            known.add((name, joint, time))
            if name == "rotation":
                value = rotations.multiply(rotations.exp(rotation_vector(text, value, (*path, name))), frames[j])
            tracks[name].setdefault(joint, {0.0: rest[name]})[time] = np.asarray(value)
    return {name: {joint: dict(sorted(track.items())) for joint, track in tracks[name].items()} for name in QUANTITIES}


def _at(track: HandleTrack, time: float) -> Floats:
    """The value at a time."""
    times, values = np.array(list(track)), list(track.values())
    high = min(int(np.searchsorted(times, time, side="right")), len(times) - 1)
    low = max(high - 1, 0)
    if time >= times[-1] or low == high:
        return values[-1]
    t = (time - times[low]) / (times[high] - times[low])
    if len(values[low]) == 4:
        return rotations.slerp(values[low], values[high], t)
    return (1 - t) * values[low] + t * values[high]


def _warn_of_stretch(skeleton: Skeleton, poses: list[RodPose]) -> None:
    """Bones bend, but handles out of reach stretch them too."""
    ends = np.stack([found.pose.world()[0] for found in poses])[:, skeleton.bones]
    rest = np.linalg.norm(np.diff(skeleton.rest_world[0][skeleton.bones], axis=1)[:, 0], axis=1)
    lengths = np.linalg.norm(np.diff(ends, axis=2)[:, :, 0], axis=2)
    change = np.abs(lengths - rest).max(axis=0, initial=0.0) / np.where(rest > 0, rest, np.inf)
    if change.max(initial=0.0) > LONGEST_STRETCH:
        worst = int(np.argmax(change))
        start, stop = (skeleton.names[j] for j in skeleton.bones[worst])
        warnings.warn(
            f'handles change the length of the bone from "{start}" to "{stop}" by {100 * change[worst]:.0f} %; '
            "pull it less far to keep it",
            PliantWarning,
            stacklevel=2,
        )

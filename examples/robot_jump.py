"""A robot of 37 loose parts jumps (Figure 10 of Chen et al. 2010).

Twelve bones of the motion drive gradient controls; chest and stomach share one. One position control, on the left foot,
follows the way of the motion's left toe, so the robot lands where the jumper does. Lengths keep the hands stiff.

    python examples/robot_jump.py FOLDER [JUMP.bvh]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pliant
from pliant import Follow, Weights, gallery, rotations

BONES = {
    "belt": ("hips", "Hips"),
    "body": ("hips", "Hips"),
    "head": ("head", "Head"),
    **{
        f"{side} {part}": (f"{ours}.{side[0].upper()}", f"{side.title()}{theirs}")
        for side in ("left", "right")
        for part, ours, theirs in (
            ("upper arm", "upperarm", "Arm"),
            ("forearm", "forearm", "ForeArm"),
            ("hand", "forearm", "ForeArm"),
            ("thigh", "thigh", "UpLeg"),
            ("shin", "shin", "Leg"),
            ("foot", "foot", "Foot"),
        )
    },
}
"""Parts of the robot, and the joints of the gallery's creature and of the CMU skeletons that they follow."""
NEXT = {"upper arm": "forearm", "forearm": "hand", "hand": "hand", "thigh": "shin", "shin": "foot"}


def jump(frames: int = 30) -> pliant.Motion:
    """Crouch, leap forwards and land; the gallery's creature does it."""
    skeleton = gallery.creature_skeleton()
    turns = np.tile(skeleton.rest_rotations, (frames, 1, 1))
    places = np.tile(skeleton.offsets, (frames, 1, 1))
    time = np.linspace(0, 1, frames)
    crouch = np.exp(-(((time - 0.22) / 0.10) ** 2)) + 0.8 * np.exp(-(((time - 0.82) / 0.09) ** 2))
    flight = np.clip((time - 0.35) / 0.35, 0, 1)
    places[:, 0, 1] += 0.55 * 4 * flight * (1 - flight) - 0.16 * crouch
    places[:, 0, 2] += 0.9 * flight
    swing = np.sin(np.pi * np.clip((time - 0.2) / 0.55, 0, 1))
    angles = {"thigh": -62 * crouch, "shin": 105 * crouch, "foot": -43 * crouch, "forearm": 0 * time}
    for joint, x in (angles | {"upperarm": 40 * crouch - 95 * swing}).items():
        for side in "LR":
            turns[:, skeleton.index(f"{joint}.{side}")] = rotations.from_axis_angle([1, 0, 0], np.radians(x))
    turns[:, skeleton.index("hips")] = rotations.from_axis_angle([1, 0, 0], np.radians(18 * crouch))
    turns[:, skeleton.index("head")] = rotations.from_axis_angle([1, 0, 0], np.radians(-14 * crouch))
    for joint in ("thigh.L", "thigh.R"):  # feet stay flat although the hips tilt
        tilt = rotations.from_axis_angle([1, 0, 0], np.radians(-18 * crouch))
        turns[:, skeleton.index(joint)] = rotations.multiply(tilt, turns[:, skeleton.index(joint)])
    return pliant.Motion(skeleton, turns, places, fps=24)


def centres(robot: pliant.Mesh) -> dict[str, np.ndarray]:
    """Middles of the robot's parts, by name."""
    objects = robot.labels["object"]
    of_corner = objects.index[robot.polygons.of_corner]
    return {
        name: robot.points[np.unique(robot.polygons.corners[of_corner == k])].mean(axis=0)
        for k, name in enumerate(objects.names)
    }


def controls(robot: pliant.Mesh, motion: pliant.Motion, which: int) -> list[pliant.Control]:
    """Gradient controls; limbs of the source that point elsewhere at rest are turned by B."""
    at = centres(robot)
    starts = pliant.joint_tracks(motion)
    ends = pliant.joint_tracks(motion, along=1.0)
    made = []
    for part, joints in BONES.items():
        side, _, limb = part.partition(" ")
        before = None
        if limb in NEXT:
            end = part if limb != "hand" else f"{side} hand"
            bone = (at[f"{side} elbow" if "arm" in limb or limb == "hand" else f"{side} knee"], at[end])
            bone = bone[::-1] if limb in ("upper arm", "thigh") else bone
            before = pliant.before_from(bone, (starts[joints[which]].rest, ends[joints[which]].rest))
        made.append(pliant.Control(at[part], starts[joints[which]], before))
    return made


def main(folder: Path, bvh: str = "") -> pliant.Transfer:
    """Transfer, and write the clip and a picture of it."""
    robot = gallery.robot(6000)
    motion = pliant.read_motion(bvh).resampled(24) if bvh else jump()
    at, toe = centres(robot), "LeftToeBase" if bvh else "toes.L"
    moved = pliant.transfer(
        motion,
        robot,
        pliant.build_cage(robot, faces=400),
        controls(robot, motion, 1 if bvh else 0),
        follow=[Follow(at["left foot"], toe, origin="first")],
        lengths=[
            (at[f"{side} hand"], at[f"{side} {finger} finger"])
            for side in ("left", "right")
            for finger in ("outer", "inner")
        ],
        frames=np.arange(1, len(motion)) if bvh else None,  # a CMU file starts with a T-pose that was put there
        weights=Weights(gradient=60.0, length=50.0),
    )
    pliant.write(folder / "robot_jump.glb", moved.clip)
    sheet = pliant.render.contact_sheet({"robot": moved.clip}, frames=8, view=(50, 8))
    sheet.save(folder / "robot_jump.png")
    return moved


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."), *sys.argv[2:3])

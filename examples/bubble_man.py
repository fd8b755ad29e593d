"""Two motions drive one figure of bubbles: the legs walk, the arms wave (Figure 7 of Chen et al. 2010).

The legs follow one motion and the arms another; chest and head are kept upright. Bones of the target and of the sources
point in different directions at rest, which B of G = T S B makes up for. Lengths of arms and legs are kept.

    python examples/bubble_man.py FOLDER [WALK.bvh ARMS.bvh]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pliant
from pliant import Control, Follow, Weights, gallery, rotations

CMU = {
    **{f"upperarm.{s}": f"{side}Arm" for s, side in (("L", "Left"), ("R", "Right"))},
    **{f"forearm.{s}": f"{side}ForeArm" for s, side in (("L", "Left"), ("R", "Right"))},
    **{f"thigh.{s}": f"{side}UpLeg" for s, side in (("L", "Left"), ("R", "Right"))},
    **{f"shin.{s}": f"{side}Leg" for s, side in (("L", "Left"), ("R", "Right"))},
    "hips": "Hips",
}
"""The target's joints, and what the CMU files call them."""


def wave(frames: int) -> pliant.Motion:
    """Arms up and waving; the gallery's creature does it."""
    skeleton = gallery.creature_skeleton()
    turns = np.tile(skeleton.rest_rotations, (frames, 1, 1))
    for side, sign in (("L", 1), ("R", -1)):
        for k, phase in enumerate(np.linspace(0, 4 * np.pi, frames)):
            for joint, angle in (("upperarm", 62 + 18 * np.sin(phase)), ("forearm", 22 + 30 * np.sin(phase - 0.6))):
                j = skeleton.index(f"{joint}.{side}")
                turns[k, j] = rotations.from_axis_angle([0, 0, sign], np.radians(angle))
    return pliant.Motion(skeleton, turns, np.tile(skeleton.offsets, (frames, 1, 1)), fps=24)


def bubbles() -> pliant.Mesh:
    """The gingerbread man's bones as strings of bubbles that overlap."""
    skeleton = gallery.gingerbread_skeleton()
    ball = gallery.sphere(500)
    places = [np.array([0.0, height, 0.0]) for height in (0.80, 0.47, 0.60)]
    radii = [0.14, 0.11, 0.10]
    ends = pliant.joint_tracks(_still(skeleton), along=1.0)
    for name, joint in zip(skeleton.names, skeleton.rest_pose().world()[0], strict=True):
        if "." in name:
            places += [joint + t * (ends[name].rest - joint) for t in (0.1, 0.5, 0.9)]
            radii += [0.062, 0.058, 0.062]
    points = [ball.points / np.ptp(ball.points[:, 0]) * 2 * r + p for p, r in zip(places, radii, strict=True)]
    faces = [face + k * len(ball.points) for k in range(len(points)) for face in ball.polygons]
    return pliant.Mesh(np.concatenate(points), faces)


def _still(skeleton: pliant.Skeleton) -> pliant.Motion:
    return pliant.Motion(skeleton, skeleton.rest_rotations[None], skeleton.offsets[None])


def main(folder: Path, walk: str = "", arms: str = "") -> pliant.Transfer:
    """Transfer, and write the clip and a picture of it."""
    skeleton, target = gallery.gingerbread_skeleton(), bubbles()
    walking = pliant.read_motion(walk).resampled(30) if walk else gallery.creature_walk(24)
    waving = pliant.read_motion(arms).resampled(30) if arms else wave(24)
    limbs = [name for name in skeleton.names if "." in name]
    legs = [name for name in limbs if name.startswith(("thigh", "shin"))]
    named = [CMU if file else dict(zip(CMU, CMU, strict=True)) for file in (walk, arms)]
    controls = []
    for motion, names, part in ((walking, named[0], legs), (waving, named[1], [n for n in limbs if n not in legs])):
        controls += pliant.bone_controls(skeleton, motion, {name: names[name] for name in part})
        tips = [
            name for name in part if name.startswith(("forearm", "shin"))
        ]  # hands go with forearms, feet with shins
        controls += pliant.bone_controls(skeleton, motion, {name: names[name] for name in tips}, along=0.95)
    controls += [Control([0, 0.80, 0]), Control([0, 0.53, 0])]  # head and chest stay upright
    ends = pliant.joint_tracks(_still(skeleton), limbs, along=0.9)
    starts = pliant.joint_tracks(_still(skeleton), limbs, along=0.1)
    moved = pliant.transfer(
        {"walk": walking, "wave": waving},
        target,
        pliant.build_cage(target, faces=400),
        controls,
        follow=[Follow([0, 0.45, 0], f"walk/{named[0]['hips']}", origin="first")],
        lengths=[(starts[name].rest, ends[name].rest) for name in limbs],
        frames=np.arange(3, 33) if walk and arms else 24,  # a CMU file starts with a T-pose that was put there
        weights=Weights(gradient=60.0, length=50.0),
    )
    pliant.write(folder / "bubble_man.glb", moved.clip)
    pliant.render.contact_sheet({"bubble man": moved.clip}, frames=8, view=(30, 10)).save(folder / "bubble_man.png")
    return moved


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."), *sys.argv[2:4])

"""Bones on the stage, chosen by clicks, and drawn by clicking through the body.

A click is a ray. If it passes near a joint, that joint is meant; otherwise, while bones are drawn, a new joint half-way
through what the ray meets first, and while they are posed, the bone that is nearest to that point.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from pliant.app.scene.posing import rotated_pose
from pliant.app.studio.desk import Document
from pliant.app.studio.viewport import HANDLE_COLOR, VIEWPORT_BONE_COLOR, Viewport
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.skeleton import Skeleton, SkeletonPose
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.app.panel_document import bone_tables, significant
from pliant.geometry.segments import nearest_segment

JOINTS, BONES, NAME = "/elastic/joints", "/elastic/bones", "/elastic/name"
JOINT_RADIUS = 0.016
"""Radius of a joint, over half the box."""
BONE_THICKNESS = 0.02
"""Of a bone."""
LABEL = 0.07
"""How far below its joint a name stands, over half the box."""
CLICK_REACH = 1.8
"""How near a ray has to pass by a joint, over its radius."""


def posed_segments(pose: SkeletonPose) -> tuple[Ints, Floats]:
    """(b,) the joint that carries each bone, and (b, 2, 3) from where to where it goes."""
    skeleton = pose.skeleton
    positions, orientations = pose.world()
    last = np.array(list(skeleton.ends), dtype=np.int64)
    tips = np.reshape([skeleton.ends[j] for j in last], (-1, 3))
    owners = np.concatenate([skeleton.bones[:, 0], last])
    ends = np.concatenate(
        [positions[skeleton.bones[:, 1]], positions[last] + rotations.rotate(orientations[last], tips)]
    )
    return owners, np.stack([positions[owners], ends], axis=1)


class BonesView:
    """The bones of one pose on a stage, one joint marked."""

    def __init__(self, stage: Viewport) -> None:
        self.stage = stage
        self.visible = True

    @property
    def radius(self) -> float:
        """Of a joint, in the world."""
        return JOINT_RADIUS * self.stage.half

    def show(self, pose: SkeletonPose, chosen: int | None, *, seen: bool = False) -> None:
        """Draw them. seen: also if they are hidden otherwise."""
        positions, _ = pose.world()
        owners, segments = posed_segments(pose)
        shades = np.tile(VIEWPORT_BONE_COLOR, (len(positions), 1))
        if chosen is not None:
            shades[chosen] = HANDLE_COLOR
            below = np.array([0.0, 0.0, -LABEL])  # rings of the handle are above
            self.stage.label(
                NAME, pose.skeleton.names[chosen], self.stage.world(self.stage.shown(positions[chosen]) + below)
            )
        else:
            self.stage.remove(NAME)
        self.stage.balls(JOINTS, positions, self.radius, shades)
        if len(segments):
            self.stage.rods(BONES, segments, BONE_THICKNESS * self.stage.half, shades[owners])
        else:
            self.stage.remove(BONES)
        for name in (JOINTS, BONES, NAME):
            self.stage.show(name, self.visible or seen)

    def clear(self) -> None:
        """Take them away."""
        for name in (JOINTS, BONES, NAME):
            self.stage.remove(name)


def joint_near(positions: Floats, origin: Floats, direction: Floats, reach: float) -> int | None:
    """The joint that a ray passes nearest to, within reach."""
    along = direction / np.linalg.norm(direction)
    ahead = np.maximum((positions - origin) @ along, 0.0)
    away = np.linalg.norm(positions - origin - ahead[:, None] * along, axis=1)
    return int(away.argmin()) if len(away) and away.min() < reach else None


def joint_of_bone_near(pose: SkeletonPose, point: Floats) -> int:
    """The joint that carries the bone nearest to a point."""
    owners, segments = posed_segments(pose)
    if not len(segments):
        return 0
    return int(owners[nearest_segment(point[None], segments[:, 0], segments[:, 1])[0][0]])


def first_to_rotate(skeleton: Skeleton, up: Floats) -> int:
    """A joint that is worth rotating first: of those where long limbs begin, an arm or a neck, the highest."""
    count = len(skeleton)
    reach, size, children = np.zeros(count), np.ones(count), np.zeros(count)
    for j in range(count - 1, 0, -1):
        above = skeleton.parents[j]
        if above >= 0:
            reach[above] = max(reach[above], reach[j] + float(np.linalg.norm(skeleton.offsets[j])))
            size[above] += size[j]
            children[above] += 1
    begins = (skeleton.parents >= 0) & (children[skeleton.parents] > 1) & (size <= max(count / 3, 1)) & (reach > 0)
    if not begins.any():
        return min(1, count - 1)
    long = np.flatnonzero(begins & (reach >= 0.6 * reach[begins].max()))
    return int(long[(skeleton.rest_world[0][long] @ up).argmax()])


class Drawing:
    """Joints as they are clicked, in the tables of a document."""

    def __init__(self, skeleton: Skeleton | None) -> None:
        self.bones: list[Document] = bone_tables(skeleton) if skeleton is not None else []
        self.chosen: str | None = None

    def put(self, bones: list[Document]) -> None:
        """Have other joints; the chosen one stays if it is among them."""
        self.bones, names = copy.deepcopy(bones), [bone["name"] for bone in bones]
        self.chosen = self.chosen if self.chosen in names else (names or [None])[-1]

    @property
    def skeleton(self) -> Skeleton | None:
        """What is drawn; None if that is nothing."""
        if not self.bones:
            return None
        names = [bone["name"] for bone in self.bones]
        parents = [names.index(bone["parent"]) if "parent" in bone else -1 for bone in self.bones]
        straight = Skeleton.from_positions([bone["at"] for bone in self.bones], parents, names)
        ends = {j: np.subtract(bone["end"], bone["at"]) for j, bone in enumerate(self.bones) if "end" in bone}
        return Skeleton(straight.names, straight.parents, straight.offsets, ends=ends)

    @property
    def pose(self) -> SkeletonPose | None:
        """What is drawn, at rest."""
        return rotated_pose(self.skeleton, {}) if self.skeleton is not None else None

    def add(self, point: Floats) -> str:
        """A joint at a point, on the chosen one; it is the chosen one then."""
        taken, number = {bone["name"] for bone in self.bones}, len(self.bones) + 1
        while f"joint{number}" in taken:
            number += 1
        bone: Document = {"name": f"joint{number}", "at": significant(*point)}
        parent = self.chosen if self.bones else None
        if self.bones:
            bone["parent"] = parent or self.bones[0]["name"]
            next(above for above in self.bones if above["name"] == bone["parent"]).pop("end", None)
        self.bones.append(bone)
        self.chosen = bone["name"]
        return self.chosen

    def clear(self) -> None:
        """No joints."""
        self.bones, self.chosen = [], None

    def copy(self, skeleton: Skeleton) -> None:
        """The joints of a skeleton instead."""
        self.bones, self.chosen = bone_tables(skeleton), None

    def rename(self, old: str, new: str) -> None:
        """Call a joint something else."""
        name = new.strip()
        if not name or any(bone["name"] == name for bone in self.bones):
            raise InputError(f'"{name}" cannot be a joint\'s name; expected one that no other joint has')
        for bone in self.bones:
            for key in ("name", "parent"):
                if bone.get(key) == old:
                    bone[key] = name
        self.chosen = name if self.chosen == old else self.chosen


def clicked_point(shape: Any, points: Floats, origin: Floats, direction: Floats) -> Floats | None:
    """Half-way through a shape, whose points are here, along a ray."""
    from pliant import click_joint

    return click_joint(shape.with_points(points), origin, direction)

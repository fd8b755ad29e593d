"""An elastic scene that is being worked on: its document, and what is kept aside meanwhile.

Poses set by hand are keys of the document's motion, so whatever is turned is written at once: at a key's time into that
key, and between keys into a new one. What only counts with inertia (hold, damping, obstacles, ...) stays here while
the scene is static, and a motion from a file stays while the bones follow keys. Tables are replaced, never changed in
place: a worker may be reading them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.app.studio.desk import Document
from pliant.core import rotations
from pliant.core.skeleton import Skeleton, SkeletonPose
from pliant.engines.simulate.options import idle

PoseKey = dict[str, Any]
"""A table of ``[[motion.keys]]``."""
KEY_DIGITS = 7
"""Of numbers written into the document."""
SHAKE = (1.0, -1.0, 0.6, 0.0)
"""Where a shake brings the roots, over how far it goes."""
BEAT = 0.1
"""Seconds between them."""
SWING = 1.5
"""Seconds that a shaken body is watched afterwards, unless others are said."""


class Draft:
    """A document in the making.

    follows: whether the shape's own file has a motion, which the bones follow if the document says nothing else.
    """

    def __init__(self, document: Document, *, follows: bool = False) -> None:
        self.given = copy.deepcopy(document)
        motion = self.given.pop("motion", {})
        self.by_hand = "keys" in motion or not (follows or motion.keys() & {"file", "gallery", "handles"})
        self.followed: Document | None = None if self.by_hand and not follows else motion
        if "keys" in motion and follows:
            self.followed = {}
        self.keys: list[PoseKey] = motion.get("keys") or [{"time": 0.0}]
        self.fps: float | None = motion.get("fps") if self.by_hand else None

    @property
    def static(self) -> bool:
        """Whether every frame is at rest."""
        return bool(self.given.get("static", False))

    def document(self) -> Document:
        """The scene as it stands."""
        without = {name for name, _ in idle(self.given)} | ({"obstacles"} if self.static else set())
        kept = {key: value for key, value in self.given.items() if key not in without and value not in ({}, [])}
        if self.by_hand:
            kept["motion"] = ({"fps": self.fps} if self.fps else {}) | {"keys": self.keys}
        elif self.followed:
            kept["motion"] = self.followed
        return copy.deepcopy(kept)

    def put(self, key: str, value: Any, table: str = "") -> None:
        """Set a key; None: leave it out."""
        values = dict(self.given.get(table, {})) if table else dict(self.given)
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
        self.given = {**self.given, table: values} if table else values

    def get(self, key: str, otherwise: Any, table: str = "") -> Any:
        """The value of a key."""
        values = self.given.get(table, {}) if table else self.given
        return values.get(key, otherwise)

    @property
    def state(self) -> dict[str, Any]:
        """All that it holds."""
        return dict(vars(self))

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        vars(self).update(copy.deepcopy(state))

    # Poses

    def key_at(self, frame: int, fps: float) -> PoseKey | None:
        """The key that a timeline shows at a frame: of several, the one nearest to it."""
        found = [key for key in self.keys if round(key.get("time", 0.0) * fps) == frame]
        return min(found, key=lambda key: abs(key.get("time", 0.0) * fps - frame)) if found else None

    def set_key(self, frame: int, fps: float, pose: SkeletonPose) -> PoseKey:
        """A copy of the key at a frame; if there was none, it is made from the pose there. `keep` it when changed."""
        known = self.key_at(frame, fps)
        if known is None:
            known = {"time": significant(frame / fps)[0]} | pose_table(pose)
            self.keep(known)
        return copy.deepcopy(known)

    def keep(self, key: PoseKey) -> None:
        """Have a key, instead of one at the same time; not of joints that are not there any more."""
        bones = self.get("skeleton", {}).get("bones")
        if bones is not None and "turns" in key:
            there = {bone["name"] for bone in bones}
            key = {**key, "turns": {name: q for name, q in key["turns"].items() if name in there}}
        others = [other for other in self.keys if other.get("time", 0.0) != key.get("time", 0.0)]
        self.keys = sorted([*others, key], key=lambda one: one.get("time", 0.0))

    def remove_key(self, frame: int, fps: float) -> bool:
        """Take the key at a frame away; whether there was one. One at the beginning goes back to rest instead."""
        known = self.key_at(frame, fps)
        if known is None:
            return False
        self.keys = [key for key in self.keys if key is not known]
        if not self.keys or known.get("time", 0.0) == 0.0:
            self.keys = [{"time": 0.0}, *self.keys]
        return True

    def move_key(self, frame: int, to: int, fps: float, *, copy: bool = False) -> bool:
        """Have the key at a frame, or a copy of it, at another; whether there was one. The first key stays."""
        known, there = self.key_at(frame, fps), self.key_at(to, fps)
        if known is None:
            return False
        moved = known if not copy and known.get("time", 0.0) > 0 else None
        self.keys = [key for key in self.keys if key is not moved and key is not there]
        self.keep({**known, "time": there.get("time", 0.0) if there is not None else significant(to / fps)[0]})
        return True

    def shake(self, by: ArrayLike) -> None:
        """Go on from the last key with a quick there and back of the roots, by so much at most."""
        last = self.keys[-1]
        home = np.array(last.get("move", [0.0, 0.0, 0.0]))
        for k, share in enumerate(SHAKE, 1):
            move = significant(*(home + share * np.asarray(by)))
            time = significant(last.get("time", 0.0) + k * BEAT)[0]
            self.keep({"time": time, "turns": copy.deepcopy(last.get("turns", {})), "move": move})
        self.put("static", None)
        self.put("hold", self.get("hold", None) or SWING)

    # Bones

    def set_bones(
        self, bones: Sequence[Document], renamed: dict[str, str] | None = None, *, before: Sequence[str] = ()
    ) -> None:
        """Have other bones, written out; what is said of joints that are not there any more is dropped."""
        self.put("skeleton", {"bones": copy.deepcopy(list(bones))})
        self.keep_joints([bone["name"] for bone in bones], renamed, before=before)

    def keep_joints(
        self, names: Sequence[str], renamed: dict[str, str] | None = None, *, before: Sequence[str] = ()
    ) -> None:
        """Drop turns, materials and muscles of joints that are not among the names, after some have been renamed.

        before: the joints that there were, by which materials of joints are told from those of other parts.
        """
        now = renamed or {}
        kept = []
        for key in self.keys:
            joints = {now.get(name, name): q for name, q in key.get("turns", {}).items()}
            kept.append({**key, "turns": {name: q for name, q in joints.items() if name in names}})
        self.keys = kept
        gone = {now.get(name, name) for name in before} - set(names)
        parts = [
            {**part, **({"name": now.get(part["name"], part["name"])} if "name" in part else {})}
            for part in self.get("regions", [])
        ]
        self.put("regions", [part for part in parts if part.get("name") not in gone] or None)
        muscles = {name: _with_joints(muscle, now) for name, muscle in self.get("muscles", {}).items()}
        kept_muscles = {name: one for name, one in muscles.items() if gone.isdisjoint(_joints_named(one))}
        self.put("muscles", kept_muscles or None)


def _joints_named(muscle: Document) -> list[Any]:
    """What a muscle says where joints may be named."""
    activation = muscle.get("activation")
    joint = activation.get("joint") if isinstance(activation, dict) else None
    return [name for name in (muscle.get("name"), muscle.get("direction"), joint) if isinstance(name, str)]


def _with_joints(muscle: Document, renamed: dict[str, str]) -> Document:
    """A muscle that names joints as they are called now."""

    def named(value: Any) -> Any:
        return renamed.get(value, value) if isinstance(value, str) else value

    activation = muscle.get("activation")
    own: Document = {key: named(muscle[key]) for key in ("name", "direction") if key in muscle}
    if isinstance(activation, dict):
        own["activation"] = {key: named(value) for key, value in activation.items()}
    return muscle | own


def rotated(key: PoseKey, joint: str, rotation: ArrayLike) -> PoseKey:
    """A key in which a joint is rotated since its rest, (w, x, y, z) in the axes of the space at rest."""
    q = rotations.shortest(rotations.normalize(rotation))
    others = {name: value for name, value in key.get("turns", {}).items() if name != joint}
    return {**key, "turns": others if float(q[0]) > 1 - 1e-9 else {**others, joint: significant(*q)}}


def significant(*values: float) -> list[float]:
    """Numbers as they are written into a document."""
    return [float(f"{value:.{KEY_DIGITS}g}") for value in values]


def world_rotations(pose: SkeletonPose) -> tuple[Any, Any]:
    """(j, 3) the joints' positions, and (j, 4) their rotations since rest, in the world."""
    positions, orientations = pose.world()
    return positions, rotations.multiply(orientations, rotations.inverse(pose.skeleton.rest_world[1]))


def pose_table(pose: SkeletonPose) -> PoseKey:
    """What a key says of a pose: turns of joints against their rest, and how far the root went."""
    skeleton = pose.skeleton
    world = world_rotations(pose)[1]
    above = np.where(skeleton.parents[:, None] >= 0, world[skeleton.parents], rotations.IDENTITY)
    own = rotations.shortest(rotations.multiply(rotations.inverse(above), world))
    joints = {name: significant(*q) for name, q in zip(skeleton.names, own, strict=True) if q[0] < 1 - 1e-9}
    move = pose.translations[0] - skeleton.offsets[0]
    went = bool(np.abs(move).max() > 1e-9 * max(np.abs(skeleton.offsets).max(), 1e-300))
    return {"turns": joints} | ({"move": significant(*move)} if went else {})


def bone_tables(skeleton: Skeleton) -> list[Document]:
    """A skeleton as a document writes it out."""
    positions, orientations = skeleton.rest_world
    bones = []
    for j, name in enumerate(skeleton.names):
        bone: Document = {"name": name, "at": significant(*positions[j])}
        if skeleton.parents[j] >= 0:
            bone["parent"] = skeleton.names[skeleton.parents[j]]
        if j in skeleton.ends:
            bone["end"] = significant(*(positions[j] + rotations.rotate(orientations[j], skeleton.ends[j])))
        bones.append(bone)
    return bones

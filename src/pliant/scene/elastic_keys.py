"""What a scene file of the engine "elastic" may say, key by key."""

from __future__ import annotations

from dataclasses import replace

from pliant.gallery import JOINT_MOTIONS, SKELETONS
from pliant.scene.media import FILE, SHAPE, SOURCE_KEYS
from pliant.scene.obstacles import OBSTACLES
from pliant.scene.output_keys import OUTPUT
from pliant.scene.schema import (
    NOT_NEGATIVE,
    POINT,
    POSITIVE,
    Choice,
    Either,
    Flag,
    Key,
    ListOf,
    Named,
    Number,
    Record,
    Text,
    Whole,
)
from pliant.scene.turns import TURN

BONE = Record(
    {
        "name": Key(Text("a name of its own"), "what its joint, where it begins, is called", required=True),
        "parent": Key(Text("the name of another bone"), "the bone that it hangs on; left out: it is a root"),
        "at": Key(POINT, "where it begins", required=True),
        "end": Key(POINT, "where it ends, if no other bone begins there"),
    }
)
SKELETON = Record(
    {
        "file": Key(FILE.kind, "bones inside the shape: .json .bvh .tgf .glb ..."),
        "gallery": Key(Choice(SKELETONS), "the built-in skeleton of a built-in shape"),
        "bones": Key(ListOf(BONE, "one or more tables [[skeleton.bones]]", least=1), "bones written out, in any order"),
        "joints": Key(Whole(2, 10_000), "with none of these: how many the skeleton has that is found in the shape"),
    },
    most_one_of=("file", "gallery", "bones"),
)
POSE = Record(
    {
        "time": Key(NOT_NEGATIVE, "seconds from the start; each key is later than the one before", default=0.0),
        "turns": Key(
            Named(TURN, f"a table from joints to {TURN.words}"),
            "how joints turn against the rest pose, about the axes of the space that the body is in at rest: a turn "
            "of the elbow turns the forearm about the elbow, and turns of its parents carry it along; joints that are "
            "not named are as at rest",
            default={},
        ),
        "move": Key(POINT, "how far the roots go from their rest, in the shape's own units", default=[0.0, 0.0, 0.0]),
    }
)
MOTION = Record(
    {
        **{name: SOURCE_KEYS[name] for name in ("file", "clip", "fps", "rest", "first", "last")},
        "gallery": Key(Choice(JOINT_MOTIONS), "a built-in motion instead of a file"),
        "keys": Key(
            ListOf(POSE, "one or more tables [[motion.keys]]", least=1),
            "poses written out; at time 0 it is the rest pose, unless a key says otherwise. Between keys joints turn "
            "the short way, sampled at fps (30); with static = true, a single key is one frame",
        ),
        "map": Key(
            Named(Text("a joint of the motion"), "a table from joints of the skeleton to joints of the motion"),
            "which joint follows which, where they are not called alike; with one or more, the others go along with "
            "their parents",
        ),
    },
    most_one_of=("file", "gallery", "keys"),
)
MATERIAL = {
    "young": Key(POSITIVE, "Young's modulus in pascals (1e5, soft flesh)"),
    "poisson": Key(Number(-1, 0.5, "a number above -1 and below 0.5"), "Poisson's ratio (0.4)"),
    "density": Key(POSITIVE, "kilograms per cubic metre (1000)"),
}
REGION = Record(
    {
        "name": Key(Text("a vertex group, a face label or a joint"), "the part that is made of something else"),
        "centre": Key(POINT, "of a ball that is"),
        "radius": Key(POSITIVE, "of that ball, in the shape's own units"),
        **{name: replace(key, meaning=f"{key.meaning.partition(' (')[0]} there") for name, key in MATERIAL.items()},
    },
    one_of=("name", "centre"),
    only_with={"centre": "radius", "radius": "centre"},
)
ELASTIC = Record(
    {
        "engine": Key(Choice(("elastic",)), "what the scene is for", required=True),
        "title": Key(Text(), "what the report is called"),
        "shape": Key(SHAPE, "what is to move: any closed surface, tetrahedra, points with normals", required=True),
        "skeleton": Key(SKELETON, "its bones; if nothing is said, the shape's own, or else those found in it"),
        "motion": Key(MOTION, "how the bones move; if nothing is said, the shape's own clip"),
        "static": Key(Flag(), "whether every frame is at rest, without inertia", default=False),
        "size": Key(
            Either((POSITIVE, Choice(("file",)))),
            "the longest side of the shape's box in metres; file: its units are as it says",
            default=2.0,
        ),
        "material": Key(Record(MATERIAL), "what the flesh is made of"),
        "regions": Key(ListOf(REGION, "tables [[regions]]"), "parts made of something else", default=[]),
        "nodes": Key(Whole(50, 1_000_000), "points that carry the deformation", default=3000),
        "gravity": Key(
            Either((Number(words="metres per second squared"), POINT)), "down the up axis (9.81), or a vector (none)"
        ),
        "up": Key(
            Choice(("auto", "x", "y", "z", "-x", "-y", "-z")),
            "the axis that points up; auto: as the shape's file says, or y",
            default="auto",
        ),
        "damping": Key(NOT_NEGATIVE, "seconds: viscosity over stiffness (0.005)"),
        "drag": Key(NOT_NEGATIVE, "per second: what slows flesh against its bones (0)"),
        "dt": Key(POSITIVE, "the longest step in seconds (1/60)"),
        "fps": Key(POSITIVE, "frames a second of the clip; by default the motion's, but no finer than the steps"),
        "hold": Key(NOT_NEGATIVE, "seconds to go on in the last pose (0)"),
        "obstacles": OBSTACLES,
        "friction": Key(NOT_NEGATIVE, "Coulomb's coefficient on obstacles (0)"),
        "warping": Key(Choice(("corotated", "per_node", "paper")), "how Hooke's law is turned (corotated)"),
        "rotations": Key(Choice(("diffused", "polar")), "where rotations come from (diffused)"),
        "output": OUTPUT,
    }
)

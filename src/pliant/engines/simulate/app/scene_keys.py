"""What a scene file of the engine "simulate" may say, key by key."""

from __future__ import annotations

from pliant.app.scene.media import FILE, SHAPE, SOURCE_KEYS
from pliant.app.scene.obstacles import OBSTACLES
from pliant.app.scene.regions import LOCATOR_PAIRS, LOCATORS, region_keys
from pliant.app.scene.rotations import ROTATION_KIND
from pliant.app.scene.schema import OUTPUT, Key, ListOf, Named, Record, Text, option_keys
from pliant.core.options import NOT_NEGATIVE, POINT, Choice, Flag, Whole
from pliant.engines.simulate.app.handles import HANDLE_KEYS
from pliant.engines.simulate.app.muscles import MUSCLES_KEY
from pliant.engines.simulate.options import SimulateOptions
from pliant.gallery import JOINT_MOTIONS, SKELETONS

BONE_RECORD = Record(
    {
        "name": Key(Text("a name of its own"), "what its joint, where it begins, is called", required=True),
        "parent": Key(Text("the name of another bone"), "the bone that it hangs on; left out: it is a root"),
        "at": Key(POINT, "where it begins", required=True),
        "end": Key(POINT, "where it ends, if no other bone begins there"),
    }
)
SKELETON_RECORD = Record(
    {
        "file": Key(FILE.kind, "bones inside the shape: .json .bvh .tgf .glb ..."),
        "gallery": Key(Choice(SKELETONS), "the built-in skeleton of a built-in shape"),
        "bones": Key(
            ListOf(BONE_RECORD, "one or more tables [[skeleton.bones]]", least=1), "bones written out, in any order"
        ),
        "joints": Key(Whole(2, 10_000), "with none of these: how many the skeleton has that is found in the shape"),
    },
    most_one_of=("file", "gallery", "bones"),
)
POSE_RECORD = Record(
    {
        "time": Key(NOT_NEGATIVE, "seconds from the start; each key is later than the one before", default=0.0),
        "turns": Key(
            Named(ROTATION_KIND, f"a table from joints to {ROTATION_KIND.expected}"),
            "how joints turn against the rest pose, about the axes of the space that the body is in at rest: a turn "
            "of the elbow turns the forearm about the elbow, and turns of its parents carry it along; joints that are "
            "not named are as at rest",
            default={},
        ),
        "move": Key(POINT, "how far the roots go from their rest, in the shape's own units", default=[0.0, 0.0, 0.0]),
    }
)
MOTION_RECORD = Record(
    {
        **{name: SOURCE_KEYS[name] for name in ("file", "clip", "fps", "rest", "first", "last")},
        "gallery": Key(Choice(JOINT_MOTIONS), "a built-in motion instead of a file"),
        "keys": Key(
            ListOf(POSE_RECORD, "one or more tables [[motion.keys]]", least=1),
            "poses written out; at time 0 it is the rest pose, unless a key says otherwise. Between keys joints turn "
            "the short way, sampled at fps (30); with static = true, a single key is one frame",
        ),
        **HANDLE_KEYS,
        "map": Key(
            Named(
                Text('a joint of the motion, or "" for none', empty=True),
                "a table from joints of the skeleton to joints of the motion",
            ),
            "which joint follows which, where they are not called alike; with one or more, the others go along with "
            "their parents",
        ),
    },
    most_one_of=("file", "gallery", "keys", "handles"),
    only_with={"rod": "handles"},
)
MATERIAL_KEYS = option_keys(SimulateOptions, "material")
REGION_RECORD = Record(
    {
        **region_keys(", or a joint", "is made of something else"),
        "rigid": Key(
            Flag(),
            "true: it moves with its bone, without bending; false: it is flesh, though the file binds it to one bone",
        ),
        **{
            name: Key(key.kind, SimulateOptions.about(name).described("; as elsewhere, if left out", default=False))
            for name, key in MATERIAL_KEYS.items()
        },
    },
    one_of=LOCATORS,
    only_with=LOCATOR_PAIRS,
)
SIMULATE = Record(
    {
        "engine": Key(Choice(("simulate",)), "what the scene is for", required=True),
        "title": Key(Text(), "what the report is called"),
        "shape": Key(SHAPE, "what is to move: any closed surface, tetrahedra, points with normals", required=True),
        "skeleton": Key(SKELETON_RECORD, "its bones (default: those of the shape's file, or else found in the shape)"),
        "motion": Key(MOTION_RECORD, "how the bones move (default: the clip of the shape's file)"),
        **option_keys(SimulateOptions),
        "material": Key(Record(MATERIAL_KEYS), "what the flesh is made of"),
        "regions": Key(ListOf(REGION_RECORD, "tables [[regions]]"), "parts made of something else", default=[]),
        "muscles": MUSCLES_KEY,
        "obstacles": OBSTACLES,
        "output": OUTPUT,
    }
)

"""Keys of scene files of the engine "transfer": with sources, or posed by hand."""

from __future__ import annotations

from pliant.app.scene.media import FILE, SHAPE, SOURCE_KEYS
from pliant.app.scene.rotations import ROTATION_KIND
from pliant.app.scene.schema import OUTPUT, FileName, Key, ListOf, Named, Record, Text, option_keys
from pliant.core.options import POINT, POSITIVE, Choice, Either, Number, Row, Whole
from pliant.engines.transfer.options import CageOptions, PosedOptions, TransferOptions, Weights
from pliant.gallery import CAGES

VERTEX_OR_POINT = Either((Whole(), POINT))
GROUP = Either(
    (
        ListOf(Whole(), "one or more vertex numbers", least=1),
        Text("the name of a vertex group"),
        Record(
            {
                "centre": Key(POINT, "of the sphere, where the source is at rest", required=True),
                "radius": Key(POSITIVE, "of the sphere", required=True),
            },
            expected="{ centre = [x, y, z], radius = r }",
        ),
    )
)
SOURCE = Record(
    {
        **SOURCE_KEYS,
        "groups": Key(
            Named(GROUP, f"a table from names to {GROUP.expected}"),
            "pieces of a mesh sequence, each of which is a track",
        ),
        "fit": Key(Choice(("linear", "rotation")), "what is taken from a group: a linear map, or how it turns alone"),
        "along": Key(
            Number(expected="a number, 0 at the joint and 1 at the bone's end"),
            "where on its bone a joint's track has its point",
            default=0.0,
        ),
    },
    one_of=("file", "gallery"),
)
CAGE_KEYS = Record(
    {
        "file": Key(FILE.kind, "a closed mesh around the target; without one, a cage is built"),
        "gallery": Key(Choice(CAGES), "the built-in cage of a built-in shape"),
        "vertices": Key(Whole(40, 400), "how many the built-in cage has, about"),
        **option_keys(CageOptions, "cage"),
    },
    most_one_of=("file", "gallery"),
    only_with={"vertices": "gallery"},
)
TRACK = Text("a track: a joint, a group, or SOURCE/NAME")
CONTROL = Record(
    {
        "at": Key(VERTEX_OR_POINT, "where on the target: a vertex, or a point inside the cage", required=True),
        "track": Key(TRACK, "which piece of which source it follows; without one, it keeps as it is at rest"),
        "before": Key(ROTATION_KIND, "B of G = T S B: turns the target's rest into the source's reference pose"),
        "after": Key(ROTATION_KIND, "T of G = T S B: turns the result"),
    }
)
FOLLOW = Record(
    {
        "at": Key(VERTEX_OR_POINT, "what is led: a vertex, or a point inside the cage", required=True),
        "track": Key(TRACK, "which piece of which source it goes along with", required=True),
        "scale": Key(POSITIVE, "target units for each source unit; by default the ratio of their sizes"),
        "after": Key(ROTATION_KIND, "turns the way it goes"),
        "origin": Key(
            Choice(("rest", "first")), "what the way is measured from: the rest, or the first frame", default="rest"
        ),
    }
)
TARGET = Record(
    {
        **SHAPE.keys,
        "skeleton": Key(
            FileName('"own", "none", or the name of a file with a skeleton, from the scene\'s folder'),
            "with automatic controls: joints that the motion drives, the target file's own or a file's; where the "
            "target has a skin, that moves it, else the cage does",
            default="none",
        ),
    },
    one_of=SHAPE.one_of,
    only_with=SHAPE.only_with,
)
WEIGHTS = Record(option_keys(Weights, "weights"))
TRANSFER = Record(
    {
        "engine": Key(Choice(("transfer",)), "what the scene is for", required=True),
        "title": Key(Text(), "what the report is called"),
        "sources": Key(Named(SOURCE, "tables [sources.NAME]"), "what moves, by names of your own", required=True),
        "target": Key(TARGET, "what is to move: any mesh, soup, point cloud or tetrahedra", required=True),
        "cage": Key(CAGE_KEYS, "the cage around it; built, if left out"),
        "controls": Key(
            Either((Choice(("auto",)), ListOf(CONTROL, "one or more tables [[controls]]", least=1))),
            "gradient controls: where the target turns and stretches as a source does",
            required=True,
        ),
        "follow": Key(
            ListOf(FOLLOW, "tables [[follow]]"), "position controls that are led by a track's point", default=[]
        ),
        "held": Key(
            ListOf(VERTEX_OR_POINT, "points of the target"), "position controls that stay where they are", default=[]
        ),
        "lengths": Key(
            ListOf(ListOf(VERTEX_OR_POINT, "the two ends", least=2, most=2), "pairs of points"),
            "pairs of points that keep their distance",
            default=[],
        ),
        "weights": Key(WEIGHTS, "what counts how much"),
        **option_keys(TransferOptions),
        "output": OUTPUT,
    }
)


STRETCH = Either((POSITIVE, Row((3,), "three positive numbers, [x, y, z]", POSITIVE)))
GRADIENT = Record(
    {
        "at": Key(VERTEX_OR_POINT, "where on the target: a vertex, or a point inside the cage", required=True),
        "turn": Key(ROTATION_KIND, "how the target rotates there, relative to its rest (default: not at all)"),
        "stretch": Key(STRETCH, "how many times longer it gets there, along the axes at rest; the turn comes after it"),
        "matrix": Key(Row((3, 3), "three rows of three, of a positive determinant"), "or both in one: a linear map"),
    }
)
POSITION = Record(
    {
        "at": Key(VERTEX_OR_POINT, "where on the target: a vertex, or a point inside the cage", required=True),
        "to": Key(POINT, "where it goes; left out: it stays where it is"),
    }
)
CAGE_SCENE = Record(
    {
        "engine": Key(Choice(("transfer",)), "what the scene is for", required=True),
        "title": Key(Text(), "what the report is called"),
        "target": TRANSFER.keys["target"],
        "cage": Key(CAGE_KEYS, "the cage around it; built, if left out"),
        "gradients": Key(
            ListOf(GRADIENT, "tables [[gradients]]"),
            "gradient controls: where the target turns and stretches",
            default=[],
        ),
        "positions": Key(
            ListOf(POSITION, "tables [[positions]]"), "position controls: where the target goes or is held", default=[]
        ),
        "lengths": TRANSFER.keys["lengths"],
        "weights": TRANSFER.keys["weights"],
        **option_keys(PosedOptions),
        "output": OUTPUT,
    }
)

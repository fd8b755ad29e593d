"""Keys of scene files of the engine "transfer" without sources, posed by hand."""

from __future__ import annotations

from pliant.app.scene.output_keys import OUTPUT
from pliant.app.scene.rotations import ROTATION_KIND
from pliant.app.scene.schema import Key, ListOf, Record, Text
from pliant.core.clips import MOST_FRAMES
from pliant.core.options import POINT, POSITIVE, Choice, Either, Row, Whole
from pliant.engines.transfer.app.scene_keys import CAGE_KEYS, TRANSFER, VERTEX_OR_POINT

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
        "outside": TRANSFER.keys["outside"],
        "lattice": TRANSFER.keys["lattice"],
        "frames": Key(
            Whole(1, MOST_FRAMES),
            "how many, evenly from the rest to what the controls say: places go straight, turns go on at one speed; 1 "
            "is the pose alone",
            default=1,
        ),
        "fps": Key(POSITIVE, "frames a second", default=24.0),
        "output": OUTPUT,
    }
)

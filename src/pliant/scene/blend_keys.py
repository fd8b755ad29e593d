"""What a scene file of the engine "blend" may say, key by key."""

from __future__ import annotations

from typing import get_args

from pliant.blend.body import Model
from pliant.blend.equilibrium import Method
from pliant.blend.interior import InteriorMethod
from pliant.blend.springs import KINDS
from pliant.clips import MOST_FRAMES
from pliant.gallery import POSED
from pliant.scene.media import VERTICES
from pliant.scene.obstacles import OBSTACLES
from pliant.scene.output_keys import OUTPUT
from pliant.scene.schema import (
    NOT_NEGATIVE,
    POINT,
    POSITIVE,
    Choice,
    Either,
    FileName,
    Flag,
    Key,
    ListOf,
    Named,
    Number,
    Record,
    Text,
    Whole,
)

WEIGHT = Number(words="a number, 1 for a shape in full")

SHAPES = Record(
    {
        "file": Key(
            FileName("the name of a rig, or of a folder, glob or archive of shapes, from the scene's folder"),
            "a rig with morph targets, or a mesh for each shape",
        ),
        "files": Key(
            ListOf(FileName("the name of a mesh file, from the scene's folder"), "two or more names of files", least=2),
            "meshes of one topology, the base first",
        ),
        "gallery": Key(Choice(POSED), "built-in poses instead of files"),
        "vertices": VERTICES,
        "base": Key(
            FileName("a file, or the name of one of the shapes", or_name=True),
            "the base shape; with files, the first of them",
        ),
        "names": Key(
            ListOf(Text("the name of a shape"), "two or more names of shapes", least=2),
            "of a rig only these, in this order; the first is the base",
        ),
    },
    one_of=("file", "files", "gallery"),
    only_with={"vertices": "gallery"},
)
SPRINGS = Record(
    {
        "interior": Key(Choice(get_args(InteriorMethod)), "what fills the shape (auto)"),
        "model": Key(Choice(get_args(Model)), "what springs strive for (turned)"),
        "stiffness": Key(
            Record({kind: Key(POSITIVE, f"of {kind} springs (1)") for kind in KINDS}), "factors on the spring constants"
        ),
        "method": Key(Choice(get_args(Method)), "which solver (lbfgs)"),
        "accuracy": Key(Number(0, 1, "a number between 0 and 1, such as 1e-4"), "how near to equilibrium (1e-4)"),
        "iterations": Key(Whole(1), "most iterations a frame may take"),
    }
)
PULL = Record(
    {
        "vertex": Key(Whole(), "which vertex is dragged, numbered from 0", required=True),
        "to": Key(POINT, "the place that it is held at"),
        "force": Key(POINT, "or the force that drags it; 1 stretches one spring by about three quarters"),
    },
    one_of=("to", "force"),
)
BLEND = Record(
    {
        "engine": Key(Choice(("blend",)), "what the scene is for", required=True),
        "title": Key(Text(), "what the report is called"),
        "shapes": Key(SHAPES, "two or more poses of one mesh, the base first", required=True),
        "weights": Key(
            Either(
                (
                    FileName("the name of a .csv or .json file"),
                    ListOf(
                        Either(
                            (
                                ListOf(WEIGHT, "a number for each shape, or for each but the base", least=1),
                                Named(WEIGHT, "a table from shapes to numbers"),
                            )
                        ),
                        "one or more rows, each a number for each shape or a table from shapes to numbers",
                        least=1,
                    ),
                )
            ),
            "a row of sliders for each frame; without any, from the first shape through all to the last",
        ),
        "frames": Key(
            Whole(1, MOST_FRAMES),
            "how many (36 for two shapes); rows of weights are then keys, spread evenly over them",
        ),
        "fps": Key(POSITIVE, "frames a second", default=30.0),
        "anchor": Key(
            Either((Choice(("auto", "none")), POINT)),
            "what parts that nothing holds are anchored at: a point in each, none, or a point inside the base",
            default="auto",
        ),
        "pins": Key(
            Either((FileName("the name of a file"), ListOf(Whole(), "one or more vertex numbers", least=1))),
            "vertices to lead on straight lines, or on the paths in the file",
        ),
        "pulls": Key(ListOf(PULL, "tables [[pulls]]"), "vertices that are dragged", default=[]),
        "obstacles": OBSTACLES,
        "friction": Key(NOT_NEGATIVE, "Coulomb's coefficient on obstacles (0)"),
        "self_contact": Key(Flag(), "whether the shape does not pass through itself", default=False),
        "thickness": Key(NOT_NEGATIVE, "distance kept in contact (a thousandth of the diagonal)"),
        "springs": Key(SPRINGS, "how it is filled, and how it is solved"),
        "output": OUTPUT,
    }
)

"""Keys of scene files of the engine "blend"."""

from __future__ import annotations

from pliant.app.scene.media import GALLERY_VERTICES
from pliant.app.scene.obstacles import OBSTACLES
from pliant.app.scene.regions import LOCATOR_PAIRS, LOCATORS, region_keys
from pliant.app.scene.schema import OUTPUT, FileName, Key, ListOf, Named, Record, Text, option_keys
from pliant.core.options import POINT, POSITIVE, Choice, Either, Number, Whole
from pliant.engines.blend.options import BlendOptions
from pliant.engines.blend.springs import SPRING_KINDS
from pliant.gallery import POSED

WEIGHT = Number(expected="a number, 1 for a shape in full")

SHAPES_KEYS = Record(
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
        "vertices": GALLERY_VERTICES,
        "base": Key(
            FileName("a file, or the name of one of the shapes", or_name=True),
            "the base shape; with files, the first of them",
        ),
        "names": Key(
            ListOf(Text("the name of a shape"), "two or more names of shapes", least=2),
            "of a rig only these, in this order; the first is the base",
        ),
        **option_keys(BlendOptions, "shapes"),
    },
    one_of=("file", "files", "gallery"),
    only_with={"vertices": "gallery"},
)
SPRINGS_KEYS = Record(
    {
        **option_keys(BlendOptions, "springs"),
        "stiffness": Key(
            Record({kind: Key(POSITIVE, f"of {kind} springs (1)") for kind in SPRING_KINDS}),
            "factors on the spring constants",
        ),
    }
)
REGION = Record(
    {
        **region_keys("", "is stiffer or softer"),
        "stiffness": Key(POSITIVE, "factor on the spring constants there: 10 is stiff, 0.1 is soft", required=True),
    },
    one_of=LOCATORS,
    only_with=LOCATOR_PAIRS,
)
PULL = Record(
    {
        "vertex": Key(Whole(), "which vertex is dragged, numbered from 0", required=True),
        "to": Key(POINT, "the point that it is held at"),
        "force": Key(POINT, "or the force that drags it; 1 stretches one spring by about three quarters"),
    },
    one_of=("to", "force"),
)
BLEND = Record(
    {
        "engine": Key(Choice(("blend",)), "what the scene is for", required=True),
        "title": Key(Text(), "what the report is called"),
        "shapes": Key(SHAPES_KEYS, "two or more poses of one mesh, the base first", required=True),
        "weights": Key(
            Either(
                (
                    FileName("the name of a table, .csv or .json, or of a rig with a clip, .glb or .usd"),
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
            "a row of sliders for each frame, or a file of them; without any, as the rig's own clip moves them, or "
            "from the first shape through all to the last",
        ),
        **option_keys(BlendOptions),
        "pins": Key(
            Either((FileName("the name of a file"), ListOf(Whole(), "one or more vertex numbers", least=1))),
            "vertices to lead on straight lines, or on the paths in the file",
        ),
        "pulls": Key(ListOf(PULL, "tables [[pulls]]"), "vertices that are dragged", default=[]),
        "obstacles": OBSTACLES,
        "regions": Key(ListOf(REGION, "tables [[regions]]"), "parts that are stiffer or softer", default=[]),
        "springs": Key(SPRINGS_KEYS, "how it is filled, and how it is solved"),
        "output": OUTPUT,
    }
)

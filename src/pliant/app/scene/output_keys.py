"""Where the results of a scene go, said in the same words for every engine: the table [output]."""

from __future__ import annotations

from pliant.app.scene.schema import Key, Record, Text

OUTPUT = Key(
    Record(
        {
            "file": Key(
                Text("the name of a clip, .glb .usdc .pc2 .npz ..., or of a folder, from the scene's folder"),
                "the clip to write; without one, it is called as the scene is, with .glb",
            ),
            "report": Key(Text("the name of a web page, .html, from the scene's folder"), "a report to write"),
        }
    ),
    "where the results go; -o and --report count instead",
)

"""The scene and the body of a document that changes with every drag; what has not changed is not made again."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pliant.app.scene.writing import unwritten
from pliant.app.studio.desk import Desk, Document
from pliant.engines.simulate import ElasticBody
from pliant.engines.simulate.app.scene import ElasticScene, read_elastic
from pliant.engines.simulate.options import SimulateOptions

MADE = ("material", "regions")
"""Keys of a scene that only make the body of something else."""
SAME_BODY = (
    "engine", "title", "motion", "static", "gravity", "up", "muscles", "obstacles", "output",
    *SimulateOptions().taken_by(ElasticBody.simulate),
)  # fmt: skip
"""Keys that leave the body as it is."""


class Making:
    """The scene of a document and its body."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._scene: ElasticScene | None = None
        self._body: ElasticBody | None = None
        self._named: Document = {}
        self._built: Document = {}
        self._made: Document = {}

    def scene(self, document: Document) -> ElasticScene:
        """Read as `pliant run` would; a shape and bones that are known are not read again."""
        known, named = self._scene, _part(document, ("shape", "skeleton"))
        same = known is not None and named["shape"] == self._named["shape"]
        shape = known.shape if known is not None and same else None
        bones = known.skeleton if known is not None and named == self._named else None
        text = unwritten(document, self._desk.folders.given[0])
        found: ElasticScene = self._desk.read(lambda: read_elastic(text, shape=shape, skeleton=bones))
        self._scene, self._named = found, named
        return found

    def lacks(self, document: Document) -> Literal["body", "material", ""]:
        """What has to be made for a document before it can be shown."""
        if self._body is None or _built(document) != self._built:
            return "body"
        braced = self._scene is None or np.array_equal(self._body.withstand, self._scene.withstand)
        return "" if braced and _part(document, MADE) == self._made else "material"

    def body(self, document: Document, scene: ElasticScene) -> ElasticBody:
        """The body of a scene."""
        lacking = self.lacks(document)
        if lacking == "body" or self._body is None:
            self._body = None
            self._body = scene.body()
        elif lacking == "material":
            self._body = scene.body(like=self._body)
        self._built, self._made = _built(document), _part(document, MADE)
        return self._body


def _built(document: Document) -> Document:
    """What makes another body."""
    return {key: value for key, value in document.items() if key not in (*MADE, *SAME_BODY)}


def _part(document: Document, keys: tuple[str, ...]) -> Document:
    return {key: document.get(key) for key in keys}

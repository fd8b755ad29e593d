"""Draws the pictures of real rigs in the docs: ``python docs/real_pictures.py FOLDER``.

FOLDER holds a face as ICT-FaceKit publishes it (``faces/ict-facekit/ict-facekit-expressions.tar.xz``) and the hand of
A-Frame's assets (``poses/hand/leftHandHigh.glb``); neither comes with pliant.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from pictures import save

from pliant import Animation, Blendshapes, Mesh, Shapes, read_mesh, read_shapes, render

SKIN = 9409
"""Vertices of the face's skin, which come first."""


def lips(folder: Path) -> None:
    """A mouth closes, and is pressed shut beyond the pose that was modelled; the skin around it."""
    poses, path = [], folder / "faces/ict-facekit/ict-facekit-expressions.tar.xz"
    with tempfile.TemporaryDirectory() as unpacked, tarfile.open(path) as archive:
        for name in ("generic_neutral_mesh.obj", "jawOpen.obj"):
            member = next(m for m in archive.getmembers() if Path(m.name).name == name)
            file = archive.extractfile(member)
            assert file is not None
            (Path(unpacked) / name).write_bytes(file.read())
            poses.append(read_mesh(Path(unpacked) / name))
    triangles = poses[0].triangles[(poses[0].triangles < SKIN).all(axis=1)]
    skin = [Mesh(pose.points[:SKIN], triangles) for pose in poses]
    rig = Blendshapes(Shapes.of(skin, ["neutral", "jaw open"]))
    weights = np.array([[1 - t, t] for t in (0.6, 0.3, 0.15, 0, -0.15)])
    x, y, z = skin[0].points.T
    mouth = np.flatnonzero((np.abs(x) < 5) & (np.abs(y + 4) < 6) & (z > 5))
    free, touching = rig.animate(weights), rig.animate(weights, self_contact=True)
    cut = {"lips that pass through each other": cropped(free, mouth), "self-contact": cropped(touching, mouth)}
    save(render.contact_sheet(cut, frames=5, size=(230, 190), view=(25, 5), ground=False), "contact-lips.png")


def cropped(clip: Animation, vertices: np.ndarray) -> Animation:
    """The part of a clip's surface between some vertices."""
    number = np.full(clip.points.shape[1], -1)
    number[vertices] = np.arange(len(vertices))
    triangles = number[clip.shape.triangles]
    part = Mesh(clip.points[0, vertices], triangles[(triangles >= 0).all(axis=1)])
    return Animation(part, clip.points[:, vertices], fps=clip.fps)


def hand(folder: Path) -> None:
    """A hand of a game controller makes a fist."""
    shapes = read_shapes(folder / "poses/hand/leftHandHigh.glb")
    rig = Blendshapes(Shapes.of([shapes.named("Open"), shapes.named("Fist")], ["open", "fist"]))
    rows = {"free": rig.animate(rig.path(9)), "self-contact": rig.animate(rig.path(9), self_contact=True)}
    save(render.contact_sheet(rows, frames=5, size=(230, 210), view=(200, 20)), "contact-hand.png")


if __name__ == "__main__":
    for draw in (lips, hand):
        draw(Path(sys.argv[1]))

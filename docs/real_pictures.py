"""Draws the pictures of real rigs in the docs: ``python docs/real_pictures.py FOLDER``.

FOLDER holds a face as ICT-FaceKit publishes it (``faces/ict-facekit/ict-facekit-expressions.tar.xz``), the hand of
A-Frame's assets (``poses/hand/leftHandHigh.glb``), and the models that `FOUND` names; none of them comes with pliant.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from pictures import grid, save
from PIL import Image

from pliant import (
    Animation,
    Blendshapes,
    Material,
    Mesh,
    Motion,
    Shapes,
    Skeleton,
    gallery,
    read_mesh,
    read_motion,
    read_shapes,
    read_skeleton,
    render,
    rotations,
)  # fmt: skip
from pliant.engines.simulate.app.scene import ElasticScene
from pliant.engines.simulate.rod import Rod
from pliant.geometry.skeletons.curve_skeleton import extract_skeleton

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


FOUND = {
    "models/armadillo/arma2.obj": (180.0, 5.0),
    "models/elephant/elephant.obj": "front",
    "poses/horse/horse-ref.obj": (75.0, 8.0),
    "models/hand/hand.mesh": "front",
    "models/fox/Fox.glb": (60.0, 10.0),
    "models/octopus/octopus-low.mesh": "front",
}
"""Models whose skeletons are shown, and from where."""


def skeletons(folder: Path) -> None:
    """Skeletons found in meshes."""
    look = {"size": (290, 240), "ground": False, "color": "#d9c3ae"}
    pictures = []
    for name, view in FOUND.items():
        mesh = read_mesh(folder / name)
        bones = render.Extra(extract_skeleton(mesh), color="#b03020")
        pictures.append(render.picture(mesh, view=view, extra=[bones], **look))
    save(grid([pictures[:3], pictures[3:]]), "skeletons.png")


def rod(folder: Path) -> None:
    """A hand of the gallery's creature is pulled up, with three kinds of joints."""
    skeleton = gallery.creature_skeleton()
    place = skeleton.rest_pose().world()[0][skeleton.index("hand.L")]
    pictures = []
    for joints in (None, 0.02, "free"):
        found = Rod(skeleton, joints=joints).solve(handles={"hand.L": place + np.array([-0.2, 0.5, 0.2])})
        count, samples = found.positions.shape[:2]
        parents = np.tile(np.arange(-1, samples - 1), (count, 1)) + samples * np.arange(count)[:, None]
        parents[:, 0] = -1
        line = Skeleton.from_positions(found.positions.reshape(-1, 3), parents.ravel())
        pictures.append(render.picture(line, size=(290, 290), view=(15, 5), ground=False, color="#b03020"))
    save(grid([pictures]), "rod.png")


def bodies(folder: Path) -> None:
    """Real models on their bones: a dinosaur's found, an armadillo's from a file, and a rigged one by its own clip."""
    models = folder / "models"
    dino = read_mesh(models / "dino/dino.off")
    lying = rotations.from_axis_angle([1, 0, 0], -np.pi / 2)  # its z is up
    dino = dino.with_points(rotations.rotate(lying, dino.points))
    armadillo, trex = read_mesh(models / "armadillo/arma2.obj"), read_mesh(models / "dino/Trex.glb")
    bones = extract_skeleton(dino), read_skeleton(models / "armadillo/skeleton2.out")
    walk = read_motion(models / "dino/Trex.glb", clip="Walk")
    rows = []
    for mesh, motion, view in (
        (dino, shake(bones[0]), (60, 10)),
        (armadillo, shake(bones[1]), (20, 10)),
        (trex, walk, (70, 10)),
    ):
        scene = ElasticScene(mesh, motion.skeleton, motion, material=Material(2e5), gravity=9.81)
        clip = scene.run().clip
        rows.append(render.contact_sheet(clip, frames=5, columns=5, size=(230, 200), view=view, follow=True))
    picture = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)))
    for k, row in enumerate(rows):
        picture.paste(row, (0, sum(above.height for above in rows[:k])))
    save(picture, "simulate-real.png")


def shake(skeleton: Skeleton) -> Motion:
    """Bones turn to and fro about a slanted axis, later the farther out they are."""
    t = np.arange(31) / 30
    depth = np.zeros(len(skeleton))
    for j, parent in enumerate(skeleton.parents):
        depth[j] = 0 if parent < 0 else depth[parent] + 1
    swing = np.sin(3 * np.pi * t[:, None] - 1.5 * depth / depth.max()) * np.sin(np.pi * t)[:, None] ** 2
    angle = np.radians(80) / depth.max() * swing
    turns = rotations.from_axis_angle(np.broadcast_to([0.7, 0.5, 0.5], (*angle.shape, 3)), angle)
    places = np.tile(skeleton.offsets, (len(t), 1, 1))
    return Motion(skeleton, rotations.multiply(skeleton.rest_rotations, turns), places)


if __name__ == "__main__":
    for draw in (lips, hand, skeletons, rod, bodies):
        draw(Path(sys.argv[1]))

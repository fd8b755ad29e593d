"""Draws the pictures of the docs and the README from the built-in shapes: ``python docs/pictures.py [NAME ...]``."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from pliant import Animation, Blendshapes, ElasticBody, Material, Motion, Shapes, Skeleton, gallery, render, rotations
from pliant.app.demo import BODIES, EXHIBITS, TRANSFERS
from pliant.app.demo.bodies import sheet as body_sheet
from pliant.app.demo.exhibits import Exhibit
from pliant.app.demo.transfers import sheet
from pliant.app.report import Contact
from pliant.app.scene import examples, read_scene
from pliant.contact import MovingObstacle, Sphere
from pliant.core.rotations import IDENTITY

FOLDER = Path(__file__).parent / "images"
EXAMPLE_SCENES = Path(examples.__file__).parent


def save(image: Image.Image, name: str) -> None:
    """As a palette picture, which is a third of the size."""
    render.save(image.convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE, colors=255), FOLDER / name)


def grid(rows: list[list[Image.Image]]) -> Image.Image:
    """Pictures of one size, side by side and below each other."""
    width, height = rows[0][0].size
    sheet = Image.new("RGB", (width * max(map(len, rows)), height * len(rows)), "white")
    for y, row in enumerate(rows):
        for x, image in enumerate(row):
            sheet.paste(image, (x * width, y * height))
    return sheet


def overview() -> None:
    """The README's picture: three shapes on their way."""
    hand, face, gait = gallery.hand(), gallery.face(), gallery.animal_gait(frames=8)
    names = ("open", "pointing", "grip", "fist")
    rows = [(Shapes.of([hand.named(name) for name in names], names), (20, 10))]
    rows.append((Shapes.of([gait[k] for k in (0, 2, 4, 6)], [f"gallop {k}" for k in (1, 2, 3, 4)]), (60, 10)))
    names = ("neutral", "smile", "surprise", "wink")
    rows.append((Shapes.of([face.named(name) for name in names], names), (15, 5)))
    sheets = [render.contact_sheet(row, columns=4, size=(260, 220), view=view) for row, view in rows]
    save(grid([[sheet] for sheet in sheets]), "overview.png")


def tutorials() -> None:
    """Those that the tutorials draw themselves."""
    here = Path.cwd()
    for page in sorted((Path(__file__).parent / "tutorials").glob("*.md")):
        names: dict[str, object] = {}
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
                    exec(compile(code, str(page), "exec"), names)
                for picture in Path(folder).glob("tutorial-*.png"):
                    save(Image.open(picture), picture.name)
            finally:
                os.chdir(here)


def blend() -> None:
    """The README's other picture: a hand closes, linearly and as a body."""
    hand = gallery.hand(6000)
    rig = Blendshapes(Shapes.of([hand.named("open"), hand.named("fist")], ["open", "fist"]))
    weights = rig.path(5)
    rows = {"linear blending": rig.shapes.mixed(weights), "pliant": rig.animate(weights)}
    save(render.contact_sheet(rows, frames=5, size=(230, 210), view=(20, 10)), "blend.png")


def others() -> None:
    """Shapes without poses, and cages."""
    alone = [gallery.soup(), gallery.cloud(), gallery.tets(), gallery.robot()]
    pictures = [render.picture(shape, size=(280, 240)) for shape in alone]
    for name, shapes in (("hand", gallery.hand()), ("animal", gallery.animal()), ("creature", gallery.creature())):
        wires = render.Extra(gallery.cage(name), style="wire")
        pictures.append(render.picture(shapes[0], size=(280, 240), extra=[wires]))
    save(grid([pictures[:4], pictures[4:]]), "others.png")


def past_a_ball(shapes: Shapes, frames: int) -> Contact:
    """A ball that crosses the shape's way at half its height."""
    low, high = shapes.base.points.min(axis=0), shapes.base.points.max(axis=0)
    height = float(high[1] - low[1])
    ball = Sphere((low + high) / 2 + height * np.array([0.05, 0, 0]), 0.13 * height)
    shift = np.array([0, 0, 0.32 * height])
    keys = [(frame, tuple(at), tuple(IDENTITY)) for frame, at in ((0, shift), (frames - 1, -shift))]
    return Contact([MovingObstacle(ball, keys)], names=("ball",))


def contact() -> None:
    """Shapes in contact, beside what they do when nothing touches them."""
    grasp = next(exhibit for exhibit in EXHIBITS if exhibit.name == "grasp")
    stops = ("straight", "S")
    ball = Exhibit("ball", "", "", gallery.tentacle, stops, 2000, (60, 10), steps=13, meets=past_a_ball)
    for exhibit, name in ((grasp, "contact.png"), (ball, "contact-ball.png")):
        run = exhibit.run()
        rows = {"nothing touches it": run.rig.animate(run.weights), "pliant": run.clip}
        options = {"view": exhibit.view, "extra": run.contact.extras(run.clip)}
        save(render.contact_sheet(rows, frames=5, size=(230, 210), **options), name)


def transfer() -> None:
    """A transfer of the demo: the source, the target, and the target in its cage."""
    exhibit = next(exhibit for exhibit in TRANSFERS if exhibit.name == "robot-walk")
    run = exhibit.run()
    look = {"frames": 5, "size": (230, 210)}
    wires = [render.Extra(run.transfer.cage, style="wire")]
    rows = [sheet(exhibit, run, **look)]
    rows.append(render.contact_sheet({"cage": run.clip}, columns=5, view=exhibit.view, extra=wires, **look))
    picture = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)))
    for row, top in zip(rows, (0, rows[0].height), strict=True):
        picture.paste(row, (0, top))
    save(picture, "transfer.png")


def simulate() -> None:
    """The bodies of the demo beside skinning."""
    for exhibit, name in zip(BODIES, ("simulate.png", "elbow.png"), strict=True):
        save(body_sheet(exhibit, exhibit.run(), size=(230, 200)), name)


def muscles() -> None:
    """An example's arm without its biceps, and with it."""
    scene = read_scene(EXAMPLE_SCENES / "flexing_arm.toml", nodes=2000)
    rows = {"flesh alone": replace(scene, muscles=()).run().clip, "with a biceps": scene.run().clip}
    save(render.contact_sheet(rows, frames=4, columns=4, size=(310, 240), view=(10, 12)), "muscles.png")


def sliding() -> None:
    """A bar whose middle is twisted, with skin that sticks and with skin that slides."""
    mesh = gallery.cylinder(12_000, radius=0.6, height=4, rounding=0.3)
    angle = np.arctan2(mesh.points[:, 2], mesh.points[:, 0])
    stripe = (np.floor(6 * angle / np.pi) % 2)[:, None]
    colours = stripe * [0.35, 0.08, 0.05] + (1 - stripe) * [0.85, 0.6, 0.45]
    mesh = replace(mesh, attributes={"color": colours})
    bones = Skeleton.from_positions([[0, y, 0] for y in (-1.9, -0.6, 0.6, 1.9)], [-1, 0, 1, 2])
    turn = rotations.from_axis_angle([0.0, 1.0, 0.0], np.radians([0.0, 22.0, 45.0]))
    turns = np.repeat(bones.rest_rotations[None], 3, axis=0)
    turns[:, 1], turns[:, 2] = turn, rotations.inverse(turn)
    motion, rows = Motion(bones, turns, np.repeat(bones.offsets[None], 3, axis=0), 30.0), {}
    for name, skin in (("skin that sticks", 0.0), ("skin that slides", 0.12)):
        body = ElasticBody(mesh, bones, material=Material(sliding=skin), nodes=6000)
        rows[name] = Animation(mesh, np.stack([body.pose(pose).points for pose in motion]), 30.0)
    save(render.contact_sheet(rows, frames=3, columns=3, size=(260, 260), view=(20, 10)), "sliding.png")


def posed() -> None:
    """The poses of each shape of the gallery."""
    for name, columns in (
        ("hand", 3),
        ("creature", 5),
        ("dinosaur", 5),
        ("gingerbread", 3),
        ("tentacle", 5),
        ("bar", 3),
    ):
        shapes = getattr(gallery, name)()
        save(render.contact_sheet(shapes, columns=columns, size=(240, 200)), f"{name}.png")
    save(render.contact_sheet(gallery.animal(), columns=3, size=(280, 220), view=(60, 10)), "animal.png")
    save(render.contact_sheet(gallery.face(), columns=4, size=(240, 220), view=(15, 5)), "face.png")


def gallop() -> None:
    """A clip coloured by a measure."""
    gait = gallery.animal_gait()
    away = np.linalg.norm(gait.points - gait.points[0], axis=2) / gait.shape.diagonal
    options = {"values": away, "label": "distance from frame 0", "view": (60, 10)}
    save(render.contact_sheet(gait, frames=4, size=(280, 240), **options), "gallop.png")


PICTURES = {
    draw.__name__: draw
    for draw in (overview, blend, contact, transfer, simulate, muscles, sliding, others, posed, gallop, tutorials)
}


def main() -> None:
    """Draw those that are named, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()


if __name__ == "__main__":
    main()

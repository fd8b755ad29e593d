"""Draws the pictures of the docs and the README from the built-in shapes: ``python docs/pictures.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from pliant import gallery, render

FOLDER = Path(__file__).parent / "images"


def save(image: Image.Image, name: str) -> None:
    """As a palette picture, which is a third of the size."""
    render.save(image.convert("P", palette=Image.Palette.ADAPTIVE, colors=160), FOLDER / name)


def overview() -> None:
    """The README's picture: three shapes on their way."""
    hand, face, gait = gallery.hand(8000), gallery.face(8000), gallery.animal_gait(8000, frames=8)
    poses = [[hand.named(n) for n in ("open", "pointing", "grip", "fist")], [gait[k] for k in (0, 2, 4, 6)]]
    poses.append([face.named(n) for n in ("neutral", "smile", "surprise", "wink")])
    views = [(20, 10), (60, 10), (15, 5)]
    rows = [
        np.hstack([np.asarray(render.picture(shape, size=(300, 240), view=view)) for shape in row])
        for row, view in zip(poses, views, strict=True)
    ]
    save(Image.fromarray(np.vstack(rows)[..., :3]), "overview.png")


def main() -> None:
    """Draw them all."""
    FOLDER.mkdir(exist_ok=True)
    overview()
    sheet = render.contact_sheet
    save(sheet(gallery.hand(8000), columns=3, size=(300, 240)), "hand.png")
    save(sheet(gallery.animal(8000), columns=3, size=(300, 240), view=(60, 10)), "animal.png")
    save(sheet(gallery.face(8000), columns=4, size=(240, 240), view=(15, 5)), "face.png")
    gait = gallery.animal_gait(8000)
    away = np.linalg.norm(gait.points - gait.points[0], axis=2) / gait.shape.diagonal
    label = "distance from frame 0"
    save(sheet(gait, frames=4, size=(280, 240), values=away, label=label, view=(60, 10)), "gallop.png")


if __name__ == "__main__":
    main()

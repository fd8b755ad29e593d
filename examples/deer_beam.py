"""A cable's motion bends a carved beam (Figure 1 of Chen et al. 2010).

The source is a cable with material frames at five places, as a rod simulation gives them; here it is a curve that bends
and twists. The target is a beam with a deer standing on it: two meshes that do not touch, in one cage.

    python examples/deer_beam.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import pliant
from pliant import Control, Follow, gallery, rotations

LENGTH, FRAMES, STATIONS = 4.0, 24, 5


def cable() -> dict[str, pliant.Track]:
    """Places and material frames along a cable from z = 0, which swings, sags and twists."""
    s = np.linspace(0, LENGTH, 81)
    places, frames = np.zeros((FRAMES, len(s), 3)), np.zeros((FRAMES, len(s), 4))
    for k, phase in enumerate(np.linspace(0, 2 * np.pi, FRAMES)):
        swell = (1 - np.cos(phase)) / 2
        rate = np.stack([0.45 * swell + 0 * s, 0.25 * np.sin(phase) * s / LENGTH, 0.35 * swell + 0 * s], axis=1)
        q = rotations.IDENTITY
        for i in range(len(s)):
            frames[k, i] = q
            if i:
                places[k, i] = places[k, i - 1] + rotations.rotate(q, [0, 0, s[i] - s[i - 1]])
            q = rotations.multiply(q, rotations.exp(rate[i] * (s[1] - s[0])))
    at = np.linspace(4, 76, STATIONS).astype(int)
    straight = np.stack([0 * s[at], 0 * s[at], s[at]], axis=1)
    upright = np.broadcast_to(np.eye(3), (STATIONS, 3, 3))
    return pliant.rod_tracks(places[:, at], frames[:, at], rest=(straight, upright), fps=12, name="cable")


def beam() -> pliant.Mesh:
    """A beam along z with a deer on it."""
    bar = gallery.box(2000, size=(0.5, 0.4, LENGTH))
    deer = gallery.animal(6000).base
    standing = deer.points * 0.8
    standing += np.array([0, 0.2, LENGTH / 2]) - [0, standing[:, 1].min() - 0.03, standing[:, 2].mean()]
    points = np.concatenate([bar.points + np.array([0, 0, LENGTH / 2]), standing])
    return pliant.Mesh(points, [*bar.polygons, *(face + len(bar.points) for face in deer.polygons)])


def main(folder: Path) -> pliant.Transfer:
    """Transfer, and write the clip and a picture of it."""
    tracks, target = cable(), beam()
    controls = [Control(track.rest, track) for track in tracks.values()]
    ends = [controls[0], controls[-1]]
    follow = [Follow(end.at, end.track, scale=1.0) for end in ends]
    moved = pliant.transfer(tracks, target, "auto", controls, follow=follow)
    pliant.write(folder / "deer_beam.glb", moved.clip)
    sheet = pliant.render.contact_sheet({"deer beam": moved.clip}, frames=6, view=(70, 15))
    sheet.save(folder / "deer_beam.png")
    return moved


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))

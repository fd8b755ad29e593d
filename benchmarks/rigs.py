"""Rigged files as they come: ``pliant simulate FILE`` against the file's own linear blend skinning, frame by frame.

    python benchmarks/rigs.py FOLDER-OR-FILES... [--clip N] [--frames 24] [--pictures DIR] [-- OPTIONS OF SIMULATE]

stretch: the longest any edge gets, over its length at rest, of the simulation and of the file's skinning (edges of at
least a thousandth of the diagonal). over: the largest of their quotients at the same frame, where an edge that skinning
shortens counts as it is at rest. distance: how far the farthest vertex is from where the skinning has it, and the mean
of all, over the diagonal. volume: least and largest, over that at rest. With --pictures, each file gets a contact sheet
from three sides: skinning above, flesh below.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

import pliant
from pliant import render

LEAST_EDGE = 1e-3
VIEWS = ("front", "side", "top")
ROW = "{:16} {:>4} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}-{:<5} {:>4} {:>5}  {}"


def main() -> None:
    words = sys.argv[1:]
    own, extra = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--clip", type=int, default=0)
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args(own)
    files = [one for given in options.files for one in (sorted(given.rglob("*.glb")) if given.is_dir() else [given])]
    print(ROW.format("", "exit", "", "", "", "far-", "", "", "", "in-", "", ""))
    print(ROW.format("file", "code", "strtch", "skin's", "over", "thest", "mean", "vol.", "ume", "vert", "s", "said"))
    for file in files:
        print(measured(file, options.clip, options.frames, options.pictures, extra), flush=True)


def measured(file: Path, clip: int, frames: int, pictures: Path | None, extra: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out, begun = Path(folder) / "out.npz", time.perf_counter()
        count = min(frames, moves(file, clip))
        span = ["--clip", str(clip), "--frames", f"0:{count - 1}"] if count > 1 else ["--hold", "0.5"]
        command = [sys.executable, "-m", "pliant", "simulate", str(file), "-o", str(out), "--json", *span, *extra]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begun
        said = " | ".join(line for line in done.stderr.splitlines() if line.strip())
        if not out.exists():
            return f"{file.stem:16} {done.returncode:4}  {said}"
        flesh, figures = pliant.read_animation(out), json.loads(done.stdout)
        skin = skinned(file, clip, flesh)
        if pictures is not None:
            draw(flesh, skin, pictures / f"{file.stem}.png")
    volume = [frame["volume"] for frame in figures["frames"]]
    inverted = max(frame["inverted"] for frame in figures["frames"])
    edges = flesh.shape.edges
    long = edges[lengths(flesh.shape.points, edges) > LEAST_EDGE * flesh.shape.diagonal]
    rest = lengths(flesh.shape.points, long)
    mine, theirs = (np.stack([lengths(points, long) / rest for points in clip]) for clip in (flesh.points, skin))
    away = np.linalg.norm(flesh.points - skin, axis=2) / flesh.shape.diagonal
    over = (mine / np.maximum(theirs, 1)).max()
    numbers = f"{mine.max():.2f}", f"{theirs.max():.2f}", f"{over:.2f}", f"{away.max():.1%}", f"{away.mean():.1%}"
    return ROW.format(
        file.stem, done.returncode, *numbers, f"{min(volume):.2f}", f"{max(volume):.2f}", inverted, f"{seconds:.0f}",
        said[:120],
    )  # fmt: skip


def lengths(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)


def moves(file: Path, clip: int) -> int:
    try:
        return len(pliant.read_motion(file, clip=clip))
    except pliant.PliantError:
        return 0


def skinned(file: Path, number: int, flesh: pliant.Animation) -> np.ndarray:
    """(frames, n, 3) the file's own clip at the frames of the simulation; at rest, if it has none."""
    if not moves(file, number):
        return np.broadcast_to(flesh.shape.points, flesh.points.shape)
    clip = pliant.read_animation(file, clip=number).resampled(flesh.fps)
    return clip.points[: len(flesh.points)]


def draw(flesh: pliant.Animation, skin: np.ndarray, path: Path) -> None:
    rows = []
    for view in VIEWS:
        for points in (skin, flesh.points):
            clip = pliant.Animation(flesh.shape, points, flesh.fps)
            rows.append(render.contact_sheet(clip, frames=6, columns=6, size=(240, 200), view=view))
    sheet = Image.new("RGB", (max(row.width for row in rows), sum(row.height for row in rows)))
    top = 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)


if __name__ == "__main__":
    main()

"""Clips as skins (`pliant.skin`): error, size, time, and the same bones by py-dem-bones where it is installed.

    python benchmarks/skinning.py [--data /path/to/shared/data] [--vertices 8000] [--frames 100]

Errors are root mean squares over the diagonal. "bones" is without correctives, which py-dem-bones does not have. Sizes
are of .glb files, against one morph target a frame. Times are of the processor, in one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("PLIANT_NUM_THREADS", "1")

import numpy as np

import pliant
from pliant import gallery


def clips(data: Path | None, vertices: int, frames: int) -> Iterator[tuple[str, pliant.Animation]]:
    """Name and clip: the gallop, the hand, a face; with real data, the armadillo that walks as a person does."""
    yield "gallop", gallery.animal_gait(vertices, frames)
    yield "hand", pliant.Blendshapes(gallery.hand(vertices)).animate(steps=frames)
    face = gallery.face(vertices)
    keys = np.clip(np.random.default_rng(0).normal(0, 0.6, (11, len(face))), 0, 1)
    weights = np.stack([np.interp(np.linspace(0, 10, frames), np.arange(11), key) for key in keys.T], axis=1)
    weights[:, 0] = 1 - weights[:, 1:].sum(axis=1)
    yield "face", pliant.Blendshapes(face).animate(weights)
    if data is not None:
        from pliant.app.cli import main

        with tempfile.TemporaryDirectory() as folder:
            walk = str(Path(folder, "walk.npz"))
            mesh, motion = data / "cages/armadillo/armadilloman.obj", data / "mocap/cmu/16_05.bvh"
            with contextlib.suppress(SystemExit):
                main(["simulate", str(mesh), "--motion", str(motion), "--nodes", "600", "-o", walk, "--quiet"])
            clip = pliant.read_animation(walk)
        yield "armadillo", pliant.Animation(clip.shape, clip.points[:frames], clip.fps)


def peer_error(clip: pliant.Animation, bones: int) -> tuple[float, float]:
    """Error and seconds of py-dem-bones; NaN if it is not installed."""
    try:
        import py_dem_bones
    except ImportError:
        return np.nan, np.nan
    start = time.process_time()
    rest = clip.shape.points
    faces = [list(map(int, face)) for face in clip.shape.polygons]
    found = py_dem_bones.solve_skinning(rest, clip.points, bones, faces=faces, max_influences=4)
    taken = time.process_time() - start
    flat = np.concatenate([rest, np.ones((len(rest), 1))], axis=1)
    moved = np.einsum("bn,fbij,nj->fni", found.weights, found.transforms[:, :, :3], flat, optimize=True)
    return float(np.sqrt(((moved - clip.points) ** 2).sum(axis=-1).mean()) / clip.shape.diagonal), taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of real models")
    parser.add_argument("--vertices", type=int, default=8000)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--bones", type=int, default=40)
    options = parser.parse_args()
    print("clip       vertices    error    bones     peer   size quantised      s peer s")
    for name, clip in clips(options.data, options.vertices, options.frames):
        start = time.process_time()
        skinned = pliant.skin(clip, bones=options.bones)
        taken = time.process_time() - start
        plain = pliant.skin(clip, bones=options.bones, correctives=0).error
        peer, peer_taken = peer_error(clip, options.bones)
        with tempfile.TemporaryDirectory() as folder:
            sizes = [
                pliant.write(Path(folder, "clip.glb"), content, quantize=quantize)[0].stat().st_size
                for content, quantize in ((clip, False), (skinned, False), (skinned, True))
            ]
            back = pliant.read_animation(Path(folder, "clip.glb"))
        error = float(np.sqrt(((back.points - clip.points) ** 2).sum(axis=-1).mean()) / clip.shape.diagonal)
        print(
            f"{name:10} {len(clip.shape.points):8} {error:8.3%} {plain:8.3%} {peer:8.3%} {sizes[1] / sizes[0]:6.1%} "
            f"{sizes[2] / sizes[0]:9.1%} {taken:6.1f} {peer_taken:6.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

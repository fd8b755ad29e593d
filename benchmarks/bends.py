"""How blends bend: dihedral angles halfway between two poses, against the mean of both, beside a Poisson blend.

"Poisson" interpolates each triangle's rotation (unwrapped as the engine's are) and stretch, and puts the triangles
together by one Poisson solve with cotangent weights; "guess" is what ``pliant`` starts from, one Poisson solve over its
springs. Volume and edge lengths are compared with the means, as in ``benchmarks/alternatives.py``. The last column is
the 99th percentile of ``pliant`` over that of "Poisson": 1 or less is the goal. Pairs are the gallery's and, where they
are beside the checkout, those in ``../shared/data``; arguments choose some by name.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from alternatives import cotangents, frames_of

from pliant import Blendshapes, Mesh, Shapes, gallery, linalg, quality, read_animation, read_mesh, read_shapes
from pliant.core import rotations
from pliant.engines.blend.body import nearest_branch

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZE = 2500
GALLERY = {
    "bar": ["bent 180", "twisted 270", "bent 180 twisted 180"],
    "gingerbread": ["bowing", "splits", "sitting"],
    "face": ["laugh", "surprise", "wide open"],
    "hand": ["fist", "thumb up"],
    "tentacle": ["curled", "S"],
    "tube": ["bent 180"],
    "animal": ["gallop 3"],
    "creature": ["flexing", "stomping"],
    "dinosaur": ["roaring", "running"],
}
FILES = {
    "cat": ["cat-ref.obj", "cat-01.obj", "cat-05.obj", "cat-07.obj", "cat-09.obj"],
    "horse": ["horse-ref.obj", "horse-01.obj", "horse-03.obj", "horse-05.obj", "horse-09.obj"],
    "cactus": ["cactus0.ply", "cactus5.ply", "cactus14.ply", "cactus16.ply", "cactus17.ply"],
    "camel-dino": ["camel.obj", "dino.obj"],
    "plate": ["plate121.ply", "plate121_rolledA.ply", "plate121_rolledB.ply"],
}
RIGS = {"hand/leftHandHigh": (1, 4), "morph-glb/Flamingo": (7,), "morph-glb/Horse": (8,), "morph-glb/Parrot": (6,)}
CLIPS = {"horse-gallop/horse-gallop.tar.xz": 10, "man-crane/crane.tar.xz": 8}


def pairs() -> Iterator[tuple[str, Mesh, Mesh]]:
    """Poses to blend."""
    poses = DATA / "poses"
    if poses.is_dir():
        for folder, (first, *others) in FILES.items():
            base = read_mesh(poses / folder / first)
            yield from ((Path(other).stem, base, read_mesh(poses / folder / other)) for other in others)
        rolled = (read_mesh(poses / "plate" / f"plate121_rolled{way}.ply") for way in "AB")
        yield "plate rolled crosswise", *rolled
        for name, frame in CLIPS.items():
            clip = read_animation(poses / name)
            yield Path(name).parent.name, *(clip.shape.with_points(clip.points[k]) for k in (0, frame))
        for name, numbers in RIGS.items():
            shapes = read_shapes(poses / f"{name}.glb")
            yield from (
                (f"{Path(name).name} {k}", shapes.base, shapes.base.with_points(shapes.points[k])) for k in numbers
            )
        yield "cheburashka", *(read_mesh(DATA / f"models/cheburashka/poses/cheburashka-0{k}.obj") for k in (1, 2))
    for name, targets in GALLERY.items():
        shapes = getattr(gallery, name)(SIZE)
        yield from ((f"{name}, {target}", shapes.base, shapes.named(target)) for target in targets)


def poisson(rig: Blendshapes, w: np.ndarray) -> np.ndarray:
    """(n, 3) the Poisson blend of the triangles' rotations and stretches."""
    mesh, body = rig._weld.mesh, rig.body
    triangles, n = mesh.triangles, len(mesh.points)
    base = body.points[0, :n]
    inverse = np.linalg.pinv(frames_of(base, triangles))
    stretch, rotvecs = np.zeros_like(inverse), np.zeros((len(triangles), 3))
    for s, weight in enumerate(w):
        F = frames_of(body.points[s, :n], triangles) @ inverse
        R = rotations.polar(F)
        stretch += weight * (R.transpose(0, 2, 1) @ F)
        short = rotations.log(rotations.shortest(rotations.quaternion(R)))
        rotvecs += weight * nearest_branch(short, body.rotvecs[s][triangles].mean(axis=1))
    F = rotations.matrix(rotations.exp(rotvecs)) @ stretch
    i, j = triangles.ravel(), triangles[:, [1, 2, 0]].ravel()
    k = cotangents(base, triangles).ravel()
    wanted = np.einsum("tij,tkj->tki", F, base[triangles[:, [1, 2, 0]]] - base[triangles]).reshape(-1, 3)
    h = len(i)
    D = sp.csr_array((np.r_[-np.ones(h), np.ones(h)], (np.r_[:h, :h], np.r_[i, j])), (h, n))
    fixed = body.network.fixed[:n].copy()
    fixed[np.unique(mesh.parts, return_index=True)[1]] = True
    hold = sp.diags_array(np.where(fixed, 1e6 * k.mean(), 0.0)).tocsr()
    L = (D.T @ sp.diags_array(k) @ D + hold).tocsr()
    x = linalg.factorize(L).solve(D.T @ (k[:, None] * wanted) + hold @ body.linear(w)[:n])
    return rig.statics.surface(np.concatenate([x, body.guess(w)[n:]]), w)


def main() -> None:
    warnings.simplefilter("ignore")
    w = np.array([0.5, 0.5])
    columns = f"{'volume':>8} {'edges, mean':>12} {'99th':>7} {'bends, 99th':>12} {'over Poisson':>13}"
    print(f"{'halfway':24} {'method':10} {columns}")
    for name, base, other in pairs():
        if len(sys.argv) > 1 and not any(part in name for part in sys.argv[1:]):
            continue
        both = Shapes.of([base, other])
        rig = Blendshapes(both)
        found = {
            "linear": (base.points + other.points) / 2,
            "Poisson": poisson(rig, w),
            "guess": rig.statics.surface(rig.body.guess(w), w),
            "pliant": rig.solve(w).points,
        }
        reference = np.nan
        for method, points in found.items():
            strain = np.abs(quality.edge_distortion(both, points, weights=w) - 1)
            bend = np.quantile(np.degrees(np.abs(quality.dihedral_deviation(both, points, weights=w))), 0.99)
            volume = 2 * base.with_points(points).volume / (base.volume + other.volume)
            reference = bend if method == "Poisson" else reference
            row = f"{volume:8.1%} {strain.mean():12.2%} {np.quantile(strain, 0.99):7.1%} {bend:11.2f}°"
            print(f"{name:24} {method:10} {row} {bend / reference:13.2f}", flush=True)


if __name__ == "__main__":
    main()

"""Whole files of everything that pliant reads, to be broken: built here, and taken from the real data where it is."""

from __future__ import annotations

import io
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pliant
from pliant import Animation, Mesh, Motion, PointCloud, Shapes, Skeleton, TetMesh
from pliant.io import BY_SUFFIX

POINTS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]])
PYRAMID = Mesh(POINTS, [[3, 2, 1, 0], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])
BONES = Skeleton.from_positions(POINTS, [-1, 0, 1, 2, 2])
TETS = TetMesh(POINTS, np.array([[0, 1, 2, 4], [0, 2, 3, 4]]))
CONTENT = {
    ".obj": PYRAMID, ".ply": PYRAMID, ".stl": PYRAMID, ".off": PYRAMID, ".npz": PYRAMID,
    ".mesh": TETS, ".vtk": TETS, ".vtu": TETS, ".msh": TETS, ".xyz": PointCloud(POINTS),
    ".glb": Animation(PYRAMID, np.stack([POINTS, POINTS + 1])),
    ".gltf": Shapes(PYRAMID, np.stack([POINTS, POINTS + 1]), ("rest", "up")),
    ".usda": PYRAMID, ".usdc": PYRAMID, ".usdz": PYRAMID,
    ".abc": Animation(PYRAMID, np.stack([POINTS, POINTS + 1])),
    ".pc2": Animation(PointCloud(POINTS), np.stack([POINTS, POINTS + 1])),
    ".mdd": Animation(PointCloud(POINTS), np.stack([POINTS, POINTS + 1])),
    ".bvh": Motion(BONES, np.tile([1.0, 0, 0, 0], (3, 5, 1)), np.repeat(BONES.offsets[None], 3, axis=0)),
    ".tgf": BONES, ".json": BONES,
    ".out": "0 0 0 0 -1\n1 1 0 0 0\n2 1 1 0 1\n3 0 1 0 2\n4 0.5 0.5 1 2\n",
    ".target": "# offsets of a smile\n0 0.25 0 -0.125\n3 0.0625 1.5e-3 0\n4 -1 0 0.5\n",
}  # fmt: skip
"""A small content for each suffix, or the text itself where pliant does not write the format."""

LARGEST = 100_000
"""Bytes of a real file that is worth mutating."""
MOST_OF_A_FORMAT = 6

TEXTS = {
    "ascii.stl": "solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\n"
    "endloop\nendfacet\nendsolid s\n",
    "ascii.ply": "ply\nformat ascii 1.0\ncomment c\nelement vertex 3\n"
    "property float x\nproperty float y\nproperty float z\n"
    "property uchar red\nproperty uchar green\nproperty uchar blue\n"
    "element face 1\nproperty list uchar int vertex_indices\n"
    "end_header\n0 0 0 255 0 0\n1 0 0 0 255 0\n0 1 0 0 0 255\n3 0 1 2\n",
    "rich.obj": "mtllib rich.mtl\no part\ng a b\nv 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 1 1 0 0 0 1\nv 0 1 0 1 1 1\n"
    "vt 0 0\nvt 1 0\nvn 0 0 1\nusemtl red\ns 1\nf 1/1/1 2/2/1 3/1/1 4/2/1\nf -4 -3 \\\n -2\nl 1 2\n",
    "old.off": "OFF\n# comment\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2 0.5 0.5 0.5\n",
}
"""What pliant reads but does not write so."""
LIBRARY = b"newmtl red\nKd 1 0 0\nmap_Kd missing.png\nd 0.5\n"

WEIGHTS = {
    "table.csv": "frame,open,fist\n0,1,0\n1,0.5,0.5\n2,0,1\n",
    "rows.json": '{"weights": [{"fist": 1}, {"fist": 0.5}]}',
}
PINS = {"pins.txt": "0, 3\n7  # thumb\n", "pins.json": '{"vertices": [3, 1], "path": [[[0, 0, 0], [1, 1, 1]]]}'}

SCENES = {
    "blend.toml": 'engine = "blend"\nframes = 3\nweights = [{}, { b = 1.0 }]\n[shapes]\nfiles = ["a.obj", "b.obj"]\n'
    '[[obstacles]]\nwhat = "sphere:0,0,3,0.3"\n[output]\nfile = "out.glb"\n',
    "elastic.toml": 'engine = "simulate"\nnodes = 60\ngravity = 9.81\n[shape]\nfile = "a.obj"\n[skeleton]\n'
    'joints = [{ name = "root", at = [0.5, 0.5, 0.1] }, { name = "tip", at = [0.5, 0.5, 0.6], parent = "root" }]\n'
    "[material]\nyoung = 1e5\n",
    "cage.toml": 'engine = "transfer"\nframes = 2\n[target]\nfile = "a.obj"\n[cage]\nfile = "cage.obj"\n[[gradients]]\n'
    "at = [0.5, 0.5, 0.5]\nturn = { axis = [0, 1, 0], degrees = 30 }\n[[positions]]\nat = [0.5, 0.5, 0.2]\n",
}


@dataclass(frozen=True)
class Seed:
    """A whole file: which row of the table it counts in, its name, its bytes, and how it is read."""

    row: str
    name: str
    data: bytes
    role: str = "model"
    """"model", "weights", "pins" or "scene"."""


def build(folder: Path, data: Path | None) -> dict[str, list[Seed]]:
    """The seeds by row, written to `folder` with what they refer to; `data` is where the real files are."""
    folder.mkdir()
    (folder / "rich.mtl").write_bytes(LIBRARY)
    pliant.write(folder / "a.obj", PYRAMID)
    pliant.write(folder / "b.obj", PYRAMID.with_points(POINTS * [1, 1, 2]))
    pliant.write(folder / "cage.obj", PYRAMID.with_points((POINTS - [0.5, 0.5, 0.3]) * 3 + [0.5, 0.5, 0.3]))
    seeds: dict[str, list[Seed]] = {}

    def add(row: str, name: str, content: bytes, role: str = "model") -> None:
        seeds.setdefault(row, []).append(Seed(row, name, content, role))

    for suffix, content in CONTENT.items():
        path = folder / f"built{suffix}"
        if isinstance(content, str):
            path.write_text(content)
        else:
            pliant.write(path, content)
        add(suffix, path.name, path.read_bytes())
    for name, text in TEXTS.items():
        add(Path(name).suffix, name, text.encode())
    for row, texts in (("weights", WEIGHTS), ("pins", PINS), ("scene", SCENES)):
        for name, text in texts.items():
            add(row, name, text.encode(), row)
    add("archive", "built.zip", _zipped({"a.obj": seeds[".obj"][0].data, "b.obj": seeds[".obj"][0].data}))
    add("archive", "built.tar.gz", _tarred({"a.obj": seeds[".obj"][0].data, "b.obj": seeds[".obj"][0].data}))
    for path in _real_files(data) if data else []:
        add(path.suffix.lower(), f"real-{path.name}", path.read_bytes())
    return seeds


def _real_files(data: Path) -> list[Path]:
    """Small real files, a few of each format, from the smallest to the largest."""
    found: dict[str, list[Path]] = {}
    for path in sorted(data.rglob("*"), key=lambda path: (path.stat().st_size, path)):
        if path.is_file() and path.suffix.lower() in BY_SUFFIX and path.stat().st_size <= LARGEST:
            found.setdefault(path.suffix.lower(), []).append(path)
    return [p for paths in found.values() for p in paths[:: max(1, -(-len(paths) // MOST_OF_A_FORMAT))]]


def _zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def _tarred(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()

"""Every file of the real data reads, or says in one line why it cannot."""

import warnings

import numpy as np
import pytest

import pliant
from conftest import DATA
from pliant import Animation, FileError, Mesh, PliantWarning
from pliant.io import read
from sweeps import every

pytestmark = pytest.mark.data

REASONS = {
    ".dmat": 'unknown format ".dmat"',
    ".tmat": 'unknown format ".tmat"',
    ".txt": 'unknown format ".txt"',
    ".md": 'unknown format ".md"',
    ".tsv": 'unknown format ".tsv"',
    ".target": "give the mesh they apply to",
}
BY_NAME = {
    "attachment2.out": "a skeleton has five",
    "knight.json": "is JSON but no skeleton",
    "cheburashka-01.json": "is JSON but no skeleton",
    "cheburashka-02.json": "is JSON but no skeleton",
}
FILES = sorted(p for p in DATA.rglob("*") if p.is_file()) if DATA.is_dir() else []
READ_AS_SHAPES = ("ict-facekit-expressions.tar.xz",)
"""Large, and read by another test, too."""
TARGETS = [p for p in FILES if p.suffix == ".target"]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, id=p.name, marks=[pytest.mark.slow] * (p.name in READ_AS_SHAPES))
        for p in FILES
        if p not in TARGETS[1:]
    ],
)
def test_every_file_reads_or_says_why(data, path):
    reason = BY_NAME.get(path.name, REASONS.get(path.suffix.lower()))
    if reason:
        with pytest.raises(FileError, match=reason) as caught:
            read(path)
        assert "\n" not in str(caught.value)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PliantWarning)
        content = read(path)
    if isinstance(content, (Mesh, Animation)):
        shape = content.shape if isinstance(content, Animation) else content
        assert np.isfinite(content.points).all()
        assert len(shape.points) > 0


@pytest.mark.parametrize(
    ("path", "count", "first"),
    [
        pytest.param(
            "faces/ict-facekit/ict-facekit-expressions.tar.xz", 58, "generic_neutral_mesh", marks=pytest.mark.slow
        ),
        ("faces/spacetime", 3, "neutral"),
        ("poses/cat", 5, "cat-ref"),
        ("poses/hand/leftHandHigh.glb", 8, None),
        ("poses/morph-glb/Horse.glb", 16, None),
    ],
)
def test_rigs_read_as_shapes(data, path, count, first):
    shapes = pliant.read_shapes(data / path)
    assert len(shapes) == count
    assert first in (None, shapes.names[0])


def test_sparse_targets_of_a_real_rig(data):
    shapes = pliant.read_shapes(data / "faces/makehuman/units-caucasian", base=data / "faces/makehuman/base.obj")
    moved = (np.abs(shapes.points[1:] - shapes.base.points).max(axis=2) > 0).sum(axis=1)
    assert len(moved) == 34
    assert moved.min() >= 40
    assert moved.max() <= 1344


@pytest.mark.parametrize(
    ("path", "vertices", "faces"),
    [
        ("poses/cat/cat-ref.obj", 7207, 14410),
        ("poses/horse/horse-ref.obj", 8431, 16843),
        ("cages/ogre/Ogre_Cage.obj", 118, 129),
        ("faces/makehuman/base.obj", 19158, 18486),
        ("models/dino/dino.off", 3916, 7828),
        ("models/knight/knight.ply", 2002, 4000),
        ("models/hand/hand.mesh", 7234, 9556),
        ("models/fox/Fox.glb", 1728, 576),
        ("models/dino/Trex.glb", 3496, 1820),
    ],
)
def test_counts_are_those_of_the_manifest(data, path, vertices, faces):
    mesh = pliant.read_mesh(data / path)
    assert (len(mesh.points), len(mesh.polygons)) == (vertices, faces)


@pytest.mark.parametrize(
    ("path", "welded"),
    [("models/fox/Fox.glb", 290), ("models/dino/Trex.glb", 912), ("poses/hand/leftHandHigh.glb", 1162)],
)
def test_split_exports_weld_to_closed_surfaces(data, path, welded):
    weld = pliant.read_mesh(data / path).welded()
    assert len(weld.mesh.points) == welded
    assert weld.mesh.is_watertight


@pytest.mark.parametrize("suffix", every(4, [".glb", ".npz", ".pc2", ".obj"]))
def test_the_gallop_survives(data, tmp_path, suffix):
    clip = pliant.read_animation(data / "poses/horse-gallop/horse-gallop.tar.xz")
    clip = Animation(clip.shape, clip.points[:6], clip.fps)
    pliant.write(tmp_path / f"gallop{suffix}", clip)
    path = tmp_path / f"gallop{suffix}" if suffix != ".obj" else tmp_path / "gallop_*.obj"
    back = pliant.read_animation(path)
    assert np.abs(back.points - clip.points).max() < 1e-6 * clip.shape.diagonal

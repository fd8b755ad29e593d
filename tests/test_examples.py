"""The examples run, write what they say, and meet their controls: 5 degrees and 5 %, lengths within 2 %."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.app.cli import main

FOLDER = Path(__file__).resolve().parents[1] / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, *arguments: object) -> Any:
    return load(name).main(*arguments)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_an_example_names_what_is_there(name: str) -> None:
    if name == "learn_deformer":
        pytest.importorskip("torch")
    assert callable(load(name).main)


def check(moved: pliant.Transfer, folder: Path, name: str) -> None:
    assert moved.converged
    assert np.mean([solution.iterations for solution in moved.solutions[1:]]) < 5
    for solution in moved.solutions:
        assert solution.gradient_angles.max() < 5
        assert solution.gradient_strains.max() < 0.05
        assert np.abs(solution.length_errors).max(initial=0) < 0.02
        assert solution.position_errors.max() < 0.01
    clip = pliant.read_animation(folder / f"{name}.glb")
    assert len(clip) == len(moved)
    assert (folder / f"{name}.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deer_beam", "robot_jump", "bubble_man", "mosaic_horse"])
def test_an_example_meets_its_controls(name: str, tmp_path: Path) -> None:
    check(run(name, tmp_path), tmp_path, name)


@pytest.mark.slow
def test_a_creature_shakes_itself_and_settles(tmp_path: Path) -> None:
    clip = run("shaking_creature", tmp_path, 1200, 700)
    assert clip.converged
    assert np.abs(clip.measured("volume") - 1).max() < 0.05
    assert clip.measured("inverted").max() == 0
    kinetic = clip.measured("kinetic")
    assert kinetic[-1] < 0.01 * kinetic.max()
    assert len(pliant.read_animation(tmp_path / "shaking_creature.glb")) == len(clip)
    assert (tmp_path / "shaking_creature.png").stat().st_size > 10_000


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("name", "files"), [("bubble_man", ("02_01", "09_01")), ("robot_jump", ("16_05",))])
def test_captured_motions_drive_the_figures(name: str, files: tuple[str, ...], data: Path, tmp_path: Path) -> None:
    check(run(name, tmp_path, *(str(data / f"mocap/cmu/{file}.bvh") for file in files)), tmp_path, name)


@pytest.mark.slow
def test_a_network_learns_what_sliders_alone_cannot(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("zarr")
    pliant.write(tmp_path / "rig.npz", pliant.gallery.hand(1000))
    with pytest.raises(SystemExit):
        main(
            ["sample", str(tmp_path / "rig.npz"), "--poses", "256", "-o", str(tmp_path / "set.zarr"), "--workers", "0"]
        )
    found = run("learn_deformer", str(tmp_path / "set.zarr"), 60)
    assert found["network mean"] < 0.5 * found["linear mean"]

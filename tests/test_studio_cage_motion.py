"""The studio's cage panel without a browser: shapes that follow motions, files, and wishes that come together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pliant
from cage_window import BAR, BY_HAND, BY_MOTION, Window, filled
from fake_viser import all_done, do
from pliant import gallery, rotations
from pliant.core.shapes import World
from pliant.engines.transfer.app.panel_document import by_hand
from pliant.engines.transfer.app.panel_motion import SourcesBeside


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("cages"))


@pytest.fixture
def window(folder: Path) -> Iterator[Window]:
    made = Window(folder, BY_HAND)
    made.rest()
    yield made
    made.session.close()


@pytest.fixture
def moving(folder: Path) -> Iterator[Window]:
    made = Window(folder, BY_MOTION)
    made.rest()
    made.session.timeline.stop()
    yield made
    made.session.close()


# Following a motion


def test_the_shape_follows_a_motion_that_plays_beside_it(moving: Window) -> None:
    ran = moving.ran()
    timeline = moving.session.timeline
    assert timeline.count == len(ran) == 5
    for frame in (2, 4):
        do(moving.session, "scrub", frame)
        assert np.array_equal(moving.panel.drawn.points, ran[frame])
    source = moving.client.scene["/cage/sources/curl"].vertices
    target = moving.client.scene["/cage/target"].vertices
    assert source[:, 0].max() < target[:, 0].min()
    sizes = [np.linalg.norm(np.ptp(points, axis=0)) for points in (source, target)]
    assert 0.4 < sizes[0] / sizes[1] < 1.6
    assert "all" in moving.panel.controls._pieces.content
    assert len(moving.client.scene["/cage/pieces"].batched_positions) == 3  # of two controls one follows nothing


def test_a_motion_with_z_up_stands_upright_beside_the_shape() -> None:
    walk = gallery.creature_walk()
    turn = rotations.from_axis_angle([1.0, 0.0, 0.0], np.pi / 2)
    turned = walk.rotations.copy()
    roots = np.flatnonzero(walk.skeleton.parents < 0)
    turned[:, roots] = rotations.multiply(turn, turned[:, roots])
    skeleton = replace(walk.skeleton, world=World(up="z"))
    desk: Any = SimpleNamespace(stage=None)
    heights = []
    for motion in (walk, pliant.Motion(skeleton, turned, walk.translations, walk.fps)):
        scene: Any = SimpleNamespace(target=BAR, sources={"walk": motion}, controls="auto")
        heights.append(np.ptp(SourcesBeside(desk, scene, "y").around()[:, 1]))
    assert heights[1] == pytest.approx(heights[0], rel=0.02)


def test_from_a_motion_to_a_pose_and_back(moving: Window, folder: Path) -> None:
    moving.widget("Motion").set("Nothing (posed by hand)")
    moving.rest()
    assert by_hand(moving.panel.document())
    assert "/cage/sources/curl" not in moving.client.scene.nodes
    moving.pull(1, [0.0, 0.3, 0.0])
    moving.rest()
    posed = moving.panel.document()
    assert np.array_equal(moving.panel.drawn.points, moving.ran()[-1])
    assert moving.panel.take(folder / "nod.bvh")
    moving.rest()
    followed = moving.panel.document()
    assert (followed["engine"], followed["controls"]) == ("transfer", "auto")
    assert moving.session.timeline.count == 3
    moving.session.timeline.stop()
    do(moving.session, "scrub", 1)
    assert np.array_equal(moving.panel.drawn.points, moving.ran()[1])
    moving.widget("Motion").set("Nothing (posed by hand)")
    moving.rest()
    assert moving.panel.document() == posed


def test_a_motion_is_not_lost_for_a_weight_that_is_set_next(moving: Window, folder: Path) -> None:
    with moving.held():
        assert moving.panel.take(folder / "nod.bvh")
        moving.widget("Smoothness").set(3.0)
    moving.rest()
    said = moving.panel.document()
    assert said["sources"] == {"motion": {"file": str(folder / "nod.bvh")}}
    assert said["weights"] == {"smooth": 3.0}
    assert moving.session.timeline.count == 3
    moving.session.timeline.stop()
    do(moving.session, "scrub", 1)
    assert np.array_equal(moving.panel.drawn.points, moving.ran()[1])


def test_a_motion_can_be_left_before_it_is_read(window: Window) -> None:
    with window.held():
        window.widget("Motion").set("Tentacle: curl")
        window.widget("Motion").set("Nothing (posed by hand)")
    window.rest()
    assert window.panel.document() == BY_HAND
    assert window.handle("positions", 1).visible


def test_of_two_wishes_the_one_that_can_be_is_granted(window: Window, folder: Path) -> None:
    (folder / "cut.bvh").write_text("HIERARCHY\nROOT hips\n{\n")
    with window.held():
        window.widget("Faces at most").set(100)
        window.widget("Build a cage").press()
        assert window.panel.take(folder / "cut.bvh")
    assert all_done(window.session.live)
    assert [note[1].count("cut.bvh") > 0 for note in window.client.notes] == [True]
    assert window.panel.document()["cage"]["faces"] == 100
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])


@pytest.mark.slow
def test_limbs_that_cannot_be_matched_are_paired_by_hand(folder: Path) -> None:
    """A man and the gait of four legs: both lists are there, filled in, and wait for somebody to agree."""
    man = {"gallery": "gingerbread", "vertices": 500}
    window = Window(folder, BY_HAND | {"target": man, "cage": {"faces": 60}, "positions": [{"at": 0}], "gradients": []})
    try:
        window.rest()
        window.widget("Motion").set("Animal: gait")
        assert all_done(window.session.live)
        assert "stands on 4 legs" in window.client.notes.pop()[1]
        pairing = window.panel.controls.pairing
        assert pairing.folder.visible
        assert "--map" not in pairing.found.content
        assert pairing.pairs["left leg"] == "hind left leg"
        pairing.agree.press()
        assert all_done(window.session.live)
        assert "hind left leg=left leg" in window.panel.document()["map"]
        assert len(window.panel.frames.solved) == window.session.timeline.count > 1
        assert not pairing.agree.visible
    finally:
        window.session.close()


# Files


def test_files_become_motions_and_cages(window: Window, folder: Path) -> None:
    pliant.write(folder / "around.obj", pliant.build_cage(BAR, faces=40, margin=0.06))
    pliant.write(folder / "small.obj", gallery.box(500).scaled(0.2))
    assert not window.panel.take(folder / "small.obj")
    assert window.panel.take(folder / "around.obj")
    window.rest()
    assert window.panel.document()["cage"] == {"file": str(folder / "around.obj")}
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])
    around = pliant.read_mesh(folder / "around.obj")
    pliant.write(folder / "tight.obj", around.with_points(around.points * [0.92, 1, 1]))
    with pytest.warns(pliant.PliantWarning, match=r"vertices are outside tight\.obj"):
        assert window.panel.take(folder / "tight.obj")
    window.rest()
    assert window.panel.document()["cage"] == {"file": str(folder / "tight.obj")}
    assert window.panel.document()["outside"] == "allow"
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])
    (folder / "poses").mkdir()
    for k, scale in enumerate((1.0, 0.9)):
        pliant.write(folder / "poses" / f"{k}.obj", BAR.scaled(scale))
    assert window.panel.take(folder / "poses")
    window.rest()
    assert window.panel.document()["sources"] == {"motion": {"file": str(folder / "poses")}}
    assert window.panel.take(folder / "nod.bvh")
    window.rest()
    said = window.panel.document()
    assert said["sources"] == {"motion": {"file": str(folder / "nod.bvh")}}
    assert said["controls"] == "auto"
    assert window.widget("Motion").value == "As the scene says"
    assert window.session.timeline.count == 3
    assert len(window.client.scene["/cage/sources/motion"].batched_positions) == 2  # its bones


def test_a_motion_that_does_not_fit_leaves_the_scene_as_it_was(window: Window, folder: Path) -> None:
    before = window.panel.document()
    (folder / "broken.bvh").write_text("HIERARCHY\nROOT hips\n{\n")
    assert window.panel.take(folder / "broken.bvh")
    assert window.session.live.idle(30)
    assert "broken.bvh" in window.client.notes.pop()[1]
    assert window.panel.document() == before
    window.pull(1, [0.0, 0.2, 0.0])
    window.rest()
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])

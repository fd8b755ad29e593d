"""Sheets and films hold every frame at its time; what cannot be drawn or written is named."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow, ImageSequence

from pliant import render
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError, InputError, MissingExtraError
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.skeleton import Motion, Skeleton
from pliant.render.movie import gif_delays
from render_shapes import (
    SMALL,
    ball,
    box,
    coverage,
    coverage_loose,
    moving,
    stage_of,
)


def test_a_following_camera_makes_each_frame_as_large_as_it_can() -> None:
    growing = Animation(box(), box().points * np.array([0.2, 1.0])[:, None, None])
    options = {"frames": 2, "columns": 2, "size": SMALL, "ground": False}
    areas = {}
    for follow in (False, True):
        sheet = np.asarray(render.contact_sheet(growing, follow=follow, **options))[25:]
        areas[follow] = [coverage(sheet[:, :200]).sum(), coverage(sheet[:, 200:]).sum()]
    assert areas[False][0] < 0.1 * areas[False][1]
    assert abs(areas[True][0] - areas[True][1]) < 0.02 * areas[True][1]


def test_a_sheet_has_a_cell_for_each_frame_and_a_row_for_each_clip() -> None:
    assert render.contact_sheet(moving(), frames=4, columns=2, size=SMALL).size == (400, 300)
    two = render.contact_sheet({"linear": moving(), "pliant": moving()}, frames=3, size=SMALL)
    assert two.width == 600
    assert two.height > 300
    shapes = Shapes.of([box(), box(2.0)], ["small", "large"])
    assert render.contact_sheet(shapes, size=SMALL, frames=1).size == (400, 150)
    assert render.contact_sheet([box(), ball(6), PointCloud(np.eye(3))], size=SMALL).size == (600, 150)


def test_sheets_show_first_and_last_frame_with_one_camera() -> None:
    sheet = np.asarray(render.contact_sheet(moving(7), frames=2, columns=2, size=SMALL, ground=False, view="front"))
    clear = [coverage(sheet[25:, k * 200 : (k + 1) * 200]) for k in range(2)]
    first, last = (np.argwhere(cell).mean(axis=0) for cell in clear)
    assert last[1] > first[1] + 20
    assert last[0] < first[0] - 20


def test_sheets_take_one_measure_for_each_row() -> None:
    clip = moving()
    values = {"a": np.zeros(8), "b": np.ones((6, 8))}
    sheet = render.contact_sheet({"a": clip, "b": clip}, values=values, frames=2, size=SMALL, label="distance")
    assert sheet.size[0] == 400
    with pytest.raises(InputError, match='row "c"'):
        render.contact_sheet({"a": clip}, values={"c": np.zeros(8)}, size=SMALL)


@pytest.mark.parametrize(("frames", "fps"), [(6, 30.0), (5, 24.0), (4, 10.0)])
def test_a_gif_has_the_clip_s_frames_and_pace(tmp_path: Path, frames: int, fps: float) -> None:
    path = render.movie(moving(frames, fps), tmp_path / "clip.gif", size=SMALL)
    with Pillow.open(path) as film:
        assert film.n_frames == frames
        assert film.info["loop"] == 0
        total = 0
        for k in range(frames):
            film.seek(k)
            total += film.info["duration"]
    assert abs(total - 1000 * frames / fps) <= 5


def test_gif_frames_are_as_the_pictures(tmp_path: Path) -> None:
    """The palette is good enough, and nothing of the frames before stays behind."""
    clip = moving(4)
    path = render.movie(clip, tmp_path / "clip.gif", size=SMALL)
    stage = stage_of([clip], SMALL, "auto", ground=True)
    with Pillow.open(path) as film:
        for k in range(4):
            film.seek(k)
            shown = np.asarray(film.convert("RGB")).astype(int)
            difference = np.abs(shown - np.asarray(stage[0].shoot(stage[1], k)))
            assert difference.mean() < 1
            assert difference.max() < 40


@pytest.mark.parametrize("fps", [12.0, 24.0, 30.0, 50.0])
def test_gif_delays_keep_time_and_are_not_too_short(fps: float) -> None:
    delays = gif_delays(200, fps)
    assert min(delays) >= 20
    assert np.abs(np.cumsum(delays) - 1000 * np.arange(1, 201) / fps).max() <= 5.001


def test_fast_clips_are_thinned_for_gif(tmp_path: Path) -> None:
    path = render.movie(moving(12, 120.0), tmp_path / "fast.gif", size=SMALL)
    with Pillow.open(path) as film:
        assert film.n_frames == 4  # every third frame at 40 frames a second


def test_a_film_there_and_back_repeats_without_a_jump(tmp_path: Path) -> None:
    """Frames 0 1 2 3 2 1, of which each is drawn once."""
    drawn: list[int] = []
    path = render.movie(
        moving(4), tmp_path / "clip.gif", size=SMALL, back=True, progress=lambda done, total: drawn.append(done)
    )
    assert drawn == [1, 2, 3, 4]
    with Pillow.open(path) as film:
        frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
    assert len(frames) == 6
    assert np.array_equal(frames[1], frames[5])
    assert np.array_equal(frames[2], frames[4])
    assert not np.array_equal(frames[2], frames[3])


def test_a_turntable_turns_once(tmp_path: Path) -> None:
    mesh = Mesh(box().points * [3, 1, 1], box().polygons)
    path = render.turntable(mesh, tmp_path / "turn.gif", size=SMALL, seconds=0.4, fps=20, view=(0.0, 0.0), ground=False)
    with Pillow.open(path) as film:
        assert film.n_frames == 8
        areas = []
        for k in range(8):
            film.seek(k)
            areas.append(coverage_loose(np.asarray(film.convert("RGB"))).sum())
    # Half a turn shows a box's same silhouette; a quarter turn shows its small side.
    assert abs(areas[4] - areas[0]) < 0.05 * areas[0]
    assert areas[2] < 0.6 * areas[0]


def test_mp4_plays_at_the_clip_s_pace(tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = render.movie(moving(6, 12.0), tmp_path / "clip.mp4", size=(201, 151), turn=30)
    count, seconds = ffmpeg.count_frames_and_secs(str(path))
    assert count == 6
    assert abs(seconds - 0.5) < 0.02
    path = render.movie(moving(6, 12.0), tmp_path / "back.mp4", size=SMALL, back=True)
    assert ffmpeg.count_frames_and_secs(str(path))[0] == 10


def test_mp4_without_ffmpeg_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"pliant\[video\]"):
        render.movie(moving(2), tmp_path / "clip.mp4", size=SMALL)
    assert not list(tmp_path.iterdir())


def test_motions_play(tmp_path: Path) -> None:
    bones = Skeleton.from_positions([[0, 0, 0], [0, 1, 0], [0, 2, 0]], [-1, 0, 1])
    turns = np.tile([1.0, 0, 0, 0], (5, 3, 1))
    angle = np.linspace(0, 1, 5)
    turns[:, 1] = np.stack([np.cos(angle / 2), np.sin(angle / 2), 0 * angle, 0 * angle], axis=1)
    motion = Motion(bones, turns, np.tile(bones.offsets, (5, 1, 1)), 10.0)
    assert render.contact_sheet(motion, frames=3, columns=3, size=SMALL).size == (600, 150)
    with Pillow.open(render.movie(motion, tmp_path / "bones.gif", size=SMALL)) as film:
        assert film.n_frames == 5
    assert render.picture(box(), extra=[motion], size=SMALL).size == SMALL


def test_save_writes_by_suffix_and_refuses_others(tmp_path: Path) -> None:
    image = render.picture(box(), size=SMALL)
    for name in ("a.png", "b.jpg", "deep/c.webp"):
        path = render.save(image, tmp_path / name)
        with Pillow.open(path) as opened:
            assert opened.size == SMALL
    with pytest.raises(InputError, match=r"expected \.png"):
        render.save(image, tmp_path / "a.txt")
    (tmp_path / "d.png").mkdir()
    with pytest.raises(FileError, match="folder"):
        render.save(image, tmp_path / "d.png")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 10)}, "size is"),
        ({"size": 300}, "size is"),
        ({"view": "left"}, "view is"),
        ({"view": (0, 91)}, "view is"),
        ({"up": "w"}, "up is"),
        ({"color": "blurple"}, "color is"),
        ({"color": (1, 2, 3)}, "from 0 to 1"),
        ({"background": "none at all"}, "background is"),
        ({"values": np.zeros(3)}, r"values have shape \(3,\); expected \(8,\)"),
        ({"values": ["a"] * 8}, "not numbers"),
        ({"values": np.zeros(8), "limits": (1, 1)}, "limits are"),
        ({"values": np.zeros(8), "limits": (0, math.nan)}, "limits are"),
        ({"values": np.zeros(8), "limits": (0, 1, 2)}, "limits are"),
        ({"values": np.zeros(8), "colormap": "jet"}, "colormap is"),
        ({"extra": [5]}, "cannot draw a int"),
        ({"extra": [render.Extra(box(), style="glass")]}, "style of an extra"),  # type: ignore[arg-type]
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        render.picture(box(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("cat.obj", "cannot draw a str"),
        (Mesh(np.zeros((0, 3)), []), "without points"),
        (PointCloud(np.zeros((0, 3))), "without points"),
        (moving(), r"clip\[k\]"),
    ],
    ids=["text", "no points", "no cloud", "clip"],
)
def test_what_cannot_be_drawn_is_named(thing: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        render.picture(thing)  # type: ignore[arg-type]


def test_what_cannot_be_filmed_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        render.contact_sheet([])
    with pytest.raises(InputError, match="expected 1 or more"):
        render.contact_sheet(moving(), frames=0)
    with pytest.raises(InputError, match="does not move"):
        render.movie(box(), tmp_path / "a.gif")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected \.gif or \.mp4"):
        render.movie(moving(), tmp_path / "a.avi")
    with pytest.raises(InputError, match="fps is"):
        render.movie(moving(), tmp_path / "a.gif", fps=0)
    with pytest.raises(InputError, match="seconds is"):
        render.turntable(box(), tmp_path / "a.gif", seconds=-1)
    assert not list(tmp_path.iterdir())


def test_importing_render_is_quick() -> None:
    code = "import sys, pliant.render; assert 'scipy' not in sys.modules, 'heavy import'"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})

"""Films: GIF with one palette for all frames, MP4 through ffmpeg.

A GIF holds each frame for a whole number of hundredths of a second, at least two; the delays are chosen so that every
frame appears at the hundredth nearest to its time, and the whole keeps the clip's pace. Clips faster than 50 frames a
second are thinned for GIF.
"""

from __future__ import annotations

import contextlib
import io
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image as Pillow

from pliant.core.clips import Animation, Pose
from pliant.core.errors import FileError, InputError, MissingExtraError
from pliant.core.signatures import takes_keywords_of
from pliant.core.skeleton import Motion
from pliant.core.validation import frame_rate, positive_number, target_path
from pliant.io.output import staged
from pliant.io.source import PathLike
from pliant.render.camera import Up, View, angles_of, camera_axes
from pliant.render.color import LEGEND_HEIGHT, Color
from pliant.render.parts import Drawable
from pliant.render.pictures import picture
from pliant.render.scene import content_of, takes_of
from pliant.render.stage import check_size, stage_for

FASTEST_GIF = 50.0
PALETTE_PIXELS = 200_000
"""That are looked at to choose a palette."""


@takes_keywords_of(picture, filled=True)
def movie(
    clip: Animation | Motion,
    path: PathLike,
    *,
    size: tuple[int, int] = (640, 480),
    turn: float = 0.0,
    fps: float | None = None,
    back: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **look: Any,
) -> Path:
    """Write a clip as .gif or .mp4, at its own pace or at `fps`; the camera rotates by `turn` degrees meanwhile.

    back: play it backwards afterwards, so that it repeats without a jump. Further arguments are those of `picture`.
    """
    content = content_of(clip)
    if not isinstance(content, (Animation, Motion)):
        raise InputError(f"a {type(content).__name__} does not move; use turntable, or give an Animation or Motion")
    rate = content.fps if fps is None else fps
    angles = np.arange(len(content)) * (turn / len(content))
    frames = list(range(len(content)))
    return _film(content, path, frames, angles, rate, size=size, progress=progress, back=back, **look)


@takes_keywords_of(picture, filled=True)
def turntable(
    shape: Drawable | Pose | Animation | Motion,
    path: PathLike,
    *,
    size: tuple[int, int] = (640, 480),
    seconds: float = 4.0,
    fps: float = 25.0,
    progress: Callable[[int, int], None] | None = None,
    **look: Any,
) -> Path:
    """Write one full turn around a shape as .gif or .mp4; a clip plays meanwhile, over and over.

    Further arguments are those of `picture`.
    """
    content = content_of(shape)
    positive_number(seconds, "seconds")
    frame_rate(fps)
    count = max(2, round(seconds * fps))
    frames = [0] * count
    if isinstance(content, (Animation, Motion)):
        pace = content.fps / fps
        frames = [int(k * pace) % len(content) for k in range(count)]
    angles = np.arange(count) * (360.0 / count)
    return _film(content, path, frames, angles, fps, size=size, progress=progress, **look)


def _counted(
    pictures: Iterator[Pillow.Image], total: int, progress: Callable[[int, int], None] | None
) -> Iterator[Pillow.Image]:
    """The pictures as they come, each reported."""
    for done, image in enumerate(pictures, 1):
        yield image
        if progress is not None:
            progress(done, total)


def _film(
    content: Any,
    path: PathLike,
    frames: list[int],
    angles: Any,
    fps: float,
    *,
    size: tuple[int, int],
    view: View,
    up: Up,
    ground: bool,
    background: Color,
    title: str,
    values: ArrayLike | None,
    progress: Callable[[int, int], None] | None,
    back: bool = False,
    **paint: Any,
) -> Path:
    """Shoot the frames at their angles, and encode them by suffix."""
    target = target_path(path)
    suffix = target.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise InputError(f'{target}: cannot write a film as "{target.suffix}"; expected .gif or .mp4')
    frame_rate(fps)
    if suffix == ".mp4":
        _ffmpeg()
    takes, scale = takes_of([content], [values], **paint)
    shots, view, up = [(takes[0], k) for k in frames], takes[0].view(view, up), takes[0].upright(up)
    static = not np.any(angles)
    stage = stage_for(
        shots, size=check_size(size), view=view, up=up, ground=ground, background=background,
        above=20 if title else 0, below=LEGEND_HEIGHT if scale else 0, azimuths=(0.0,) if static else list(angles),
    )  # fmt: skip
    if suffix == ".gif" and fps > FASTEST_GIF:
        step = int(np.ceil(fps / FASTEST_GIF))
        frames, angles, fps = frames[::step], angles[::step], fps / step
    azimuth, elevation = angles_of(view)
    sets = [stage if static else stage.rotated(camera_axes(azimuth + angle, elevation, up)) for angle in angles]
    shots_taken = (stage.shoot(takes[0], k, title, scale) for k, stage in zip(frames, sets, strict=True))
    pictures = _counted(shots_taken, len(frames), progress)
    with staged(target) as staging:
        if suffix == ".gif":
            staging.write_bytes(gif(list(pictures), fps, back=back))
        else:
            write_mp4(staging, iter(and_back(list(pictures))) if back else pictures, check_size(size), fps)
    return target


def gif_delays(count: int, fps: float) -> list[int]:
    """Milliseconds that each frame stays, in whole hundredths of a second."""
    times = np.round(100 * np.arange(count + 1) / fps).astype(int)
    return [10 * max(2, int(delay)) for delay in np.diff(times)]


def and_back(pictures: list[Pillow.Image]) -> list[Pillow.Image]:
    """The pictures, and all but the first and the last again in reverse."""
    return [*pictures, *pictures[-2:0:-1]]


def gif(pictures: list[Pillow.Image], fps: float, *, back: bool = False) -> bytes:
    """An endless GIF whose frames share the 255 colours that suit all of them; no dithering, which would flicker."""
    sample = pictures[:: max(1, len(pictures) // 12)][:12]
    step = max(1, math.isqrt(len(sample) * sample[0].width * sample[0].height // PALETTE_PIXELS))
    strip = Pillow.fromarray(np.concatenate([np.asarray(image)[::step, ::step] for image in sample]))
    palette = strip.quantize(255, method=Pillow.Quantize.MEDIANCUT, kmeans=1)
    frames = [image.quantize(palette=palette, dither=Pillow.Dither.NONE) for image in pictures]
    frames = and_back(frames) if back else frames
    delays = gif_delays(len(frames), fps)
    stored = io.BytesIO()  # Pillow does not notice a full disk, Python does
    frames[0].save(
        stored, "GIF", save_all=True, append_images=frames[1:], duration=delays, loop=0, disposal=1, optimize=False
    )
    return stored.getvalue()


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise MissingExtraError("writing MP4", "video") from error
    return imageio_ffmpeg


def write_mp4(path: Path, pictures: Iterator[Pillow.Image], size: tuple[int, int], fps: float) -> None:
    """H.264 that every browser plays; odd sizes lose their last row or column. One thread: the same bytes always."""
    even = size[0] // 2 * 2, size[1] // 2 * 2
    frames = f"-f rawvideo -pix_fmt rgb24 -s {even[0]}x{even[1]} -r {Fraction(fps).limit_denominator()} -i -"
    coded = "-an -vcodec libx264 -pix_fmt yuv420p -crf 18 -preset medium -movflags +faststart -threads 1"
    command = [_ffmpeg().get_ffmpeg_exe(), "-y", "-v", "error", *f"{frames} {coded}".split(), str(path)]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdin=pipe, stdout=nowhere, stderr=log, start_new_session=True) as encoder,
    ):
        assert encoder.stdin is not None
        try:
            with (
                contextlib.suppress(BrokenPipeError),
                encoder.stdin as stream,
            ):  # ffmpeg gave up; see its log
                for image in pictures:
                    stream.write(np.asarray(image)[: even[1], : even[0]].tobytes())
        except BaseException:
            encoder.kill()
            raise
        if encoder.wait():
            log.seek(0)
            output = log.read().decode("utf-8", "replace").strip().splitlines() or ["it was stopped"]
            raise FileError(path, f"ffmpeg could not write it ({output[0]})")

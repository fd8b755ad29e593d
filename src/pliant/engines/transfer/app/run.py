"""Run a transfer's scene: solve its frames, and write the clip's files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pliant
from pliant.core.terminal import complain
from pliant.engines.transfer.app.posed_scene import CageScene
from pliant.engines.transfer.app.result import TransferRun
from pliant.engines.transfer.app.scene import TransferScene
from pliant.engines.transfer.splats import is_splats
from pliant.io import BY_SUFFIX, write_clip, write_frames

AnyScene = TransferScene | CageScene


def solve(scene: AnyScene, solver: Any, show: Any, seconds: float) -> TransferRun:
    """Solve all frames; seconds: time of the set-up."""
    ready = time.perf_counter()
    moved = scene.run(show, solver)
    solved = time.perf_counter() - ready
    return TransferRun(moved, scene.sources, scene.title, seconds, solved, _settings(scene), not scene.blocks)


def write(output: str, run: TransferRun) -> list[Path]:
    """Write the clip; formats with a file for each frame include transformed normals and splats."""
    format = BY_SUFFIX.get(Path(output).suffix.lower() or ".obj")
    if run.carried and format is not None and "animation" not in format.writes:
        return write_frames(output, run.frames) if len(run.frames) > 1 else pliant.write(output, run.frames[0])
    shape = run.clip.shape
    if isinstance(shape, pliant.PointCloud) and is_splats(shape):
        complain(f"pliant: {output} holds where the splats go, not how they turn and stretch; write .ply")
    return write_clip(output, run.clip)


def _settings(scene: AnyScene) -> dict[str, str]:
    settings = {"scene": scene.file} if scene.file else {}
    settings |= {"blocks": "each connected part moves rigidly"} if scene.blocks else {}
    return settings | {name: str(value) for name, value in scene.options.items()}

"""From a scene of flesh on bones to its frames, with what was asked for as text."""

from __future__ import annotations

import time
from typing import Any

from pliant.app.report import Contact
from pliant.app.scene.obstacles import obstacle_summary
from pliant.engines.simulate.app.result import SimulateRun
from pliant.engines.simulate.app.scene import ElasticScene
from pliant.engines.simulate.options import SimulateOptions


def solve(scene: ElasticScene, body: Any, show: Any, seconds: float) -> SimulateRun:
    """Move the body; seconds: what it took to set up."""
    ready = time.perf_counter()
    moved = scene.run(show, body=body)
    return SimulateRun(
        moved.body,
        moved.clip,
        moved.frames,
        scene.motion,
        moved.stopped,
        scene.title,
        seconds,
        time.perf_counter() - ready,
        _settings(scene),
        Contact(scene.obstacles, names=scene.obstacle_names, **scene.options.taken_by(Contact)),
        scene.unit,
        moved.notes,
    )


def _settings(scene: ElasticScene) -> dict[str, str]:
    """What was asked for, as text."""
    made = scene.material
    settings = {"scene": scene.file} if scene.file else {}
    settings["material"] = f"E {made.young:g} Pa, ν {made.poisson:g}, {made.density:g} kg/m³"
    settings |= {"regions": str(len(scene.regions))} if scene.regions else {}
    settings["size"] = f"1 unit is {scene.unit:.4g} m"
    settings |= obstacle_summary(scene)
    listed = ("size", *SimulateOptions.names(table="material"))
    return settings | {name: str(value) for name, value in scene.options.changed().items() if name not in listed}

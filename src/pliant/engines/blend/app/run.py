"""Run a blend's scene: solve its frames."""

from __future__ import annotations

import time
from typing import Any

from pliant.app.report import Contact
from pliant.app.scene.obstacles import obstacle_summary
from pliant.core.clips import Pose
from pliant.engines.blend.app.result import BlendRun
from pliant.engines.blend.app.scene import BlendScene
from pliant.engines.blend.options import BlendOptions


def solve(scene: BlendScene, rig: Any, show: Any, seconds: float) -> BlendRun:
    """Solve all frames; seconds: time of the set-up."""
    ready = time.perf_counter()
    poses: list[Pose] = []
    for pose in scene.poses(rig):
        poses.append(pose)
        steps = f"{pose.iterations} iteration{'s' if pose.iterations != 1 else ''}"
        contacts = f", {pose.contacts} contacts" if scene.obstacles or scene.self_contact else ""
        show(len(poses), len(scene), f"{steps}, residual {pose.residual:.0e}{contacts}")
    contact = Contact(scene.obstacles, scene.friction, scene.self_contact, scene.thickness, scene.obstacle_names)
    solved = time.perf_counter() - ready
    return BlendRun(rig, scene.table(rig), poses, scene.fps, seconds, solved, _settings(scene), contact)


def _settings(scene: BlendScene) -> dict[str, str]:
    """The scene's settings as text."""
    how = BlendOptions(**scene.options)
    settings = {"scene": scene.file} if scene.file else {}
    settings["model"] = scene.springs.get("model", BlendOptions.model)
    settings["method"] = f"{how.method}, to an accuracy of {how.accuracy:g}"
    if scene.pins is not None:
        lines = "on straight lines" if scene.pins.path is None else "on given paths"
        settings["pins"] = f"{len(scene.pins.vertices)}, {lines}"
    for name, key in (("pulls", "to"), ("forces", "force")):
        pulled = [f"{pull.vertex} {getattr(pull, key)}" for pull in scene.pulls if getattr(pull, key) is not None]
        settings |= {name: "; ".join(pulled)} if pulled else {}
    settings |= obstacle_summary(scene)
    settings |= {"friction": f"{scene.friction:g}"} if scene.friction else {}
    settings |= {"itself": "does not pass through itself"} if scene.self_contact else {}
    return settings | ({"thickness": f"{scene.thickness:g}"} if scene.thickness is not None else {})

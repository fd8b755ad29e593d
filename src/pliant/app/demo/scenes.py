"""The scene file of each exhibit: ``pliant run NAME.toml`` makes its clip again.

What a scene cannot name, such as the demo's own arm, is written beside it, with every digit (NPZ).
"""

from __future__ import annotations

from pathlib import Path

import pliant
from pliant.app.scene import write_scene
from pliant.app.scene.writing import Document
from pliant.contact import Cylinder, Obstacle
from pliant.engines.blend.app.result import BlendRun
from pliant.engines.simulate.app.result import SimulateRun


def write_blend_scene(folder: Path, name: str, run: BlendRun, shapes: Document, title: str) -> None:
    """Shapes of the gallery, the weights of every frame, and what they touch."""
    contact = run.contact
    document: Document = {"engine": "blend", "title": title, "fps": run.fps, "weights": run.weights.tolist()}
    if contact.self_contact:
        document["self_contact"] = True
    document["shapes"] = shapes
    obstacles = [{"what": _solid(moving.obstacle)} for moving in contact.obstacles]
    if obstacles:
        document["obstacles"] = obstacles
    write_scene(folder / f"{name}.toml", document)


def _solid(solid: Obstacle) -> str:
    """A solid that stays, as scenes name it."""
    assert isinstance(solid, Cylinder)
    return f"cylinder:{','.join(repr(float(number)) for number in (*solid.a, *solid.b, solid.radius))}"


def write_transfer_scene(folder: Path, name: str, document: Document, title: str) -> None:
    """Source, target and cage of the gallery; controls are found."""
    write_scene(folder / f"{name}.toml", {"engine": "transfer", "title": title, "controls": "auto", **document})


def write_simulate_scene(folder: Path, name: str, run: SimulateRun, document: Document, title: str) -> None:
    """The motion, and a shape and bones that the document does not name, from files beside the scene."""
    body, motion = f"{name}-body.npz", f"{name}-motion.npz"
    assert run.motion is not None
    pliant.write(folder / motion, run.motion)
    files: Document = {"motion": {"file": motion}}
    if "shape" not in document:
        pliant.write(folder / body, run.body.shape)
        files |= {"shape": {"file": body}, "skeleton": {"file": motion}}
    write_scene(folder / f"{name}.toml", {"engine": "simulate", "title": title, **document, **files})

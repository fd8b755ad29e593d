"""Solving for a target that is posed by hand: roughly while a control is dragged, and as its scene has it at rest."""

from __future__ import annotations

import numpy as np

from pliant.app.studio.desk import Document
from pliant.app.studio.worker import Job
from pliant.core.topology import Floats
from pliant.engines.transfer.app.posed_scene import CageScene, reposed
from pliant.engines.transfer.rig import CagePose, CageRig

COARSE = 2
"""Steps of the cage while something is dragged."""


class Posing:
    """A target in its cage, whose controls change: what takes long is done once."""

    def __init__(self, scene: CageScene) -> None:
        self.base = scene
        self.free = CageRig(scene.target, scene.cage, **scene.options.taken_by(CageRig))
        self._rig, self._key = self.free, b""
        self.last: Floats = self.free.cage.mesh.points
        """Vertices of the cage, where the last solve left them."""

    def scene(self, document: Document) -> CageScene:
        """The scene of a document with this target and cage."""
        return reposed(self.base, document, self.free.cage)

    def rig(self, scene: CageScene) -> CageRig:
        """The rig of a scene; its controls are exchanged if they are others than before."""
        points = {
            "positions": np.array([control.at for control in scene.positions]).reshape(-1, 3),
            "gradients": np.array([control.at for control in scene.gradients]).reshape(-1, 3),
            "lengths": scene.lengths,
        }
        key = repr(scene.weights).encode() + b"|".join(array.tobytes() for array in points.values())
        if key != self._key:
            self._rig, self._key = self.free.with_controls(**points, weights=scene.weights), key
        return self._rig

    def solve(self, scene: CageScene, job: Job | None = None) -> CagePose:
        """The scene's last frame: as its run gives it, or without a job to watch roughly, from where it was."""
        positions, gradients = scene.asked()
        asked = {"positions": positions[-1], "gradients": gradients[-1]}
        rig = self.rig(scene)
        if job is not None:
            pose = rig.solve(**asked, watch=job.check)
        else:
            pose = rig.solve(**asked, start=self.last, iterations=COARSE)
        assert pose.solution is not None
        self.last = pose.solution.points
        return pose

"""Scenes of the engine "transfer" without sources: a target posed by hand in its cage, and how it gets there.

A gradient control is asked for G = R U: the stretch U along the axes at rest, then the turn R. At the part t of the way
it is asked for exp(t log R) (1 + t (U - 1)), and a position control for a place straight between its rest and its goal.
Every frame is solved from the rest on: it is the same whichever others there are, and the last one is the pose alone.
`read_cage` turns a file that follows `CAGE_SCENE` (`pliant.engines.transfer.app.posed_scene_keys`) into a `CageScene`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pliant.app.scene.located_toml import Path, TomlText, located
from pliant.app.scene.media import read_target
from pliant.app.scene.schema import chosen, read_as
from pliant.app.scene.turns import rotation_vector
from pliant.app.scene.writing import unwritten
from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.progress import Report
from pliant.core.shapes import Mesh, Shape
from pliant.core.topology import Floats
from pliant.core.values import Value, locked
from pliant.engines.transfer.app.caged_scene import CagedTarget, cage_around, weights_of
from pliant.engines.transfer.app.effects import check_cage_effects
from pliant.engines.transfer.app.posed_scene_keys import CAGE_SCENE
from pliant.engines.transfer.checked import Cage
from pliant.engines.transfer.controls import Weights, check_gradients
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.plan import Control
from pliant.engines.transfer.rig import CagePose, CageRig

KEYS: dict[Path, Path] = {(name,): (name,) for name in CAGE_SCENE.keys}
"""Of the arguments of `CageRig`."""


@dataclass(frozen=True, eq=False)
class Gradient(Value):
    """A gradient control, and what it is asked for in the end."""

    at: Floats
    """(3,) its place at rest."""
    turn: Floats
    """(3,) axis times radians."""
    stretch: Floats
    """(3, 3) before it turns: symmetric and positive."""


@dataclass(frozen=True, eq=False)
class Position(Value):
    """A position control, and where it goes."""

    at: Floats
    """(3,) its place at rest."""
    to: Floats
    """(3,)"""


@dataclass(frozen=True, eq=False)
class CageScene:
    """A target, its cage and its controls, ready to run."""

    target: Shape
    cage: Mesh
    gradients: Sequence[Gradient] = ()
    positions: Sequence[Position] = ()
    lengths: Floats = field(default_factory=lambda: np.zeros((0, 2, 3)))
    """(k, 2, 3) pairs of places that keep their distance."""
    frames: int = 1
    """Evenly from the rest to the pose; 1: the pose alone."""
    fps: float = 24.0
    options: Mapping[str, Any] = field(default_factory=dict)
    """Lattice, outside and weights of `CageRig`."""
    title: str = "cage"
    engine: Literal["transfer"] = "transfer"
    sources: Mapping[str, Any] = field(default_factory=dict)
    """None: it is posed by hand."""
    blocks: bool = False
    text: TomlText | None = None
    """What it was read from, if it was."""

    @property
    def file(self) -> str:
        """Where it was read from; empty if it was not."""
        return "" if self.text is None else self.text.source.label

    @property
    def shape(self) -> Shape:
        """What moves."""
        return self.target

    def __len__(self) -> int:
        """How many frames there are."""
        return self.frames

    def rig(self) -> CageRig:
        """The target in its cage, with the controls."""
        with located(self.text, ("cage",), KEYS):
            return CageRig(
                self.target,
                self.cage,
                positions=_places(self.positions),
                gradients=_places(self.gradients),
                lengths=self.lengths,
                **self.options,
            )

    def prepare(self) -> CageRig:
        """The rig, with all checked that can be before frames are solved."""
        with located(self.text, ("positions",), KEYS):
            self._require_positions()
        return self._checked(self.rig())

    def _require_positions(self) -> None:
        if not len(self.positions):
            others = len(self.gradients) or len(self.lengths)
            problem = "nothing says where the target is" if others else "there are no controls"
            raise InputError(f"{problem}; add [[positions]] with a vertex to move, or one that stays")

    def _checked(self, rig: CageRig) -> CageRig:
        positions, gradients = self.asked()
        with located(self.text, ("gradients",), KEYS):
            rig.solutions(positions=positions, gradients=gradients)
        return rig

    def asked(self) -> tuple[Floats, Floats]:
        """What the controls are asked for: positions (frames, k, 3) and gradients (frames, k, 3, 3)."""
        t = (np.ones(1) if self.frames == 1 else np.linspace(0, 1, self.frames))[:, None, None]
        turns = np.reshape([control.turn for control in self.gradients], (-1, 3))
        stretches = np.reshape([control.stretch for control in self.gradients], (-1, 3, 3))
        R = rotations.matrix(rotations.exp(t * turns))
        U = np.eye(3) + t[..., None] * (stretches - np.eye(3))
        goals = np.reshape([control.to for control in self.positions], (-1, 3))
        return (1 - t) * _places(self.positions) + t * goals, R @ U

    def run(self, report: Report | None = None, rig: CageRig | None = None) -> Transfer:
        """Pose the target: a result as of a transfer, with no tracks.

        rig: one that this target and cage were bound to before, to save that; its controls do not count.
        """
        made = self.prepare() if rig is None else self._bound(rig)
        positions, gradients = self.asked()
        poses: list[CagePose] = []
        if report is not None:
            report(0, len(self))
        for places, maps in zip(positions, gradients, strict=True):
            poses.append(made.solve(positions=places, gradients=maps))
            if report is not None:
                report(len(poses), len(self))
        solutions = tuple(pose.solution for pose in poses if pose.solution is not None)
        cages = locked(np.array([found.points for found in solutions]))
        return Transfer(
            Animation(self.target, locked(np.array([pose.points for pose in poses])), self.fps, "cage"),
            solutions,
            Animation(made.cage.mesh, cages, self.fps, "cage"),
            made,
            tracks={},
            controls=tuple(Control(control.at) for control in self.gradients),
            follow=(),
            gradients=locked(gradients),
            positions=locked(positions),
        )

    def _bound(self, rig: CageRig) -> CageRig:
        """A rig of the same target and cage with these controls."""
        same = np.array_equal(rig.target.points, self.target.points)
        if not same or not np.array_equal(rig.cage.mesh.points, self.cage.points):
            raise InputError(f"got {rig!r}; expected a rig of the scene's own target and cage")
        with located(self.text, ("positions",), KEYS):
            self._require_positions()
            return rig.with_controls(
                positions=_places(self.positions),
                gradients=_places(self.gradients),
                lengths=self.lengths,
                weights=self.options.get("weights", Weights()),
            )


def _places(controls: Sequence[Gradient | Position]) -> Floats:
    """(k, 3) at rest."""
    return np.reshape([control.at for control in controls], (-1, 3))


# Scene files


def read_cage(
    text: TomlText, *, faces: int | None = None, frames: int | None = None, fps: float | None = None
) -> CageScene:
    """The scene in a document; what is given here counts instead of what the document says."""
    said = _said(text) | {key: value for key, value in (("frames", frames), ("fps", fps)) if value is not None}
    maps = _maps(text, said)
    target = read_target(text, said["target"], ("target",))
    cage = cage_around(text, said["cage"] or {}, target, faces)
    options = chosen(said, TransferOptions, "lattice", "outside")
    scene = CageScene(target, cage.mesh, options=options, title=said["title"] or text.source.stem)
    return _posed(scene, text, said, maps, cage)


def reposed(scene: CageScene, document: dict[str, Any], cage: Cage) -> CageScene:
    """The same target in the same cage with what a document says of controls, weights and frames.

    It is the scene of the document (`pliant.app.scene.scene_from`), if that has this target, cage, lattice and outside,
    but quickly made. cage: the scene's, checked.
    """
    text = unwritten(document, ".")
    said = _said(text)
    return _posed(scene, text, said, _maps(text, said), cage)


def _said(text: TomlText) -> dict[str, Any]:
    said = read_as(CAGE_SCENE, text, text.content, ())
    check_cage_effects(text)
    return said


def _maps(text: TomlText, said: dict[str, Any]) -> list[tuple[Floats, Floats]]:
    return [_map(text, entry, ("gradients", k)) for k, entry in enumerate(said["gradients"])]


def _posed(
    scene: CageScene, text: TomlText, said: dict[str, Any], maps: list[tuple[Floats, Floats]], cage: Cage
) -> CageScene:
    """The scene with the controls, weights and frames that a document says."""
    space = CagedTarget(text, scene.target, cage, said["outside"] == "allow")
    turned = [space.point(entry["at"], ("gradients", k, "at")) for k, entry in enumerate(said["gradients"])]
    placed = [space.point(entry["at"], ("positions", k, "at")) for k, entry in enumerate(said["positions"])]
    goals = [entry["to"] for entry in said["positions"]]
    kept = {key: value for key, value in scene.options.items() if key != "weights"}
    return replace(
        scene,
        text=text,
        gradients=tuple(Gradient(at, *asked) for at, asked in zip(turned, maps, strict=True)),
        positions=tuple(Position(at, at if to is None else np.array(to)) for at, to in zip(placed, goals, strict=True)),
        lengths=space.ends(said["lengths"]),
        frames=said["frames"],
        fps=said["fps"],
        options=kept | weights_of(said),
    )


def _map(text: TomlText, said: dict[str, Any], path: Path) -> tuple[Floats, Floats]:
    """A turn (3,), axis times radians, and a stretch (3, 3) before it."""
    if said["matrix"] is None:
        factors = np.broadcast_to(1.0 if said["stretch"] is None else said["stretch"], 3)
        _check_map(text, np.diag(factors), (*path, "stretch"))
        return rotation_vector(text, said["turn"], (*path, "turn")), np.diag(factors)
    for key in ("turn", "stretch"):
        if said[key] is not None:
            raise text.error('says what "matrix" says too; expected one or the other', (*path, key))
    matrix = np.array(said["matrix"])
    _check_map(text, matrix, (*path, "matrix"))
    R = rotations.polar(matrix)
    U = R.T @ matrix
    return rotations.log(rotations.quaternion(R)), (U + U.T) / 2


def _check_map(text: TomlText, matrix: Floats, path: Path) -> None:
    with text.about(path):
        check_gradients(matrix[None, None], ["the map"])

"""Scenes of the engine "transfer" without sources: a target posed by hand in its cage, and the frames that lead there.

A gradient control has the target G = R U: the stretch U along the axes at rest, then the rotation R. At time t from 0
to 1 its target is exp(t log R) (1 + t (U - 1)), and that of a position control is interpolated linearly. Every frame
is solved from the rest, independently of the others; the last one is the pose. `read_cage` turns a document that
follows `CAGE_SCENE` (`pliant.engines.transfer.app.scene_keys`) into a `CageScene`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from pliant.app.scene.located_toml import KeyPath, TomlText, located
from pliant.app.scene.media import read_target
from pliant.app.scene.rotations import rotation_vector
from pliant.app.scene.schema import EngineScene, read_as
from pliant.app.scene.writing import unwritten
from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh, Shape
from pliant.core.topology import Floats
from pliant.core.values import Value, locked
from pliant.engines.transfer.app.caged_scene import CagedTarget, cage_around, check_cage_effects
from pliant.engines.transfer.app.scene_keys import CAGE_SCENE
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.controls import check_gradients
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.options import PosedOptions, Weights
from pliant.engines.transfer.plan import Control
from pliant.engines.transfer.rig import CagePose, CageRig

POSED_KEYS: dict[KeyPath, KeyPath] = {(name,): (name,) for name in CAGE_SCENE.keys}
"""Scene keys of the arguments of `CageRig`."""


@dataclass(frozen=True, eq=False)
class Gradient(Value):
    """A gradient control and its final target."""

    at: Floats
    """(3,) its point at rest."""
    turn: Floats
    """(3,) rotation vector: axis times radians."""
    stretch: Floats
    """(3, 3) before the rotation: symmetric and positive definite."""


@dataclass(frozen=True, eq=False)
class Position(Value):
    """A position control and its final target."""

    at: Floats
    """(3,) its point at rest."""
    to: Floats
    """(3,)"""


@dataclass(frozen=True, eq=False)
class CageScene(EngineScene):
    """A target, its cage and its controls, ready to run."""

    target: Shape
    cage: Mesh
    gradients: Sequence[Gradient] = ()
    positions: Sequence[Position] = ()
    lengths: Floats = field(default_factory=lambda: np.zeros((0, 2, 3)))
    """(k, 2, 3) pairs of points whose distance is constrained."""
    options: PosedOptions = field(default_factory=PosedOptions)
    weights: Weights = field(default_factory=Weights)
    title: str = "cage"
    engine: Literal["transfer"] = "transfer"
    sources: Mapping[str, Any] = field(default_factory=dict)
    """Empty: it is posed by hand."""
    blocks: bool = False

    @property
    def shape(self) -> Shape:
        """The shape that moves."""
        return self.target

    def __len__(self) -> int:
        """Number of frames."""
        return self.options.frames

    def rig(self) -> CageRig:
        """The target in its cage, with the controls."""
        with located(self.text, ("cage",), POSED_KEYS):
            return CageRig(
                self.target,
                self.cage,
                positions=_points_at_rest(self.positions),
                gradients=_points_at_rest(self.gradients),
                lengths=self.lengths,
                weights=self.weights,
                **self.options.taken_by(CageRig),
            )

    def prepare(self) -> CageRig:
        """The rig, with everything checked that can be before frames are solved."""
        with located(self.text, ("positions",), POSED_KEYS):
            self._require_positions()
        return self._checked(self.rig())

    def _require_positions(self) -> None:
        if not len(self.positions):
            others = len(self.gradients) or len(self.lengths)
            problem = "nothing fixes the position of the target" if others else "there are no controls"
            raise InputError(f"{problem}; add [[positions]] with a vertex to move, or one that stays")

    def _checked(self, rig: CageRig) -> CageRig:
        positions, gradients = self.asked()
        with located(self.text, ("gradients",), POSED_KEYS):
            rig.solutions(positions=positions, gradients=gradients)
        return rig

    def asked(self) -> tuple[Floats, Floats]:
        """Targets of the controls: positions (frames, k, 3) and gradients (frames, k, 3, 3)."""
        t = (np.ones(1) if len(self) == 1 else np.linspace(0, 1, len(self)))[:, None, None]
        rotvecs = np.reshape([control.turn for control in self.gradients], (-1, 3))
        stretches = np.reshape([control.stretch for control in self.gradients], (-1, 3, 3))
        R = rotations.matrix(rotations.exp(t * rotvecs))
        U = np.eye(3) + t[..., None] * (stretches - np.eye(3))
        goals = np.reshape([control.to for control in self.positions], (-1, 3))
        return (1 - t) * _points_at_rest(self.positions) + t * goals, R @ U

    def run(self, report: ReportFrames | None = None, rig: CageRig | None = None) -> Transfer:
        """Solve all frames; the result is that of a transfer without tracks.

        rig: of the same target and cage, to save its set-up; its controls are replaced.
        """
        made = self.prepare() if rig is None else self._bound(rig)
        positions, gradients = self.asked()
        poses: list[CagePose] = []
        if report is not None:
            report(0, len(self))
        for points, maps in zip(positions, gradients, strict=True):
            poses.append(made.solve(positions=points, gradients=maps))
            if report is not None:
                report(len(poses), len(self))
        solutions = tuple(pose.solution for pose in poses if pose.solution is not None)
        fps = self.options.fps
        cages = locked(np.array([found.points for found in solutions]))
        return Transfer(
            Animation(self.target, locked(np.array([pose.points for pose in poses])), fps, "cage"),
            solutions,
            Animation(made.cage.mesh, cages, fps, "cage"),
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
        with located(self.text, ("positions",), POSED_KEYS):
            self._require_positions()
            return rig.with_controls(
                positions=_points_at_rest(self.positions),
                gradients=_points_at_rest(self.gradients),
                lengths=self.lengths,
                weights=self.weights,
            )


def _points_at_rest(controls: Sequence[Gradient | Position]) -> Floats:
    """(k, 3) at rest."""
    return np.reshape([control.at for control in controls], (-1, 3))


# Scene files


def read_cage(text: TomlText, **changes: Any) -> CageScene:
    """The scene of a document; options that are given here take precedence over the document."""
    config = _config(text)
    maps = _maps(text, config)
    target = read_target(text, config["target"], ("target",))
    options = PosedOptions.read(config, **changes)
    cage = cage_around(text, {} if "faces" in changes else config["cage"] or {}, target, options)
    scene = CageScene(target, cage.mesh, title=config["title"] or text.source.stem)
    return _posed(scene, text, config, options, maps, cage)


def reposed(scene: CageScene, document: dict[str, Any], cage: Cage) -> CageScene:
    """The same target in the same cage with a document's controls, weights and frames.

    It equals the scene of the document (`pliant.app.scene.scene_from`) if that has this target, cage, lattice and
    outside, but is made without reading them again. cage: the scene's, checked.
    """
    text = unwritten(document, ".")
    config = _config(text)
    return _posed(scene, text, config, PosedOptions.read(config), _maps(text, config), cage)


def _config(text: TomlText) -> dict[str, Any]:
    config = read_as(CAGE_SCENE, text, text.content, ())
    check_cage_effects(text)
    return config


def _maps(text: TomlText, config: dict[str, Any]) -> list[tuple[Floats, Floats]]:
    return [_map(text, entry, ("gradients", k)) for k, entry in enumerate(config["gradients"])]


def _posed(
    scene: CageScene,
    text: TomlText,
    config: dict[str, Any],
    options: PosedOptions,
    maps: list[tuple[Floats, Floats]],
    cage: Cage,
) -> CageScene:
    """The scene with the controls, weights and frames of a document."""
    space = CagedTarget(text, scene.target, cage, options.outside == "allow")
    gradient_points = [space.point(entry["at"], ("gradients", k, "at")) for k, entry in enumerate(config["gradients"])]
    position_points = [space.point(entry["at"], ("positions", k, "at")) for k, entry in enumerate(config["positions"])]
    goals = [entry["to"] for entry in config["positions"]]
    return replace(
        scene,
        text=text,
        gradients=tuple(Gradient(at, *asked) for at, asked in zip(gradient_points, maps, strict=True)),
        positions=tuple(
            Position(at, at if to is None else np.array(to)) for at, to in zip(position_points, goals, strict=True)
        ),
        lengths=space.ends(config["lengths"]),
        options=options,
        weights=Weights.read(config),
    )


def _map(text: TomlText, config: dict[str, Any], path: KeyPath) -> tuple[Floats, Floats]:
    """A rotation vector (3,), and a stretch (3, 3) before the rotation."""
    if config["matrix"] is None:
        factors = np.broadcast_to(1.0 if config["stretch"] is None else config["stretch"], 3)
        _check_map(text, np.diag(factors), (*path, "stretch"))
        return rotation_vector(text, config["turn"], (*path, "turn")), np.diag(factors)
    for key in ("turn", "stretch"):
        if config[key] is not None:
            raise text.error('is given beside "matrix"; expected one or the other', (*path, key))
    matrix = np.array(config["matrix"])
    _check_map(text, matrix, (*path, "matrix"))
    R = rotations.polar(matrix)
    U = R.T @ matrix
    return rotations.log(rotations.quaternion(R)), (U + U.T) / 2


def _check_map(text: TomlText, matrix: Floats, path: KeyPath) -> None:
    with text.about(path):
        check_gradients(matrix[None, None], ["the map"])

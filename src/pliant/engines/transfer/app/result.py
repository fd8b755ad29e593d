"""Running a transfer's scene, and its result: the clip, and the residuals of its controls as text and numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import pliant
from pliant.app.report.outcome import EngineRun, known, percent
from pliant.core.clips import Animation
from pliant.core.errors import FileError
from pliant.core.shapes import Shape
from pliant.core.skeleton import Motion
from pliant.core.terminal import complain
from pliant.core.topology import Floats
from pliant.engines.transfer.app.posed_scene import CageScene
from pliant.engines.transfer.app.rigged_scene import RiggedScene
from pliant.engines.transfer.app.scene import TransferScene
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.judgement import Judgement
from pliant.engines.transfer.plan import Control
from pliant.engines.transfer.rig import CageSolution
from pliant.engines.transfer.rigged import RiggedTransfer
from pliant.geometry.splats import is_splats
from pliant.io import BY_SUFFIX, write_clip, write_frames

MISSED_ANGLE = 15.0
"""Error of a gradient control's rotation, in degrees, above which the summary names it."""
UNSURE = 0.5
"""Confidence of a match of limbs, below which the summary warns."""


def _named(control: Control, number: int) -> str:
    """The name of a control in a sentence."""
    name = control.track if isinstance(control.track, str) else getattr(control.track, "name", "")
    return f'The control of "{name}"' if name else f"Control {number}"


@dataclass(frozen=True, eq=False)
class JudgedRun(EngineRun):
    """A transfer, judged by what can be seen of it, what it came from, and how long it took."""

    transfer: Any
    sources: Mapping[str, Animation | Motion] = field(default_factory=dict)
    """The sources by name, to be shown beside the target."""
    title: str = "transfer"
    setup_seconds: float = math.nan
    """Time of the set-up: reading, the cage, its coordinates and smoothness; NaN if unknown."""
    solve_seconds: float = math.nan
    """Time of all frames."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The scene's settings as text."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    @property
    def clip(self) -> Animation:
        """The target as it moves."""
        return self.transfer.clip

    @property
    def judgement(self) -> Judgement:
        """What can be seen of the result."""
        return self.transfer.judgement

    @property
    def failure(self) -> str:
        """Which frames did not converge, and why the result cannot be vouched for; empty if all is well."""
        problems = self.judgement.problems if self.transfer.source is not None else ()
        names = dict.fromkeys(sentence.partition(":")[0] for sentence in problems)
        advice = "look at it, and give --map, --heading, --target-up or a scene with controls of your own"
        doubt = f"the result cannot be vouched for ({', '.join(names)}): {advice}" if names else ""
        return "; ".join(filter(None, (self.unconverged, doubt)))

    @property
    def warnings(self) -> list[str]:
        """What may be wrong with the result, in sentences that begin with a name: match, volume, stretch, ..."""
        sentences, found = [], self.transfer.registered
        if found is not None:
            if found.match.confidence < UNSURE:
                sentences.append(f"match: limbs were matched with a confidence of {found.match.confidence:.2f} only.")
            if found.match.dropped:
                lost = ", ".join(found.match.dropped)
                sentences.append(f"match: nothing of the target follows the source's {lost}; that motion is lost.")
        return sentences + list(self.judgement.problems)

    def facts(self) -> dict[str, str]:
        """The set-up as text."""
        raise NotImplementedError

    def judged(self) -> dict[str, Any]:
        """The part of ``to_dict`` that says how limbs were matched, and what came of it."""
        found, volume = self.transfer.registered, self.judgement.volume
        return {
            "registration": None if found is None else found.to_dict(),
            "warnings": self.warnings,
            "judgement": self.judgement.to_dict(),
            "volume": None if volume is None else [known(value) for value in volume],
        }


@dataclass(frozen=True, eq=False)
class TransferRun(JudgedRun):
    """A transfer by a cage."""

    transfer: Transfer
    carried: bool = True
    """Whether the Jacobians transform the target's normals and splats; not for rigid blocks."""

    def __repr__(self) -> str:
        return f"TransferRun({self.transfer!r}, {len(self.failed)} frames not converged)"

    @property
    def frames(self) -> Sequence[Shape]:
        """The target in each frame, with transformed normals and splats; computed on access."""
        return _Frames(self.transfer)

    @property
    def solutions(self) -> tuple[CageSolution, ...]:
        """One a frame."""
        return self.transfer.solutions

    @property
    def solved(self) -> Sequence[CageSolution]:
        """See `EngineRun`."""
        return self.solutions

    @cached_property
    def angles(self) -> Floats:
        """(frames, gradient controls) degrees between rotation and target."""
        return np.array([solution.gradient_angles for solution in self.solutions])

    @cached_property
    def stretches(self) -> Floats:
        """(frames, gradient controls) size over its target, minus one."""
        return np.array([solution.gradient_stretches for solution in self.solutions])

    @cached_property
    def strains(self) -> Floats:
        """(frames, gradient controls) largest stretch along any direction relative to the target, minus one."""
        return np.array([solution.gradient_strains for solution in self.solutions])

    @cached_property
    def distances(self) -> Floats:
        """(frames, position controls) distances from the targets, over the cage's diagonal."""
        return np.array([solution.position_errors for solution in self.solutions])

    @cached_property
    def lengths(self) -> Floats:
        """(frames, length controls) lengths over their targets, minus one."""
        return np.array([solution.length_errors for solution in self.solutions])

    @property
    def slowest(self) -> int:
        """The frame that took the most iterations."""
        return int(np.argmax([solution.iterations for solution in self.solutions]))

    def facts(self) -> dict[str, str]:
        """The set-up as text."""
        rig = self.transfer.rig
        controls = f"{self.angles.shape[1]} gradients, {self.distances.shape[1]} positions"
        rows = {
            "sources": "; ".join(f"{name}: {source!r}" for name, source in self.sources.items()),
            "target": repr(self.clip.shape),
            "cage": f"{len(rig.cage.points)} vertices, {len(rig.cage.triangles)} triangles",
            "controls": f"{controls}, {self.lengths.shape[1]} lengths",
            "samples": f"{len(rig.samples):,} inside the cage",
        }
        if self.transfer.registered is not None:
            rows.update(self.transfer.registered.facts())
        return self.with_times(rows)

    def met(self) -> list[str]:
        """How well the controls are met over all frames, in sentences."""
        lines = []
        if self.angles.size:
            sizes = np.abs(self.stretches)
            rotations = (
                f"Rotations are met within {self.angles.max():.1f}° ({np.median(self.angles):.1f}° in the median)"
            )
            lines.append(
                f"{rotations}, sizes within {percent(sizes.max())} ({percent(np.median(sizes))}), stretches along any "
                f"direction within {percent(self.strains.max())} ({percent(np.median(self.strains))})."
            )
            worst = int(np.argmax(self.angles.max(axis=0)))
            missed = float(self.angles[:, worst].max())
            if missed > MISSED_ANGLE:
                advice = "give it a reference pose (`before`), or leave it out"
                if self.transfer.source is not None:
                    advice = "--faces gives a finer cage, --map says which limbs follow which"
                lines.append(
                    f"{_named(self.transfer.controls[worst], worst)} misses its rotation by {missed:.0f}°: {advice}."
                )
        if self.distances.size:
            lines.append(f"Positions are met within {percent(self.distances.max())} of the cage's diagonal.")
        if self.lengths.size:
            lines.append(f"Lengths are kept within {percent(np.abs(self.lengths).max())}.")
        return lines

    def lines(self) -> list[str]:
        """A summary for a terminal."""
        iterations = [solution.iterations for solution in self.solutions]
        converged = self.unconverged or "all frames converged"
        return [
            *(f"{name:>9}: {value}" for name, value in self.facts().items()),
            f"   frames: {len(self.solutions)}, {self.clip.fps:.4g} a second; {converged}",
            f"    steps: {np.median(iterations):.0f} a frame in the median, {max(iterations)} at most",
            *(f"      met: {sentence}" for sentence in self.met()),
            *(f"  warning: {sentence}" for sentence in self.warnings),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts, lists and None, ready for JSON."""
        rig = self.transfer.rig
        return {
            "title": self.title,
            "sources": list(self.sources),
            "tracks": list(self.transfer.tracks),
            "vertices": len(self.clip.shape.points),
            "cage_vertices": len(rig.cage.points),
            "cage_faces": len(rig.cage.triangles),
            **self.judged(),
            **self.figures(self.clip.fps),
            "frames": [
                {
                    "iterations": solution.iterations,
                    "residual": known(solution.residual),
                    "converged": solution.converged,
                    "energies": solution.energies.tolist(),
                    "gradient_angles": solution.gradient_angles.tolist(),
                    "gradient_stretches": solution.gradient_stretches.tolist(),
                    "gradient_strains": solution.gradient_strains.tolist(),
                    "position_errors": solution.position_errors.tolist(),
                    "length_errors": solution.length_errors.tolist(),
                    "message": solution.message,
                }
                for solution in self.solutions
            ],
        }


@dataclass(frozen=True, eq=False)
class RiggedRun(JudgedRun):
    """A transfer onto a target's own skeleton."""

    transfer: RiggedTransfer

    def __repr__(self) -> str:
        return f"RiggedRun({self.transfer!r})"

    @property
    def solved(self) -> Sequence[Any]:
        """Nothing has to converge."""
        return [_PLAYED] * len(self.clip)

    def facts(self) -> dict[str, str]:
        """The set-up as text."""
        rows = {
            "sources": "; ".join(f"{name}: {source!r}" for name, source in self.sources.items()),
            "target": repr(self.clip.shape),
            "skeleton": f"{len(self.transfer.motion.skeleton)} joints in the target; its skin moves it",
        }
        return self.with_times(rows | self.transfer.registered.facts())

    def lines(self) -> list[str]:
        """A summary for a terminal."""
        return [
            *(f"{name:>9}: {value}" for name, value in self.facts().items()),
            f"   frames: {len(self.clip)}",
            *(f"  warning: {sentence}" for sentence in self.warnings),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts, lists and None, ready for JSON."""
        return {
            "title": self.title,
            "sources": list(self.sources),
            "vertices": len(self.clip.shape.points),
            "joints": list(self.transfer.motion.skeleton.names),
            **self.judged(),
            **self.figures(self.clip.fps),
        }


@dataclass(frozen=True)
class _Played:
    """A frame of a skin, which is computed and not solved for."""

    converged: bool = True


_PLAYED = _Played()


@dataclass(frozen=True, eq=False)
class _Frames(Sequence[Shape]):
    transfer: Transfer

    def __len__(self) -> int:
        return len(self.transfer)

    def __getitem__(self, frame: Any) -> Any:
        return self.transfer.shape(range(len(self))[frame])

    def __iter__(self) -> Iterator[Shape]:
        return self.transfer.shapes()


AnyScene = TransferScene | CageScene | RiggedScene


def solve(scene: AnyScene, solver: Any, show: Any, seconds: float) -> TransferRun | RiggedRun:
    """Solve all frames; seconds: time of the set-up."""
    ready = time.perf_counter()
    moved = scene.run(show, solver)
    solved = time.perf_counter() - ready
    if isinstance(moved, RiggedTransfer):
        return RiggedRun(moved, scene.sources, scene.title, seconds, solved, _settings(scene))
    return TransferRun(
        moved, scene.sources, scene.title, seconds, solved, _settings(scene), not getattr(scene, "blocks", False)
    )


def write(output: str, run: TransferRun | RiggedRun) -> list[Path]:
    """Write the clip; formats with a file for each frame include transformed normals and splats.

    Formats of motions hold that of the target's joints.
    """
    format = BY_SUFFIX.get(Path(output).suffix.lower() or ".obj")
    if format is not None and "motion" in format.writes and not {"animation", "mesh"} & set(format.writes):
        return pliant.write(output, _joint_motion(output, run))
    if isinstance(run, RiggedRun):
        return write_clip(output, run.clip)
    if run.carried and format is not None and "animation" not in format.writes:
        return write_frames(output, run.frames) if len(run.frames) > 1 else pliant.write(output, run.frames[0])
    shape = run.clip.shape
    if isinstance(shape, pliant.PointCloud) and is_splats(shape):
        complain(f"pliant: {output} holds where the splats go, not how they turn and stretch; write .ply")
    return write_clip(output, run.clip)


def _joint_motion(output: str, run: TransferRun | RiggedRun) -> Motion:
    if isinstance(run, RiggedRun):
        return run.transfer.motion
    found = run.transfer.registered
    if found is None:
        raise FileError(output, "holds a motion of joints, and the target has none; write .glb, .usdc, .pc2 or .npz")
    return replace(found.motion.at(run.transfer.times), fps=run.clip.fps)


def _settings(scene: AnyScene) -> dict[str, str]:
    settings = {"scene": scene.file} if scene.file else {}
    settings |= {name: str(value) for name, value in scene.options.changed().items()}
    if isinstance(scene, RiggedScene):
        return settings
    settings |= {"blocks": "each connected part moves rigidly"} if scene.blocks else {}
    return settings | ({"weights": str(scene.weights)} if scene.weights.changed() else {})

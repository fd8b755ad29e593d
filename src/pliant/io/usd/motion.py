"""What moves on a USD stage: points and transforms over time, blend shapes and skins.

Every frame is evaluated at its own time code and brought to the world. A mesh bound to a skeleton is deformed as
UsdSkel defines it: blend shapes first (offsets times weights, added), then linear or dual-quaternion skinning by the
USD library, then the skeleton's transform in place of the mesh's own.

    p = (points + Σ w_k offsets_k) · skin(t) · world(t)

An in-between shape is called as its blend shape is, with its weight behind it, as in ``smile_0.5``. It is a shape of
its own in `Shapes`; where a stage is evaluated, the offsets go straight from one to the next.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pliant.core.clips import DEFAULT_FPS
from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats
from pliant.core.values import stack_frames
from pliant.io.joining import moved
from pliant.io.source import LARGEST_UNPACKED, Source
from pliant.io.usd.geometry import NAME_PROPERTY, PrimGeometry, check_same_count, integers, location_of, table
from pliant.io.usd.stage import library, size_of

LARGEST_TRANSFORM_ENTRY = 1e100
"""Of a transform's entries: beyond, products of a few overflow."""
MOST_EVALUATIONS, BYTES_PER_EVALUATION = 100_000, 10
"""How often a part may be evaluated: in the smallest stage, and for the bytes of a larger one."""
USUAL_RATES = 10.0, 120.0
"""Frames a second at which clips are made. Time codes that are not are seconds or ticks, samples key frames."""


def checked_transform(source: Source, transform: Floats, prim: Any) -> Floats:
    """A transform whose entries are numbers of a usual size."""
    if not np.isfinite(transform).all() or np.abs(transform).max() > LARGEST_TRANSFORM_ENTRY:
        raise source.error("has a transform that is not finite", location=location_of(prim))
    return transform


@dataclass(frozen=True, eq=False)
class Mover:
    """A part with everything that can move it."""

    source: Source
    part: PrimGeometry
    skeleton: Any
    """The skeleton's query, or None."""
    skin: Any
    """The part's skinning query, or None."""

    @property
    def shapes(self) -> dict[str, Floats]:
        """(n, 3) offsets of each blend shape and in-between, by name, in the part's own space."""
        return self._blend_shapes[0]

    @property
    def inbetweens(self) -> dict[str, dict[float, str]]:
        """By blend shape that has any, the names of its in-betweens, by weight."""
        return self._blend_shapes[1]

    @cached_property
    def _blend_shapes(self) -> tuple[dict[str, Floats], dict[str, dict[float, str]]]:
        return _blend_shapes(self.source, self.part)

    @property
    def is_skinned(self) -> bool:
        """Whether joints move its points."""
        return self.skin is not None and self.skeleton is not None and bool(self.skin.HasJointInfluences())

    def times(self) -> set[float]:
        """Time codes at which anything that moves this part is given."""
        UsdGeom = library("UsdGeom")
        found = set(UsdGeom.PointBased(self.part.prim).GetPointsAttr().GetTimeSamples())
        at = self.part.prim
        while at and not at.IsPseudoRoot():
            if at.IsA(UsdGeom.Xformable):
                found.update(UsdGeom.Xformable(at).GetTimeSamples())
            at = at.GetParent()
        clip = self.skeleton.GetAnimQuery() if self.skeleton else None
        if clip and self.is_skinned:
            found.update(clip.GetJointTransformTimeSamples())
        return found | self.weight_times()

    def weight_times(self) -> set[float]:
        """Time codes at which the weights of its blend shapes are given."""
        clip = self.skeleton.GetAnimQuery() if self.skeleton else None
        return set(clip.GetBlendShapeWeightTimeSamples()) if clip and self.shapes else set()

    def rest(self) -> Floats:
        """(n, 3) points at rest, in the world."""
        Usd, UsdGeom = library("Usd"), library("UsdGeom")
        return moved(self.part.points, self.rest_transform(UsdGeom.XformCache(Usd.TimeCode.EarliestTime())))

    def rest_transform(self, xforms: Any) -> Floats:
        """(4, 4) from the part's space to the world at rest; a skinned mesh stands where its skeleton binds it."""
        world = self._to_world(xforms)
        if not self.is_skinned:
            return world
        return checked_transform(self.source, np.array(self.skin.GetGeomBindTransform()), self.part.prim) @ world

    def _to_world(self, xforms: Any) -> Floats:
        """(4, 4) of the prim, or of the skeleton that carries it."""
        prim = self.skeleton.GetPrim() if self.is_skinned else self.part.prim
        return checked_transform(self.source, np.array(xforms.GetLocalToWorldTransform(prim)), prim)

    def at(self, time: float) -> Floats:
        """(n, 3) points in the world at a time code."""
        UsdGeom = library("UsdGeom")
        attribute = UsdGeom.PointBased(self.part.prim).GetPointsAttr()
        points = table(self.source, self.part.prim, attribute.Get(time), 3, f"points at {time:g}")
        check_same_count(self.source, self.part, len(points), f"time {time:g}")
        weights = self._shares(self.weights(time))
        if weights:
            points = points + sum(weight * self.shapes[name] for name, weight in weights.items())
        points = self._skinned(points, time) if self.is_skinned else points
        return moved(points, self._to_world(UsdGeom.XformCache(time)))

    def weights(self, time: float) -> dict[str, float]:
        """The weights of its blend shapes at a time code, by name, without those that are 0."""
        clip = self.skeleton.GetAnimQuery() if self.skeleton else None
        if not clip or not self.shapes:
            return {}
        tokens = [str(token) for token in clip.GetBlendShapeOrder()]
        weights = np.array(clip.ComputeBlendShapeWeights(time), dtype=np.float64).reshape(-1)
        names = {token: name for token, name, _ in _targets(self.source, self.part)}
        return {names[t]: float(w) for t, w in zip(tokens, weights, strict=False) if t in names and w}

    def _shares(self, weights: dict[str, float]) -> dict[str, float]:
        """The weights with those of in-betweens: on the straight line from one shape of a slider to the next."""
        shares = dict(weights)
        for name in self.inbetweens.keys() & weights:
            at = {0.0: "", **self.inbetweens[name], 1.0: name}
            values = sorted(at)
            k = int(np.clip(np.searchsorted(values, weights[name], side="right") - 1, 0, len(values) - 2))
            t = (weights[name] - values[k]) / (values[k + 1] - values[k])
            shares |= {name: 0.0, at[values[k]]: 1 - t, at[values[k + 1]]: t}
        shares.pop("", None)
        return shares

    def _skinned(self, points: Floats, time: float) -> Floats:
        Vt = library("Vt")
        joints = self.skeleton.ComputeSkinningTransforms(time)
        mapper = self.skin.GetJointMapper() if hasattr(self.skin, "GetJointMapper") else self.skin.GetMapper()
        if mapper and not mapper.IsIdentity():
            joints = mapper.RemapTransforms(joints) if hasattr(mapper, "RemapTransforms") else mapper.Remap(joints)
        buffer = Vt.Vec3fArray.FromNumpy(points.astype(np.float32))
        if not self.skin.ComputeSkinnedPoints(joints, buffer, time):
            raise self.source.error("its skin does not fit its skeleton", location=location_of(self.part.prim))
        return table(self.source, self.part.prim, buffer, 3, f"skinned points at {time:g}")


def movers(source: Source, stage: Any, parts: list[PrimGeometry]) -> list[Mover]:
    """The parts with their skins and skeletons."""
    Usd, UsdSkel = library("Usd"), library("UsdSkel")
    cache = UsdSkel.Cache()
    everything = Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)
    bound = {}
    for prim in Usd.PrimRange(stage.GetPseudoRoot(), everything):
        if prim.IsA(UsdSkel.Root):
            root = UsdSkel.Root(prim)
            cache.Populate(root, everything)
            for binding in cache.ComputeSkelBindings(root, everything):
                for query in binding.GetSkinningTargets():
                    bound[query.GetPrim().GetPath()] = (cache.GetSkelQuery(binding.GetSkeleton()), query)
    return [Mover(source, part, *bound.get(part.prim.GetPath(), (None, None))) for part in parts]


def _targets(source: Source, part: PrimGeometry) -> list[tuple[str, str, Any]]:
    """Token, name and prim of each of a part's blend shapes, in the file's order."""
    UsdSkel = library("UsdSkel")
    binding = UsdSkel.BindingAPI(part.prim)
    tokens = [str(token) for token in binding.GetBlendShapesAttr().Get() or ()]
    targets = binding.GetBlendShapeTargetsRel().GetTargets()
    if len(tokens) != len(targets):
        problem = f"names {len(tokens)} blend shapes and has {len(targets)}"
        raise source.error(problem, location=location_of(part.prim))
    found = []
    for token, target in zip(tokens, targets, strict=True):
        prim = part.prim.GetStage().GetPrimAtPath(target)
        if not prim or not prim.IsA(UsdSkel.BlendShape):
            raise source.error(f"the blend shape {target} is missing", location=location_of(part.prim))
        kept = prim.GetCustomDataByKey(NAME_PROPERTY)
        found.append((token, kept if isinstance(kept, str) else token, prim))
    return found


def _blend_shapes(source: Source, part: PrimGeometry) -> tuple[dict[str, Floats], dict[str, dict[float, str]]]:
    """Offsets of blend shapes and in-betweens by name, and the in-betweens' names by shape and weight."""
    shapes: dict[str, Floats] = {}
    inbetweens: dict[str, dict[float, str]] = {}
    skipped = 0
    for _, name, prim in _targets(source, part):
        shape = library("UsdSkel").BlendShape(prim)
        between: dict[float, Any] = {}
        for one in shape.GetInbetweens():
            weight = one.GetWeight()
            if weight is not None and 0 < weight < 1:
                between[float(f"{weight:.6g}")] = one
            else:
                skipped += 1
        for weight in sorted(between):
            called = f"{name}_{weight:g}"
            inbetweens.setdefault(name, {})[weight] = called
            shapes[called] = _offsets(source, prim, between[weight].GetOffsets(), len(part.points))
        shapes[name] = _offsets(source, prim, shape.GetOffsetsAttr().Get(), len(part.points))
    if skipped:
        text = f"left out {skipped} in-between shapes; expected weights above 0 and below 1"
        warnings.warn(f"{source.label}, {location_of(part.prim)}: {text}", PliantWarning, stacklevel=2)
    return shapes, inbetweens


def _offsets(source: Source, prim: Any, given: Any, count: int) -> Floats:
    """(count, 3) of one blend shape or in-between, whether it lists all points or some."""
    shape = library("UsdSkel").BlendShape(prim)
    offsets = table(source, prim, given, 3, "offsets")
    if not shape.GetPointIndicesAttr().HasAuthoredValue():
        if len(offsets) not in (0, count):
            raise source.error(f"has {len(offsets)} offsets for {count} points", location=location_of(prim))
        return offsets if len(offsets) else np.zeros((count, 3))
    chosen = integers(source, prim, shape.GetPointIndicesAttr().Get(), "pointIndices")
    if len(chosen) != len(offsets):
        raise source.error(f"has {len(offsets)} offsets for {len(chosen)} pointIndices", location=location_of(prim))
    if chosen.size and (chosen.min() < 0 or chosen.max() >= count):
        raise source.error(f"pointIndices reach {chosen.max()}; there are {count} points", location=location_of(prim))
    dense = np.zeros((count, 3))
    dense[chosen] = offsets
    return dense


def frame_times(source: Source, stage: Any, times: set[float], fps: float | None) -> tuple[Floats, float]:
    """The time codes of an animation's frames, and how many are a second: as `fps` asks, or as the stage was made."""
    codes = float(stage.GetTimeCodesPerSecond())
    start, end = float(stage.GetStartTimeCode()), float(stage.GetEndTimeCode())
    if not stage.HasAuthoredTimeCodeRange():
        start, end = (min(times), max(times)) if times else (0.0, 0.0)
    if not (np.isfinite([codes, start, end]).all() and codes > 0 and end >= start):
        raise source.error(f"runs from time code {start} to {end} at {codes} a second; expected a rising range")
    rate = fps or _own_rate(source, stage, codes, times)
    count = np.floor((end - start) / codes * rate + 1e-3) + 1
    if count > 1e6:
        raise source.error(f"runs from time code {start:g} to {end:g}; that is more than a million frames")
    return np.asarray(start + np.arange(int(count)) * (codes / rate), dtype=np.float64), rate


def _own_rate(source: Source, stage: Any, codes: float, times: set[float]) -> float:
    """Frames a second: what the stage says; else of its samples if even; else of its time codes if usual; else 30."""
    if stage.HasAuthoredMetadata("framesPerSecond"):
        rate = float(stage.GetFramesPerSecond())
        if not (np.isfinite(rate) and rate > 0):
            raise source.error(f"has {rate} frames a second; expected a positive number")
        return rate
    slowest, fastest = USUAL_RATES
    steps = np.diff(sorted(times)) / codes
    if len(steps) > 1 and steps.max() < 1 / slowest and np.ptp(steps) < 0.02 * steps.max():
        return round(float(1 / steps.mean()), 3)
    return codes if slowest <= codes <= fastest else DEFAULT_FPS


def check_evaluations(source: Source, parts: list[Mover], at: Floats) -> None:
    """Check that evaluating all parts at all time codes is in proportion to the stage."""
    most = max(MOST_EVALUATIONS, size_of(parts[0].part.prim.GetStage()) // BYTES_PER_EVALUATION)
    if len(at) * len(parts) > most:
        problem = f"has {len(at):,} frames of {len(parts):,} parts; the limit for its size is {most:,} in all"
        raise source.error(f"{problem}; ask for fewer with fps=")


def weights_at(source: Source, parts: list[Mover], names: tuple[str, ...], at: Floats) -> Floats:
    """(frames, names) weights of blend shapes at the given time codes; of several parts, those of the first."""
    check_evaluations(source, parts, at)
    number = {name: k for k, name in enumerate(names)}
    values = np.zeros((len(at), len(names)))
    for frame, time in enumerate(at):
        for part in reversed(parts):
            for name, weight in part.weights(float(time)).items():
                values[frame, number[name]] = weight
    return values


def animated(source: Source, parts: list[Mover], at: Floats) -> Floats:
    """(frames, n, 3) all parts' points at the given time codes, in the world."""
    count = sum(len(mover.part.points) for mover in parts)
    check_evaluations(source, parts, at)
    if len(at) * count * 24 > LARGEST_UNPACKED:
        raise source.error(f"has {len(at)} frames of {count} points; that is more than {LARGEST_UNPACKED:,} bytes")
    return stack_frames(np.concatenate([mover.at(float(time)) for mover in parts]) for time in at)

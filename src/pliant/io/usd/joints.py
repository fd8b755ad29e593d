"""UsdSkel's skeletons: joints where they were bound, and how a stage moves them.

With matrices that act on row vectors, S the skeleton's transform to the world and J_j(t) a joint's in the skeleton's
space, joints stand at bind_j · S at rest and at J_j(t) · S in a frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.core.shapes import World
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.io.naming import unique_names
from pliant.io.posing import joint_motion, rest_skeleton
from pliant.io.source import Source
from pliant.io.usd.motion import MOST_EVALUATIONS, checked_transform
from pliant.io.usd.stage import library

PLIANT = "pliant"
"""Custom data of a mesh that pliant wrote, whose labels are complete as they stand, and of a skeleton that only stands
there because UsdSkel requires one of blend shapes."""


def skeleton_queries(stage: Any) -> list[Any]:
    """The skeletons with joints that a viewer would draw, those with a motion first."""
    Usd, UsdSkel = library("Usd"), library("UsdSkel")
    cache = UsdSkel.Cache()
    everything = Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)
    found = []
    for prim in Usd.PrimRange(stage.GetPseudoRoot(), everything):
        if prim.IsA(UsdSkel.Root):
            cache.Populate(UsdSkel.Root(prim), everything)
        if prim.IsA(UsdSkel.Skeleton):
            query = cache.GetSkelQuery(UsdSkel.Skeleton(prim))
            if query and len(query.GetJointOrder()) and not prim.GetCustomDataByKey(PLIANT):
                found.append(query)
    return sorted(found, key=lambda query: not joint_times(query))


def joint_times(query: Any) -> set[float]:
    """Time codes at which joints are given."""
    clip = query.GetAnimQuery()
    return set(clip.GetJointTransformTimeSamples()) if clip else set()


def joint_names(skeleton: Any, joints: list[str]) -> list[str]:
    """What joints, given by their paths, are called: the skeleton's own names, else the last parts, else the paths."""
    given = skeleton.GetSkeleton().GetJointNamesAttr().Get() or ()
    own = joints == [str(joint) for joint in skeleton.GetJointOrder()] and len(given) == len(joints)
    short = [str(name) for name in given] if own else [joint.rsplit("/", 1)[-1] for joint in joints]
    return short if len(set(short)) == len(short) else joints


def stage_world(stage: Any) -> World:
    """Axes and units of a stage."""
    UsdGeom = library("UsdGeom")
    return World("z" if UsdGeom.GetStageUpAxis(stage) == "Z" else "y", float(UsdGeom.GetStageMetersPerUnit(stage)))


def stage_skeleton(source: Source, query: Any) -> Skeleton:
    """A skeleton, where it was bound."""
    names = unique_names(joint_names(query, [str(joint) for joint in query.GetJointOrder()]))
    parents = np.array(query.GetTopology().GetParentIndices(), dtype=np.int64)
    return rest_skeleton(names, parents, _bound(source, query), stage_world(query.GetPrim().GetStage()))


def _bound(source: Source, query: Any) -> Floats:
    """(j, 4, 4) where the joints were bound, in the world."""
    Usd = library("Usd")
    bind = np.array(query.GetJointWorldBindTransforms(), dtype=np.float64).reshape(-1, 4, 4)
    count = len(query.GetJointOrder())
    if len(bind) != count:
        raise source.error(f"has a skeleton of {count} joints and {len(bind)} bindTransforms; expected as many")
    world = bind @ _to_world(source, query, Usd.TimeCode.EarliestTime())
    return checked_transform(source, _columns(world), query.GetPrim())


def stage_motion(source: Source, query: Any, at: Floats, fps: float) -> Motion:
    """A skeleton at time codes."""
    if len(at) * len(query.GetJointOrder()) > 100 * MOST_EVALUATIONS:
        raise source.error(f"has {len(at):,} frames of {len(query.GetJointOrder()):,} joints; give a lower fps")
    frames = []
    for time in at.tolist():
        joints = np.array(query.ComputeJointSkelTransforms(time), dtype=np.float64).reshape(-1, 4, 4)
        if len(joints) != len(query.GetJointOrder()):
            raise source.error("has a skeleton whose joints cannot be evaluated; its animation does not fit it")
        frames.append(_columns(joints @ _to_world(source, query, time)))
    world = checked_transform(source, np.stack(frames), query.GetPrim())
    return joint_motion(stage_skeleton(source, query), _bound(source, query), world, fps, source.stem)


def _to_world(source: Source, query: Any, time: Any) -> Floats:
    """(4, 4) from the skeleton's space to the world."""
    transform = library("UsdGeom").XformCache(time).GetLocalToWorldTransform(query.GetPrim())
    return checked_transform(source, np.array(transform), query.GetPrim())


def _columns(world: Floats) -> Floats:
    """Matrices that act on column vectors."""
    return np.swapaxes(world, -1, -2)

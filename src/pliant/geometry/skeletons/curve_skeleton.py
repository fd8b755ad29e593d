"""A skeleton from the shape alone: the curve skeleton of any closed surface.

`extract_skeleton` voxelises the inside (`voxels`), finds the limbs and a path through each (`limbs`; the paths as
TEASAR, Sato and others 2000, has them), and draws the paths to the middle (`centreline`). Joints then come

- at the root, at forks and at the ends of limbs;
- at the base of a limb, where it leaves the largest ball around the fork that it starts from: a shoulder, a hip;
- at bends, where the middle line is farther than `BEND` widths from the straight bone (Douglas and Peucker);
- evenly between, until a limb of length L and width w has about ``√(1.2 L / w)`` bones: an arm three, a tail five;
- wherever a bone would otherwise leave the surface.

Nothing is learnt and no kind of animal is known: knees and elbows are found where limbs bend, else by division.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import InputError, PliantWarning
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, TetMesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats
from pliant.core.validation import whole_number
from pliant.geometry.skeletons.centreline import Line, LineTree, centre_lines
from pliant.geometry.skeletons.limbs import LEAST_SLENDERNESS, limb_paths
from pliant.geometry.skeletons.voxels import COUNT, MOST_VOXELS, Solid, voxelised

BEND = 0.3
"""Distance of a middle line from its bone, over the limb's width, from which on there is a joint."""
SHORTEST_BONE = 0.5
"""Length of a bone, over the limb's width, below which it is not divided at bends."""
MOST_BONES = 8
"""Of a limb that does not bend."""
THIN_TIP = 0.4
"""Share of a limb, at its end, that may be too thin for a bone."""
SHORTEST_LIMB = 0.05
"""Length of a limb, over the diagonal, that is left out if no bone fits into it."""
FEWEST_VOXELS = 1000
"""Least number of voxels."""
MOST_JOINTS = 10_000
"""Of a skeleton."""
DEFAULT_MOST_JOINTS = 60
"""Of a skeleton, if no number is given: spikes, scales and hair are no limbs."""
SPIKE = 0.1
"""Volume of a limb, over the largest, below which it goes first where there are too many."""


@dataclass(frozen=True, eq=False)
class Course:
    """A line and the lengths along it at which joints sit; the last is its end."""

    line: Line
    stations: tuple[float, ...]

    @property
    def positions(self) -> Floats:
        """(j + 1, 3) the start and the joints."""
        return np.stack([self.line.points[0], *(self.line.at(length) for length in self.stations)])

    @property
    def volume(self) -> float:
        """About the limb's, up to a factor."""
        return float(self.line.along[-1] * np.median(self.line.width) ** 2)

    def divided(self, bone: int, length: float) -> Course:
        """With another joint on one of its bones."""
        return Course(self.line, (*self.stations[:bone], length, *self.stations[bone:]))

    def span(self, bone: int) -> tuple[float, float]:
        """Where a bone begins and ends."""
        return (self.stations[bone - 1] if bone else 0.0), self.stations[bone]


@takes_meshes("mesh")
def extract_skeleton(
    mesh: Mesh | TetMesh, *, joints: int | None = None, shortest_limb: float = LEAST_SLENDERNESS, voxels: int = COUNT
) -> Skeleton:
    """The curve skeleton of a closed surface: one tree, in the middle, inside, with joints at the limbs.

    The surface may have several parts, small holes and open seams; the inside is found by winding number.
    joints: how many there are to be; if not given, as the shape has them, the most significant 60 at most.
    shortest_limb: length over width from which on something that sticks out gets bones of its own.
    voxels: how many the inside is cut into, about; limbs thinner than two of them are missed.

    Joints are called "root" and "limb1.1", "limb1.2", ... from the body outwards, the longest limb first.
    """
    if not isinstance(mesh, (Mesh, TetMesh)):
        raise InputError(f"got a {type(mesh).__name__}; expected a Mesh or TetMesh to find the skeleton of")
    if joints is not None:
        whole_number(joints, "joints", 2, MOST_JOINTS, argument="joints")
    if not (np.isfinite(shortest_limb) and shortest_limb > 0):
        raise InputError(f"shortest_limb is {shortest_limb!r}; expected a positive length over width, such as 1")
    whole_number(voxels, "voxels", FEWEST_VOXELS, MOST_VOXELS)
    solid = Solid.of(mesh)
    inside = voxelised(solid, count=voxels)
    tree = centre_lines(inside, limb_paths(inside, slender=shortest_limb))
    courses = [_kept_inside(_with_joints(line, float(tree.depth[line.start])), solid) for line in tree.lines]
    courses = _trimmed(courses, solid)
    if joints is not None:
        courses = _counted(courses, joints, solid)
    elif _joint_count(courses) > DEFAULT_MOST_JOINTS:
        courses = _counted(_without_spikes(courses, DEFAULT_MOST_JOINTS), DEFAULT_MOST_JOINTS, solid)
    skeleton, starts = _assembled(tree, courses, solid)
    _check_inside(skeleton, starts, solid)
    return skeleton


def _with_joints(line: Line, ball: float) -> Course:
    """Joints at the base, at bends, and evenly between. ball: the depth at the node where the line starts."""
    along = line.along
    total = float(along[-1])
    out = np.flatnonzero(np.linalg.norm(line.points - line.points[0], axis=1) > ball)
    base = int(out[0]) if out.size else len(along)
    course = Course(line, (total,))
    if base < 0.7 * len(along) and ball > 0.65 * np.median(line.width[base:]):
        course = course.divided(0, float(along[base]))
    width = float(np.median(line.width[base if base < 0.7 * len(along) else 0 :]))
    first = len(course.stations) - 1
    bone = first
    while bone < len(course.stations):
        length, deviation = _farthest(line, *course.span(bone))
        start, end = course.span(bone)
        if deviation > BEND * width and min(length - start, end - length) > SHORTEST_BONE * width:
            course = course.divided(bone, length)
        else:
            bone += 1
    wanted = int(np.clip(round(np.sqrt(1.2 * (total - course.span(first)[0]) / width)), 1, MOST_BONES))
    while len(course.stations) - first < wanted:
        spans = np.array([np.ptp(course.span(bone)) for bone in range(first, len(course.stations))])
        longest = first + int(np.argmax(spans))
        course = course.divided(longest, float(np.mean(course.span(longest))))
    return course


def _farthest(line: Line, start: float, end: float) -> tuple[float, float]:
    """Where on a part of a line it is farthest from the straight bone, and how far."""
    along = line.along
    between = np.flatnonzero((along > start) & (along < end))
    if not between.size:
        return (start + end) / 2, 0.0
    a, b = line.at(start), line.at(end)
    direction = (b - a) / max(float(np.linalg.norm(b - a)), 1e-300)
    away = line.points[between] - a
    apart = np.linalg.norm(away - (away @ direction)[:, None] * direction, axis=1)
    return float(along[between[np.argmax(apart)]]), float(apart.max())


def _kept_inside(course: Course, solid: Solid) -> Course:
    """With more joints where bones would leave the surface though the line does not."""
    along, inside = course.line.along, solid.tree.inside(course.line.points)
    for _ in range(6):
        positions = course.positions
        outside = np.flatnonzero(~solid.contains(positions[:-1], positions[1:]))
        if not outside.size:
            break
        for bone in outside[::-1]:
            start, end = course.span(int(bone))
            if not inside[(along >= start) & (along <= end)].all():
                continue
            length, deviation = _farthest(course.line, start, end)
            if deviation > 0 and min(length - start, end - length) > 0.1 * (end - start):
                course = course.divided(int(bone), length)
            else:
                course = course.divided(int(bone), (start + end) / 2)
    return course


def _trimmed(courses: list[Course], solid: Solid) -> list[Course]:
    """Limbs without tips that are too thin for a bone: the last bones that leave the surface, if they are short."""
    starts = {course.line.start for course in courses}
    kept = []
    for course in courses:
        positions = course.positions
        outside = np.flatnonzero(~solid.contains(positions[:-1], positions[1:]))
        inner = int(outside[0]) if outside.size else len(course.stations)
        if course.line.end in starts or inner == len(course.stations):
            kept.append(course)
        elif course.span(inner)[0] > (1 - THIN_TIP) * course.stations[-1]:
            kept.append(Course(course.line, course.stations[:inner]))
        elif course.stations[-1] > SHORTEST_LIMB:
            kept.append(course)
    return kept


def _joint_count(courses: list[Course]) -> int:
    """With the root."""
    return 1 + sum(len(course.stations) for course in courses)


def _without_spikes(courses: list[Course], most: int) -> list[Course]:
    """Without the smallest limbs, while there are more than `most` joints, and limbs far smaller than the largest."""
    courses, least = list(courses), SPIKE * max(course.volume for course in courses)
    while _joint_count(courses) > most and _limb_dropped(courses, least):
        pass
    return courses


def _counted(courses: list[Course], joints: int, solid: Solid) -> list[Course]:
    """With joints added on the longest bones, or left out where the line is straightest; then small limbs go."""
    courses = list(courses)
    while _joint_count(courses) < joints:
        spans = [
            (np.ptp(course.span(b)), k, b) for k, course in enumerate(courses) for b in range(len(course.stations))
        ]
        _, k, bone = max(spans)
        courses[k] = courses[k].divided(bone, float(np.mean(courses[k].span(bone))))
    while _joint_count(courses) > joints:
        if not _left_out(courses, solid) and not _limb_dropped(courses):
            break
    return courses


def _left_out(courses: list[Course], solid: Solid) -> bool:
    """Leave out the joint that is missed least; whether there was one that can be spared."""
    found: tuple[float, int, int] | None = None
    for k, course in enumerate(courses):
        for bone in range(len(course.stations) - 1):
            start, end = course.span(bone)[0], course.stations[bone + 1]
            missed = _farthest(course.line, start, end)[1] + 0.01 * (end - start)
            if found is not None and missed >= found[0]:
                continue
            if solid.contains(course.line.at(start)[None], course.line.at(end)[None])[0]:
                found = missed, k, bone
    if found is None:
        return False
    _, k, bone = found
    stations = courses[k].stations
    courses[k] = Course(courses[k].line, (*stations[:bone], *stations[bone + 1 :]))
    return True


def _limb_dropped(courses: list[Course], smaller: float = np.inf) -> bool:
    """Drop the smallest limb that ends freely, if it is smaller; whether there was one beside the last."""
    starts = {course.line.start for course in courses}
    free = [k for k, course in enumerate(courses) if course.line.end not in starts]
    smallest = min(free, key=lambda k: courses[k].volume)
    if len(courses) < 2 or courses[smallest].volume >= smaller:
        return False
    del courses[smallest]
    return True


def _assembled(tree: LineTree, courses: list[Course], solid: Solid) -> tuple[Skeleton, Floats]:
    """The skeleton in the mesh's units, and (j, 3) where its joints are in the solid's frame."""
    beyond = _beyond(courses)
    limb_of: dict[int, tuple[int, int]] = {}  # by node: the limb that goes on from it, and its last joint's number
    names, parents, positions = ["root"], [-1], [tree.nodes[0]]
    joint_of = {0: 0}
    limbs = 0
    for course in _sorted_outwards(courses, beyond):
        node = course.line.start
        if node in limb_of:
            limb, number = limb_of.pop(node)
        else:
            limbs += 1
            limb, number = limbs, 0
        parent = joint_of[node]
        for position in course.positions[1:]:
            number += 1
            names.append(f"limb{limb}.{number}")
            parents.append(parent)
            positions.append(position)
            parent = len(positions) - 1
        joint_of[course.line.end] = parent
        limb_of[course.line.end] = limb, number
    inner = np.array(positions)
    return Skeleton.from_positions(solid.outwards(inner), np.array(parents), names), inner


def _beyond(courses: list[Course]) -> dict[int, float]:
    """By node, the length of the longest path outwards from it."""
    beyond: dict[int, float] = {}
    for course in reversed(courses):
        reach = course.stations[-1] + beyond.get(course.line.end, 0.0)
        beyond[course.line.start] = max(beyond.get(course.line.start, 0.0), reach)
    return beyond


def _sorted_outwards(courses: list[Course], beyond: dict[int, float]) -> list[Course]:
    """Courses limb by limb: from each node first the one that reaches farthest, with all beyond it, then the next."""
    ordered: list[Course] = []
    waiting = [0]

    def reach(course: Course) -> float:
        return course.stations[-1] + beyond.get(course.line.end, 0.0)

    while waiting:
        node = waiting.pop()
        here = sorted((course for course in courses if course.line.start == node), key=reach)
        ordered += here[::-1]
        waiting += [course.line.end for course in here]
    return ordered


def _check_inside(skeleton: Skeleton, positions: Floats, solid: Solid) -> None:
    bones = skeleton.bones
    if not len(bones):
        return
    outside = np.flatnonzero(~solid.contains(positions[bones[:, 0]], positions[bones[:, 1]]))
    if outside.size:
        first = skeleton.names[bones[outside[0], 1]]
        warnings.warn(
            f'{outside.size} of {len(bones)} bones leave the surface, the first at "{first}": parts of the mesh lie '
            "apart, or are thinner than can be seen; look at the skeleton before using it",
            PliantWarning,
            stacklevel=3,
        )

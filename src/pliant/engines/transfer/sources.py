"""Tracks: motion and deformation gradients of pieces of a source (Section 3 of Chen et al. 2010).

A `Track` is one piece of a source: its point at rest, its position in every frame, and its deformation gradient S (3×3,
``dx = S dX`` on column vectors) relative to the rest. They come from

    `group_tracks`    groups of a mesh sequence's points, by shape matching (linear, or rotations alone)
    `joint_tracks`    the joints of a skeleton's motion (BVH, glTF, ...): S = R R₀ᵀ of the joint's frame in the world
    `rod_tracks`      a rod's or cable's positions and material frames: S = D D₀⁻¹, frames as columns
    `cell_tracks`     triangles or tetrahedra of an animation: S = W W₀⁻¹ of the cell's edges, a triangle's with its
                      normal over the root of its length as the third (Sumner and Popović 2004)
    `matrix_tracks`   matrices as given

All are {name: Track}, in the order asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS, MOST_FRAMES, Animation
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, PointCloud, Shape, bounding_diagonal
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose, bone_vector
from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_points, closest_names, frame_rate, whole_numbers
from pliant.core.values import Value, as_array, locked, owned
from pliant.engines.transfer.groups import VertexGroup, members, named_groups
from pliant.geometry.shape_matching import Fit, match, principal_axes

COINCIDENT_EXTENT = 1e-9
"""Extent of a group, over the diagonal of its shape, below which its points coincide."""
SINGULAR_FRAME = 1e-10
"""Determinant of a rest frame or cell, over the product of its columns' lengths, at which it spans no volume."""


@dataclass(frozen=True, eq=False)
class Track(Value):
    """Motion of one piece of a source relative to the source's rest."""

    name: str
    rest: Floats
    """(3,) its point at rest."""
    points: Floats
    """(frames, 3) its position in each frame."""
    gradients: Floats
    """(frames, 3, 3) its deformation gradient in each frame."""
    fps: float = DEFAULT_FPS
    """Frames a second."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        rest = owned(self.rest, f'the rest of track "{self.name}"', np.float64)
        points = owned(self.points, f'the points of track "{self.name}"', np.float64)
        gradients = owned(self.gradients, f'the gradients of track "{self.name}"', np.float64)
        if rest.shape != (3,) or points.ndim != 2 or points.shape[1] != 3 or gradients.shape[1:] != (3, 3):
            raise InputError(
                f'track "{self.name}" has a rest of shape {rest.shape}, points {points.shape} and gradients '
                f"{gradients.shape}; expected (3,), (frames, 3) and (frames, 3, 3)"
            )
        if len(points) != len(gradients) or not len(points):
            raise InputError(
                f'track "{self.name}" has points in {len(points)} frames and gradients in {len(gradients)}; '
                "expected as many of each, one or more"
            )
        finite = np.isfinite(points).all(axis=1) & np.isfinite(gradients).all(axis=(1, 2))
        if not finite.all():
            raise InputError(f'frame {int(np.argmin(finite))} of track "{self.name}" has NaN or infinite values')
        if not np.isfinite(rest).all():
            raise InputError(f'the rest of track "{self.name}" is {rest.tolist()}; expected finite coordinates')
        put(self, "rest", rest)
        put(self, "points", points)
        put(self, "gradients", gradients)
        put(self, "fps", frame_rate(self.fps))

    def __repr__(self) -> str:
        return f'Track("{self.name}", {len(self)} frames at {self.fps:g} fps)'

    def __len__(self) -> int:
        return len(self.points)

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last."""
        return (len(self) - 1) / self.fps

    def resampled(self, fps: float) -> Track:
        """The same motion at another frame rate."""
        fps = frame_rate(fps)
        count = max(1, round(self.duration * fps) + 1)
        if count > MOST_FRAMES:
            raise InputError(
                f"{fps:g} fps would make {count:,} frames; expected at most {MOST_FRAMES:,}", argument="fps"
            )
        return replace(self.retimed(np.minimum(np.arange(count) * self.fps / fps, len(self) - 1)), fps=fps)

    def retimed(self, frames: int | ArrayLike) -> Track:
        """Other frames at the same rate: a number of them over the whole motion, or those at the given times.

        frames: a count, or times in frames of this track, such as 0, 0.5, 1. Between frames, positions and stretches
        are interpolated linearly and rotations by slerp.
        """
        at = self._times(frames)
        low = at.astype(np.int64)
        high, t = np.minimum(low + 1, len(self) - 1), at - low
        R = rotations.polar(self.gradients)
        stretch, q = np.swapaxes(R, 1, 2) @ self.gradients, rotations.quaternion(R)
        R_between = rotations.matrix(rotations.slerp(q[low], q[high], t))
        s = t[:, None, None]
        between = R_between @ ((1 - s) * stretch[low] + s * stretch[high])
        whole = t[:, None, None] == 0  # existing frames are kept bit for bit
        points = (1 - t[:, None]) * self.points[low] + t[:, None] * self.points[high]
        return replace(self, points=locked(points), gradients=locked(np.where(whole, self.gradients[low], between)))

    def _times(self, frames: int | ArrayLike) -> Floats:
        if isinstance(frames, (int, np.integer)) and not isinstance(frames, bool):
            if not 1 <= frames <= MOST_FRAMES:
                raise InputError(f"frames is {frames}; expected 1 to {MOST_FRAMES:,}", argument="frames")
            return np.linspace(0, len(self) - 1, int(frames))
        at = as_array(frames, "frames", np.float64)
        if at.ndim != 1 or not len(at) or not ((at >= 0) & (at <= len(self) - 1)).all():
            raise InputError(
                f'track "{self.name}" is asked for frames {_range(at)}; expected a count, or times from 0 to '
                f"{len(self) - 1}"
            )
        return at


def _range(at: Floats) -> str:
    return f"{at.min():g} to {at.max():g}" if at.ndim == 1 and len(at) else f"of shape {at.shape}"


def group_tracks(
    animation: Animation,
    groups: Mapping[str, VertexGroup] | Sequence[VertexGroup] | VertexGroup,
    *,
    fit: Fit = "linear",
    rest: int | ArrayLike | None = None,
) -> dict[str, Track]:
    """Tracks of groups of a sequence's points, by shape matching.

    groups: by name or in a list: numbers of points, a `Sphere`, or the name of the mesh's vertex group.
    fit: the best linear map, or the best rotation alone.
    rest: the shape to measure against: the animation's own rest shape, a frame by number, or points (n, 3).
    """
    if fit not in get_args(Fit):
        raise InputError(f"fit is {fit!r:.40}; expected one of {', '.join(get_args(Fit))}")
    start = rest_points(animation, rest)
    return {name: _group_track(name, group, animation, start, fit) for name, group in named_groups(groups).items()}


def _group_track(name: str, group: VertexGroup, animation: Animation, start: Floats, fit: Fit) -> Track:
    numbers, weights = members(group, name, animation.shape, start)
    extent, _ = principal_axes(start[numbers] - start[numbers].mean(axis=0), np.full(len(numbers), 1 / len(numbers)))
    if not extent[0] > COINCIDENT_EXTENT * bounding_diagonal(start):
        many = f"{len(numbers)} coincident points" if len(numbers) > 1 else "one point"
        raise InputError(f'group "{name}" has {many}, which has no rotation; expected points that are apart')
    centre, centres, gradients = match(start[numbers], animation.points[:, numbers], weights, fit)
    return Track(name, locked(centre), locked(centres), locked(gradients), animation.fps)


def rest_points(animation: Animation, rest: Shape | int | ArrayLike | None) -> Floats:
    """(n, 3) of an animation: its shape, one of its frames by number, or points, or a shape, that were given."""
    if not isinstance(animation, Animation):
        raise InputError(f"the source is a {type(animation).__name__}; expected an Animation")
    if rest is None:
        return animation.shape.points
    if isinstance(rest, (int, np.integer)) and not isinstance(rest, bool):
        return animation.points[_frame(rest, len(animation))]
    given: Any = rest
    points = as_points(getattr(given, "points", given), "rest")
    if points.shape != animation.shape.points.shape:
        raise InputError(f"rest has {len(points)} points; the animation has {len(animation.shape.points)}")
    return points


def _frame(k: Any, count: int) -> int:
    if not -count <= k < count:
        raise InputError(f"the rest is frame {k}; there are {count} frames, numbered from 0")
    return int(k)


def joint_tracks(
    motion: Motion,
    joints: Sequence[str] | str | None = None,
    *,
    rest: int | SkeletonPose | None = None,
    along: float = 0.0,
) -> dict[str, Track]:
    """Tracks of joints, with the bones that start at them, in the world.

    joints: their names; all, if none are given.
    rest: the pose to measure against: the skeleton's rest pose (a BVH's offsets), a frame of the motion by number,
    such as 0 where that is a T-pose, or a pose.
    along: where on the bone the track's point is: 0 at the joint, 1 at the bone's end (its End Site, or the mean of
    its children; a joint with neither has no bone).
    """
    if not isinstance(motion, Motion):
        raise InputError(f"the source is a {type(motion).__name__}; expected a Motion, such as read_motion returns")
    if not np.isfinite(along):
        raise InputError(f"along is {along}; expected a number, from 0 at the joint to 1 at the bone's end")
    skeleton = motion.skeleton
    names = skeleton.names if joints is None else (joints,) if isinstance(joints, str) else tuple(joints)
    numbers = [joint_number(skeleton, name) for name in names]
    positions, joint_rotations = motion.world()
    rest_positions, rest_rotations = reference_pose(motion, rest).world()
    S = rotations.matrix(joint_rotations) @ np.swapaxes(rotations.matrix(rest_rotations), -1, -2)
    tracks = {}
    for name, j in zip(names, numbers, strict=True):
        arm = rotations.rotate(rest_rotations[j], along * bone_vector(skeleton, j))
        points = positions[:, j] + S[:, j] @ arm
        tracks[name] = Track(name, locked(rest_positions[j] + arm), locked(points), locked(S[:, j].copy()), motion.fps)
    return tracks


def joint_number(skeleton: Skeleton, name: str) -> int:
    """The number of the joint called `name`; the error for a wrong one names those that are closest."""
    if name in skeleton.names:
        return skeleton.names.index(name)
    raise InputError(f'no joint is called "{name}"; {closest_names(str(name), skeleton.names)}')


def reference_pose(motion: Motion, rest: int | SkeletonPose | None) -> SkeletonPose:
    """The pose that a motion is measured against."""
    if rest is None:
        return motion.skeleton.rest_pose()
    if isinstance(rest, SkeletonPose):
        if rest.skeleton.names != motion.skeleton.names:
            raise InputError("rest is a pose of another skeleton; expected one with the motion's joints")
        return rest
    if not isinstance(rest, (int, np.integer)) or isinstance(rest, bool):
        raise InputError(f"rest is {rest!r:.40}; expected a frame number, a pose, or None for the skeleton's rest pose")
    return motion[_frame(rest, len(motion))]


def rod_tracks(
    positions: ArrayLike,
    frames: ArrayLike,
    *,
    rest: int | tuple[ArrayLike, ArrayLike] = 0,
    fps: float = DEFAULT_FPS,
    name: str = "rod",
) -> dict[str, Track]:
    """Tracks of points along a rod or cable: positions (frames, k, 3) and material frames (frames, k, 3, 3).

    frames: the material directions as columns, or unit quaternions (frames, k, 4).
    rest: the frame that is the rest, or positions (k, 3) and material frames (k, 3, 3) of it.
    """
    positions, D = as_array(positions, "rod positions", np.float64), _directors(frames)
    if positions.ndim != 3 or positions.shape[2] != 3 or D.shape != (*positions.shape[:2], 3, 3) or not positions.size:
        raise InputError(
            f"rod positions have shape {positions.shape} and frames {np.shape(frames)}; expected (frames, k, 3) and "
            "(frames, k, 3, 3) or (frames, k, 4), as many of each"
        )
    if isinstance(rest, tuple):
        rest_positions, D0 = as_points(rest[0], "rest positions"), _directors(rest[1])
        if rest_positions.shape != positions.shape[1:] or D0.shape != D.shape[1:]:
            raise InputError(
                f"the rest has {len(rest_positions)} points along the rod; the motion has {positions.shape[1]}"
            )
    else:
        rest_positions, D0 = positions[_frame(rest, len(positions))], D[_frame(rest, len(positions))]
    _check_spanning(D0, "the rest frame at point", "on the rod")
    S = D @ np.linalg.inv(D0)
    return {
        f"{name} {k}": Track(f"{name} {k}", rest_positions[k], positions[:, k], S[:, k], fps)
        for k in range(positions.shape[1])
    }


def _directors(frames: ArrayLike) -> Floats:
    array = as_array(frames, "rod frames", np.float64)
    if array.ndim and array.shape[-1] == 4:
        return rotations.matrix(rotations.normalize(array))
    return array


def _check_spanning(columns: Floats, what: str, where: str) -> None:
    """Frames (k, 3, 3) have to be invertible."""
    size = np.abs(np.linalg.det(columns))
    flat = ~(size > SINGULAR_FRAME * np.prod(np.linalg.norm(columns, axis=-2), axis=-1))
    if flat.any():
        raise InputError(
            f"{what} {int(np.argmax(flat))} {where} spans no volume; expected three independent directions"
        )


def cell_tracks(
    animation: Animation, cells: ArrayLike, *, rest: int | ArrayLike | None = None, name: str = ""
) -> dict[str, Track]:
    """How triangles of an animated mesh, or tetrahedra of an animated `TetMesh`, move; the point is their centre.

    cells: numbers of triangles (of ``mesh.triangles``) or tetrahedra.
    rest: the shape to measure against, as in `group_tracks`. name: the tracks' names before the cells' numbers.
    """
    start, shape = rest_points(animation, rest), animation.shape
    if isinstance(shape, PointCloud):
        raise InputError("the source is a point cloud, which has no cells; use group_tracks")
    table, kind = (shape.triangles, "triangle") if isinstance(shape, Mesh) else (shape.tets, "tetrahedron")
    numbers = whole_numbers(np.atleast_1d(as_array(cells, "cells")), "cells")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(table):
        raise InputError(f"cells go from {numbers.min()} to {numbers.max()}; there are {len(table)}, numbered from 0")
    corners = table[numbers]
    W0 = cell_frames(start, corners)
    spans = np.abs(np.linalg.det(W0)) > SINGULAR_FRAME * np.prod(np.linalg.norm(W0, axis=-2), axis=-1)
    if not spans.all():
        raise InputError(f"{kind} {numbers[np.argmin(spans)]} is degenerate at rest; leave it out, or use group_tracks")
    S = cell_frames(animation.points, corners) @ np.linalg.inv(W0)
    middle, middles = start[corners].mean(axis=1), animation.points[:, corners].mean(axis=2)
    names = [f"{name or kind} {number}" for number in numbers]
    return {name: Track(name, middle[k], middles[:, k], S[:, k], animation.fps) for k, name in enumerate(names)}


def cell_frames(points: Floats, corners: Ints) -> Floats:
    """(..., k, 3, 3) edges from the first corner as columns; a triangle's third column is n / √|n|."""
    edges = points[..., corners[:, 1:], :] - points[..., corners[:, :1], :]
    if corners.shape[1] == 3:
        n = np.cross(edges[..., 0, :], edges[..., 1, :])
        length = np.sqrt(np.linalg.norm(n, axis=-1, keepdims=True))
        third = np.divide(n, length, out=np.zeros_like(n), where=length > 0)
        edges = np.concatenate([edges, third[..., None, :]], axis=-2)
    return np.swapaxes(edges, -1, -2)


def matrix_tracks(
    matrices: ArrayLike,
    *,
    rest: ArrayLike | None = None,
    points: ArrayLike | None = None,
    fps: float = DEFAULT_FPS,
    names: Sequence[str] = (),
) -> dict[str, Track]:
    """Tracks of matrices on column vectors: (frames, k, 3, 3), or affine maps (frames, k, 4, 4); k may be left out.

    rest: (k, 3) points at rest; the origin if none are given.
    points: (frames, k, 3) positions in each frame; by default affine maps move the rest points, linear ones do not.
    """
    M = as_array(matrices, "matrices", np.float64)
    M = M[:, None] if M.ndim == 3 else M
    if M.ndim != 4 or M.shape[2:] not in ((3, 3), (4, 4)) or not M.size:
        raise InputError(f"matrices have shape {np.shape(matrices)}; expected (frames, k, 3, 3) or (frames, k, 4, 4)")
    frames, count = M.shape[:2]
    if M.shape[2] == 4 and not np.allclose(M[..., 3, :], [0, 0, 0, 1]):
        raise InputError("the matrices' last rows are not 0 0 0 1; expected affine maps of column vectors")
    positions = np.zeros((count, 3)) if rest is None else as_points(np.atleast_2d(as_array(rest, "rest")), "rest")
    if positions.shape != (count, 3):
        raise InputError(f"rest has shape {positions.shape}; expected ({count}, 3), one point for each track")
    if points is not None:
        path = as_array(points, "points", np.float64).reshape(-1, count, 3)
    elif M.shape[2] == 4:
        path = np.einsum("fkij,kj->fki", M[..., :3, :3], positions) + M[..., :3, 3]
    else:
        path = np.broadcast_to(positions, (frames, count, 3))
    labels = tuple(names) or tuple(f"matrix {k}" for k in range(count))
    if len(labels) != count or len(set(labels)) != count:
        raise InputError(f"got names {', '.join(labels)[:60]}; expected {count} that differ, one for each track")
    return {name: Track(name, positions[k], path[:, k], M[:, k, :3, :3], fps) for k, name in enumerate(labels)}

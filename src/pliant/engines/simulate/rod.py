"""The skeleton as an elastic rod: poses from handles, angles and forces ("standard nonlinear finite element method").

Every bone is a rod of some radius, cut into elements (`rod_elements`): it bends, twists and stretches, by any amount.
At a joint the rods of its bones are connected rigidly, unless the joint has a stiffness of its own: then the incoming
bone and the outgoing ones are connected by a torsion spring of

    factor · E I / ℓ      per radian, ℓ the mean length of the bones at the joint,

so a joint with factor 1 bends about as much as a bone does, and a small factor makes an elbow. ``"free"`` is a factor
of 1e-4: negligible, but it keeps bones from spinning freely. `Rod.solve` finds the equilibrium (`rod_solve`).

Cross-sections are round: with radius r, ``A = π r²``, ``I = π r⁴/4``, ``J = 2 I``; stretch ``E A``, shear ``0.9 G A``,
bending ``E I``, twist ``G J``, ``G = E / 2(1 + ν)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.errors import InputError, about_argument
from pliant.core.skeleton import Skeleton, SkeletonPose
from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_points, closest_names
from pliant.core.values import Value, as_array, locked
from pliant.engines.simulate.options import RodOptions, Root
from pliant.engines.simulate.rod_layout import Layout, Softness, Spans, lay_out, offsets_of
from pliant.engines.simulate.rod_solve import Equilibrium, Load, equilibrium

FREE_JOINT = 1e-4
"""Stiffness factor of a free joint."""
DEFAULT_RADIUS = 0.08
"""Radius over the mean length of the bones, if none is given."""
STEP_ROTATION, STEP_DISPLACEMENT = 0.6, 0.5
"""Radians, and mean bone lengths, by which targets move in the first load step."""
COLLINEAR_HANDLES = 1e-6
"""Width over length below which handles are collinear."""


@dataclass(frozen=True, eq=False)
class RodPose(Value):
    """A skeleton's equilibrium as a rod."""

    pose: SkeletonPose
    """The joints' frames; joints are displaced where bones bend or stretch."""
    bones: Ints
    """(b, 2) the joint that each bone starts from and the one it leads to, -1 for the end of a last joint's bone."""
    positions: Floats
    """(b, k + 1, 3) samples along each bone, from its start to its end, in the world."""
    rotations: Floats
    """(b, k + 1, 4) their rotations from rest, in the world."""
    converged: bool
    iterations: int
    steps: int
    """Load steps."""
    residual: float
    """Largest force or torque left, over a typical bending torque."""
    energy: float
    """Elastic energy minus the work of the forces."""
    stable: bool
    """Whether it is a local minimum of the energy."""
    reached: float
    """Share of the load that was reached; 1 if it converged."""
    nodes: Floats
    """(n, 3) positions of all nodes of the elements, in the world."""
    node_rotations: Floats
    """(m, 4) their rotations from rest, in the world."""

    @property
    def places(self) -> Floats:
        """The former name of `positions`."""
        warnings.warn("RodPose.places is now RodPose.positions", DeprecationWarning, stacklevel=2)
        return self.positions

    @property
    def turns(self) -> Floats:
        """The former name of `rotations`."""
        warnings.warn("RodPose.turns is now RodPose.rotations", DeprecationWarning, stacklevel=2)
        return self.rotations

    def __repr__(self) -> str:
        state = "converged" if self.converged else f"not converged, {100 * self.reached:.0f} % of the load"
        return f"RodPose({len(self.bones)} bones, {state} after {self.iterations} iterations)"


class Rod(Value):
    """A skeleton as a tree of elastic rods. Pickles; is never changed.

    radius: of the bones' cross-section, one for all or by the joint that a bone starts from; 0.08 of the mean length
        of the bones if not given. Only ratios matter, unless there are forces.
    young, poisson: of the bones.
    joints: factors of joints with their own stiffness, or "free"; by name, or one for all.
    segments: elements of each bone.
    """

    skeleton: Skeleton

    def __init__(
        self,
        skeleton: Skeleton,
        *,
        radius: float | Mapping[str, float] | None = None,
        young: float = RodOptions.young,
        poisson: float = RodOptions.poisson,
        joints: Softness | Mapping[str, Softness] | None = None,
        segments: int = RodOptions.segments,
    ) -> None:
        if not isinstance(skeleton, Skeleton):
            raise InputError(f"got a {type(skeleton).__name__}; expected a Skeleton")
        made = RodOptions(young=young, poisson=poisson, segments=segments)
        self.skeleton, self.young = skeleton, made.young
        self._spans = Spans.of(skeleton)
        radii, factors = self._radii(radius), self._factors(joints)
        self._layout = lay_out(skeleton, self._spans, radii, factors, made.poisson, made.segments)

    def __repr__(self) -> str:
        return f"Rod({self.skeleton!r}, {len(self._layout.system.elements)} elements)"

    def _radii(self, radius: float | Mapping[str, float] | None) -> Floats:
        """(b,) radius of each bone, over the unit."""
        bones, unit = self._spans.bones, self._spans.unit
        if radius is None:
            return np.full(len(bones), DEFAULT_RADIUS)
        if not isinstance(radius, Mapping):
            return np.full(len(bones), RodOptions.check(radius=radius)["radius"] / unit)
        radii = np.full(len(self.skeleton), DEFAULT_RADIUS * unit)
        for j, value in self._by_joint(radius, "radius"):
            radii[j] = value
        return radii[bones[:, 0]] / unit

    def _factors(self, joints: Softness | Mapping[str, Softness] | None) -> dict[int, float]:
        """Factors of the joints that have a stiffness of their own; a root has no incoming bone, hence none."""
        if joints is None:
            return {}
        names = self.skeleton.names
        if not isinstance(joints, Mapping):
            RodOptions.check(joints=joints)
            joints = {names[j]: joints for j in np.unique(self.skeleton.parents[1:]) if j >= 0}
        factors = ((j, FREE_JOINT if value == "free" else value) for j, value in self._by_joint(joints, "joints"))
        return {j: factor for j, factor in factors if self.skeleton.parents[j] >= 0}

    def _by_joint(self, table: Mapping[str, Any], name: str) -> Iterator[tuple[int, Any]]:
        """Joint numbers and checked values of an option given by joint name."""
        for joint, value in table.items():
            with about_argument(name, joint):
                j = self._index(joint)
            yield j, replace(RodOptions.about(name), name=f'{name} of "{joint}"').checked(value)

    def _index(self, name: Any) -> int:
        if name not in self.skeleton.names:
            raise InputError(f'no joint is called "{name}"; {closest_names(str(name), self.skeleton.names)}')
        return self.skeleton.index(name)

    def solve(
        self,
        *,
        handles: Mapping[str, ArrayLike] | None = None,
        orientations: Mapping[str, ArrayLike] | None = None,
        angles: Mapping[str, ArrayLike] | None = None,
        forces: Mapping[str, ArrayLike] | None = None,
        root: Root = RodOptions.root,
        start: RodPose | None = None,
    ) -> RodPose:
        """The pose in which the rod is in equilibrium.

        handles: positions (3,) of joints, in the world. orientations: quaternions (4,) of joints' frames, in the world.
        angles: quaternions (4,) by which joints are rotated in their own frame, as in `Skeleton.pose`.
        forces: vectors (3,) that pull at joints.
        root: "held" fixes the roots at rest, unless handles or orientations are given for them; with "free", handles
        and orientations have to fix the skeleton.
        start: a pose of this rod under a similar load, for a warm start: it is quicker, and of several equilibria the
        nearest is found.

        Along a limb, each orientation differs from the one before by a rotation of less than 180°.
        """
        RodOptions.check(root=root)
        if start is not None and not (isinstance(start, RodPose) and start.nodes.shape == self._layout.system.x.shape):
            raise InputError(f"start is {start!r:.60}; expected a RodPose of this rod", argument="start")
        positions = self._given(handles, 3, "the handle of")
        frames = self._given(orientations, 4, "the orientation of")
        relative = self._given(angles, 4, "the angle of")
        pulls = self._given(forces, 3, "the force on")
        for j in relative:
            if self.skeleton.parents[j] < 0:
                name = self.skeleton.names[j]
                raise InputError(f'"{name}" has no parent to turn against; give it an orientation instead of an angle')
        if root == "held":
            rest_positions, rest_rotations = self.skeleton.rest_pose().world()
            for j in np.flatnonzero(self.skeleton.parents < 0).tolist():
                positions.setdefault(j, rest_positions[j])
                frames.setdefault(j, rest_rotations[j])
        self._check_fixed(positions, frames)
        rotation, shift = self._whole_motion(positions, frames)
        back = rotations.inverse(rotation)
        positions = {j: rotations.rotate(back, position - shift) for j, position in positions.items()}
        frames = {j: rotations.multiply(back, frame) for j, frame in frames.items()}
        pulls = {j: rotations.rotate(back, pull) for j, pull in pulls.items()}
        load, first, frame = self._load(positions, frames, relative, pulls)
        before = None
        if start is not None:
            nodes = rotations.rotate(back, start.nodes - shift) / self._spans.unit
            before = nodes, rotations.multiply(back, start.node_rotations)
        return self._posed(equilibrium(self._layout.system, load, first, before), frame, rotation, shift)

    def _whole_motion(self, positions: Mapping[int, Floats], frames: Mapping[int, Floats]) -> tuple[Floats, Floats]:
        """A rigid motion of the skeleton, quaternion and shift, that meets the targets as well as one can.

        It follows the first orientation, or else the best fit of the handles.
        """
        spots, rest = self.skeleton.rest_pose().world()
        fixed = sorted(positions)
        if frames:
            first = min(frames)
            rotation = rotations.multiply(frames[first], rotations.inverse(rest[first]))
            fixed = [first if first in positions else fixed[0]]
        else:
            R, _ = rotations.match_rigid(spots[fixed], np.stack([positions[j] for j in fixed]))
            rotation = rotations.quaternion(R)
        shifts = [positions[j] - rotations.rotate(rotation, spots[j]) for j in fixed]
        return rotations.shortest(rotation), np.mean(shifts, axis=0)

    def _given(self, table: Mapping[str, ArrayLike] | None, width: int, what: str) -> dict[int, Floats]:
        """By joint, checked."""
        if table is not None and not isinstance(table, Mapping):
            raise InputError(f"got {type(table).__name__} for {what} a joint; expected a dictionary by joint name")
        found: dict[int, Floats] = {}
        for name, value in (table or {}).items():
            j = self._index(name)
            array = as_array(value, f'{what} "{name}"', np.float64)
            if array.shape != (width,) or not np.isfinite(array).all():
                raise InputError(f'{what} "{name}" is {array.tolist()}; expected {width} finite numbers')
            found[j] = rotations.normalize(array) if width == 4 else array
        return found

    def _check_fixed(self, positions: Mapping[int, Floats], frames: Mapping[int, Floats]) -> None:
        """Refuse targets that leave the skeleton free to move rigidly."""
        tree = np.arange(len(self.skeleton))
        for j, parent in enumerate(self.skeleton.parents):
            tree[j] = tree[parent] if parent >= 0 else j
        for one in np.unique(tree):
            name = self.skeleton.names[one]
            fixed = [j for j in positions if tree[j] == one]
            if not fixed:
                raise InputError(f'nothing holds the skeleton of "{name}" in place; give a handle, or root="held"')
            if any(tree[j] == one for j in frames):
                continue
            spots = np.stack([positions[j] for j in fixed])
            away = spots - spots[0]
            sizes = np.linalg.svd(away, compute_uv=False) if len(fixed) > 1 else np.zeros(2)
            sizes = np.append(sizes, 0.0)
            first = f'"{self.skeleton.names[fixed[0]]}"'
            if sizes[0] <= COLLINEAR_HANDLES * self._spans.unit:
                raise InputError(f"the skeleton can turn freely about {first}; give an orientation or more handles")
            if sizes[1] <= COLLINEAR_HANDLES * sizes[0]:
                last = f'"{self.skeleton.names[fixed[-1]]}"'
                raise InputError(
                    f"the skeleton can spin about the line through {first} and {last}; "
                    "give an orientation, or a handle beside that line"
                )

    def _load(
        self,
        positions: Mapping[int, Floats],
        frames: Mapping[int, Floats],
        relative: Mapping[int, Floats],
        pulls: Mapping[int, Floats],
    ) -> tuple[Load, float, Floats]:
        """The load on the nodes, the share of the first load step, and (j, 4) rotations from nodes to joint frames."""
        layout, unit = self._layout, self._spans.unit
        relative = {j: rotations.shortest(angle) for j, angle in relative.items()}
        frame, offsets = offsets_of(layout, self.skeleton, relative)
        targets = self._targets(frames, frame)
        forces = np.zeros(layout.system.x.shape)
        for j, pull in pulls.items():
            forces[layout.position_node[j]] += pull / (self.young * unit**2)
        where = {int(layout.position_node[j]): spot / unit for j, spot in positions.items()}
        load = Load(
            np.array(list(where), np.int64),
            np.reshape(list(where.values()), (-1, 3)),
            np.array(list(targets), np.int64),
            np.reshape(list(targets.values()), (-1, 4)),
            offsets,
            forces,
        )
        farthest = np.linalg.norm(load.positions - layout.system.x[load.position_nodes], axis=1).max(initial=0.0)
        angle = np.linalg.norm(rotations.log(np.concatenate([load.rotation_targets, offsets])), axis=1).max(initial=0.0)
        steps = max(farthest / STEP_DISPLACEMENT, angle / STEP_ROTATION)
        return load, 1 / max(1.0, float(np.ceil(steps))), frame

    def _targets(self, frames: Mapping[int, Floats], frame: Floats) -> dict[int, Floats]:
        """By rotation node, the target rotation from rest, with the sign nearer to the target before it on the limb."""
        _, rest = self.skeleton.rest_pose().world()
        found: dict[int, Floats] = {}
        before = np.tile(rotations.IDENTITY, (len(rest), 1))
        for j, parent in enumerate(self.skeleton.parents):
            if parent >= 0:
                before[j] = before[parent]
            if j in frames:
                rotation = rotations.multiply(frames[j], rotations.inverse(rest[j]))
                before[j] = rotations.align_signs(rotation, before[j])
                found[int(self._layout.rotation_out[j])] = rotations.multiply(before[j], rotations.inverse(frame[j]))
        return found

    def _posed(self, found: Equilibrium, frame: Floats, rotation: Floats, shift: Floats) -> RodPose:
        """The equilibrium as a pose of the skeleton, with the rigid motion and in the user's units."""
        layout, skeleton, unit = self._layout, self.skeleton, self._spans.unit
        _, rest = skeleton.rest_pose().world()
        x = rotations.rotate(rotation, found.x * unit) + shift
        q = rotations.multiply(rotation, found.q)
        spots = x[layout.position_node]
        world = rotations.multiply(rotations.multiply(q[layout.rotation_out], frame), rest)
        parents = skeleton.parents
        inner = np.flatnonzero(parents >= 0)
        back = rotations.inverse(world[parents[inner]])
        quaternions, positions = world.copy(), spots.copy()
        quaternions[inner] = rotations.multiply(back, world[inner])
        positions[inner] = rotations.rotate(back, spots[inner] - spots[parents[inner]])
        along = q[layout.samples[:, 1]]
        starts = self._spans.bones[:, 0]
        along[:, 0] = rotations.multiply(along[:, 0], frame[starts])
        return RodPose(
            SkeletonPose(skeleton, locked(rotations.normalize(quaternions)), as_points(positions)),
            self._spans.bones,
            locked(x[layout.samples[:, 0]]),
            locked(along),
            found.converged,
            found.iterations,
            found.steps,
            found.residual,
            found.energy * self.young * unit**3,
            found.stable,
            found.reached,
            locked(x),
            locked(q),
        )


__all__ = ["Layout", "Rod", "RodPose"]

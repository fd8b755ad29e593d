"""The spring network as a body that contact can push: the bridge from `pliant.engines.blend` to `pliant.contact`.

An anchor alone lets a body swing about it, and what is pushed would rotate the whole of it. So in contact every vertex
is attached to its free position by a weak spring (`GROUND_STIFFNESS`): limbs give way, and the body stays. Vertices
that no shape moves are not fixed then, but attached by a strong one (`STATIC_STIFFNESS`): they give way to what is
pressed on them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pliant.contact.constraints import SurfaceSamples, face_samples, longest_edges
from pliant.contact.forces import Compliance
from pliant.contact.obstacles import Obstacle, as_obstacle
from pliant.contact.solver import DEFAULT_THICKNESS, ContactSolver
from pliant.contact.watched_rows import MAX_PENETRATION
from pliant.core.clips import Pose
from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats, Ints
from pliant.engines.blend.equilibrium import Network, Outcome, SolveOptions, farthest
from pliant.engines.blend.options import MOST_CONTACT_ITERATIONS, BlendOptions
from pliant.engines.blend.pulls import ExternalLoad
from pliant.engines.blend.springs import CorotatedRest, Rest
from pliant.geometry.spatial import SurfaceTree
from pliant.numerics.linalg import dot, factorize

VISIBLE_VERTICES = 100.0
"""Accuracy is relative to the energy stored, but no finer than for moving so many vertices by the default thickness."""
CONTACT_ACCURACY = 0.1
"""Factor on the accuracy asked for: contacts move a body along its soft modes, where little energy is much motion."""
GROUND_STIFFNESS = 3e-3
"""Spring to the free position, over the mean stiffness of a vertex."""
STATIC_STIFFNESS = 1.0
"""The same, over its own stiffness, for a vertex that no shape moves."""
FINE_ROUNDS = 8
"""How often a fine surface is put out of all obstacles: out of one may be into the next."""
STEPS_FROM_BASE = 8
"""Steps in which a single shape with self-contact is reached from the base."""
CRUSHED_SHARE = 0.005
"""Of all tetrahedra, those that contact turns inside out, above which it can be seen."""
DEEP_START = 0.05
"""Depth of the first shape in an obstacle, over the diagonal, that is worth a warning."""
LARGEST_MISS = 1e-3
"""How far a pulled vertex of a fine surface may be from its position, over the diagonal."""
NO_LOAD = ExternalLoad(np.zeros(0, np.int64), np.zeros((0, 3)), None)

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes


def make_contact_solver(
    rig: Blendshapes, obstacles: Iterable[Any], friction: float, self_contact: bool, thickness: float | None
) -> ContactSolver | None:
    """What a rig's shapes give way to through a clip; None if that is nothing."""
    BlendOptions.check(friction=friction, self_contact=self_contact, thickness=thickness)
    given = [obstacles] if not isinstance(obstacles, Iterable) else list(obstacles)
    moving = [as_obstacle(obstacle) for obstacle in given]
    if not moving and not self_contact:
        return None
    if self_contact:
        rig.need_all_vertices("self-contact")
    mesh = rig._weld.mesh
    return ContactSolver(
        mesh.triangles,
        rig.body.diagonal,
        obstacles=moving,
        friction=friction,
        thickness=thickness,
        rest=mesh.points if self_contact else None,
    )


class SpringContactBody:
    """A frame of the network, as contact moves it (`pliant.contact.body.ContactBody`): its vertices are the points.

    free: (n, 3) its shape without contact, in the world. kept: vertices a load holds.
    """

    has_inertia = False
    load = NO_LOAD

    def __init__(
        self,
        rig: Blendshapes,
        network: Network,
        kept: Ints,
        rest: Rest | CorotatedRest,
        free: Floats,
        force: Floats | None,
        accuracy: float,
    ) -> None:
        self._attached = attached = _attached(rig, network, kept)
        self.free, self._rest, self._accuracy = free, rest, accuracy
        self.solve, self.compliance, self.resist = attached.solve, attached.compliance, attached.resist
        self._fixed = attached.network.fixed[:, None]
        self._force = None if force is None else np.where(self._fixed, 0, force)
        self.stiffness = np.asarray(network.L.diagonal())
        visible = DEFAULT_THICKNESS * rig.body.diagonal
        self._least, self._stored = VISIBLE_VERTICES * float(self.stiffness.mean()) * visible**2, 0.0

    def energy(self, x: Floats, gradient: Floats) -> float:
        """That of the springs, and the work of the load."""
        away = x - self.free
        pull = self._attached.ground[:, None] * away
        self._stored = self._attached.network.energy(x, self._rest, gradient) + 0.5 * dot(pull, away)
        gradient += pull
        if self._force is None:
            return self._stored
        gradient -= self._force
        return self._stored - dot(self._force, x)

    def tolerance(self) -> float:
        """Relative to the energy stored, without the work of external forces."""
        return self._accuracy * max(CONTACT_ACCURACY * self._stored, self._least)

    def constrained(self, x: Floats) -> Floats:
        """Fixed vertices in their positions."""
        return np.where(self._fixed, self.free, x)

    def largest_force(self, forces: Floats) -> float:
        """The vertices are the unknowns."""
        return float(np.abs(forces).max(initial=0))


def pose_in_contact(
    rig: Blendshapes, solver: ContactSolver, w: Floats, load: ExternalLoad, options: SolveOptions
) -> Pose:
    """A shape by itself, of full weights; with self-contact it is reached from the base."""
    if solver.self_contact is not None:
        for share in np.arange(1, STEPS_FROM_BASE) / STEPS_FROM_BASE:
            part = np.eye(len(w))[0] * (1 - share) + w * share
            _in_contact(rig, solver, part, _loaded_body(rig, part, NO_LOAD, options), options, 0)
    body = _loaded_body(rig, w, load, options)
    solver.check_start(body.free)
    return _in_contact(rig, solver, w, body, options, 0)


def poses_in_contact(
    rig: Blendshapes, solver: ContactSolver, frames: Iterable[tuple[Floats, ExternalLoad]], options: SolveOptions
) -> Iterator[Pose]:
    """Frames of full weights and loads, in order; whether the first can be begun from is checked at once."""
    bodies = ((w, _loaded_body(rig, w, load, options)) for w, load in frames)
    first = next(bodies)
    free = first[1].free
    solver.check_start(free)
    for k, moving in enumerate(solver.obstacles):
        deep = -float(moving.at(0).signed(free[: solver.surface])[0].min(initial=0.0)) / solver.diagonal
        if deep > DEEP_START:
            warnings.warn(
                f"obstacle {k + 1} is {deep:.1%} of the diagonal deep in the first frame's shape, which is pushed out "
                "of it at once; to be pressed in, it has to come from outside, in frames before that",
                PliantWarning,
                stacklevel=4,
            )
    return _followed(rig, solver, chain([first], bodies), options)


def _followed(
    rig: Blendshapes, solver: ContactSolver, bodies: Iterable[tuple[Floats, SpringContactBody]], options: SolveOptions
) -> Iterator[Pose]:
    for number, (w, body) in enumerate(bodies):
        yield _in_contact(rig, solver, w, body, options, number)


def inversion(crushed: Sequence[float], every: int) -> list[str]:
    """That contact turns too many of a clip's tetrahedra inside out, from their number in each frame; nothing if not.

    Springs alone do not resist it: it is an equilibrium, but not one of flesh.
    """
    worst = int(np.argmax(crushed))
    if not crushed[worst] > CRUSHED_SHARE * every:
        return []
    share = f"contact turns {crushed[worst]:,.0f} of {every:,} tetrahedra inside out"
    return [f"in the worst frame, {worst}, {share}: it presses deeper than the shape can give way; press less deep"]


def _loaded_body(rig: Blendshapes, w: Floats, load: ExternalLoad, options: SolveOptions) -> SpringContactBody:
    statics = rig.statics
    free, rest = statics.free(w, statics.start(w, options.accuracy), options.accuracy)
    network, x = statics.loaded(statics.aimed(load, free, w), free)
    body = SpringContactBody(rig, network, load.vertices, rest, x, load.force, options.accuracy)
    body.load = load
    return body


def _in_contact(
    rig: Blendshapes, solver: ContactSolver, w: Floats, body: SpringContactBody, options: SolveOptions, number: int
) -> Pose:
    """A frame in contact, at weights (shapes,)."""
    most = options.iterations or MOST_CONTACT_ITERATIONS
    found = solver.frame(body, number, iterations=most, watch=options.watch)
    outcome = Outcome(found.x, 0.0, found.iterations, found.residual, found.converged, found.message)
    pose = rig.statics.pose(outcome, w, world=True)
    if rig.detail is not None:
        weld, obstacles = rig.detail.weld, [moving.at(number) for moving in solver.obstacles]
        allowed = MAX_PENETRATION * rig.body.diagonal
        points, depth = pushed_out(pose.points[weld.kept], weld.mesh.triangles, obstacles, allowed)
        pose = replace(pose, shape=pose.shape.with_points(weld.restore(points)))
        if pose.converged and depth > allowed:
            inside = f"{depth / rig.body.diagonal:.1e} of the diagonal of the fine surface is still inside an obstacle"
            pose = replace(pose, converged=False, message=f'{inside}; solve for all vertices: coarse="none"')
        pulled = body.load.carried
        missed = 0.0 if pulled is None else farthest(points[pulled] - body.load.positions)
        if pose.converged and missed > LARGEST_MISS * rig.body.diagonal:
            away = f"a pulled vertex is {missed / rig.body.diagonal:.1e} of the diagonal from its position"
            pose = replace(pose, converged=False, message=f'{away}; solve for all vertices: coarse="none"')
        found = replace(found, penetration=depth)
    return replace(
        pose,
        crushed=rig.body.newly_inverted(found.x, body.free),
        penetration=found.penetration / rig.body.diagonal,
        contacts=found.contacts,
        reactions=found.reactions,
        crossings=found.crossings,
    )


def pushed_out(points: Floats, triangles: Ints, obstacles: Sequence[Obstacle], allowed: float) -> tuple[Floats, float]:
    """(n, 3) points of a fine surface, which is put out of obstacles; and how deep it is left in one, anywhere.

    The coarse body has given way; what is left inside is as deep as its faces are coarse. allowed: the depth from which
    points on faces are put out, as vertices always are.
    """
    points, left = points.copy(), 0.0
    for round_ in range(FINE_ROUNDS + 1):
        left = 0.0
        for obstacle in obstacles:
            samples, depth = _inside(points, triangles, obstacle, allowed)
            left = max(left, depth)
            if len(samples) and round_ < FINE_ROUNDS:
                points += _displacement(points, samples, obstacle)
        if left == 0.0:
            break
    return points, left


def _inside(points: Floats, triangles: Ints, obstacle: Obstacle, allowed: float) -> tuple[SurfaceSamples, float]:
    """Vertices, and points on faces, of a surface that are in an obstacle, and how deep the deepest is."""
    clearance = obstacle.clearance(points)
    faces = triangles[(clearance[triangles] <= longest_edges(points, triangles)[:, None]).any(axis=1)]
    near, distance = np.unique(faces), np.full(len(points), np.inf)
    near = np.union1d(near, np.flatnonzero(clearance <= 0))
    distance[near] = obstacle.signed(points[near])[0]
    vertices = SurfaceSamples.at_vertices(np.flatnonzero(distance < 0))
    crossing = SurfaceTree(points, faces).crossings(obstacle.tree) if len(faces) else np.zeros((0, 2), np.int64)
    between, depth = face_samples(obstacle, points, distance, faces, crossing, allowed)
    return vertices.joined(between), max(depth if depth > allowed else 0.0, -float(distance.min(initial=0.0)))


def _displacement(points: Floats, samples: SurfaceSamples, obstacle: Obstacle) -> Floats:
    """(n, 3) the least motion that puts each sample on the obstacle; of several, a vertex takes the longest."""
    away, outward = obstacle.signed(samples.positions(points))
    share = samples.weights / np.einsum("mk,mk->m", samples.weights, samples.weights)[:, None]
    length = np.maximum(-away, 0)[:, None] * share
    order = np.argsort(length, axis=None)  # the longest is written last
    motion = np.zeros_like(points)
    motion[samples.vertices.ravel()[order]] = (length[..., None] * outward[:, None]).reshape(-1, 3)[order]
    return motion


class Attached:
    """A network whose vertices are attached to their free positions by springs `ground` (n,), zero where held."""

    def __init__(self, network: Network, ground: Floats) -> None:
        self.network, self.ground = network, ground
        self._unknown = np.flatnonzero(~network.fixed)
        self.matrix = (network.L + sp.diags(ground)).tocsr()
        L = network.L[self._unknown][:, self._unknown]
        self._factor = factorize(L + sp.diags(ground[self._unknown])) if len(self._unknown) else None
        self.compliance = Compliance(self._inverse, network.count, self.matrix)

    def solve(self, b: Floats) -> Floats:
        """(n, k) the motion that forces (n, k) bring about, if springs are as stiff as L; 0 at held vertices."""
        x = np.zeros_like(b)
        if self._factor is not None:
            x[self._unknown] = self._factor.solve(b[self._unknown])
        return x

    def resist(self, motion: Floats) -> Floats:
        """(n, 3) the forces that a motion (n, 3) takes."""
        return np.asarray(self.matrix @ motion)

    def _inverse(self, vertices: Ints, others: Ints) -> Floats:
        """(m, k) how far vertices move by a force 1 at each of others."""
        out = np.zeros((len(vertices), len(others)))
        if self._factor is not None:
            moved, pushed = ~self.network.fixed[vertices], ~self.network.fixed[others]
            at, by = (np.searchsorted(self._unknown, some) for some in (vertices[moved], others[pushed]))
            out[np.ix_(moved, pushed)] = self._factor.inverse(at, by)
        return out


def _attached(rig: Blendshapes, network: Network, kept: Ints) -> Attached:
    """The network as contact moves it: what is still, but neither pinned nor pulled, may give way. Kept with it."""
    static = rig.static.copy()
    static[kept] = False
    key = static.tobytes()
    if network.__dict__.get("attached", (b"",))[0] != key:
        static = np.flatnonzero(static)
        fixed = network.fixed.copy()
        fixed[static] = False
        other = Network(network.springs, network.count, fixed)
        other.__dict__.update(fans=network.fans, L=network.L)
        diagonal = np.asarray(network.L.diagonal())
        ground = np.full(network.count, GROUND_STIFFNESS * float(diagonal.mean()))
        ground[static] = STATIC_STIFFNESS * diagonal[static]
        ground[fixed] = 0
        network.__dict__["attached"] = key, Attached(other, ground)
    found: Attached = network.__dict__["attached"][1]
    return found

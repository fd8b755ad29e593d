"""The spring network as a body that contact can push: the bridge from `pliant.blend` to `pliant.contact`."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.blend.equilibrium import Network
from pliant.blend.rest import Flesh, Rest
from pliant.contact.forces import Compliance
from pliant.contact.obstacles import as_obstacle
from pliant.contact.touch import Body, Touch
from pliant.errors import InputError
from pliant.linalg import dot
from pliant.topology import Floats, Ints

if TYPE_CHECKING:
    from pliant.blend.blendshapes import Blendshapes


def make_touch(
    rig: Blendshapes, obstacles: Iterable[Any], friction: float, self_contact: bool, thickness: float | None
) -> Touch | None:
    """What a rig's shapes give way to through a clip; None if that is nothing."""
    checked: tuple[tuple[str, Any], ...] = (("friction", friction), ("thickness", thickness))
    for name, value in checked:
        if value is not None and not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise InputError(f"{name} is {value!r}; expected a number, 0 or more")
    if not isinstance(self_contact, (bool, np.bool_)):
        raise InputError(f"self_contact is {self_contact!r}; expected True or False")
    given = [obstacles] if not isinstance(obstacles, Iterable) else list(obstacles)
    moving = [as_obstacle(obstacle) for obstacle in given]
    if not moving and not self_contact:
        return None
    mesh, body = rig._weld.mesh, rig.body
    movable = np.flatnonzero(body.grounded[body.frames.part[: body.surface]])
    if not len(movable):
        raise InputError(
            "nothing holds the shape, so it cannot be pushed; give pins, or an anchor at a point (x, y, z) inside it"
        )
    return Touch(
        mesh.triangles,
        movable,
        body.diagonal,
        obstacles=moving,
        friction=friction,
        thickness=thickness,
        itself=mesh.points if self_contact else None,
    )


def refuse_methods(method: str, start: Floats | None, jobs: int = 1) -> None:
    """Contact has a method of its own, and frames depend on the ones before."""
    if method != "lbfgs":
        raise InputError(f'method is "{method}"; contact is solved by "lbfgs" alone')
    if start is not None:
        raise InputError("start is given; with contact a shape starts from the frame before")
    if jobs > 1:
        raise InputError(f"jobs is {jobs}; frames in contact depend on the ones before: leave it out")


def contact_body(network: Network, rest: Rest | Flesh, free: Floats, force: Floats | None) -> Body:
    """A frame of the network. free: (n, 3) its shape without contact, in the world."""
    acting = None if force is None else np.where(network.held[:, None], 0, force)
    stored = [0.0]

    def elastic(x: Floats, gradient: Floats) -> float:
        stored[0] = network.energy(x, rest, gradient)
        if acting is None:
            return stored[0]
        gradient -= acting
        return stored[0] - dot(acting, x)

    stiffness = np.asarray(network.L.diagonal())
    return Body(free, elastic, lambda: stored[0], network.solve, compliance_of(network), stiffness, network.held)


def compliance_of(network: Network) -> Compliance:
    """Columns of the network's L⁻¹, kept with it; those of held vertices are zero."""
    if "compliance" not in network.__dict__:
        number = np.full(network.count, -1)
        number[network.unknown] = np.arange(len(network.unknown))

        def columns(vertices: Ints) -> Floats:
            known = np.flatnonzero(number[vertices] >= 0)
            right = np.zeros((len(network.unknown), len(vertices)))
            right[number[vertices[known]], known] = 1
            out = np.zeros((network.count, len(vertices)))
            if network.factor is not None:
                out[network.unknown] = network.factor.solve(right)
            return out

        network.__dict__["compliance"] = Compliance(columns, network.count)
    found: Compliance = network.__dict__["compliance"]
    return found

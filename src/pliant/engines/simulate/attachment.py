"""Springs that hold the flesh to its bones.

A bone is a rigid core (`pliant.engines.simulate.bone_samples`). The field Σ_I φ_I x_I of the nodes is smooth over the
distance h between nodes: it cannot be rigid inside the core and strained next to it. If the core's motion were imposed
exactly, about a tenth of h around the core would be rigid as well, and a thin bone would hold its flesh as a thick one
does. So each sample s of the core's surface, with the area A and the radius a of the core, is tied to the bone by a
spring between the field and the bone's own motion x_s of that point:

    ½ k |Σ_I φ_I(s) x_I - x_s|²,      k = μ A / (a log(1 + β h / a))

That is the stiffness, in shear, of a layer of flesh around the core of the thickness β h, which makes up for the layer
that the functions stiffen. In reservoir simulation this is Peaceman's well model (1978). The springs are so weak for
thin cores that many nodes and few nodes give the same grip, and they become rigid as h becomes small. With β = `LAYER`,
the sag of bars and cylinders is that of finite elements with the same core held within 2 % from 800 nodes on
(`tests/test_elastic_attachment.py`).

A spring is a row of the operator (`pliant.engines.simulate.warping`) like a quadrature point, with the gradients

    g_I = (φ_I(s) / h, 0, 0),   g_s = (-1 / h, 0, 0),   weight w = k h² / μ,   and -μ instead of λ:

then the stress is R (2μ ε - μ tr(ε) 1), the force on a node is k φ_I (Σ_J φ_J x_J - x_s), and the energy is that above.
So springs are damped, integrated in time and preconditioned as flesh is, and rotations diffuse from the bones through
them too, with k / μ.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes

LAYER = 0.05
"""β: thickness of the springs' layer of flesh over the distance between nodes."""


def springs(nodes: Nodes, areas: Floats, radii: Floats) -> tuple[Interpolation, Floats]:
    """The rows of the springs at the samples, which are the fixed nodes, and their weights (s,).

    areas: (s,) that the samples stand for. radii: (s,) of the core there; very large for a plane.
    """
    h = nodes.radii[nodes.free :] / SUPPORT_FACTOR
    field, count = mls(nodes.points[nodes.free :], nodes), len(h)
    bones = nodes.free + np.arange(count, dtype=np.int32)
    node = np.insert(field.node, field.start[1:], bones)
    phi = np.insert(field.phi, field.start[1:], -1.0)
    start = field.start + np.arange(count + 1)
    gradient = np.zeros((len(phi), 3))
    gradient[:, 0] = phi / np.repeat(h, np.diff(start))
    stiffness = areas / (radii * np.log1p(LAYER * h / radii))
    return Interpolation(start, node, phi, gradient, field.nodes), stiffness * h**2

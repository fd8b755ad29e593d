"""Springs that hold the flesh to its bones.

A bone is a rigid core (`pliant.engines.simulate.bone_samples`). The field Σ_I φ_I x_I of the nodes is smooth over the
distance h between nodes, so it cannot be rigid inside the core and strained right beside it. If it had to follow the
core exactly, a layer of flesh around the core would be rigid as well, of a thickness in proportion to h. So the field
is tied to the core by springs that are as soft as such a layer. A sample s of the core's surface, which stands for the
area A where the core's radius is a, has the energy

    ½ k |Σ_I φ_I(s) x_I - x_s|²,      k = μ A / (a log(1 + β h / a)),      x_s: the sample on the posed bone

where k is the stiffness in shear of a layer of the thickness β h on a cylinder (as in the well model of Peaceman 1978).
Both errors are in proportion to h and cancel for β = `LAYER`: from 800 nodes on, bars sag as finite elements say with
the same core held, within 2 %, and cylinders within 2.5 % (`tests/test_elastic_attachment.py`). As h decreases, the
springs become rigid.

A spring is a row of the operator (`pliant.engines.simulate.warping`) like a quadrature point, with the gradients

    g_I = (φ_I(s) / h, 0, 0),   g_s = (-1 / h, 0, 0),   the weight k h² / μ,   and λ = -μ.

With these, Hooke's law gives the energy above, whatever the rotation R there. So springs are damped, integrated in time
and preconditioned as flesh is. Rotations diffuse from the bones through the same rows.
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

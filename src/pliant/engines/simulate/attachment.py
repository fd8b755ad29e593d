"""Springs that hold the flesh to its bones, and nodes to each other.

A bone is a rigid core (`pliant.engines.simulate.bone_samples`). The field Σ_I φ_I x_I of the nodes is smooth over the
distance h between nodes, so it cannot be rigid inside the core and strained right beside it. If it had to follow the
core exactly, a layer of flesh around the core would be rigid as well, of a thickness in proportion to h. So the field
is tied to the core by springs that are as soft as such a layer. A sample s of the core's surface, which stands for the
area A where the core's radius is a, has the energy

    ½ k |Σ_I φ_I(s) x_I - x_s|²,      x_s: the sample on the posed bone
    k = μ A / (a log(t / a)),         (t / a)² = 1 + 2 β h / a + (γ h / a)²

where k is the stiffness in shear of a layer on a cylinder, from the radius a to t. On thick cores it is β h thick. Both
errors are in proportion to h and cancel for β = `LAYER`: from 800 nodes on, bars sag as finite elements say with
the same core held, within 2 %, and cylinders within 2.5 % (`tests/test_elastic_attachment.py`). As h decreases, the
springs become rigid. Around a core that is thin against h, the field has the strains of a distance of about γ h, γ =
`WELL`, whatever the core's radius (as in the well model of Peaceman 1978).

A spring is a row of the operator (`pliant.engines.simulate.warping`) like a quadrature point, with the gradients

    g_I = (φ_I(s) / h, 0, 0),   g_s = (-1 / h, 0, 0),   the weight k h² / μ,   and λ = -μ.

With these, Hooke's law gives the energy above, whatever the rotation R there. So springs are damped, integrated in time
and preconditioned as flesh is. Rotations diffuse from the bones through the same rows.

*Ties.* At the tips of parts that are thinner than the nodes are apart, some nodes are seen by too few quadrature points
to say where they are. A tie I is a spring from such a node to where the nodes around it would have it,

    ½ k |x_I - Σ_J ψ_J(X_I) x_J|²,      ψ_J: the functions of the other nodes,      k = μ h

Functions reproduce linear fields, so a tie has no energy as long as the flesh around is deformed evenly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.core.values import locked
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes

LAYER = 0.05
"""β: thickness of the springs' layer of flesh over the distance between nodes."""
WELL = 0.1
"""γ: radius to which the layer of a thin core reaches, over that."""


def springs(nodes: Nodes, areas: Floats, radii: Floats) -> tuple[Interpolation, Floats]:
    """The rows of the springs at the samples, which are the fixed nodes, and their weights (s,).

    areas: (s,) that the samples stand for. radii: (s,) of the core there; very large for a plane.
    """
    h = nodes.radii[nodes.free :] / SUPPORT_FACTOR
    field, bones = mls(nodes.points[nodes.free :], nodes), np.arange(nodes.free, len(nodes))
    stiffness = areas / (radii * 0.5 * np.log1p(2 * LAYER * h / radii + (WELL * h / radii) ** 2))
    return _rows(field, bones, h), stiffness * h**2


def ties(nodes: Nodes, which: Ints) -> tuple[Interpolation, Floats]:
    """The rows of the ties of some free nodes (t,) to the others, and their weights (t,)."""
    others = np.setdiff1d(np.arange(nodes.free), which)
    around = Nodes(locked(nodes.points[others]), locked(nodes.radii[others]), len(others), nodes.surface)
    field, h = mls(nodes.points[which], around), nodes.radii[which] / SUPPORT_FACTOR
    field = replace(field, node=locked(others[field.node].astype(np.int32)), nodes=len(nodes))
    return _rows(field, which, h), h**3


def _rows(field: Interpolation, end: Ints, h: Floats) -> Interpolation:
    """Springs from points of a field to the nodes `end`, as rows of the operator."""
    node = np.insert(field.node, field.start[1:], end.astype(np.int32))
    phi = np.insert(field.phi, field.start[1:], -1.0)
    start = field.start + np.arange(len(end) + 1)
    gradient = np.zeros((len(phi), 3))
    gradient[:, 0] = phi / np.repeat(h, np.diff(start))
    return Interpolation(start, node, phi, gradient, field.nodes)

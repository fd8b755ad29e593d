"""Skin that slides over what is below it.

A skin of thickness d lies over a layer that carries no shear along the surface: f of the shear stress is missing there
(`pliant.engines.simulate.warping`). Tension and pressure across the layer, and all that is along it, are those of
flesh, so the skin is free to slide, and keeps its distance from the core.

The field of the nodes is smooth over the distance h between nodes, so the layer has to be some of these thick to shear:
`SLIDING_LAYER` h, half of it on either side of the depth d. As h decreases, it becomes a surface. A skin thinner than
half of the layer reaches to its lower end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes
from pliant.engines.simulate.warping import CorotatedOperator

SLIDING_LAYER = 3.0
"""Thickness of the layer over the distance between nodes."""
SLIDING = 0.999
"""f: what is missing of the shear stress. The rest holds a skin that nothing else does."""


def sliding(operator: CorotatedOperator, thickness: Floats, nodes: Nodes, points: Floats) -> CorotatedOperator:
    """The operator of a body whose skin slides. thickness: (rows,) of the skin, 0 where there is none. points: (q, 3)
    the quadrature points, the first rows."""
    at = np.flatnonzero(thickness[: len(points)] > 0)
    if not len(at):
        return operator
    half = 0.5 * SLIDING_LAYER * float(np.median(nodes.radii[: nodes.free])) / SUPPORT_FACTOR
    below = nodes.surface.closest(points[at])
    depth = below.distance
    at, inward = at[depth > 0], (points[at] - below.points)[depth > 0] / depth[depth > 0, None]
    depth = depth[depth > 0]
    loose = np.abs(depth - thickness[at]) <= half
    share, normals = np.zeros(len(operator.mu)), np.zeros((len(operator.mu), 3))
    share[at[loose]], normals[at[loose]] = SLIDING, inward[loose]
    return replace(operator, sliding=locked(share), normals=locked(normals)) if loose.any() else operator

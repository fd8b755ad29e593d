"""Whether a transfer can be vouched for, by what can be seen of its result.

A solver that has converged has met its controls; the shape may be crumpled, torn or hardly move all the same. Measured
on the moved target are

- *volume*, of a closed mesh, over that at rest;
- *stretch*: the factor by which edges are longer or shorter than at rest, exceeded by 5 % of their length; of a limb,
  exceeded by 10 %, where what is shorter counts as the root of that: the inside of a bend gets shorter than its outside
  gets longer;
- *crossings*: the share of the surface that runs through its own connected part, and did not at rest;
- *penetration*: the share of the outer third of a leg or an arm that is inside the others, and was not at rest;
- *limbs*: the angles between the target's limbs and those of the source that they follow (`recognition`);
- *feet*: the angle by which they tip, against rest, while the source's stand on the ground;
- *floating*: how high they are above the floor then, over the height;
- *slide*: how far feet slide along the floor while the source's stand, over how far those do (`recognition`);
- *motion*: articulation of the target's limbs over that of the source's that they follow (`recognition`).

Limbs and feet are judged in the median of the frames, and in the worst one; penetration in the median alone, for legs
brush past each other in many good motions. What a source does itself (a mesh sequence
that is stretched or squeezed) counts for its target, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core.clips import Animation
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats, Ints
from pliant.geometry import quality
from pliant.geometry.body_plan.bodies import OrientedBody
from pliant.geometry.body_plan.limbs import Limb
from pliant.geometry.body_plan.recognition import (
    FootSlide,
    articulation,
    followed_nodes,
    foot_heights,
    foot_slide,
    foot_slopes,
    limb_articulation,
    limb_errors,
)
from pliant.geometry.body_plan.retargeted import Retargeted
from pliant.geometry.spatial import SurfaceTree

VOLUME_RANGE = (0.8, 1.25)
MOST_STRETCH, MOST_LIMB_STRETCH, STRETCHED_SHARE, STRETCHED_LIMB_SHARE = 1.8, 1.55, 0.05, 0.1
MOST_CROSSING = 0.15
MOST_PENETRATION, INNER_SHARE = 0.08, 0.65
"""Of the surface of a limb's outer part, in the median of the frames; and where that begins, over the limb's length:
thighs of stout bodies run into each other unseen, feet do not."""
CURVE_POINTS, CURVE_TRIANGLES = 21, 400
"""Points along a limb to which its surface is nearest, and triangles of it that are looked at."""
MOST_ANGLE, MOST_LIMB_ANGLE = 15.0, 30.0
"""Degrees, in the median of all pieces of limbs, up to which a motion counts as recognised; and of one limb's."""
MOST_FOOT_SLOPE = 15.0
"""Degrees, in the median of the frames in which a foot stands."""
MOST_ANGLE_ONCE, MOST_FOOT_SLOPE_ONCE = 60.0, 30.0
"""Degrees, in a single frame: of a limb's pieces in the mean, and of a foot that stands."""
MOST_FLOATING = 0.04
"""Over the height, in the median of the frames in which a foot stands."""
MOST_SLIDE, UNSEEN_SLIDE = 1.5, 0.01
"""Of feet that stand, over the source's; and over the height, in a contact, below which it is not seen."""
LEAST_MOTION, HARDLY_MOVING = 0.35, 0.005
"""Articulation over the source's, and that of a source that hardly moves."""
OWN_SHARE = 1.2
"""How much more than its source a target may be stretched, or grow or shrink."""
CROSSING_FRAMES = 12
"""In which crossings and penetration are looked for, evenly."""


class Worst(NamedTuple):
    """A measure's worst frame."""

    frame: int
    degrees: float


class WorstStretch(NamedTuple):
    """The frame in which a limb is stretched most."""

    frame: int
    factor: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """Measures of a result; None where they do not apply. `problems` names those that are beyond what is trusted."""

    volume: Floats | None = None
    """(frames,)"""
    stretch: Floats | None = None
    """(frames,)"""
    limb_stretch: Mapping[str, WorstStretch] = field(default_factory=dict)
    """By limb of the target"""
    crossings: float | None = None
    """In the worst frame of those looked at"""
    penetration: Mapping[str, float] = field(default_factory=dict)
    """By leg and arm of the target, in the median of the frames looked at"""
    limbs: Mapping[str, float] = field(default_factory=dict)
    """By limb of the target, degrees in the median"""
    angle: float | None = None
    """Degrees in the median of all of them"""
    feet: Mapping[str, float] = field(default_factory=dict)
    """By leg of the target, degrees in the median; less than 0 on its toes"""
    floating: Mapping[str, float] = field(default_factory=dict)
    """By leg of the target, in the median, over the height"""
    worst_limbs: Mapping[str, Worst] = field(default_factory=dict)
    """By limb, the frame in which its pieces are farthest from the source's in the mean, and how far"""
    worst_feet: Mapping[str, Worst] = field(default_factory=dict)
    """By leg, the frame in which its foot tips most while the source's stands, and how far"""
    slide: FootSlide | None = None
    motion: float | None = None
    problems: tuple[str, ...] = ()
    """Sentences that begin with the measure's name"""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return {
            "volume": None if self.volume is None else [float(self.volume.min()), float(self.volume.max())],
            "stretch": None if self.stretch is None else float(self.stretch.max()),
            "limb_stretch": {name: worst._asdict() for name, worst in self.limb_stretch.items()},
            "crossings": self.crossings,
            "penetration": dict(self.penetration),
            "limbs": dict(self.limbs),
            "feet": dict(self.feet),
            "floating": dict(self.floating),
            "worst_limbs": {name: worst._asdict() for name, worst in self.worst_limbs.items()},
            "worst_feet": {name: worst._asdict() for name, worst in self.worst_feet.items()},
            "slide": None if self.slide is None else asdict(self.slide),
            "motion": self.motion,
            "problems": list(self.problems),
        }


def judge(clip: Animation, source: Animation | Motion | None, found: Retargeted | None, times: Floats) -> Judgement:
    """Judge a target that moves.

    source: what it follows; None where controls were given, which may stretch and cross what they like. found: how its
    limbs follow the source's. times: (frames,) in the source's frames.
    """
    result = Judgement(volume=closed_volume(clip))
    if source is not None and isinstance(clip.shape, Mesh) and len(clip.shape.triangles):
        result = replace(result, stretch=edge_stretch(clip), crossings=new_crossings(clip))
    if found is not None:
        result = _with_limbs(result, clip, found, times)
    elif isinstance(source, Animation):
        result = replace(result, motion=_ratio(articulation(clip.points), articulation(source.points)))
    own = source if isinstance(source, Animation) and isinstance(source.shape, Mesh) else None
    return replace(result, problems=tuple(_problems(result, own)))


def closed_volume(clip: Animation) -> Floats | None:
    """(frames,) of a closed mesh over that at rest; None of other shapes."""
    shape = clip.shape
    if not isinstance(shape, Mesh) or not len(shape.triangles) or shape.welded().mesh.boundary_vertices.any():
        return None
    return quality.volume_ratio(shape, clip)


def edge_stretch(clip: Animation) -> Floats:
    """(frames,) the factor, longer or shorter, that `STRETCHED_SHARE` of the edges' length exceeds."""
    longer, lengths = _edge_factors(clip)
    return _exceeded(np.abs(longer), lengths, STRETCHED_SHARE)


def _edge_factors(clip: Animation) -> tuple[Floats, Floats]:
    """(frames, edges) logarithms of the factors by which edges are longer, and (edges,) lengths at rest."""
    shape = clip.shape
    assert isinstance(shape, Mesh)
    lengths = np.linalg.norm(np.diff(shape.points[shape.edges], axis=1)[:, 0], axis=1)
    return np.nan_to_num(np.log(np.maximum(quality.edge_distortion(shape, clip), 1e-6))), lengths


def _limb_factors(clip: Animation, share: float = 1.0) -> tuple[Floats, Floats]:
    """As `_edge_factors`, of which what is shorter counts as the root. share: how much more each edge may be."""
    longer, lengths = _edge_factors(clip)
    more = np.log(share)
    return np.maximum(longer + more, (more - longer) / 2), lengths


def _exceeded(factors: Floats, lengths: Floats, share: float) -> Floats:
    """(frames,) the factor that a share of the edges' length exceeds."""
    order = np.argsort(factors, axis=1)
    reached = np.cumsum(lengths[order], axis=1)
    k = (reached < (1 - share) * reached[:, -1:]).sum(axis=1)
    found: Floats = np.exp(np.take_along_axis(factors, order, axis=1)[np.arange(len(factors)), k])
    return found


def _limb_stretch(clip: Animation, body: OrientedBody) -> dict[str, WorstStretch]:
    """Of the edges nearest to each limb; limbs that no edge is near to are left out."""
    from scipy.spatial import cKDTree

    shape, limbs = clip.shape, body.anatomy.limbs
    assert isinstance(shape, Mesh)
    at = np.concatenate([limb.path for limb in limbs])
    trunk = cKDTree(at).query(body.tree.locations)[0] > 1e-6 * shape.diagonal
    owner = np.repeat(np.arange(len(limbs)), [len(limb.path) for limb in limbs])
    nearest = cKDTree(np.concatenate([at, body.tree.locations[trunk]])).query(shape.points[shape.edges].mean(axis=1))[1]
    of = np.append(owner, np.full(trunk.sum(), -1))[nearest]
    factors, lengths = _limb_factors(clip)
    found = {}
    for k, limb in enumerate(limbs):
        if (of == k).any():
            stretch = _exceeded(factors[:, of == k], lengths[of == k], STRETCHED_LIMB_SHARE)
            frame = int(np.argmax(stretch))
            found[body.anatomy.named(limb)] = WorstStretch(frame, float(stretch[frame]))
    return found


def new_crossings(clip: Animation) -> float:
    """Share of the surface whose triangles cross others of their connected part, and cross nothing at rest."""
    shape = clip.shape
    assert isinstance(shape, Mesh)
    weld = shape.welded()
    part, tree = weld.mesh.parts[weld.mesh.triangles[:, 0]], SurfaceTree(weld.mesh)
    area = quality.measures.triangle_areas(weld.mesh)(weld.mesh.points)
    before = np.unique(tree.crossings())
    shares = []
    for k in _some_frames(clip):
        pairs = tree.moved(clip.points[k][weld.kept]).crossings()
        own = np.unique(pairs[part[pairs[:, 0]] == part[pairs[:, 1]]])
        shares.append(float(area[np.setdiff1d(own, before)].sum()))
    return max(shares) / max(float(area.sum()), 1e-300)


def _some_frames(clip: Animation) -> Ints:
    return np.unique(np.linspace(0, len(clip) - 1, CROSSING_FRAMES).astype(int))


def limb_penetration(clip: Animation, body: OrientedBody) -> dict[str, float]:
    """By leg and arm, the share of its outer part that is inside others, and was not at rest; in the median of frames.

    Inside is where the winding number of the others' surface is above one half.
    """
    shape = clip.shape
    assert isinstance(shape, Mesh)
    weld = shape.welded()
    mesh, found = weld.mesh, {}
    area = quality.measures.triangle_areas(mesh)(mesh.points)
    limbs = [(limb, own) for limb, own in _limb_triangles(mesh, body) if limb.role in ("leg", "arm") and len(own)]
    for limb, own in limbs:
        others = [rows for other, rows in limbs if other is not limb]
        if others:
            tree = SurfaceTree(mesh.points, mesh.triangles[np.concatenate(others)])
            some = own[np.unique(np.linspace(0, len(own) - 1, CURVE_TRIANGLES).astype(int))]
            weights = area[some] * ~_inside(tree, mesh.triangles[some])
            inside = [_inside(tree.moved(clip.points[k][weld.kept]), mesh.triangles[some]) for k in _some_frames(clip)]
            found[body.anatomy.named(limb)] = float(np.median(inside @ weights) / max(float(area[some].sum()), 1e-300))
    return found


def _inside(tree: SurfaceTree, triangles: Ints) -> NDArray[np.bool_]:
    """(m,) whether the middles of triangles (m, 3) of a tree's points are inside its surface, either way round."""
    return np.asarray(np.abs(tree.winding(tree.points[triangles].mean(axis=1))) > 0.5)


def _limb_triangles(mesh: Mesh, body: OrientedBody) -> list[tuple[Limb, Ints]]:
    """Of each limb, the triangles that are nearest to its outer part."""
    from scipy.spatial import cKDTree

    limbs, along = body.anatomy.limbs, np.linspace(0, 1, CURVE_POINTS)
    points = [[limb.at(share * limb.length) for share in along] for limb in limbs]
    at = np.concatenate([*points, body.tree.locations[list(body.anatomy.spine)]])
    owner = np.full(len(at), -1)
    owner[: len(limbs) * CURVE_POINTS] = np.where(along < INNER_SHARE, -1, np.arange(len(limbs))[:, None]).ravel()
    of = owner[cKDTree(at).query(mesh.points[mesh.triangles].mean(axis=1))[1]]
    return [(limb, np.flatnonzero(of == k)) for k, limb in enumerate(limbs)]


def _with_limbs(result: Judgement, clip: Animation, found: Retargeted, times: Floats) -> Judgement:
    low = np.minimum(times.astype(int), len(found.source) - 1)
    high, t = np.minimum(low + 1, len(found.source) - 1), (times - low)[:, None, None]
    source = (1 - t) * found.source.positions[low] + t * found.source.positions[high]
    target = followed_nodes(clip.shape.points, clip.points, found.target.tree.locations)
    errors = limb_errors(found, source, target)
    articulated = [
        limb_articulation([pair[side] for pair in found.match.pairs], nodes)
        for side, nodes in ((1, target), (0, source))
        if found.match.pairs
    ]
    slopes = foot_slopes(found, target, low)
    measured = result.stretch is not None and found.target.anatomy.limbs
    return replace(
        result,
        limb_stretch=_limb_stretch(clip, found.target) if measured else {},
        penetration=limb_penetration(clip, found.target) if measured else {},
        limbs={name: float(np.median(pieces)) for name, pieces in errors.items()},
        angle=float(np.median(np.concatenate(list(errors.values()), axis=1))) if errors else None,
        feet={name: float(np.median(angles)) for name, (_, angles) in slopes.items()},
        floating={
            name: float(np.median(above))
            for name, (_, above) in foot_heights(found, clip.shape.points, clip.points, low).items()
        },
        worst_limbs={name: _worst(np.arange(len(clip)), pieces.mean(axis=1)) for name, pieces in errors.items()},
        worst_feet={name: _worst(*standing) for name, standing in slopes.items()},
        slide=foot_slide(found, source, target, low, float(np.ptp(clip.shape.points @ found.target.frame[1]))),
        motion=_ratio(*articulated) if articulated else None,
    )


def _worst(frames: Ints, degrees: Floats) -> Worst:
    """Of angles (k,) in frames (k,)."""
    k = int(np.argmax(np.abs(degrees)))
    return Worst(int(frames[k]), float(degrees[k]))


def _ratio(mine: float, theirs: float) -> float | None:
    return None if theirs < HARDLY_MOVING else mine / theirs


def _problems(found: Judgement, source: Animation | None) -> list[str]:
    sentences = []
    if found.volume is not None:
        own = closed_volume(source) if source is not None else None
        spread = 1.0 if own is None else OWN_SHARE * float(np.exp(np.abs(np.log(np.maximum(own, 1e-6))).max()))
        if found.volume.min() < min(VOLUME_RANGE[0], 1 / spread) or found.volume.max() > max(VOLUME_RANGE[1], spread):
            frame = int(np.argmax(np.abs(np.log(np.maximum(found.volume, 1e-6)))))
            value = f"{100 * float(found.volume[frame]):.0f} %"
            sentences.append(f"volume: in the worst frame, {frame}, it is {value} of that at rest.")
    if found.stretch is not None:
        most, most_of_limb = MOST_STRETCH, MOST_LIMB_STRETCH
        if source is not None:
            most = max(most, OWN_SHARE * float(edge_stretch(source).max()))
            most_of_limb = max(most_of_limb, float(_exceeded(*_limb_factors(source, OWN_SHARE), STRETCHED_SHARE).max()))
        frame = int(np.argmax(found.stretch))
        if found.stretch[frame] > most:
            sentences.append(
                f"stretch: in frame {frame}, {100 * STRETCHED_SHARE:.0f} % of the edges are more than "
                f"{found.stretch[frame]:.2g} times longer or shorter than at rest."
            )
        torn = {name: worst for name, worst in found.limb_stretch.items() if worst.factor > most_of_limb}
        if torn:
            listed = ", ".join(
                f"{name} {worst.factor:.2g} times in frame {worst.frame}" for name, worst in torn.items()
            )
            sentences.append(
                f"stretch: {100 * STRETCHED_LIMB_SHARE:.0f} % of a limb's edges are more than so many times longer "
                f"than at rest, or its square shorter ({listed}); in a cage, more faces may follow it."
            )
    if found.crossings is not None and found.crossings > MOST_CROSSING:
        sentences.append(f"crossings: up to {100 * found.crossings:.0f} % of the surface runs through itself.")
    within = {name: share for name, share in found.penetration.items() if share > MOST_PENETRATION}
    if within:
        listed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in within.items())
        sentences.append(
            f"penetration: so much of the outer third of a limb is inside others in the median ({listed})."
        )
    sentences += _limb_problems(found)
    floating = {name: above for name, above in found.floating.items() if above > MOST_FLOATING}
    if floating:
        listed = ", ".join(f"{name} {100 * above:.0f} %" for name, above in floating.items())
        sentences.append(
            f"floating: where the source's feet stand, so much of the height is below the target's in the median "
            f"({listed})."
        )
    slide = found.slide
    if slide is not None and slide.ratio > MOST_SLIDE and slide.target > UNSEEN_SLIDE:
        sentences.append(
            f"slide: feet slide {slide.ratio:.2g} times as far as the source's, relative to height, while those stand "
            f"({100 * slide.target:.1f} % of the height in a contact)."
        )
    if found.motion is not None and found.motion < LEAST_MOTION:
        sentences.append(f"motion: only {100 * found.motion:.0f} % of the source's movement is seen on the target.")
    return sentences


def _limb_problems(found: Judgement) -> list[str]:
    """Limbs and feet, in the median or in single frames."""
    sentences = []
    astray = {name: angle for name, angle in found.limbs.items() if angle > MOST_LIMB_ANGLE}
    if astray or (found.angle is not None and found.angle > MOST_ANGLE):
        listed = ", ".join(f"{name} {angle:.0f}°" for name, angle in (astray or found.limbs).items())
        sentences.append(f"limbs: they point elsewhere than the source's ({listed} away in the median).")
    once = _listed({k: worst for k, worst in found.worst_limbs.items() if k not in astray}, MOST_ANGLE_ONCE)
    if once:
        sentences.append(f"limbs: in single frames they point elsewhere than the source's ({once}).")
    tipped = {name: slope for name, slope in found.feet.items() if abs(slope) > MOST_FOOT_SLOPE}
    if tipped:
        listed = ", ".join(
            f"{name} {abs(slope):.0f}° {'up' if slope > 0 else 'down'}" for name, slope in tipped.items()
        )
        sentences.append(f"feet: where the source's stand on the ground, their toes point up or down ({listed}).")
    once = _listed({k: worst for k, worst in found.worst_feet.items() if k not in tipped}, MOST_FOOT_SLOPE_ONCE)
    if once:
        sentences.append(f"feet: in single frames in which the source's stand, their toes point up or down ({once}).")
    return sentences


def _listed(found: Mapping[str, Worst], most: float) -> str:
    return ", ".join(
        f"{name} {abs(worst.degrees):.0f}° in frame {worst.frame}"
        for name, worst in found.items()
        if abs(worst.degrees) > most
    )

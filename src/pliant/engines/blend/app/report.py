"""The report on a blend: the frames beside linear blending's, and how well each keeps volume, lengths and smoothness.

Both are measured against the blend of the shapes' own volumes, edge lengths and angles at the same weights
(`pliant.geometry.quality`), so that 100 % and 0 are perfect whatever the shapes are.

Depths of linear blending are those of its vertices; ours count edges and faces too. Crossings are counted on the
finished clips, apart from the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from pliant import render
from pliant.app.drawing import at_vertices, color_limits
from pliant.app.report import page
from pliant.app.report.charts import Curve, line_chart
from pliant.app.report.closeup import SHEET_FRAMES, cut, moving_part
from pliant.app.report.contact import Contact, crossings
from pliant.core.clips import Animation
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints
from pliant.engines.blend.app.result import BlendRun
from pliant.geometry import quality
from pliant.geometry.solidity import is_solid
from pliant.render.camera import front_of, view_of

OURS, THEIRS = "pliant", "linear blending"
ROLES: tuple[Literal["ours", "theirs", "third", "fourth"], ...] = ("ours", "theirs", "third", "fourth")
"""Colours of the obstacles' curves; there are no curves of further obstacles."""


@dataclass(frozen=True, eq=False)
class ContactMeasures:
    """Measures of contact of a run, and of linear blending at the same weights."""

    run: BlendRun
    depths: Floats
    """(frames,) over the diagonal."""
    linear_depths: Floats
    crossings: Floats | None = None
    """(frames,) pairs of own faces that cross; None: without self-contact they are not counted."""
    linear_crossings: Floats | None = None

    @classmethod
    def of(cls, run: BlendRun, linear: Animation) -> ContactMeasures | None:
        """Measure a run; None if it has no contact."""
        contact = run.contact
        if not contact:
            return None
        # The solver's figure has edges and faces in it; the vertices are measured anew.
        depths = np.maximum(contact.depths(run.clip), [pose.penetration for pose in run.poses])
        counted = (run.crossings, crossings(linear)) if contact.self_contact else (None, None)
        return cls(run, depths, contact.depths(linear), *counted)

    @property
    def contact(self) -> Contact:
        """Obstacles and contact options."""
        return self.run.contact

    @property
    def contacts(self) -> Floats:
        """(frames,) points that are pushed."""
        return np.array([pose.contacts for pose in self.run.poses], dtype=np.float64)

    def findings(self) -> list[str]:
        """The findings, in sentences."""
        lines = []
        if self.contact.obstacles:
            ours, theirs = self.depths.max(), self.linear_depths.max()
            inside = (
                f"at most {share(ours)} of the diagonal inside one" if share(ours) != "0 %" else "nothing inside one"
            )
            lines.append(
                f"Obstacles: {inside}; {THEIRS} goes {share(theirs)} of the diagonal deep. "
                f"Up to {self.contacts.max():.0f} contacts in a frame."
            )
        if self.crossings is not None and self.linear_crossings is not None:
            new = max(pose.crossings for pose in self.run.poses)
            lines.append(
                f"Itself: {pairs(self.crossings.max())} of faces cross in the worst frame, {new} of them new; "
                f"of {THEIRS} {pairs(self.linear_crossings.max())} cross."
            )
        return lines

    def charts(self) -> list[str]:
        """Curves over the frames."""
        found = []
        if self.contact.obstacles:
            both = [Curve(THEIRS, self.linear_depths, "theirs"), Curve(OURS, self.depths)]
            svg = line_chart(both, format_value=share, whole=False, axis="deepest penetration over the diagonal")
            found.append(page.chart("Penetration", svg, "The deepest point inside an obstacle: 0 is perfect."))
        curve = Curve("contacts", self.contacts)
        svg = line_chart([curve], format_value=lambda v: f"{v:.0f}", whole=True, axis="contacts")
        found.append(page.chart("Contacts", svg, "Points that an obstacle, or the shape itself, pushes."))
        if self.crossings is not None and self.linear_crossings is not None:
            both = [Curve(THEIRS, self.linear_crossings, "theirs"), Curve(OURS, self.crossings)]
            svg = line_chart(both, format_value=lambda v: f"{v:.0f}", whole=True, axis="pairs of faces that cross")
            found.append(page.chart("Crossings", svg, "Pairs of the shape's own faces that cross: 0 is perfect."))
        if self.contact.obstacles:
            found.append(self._forces())
        return found

    def _forces(self) -> str:
        forces = zip(self.contact.names, self.run.forces.T, ROLES, strict=False)
        svg = line_chart([Curve(name, values, role) for name, values, role in forces], axis="force")
        caption = "Strength of the force on each obstacle. A force of 1 stretches one spring by about three quarters."
        if len(self.contact.obstacles) > len(ROLES):
            caption += f" The first {len(ROLES)} are shown; --json has all."
        return page.chart("Forces on obstacles", svg, caption)

    def header(self) -> list[str]:
        """Columns of the table."""
        names = [f"force, {name}" for name in self.contact.names[: len(ROLES)]]
        deep = ["penetration"] if self.contact.obstacles else []
        return [*deep, "contacts", *(["crossings", "new"] if self.crossings is not None else []), *names]

    def row(self, frame: int) -> Sequence[str]:
        """The same of one frame."""
        pose = self.run.poses[frame]
        deep = [share(float(self.depths[frame]))] if self.contact.obstacles else []
        own = [] if self.crossings is None else [f"{self.crossings[frame]:.0f}", str(pose.crossings)]
        forces = [f"{force:.3g}" for force in self.run.forces[frame][: len(ROLES)]]
        return [*deep, str(pose.contacts), *own, *forces]

    def legend(self) -> dict[str, str]:
        """What the columns mean."""
        meanings = {"penetration": "of the deepest point inside an obstacle, over the diagonal"}
        meanings |= {"contacts": "points that are pushed", "crossings": "pairs of the shape's own faces that cross"}
        meanings |= {"new": "of those, the ones where none crossed in the first frame, or all had come free"}
        used = {name: meanings[name] for name in self.header() if name in meanings}
        return used | ({"force": "on an obstacle"} if self.contact.obstacles else {})


def share(value: float) -> str:
    """A share of the diagonal in percent; what is below a ten-thousandth of a percent counts as none."""
    return f"{100 * value:.2g} %" if abs(value) >= 1e-6 else "0 %"


def pairs(count: float) -> str:
    """A number of pairs."""
    return f"{count:.0f} pair{'s' if count != 1 else ''}"


RESIDUAL = "largest force left, over the largest that linear blending leaves"
RESIDUAL_IN_CONTACT = "largest force left, over the largest at the start"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A blend and linear blending at the same weights, measured alike."""

    run: BlendRun
    linear: Animation
    ours: quality.Report
    theirs: quality.Report
    solid: bool
    """Whether the shape encloses a volume."""
    touching: ContactMeasures | None
    """Measures of contact; None without contact."""

    @classmethod
    def of(cls, run: BlendRun) -> Comparison:
        """Blend linearly and measure both."""
        shapes = run.rig.shapes
        linear = shapes.mixed(run.weights, run.fps)
        ours, theirs = (quality.measure(clip, shapes, weights=run.weights) for clip in (run.clip, linear))
        return cls(run, linear, ours, theirs, is_solid(run.weld.mesh), ContactMeasures.of(run, linear))

    @cached_property
    def seen(self) -> Ints | None:
        """(k,) the vertices that pictures show; None: all."""
        weld = self.run.weld
        return moving_part(self.run.clip, weld.mesh.parts[weld.index])

    @property
    def clips(self) -> dict[str, Animation]:
        """Linear blending and ours, as far as they are shown."""
        clips = {THEIRS: self.linear, OURS: self.run.clip}
        return clips if self.seen is None else {name: cut(clip, self.seen) for name, clip in clips.items()}

    @property
    def frame(self) -> int:
        """The frame in which linear blending distorts the edges most."""
        return int(np.nanargmax(_curve(self.theirs.edge_rms)))


def blend_report(run: BlendRun, *, title: str = "", view: render.View = "auto", up: render.Up = "auto") -> str:
    """The report on a blend as HTML: one page that needs nothing else."""
    found = Comparison.of(run)
    view = _view(found, up) if view == "auto" else view
    sections = [
        page.section("Frame by frame", _sheet(found, view, up), _closest(found, view, up)),
        page.charts("What is kept", _kept(found)),
    ]
    if found.touching:
        sections.append(page.charts("Contact", found.touching.charts()))
    sections += [
        page.charts("How the solver went", _solver(run)),
        page.section("Set-up", page.facts(run.facts())),
        page.section("All frames", _table(found)),
    ]
    return page.page(title or run.title, findings(found), sections)


write_blend_report = page.writer(blend_report)
"""Write the report on a blend as one HTML file."""


def _view(found: Comparison, up: render.Up) -> render.View:
    """From the front of the shape if it has one, or of what is shown of it: the same for whatever moves there."""
    for clip in (found.run.clip, found.clips[OURS]):
        mesh = clip.shape
        assert isinstance(mesh, Mesh)
        front = front_of(mesh.points, mesh.triangles)
        if front is not None:
            break
    return view_of(front, mesh.world.up if up == "auto" and mesh.world is not None else up)


def findings(found: Comparison) -> list[str]:
    """The findings, in sentences."""
    run = found.run
    count = f"{len(run.poses)} frame{'s' if len(run.poses) > 1 else ''} of {len(run.rig.shapes.base.points):,} vertices"
    lines = [f"{count}; {run.unconverged or 'every frame converged'}.", *run.warnings]
    if found.solid:
        ours, theirs = (_worst(_curve(report.volume) - 1) for report in (found.ours, found.theirs))
        lines.append(f"Volume: within {ours} of what the shapes' own volumes blend to; {THEIRS} is off by {theirs}.")
    ours, theirs = (_worst(report.edge_rms) for report in (found.ours, found.theirs))
    lines.append(f"Edges: {ours} from their blended lengths in the worst frame (root mean square); {THEIRS} {theirs}.")
    ours, theirs = (f"{np.degrees(np.nanmax(_curve(r.bend_rms))):.1f}°" for r in (found.ours, found.theirs))
    lines.append(f"Bends: {ours} from the blended angles between faces in the worst frame; {THEIRS} {theirs}.")
    lines += found.touching.findings() if found.touching else []
    if run.inverted:
        shapes = f"in the shapes themselves up to {run.inverted_in_shapes}"
        lines.append(f"Inside, up to {run.inverted} tetrahedra of a frame are turned inside out; {shapes}.")
    return lines


def _curve(values: Floats | None) -> Floats:
    assert values is not None  # a mesh has all of these measures
    return values


def _worst(values: Floats | None) -> str:
    return _percent(float(np.nanmax(np.abs(_curve(values)))))


def _percent(value: float) -> str:
    """A difference; what is below a hundredth of a percent counts as none."""
    return f"{100 * value:.3g} %" if abs(value) >= 1e-4 else "0 %"


def _ratio(value: float) -> str:
    return f"{100 * value:.1f} %"


def _sheet(found: Comparison, view: render.View, up: render.Up) -> str:
    extra = found.run.contact.extras(found.clips[OURS])
    image = render.contact_sheet(found.clips, frames=SHEET_FRAMES, size=(230, 210), view=view, up=up, extra=extra)
    caption = "The same weights, the same camera: linear blending above, pliant below."
    return page.picture(image, caption if found.seen is None else f"{caption} What does not move is left out.")


def _closest(found: Comparison, view: render.View, up: render.Up) -> str:
    """The frame where linear blending is worst, coloured by stretch."""
    shapes, k = found.run.rig.shapes, found.frame
    stretch = {}
    for name, points in ((THEIRS, found.linear.points[k]), (OURS, found.run.clip.points[k])):
        ratios = quality.edge_distortion(shapes, points, weights=found.run.weights[k])
        values = at_vertices(ratios[None], shapes.base.edges, len(shapes.base.points))[0]
        stretch[name] = values if found.seen is None else values[found.seen]
    limits, _ = color_limits(np.concatenate(list(stretch.values())), "edge")
    assert limits is not None
    spread = min(limits[1] - 1, 0.5)
    image = render.contact_sheet(
        {name: clip[k] for name, clip in found.clips.items()},
        values={name: values - 1 for name, values in stretch.items()},
        limits=(-spread, spread),
        colormap="diverging",
        label="squeezed (blue) or stretched (red): edge length over its blended length, less 1",
        size=(560, 440),
        view=view,
        up=up,
        extra=found.run.contact.extras_at(found.clips[OURS], k),
    )
    return page.picture(image, f"Frame {k}, where linear blending stretches and squeezes most.")


def _kept(found: Comparison) -> list[str]:
    def both(value: Callable[[quality.Report], Floats | None]) -> list[Curve]:
        return [Curve(THEIRS, _curve(value(found.theirs)), "theirs"), Curve(OURS, _curve(value(found.ours)))]

    charts = []
    if found.solid:
        svg = line_chart(both(lambda r: r.volume), format_value=_ratio, ideal=1.0, axis="volume over blended volume")
        charts.append(page.chart("Volume", svg, "Over the blend of the shapes' own volumes: 100 % is perfect."))
    svg = line_chart(both(lambda r: r.edge_rms), format_value=_percent, axis="difference in length, root mean square")
    charts.append(
        page.chart("Edge distortion", svg, "Root mean square difference from the blended lengths: 0 is perfect.")
    )
    if not found.solid:
        svg = line_chart(both(lambda r: r.area_rms), format_value=_percent, axis="difference in area, root mean square")
        caption = "Root mean square difference from the blended areas of the faces. An open surface has no volume."
        charts.append(page.chart("Area distortion", svg, caption))
    degrees = both(lambda r: np.degrees(_curve(r.bend_rms)))
    svg = line_chart(degrees, format_value=lambda value: f"{value:.3g}°", axis="difference in angle, root mean square")
    caption = "Root mean square difference from the blended angles between faces: wrinkles and creases show here."
    return [*charts, page.chart("Bends", svg, caption)]


def _solver(run: BlendRun) -> list[str]:
    iterations = Curve("iterations", np.array([pose.iterations for pose in run.poses], dtype=np.float64))
    residual = Curve("residual", np.array([pose.residual for pose in run.poses]))
    svg = line_chart([iterations], flagged=run.failed, format_value=lambda v: f"{v:.0f}", whole=True, axis="iterations")
    charts = [page.chart("Iterations", svg, "Steps that the solver took in each frame.")]
    svg = line_chart(
        [residual], flagged=run.failed, logarithmic=True, format_value=lambda v: f"{v:.0e}", axis="residual"
    )
    caption = f"The {_residual(run)}."
    if run.failed:
        caption += " Frames that did not converge are marked."
    return [*charts, page.chart("Residual", svg, caption)]


def _residual(run: BlendRun) -> str:
    return RESIDUAL_IN_CONTACT if run.contact else RESIDUAL


def _table(found: Comparison) -> str:
    run = found.run
    moving = np.flatnonzero(np.ptp(run.weights, axis=0) > 0)[:6]
    header = ["frame", *(run.rig.shapes.names[s] for s in moving)]
    header += ["volume", "volume, linear"] if found.solid else []
    header += [
        "edges",
        "edges, linear",
        *(found.touching.header() if found.touching else []),
        "iterations",
        "residual",
        *(["inverted"] if run.has_inside else []),
        "",
    ]
    rows = []
    for k, pose in enumerate(run.poses):
        row = [str(k), *(f"{run.weights[k, s]:.3g}" for s in moving)]
        if found.solid:
            row += [_ratio(_curve(r.volume)[k]) for r in (found.ours, found.theirs)]
        row += [_percent(_curve(r.edge_rms)[k]) for r in (found.ours, found.theirs)]
        row += found.touching.row(k) if found.touching else []
        row += [str(pose.iterations), f"{pose.residual:.1e}", *([str(pose.inverted)] if run.has_inside else [])]
        rows.append([*row, pose.message])
    return page.table(header, rows, flagged=run.failed) + page.facts(_legend(found))


def _legend(found: Comparison) -> dict[str, str]:
    """What the columns of the table mean."""
    volume = {"volume": "over the blend of the shapes' own volumes: 100 % is perfect"} if found.solid else {}
    inside = {"inverted": "tetrahedra inside that are turned inside out"} if found.run.has_inside else {}
    return {
        "shape names": "weights",
        **volume,
        "edges": "root mean square difference from the blended lengths: 0 % is perfect",
        "linear": f"the same of {THEIRS}",
        **(found.touching.legend() if found.touching else {}),
        "iterations": "steps that the solver took",
        "residual": _residual(found.run),
        **inside,
    }

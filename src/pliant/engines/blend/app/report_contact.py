"""The part of a report that is about contact: depths, contacts, crossings and forces, as sentences, curves and columns.

Depths of linear blending are those of its vertices; ours count edges and faces too. Crossings are counted on the
finished clips, apart from the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.app.report import page
from pliant.app.report.charts import Curve, line_chart
from pliant.app.report.contact import Contact, crossings
from pliant.core.clips import Animation
from pliant.core.topology import Floats
from pliant.engines.blend.app.result import BlendRun

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

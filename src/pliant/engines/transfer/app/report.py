"""The report on a transfer: sources, target and cage frame by frame, and how well the controls are met.

The energy over the iterations is the paper's Figure 9 (Chen et al. 2010): Eq. 12, logarithmic, from the start to where
the solver stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import numpy as np
from PIL import Image as Pillow

from pliant import render
from pliant.app.report import page
from pliant.app.report.charts import Curve, line_chart
from pliant.app.report.closeup import SHEET_FRAMES, travels
from pliant.app.report.outcome import percent
from pliant.core.clips import Animation
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.engines.transfer.app.result import RiggedRun, TransferRun

LIMB_COLORS = ("#c8102e", "#2463b4", "#e08a00", "#1b8a5a", "#8040a0", "#00a0b0", "#b0307a", "#7a6a10")
SPARE_COLOR = "#9a9a9a"
LIMB_PICTURE, LIMB_VIEW = (380, 360), (35, 10)


def transfer_report(
    run: TransferRun | RiggedRun, *, title: str = "", view: render.View = "auto", up: render.Up = "auto"
) -> str:
    """The report on a transfer as HTML: one page that needs nothing else."""
    limbs = _limbs(run)
    sections = [
        page.section("Frame by frame", *_pictures(run, view, up)),
        *([page.section("Which limbs match", *limbs)] if limbs else []),
    ]
    if isinstance(run, TransferRun):
        sections.append(page.charts("How well the controls are met", _met(run)))
        sections.append(page.charts("How the solver went", _solver(run)))
    sections.append(page.section("Set-up", page.facts(run.facts())))
    if isinstance(run, TransferRun):
        sections.append(page.section("All frames", _table(run)))
    return page.page(title or run.title, findings(run), sections)


write_transfer_report = page.writer(transfer_report)
"""Write the report on a transfer as one HTML file."""


def findings(run: TransferRun | RiggedRun) -> list[str]:
    """The findings, in sentences."""
    count = f"{len(run.solved)} frame{'s' if len(run.solved) > 1 else ''}"
    if isinstance(run, RiggedRun):
        moved = f"{count} of {len(run.clip.shape.points):,} points on the target's own skeleton and skin"
        return [f"{moved}{f'; {run.failure}' if run.failure else ''}.", *run.warnings]
    rig = run.transfer.rig
    what = f"{count} of {len(run.clip.shape.points):,} points in a cage of {len(rig.cage.points)} vertices"
    return [f"{what}; {run.failure or 'every frame converged'}.", *run.met(), *run.warnings]


def _limbs(run: TransferRun | RiggedRun) -> list[str]:
    """Both skeletons at rest, limbs that follow each other in one colour, the others grey; nothing without limbs."""
    found = run.transfer.registered
    if found is None:
        return []
    shown = []
    for k, (body, what) in enumerate(((found.source.body, "source"), (found.target, "target"))):
        colors = {pair[k].nodes: color for pair, color in zip(found.match.pairs, cycle(LIMB_COLORS), strict=False)}
        upright = body.tree.locations @ body.frame.T
        chains = [(limb.nodes, colors.get(limb.nodes, SPARE_COLOR)) for limb in body.anatomy.limbs]
        chains += [(body.anatomy.spine, SPARE_COLOR)] if len(body.anatomy.spine) > 1 else []
        first, *others = [
            (Skeleton.from_positions(upright[list(nodes)], np.arange(-1, len(nodes) - 1)), color)
            for nodes, color in chains
        ]
        extra = [render.Extra(bones, color=color) for bones, color in others]
        image = render.picture(first[0], color=first[1], extra=extra, size=LIMB_PICTURE, view=LIMB_VIEW, up="y")
        shown.append(page.picture(image, f"The {what}'s limbs at rest, in one colour with those they match."))
    return shown


def _pictures(run: TransferRun | RiggedRun, view: render.View, up: render.Up) -> list[str]:
    shown = [page.picture(strip(run, source, view, up), f"The source {name}.") for name, source in run.sources.items()]
    shown.append(page.picture(strip(run, run.clip, view, up), f"The target{', at the same times' if shown else ''}."))
    if isinstance(run, RiggedRun):
        return shown
    wires = [render.Extra(run.transfer.cage, style="wire")]
    caption = "The target in its cage. The cage goes where it has to; what counts is what is inside."
    return [*shown, page.picture(strip(run, run.clip, view, up, wires), caption)]


def strip(
    run: TransferRun | RiggedRun,
    thing: Animation | Motion,
    view: render.View,
    up: render.Up,
    extra: list[render.Extra] | None = None,
    size: tuple[int, int] = (200, 190),
) -> Pillow.Image:
    """Frames of a source or of the target side by side; the camera follows it if it travels."""
    return render.contact_sheet(
        thing,
        frames=SHEET_FRAMES,
        columns=SHEET_FRAMES,
        size=size,
        view=view,
        up=up,
        extra=extra or (),
        follow=travels(thing),
    )


def _met(run: TransferRun) -> list[str]:
    """Curves of the controls' residuals, the worst and the median of each frame."""
    charts = []
    if run.angles.size:
        charts.append(_residuals("Rotations", run.angles, _degrees, "angle", "Degrees off at the gradient controls."))
        caption = "Size, the cube root of the volume, at the gradient controls relative to their targets."
        charts.append(_residuals("Sizes", np.abs(run.stretches), percent, "difference in size", caption))
    if run.distances.size:
        caption = "Distance of the position controls from their targets, over the cage's diagonal."
        charts.append(_residuals("Positions", run.distances, percent, "distance", caption))
    if run.lengths.size:
        caption = "Difference of the lengths that were to be kept."
        charts.append(_residuals("Lengths", np.abs(run.lengths), percent, "difference in length", caption))
    return charts


def _residuals(title: str, values: Floats, show: Callable[[float], str], axis: str, caption: str) -> str:
    curves = [Curve("the worst", values.max(axis=1), "theirs")]
    if values.shape[1] > 1:
        curves.append(Curve("the median", np.median(values, axis=1)))
    svg = line_chart(curves, format_value=show, ideal=0.0, axis=axis)
    return page.chart(title, svg, f"{caption} 0 is perfect.")


def _degrees(value: float) -> str:
    return f"{value:.3g}°"


def _solver(run: TransferRun) -> list[str]:
    first, slowest = run.solutions[0], run.solutions[run.slowest]
    charts = []
    shown = {"Energy in the first frame": (first, "the first frame, which starts from the rest cage")}
    if run.slowest:
        shown[f"Energy in frame {run.slowest}"] = (slowest, f"frame {run.slowest}, which took the most iterations")
    for title, (solution, which) in shown.items():
        svg = line_chart(
            [Curve("energy", solution.energies)],
            logarithmic=True,
            format_value=lambda value: f"{value:.0e}",
            axis="energy, Eq. 12",
            over="iteration",
        )
        charts.append(page.chart(title, svg, f"Over the iterations of {which}, as in the paper's Figure 9."))
    iterations = Curve("iterations", np.array([solution.iterations for solution in run.solutions], dtype=np.float64))
    svg = line_chart([iterations], flagged=run.failed, format_value=lambda v: f"{v:.0f}", whole=True, axis="iterations")
    start = "the frame before" if run.transfer.tracks else "the rest cage"
    charts.append(page.chart("Iterations", svg, f"Steps of each frame; each starts from {start}."))
    final = Curve("energy", np.array([solution.energies[-1] for solution in run.solutions]))
    svg = line_chart([final], flagged=run.failed, format_value=lambda v: f"{v:.2g}", axis="energy, Eq. 12")
    caption = "Energy at the end of each frame: of smoothness, and of what the controls miss."
    return [*charts, page.chart("Final energy", svg, caption)]


def _table(run: TransferRun) -> str:
    columns: dict[str, tuple[Floats, Callable[[float], str]]] = {
        "rotations": (run.angles, _degrees),
        "sizes": (np.abs(run.stretches), percent),
        "positions": (run.distances, percent),
        "lengths": (np.abs(run.lengths), percent),
    }
    there = {name: column for name, column in columns.items() if column[0].size}
    header = ["frame", *there, "energy", "iterations", "residual", ""]
    rows = [
        [
            str(k),
            *(show(float(values[k].max())) for values, show in there.values()),
            f"{solution.energies[-1]:.3g}",
            str(solution.iterations),
            f"{solution.residual:.1e}",
            solution.message,
        ]
        for k, solution in enumerate(run.solutions)
    ]
    meanings = {
        "rotations": "degrees off at the worst gradient control",
        "sizes": "difference in size at the worst gradient control",
        "positions": "distance of the worst position control from its target, over the cage's diagonal",
        "lengths": "difference of the worst length",
    }
    legend = {name: meanings[name] for name in there} | {
        "energy": "Eq. 12 at the end",
        "residual": "how far the last full step would have moved the target, over the cage's diagonal",
    }
    return page.table(header, rows, flagged=run.failed) + page.facts(legend)

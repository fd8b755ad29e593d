"""The report on an elastic body: bones and flesh frame by frame, and curves of volume, energy and inversion."""

from __future__ import annotations

import numpy as np
from PIL import Image as Pillow

from pliant import render
from pliant.app.report import page
from pliant.app.report.charts import Curve, line_chart
from pliant.app.report.closeup import SHEET_FRAMES, travels
from pliant.app.report.outcome import percent
from pliant.core.clips import Animation
from pliant.core.skeleton import Motion
from pliant.engines.simulate.app.result import SimulateRun
from pliant.geometry.body_plan.moving import upright_axis


def simulate_report(run: SimulateRun, *, title: str = "", view: render.View = "auto", up: render.Up = "auto") -> str:
    """The report on an elastic body as HTML: one page that needs nothing else."""
    sections = [
        page.section("Frame by frame", *_pictures(run, view, up)),
        page.charts("How the flesh fares", _body_charts(run)),
        page.charts("How the solver went", _solver(run)),
        page.section("Set-up", page.facts(run.facts())),
        page.section("All frames", _table(run)),
    ]
    return page.page(title or run.title, findings(run), sections)


write_simulate_report = page.writer(simulate_report)
"""Write the report on an elastic body as one HTML file."""


def findings(run: SimulateRun) -> list[str]:
    """What there is to know, in sentences."""
    count = f"{len(run.frames)} frame{'s' if len(run.frames) > 1 else ''}"
    body = run.body
    what = f"{count} of {len(body.shape.points):,} points"
    carried = f"carried by {body.nodes.free:,} nodes on {len(body.bones)} bones"
    return [f"{what}, {carried}; {run.failure or 'every frame converged'}.", *run.findings()]


def _pictures(run: SimulateRun, view: render.View, up: render.Up) -> list[str]:
    shown = []
    motion = shown_motion(run)
    if up == "auto" and motion is not None and run.clip.shape.world is None:  # both stand in one space
        up = upright_axis(motion)
    if motion is not None:
        shown.append(page.picture(sheet(run, motion, view, up), "The bones."))
    return [*shown, page.picture(sheet(run, run.clip, view, up), "The body, at the same times.")]


def shown_motion(run: SimulateRun) -> Motion | None:
    """The motion of the bones at the clip's frames."""
    if run.motion is None:
        return None
    return run.motion.resampled(run.clip.fps) if len(run.motion) > 1 else None


def sheet(
    run: SimulateRun, thing: Animation | Motion, view: render.View, up: render.Up, size: tuple[int, int] = (200, 190)
) -> Pillow.Image:
    """Frames side by side; the camera goes along if the body travels."""
    extras = run.contact.extras(run.clip) if isinstance(thing, Animation) else []
    follow = travels(thing) and not extras
    return render.contact_sheet(
        thing, frames=SHEET_FRAMES, columns=SHEET_FRAMES, size=size, view=view, up=up, extra=extras, follow=follow
    )


def _body_charts(run: SimulateRun) -> list[str]:
    volume = Curve("volume", run.measured("volume"))
    svg = line_chart([volume], format_value=percent, ideal=1.0, axis="volume over that at rest")
    charts = [page.chart("Volume", svg, "Of all flesh, over that at rest: 100 % is perfect.")]
    curves = [Curve("elastic", run.measured("energy"))]
    if run.dynamic:
        curves.append(Curve("kinetic", run.measured("kinetic"), "theirs"))
    svg = line_chart(curves, format_value=lambda value: f"{value:.3g}", ideal=0.0, axis="energy in joules")
    charts.append(page.chart("Energy", svg, "What bending and stretching hold, and what the motion has."))
    svg = line_chart(
        [Curve("inverted", run.measured("inverted"))],
        format_value=lambda value: f"{value:.0f}",
        whole=True,
        axis="points",
    )
    total = f"{len(run.body.quadrature.points):,}"
    charts.append(page.chart("Inversion", svg, f"Quadrature points turned inside out, of {total}. None is perfect."))
    if run.dynamic:
        svg = line_chart([Curve("lag", run.lag)], format_value=percent, ideal=0.0, axis="distance over the diagonal")
        caption = "How far the farthest flesh is from where its bones alone would carry it: lag, swing and sag."
        charts.append(page.chart("Swing", svg, caption))
    for name in run.muscles:
        activation, shortening = run.of_muscle(name)
        curves = [Curve("activation", activation), Curve("shortening", shortening, "theirs")]
        svg = line_chart(curves, format_value=percent, ideal=0.0, axis="share")
        caption = "How much of it acts, and by how much its fibres are shorter than at rest, in the mean."
        charts.append(page.chart(f"Muscle: {name}", svg, caption))
    if run.contact.obstacles:
        svg = line_chart([Curve("depth", run.measured("penetration"))], format_value=percent, ideal=0.0, axis="depth")
        charts.append(page.chart("Penetration", svg, "Of the deepest vertex into an obstacle, over the diagonal."))
    return charts


def _solver(run: SimulateRun) -> list[str]:
    iterations = Curve("iterations", run.measured("iterations"))
    svg = line_chart(
        [iterations], flagged=run.failed, format_value=lambda value: f"{value:.0f}", whole=True, axis="iterations"
    )
    last = "of the last step of each frame" if run.dynamic else "of each pose, which depend on no other"
    return [page.chart("Iterations", svg, f"Of the linear solver, {last}. Frames that did not converge are marked.")]


def _table(run: SimulateRun) -> str:
    columns = ["volume", "energy", *(["kinetic"] if run.dynamic else []), "inverted", "iterations"]
    columns += ["contacts", "penetration"] if run.contact.obstacles else []
    values = np.stack([run.measured(name) for name in columns], axis=1)
    formats = {"volume": percent, "penetration": percent}
    rows = [
        [str(k), *(formats.get(name, lambda v: f"{v:.4g}")(v) for name, v in zip(columns, row, strict=True))]
        for k, row in enumerate(values)
    ]
    meanings = {
        "volume": "of all flesh, over that at rest",
        "energy": "elastic, in joules",
        "kinetic": "energy of the motion, in joules",
        "inverted": "quadrature points turned inside out",
        "contacts": "vertices that obstacles push",
        "penetration": "of the deepest vertex into an obstacle, over the diagonal",
    }
    legend = {name: meaning for name, meaning in meanings.items() if name in columns}
    return page.table(["frame", *columns], rows, flagged=run.failed) + page.facts(legend)

"""``pliant demo``: the built-in shapes blended as bodies beside linear blending, their motions carried over to each
other, flesh that follows their bones, and a page that shows it offline.

For each exhibit there is a clip (GLB), a contact sheet, a film (GIF), a report, and the scene file that makes it again.
Those in contact are shown beside what they would do if nothing touched them, transfers beside what they came from,
flesh beside linear blend skinning.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pliant
from pliant import render
from pliant.app.demo.bodies import BODIES, BodyExhibit, show_body
from pliant.app.demo.exhibits import EXHIBITS, Exhibit
from pliant.app.demo.films import and_back, side_by_side, there_and_back
from pliant.app.demo.page import card, page
from pliant.app.demo.scenes import write_blend_scene, write_simulate_scene, write_transfer_scene
from pliant.app.demo.transfers import TRANSFERS, TransferExhibit, show_transfer
from pliant.app.report.contact import crossings
from pliant.app.report.page import write
from pliant.core.clips import Animation
from pliant.core.errors import MissingExtraError
from pliant.core.progress import Progress, progress
from pliant.core.terminal import complain, finish, say
from pliant.engines.blend.app.report import Comparison, findings, pairs, share, write_blend_report
from pliant.engines.blend.app.result import BlendRun

AnyExhibit = Exhibit | TransferExhibit | BodyExhibit
LINEAR, FREE, OURS = "linear blending", "nothing touches it", "pliant"


def make_demo(
    folder: Path,
    *,
    exhibits: Sequence[AnyExhibit] = (*EXHIBITS, *TRANSFERS, *BODIES),
    quick: bool = False,
    quiet: bool = False,
) -> Path:
    """Make each exhibit's clip, contact sheet, film and report in `folder`; the path of the page that shows them.

    An exhibit that needs an extra which is not installed is left out, and said.
    """
    cards: list[str] = []
    for exhibit in exhibits:
        begun = time.perf_counter()
        try:
            with progress(exhibit.title, quiet=quiet) as show:
                cards.append(_made(exhibit, folder, show, quick=quick))
        except MissingExtraError as error:
            complain(f"pliant: {exhibit.title}: left out, {error}")
            continue
        index = write(folder / "index.html", page(cards))  # from the first exhibit on there is something to see
        if not quiet:
            look = f"; open {index}" if len(cards) == 1 else ""
            say(f"{exhibit.title}: {time.perf_counter() - begun:.1f} s{look}")
            finish()
    return write(folder / "index.html", page(cards))


def _made(exhibit: AnyExhibit, folder: Path, show: Progress, *, quick: bool) -> str:
    """Solve the exhibit and write its files; its part of the page."""
    if isinstance(exhibit, TransferExhibit):
        write_transfer_scene(folder, exhibit.name, exhibit.scene(quick=quick), exhibit.title)
        return show_transfer(exhibit, exhibit.run(show, quick=quick), folder, show)
    if isinstance(exhibit, BodyExhibit):
        moved = exhibit.run(show, quick=quick)
        write_simulate_scene(folder, exhibit.name, moved, exhibit.scene(quick=quick), exhibit.title)
        return show_body(exhibit, moved, folder, show)
    vertices, steps = (exhibit.vertices // 4, 8) if quick else (exhibit.vertices, None)
    run = exhibit.blend(vertices, show, steps=steps)
    shown = _show(exhibit, run, folder, show)
    write_blend_scene(folder, exhibit.name, run, exhibit.document(vertices), exhibit.title)
    return shown


def _show(exhibit: Exhibit, run: BlendRun, folder: Path, show: Progress) -> str:
    """Write the exhibit's files; its part of the page."""
    name, view = exhibit.name, exhibit.view
    if exhibit.has_contact:
        clips = {FREE: run.rig.animate(run.weights, fps=run.fps), OURS: run.clip}
    else:
        clips = {LINEAR: run.rig.shapes.mixed(run.weights, run.fps), OURS: run.clip}
    extras = run.contact.extras(run.clip)
    pliant.write(folder / f"{name}.glb", there_and_back(run.clip))
    sheet = render.contact_sheet(clips, frames=5, size=(300, 260), view=view, extra=extras)
    render.save(sheet, folder / f"{name}.png")
    film, beside = side_by_side(list(clips.values()), view, extras)
    render.movie(
        there_and_back(film),
        folder / f"{name}.gif",
        size=(620, 340),
        view=view,
        title=f"left: {next(iter(clips))}; right: {OURS}",
        extra=[replace(extra, shape=and_back(extra.shape)) for extra in beside],
        progress=lambda done, total: show(done, total, "drawing"),
    )
    write_blend_report(folder / f"{name}-report.html", run, title=exhibit.title, view=view)
    size = (folder / f"{name}.glb").stat().st_size / 1e6
    facts = f"{len(run.clip.shape.points):,} vertices, {run.seconds_a_frame:.2f} s a frame, {size:.1f} MB"
    sentences = contact_summary(run, clips[FREE]) if exhibit.has_contact else findings(Comparison.of(run))[1:]
    return card(name, exhibit.title, exhibit.text, facts, sentences)


def contact_summary(run: BlendRun, free: Animation) -> list[str]:
    """What contact changed, in figures: the clip beside the same blend with nothing that touches it."""
    sentences = [f"{run.failure or 'Every frame converged'}."]
    contact = run.contact
    if contact.obstacles:
        deepest = max(pose.penetration for pose in run.poses)
        sentences.append(
            f"Inside the {contact.names[0]}: {share(deepest)} of the diagonal in the worst frame; "
            f"untouched, it would go {share(contact.depths(free).max())} deep."
        )
        contacts = max(pose.contacts for pose in run.poses)
        sentences.append(
            f"Up to {contacts} contacts in a frame; they push the {contact.names[0]} with up to {force(run)}."
        )
    if contact.self_contact:
        ours, theirs = (crossings(clip).max() for clip in (run.clip, free))
        sentences.append(
            f"Of its own faces, {pairs(ours)} cross in the worst frame; untouched, {pairs(theirs)} would. "
            f"{max(pose.crossings for pose in run.poses)} are new since the first frame."
        )
    return sentences


def force(run: BlendRun) -> str:
    """The largest force on an obstacle, in the springs' own unit."""
    return f"{run.forces.max():.2g} times the force that stretches a spring by three quarters of its length"

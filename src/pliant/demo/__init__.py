"""``pliant demo``: the built-in shapes blended as bodies beside linear blending, and a page that shows it offline.

For each exhibit there is a clip (GLB), a contact sheet, a film (GIF) and a report. Those in contact are shown beside
what they would do if nothing touched them.
"""

from __future__ import annotations

import html
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant import render
from pliant.clips import Animation
from pliant.demo.exhibits import EXHIBITS, Exhibit
from pliant.io.output import staged
from pliant.progress import Progress, progress
from pliant.render import Extra
from pliant.render.camera import camera_axes
from pliant.report import BlendRun, write_blend_report
from pliant.report.blend import Comparison, findings
from pliant.report.contact import crossings
from pliant.report.touching import pairs, share
from pliant.shapes import Mesh
from pliant.topology import Floats

LINEAR, FREE, OURS = "linear blending", "nothing touches it", "pliant"


def make_demo(
    folder: Path, *, exhibits: Sequence[Exhibit] = EXHIBITS, quick: bool = False, quiet: bool = False
) -> Path:
    """Make each exhibit's clip, contact sheet, film and report in `folder`; the path of the page that shows them."""
    cards = []
    for exhibit in exhibits:
        begun = time.perf_counter()
        with progress(exhibit.title, quiet=quiet) as show:
            run = (
                exhibit.blend(exhibit.vertices // 4, show, steps=8) if quick else exhibit.blend(exhibit.vertices, show)
            )
            cards.append(_show(exhibit, run, folder, show))
        if not quiet:
            print(f"{exhibit.title}: {time.perf_counter() - begun:.1f} s", flush=True)
    page = folder / "index.html"
    with staged(page) as place:
        place.write_text(_PAGE.format(version=pliant.__version__, cards="\n".join(cards)), encoding="utf-8")
    return page


def _show(exhibit: Exhibit, run: BlendRun, folder: Path, show: Progress) -> str:
    """Write the exhibit's files; its part of the page."""
    name, view = exhibit.name, exhibit.view
    if exhibit.touched:
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
        extra=[replace(extra, shape=_and_back(extra.shape)) for extra in beside],
        progress=lambda done, total: show(done, total, "drawing"),
    )
    write_blend_report(folder / f"{name}-report.html", run, title=exhibit.title, view=view)
    size = (folder / f"{name}.glb").stat().st_size / 1e6
    facts = f"{len(run.clip.shape.points):,} vertices, {run.seconds_a_frame:.2f} s a frame, {size:.1f} MB"
    told = told_of_touch(run, clips[FREE]) if exhibit.touched else findings(Comparison.of(run))[1:]
    found = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in told)
    return _CARD.format(
        name=name, title=html.escape(exhibit.title), text=html.escape(exhibit.text), facts=facts, found=found
    )


def told_of_touch(run: BlendRun, free: Animation) -> list[str]:
    """What contact changed, in figures: the clip beside the same blend with nothing that touches it."""
    told = [f"{run.failure or 'Every frame converged'}."]
    contact = run.contact
    if contact.obstacles:
        deepest = max(pose.penetration for pose in run.poses)
        told.append(
            f"Inside the {contact.names[0]}: {share(deepest)} of the diagonal in the worst frame; "
            f"untouched, it would go {share(contact.depths(free).max())} deep."
        )
        contacts = max(pose.contacts for pose in run.poses)
        told.append(f"Up to {contacts} contacts in a frame; they push the {contact.names[0]} with up to {force(run)}.")
    if contact.self_contact:
        ours, theirs = (crossings(clip).max() for clip in (run.clip, free))
        told.append(
            f"Of its own faces, {pairs(ours)} cross in the worst frame; untouched, {pairs(theirs)} would. "
            f"{max(pose.crossings for pose in run.poses)} are new since the first frame."
        )
    if not contact:
        away = np.linalg.norm(run.clip.points - free.points, axis=2).max(axis=0) / run.clip.shape.diagonal
        stay = int((away < 1e-9).sum())
        told.append(
            f"The farthest vertex is drawn {share(away.max())} of the diagonal away; {stay} do not move at all."
        )
    return told


def force(run: BlendRun) -> str:
    """The largest force on an obstacle, in the springs' own unit."""
    return f"{run.forces.max():.2g} times the force that stretches a spring by three quarters of its length"


def there_and_back(clip: Animation) -> Animation:
    """The clip, and the same backwards: it repeats without a jump."""
    return Animation(clip.shape, np.concatenate([clip.points, clip.points[-2:0:-1]]), clip.fps, clip.name)


def _and_back(thing: Any) -> Any:
    return there_and_back(thing) if isinstance(thing, Animation) else thing


def side_by_side(
    clips: Sequence[Animation], view: tuple[float, float], extras: Sequence[Extra] = ()
) -> tuple[Animation, list[Extra]]:
    """Clips of one mesh as one clip, beside each other as seen from `view` (y up), each with its own extras."""
    mesh = clips[0].shape
    assert isinstance(mesh, Mesh)
    right = camera_axes(*view, "y")[0]
    things: list[Any] = [*clips, *(extra.shape for extra in extras)]
    across = np.concatenate([(thing.points @ right).ravel() for thing in things])
    shifts = 1.1 * float(np.ptp(across)) * np.arange(len(clips))[:, None] * right
    points = np.concatenate([clip.points + shift for clip, shift in zip(clips, shifts, strict=True)], axis=1)
    faces = [polygon + k * len(mesh.points) for k in range(len(clips)) for polygon in mesh.polygons]
    attributes = {name: np.concatenate([values] * len(clips)) for name, values in mesh.attributes.items()}
    beside = [replace(extra, shape=_shifted(extra.shape, shift)) for shift in shifts for extra in extras]
    return Animation(Mesh(points[0], faces, attributes=attributes), points, clips[0].fps), beside


def _shifted(thing: Any, shift: Floats) -> Any:
    """A mesh or a clip of one elsewhere."""
    if isinstance(thing, Animation):
        return replace(thing, points=thing.points + shift)
    return thing.with_points(thing.points + shift)


_CARD = """<section>
<div class="words"><h2>{title}</h2><p>{text}</p><ul>{found}</ul>
<p class="facts">{facts} &middot; <a href="{name}.glb" download>{name}.glb</a> plays in any glTF viewer &middot;
<a href="{name}-report.html">report</a></p></div>
<img class="film" src="{name}.gif" alt="{title}, moving">
<img class="sheet" src="{name}.png" alt="{title}, frame by frame">
</section>"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>pliant: what it made just now</title>
<style>
:root {{ color-scheme: light; }}
body {{ margin: 0 auto; max-width: 1200px; padding: 2rem 1.5rem 4rem; background: #f4f3f1; color: #2b2a28;
  font: 16px/1.55 system-ui, sans-serif; }}
h1 {{ font-weight: 650; margin: 0; }} header p {{ margin: .3rem 0 2rem; color: #6b6862; }}
section {{ display: grid; grid-template-columns: 1fr 600px; gap: 1rem 1.5rem; background: #fff; border-radius: 14px;
  padding: 1.5rem; margin: 0 0 1.5rem; box-shadow: 0 1px 4px #0001; }}
h2 {{ margin: 0 0 .4rem; font-size: 1.25rem; }} ul {{ padding-left: 1.2rem; }}
.facts {{ color: #6b6862; font-size: .9rem; }}
img {{ width: 100%; border-radius: 10px; display: block; }} .sheet {{ grid-column: 1 / -1; }}
a {{ color: #a4562a; }}
@media (max-width: 950px) {{ section {{ grid-template-columns: 1fr; }} }}
</style></head><body>
<header><h1>pliant</h1>
<p>Shapes that deform the way bodies do. Made by <code>pliant demo</code>, version {version}.</p></header>
{cards}
</body></html>
"""

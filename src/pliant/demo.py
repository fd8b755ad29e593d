"""``pliant demo``: the built-in shapes blended as bodies beside linear blending, and a page that shows it offline.

Each `Exhibit` is a set of shapes and the stops on the way through them. For each there is a clip (GLB), a contact
sheet, a film (GIF) and a report.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pliant
from pliant import gallery, render
from pliant.clips import Animation, Shapes
from pliant.io.output import staged
from pliant.progress import Progress, progress
from pliant.render.camera import camera_axes
from pliant.report import BlendRun, write_blend_report
from pliant.report.blend import Comparison, findings
from pliant.shapes import Mesh
from pliant.topology import Floats

LINEAR, OURS = "linear blending", "pliant"


@dataclass(frozen=True)
class Exhibit:
    """One blend of the demo."""

    name: str
    """What its files are called."""
    title: str
    text: str
    """What to look at, in a sentence or two."""
    shapes: Callable[[int], Shapes]
    """From a number of vertices to the shapes."""
    stops: tuple[str, ...]
    """The shapes it goes through, by name."""
    vertices: int
    view: tuple[float, float] = (30.0, 15.0)

    def blend(self, vertices: int, show: Progress | None = None, *, steps: int = 18) -> BlendRun:
        """Solve `steps` frames from each stop to the next."""
        all_shapes = self.shapes(vertices)
        shapes = Shapes.of([all_shapes.named(name) for name in self.stops], self.stops)
        weights = through(shapes, self.stops, steps=steps)
        begun = time.perf_counter()
        rig = pliant.Blendshapes(shapes)
        ready = time.perf_counter()
        poses: list[pliant.Pose] = []
        for pose in rig.poses(weights):
            poses.append(pose)
            if show is not None:
                show(len(poses), len(weights), "blending")
        return BlendRun(rig, weights, poses, 24.0, ready - begun, time.perf_counter() - ready)


def through(shapes: Shapes, names: Sequence[str], *, steps: int = 18) -> Floats:
    """Weights (frames, shapes) that lead from each named shape to the next, easing in and out."""
    t = np.linspace(0, 1, steps, endpoint=False)
    eased = t * t * (3 - 2 * t)
    rows = np.zeros(((len(names) - 1) * steps + 1, len(shapes)))
    stops = [shapes.names.index(name) for name in names]
    for k in range(len(stops) - 1):
        rows[k * steps : (k + 1) * steps, stops[k]] += 1 - eased
        rows[k * steps : (k + 1) * steps, stops[k + 1]] += eased
    rows[-1, stops[-1]] = 1
    return rows


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "hand",
        "A hand closes",
        "Linear blending moves points on straight lines, so the fingers shrink halfway to the fist. Blended as a body "
        "they curl, and keep their length and volume.",
        gallery.hand,
        ("open", "fist"),
        4000,
        (20, 10),
    ),
    Exhibit(
        "animal",
        "An animal gathers and stretches",
        "Two poses of the built-in gallop. The legs turn at their joints instead of being cut short.",
        gallery.animal,
        ("gallop 4", "gallop 8"),
        4000,
        (70, 10),
    ),
    Exhibit(
        "face",
        "An expression",
        "An open surface: no inside to fill, springs on the skin alone. Where little turns, the two agree.",
        gallery.face,
        ("neutral", "surprise"),
        3000,
        (15, 5),
    ),
    Exhibit(
        "bar",
        "A bar bent by 180°",
        "The plainest case, and the hardest on linear blending.",
        gallery.bar,
        ("straight", "bent 180"),
        2000,
    ),
)


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
    clips = {LINEAR: run.rig.shapes.mixed(run.weights, run.fps), OURS: run.clip}
    pliant.write(folder / f"{name}.glb", there_and_back(run.clip))
    sheet = render.contact_sheet(clips, frames=5, size=(300, 260), view=view)
    render.save(sheet, folder / f"{name}.png")
    film = there_and_back(side_by_side(list(clips.values()), view))
    render.movie(
        film,
        folder / f"{name}.gif",
        size=(620, 340),
        view=view,
        title=f"left: {LINEAR}; right: {OURS}",
        progress=lambda done, total: show(done, total, "drawing"),
    )
    write_blend_report(folder / f"{name}-report.html", run, title=exhibit.title, view=view)
    size = (folder / f"{name}.glb").stat().st_size / 1e6
    facts = f"{len(run.clip.shape.points):,} vertices, {run.seconds_a_frame:.2f} s a frame, {size:.1f} MB"
    found = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in findings(Comparison.of(run))[1:])
    return _CARD.format(
        name=name, title=html.escape(exhibit.title), text=html.escape(exhibit.text), facts=facts, found=found
    )


def there_and_back(clip: Animation) -> Animation:
    """The clip, and the same backwards: it repeats without a jump. Frames do not depend on where they come from."""
    return Animation(clip.shape, np.concatenate([clip.points, clip.points[-2:0:-1]]), clip.fps, clip.name)


def side_by_side(clips: Sequence[Animation], view: tuple[float, float]) -> Animation:
    """Clips of one mesh as one clip, beside each other as seen from `view` (y up)."""
    mesh = clips[0].shape
    assert isinstance(mesh, Mesh)
    right = camera_axes(*view, "y")[0]
    width = 1.15 * max(float(np.ptp(clip.points @ right)) for clip in clips)
    points = np.concatenate([clip.points + k * width * right for k, clip in enumerate(clips)], axis=1)
    faces = [polygon + k * len(mesh.points) for k in range(len(clips)) for polygon in mesh.polygons]
    attributes = {name: np.concatenate([values] * len(clips)) for name, values in mesh.attributes.items()}
    return Animation(Mesh(points[0], faces, attributes=attributes), points, clips[0].fps)


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

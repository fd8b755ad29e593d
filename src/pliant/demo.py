"""``pliant demo``: clips of the built-in shapes, their pictures, and a page that shows them without a network.

Each `Exhibit` makes one clip. An engine adds itself to the demo by adding its exhibits to `EXHIBITS`.
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
from pliant.progress import Report, progress
from pliant.topology import Floats


@dataclass(frozen=True)
class Exhibit:
    """One clip of the demo."""

    name: str
    """What its files are called."""
    title: str
    text: str
    """What to look at, in a sentence or two."""
    make: Callable[[int], Animation]
    """From a number of vertices to the clip."""
    vertices: int
    view: render.View = "auto"


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


def _linear(shapes: Shapes, names: Sequence[str]) -> Animation:
    return shapes.mixed(through(shapes, names))


def _hand(n: int) -> Animation:
    return _linear(gallery.hand(n), ["open", "fist", "pointing", "open"])


def _face(n: int) -> Animation:
    return _linear(gallery.face(n), ["neutral", "smile", "surprise", "kiss", "neutral"])


def _bar(n: int) -> Animation:
    return _linear(gallery.bar(n), ["straight", "bent 180", "straight"])


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "hand",
        "A hand closes",
        "Linear blending of the built-in poses: halfway to the fist the fingers shrink, because points travel on "
        "straight lines where fingers turn. This is what pliant's engines are here to cure.",
        _hand,
        8000,
        (20, 10),
    ),
    Exhibit(
        "animal", "A gallop", "The built-in animal's gait, posed by its skeleton.", gallery.animal_gait, 8000, (70, 10)
    ),
    Exhibit("face", "Expressions", "An open surface with a mouth and lids that part.", _face, 8000, (15, 5)),
    Exhibit(
        "bar",
        "A bar bent by 180°",
        "Linear blending again: at the middle the bar has lost a fifth of its volume.",
        _bar,
        2000,
    ),
)


def make_demo(
    folder: Path, *, exhibits: Sequence[Exhibit] = EXHIBITS, quick: bool = False, quiet: bool = False
) -> Path:
    """Make each exhibit's clip (GLB), contact sheet and GIF in `folder`; the path of the page that shows them."""
    cards = []
    for exhibit in exhibits:
        begun = time.perf_counter()
        with progress(exhibit.title, quiet=quiet) as show:
            cards.append(_show(exhibit, folder, exhibit.vertices // 4 if quick else exhibit.vertices, show))
        if not quiet:
            print(f"{exhibit.title}: {time.perf_counter() - begun:.1f} s", flush=True)
    page = folder / "index.html"
    with staged(page) as place:
        place.write_text(_PAGE.format(version=pliant.__version__, cards="\n".join(cards)), encoding="utf-8")
    return page


def _show(exhibit: Exhibit, folder: Path, vertices: int, show: Report) -> str:
    """Write the exhibit's files; its part of the page."""
    clip = exhibit.make(vertices)
    pliant.write(folder / f"{exhibit.name}.glb", clip)
    render.save(render.contact_sheet(clip, frames=8, columns=4, view=exhibit.view), folder / f"{exhibit.name}.png")
    render.movie(clip, folder / f"{exhibit.name}.gif", size=(480, 400), view=exhibit.view, fps=24, progress=show)
    size = (folder / f"{exhibit.name}.glb").stat().st_size / 1e6
    facts = f"{len(clip.shape.points):,} vertices, {len(clip)} frames, {size:.1f} MB"
    return _CARD.format(
        name=exhibit.name, title=html.escape(exhibit.title), text=html.escape(exhibit.text), facts=facts
    )


_CARD = """<section>
<div class="words"><h2>{title}</h2><p>{text}</p>
<p class="facts">{facts} &middot; <a href="{name}.glb" download>{name}.glb</a> plays in any glTF viewer</p></div>
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
section {{ display: grid; grid-template-columns: 1fr 420px; gap: 1rem 1.5rem; background: #fff; border-radius: 14px;
  padding: 1.5rem; margin: 0 0 1.5rem; box-shadow: 0 1px 4px #0001; }}
h2 {{ margin: 0 0 .4rem; font-size: 1.25rem; }} .facts {{ color: #6b6862; font-size: .9rem; }}
img {{ width: 100%; border-radius: 10px; display: block; }} .sheet {{ grid-column: 1 / -1; }}
a {{ color: #a4562a; }}
@media (max-width: 800px) {{ section {{ grid-template-columns: 1fr; }} }}
</style></head><body>
<header><h1>pliant</h1>
<p>Shapes that deform the way bodies do. Made by <code>pliant demo</code>, version {version}.</p></header>
{cards}
</body></html>
"""

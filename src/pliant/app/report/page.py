"""A web page in one file: pictures inside it, curves as SVG, no scripts, nothing fetched from elsewhere."""

from __future__ import annotations

import base64
import html
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from pliant import __version__
from pliant.core.terminal import visible
from pliant.io.output import staged


def write(path: str | os.PathLike[str], text: str) -> Path:
    """Write a page, whole or not at all; names in it show what they would otherwise hide or do (see `visible`)."""
    target = Path(path)
    with staged(target) as stage:
        stage.write_text("\n".join(map(visible, text.split("\n"))), encoding="utf-8")
    return target


def writer(report: Callable[..., str]) -> Callable[..., Path]:
    """A function that writes the page that `report` makes of a run."""

    def write_report(
        path: str | os.PathLike[str], run: Any, *, title: str = "", view: Any = "auto", up: Any = "auto"
    ) -> Path:
        """Write the report on a run as one HTML file."""
        return write(path, report(run, title=title, view=view, up=up))

    return write_report


def picture(image: Pillow.Image, caption: str) -> str:
    """A picture with its caption."""
    stored = io.BytesIO()
    image.convert("RGB").save(stored, format="PNG")
    data = base64.b64encode(stored.getvalue()).decode("ascii")
    text = html.escape(caption)
    tag = f'<img src="data:image/png;base64,{data}" width="{image.width}" height="{image.height}" alt="{text}">'
    return f"<figure>{tag}<figcaption>{text}</figcaption></figure>"


def chart(title: str, svg: str, caption: str) -> str:
    """A chart under its title, with a sentence on how to read it."""
    return f'<div class="chart"><h3>{html.escape(title)}</h3>{svg}<p class="note">{html.escape(caption)}</p></div>'


def facts(rows: Mapping[str, str]) -> str:
    """Names and values."""
    cells = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in rows.items())
    return f"<dl>{cells}</dl>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, flagged: Iterable[int] = ()) -> str:
    """A table of numbers; `flagged` rows stand out."""
    marked = set(flagged)
    top = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr{' class=bad' if k in marked else ''}>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for k, row in enumerate(rows)
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, *parts: str) -> str:
    """Parts under a heading."""
    return f"<section><h2>{html.escape(title)}</h2>{''.join(parts)}</section>"


def charts(title: str, parts: Iterable[str]) -> str:
    """Charts side by side under a heading."""
    return section(title, f'<div class="charts">{"".join(parts)}</div>')


def page(title: str, lead: Iterable[str], sections: Iterable[str]) -> str:
    """The whole page; `lead` are the sentences that say what was found."""
    paragraphs = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in lead)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        f'<header><h1>{html.escape(title)}</h1><div class="lead">{paragraphs}</div></header>\n'
        + "\n".join(sections)
        + f"\n<footer>Made by pliant {__version__}.</footer></body></html>\n"
    )


_STYLE = """
:root { color-scheme: light dark; --paper: #f4f3f1; --card: #fff; --ink: #2b2a28; --soft: #67645e; --line: #e2dfda;
  --ours: #b4531c; --theirs: #5b7795; --third: #5f8a3c;
  --fourth: #8e5a9f; --bad: #b3261e; --wash: #fbe9e7; }
@media (prefers-color-scheme: dark) { :root { --paper: #1b1a19; --card: #262523; --ink: #ece9e4; --soft: #a8a49c;
  --line: #3b3936; --ours: #f0955c; --theirs: #8fb0d3; --third: #a5cc80; --fourth: #cc9fdb; --bad: #ff8a80;
  --wash: #402724; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 2rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-weight: 650; margin: 0 0 .4rem; font-size: 1.7rem; } h2 { font-size: 1.2rem; margin: 0 0 .8rem; }
h3 { font-size: 1rem; margin: 0 0 .3rem; } .lead p { margin: .2rem 0; max-width: 96ch; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.25rem;
  margin: 1.25rem 0; }
figure { margin: 0; } figcaption, .note, footer { color: var(--soft); font-size: .9rem; margin: .4rem 0 0; }
img { max-width: 100%; height: auto; border-radius: 8px; display: block; }
figure + figure { margin-top: 1rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 1.25rem 1.5rem; }
svg { width: 100%; height: auto; display: block; overflow: visible; } svg text { fill: var(--soft); font-size: 12px; }
.grid { stroke: var(--line); } .ideal { stroke: var(--soft); stroke-dasharray: 5 4; }
.flag { stroke: var(--bad); stroke-width: 6; opacity: .25; }
path { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
path.ours { stroke: var(--ours); } path.theirs { stroke: var(--theirs); }
path.third { stroke: var(--third); } path.fourth { stroke: var(--fourth); }
circle.ours { fill: var(--ours); } circle.theirs { fill: var(--theirs); }
circle.third { fill: var(--third); } circle.fourth { fill: var(--fourth); }
circle { stroke: transparent; stroke-width: 9; } circle.hidden { fill-opacity: 0; } circle:hover { fill-opacity: 1; }
.legend { margin: .1rem 0 0; font-size: .9rem; } .key { margin-right: 1.2rem; }
.key::before { content: ""; display: inline-block; width: 18px; height: 3px; border-radius: 2px; margin-right: 6px;
  vertical-align: middle; background: var(--soft); }
.key.ours::before { background: var(--ours); } .key.theirs::before { background: var(--theirs); }
.key.third::before { background: var(--third); } .key.fourth::before { background: var(--fourth); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 0; }
.scroll + dl { margin-top: 1rem; font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { text-align: right; padding: .25rem .8rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } tr.bad { background: var(--wash); } tr.bad td { color: var(--bad); }
summary { cursor: pointer; color: var(--soft); margin: 0 0 .6rem; }
"""

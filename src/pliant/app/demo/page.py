"""The demo's page: a card for each exhibit, styled, and nothing from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

import pliant


def card(folder: Path, name: str, title: str, text: str, facts: str, found: Iterable[str]) -> str:
    """An exhibit's part of the page; its files in `folder` are called `name`."""
    sentences = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in found)
    facts = f"{facts}, {(folder / f'{name}.glb').stat().st_size / 1e6:.1f} MB"
    return _CARD.format(name=name, title=html.escape(title), text=html.escape(text), facts=facts, found=sentences)


def page(cards: Iterable[str]) -> str:
    """All of it."""
    return _PAGE.format(version=pliant.__version__, cards="\n".join(cards))


_CARD = """<section id="{name}">
<div class="words"><h2>{title}</h2><p class="look">{text}</p><ul>{found}</ul>
<p class="facts">{facts}</p></div>
<img class="film" src="{name}.gif" alt="{title}, moving" width="600" height="330">
<img class="sheet" src="{name}.png" alt="{title}, frame by frame">
<p class="again">Make it again: <code>pliant run {name}.toml -o {name}.glb --report {name}-report.html</code>
<span><a href="{name}.toml">scene</a> <a href="{name}.glb" download>clip</a>
<a href="{name}-report.html">report</a></span></p>
</section>"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>pliant: what it made just now</title>
<style>
:root {{ color-scheme: light; }}
body {{ margin: 0 auto; max-width: 1198px; padding: 2rem 1.5rem 4rem; background: #f4f3f1; color: #2b2a28;
  font: 16px/1.55 system-ui, sans-serif; }}
h1 {{ font-weight: 650; margin: 0; }} header p {{ margin: .3rem 0 2rem; color: #6b6862; }}
section {{ display: grid; grid-template-columns: 1fr 600px; gap: 1rem 1.5rem; background: #fff; border-radius: 14px;
  padding: 1.5rem; margin: 0 0 1.5rem; box-shadow: 0 1px 4px #0001; }}
h2 {{ margin: 0 0 .4rem; font-size: 1.3rem; line-height: 1.3; }} .look {{ margin: 0; font-size: 1.08rem; }}
ul {{ padding-left: 1.1rem; margin: .8rem 0; color: #4b4945; font-size: .93rem; }}
.facts {{ color: #6b6862; font-size: .88rem; margin: 0; }}
img {{ width: 100%; height: auto; border-radius: 10px; display: block; }} .sheet, .again {{ grid-column: 1 / -1; }}
.again {{ margin: 0; display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: baseline; font-size: .93rem; }}
.again span {{ margin-left: auto; display: flex; gap: .9rem; }}
a {{ color: #a4562a; }}
code {{ background: #f4f3f1; border-radius: 5px; padding: .15rem .5rem; user-select: all; overflow-wrap: anywhere; }}
@media (max-width: 1000px) {{ section {{ grid-template-columns: minmax(0, 1fr); }} }}
</style></head><body>
<header><h1>pliant</h1>
<p>Blend poses, transfer motions, simulate flesh on bones. Made by <code>pliant demo</code>, version {version}.
Each command makes its exhibit again, in this folder; a click selects it. The clips (GLB) play in any glTF
viewer.</p></header>
{cards}
</body></html>
"""

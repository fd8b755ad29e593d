"""The demo's page: a card for each exhibit, styled, and nothing from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterable

import pliant


def card(name: str, title: str, text: str, facts: str, found: Iterable[str]) -> str:
    """An exhibit's part of the page; its files are called `name`."""
    sentences = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in found)
    return _CARD.format(name=name, title=html.escape(title), text=html.escape(text), facts=facts, found=sentences)


def page(cards: Iterable[str]) -> str:
    """All of it."""
    return _PAGE.format(version=pliant.__version__, cards="\n".join(cards))


_CARD = """<section>
<div class="words"><h2>{title}</h2><p>{text}</p><ul>{found}</ul>
<p class="facts">{facts} &middot; <a href="{name}.glb" download>{name}.glb</a> plays in any glTF viewer &middot;
<a href="{name}-report.html">report</a></p>
<p>Make it again: <code>pliant run <a href="{name}.toml">{name}.toml</a> -o again.glb</code></p></div>
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
a {{ color: #a4562a; }} code {{ background: #f4f3f1; border-radius: 5px; padding: .15rem .4rem; }}
@media (max-width: 950px) {{ section {{ grid-template-columns: 1fr; }} }}
</style></head><body>
<header><h1>pliant</h1>
<p>Blend poses, transfer motions, simulate flesh on bones. Made by <code>pliant demo</code>, version {version}.
Each exhibit names the scene file that makes it again; run it in this folder.</p></header>
{cards}
</body></html>
"""

"""Pinocchio's skeleton output: rows ``index x y z parent``."""

from __future__ import annotations

from pliant.core.skeleton import Skeleton
from pliant.io.scan import scan_numbers
from pliant.io.source import Source
from pliant.io.tgf import parents_first


def read_skeleton(source: Source) -> Skeleton:
    """The embedded joints, named by their number."""
    table = scan_numbers(source, source.read())
    if not len(table) or table.sizes[0] != 5:
        width = int(table.sizes[0]) if len(table) else 0
        raise source.error(f"has rows of {width} numbers; a skeleton has five: index x y z parent")
    rows = table.block(source, 0, len(table), 5, "joints")
    parents = rows[:, 4].astype(int)
    wrong = (parents < -1) | (parents >= len(rows)) | (parents != rows[:, 4]) | (rows[:, 0] != range(len(rows)))
    if wrong.any():
        raise source.error(
            "a joint's index or parent is out of order", location=f"line {table.line[int(wrong.argmax())]}"
        )
    order, tree = parents_first(parents)
    if not len(order):
        raise source.error("its bones go round in a circle; expected a tree")
    return Skeleton.from_positions(rows[order, 1:4], tree, [f"joint{k}" for k in order])

"""Names in the field's words: which identifiers of the package are not (``python tests/vocabulary.py [folder]``)."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "src" / "pliant"
INSTEAD = {
    "wish": "target, constraint",
    "held": "fixed",
    "still": "static, fixed",
    "place": "position, point",
    "way": "path, geodesic, displacement",
    "turn": "rotation",
    "turned": "rotated",
    "told": "summary, message",
    "said": "given, document",
    "words": "text, message, tokens",
    "room": "sandbox, clearance, buffer",
    "flesh": "what it is",
    "touch": "contact",
    "touched": "contact",
}
"""What a part of a name must not be, and what to write instead."""
PLURALS = {f"{word}s": words for word, words in INSTEAD.items()} | {
    "wishes": "targets, constraints",
    "touches": "contacts",
}


def files(folder: str = "") -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@cache
def defined(path: Path) -> tuple[set[tuple[str, int]], list[str]]:
    """Names that a module defines, with their lines: functions, classes, parameters, variables, attributes; not what it
    only uses. And its classes, type aliases and constants.
    """
    tree, found, public = ast.parse(path.read_text(encoding="utf-8")), set(), []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add((node.name, node.lineno))
        elif isinstance(node, ast.arg):
            found.add((node.arg, node.lineno))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add((node.id, node.lineno))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add((node.attr, node.lineno))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            public.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            public += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return found, [name for name in public if name[0].isupper()]


def private_words(path: Path) -> list[str]:
    """Identifiers of a file that have a word of the project's own, with what to write instead."""
    wrong = []
    for name, line in sorted(defined(path)[0], key=lambda found: found[1]):
        for part in name.lower().strip("_").split("_"):
            instead = INSTEAD.get(part) or PLURALS.get(part)
            if instead:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {name} ({instead})")
    return wrong


def defined_twice() -> dict[str, list[str]]:
    """Classes, type aliases and constants of modules that are defined in more than one place."""
    places = defaultdict(list)
    for path in files():
        for name in defined(path)[1]:
            places[name].append(str(path.relative_to(ROOT)))
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else ""
    for path in files(folder):
        print(*private_words(path), sep="\n", end="\n" if private_words(path) else "")
    for name, where in defined_twice().items():
        if any(entry.startswith(folder) for entry in where):
            print(f"{name} is defined in {', '.join(where)}")

"""Makes Jupyter notebooks of the tutorials: ``python docs/notebooks.py [FOLDER]`` (default: notebooks/).

The pages are the only source. Their Python blocks become cells of code, all else cells of text.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parent / "tutorials"


def notebook(page: str) -> dict[str, Any]:
    """The notebook (format 4.5) of a page of Markdown."""
    cells: list[dict[str, Any]] = []
    for k, part in enumerate(re.split(r"```python\n(.*?)```\n?", page, flags=re.DOTALL)):
        text = part.strip("\n")
        if not text:
            continue
        cell: dict[str, Any] = {"id": f"cell-{len(cells)}", "metadata": {}}
        if k % 2:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        else:
            cell["cell_type"] = "markdown"
            text = re.sub(r"!\[.*?\]\(.*?\)\n?", "", text)  # pictures that the cells make themselves
        cell["source"] = text.splitlines(keepends=True)
        cells.append(cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def main(folder: Path) -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(TUTORIALS.glob("*.md")):
        if "```python" in (text := page.read_text(encoding="utf-8")):
            path = folder / f"{page.stem}.ipynb"
            path.write_text(json.dumps(notebook(text), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "notebooks"))

"""Reads a binary Gmsh file with meshio and prints points and cells as an NPZ: run as a separate process.

meshio believes the counts in a file, so that a damaged one may ask for all memory or all time. Arguments: the file, and
the folders to import from. Leaves with `REFUSED` and a line that says why if meshio objects to the file.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = sys.argv[2:]
from pliant.core.limits import REFUSED, Allowance

MESHIO_ALLOWANCE = Allowance(768 << 20, 60, 10, 1 << 20)


def main() -> int:
    """Read, and print."""
    path = sys.argv[1]
    MESHIO_ALLOWANCE.limit(os.path.getsize(path))
    import meshio
    import numpy as np

    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            mesh = meshio.gmsh.read(path)
    except (Exception, SystemExit) as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0].replace(os.path.dirname(path), "")
        print(f"meshio cannot read it ({problem:.80}); expected a .msh mesh", end="")
        return REFUSED
    arrays: dict[str, Any] = {f"{k} {block.type}": block.data for k, block in enumerate(mesh.cells)}
    buffer = io.BytesIO()
    np.savez(buffer, points=mesh.points, **arrays)
    sys.stdout.buffer.write(buffer.getbuffer())
    return 0


if __name__ == "__main__":
    sys.exit(main())

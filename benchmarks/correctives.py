"""Error of linear blending against the number of correctives, for the gallery's hand and a face.

    python benchmarks/correctives.py [--data FOLDER] [--error 0.002]

The error is the largest distance of a vertex to pliant's shape, over the diagonal, in all poses: each slider alone, all
that affect each other in pairs, and random ones that were not used to find the correctives.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import pliant

FACE = "faces/facecap/facecap.glb"
COUNTS = (0, 1, 2, 4, 8, 16, 32, 64, 128)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--error", type=float, default=0.002)
    options = parser.parse_args()
    rigs = {"hand, each slider alone": (pliant.gallery.hand(1000), 1), "hand, in pairs": (pliant.gallery.hand(1000), 2)}
    if (options.data / FACE).is_file():
        face = pliant.read_shapes(options.data / FACE)
        rigs |= {"face, each slider alone": (face, 1), "face, in pairs": (face, 2)}
    print(f"{'':26}{'sliders':>8}" + "".join(f"{count:>8}" for count in COUNTS) + f"{'needed':>8}{'unused':>8}{'s':>7}")
    for name, (shapes, together) in rigs.items():
        rig = pliant.Blendshapes(shapes)
        begun = time.process_time()
        found = rig.correctives(error=options.error, together=together)
        seconds = time.process_time() - begun
        errors = [f"{found.errors[c]:8.2%}" if c < len(found.errors) else " " * 8 for c in COUNTS]
        tail = f"{len(found.drivers):8}{found.checked:8.2%}{seconds:7.1f}"
        print(f"{name:26}{len(rig.sliders.names):8}" + "".join(errors) + tail, flush=True)
        assert np.isfinite(found.errors).all()


if __name__ == "__main__":
    main()

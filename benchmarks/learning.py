"""Stiffness learned from two true frames between two shapes of a sequence, and the frame between them, held out.

    python benchmarks/learning.py [--data FOLDER]

Errors are root mean square distances over the diagonal, of linear blending, of the rig, and with what was learned.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import pliant

SEQUENCES = (("Horse", 1), ("Horse", 6), ("Flamingo", 1), ("Parrot", 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    folder = parser.parse_args().data / "poses" / "morph-glb"
    if not folder.is_dir():
        print(f"skipped: there is no {folder}")
        return
    warnings.simplefilter("ignore", pliant.PliantWarning)
    print(f"{'':16}{'vertices':>9}{'linear':>9}{'rig':>9}{'learned':>9}{'s':>7}")
    for name, first in SEQUENCES:
        frames = pliant.read_shapes(folder / f"{name}.glb")
        base = frames.base.with_points(frames.points[first])
        shapes = pliant.Shapes(base, frames.points[[first, first + 4]], ("first", "last"))
        rig, true = pliant.Blendshapes(shapes), frames.points[first + 1 : first + 4]
        begun = time.process_time()
        found = rig.learn_stiffness(true[[0, 2]], [[0.25], [0.75]], iterations=15)
        seconds = time.process_time() - begun
        learned = pliant.Blendshapes(shapes, stiffness=found.factors)
        middle = [shapes.points.mean(axis=0), *(each.solve([0.5]).points for each in (rig, learned))]
        errors = [np.sqrt(((points - true[1]) ** 2).sum(axis=1).mean()) / rig.body.diagonal for points in middle]
        row = "".join(f"{error:9.2%}" for error in errors)
        print(f"{name + f' {first} to {first + 4}':16}{len(base.points):9}{row}{seconds:7.1f}", flush=True)


if __name__ == "__main__":
    main()

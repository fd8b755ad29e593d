"""Reads a USD file through and forgets it: run as a process of its own, to see whether the file can be read at all.

Arguments: the file, the bytes of memory it may take, and the folders to import from. Leaves with 0 if all values could
be read; a crash, an error or running out of memory is any other code. Imports nothing of pliant.
"""

from __future__ import annotations

import contextlib
import sys


def main() -> int:
    """Open, walk, read every value of every prim."""
    path, memory, *folders = sys.argv[1:]
    sys.path[:] = [*folders, *sys.path]
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from pxr import Tf, Usd

    try:
        stage = Usd.Stage.Open(path)
        for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate)):
            for attribute in prim.GetAttributes():
                attribute.Get()
                for time in attribute.GetTimeSamples():
                    attribute.Get(time)
            for relationship in prim.GetRelationships():
                relationship.GetTargets()
    except Tf.ErrorException:
        return 3
    except TypeError:  # a value that Python cannot hold, which the reader meets again and reports
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

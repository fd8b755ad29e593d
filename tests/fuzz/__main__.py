"""``make fuzz``: 20,000 seeded cases, a table by format, exit code 1 if any is a traceback, hang, crash or memory."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from fuzz.campaign import BAD, run, table

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="repeat this one alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="where files that end badly go")
    parser.add_argument("--no-bounds-check", action="store_true", help="kernels as users run them")
    options = parser.parse_args()
    numbers = range(options.cases) if options.case is None else range(options.case, options.case + 1)
    jobs = 1 if options.case is not None else options.jobs
    data = DATA if DATA.is_dir() else None
    done = run(
        numbers, seed=options.seed, data=data, jobs=jobs, bounds_check=not options.no_bounds_check, keep=options.keep
    )
    print(table(done))
    return int(any(case.outcome in BAD for case in done))


if __name__ == "__main__":
    sys.exit(main())

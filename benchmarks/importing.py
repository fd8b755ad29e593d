"""What ``import pliant`` costs in a fresh Python, in processor seconds, best of five; the promise is below 0.5 s."""

from __future__ import annotations

import subprocess
import sys

STATEMENTS = ("import numpy", "import pliant", "from pliant import Mesh", "import pliant.io")
TIMER = "import time; begun = time.process_time(); {}; print(time.process_time() - begun)"


def seconds(statement: str) -> float:
    """Of the quickest of five fresh processes."""
    command = [sys.executable, "-c", TIMER.format(statement)]
    return min(float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(5))


def main() -> None:
    for statement in STATEMENTS:
        print(f"{statement:26} {seconds(statement):6.3f} s")


if __name__ == "__main__":
    main()

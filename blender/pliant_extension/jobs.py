"""A command run in a process beside Blender: the window never waits, and Esc ends it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PROGRESS = re.compile(r"progress (\d+)/(\d+)")
PLACE = re.compile(r".*scene\.toml, (line \d+, )?")
"""Where in a scene something is wrong, of which only its writer knows."""
GRACE = 5.0
"""Seconds in which a stopped process may clean up."""


class Job:
    """``pliant run scene.toml -o clip.pc2``, or another command, in a process of its own."""

    def __init__(
        self, words: Sequence[str], output: Path, threads: int = 0, finish: Callable[[Path], Any] | None = None
    ) -> None:
        """finish: makes what is shown of the output, in a thread; it must not call Blender."""
        self.output, self._finish = output, finish
        self.made: Any = None
        self.done, self.total = 0, 0
        self.messages: list[str] = []
        environment = {**os.environ, "PLIANT_PROGRESS": "lines", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        if threads:
            environment |= {"PLIANT_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pliant", *words, "-o", str(output), "--quiet"],
            env=environment, cwd=output.parent, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := PROGRESS.match(line):
                self.done, self.total = map(int, found.groups())
            elif line.strip():
                self.messages.append(line.strip().removeprefix("pliant: "))
        self._process.wait()
        if self._finish is not None and self.succeeded:
            try:
                self.made = self._finish(self.output)
            except Exception as error:  # in a thread nobody else would hear of it
                self.messages.append(str(error) or type(error).__name__)
                self.output.unlink(missing_ok=True)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._reader.is_alive()

    @property
    def state(self) -> str:
        """For the status bar."""
        return (
            f"pliant: frame {self.done} of {self.total} (Esc cancels)"
            if self.total
            else "pliant: preparing (Esc cancels)"
        )

    def wait(self) -> None:
        """Until it ends."""
        self._reader.join()

    def stop(self, then: Callable[[], Any] = lambda: None) -> None:
        """End it without waiting: a kernel may run on for seconds. A thread removes what it wrote and calls `then`."""
        self._process.terminate()
        threading.Thread(target=self._stopped, args=(then,)).start()

    def _stopped(self, then: Callable[[], Any]) -> None:
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self.output.unlink(missing_ok=True)
        then()

    @property
    def succeeded(self) -> bool:
        """Whether there is a result. Of one that did not converge everywhere `problem` tells."""
        return self._process.returncode in (0, 1) and self.output.exists() and self.output.stat().st_size > 0

    @property
    def problem(self) -> str:
        """The last of what it complained of, in one sentence; empty if all went well."""
        if self._process.returncode == 0 and self.succeeded:
            return ""
        told = [PLACE.sub("", line) for line in self.messages if not line.startswith("note: ")]
        return told[-1] if told else f"pliant ended with code {self._process.returncode}"

    @property
    def notes(self) -> list[str]:
        """What it noted beside."""
        return [line.removeprefix("note: ") for line in self.messages if line.startswith("note: ")]

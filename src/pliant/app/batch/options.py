"""The options of batches, each declared once: a key of the jobs' file and a flag, which counts instead."""

from __future__ import annotations

from dataclasses import dataclass

from pliant.core.frame_ranges import FrameRanges
from pliant.core.options import Options, Text, Whole, option

WHERE, HOW = "where it is computed", "how the work is divided"


@dataclass(frozen=True)
class BatchOptions(Options):
    """How a batch is divided, and where it is computed."""

    frames: str | None = option(
        None, FrameRanges(), "which frames to make, such as 1-100:2; jobs may have their own", default_text="all",
        group=HOW,
    )  # fmt: skip
    chunk: int = option(10, Whole(1), "most frames in a chunk, which one worker solves in one go", group=HOW)
    retries: int = option(2, Whole(0, 100), "how often a chunk that fails is tried again", group=HOW)
    work: str | None = option(
        None, Text("the name of a folder"), "folder for chunks, prepared rigs, the log and the report, seen by all "
        "workers", default_text="as the jobs are called, with .batch", group=HOW,
    )  # fmt: skip
    workers: int | None = option(
        None, Whole(0, 10_000), "processes on this computer, or those asked of --cluster; 0: in this one, without Dask",
        default_text="one a core", group=WHERE,
    )  # fmt: skip
    scheduler: str | None = option(
        None, Text("an address or a file"), "a Dask scheduler that is there already: tcp://host:8786, or its file",
        default_text="that of Dask's configuration, or a cluster on this computer", group=WHERE,
    )  # fmt: skip
    cluster: str | None = option(
        None, Text("module:Class"), "a cluster of Dask's to start, with its configuration: dask_jobqueue:SLURMCluster",
        group=WHERE,
    )  # fmt: skip

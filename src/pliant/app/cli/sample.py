"""``pliant sample``: data sets of solved poses for learned deformers."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

from pliant.app.batch.options import WHERE, BatchOptions
from pliant.app.cli.arguments import add_command
from pliant.app.cli.flags import ArgumentGroups, add_option
from pliant.core.errors import FileError
from pliant.core.progress import progress
from pliant.core.terminal import complain, say, say_json


def add_commands(commands: Any) -> None:
    """Add the command."""
    from pliant.app.batch.data_set import SampleOptions

    parser = add_command(commands, _sample, "sample", "a data set of a rig's poses, for learned deformers")
    parser.add_argument("rig", metavar="RIG", help="a rig with morph targets, or a mesh with its skeleton")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="a Zarr group: .zarr")
    groups = ArgumentGroups(parser)
    groups.add_options(SampleOptions)
    for about in BatchOptions.all(group=WHERE):
        add_option(groups[WHERE], about)
    parser.add_argument("--resume", action="store_true", help="go on with a set that is there")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors and notes")


def _sample(options: argparse.Namespace) -> int:
    """Solve poses of a rig that cover the range of its sliders or joints evenly (a Sobol sequence), or follow a motion,
    and store them in shards that PyTorch and others read with zarr. Exit code 1 if some poses did not converge; the
    array "converged" says which.
    """
    from pliant.app.batch.cluster import connected
    from pliant.app.batch.data_set import DataSet, SampleOptions

    if Path(options.output).suffix.lower() != ".zarr":
        raise FileError(options.output, "is no name of a data set; expected one that ends in .zarr")
    given = {one.name: value for one in SampleOptions.all() if (value := getattr(options, one.dest)) is not None}
    if given.get("motion"):
        given["motion"] = os.path.abspath(given["motion"])
    where = {
        one.name: value for one in BatchOptions.all(group=WHERE) if (value := getattr(options, one.dest)) is not None
    }
    data = DataSet(os.path.abspath(options.rig), Path(os.path.abspath(options.output)), SampleOptions(**given))
    begun = time.perf_counter()
    with progress("sampling", quiet=options.quiet or options.json) as show, connected(BatchOptions(**where)) as workers:
        records = data.run(workers, show, resume=options.resume)
    facts = {
        "output": str(data.output),
        "poses": data.options.poses,
        "made": sum(record["poses"] for record in records),
        "unconverged": sum(record["unconverged"] for record in records),
        "seconds": time.perf_counter() - begun,
        "processor_seconds": sum(record["processor_seconds"] for record in records),
    }
    for note in dict.fromkeys(note for record in records for note in record["notes"]):
        complain(f"pliant: note: {note}")
    if options.json:
        say_json(facts)
    elif not options.quiet:
        say(f"{facts['made']} of {facts['poses']} poses made in {facts['seconds']:.1f} s -> {options.output}")
    if facts["unconverged"]:
        complain(f'pliant: {facts["unconverged"]} poses did not converge; "converged" says which')
    return 1 if facts["unconverged"] else 0

"""A hundred seeded cases of the campaign that ``make fuzz`` runs at length, and whether it would see a defect."""

import os
import sys

import pytest

import pliant
from conftest import DATA
from fuzz.campaign import BAD, Case, Worker, cases, run
from fuzz.corpus import build
from fuzz.worker import examine

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers are limited by POSIX resource limits")
pytest.importorskip("pxr", reason="USD is an extra, and one of the formats")


@pytest.mark.slow
def test_mutated_files_are_read_or_refused():
    done = run(range(1000), seed=1, data=DATA if DATA.is_dir() else None, jobs=1, bounds_check=False)
    assert [(case.number, case.seed.name, case.outcome, case.detail) for case in done if case.outcome in BAD] == []
    assert len({case.seed.row for case in done}) >= 20
    assert sum(case.outcome == "clean" for case in done) >= 50  # mutations do not all end at the first line


def test_a_case_depends_on_its_number_alone(tmp_path):
    seeds = build(tmp_path / "corpus", None)
    whole = {case.number: case.data for case in cases(seeds, 5, range(40))}
    assert all(whole[case.number] == case.data for case in cases(seeds, 5, range(20, 40)))
    assert sum(whole[case.number] != case.data for case in cases(seeds, 6, range(40))) > 30


@pytest.fixture
def case(tmp_path):
    seed = build(tmp_path / "corpus", None)[".obj"][0]
    return Case(0, seed, seed.data, "")


@pytest.mark.parametrize(
    ("program", "outcome", "patience"),
    [
        ("import sys, time; sys.stdin.readline(); time.sleep(60)", "hang", 0.3),
        ("import os; input(); os.abort()", "crash", 60),
    ],
)
def test_a_worker_that_does_not_answer(tmp_path, case, program, outcome, patience):
    worker = Worker(tmp_path / "0", tmp_path / "corpus", False, (sys.executable, "-c", program))
    worker.examine(case, patience=patience)
    worker.stop()
    assert case.outcome == outcome


OUT_OF_RANGE = """
import numpy as np
from pliant.native import kernels
line = np.frombuffer(input().encode(), np.uint8)
kernels.obj_count_lines(line, np.zeros(5, np.int64))  # of which it is the sixth kind
print('["clean", 0, ""]', flush=True)
"""


@pytest.mark.slow  # it builds the library that checks
def test_an_index_out_of_range_is_a_crash(tmp_path, case):
    worker = Worker(tmp_path / "0", tmp_path / "corpus", True, (sys.executable, "-c", OUT_OF_RANGE))
    worker.examine(case, patience=300)
    worker.stop()
    assert (case.outcome, case.detail) == ("crash", "the process ended with -6")


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [(ValueError("oops"), "traceback"), (MemoryError(), "memory"), (pliant.FileError("x", "is bad"), "refused"),
     (pliant.FileError("x", "\x1b[31m"), "refused"), (None, "clean")],
)  # fmt: skip
def test_outcomes_are_told_apart(tmp_path, case, monkeypatch, fault, outcome):
    def read(*_, **__):
        raise fault

    if fault is not None:
        monkeypatch.setattr("pliant.app.inspection.inspect", read)
    path = tmp_path / "case.obj"
    path.write_bytes(case.data)
    assert examine(path, "model", "")[0] == outcome

"""Batches in one process: what jobs are made of a table, how they are divided, kept, tried again and told of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.app.batch import data_set, tasks
from pliant.app.batch.dispatch import tasks_of
from pliant.app.batch.jobs import read_batch
from pliant.app.batch.store import Store, job_key
from pliant.app.scene.examples import example_scenes
from pliant.app.scene.writing import write_scene
from pliant.core import rotations
from pliant.core.errors import PliantError
from pliant.engines.simulate import simulation

BAR = {
    "engine": "blend",
    "frames": 7,
    "shapes": {"gallery": "bar", "vertices": 500},
    "springs": {"interior": "none"},
}
FLESH = {
    "engine": "simulate",
    "nodes": 60,
    "shape": {"gallery": "dinosaur", "vertices": 500},
    "skeleton": {"gallery": "dinosaur"},
    "motion": {"gallery": "dinosaur_walk", "last": 5},
}
Command = Callable[..., tuple[int, str, str]]


def jobs_file(folder: Path, *jobs: dict[str, Any], **options: Any) -> str:
    file = folder / "jobs.toml"
    write_scene(file, {"output": "out/{name}.npz", **options, "jobs": list(jobs)})
    return str(file)


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "out").iterdir())}


def solved_frames(folder: Path) -> list[str]:
    """The chunks that the log tells of."""
    lines = (folder / "jobs.batch" / "log.jsonl").read_text().splitlines()
    return [entry["frames"] for entry in map(json.loads, lines) if entry["event"] == "solve_chunk"]


# Jobs


def test_sweeps_and_inputs_are_jobs_of_every_combination(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("1\n0.5\n")
    write_scene(tmp_path / "bar.toml", BAR | {"output": {"file": "unused.glb"}})
    file = jobs_file(
        tmp_path,
        {
            "scene": "bar.toml",
            "set": {"fps": 12},
            "sweep": {"springs.accuracy": [1e-3, 1e-4]},
            "inputs": {"weights": "*.csv"},
            "frames": "1-2",
        },
        {"scene": BAR, "name": "plain"},
    )
    batch = read_batch(file, chunk=3)
    assert [job.name for job in batch.jobs] == [
        "bar_a_accuracy=0.001",
        "bar_a_accuracy=0.0001",
        "bar_b_accuracy=0.001",
        "bar_b_accuracy=0.0001",
        "plain",
    ]
    document = batch.jobs[2].document
    assert document["weights"] == str(tmp_path / "b.csv")
    assert document["springs"] == {"interior": "none", "accuracy": 1e-3}
    assert document["fps"] == 12
    assert "output" not in document
    assert [job.frames for job in batch.jobs] == ["1-2"] * 4 + [None]
    assert batch.jobs[-1].output == str(tmp_path / "out" / "plain.npz")
    assert batch.options.chunk == 3
    assert len({job_key(job) for job in batch.jobs}) == 5


def test_a_key_of_a_job_follows_the_content_of_files_not_where_they_are(tmp_path: Path) -> None:
    keys = []
    for folder, text in (("one", "1\n0.5\n"), ("two", "1\n0.5\n"), ("three", "1\n0.6\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w.csv").write_text(text)
        file = jobs_file(tmp_path / folder, {"scene": BAR, "set": {"weights": "w.csv"}})
        keys.append(job_key(read_batch(file).jobs[0]))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("job", "options", "problem"),
    [
        ({"scene": "none.toml"}, {}, r"jobs\[0\].scene: .*none.toml"),
        ({"scene": BAR, "sweep": {"fps": 3}}, {}, r"sweep.fps: is 3; expected a list"),
        ({"scene": BAR, "inputs": {"weights": "*.csv"}}, {}, r"no file is called so"),
        ({"scene": BAR, "sweep": {"fps": [12, 24]}}, {"output": "a.glb"}, "would both write"),
        ({"scene": BAR, "set": {"frames.x": 3}}, {}, '"frames" is 7, which has no keys'),
        ({"scene": BAR, "frames": "5-1"}, {}, "has the range 5-1"),
        ({"scene": BAR}, {"output": "{job}.glb"}, "expected {name} and no other braces"),
        ({"scene": BAR}, {"chunk": 0}, "chunk: is 0; expected a whole number from 1"),
        ({"scene": BAR, "sweeps": {}}, {}, 'did you mean "sweep"'),
        ({"scene": {"engine": "blen"}}, {}, 'did you mean "blend"'),
    ],
)
def test_what_is_wrong_with_a_table_is_one_line(
    tmp_path: Path, command_line: Command, job: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    code, out, err = command_line("batch", jobs_file(tmp_path, job, **options), "--workers", "0")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(problem, err), err
    assert not (tmp_path / "out").exists()


# Solving


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What ``pliant run`` writes for the scenes above."""
    folder = tmp_path_factory.mktemp("alone")
    for name, scene in (("bar", BAR), ("flesh", FLESH)):
        write_scene(folder / f"{name}.toml", scene)
        with pytest.raises(SystemExit):
            pliant.app.cli.main(["run", str(folder / f"{name}.toml"), "-o", str(folder / f"{name}.npz"), "--quiet"])
    return {path.name: path.read_bytes() for path in folder.glob("*.npz")}


@pytest.mark.parametrize("chunk", ["1", "3", pytest.param("100", marks=pytest.mark.slow)])
def test_any_chunks_give_the_bytes_of_a_run(
    tmp_path: Path, command_line: Command, alone: dict[str, bytes], chunk: str
) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": FLESH, "name": "flesh"})
    code, out, _ = command_line("batch", file, "--workers", "0", "--chunk", chunk)
    assert code == 0, out
    assert written(tmp_path) == alone
    assert "2 jobs, 13 frames" in out
    assert not list((tmp_path / "jobs.batch" / "frames").glob("*/*"))


def test_a_combination_that_is_animated_by_hand_counts_in_every_chunk(tmp_path: Path, command_line: Command) -> None:
    """Its column is 0 in the first frames, which does not mean there that the sliders drive it."""
    bar = pliant.gallery.bar(500)
    pliant.write(tmp_path / "rig.npz", pliant.Shapes(bar.base, bar.points[:4], ("base", "jaw", "smile", "jaw_smile")))
    weights = [[0, 0.6, 0.6, 0], [0, 0.6, 0.7, 0], [0, 0.6, 0.6, 0.5]]
    scene = {"engine": "blend", "shapes": {"file": "rig.npz"}, "weights": weights, "springs": {"interior": "none"}}
    file = jobs_file(tmp_path, {"scene": scene, "name": "bar"})
    made = []
    for chunk in ("1", "3"):
        assert command_line("batch", file, "--workers", "0", "--chunk", chunk, "--quiet")[0] == 0
        made.append(written(tmp_path))
    assert made[0] == made[1]


def test_chosen_frames_are_those_of_the_whole(tmp_path: Path, command_line: Command) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": FLESH, "name": "flesh"})
    command_line("batch", file, "--workers", "0", "--quiet")
    whole = {name: pliant.read_animation(tmp_path / "out" / name) for name in ("bar.npz", "flesh.npz")}
    code, _, err = command_line("batch", file, "--workers", "0", "--frames", "2-6:2", "--chunk", "2", "--quiet")
    assert (code, err) == (0, "")
    for name, clip in whole.items():
        part = pliant.read_animation(tmp_path / "out" / name)
        np.testing.assert_array_equal(part.points, clip.points[1:6:2])
        assert part.fps == clip.fps / 2
    code, _, err = command_line("batch", file, "--workers", "0", "--frames", "5-9")
    assert code == 2
    assert "names frame 9; the clip has 7" in err


def test_going_on_solves_only_what_is_missing(tmp_path: Path, command_line: Command, monkeypatch: Any) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"})
    real, calls = tasks._solve_chunk, []

    def broken(task: Any, frames: range) -> Any:
        calls.append(frames)
        if 4 in frames:
            raise KeyboardInterrupt
        return real(task, frames)

    monkeypatch.setattr(tasks, "_solve_chunk", broken)
    code, _, err = command_line("batch", file, "--workers", "0", "--chunk", "2")
    assert code == 130
    assert "what was solved is kept; go on with --resume" in err
    assert not (tmp_path / "out").exists()
    assert solved_frames(tmp_path) == ["1-2", "3-4"]
    monkeypatch.setattr(tasks, "_solve_chunk", real)
    code, out, _ = command_line("batch", file, "--workers", "0", "--chunk", "3", "--resume")
    assert code == 0
    assert solved_frames(tmp_path)[2:] == ["5-7"]
    first = written(tmp_path)
    code, out, _ = command_line("batch", file, "--workers", "0", "--resume")
    assert (code, "kept" in out) == (0, True)
    assert len(solved_frames(tmp_path)) == 3
    (tmp_path / "out" / "bar.npz").unlink()
    command_line("batch", file, "--workers", "0", "--resume")
    assert written(tmp_path) == first
    write_scene(
        tmp_path / "jobs.toml", {"output": "out/{name}.npz", "jobs": [{"scene": BAR | {"frames": 6}, "name": "bar"}]}
    )
    command_line("batch", file, "--workers", "0", "--resume")
    assert len(pliant.read_animation(tmp_path / "out" / "bar.npz")) == 6


def test_a_simulation_that_stops_ends_there_whatever_the_chunks(
    tmp_path: Path, command_line: Command, monkeypatch: Any
) -> None:
    real = simulation.Player.step

    def failing(player: Any, state: Any, k: int) -> Any:
        found = real(player, state, k)
        return replace(found, problem="it flew apart") if k >= 7 else found

    monkeypatch.setattr(simulation.Player, "step", failing)
    file, made = jobs_file(tmp_path, {"scene": FLESH, "name": "flesh"}), []
    for chunk in ("1", "3", "100"):
        code, _, err = command_line("batch", file, "--workers", "0", "--chunk", chunk)
        assert code == 1, err
        assert "it flew apart" in err
        made.append(written(tmp_path))
    assert made[0] == made[1] == made[2]
    assert len(pliant.read_animation(tmp_path / "out" / "flesh.npz")) == 3  # of three steps each
    monkeypatch.setattr(simulation.Player, "step", real)
    assert command_line("batch", file, "--workers", "0", "--quiet")[0] == 0
    assert len(pliant.read_animation(tmp_path / "out" / "flesh.npz")) == 6


def test_shots_of_a_motion_are_solved_apart(tmp_path: Path, command_line: Command) -> None:
    """Each begins by itself; the clip is that of a run."""
    walk = pliant.gallery.dinosaur_walk(32)
    cut = np.r_[0:5, 16:21]
    turns = walk.rotations[cut].copy()
    turns[5:, 0] = rotations.multiply(turns[5:, 0], rotations.from_axis_angle([0, 1, 0], 2.0))
    turns[5:, 1] = rotations.multiply(turns[5:, 1], rotations.from_axis_angle([1, 0, 0], 1.0))
    pliant.write(tmp_path / "cut.npz", replace(walk, rotations=turns, translations=walk.translations[cut]))
    scene = FLESH | {"motion": {"file": "cut.npz"}}
    write_scene(tmp_path / "flesh.toml", scene)
    (tmp_path / "alone").mkdir()
    assert command_line("run", str(tmp_path / "flesh.toml"), "-o", str(tmp_path / "alone" / "flesh.npz"))[0] == 0
    file = jobs_file(tmp_path, {"scene": "flesh.toml", "name": "flesh"})
    assert command_line("batch", file, "--workers", "0", "--chunk", "3")[0] == 0
    assert (tmp_path / "out" / "flesh.npz").read_bytes() == (tmp_path / "alone" / "flesh.npz").read_bytes()
    plan = json.loads(next((tmp_path / "jobs.batch" / "jobs").iterdir()).read_text())
    assert plan["shots"] == [0, 5]
    assert sorted(solved_frames(tmp_path)) == ["1-3", "4-5", "6-8", "9-10"]
    assert solved_frames(tmp_path)[:2] == ["1-3", "6-8"]  # given out together


def test_a_damaged_chunk_is_solved_again(tmp_path: Path, command_line: Command, alone: dict[str, bytes]) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"})
    for part in ("1-3", "4-7"):
        assert command_line("batch", file, "--job", "bar", "--part", part)[0] == 0
    for path in (tmp_path / "jobs.batch" / "frames").rglob("1-3"):
        path.write_bytes(path.read_bytes()[:-9])
    assert command_line("batch", file, "--workers", "0", "--resume")[0] == 0
    assert written(tmp_path)["bar.npz"] == alone["bar.npz"]


def test_what_fails_is_tried_again_and_then_given_up(tmp_path: Path, command_line: Command, monkeypatch: Any) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": BAR | {"fps": 5}, "name": "other"}, retries=2)
    real, failures = tasks._solve_chunk, {"bar": 2, "other": 10}

    def failing(task: Any, frames: range) -> Any:
        failures[task.job.name] -= 1
        if failures[task.job.name] >= 0:
            raise OSError(28, "No space left on device")
        return real(task, frames)

    monkeypatch.setattr(tasks, "_solve_chunk", failing)
    code, out, _ = command_line("batch", file, "--workers", "0", "--json")
    bar, other = json.loads(out)["jobs"]
    assert code == json.loads(out)["exit_code"] == 2
    assert (bar["retries"], bar["error"], bar["frames"]) == (2, "", 7)
    assert (other["retries"], other["frames"], other["written"]) == (2, 0, [])
    assert other["error"] == "OSError: [Errno 28] No space left on device"
    assert list(written(tmp_path)) == ["bar.npz"]
    page = (tmp_path / "jobs.batch" / "report.html").read_text()
    assert "1 failed" in page
    assert "No space left" in page


def test_a_scene_that_is_wrong_fails_alone_and_at_once(tmp_path: Path, command_line: Command) -> None:
    file = jobs_file(tmp_path, {"scene": BAR | {"anchors": 1}, "name": "wrong"}, {"scene": BAR, "name": "bar"})
    code, out, err = command_line("batch", file, "--workers", "0")
    assert code == 2
    assert err.count('did you mean "anchor"?') == 1
    assert list(written(tmp_path)) == ["bar.npz"]
    assert "2 jobs, 7 frames, 1 failed" in out


def test_what_does_not_converge_is_written_and_told(tmp_path: Path, command_line: Command) -> None:
    scene = BAR | {"springs": {"interior": "none", "iterations": 1, "accuracy": 1e-9}}
    code, out, err = command_line("batch", jobs_file(tmp_path, {"scene": scene, "name": "bar"}), "--workers", "0")
    assert code == 1
    assert "5 of 7 frames did not converge" in err
    assert "1 cannot be vouched for" in out
    assert list(written(tmp_path)) == ["bar.npz"]


def test_an_engine_that_solves_all_in_one_go_has_no_frames_to_choose(tmp_path: Path, command_line: Command) -> None:
    scene = {"engine": "transfer", "target": {"gallery": "tentacle"}}
    code, _, err = command_line("batch", jobs_file(tmp_path, {"scene": scene, "frames": "1-2"}))
    assert code == 2
    assert 'jobs[0].frames: the engine "transfer" makes all frames in one go; leave them out' in err


@pytest.mark.slow
def test_an_engine_that_solves_all_in_one_go(tmp_path: Path, command_line: Command) -> None:
    (tmp_path / "walks.toml").write_text(example_scenes()["two_walks.toml"])
    file = jobs_file(tmp_path, {"scene": "walks.toml"}, report="out/{name}.html")
    assert "in one go" in command_line("batch", file, "--dry-run")[1]
    code, out, _ = command_line("batch", file, "--workers", "0")
    assert code == 0, out
    command_line("run", str(tmp_path / "walks.toml"), "-o", str(tmp_path / "run.npz"))
    assert list(written(tmp_path)) == ["walks.html", "walks.npz"]
    whole, part = (pliant.read_animation(path) for path in (tmp_path / "run.npz", tmp_path / "out" / "walks.npz"))
    assert np.abs(whole.points - part.points).max() < 1e-6 * whole.shape.diagonal  # threads of linear algebra differ


def test_what_many_frames_start_from_is_solved_once(tmp_path: Path) -> None:
    scene = {**BAR, "frames": 60, "shapes": {"gallery": "bar", "vertices": 500, "names": ["straight", "bent 90"]}}
    task = tasks_of(read_batch(jobs_file(tmp_path, {"scene": scene, "name": "bar"})))[0]
    assert tasks.prepare(task)["plan"]["division"] == "any"
    read, solver = task.store.prepared(task.key)
    knots = set(solver.statics.correctives._knots)
    assert len(knots) == 7
    apart, _ = task.engine.part("frames").solve_frames(read, solver, [3, 50], None)
    assert set(solver.statics.correctives._knots) == knots
    anew = read.prepare()
    assert not anew.statics.correctives._knots
    for pose, other in zip(apart, read.poses(anew, frames=[3, 50]), strict=True):
        assert np.array_equal(pose.points, other.points)


def test_other_versions_are_refused(tmp_path: Path) -> None:
    batch = read_batch(jobs_file(tmp_path, {"scene": BAR, "name": "bar"}))
    task = tasks_of(batch)[0]
    other = tasks.Task(task.job, task.key, task.work, task.versions | {"pliant": "0.0.1"})
    with pytest.raises(PliantError, match=r"has pliant .*, not 0\.0\.1: frames would differ; install the same there"):
        tasks.prepare(other)


def test_a_dry_run_does_nothing(tmp_path: Path, command_line: Command) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": FLESH, "name": "flesh"})
    code, out, err = command_line("batch", file, "--dry-run", "--chunk", "4")
    assert (code, err) == (0, "")
    assert "bar: blend, 7 frames, 2 chunks in any order" in out
    assert "flesh: simulate, 6 frames, 2 chunks one after the other" in out
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.toml"]


def test_a_dry_run_names_the_job_that_is_wrong(tmp_path: Path, command_line: Command) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": BAR | {"frames": 4}, "name": "short"})
    code, out, err = command_line("batch", file, "--dry-run", "--frames", "1-6:2")
    assert (code, out) == (2, "")
    assert 'short: "1-6:2" names frame 6; the clip has 4' in err


# Other farms


def test_shell_lines_make_the_clip(tmp_path: Path, command_line: Command, alone: dict[str, bytes]) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": FLESH, "name": "flesh"}, chunk=4)
    _, out, _ = command_line("batch", file, "--emit", "shell")
    lines = [line.split() for line in out.splitlines() if line.startswith("pliant ")]
    assert [line[line.index("--part") + 1] for line in lines if "--part" in line] == ["1-4", "5-7"]
    for line in lines:
        assert command_line(*line[1:], "--quiet")[::2] == (0, "")
    assert written(tmp_path) == alone
    assert solved_frames(tmp_path) == ["1-4", "5-6"]  # of the flesh: the bar's were there


def test_an_open_job_description_is_valid(tmp_path: Path, command_line: Command) -> None:
    model = pytest.importorskip("openjd.model")
    many = BAR | {"frames": 2500}
    file = jobs_file(tmp_path, {"scene": many, "name": "bar"}, {"scene": FLESH, "name": "flesh"}, chunk=1)
    _, out, _ = command_line("batch", file, "--emit", "openjd")
    template = model.decode_job_template(template=json.loads(out))
    names = [step.name for step in template.steps]
    assert names == ["bar frames 1", "bar frames 2", "bar frames 3", "bar", "flesh"]
    job = model.create_job(job_template=template, job_parameter_values={})
    counts = [len(model.StepParameterSpaceIterator(space=step.parameterSpace)) for step in job.steps[:3]]
    assert counts == [1024, 1024, 452]
    assert [each.dependsOn for each in job.steps[3].dependencies] == names[:3]


def test_a_template_has_no_more_steps_than_it_may(tmp_path: Path, command_line: Command) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "sweep": {"fps": list(range(1, 102))}})
    code, _, err = command_line("batch", file, "--emit", "openjd")
    assert code == 2
    assert "makes 101 steps; a template has 100 at most" in err


# Store


def test_the_oldest_solvers_are_removed(tmp_path: Path, monkeypatch: Any) -> None:
    store = Store(tmp_path)
    for k in range(4):
        store.keep_prepared(f"key{k}", bytes(1000))
        os.utime(tmp_path / "prepared" / f"key{k}", (k, k))
    monkeypatch.setattr("pliant.app.batch.store.MOST_PREPARED", 2500)
    store.trim_prepared()
    assert [store.prepared(f"key{k}") is None for k in range(4)] == [True, True, False, False]


def test_a_batch_without_dask_says_what_it_needs(tmp_path: Path) -> None:
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"})
    code = "import sys; sys.modules['distributed'] = None; import pliant.app.cli as c; c.main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, "batch", file, "--workers", "2"], capture_output=True, text=True)
    assert done.returncode == 2
    assert 'needs the extra "batch": pip install "pliant[batch]"' in done.stderr


# Data sets


@pytest.fixture
def rig(tmp_path: Path) -> str:
    bar = pliant.gallery.bar(500)
    pliant.write(tmp_path / "rig.npz", pliant.Shapes(bar.base, bar.points[:3], ("straight", "bent", "twisted")))
    return str(tmp_path / "rig.npz")


def arrays(path: Path) -> dict[str, Any]:
    group = pytest.importorskip("zarr").open_group(path, mode="r")
    return {name: array[:] for name, array in group.arrays()}


def test_a_data_set_holds_what_the_rig_gives(tmp_path: Path, command_line: Command, rig: str) -> None:
    target = tmp_path / "set.zarr"
    command = ("sample", rig, "--poses", "11", "--shard", "4", "--workers", "0", "--seed", "3")
    assert command_line(*command, "-o", str(target), "--quiet")[::2] == (0, "")
    found = arrays(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rig.npz", "set.zarr"]
    assert found["points"].shape == (11, len(found["rest"]), 3)
    assert found["converged"].all()
    solver = pliant.Blendshapes(pliant.read_shapes(rig))
    for k in (0, 10):
        pose = solver.solve(found["weights"][k])
        assert np.abs(pose.points - found["points"][k]).max() < 1e-4 * pose.shape.diagonal
    assert command_line(*command[:3], "11", *command[4:], "-o", str(target))[0] == 2  # it is there

    for path in ("points/c/1/0/0", "weights/c/1/0"):  # as if it had been stopped
        (target / path).unlink()
    code, out, _ = command_line(*command, "-o", str(target), "--resume")
    assert (code, out.split(" poses")[0]) == (0, "4 of 11")
    for name, values in arrays(target).items():
        np.testing.assert_array_equal(values, found[name])
    code, _, err = command_line(*command, "--degrees", "3", "-o", str(target), "--resume")
    assert (code, "is of degrees 30.0 instead of 3.0;" in err) == (2, True)

    other = tmp_path / "other.zarr"  # larger shards, more poses: it begins with the same
    command_line(*command[:3], "16", "--shard", "16", "--workers", "0", "--seed", "3", "-o", str(other))
    for name in ("weights", "points", "split"):
        np.testing.assert_array_equal(arrays(other)[name][:11], found[name])


def test_few_sliders_at_once(tmp_path: Path, command_line: Command, rig: str) -> None:
    target = str(tmp_path / "set.zarr")
    command_line("sample", rig, "--poses", "8", "--active", "1", "--low", "-0.5", "--workers", "0", "-o", target)
    weights = arrays(Path(target))["weights"]
    assert (np.count_nonzero(weights, axis=1) == 1).all()
    assert -0.5 <= weights.min() < 0 < weights.max() <= 1


def test_points_of_the_sequence_cover_the_range_evenly() -> None:
    drawn = data_set.sobol(5, range(64), 7)
    counts = [np.histogram(column, bins=64, range=(0, 1))[0] for column in drawn.T]
    assert (np.array(counts) == 1).all()
    np.testing.assert_array_equal(data_set.sobol(5, range(17, 40), 7), drawn[17:40])
    assert not np.allclose(data_set.sobol(5, range(64), 8), drawn)
    options = data_set.SampleOptions(splits=(0.5, 0.25, 0.25))
    shares = np.bincount([data_set.split_of(k, options) for k in range(2000)]) / 2000
    assert np.abs(shares - options.splits).max() < 0.05


@pytest.mark.slow
def test_sliders_whose_range_is_upside_down_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PliantError, match="sliders from 2 to 1: expected low to be at most high"):
        data_set.DataSet("rig.glb", tmp_path / "set.zarr", data_set.SampleOptions(low=2.0))


def test_a_data_set_of_joints_and_of_a_motion(tmp_path: Path, command_line: Command) -> None:
    dino, bones = pliant.gallery.dinosaur(1000).base, pliant.gallery.dinosaur_skeleton()
    walk = pliant.gallery.dinosaur_walk()
    pliant.write(tmp_path / "walk.bvh", walk)
    pliant.write(tmp_path / "dino.npz", dino)
    target = tmp_path / "set.zarr"
    sample = ("sample", str(tmp_path / "dino.npz"), "--of", "joints", "--poses", "3", "--workers", "0")
    code, _, err = command_line(*sample, "-o", str(target))
    assert code in (0, 1), err
    found = arrays(target)
    assert found["rotations"].shape[::2] == (3, 4)
    assert len(bones) > 1
    assert np.ptp(found["points"], axis=0).max() > 0.01 * dino.diagonal
    code, _, err = command_line(*sample, "--motion", str(tmp_path / "walk.bvh"), "-o", str(tmp_path / "walk.zarr"))
    assert code in (0, 1), err


def test_what_cannot_be_sampled_is_one_line(tmp_path: Path, command_line: Command, rig: str) -> None:
    pliant.write(tmp_path / "mesh.obj", pliant.gallery.box())
    for arguments, problem in (
        ((rig, "-o", str(tmp_path / "a.npz")), "expected one that ends in .zarr"),
        ((str(tmp_path / "mesh.obj"), "--of", "weights", "-o", str(tmp_path / "a.zarr")), "has no morph targets"),
        ((str(tmp_path / "none.glb"), "-o", str(tmp_path / "a.zarr")), "none.glb"),
    ):
        code, _, err = command_line("sample", *arguments, "--workers", "0")
        assert (code, err.count("\n")) == (2, 1)
        assert problem in err

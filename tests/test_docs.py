"""The examples in the README and the docs run as they are printed, but for the sizes of what they make."""

import importlib
import importlib.util
import inspect
import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.app import cli
from pliant.app.scene.examples import example_scenes

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIALS]


SLOW_PAGES = ("contact", "gallery", "game", "jiggle", "mocap", "pictures", "scan", "transfer")
"""Whose examples take seconds, and call what the other pages and tests call."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


SIZES = {
    r"(gallery\.\w+\()\d{4,}": r"\g<1>500", r"gallery\.dinosaur_walk\(4\)": "brief(gallery.dinosaur_walk(24))",
    "lattice=30": "lattice=12", "nodes=600": "nodes=200",
    r"rig\.path\(4\)": "rig.path(2)", "seconds=2": "seconds=0.2", r"size=\(320, 240\)": "size=(80, 60)",
}  # fmt: skip
"""What is printed, and what is quicker."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the examples speak of, small."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pliant.gallery.cages.SURFACE_SIZES", (2000, 3000))
    bar = gallery.bar(500)
    clip = bar.mixed(np.eye(len(bar)))
    pliant.write("face.glb", bar)
    pliant.write("gallop/f.obj", clip)
    for name in ("clip.glb", "gallop.glb", "model.glb", "character.glb"):
        pliant.write(name, clip)
    pliant.write("bunny.obj", bar.base)
    pliant.write("open.obj", bar.base)
    pliant.write("fist.obj", bar.named("bent 90"))
    Path("take.csv").write_text("frame,Bent 90\n1,0.25\n2,0.5\n")
    Path("hit.csv").write_text("frame,x,y,z\n0,0,1.8,0\n11,0,1.6,0\n")
    Path("scene.toml").write_text(blocks(ROOT / "docs" / "transfer.md", "toml")[0].replace("= 24", "= 2\nlattice = 12"))
    joints = [[-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]]
    bones = pliant.Skeleton.from_positions(joints, [-1, 0, 1], ["shoulder", "elbow", "hand"])
    turns, places = (np.tile(rest, (3, 1, 1)) for rest in (bones.rest_rotations, bones.offsets))
    pliant.write("body.obj", bar.base)
    pliant.write("bones.json", bones)
    pliant.write("walk.bvh", pliant.Motion(bones, turns, places))
    Path("simulate.toml").write_text(
        blocks(ROOT / "docs" / "simulate.md", "toml")[-1]
        .replace("= 12", "= 2")
        .replace("= 800", "= 300")
        .replace("= 2000", "= 800")
    )
    pliant.write("cloth.obj", bar.base)
    pliant.write("cloth.pc2", clip)
    return tmp_path


def brief(motion: pliant.Motion) -> pliant.Motion:
    """Its first frames."""
    return replace(motion, rotations=motion.rotations[:4], translations=motion.translations[:4])


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in SLOW_PAGES else [])
        for page in PAGES
        if blocks(page, "python")
    ],
)
def test_python_examples_run(files, page):
    names: dict[str, object] = {"mesh": gallery.sphere(500), "points": gallery.sphere(500).points, "brief": brief}
    for code in blocks(page, "python"):
        for printed, quicker in SIZES.items():
            code = re.sub(printed, quicker, code)
        exec(compile(code.replace("\n...", "\npass"), str(page), "exec"), names)


def made_notebooks(folder: Path) -> list[Path]:
    """The tutorials as notebooks."""
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    maker.main(folder)
    return sorted(folder.glob("*.ipynb"))


def test_notebooks_have_the_code_that_runs(tmp_path):
    pages = {page.stem: page for page in TUTORIALS if blocks(page, "python")}
    made = made_notebooks(tmp_path)
    assert [path.stem for path in made] == sorted(pages)
    assert len(made) == 7
    for path in made:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert code == [block.rstrip("\n") for block in blocks(pages[path.stem], "python")]
        assert cells[0]["source"][0].startswith("# ")
        assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.slow
def test_notebooks_run_in_jupyter(tmp_path, monkeypatch):
    client = pytest.importorskip("nbclient", reason="Jupyter is not part of the tests' extra")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.chdir(tmp_path)
    for path in made_notebooks(tmp_path / "notebooks"):
        client.NotebookClient(nbformat.read(path, as_version=4), timeout=300).execute()


@pytest.mark.parametrize("page", [*TUTORIALS, ROOT / "docs" / "which-engine.md"], ids=lambda page: page.stem)
def test_tutorials_are_short_and_show_pictures(page):
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(prose.split()) < 700  # five minutes with the code
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    assert page.stem == "index" or re.search(r"!\[.+?\]\(.*?images/", text)


def interrupted(studio: object) -> None:
    """As by Ctrl+C."""
    raise KeyboardInterrupt


def spoken(page: Path) -> list[str]:
    """Commands on the files."""
    lines = [line.split(" #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    here = ("model.glb", "character.glb", "gallop.glb", "clip.glb", "bunny.obj", "cloth.pc2", "open.obj", "face.glb")
    here += ("scene.toml", "simulate.toml", "body.obj", "--source")
    here += ("--examples", "--check", "--schema", "scenes/closing_hand.toml")
    return [line for line in lines if line.startswith("pliant ") and line.split()[2:3] in [[name] for name in here]]


REFERENCES = ("command-line", "scene", "skeleton", "contact")
"""Pages whose commands other tests run, too."""


SMALLER = {"transfer": ["--lattice", "12"], "simulate": ["--nodes", "200"]}
"""What is quicker, by command."""


def commands(page: Path) -> list[str]:
    """Those that no page before has."""
    before = [other for other in PAGES[: PAGES.index(page)] if other.stem not in REFERENCES]
    said = {line for other in before for line in spoken(other)}
    return [line for line in dict.fromkeys(spoken(page)) if line not in said]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=pytest.mark.slow if page.stem in REFERENCES else ())
        for page in PAGES
        if commands(page)
    ],
)
def test_shell_examples_run(files, page, monkeypatch):
    for command in commands(page):
        if ".usd" in command:
            pytest.importorskip("pxr", reason="USD is an extra")
        if command.startswith("pliant studio"):
            pytest.importorskip("viser", reason="the studio is an extra")
            monkeypatch.setattr("pliant.app.studio.Studio.wait", interrupted)
        arguments = shlex.split(command.partition(" > ")[0])[1:]
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments + ([] if "toml" in command else SMALLER.get(arguments[0], [])))
        assert stop.value.code == 0, command
    assert os.listdir(files)


def test_the_reference_of_scene_files_is_up_to_date():
    spec = importlib.util.spec_from_file_location("scene_reference", ROOT / "docs" / "scene_reference.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    page = made.PAGE.read_text(encoding="utf-8")
    advice = "run: python docs/scene_reference.py"
    assert page == made.updated_page(page), advice
    assert made.SCHEMA.read_text(encoding="utf-8") == made.schema_text(), advice
    commands = made.COMMANDS.read_text(encoding="utf-8")
    assert commands == made.updated_commands(commands), advice
    assert "| `--thickness` |" in commands
    jobs = made.JOBS.read_text(encoding="utf-8")
    assert jobs == made.updated_jobs(jobs), advice
    for key in ("sources.NAME.groups", "regions[].name", "obstacles[].what", "output.file", "gradients[].turn"):
        assert f"| `{key}` |" in page
    assert made.updated_page(page.replace("| `pulls` |", "| `pulled` |")) == page


@pytest.mark.parametrize(
    ("page", "name"),
    [("scene", "closing_hand.toml"), ("transfer", "two_walks.toml"), ("simulate", "dinosaur_walk.toml")],
)
def test_example_scenes_are_in_the_docs_as_they_are(page, name):
    assert example_scenes()[name].strip() in (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "api").glob("*.md")), ids=lambda page: page.stem)
def test_the_api_reference_names_what_exists(page):
    text = page.read_text(encoding="utf-8")
    entries = re.findall(r"^::: (\S+)\n(?:    options:\n      members: \[(.*?)\]\n)?", text, re.MULTILINE)
    assert entries
    for module, members in entries:
        found = importlib.import_module(module)
        for name in filter(None, members.split(", ")):
            assert getattr(found, name).__doc__, f"{module}.{name}"


def test_every_public_name_is_in_the_api_reference():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    listed = {name for names in re.findall(r"members: \[(.*?)\]", text) for name in names.split(", ")}
    whole = [importlib.import_module(name) for name in re.findall(r"^::: (\S+)\n(?!    options)", text, re.MULTILINE)]
    for name in pliant.__all__:
        found = getattr(pliant, name)
        if not inspect.ismodule(found):
            assert name in listed or any(found.__module__ == module.__name__ for module in whole), name


def test_the_conda_recipe_asks_for_what_the_package_does():
    about = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    needed = re.findall(r'^  "([\w-]+)(>=[\d.]+)', about.split("\ndependencies = [")[1].split("\n]\n")[0], re.MULTILINE)
    assert len(needed) >= 7
    asked = recipe.split("  run:\n")[1].split("\ntests:")[0]
    assert set(needed) == set(re.findall(r"([\w-]+) (>=[\d.]+)\n", asked))
    assert f"version: {pliant.__version__}\n" in recipe

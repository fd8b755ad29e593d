"""USD stages that grow far beyond their files, or reach for what is no file: refused before they are composed."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pliant.io as pio
from pliant.core.errors import FileError, PliantWarning
from pliant.io.source import Source
from pliant.io.usd.stage import opened

pytest.importorskip("pxr")
pytestmark = pytest.mark.usefixtures("usd_trials")

HEAD = "#usda 1.0\n"
MESH = """def Mesh "mesh" {
    point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    int[] faceVertexCounts = [3]
    int[] faceVertexIndices = [0, 1, 2]
}
"""


def nested(levels: int, way: str, *, metadata: str = "", last: str = MESH) -> str:
    """Ten prims that refer to ten prims each, and so on."""
    text = f'class "level0" {{\n{last}}}\n'
    for level in range(1, levels + 1):
        ten = "".join(f'def "p{k}" (\n{metadata}\n{way} = </level{level - 1}>\n) {{\n}}\n' for k in range(10))
        text += f'{"def" if level == levels else "class"} Xform "level{level}" {{\n{ten}}}\n'
    return HEAD + text


@pytest.fixture(autouse=True)
def in_seconds() -> Iterator[None]:
    """Far less than the stages would take, even on a busy machine."""
    begun = time.perf_counter()
    yield
    assert time.perf_counter() - begun < 20


BOMBS = {way: nested(9, way) for way in ("references", "payload", "inherits", "specializes", "prepend references")}
BOMBS["instances"] = nested(5, "references", metadata="instanceable = true")
BOMBS["instances that are not"] = nested(9, "references", metadata="instanceable = false")
VARIANT = """def "p{k}" (
    variantSets = "v"
    variants = {{ string v = "{k}" }}
) {{
    variantSet "v" = {{
        "{k}" (
            references = </level{below}>
        ) {{
        }}
    }}
}}
"""
BOMBS["variants"] = nested(0, "") + "".join(
    f'def "level{level}" {{\n' + "".join(VARIANT.format(k=k, below=level - 1) for k in range(10)) + "}\n"
    for level in range(1, 9)
)
BOMBS["instances below a reference"] = (
    nested(5, "references", metadata="instanceable = true").replace('def Xform "level5"', 'class "level5"')
    + 'class "empty" {\n}\ndef "top" (\nreferences = </empty>\n) {\ndef "a" (\nreferences = </level5>\n) {\n}\n}\n'
)


@pytest.mark.parametrize("way", BOMBS)
def test_nested_references_are_counted_not_built(tmp_path: Path, way: str) -> None:
    (tmp_path / "bomb.usda").write_text(BOMBS[way])
    with pytest.raises(
        FileError, match=r"bomb\.usda: is composed of [\d,]+ prims, .*; the limit for its size is 20,000"
    ):
        pio.read_mesh(tmp_path / "bomb.usda")


@pytest.mark.parametrize("suffix", [".usdc", ".usdz", ".USDA", ".usd", ".zip"])
def test_in_every_wrapping(tmp_path: Path, suffix: str) -> None:
    from pxr import Sdf

    text, path = tmp_path / "bomb.usda", tmp_path / f"wrapped{suffix}"
    text.write_text(BOMBS["references"])
    if suffix in (".usdz", ".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(text, "bomb.usda")
    elif suffix == ".usdc":
        Sdf.Layer.FindOrOpen(str(text)).Export(str(path))
    else:
        text.rename(path)
    with pytest.raises(FileError, match="is composed of 2,111,111,112 prims"):
        pio.read(path)


@pytest.mark.parametrize("name", ["@{}@", '@`"${{FOLDER}}/{}"`@', "@@@{}@@@"])
def test_across_files_however_they_are_named(tmp_path: Path, name: str) -> None:
    variables = '(\nexpressionVariables = { string FOLDER = "." }\ndefaultPrim = "top"\n)\n'
    (tmp_path / "0.USDA").write_text(f'{HEAD}{variables}def "top" {{\n{MESH}}}\n')
    for level in range(1, 9):
        file = name.format(f"{level - 1}.USDA")
        ten = "".join(f'def "p{k}" (\npayload = {file}\n) {{\n}}\n' for k in range(10))
        (tmp_path / f"{level}.USDA").write_text(f'{HEAD}{variables}def Xform "top" {{\n{ten}}}\n')
    assert len(pio.read_mesh(tmp_path / "2.USDA").polygons) == 100
    with pytest.raises(FileError, match=r"is composed of \d+,\d+,\d+ prims"):
        pio.read_mesh(tmp_path / "8.USDA")


def test_a_stronger_layer_does_not_hide_a_bomb(tmp_path: Path) -> None:
    """Instances are what the count rests on; an opinion against them must not undo that."""
    (tmp_path / "weak.usda").write_text(BOMBS["references"])
    overs = "".join(
        f'over "level{level}" {{\n'
        + "".join(f'over "p{k}" (\ninstanceable = false\n) {{\n}}\n' for k in range(10))
        + "}\n"
        for level in range(1, 10)
    )
    (tmp_path / "strong.usda").write_text(f"{HEAD}(\nsubLayers = [@weak.usda@]\n)\n{overs}")
    with pytest.raises(FileError, match=r"is composed of [\d,]+ prims"):
        pio.read_mesh(tmp_path / "strong.usda")


def test_layers_in_layers_end_at_a_limit(tmp_path: Path) -> None:
    """Two layers below each of two, twenty deep: a million in one stack."""
    for level in range(20):
        below = f"(\nsubLayers = [@{level + 1}a.usda@, @{level + 1}b.usda@]\n)\n" if level < 19 else ""
        for side in "ab":
            (tmp_path / f"{level}{side}.usda").write_text(f"{HEAD}{below}{MESH}")
    with pytest.raises(FileError, match="is a stack of 1,048,575 layers"):
        pio.read_mesh(tmp_path / "0a.usda")


def test_points_are_counted_with_their_instances(tmp_path: Path) -> None:
    points = ", ".join(f"({k}, 0, 0)" for k in range(30_000))
    mesh = MESH.replace("(0, 0, 0), (1, 0, 0), (0, 1, 0)", points)
    stage = nested(3, "references", metadata="instanceable = true", last=mesh)
    (tmp_path / "bomb.usda").write_text(stage)
    with pytest.raises(FileError, match="is composed of 30,003,000 points and corners"):
        pio.read_points(tmp_path / "bomb.usda")


def test_frames_are_counted_before_they_are_evaluated(tmp_path: Path) -> None:
    stage = f"""{HEAD}(
    startTimeCode = 0
    endTimeCode = 900000
    timeCodesPerSecond = 30
)
def Xform "x" {{
    double3 xformOp:translate.timeSamples = {{ 0: (0, 0, 0), 1: (1, 0, 0) }}
    uniform token[] xformOpOrder = ["xformOp:translate"]
    {MESH}
}}
"""
    (tmp_path / "long.usda").write_text(stage)
    with pytest.raises(FileError, match=r"has 900,001 frames of 1 parts; the limit for its size is 100,000 in all"):
        pio.read_animation(tmp_path / "long.usda")
    assert len(pio.read_animation(tmp_path / "long.usda", fps=0.001)) == 31


REFERENCE = 'def "a" (\nreferences = @FILE@</a>\n) {\n}\n'
VARIABLE = '(\nexpressionVariables = { string X = "FILE" }\n)\n'
LINKS = {
    "sublayer": "(\nsubLayers = [@FILE@]\n)\n",
    "reference": REFERENCE,
    "payload": REFERENCE.replace("references", "payload"),
    "expression": VARIABLE + REFERENCE.replace("FILE", '`"${X}"`'),
    "variant": VARIANT.format(k=0, below=0).replace("</level0>", "@FILE@</a>"),
    "format arguments": REFERENCE.replace("FILE", "FILE:SDF_FORMAT_ARGS:x=y"),
}


VALUES = {
    "asset value": 'def "a" {\nasset file = @FILE@\n}\n',
    "value clip": 'def "a" (\nclips = { dictionary default = { asset[] assetPaths = [@FILE@] } }\n) {\n}\n',
    "clip manifest": 'def "a" (\nclips = { dictionary default = { asset manifestAssetPath = @FILE@ } }\n) {\n}\n',
}
"""What USD opens as a layer if it is called like one."""


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *((way, "pipe.usda") for way in (*LINKS, *VALUES)),
        *(("reference", name) for name in ("/dev/zero", "../outside.usda")),
        *(pytest.param(way, "/dev/zero", marks=pytest.mark.slow) for way in LINKS if way != "reference"),
        *(
            pytest.param(way, "../outside.usda", marks=pytest.mark.slow)
            for way in (*LINKS, *VALUES)
            if way != "reference"
        ),
    ],
)
def test_pipes_devices_and_files_elsewhere_are_not_opened(tmp_path: Path, way: str, name: str) -> None:
    """A pipe without a writer would block whoever opens it."""
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "pipe.usda")
    os.mkfifo(tmp_path / "outside.usda")
    (folder / "stage.usda").write_text(HEAD + {**LINKS, **VALUES}[way].replace("FILE", name) + MESH)
    with pytest.raises(
        FileError, match=r'stage\.usda: refers to ".*(pipe|zero|outside).*expected files in its own folder'
    ):
        pio.siblings_of(Source(folder / "stage.usda"))


def test_a_variable_of_the_referring_file_decides(tmp_path: Path) -> None:
    """USD lets the referring stage set the variables of the layers it refers to."""
    os.mkfifo(tmp_path / "pipe.usda")
    (tmp_path / "fine.usda").write_text(f'{HEAD}def "a" {{\n{MESH}}}\n')
    inner = '(\nexpressionVariables = { string X = "fine" }\n)\ndef "a" (\nreferences = @`"${X}.usda"`@</a>\n) {\n}\n'
    (tmp_path / "inner.usda").write_text(HEAD + inner)
    assert len(pio.read_mesh(tmp_path / "inner.usda").polygons) == 1
    outer = '(\nexpressionVariables = { string X = "pipe" }\n)\ndef "a" (\nreferences = @inner.usda@</a>\n) {\n}\n'
    (tmp_path / "outer.usda").write_text(HEAD + outer)
    with pytest.raises(FileError, match=r'refers to ".*pipe\.usda", which is no file'):
        pio.read_mesh(tmp_path / "outer.usda")


def test_a_texture_that_is_a_pipe_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "skin.png")
    look = """def Material "look" {
    token outputs:surface.connect = </look/surface.outputs:surface>
    def Shader "surface" {
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor.connect = </look/texture.outputs:rgb>
        token outputs:surface
    }
    def Shader "texture" {
        uniform token info:id = "UsdUVTexture"
        asset inputs:file = @skin.png@
        float3 outputs:rgb
    }
}
"""
    bound = MESH.replace(
        '"mesh" {', '"mesh" (\nprepend apiSchemas = ["MaterialBindingAPI"]\n) {\nrel material:binding = </look>'
    )
    (tmp_path / "stage.usda").write_text(HEAD + look + bound)
    with pytest.warns(PliantWarning, match="skin.png.* is missing and is left out"):
        assert len(pio.read_mesh(tmp_path / "stage.usda").polygons) == 1


@pytest.mark.parametrize("text", ['def "a" (\ninherits = </b>\n) {\n}\n', "# @x.UsdC@\n", ""])
def test_only_a_text_without_references_is_read_without_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    tried: list[Path] = []
    monkeypatch.setattr("pliant.io.usd.stage._try_apart", lambda source, path: tried.append(path))
    (tmp_path / "a.usda").write_text(HEAD + MESH + text)
    with opened(Source(tmp_path / "a.usda")):
        assert bool(tried) == bool(text)

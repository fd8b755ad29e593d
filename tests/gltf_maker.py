"""Hand-made glTF files for tests, built without pliant's own writer: a JSON dictionary and one buffer."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import numpy as np

CODES = {"int8": 5120, "uint8": 5121, "int16": 5122, "uint16": 5123, "uint32": 5125, "float32": 5126}
KINDS = {(): "SCALAR", (2,): "VEC2", (3,): "VEC3", (4,): "VEC4", (4, 4): "MAT4"}


class Maker:
    """A glTF file in the making; `json` may be changed at will before it is saved."""

    def __init__(self) -> None:
        self.json: dict = {"asset": {"version": "2.0"}}
        self.data = bytearray()

    def add(self, table: str, **entry) -> int:
        self.json.setdefault(table, []).append(entry)
        return len(self.json[table]) - 1

    def view(self, data: bytes, **more) -> int:
        self.data += bytes(-len(self.data) % 4)
        start = len(self.data)
        self.data += data
        return self.add("bufferViews", buffer=0, byteOffset=start, byteLength=len(data), **more)

    def accessor(self, values, dtype="float32", **more) -> int:
        """Values as an accessor; 4×4 matrices are stored column by column."""
        array = np.asarray(values).astype(dtype)
        kind = KINDS[array.shape[1:]]
        if kind == "MAT4":
            array = np.swapaxes(array, 1, 2)
        entry = {"componentType": CODES[dtype], "count": len(array), "type": kind}
        return self.add("accessors", bufferView=self.view(array.tobytes()), **entry, **more)

    def interleaved(self, first, second) -> tuple[int, int]:
        """Two float accessors that take turns in one buffer view."""
        rows = np.hstack([first, second]).astype("float32")
        view = self.view(rows.tobytes(), byteStride=rows.shape[1] * 4)
        numbers = []
        for values, start in ((np.asarray(first), 0), (np.asarray(second), np.shape(first)[1] * 4)):
            kind = KINDS[values.shape[1:]]
            numbers.append(self.add("accessors", bufferView=view, byteOffset=start, componentType=5126,
                                    count=len(values), type=kind))  # fmt: skip
        return numbers[0], numbers[1]

    def mesh(self, points, triangles=None, **more) -> int:
        """A mesh of one primitive; `more` goes to the primitive, attributes among it."""
        attributes = {"POSITION": self.accessor(points), **more.pop("attributes", {})}
        primitive = {"attributes": attributes, **more}
        if triangles is not None:
            primitive["indices"] = self.accessor(np.ravel(triangles), "uint16")
        return self.add("meshes", primitives=[primitive])

    def clip(self, name: str, *tracks) -> int:
        """An animation of (node, path, times, values, interpolation) tracks."""
        samplers, channels = [], []
        for node, path, times, values, mode in tracks:
            samplers.append({"input": self.accessor(times), "output": self.accessor(values), "interpolation": mode})
            channels.append({"sampler": len(channels), "target": {"node": node, "path": path}})
        return self.add("animations", name=name, samplers=samplers, channels=channels)

    def gltf(self, path: Path, *, embed: bool = True) -> Path:
        """Save as .gltf, with a data URI or a .bin beside it."""
        uri = "data:application/octet-stream;base64," + base64.b64encode(self.data).decode()
        if not embed:
            uri = f"{path.stem}%20data.bin"
            path.with_name(f"{path.stem} data.bin").write_bytes(self.data)
        path.write_text(json.dumps({**self.json, "buffers": [{"byteLength": len(self.data), "uri": uri}]}))
        return path

    def glb(self, path: Path) -> Path:
        """Save as .glb."""
        self.data += bytes(-len(self.data) % 4)
        text = json.dumps({**self.json, "buffers": [{"byteLength": len(self.data)}]}).encode()
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text
        chunks += struct.pack("<I4s", len(self.data), b"BIN\0") + bytes(self.data)
        path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)
        return path


TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def rigged(maker: Maker | None = None) -> Maker:
    """A file with everything: hierarchy, skin, morph targets, sparse accessor, materials, texture, three clips."""
    m = maker or Maker()
    rng = np.random.default_rng(5)
    delta = m.accessor(rng.normal(size=(4, 3)))
    rows = m.view(np.array([1, 3], "uint16").tobytes())
    values = m.view(rng.normal(size=(2, 3)).astype("float32").tobytes())
    sparse = m.add(
        "accessors",
        componentType=5126,
        count=4,
        type="VEC3",
        sparse={
            "count": 2,
            "indices": {"bufferView": rows, "componentType": 5123},
            "values": {"bufferView": values},
        },
    )
    m.add("images", mimeType="image/png", bufferView=m.view(b"\x89PNG\r\n\x1a\n and so on"))
    m.add("samplers", magFilter=9729)
    m.add("textures", sampler=0, source=0)
    m.add("materials", name="skin", pbrMetallicRoughness={"baseColorTexture": {"index": 0}, "metallicFactor": 0})
    m.add("materials", doubleSided=True, normalTexture={"index": 0, "scale": 0.5})
    joints = m.accessor([[0, 1, 0, 0]] * 4, "uint8")
    weights = m.accessor(np.array([[255, 0, 0, 0], [128, 127, 0, 0], [0, 255, 0, 0], [55, 200, 0, 0]]), "uint8",
                         normalized=True)  # fmt: skip
    m.mesh(
        TETRAHEDRON,
        FACES,
        attributes={"JOINTS_0": joints, "WEIGHTS_0": weights, "TEXCOORD_0": m.accessor(rng.random((4, 2)))},
        targets=[{"POSITION": delta}, {"POSITION": sparse}],
        material=0,
    )
    m.json["meshes"][0].update(extras={"targetNames": ["wide", "tall"]}, weights=[0.25, 0])
    m.mesh(TETRAHEDRON + 5, FACES, material=1, attributes={"NORMAL": m.accessor(np.tile([0.0, 0, 1], (4, 1)))})
    m.add("nodes", name="top", children=[1, 2, 4], translation=[1, 2, 3], rotation=[0, 0, 0.6, 0.8])
    m.add("nodes", name="hip", children=[3], translation=[0, 1, 0])
    m.add("nodes", name="body", mesh=0, skin=0, translation=[9, 9, 9])
    m.add("nodes", name="knee", rotation=[0.6, 0, 0, 0.8], translation=[0, 1, 0.5])
    m.add("nodes", name="hat", mesh=1, matrix=[2, 0, 0, 0, 0, 0, 2, 0, 0, -2, 0, 0, 1, 1, 1, 1])
    binds = np.tile(np.eye(4), (2, 1, 1))
    binds[:, :3, 3] = [[0, -1, 0], [0.5, 0, -0.25]]
    m.add("skins", joints=[1, 3], inverseBindMatrices=m.accessor(binds))
    m.add("scenes", nodes=[0])
    m.json["scene"] = 0
    turns = rng.normal(size=(3, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    times = [0.0, 0.5, 1.0]
    m.clip("turn", (3, "rotation", times, turns, "LINEAR"), (0, "translation", times, rng.normal(size=(3, 3)), "STEP"))
    m.clip(
        "grow", (2, "weights", times, rng.random(6), "LINEAR"), (1, "scale", times, 1 + rng.random((3, 3)), "LINEAR")
    )
    m.clip("spline", (3, "rotation", times, rng.normal(size=(9, 4)), "CUBICSPLINE"),
           (1, "translation", times, rng.normal(size=(9, 3)), "CUBICSPLINE"))  # fmt: skip
    return m

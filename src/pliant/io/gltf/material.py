"""glTF materials, read and written: colour and texture, and the file's own JSON, kept for writing it back.

``Appearance.native["gltf"]`` is self-contained: ``{"material": JSON, "textures": [...], "samplers": [...], "images":
[Image, ...]}``, where texture, sampler and image numbers count within it. So a material can move to another file with
its textures, and extensions that pliant does not know come through unchanged.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pliant.core.errors import FileError, PliantWarning
from pliant.core.shapes import Appearance, Image
from pliant.io.gltf.checked_json import Entry
from pliant.io.gltf.data import GltfDocument

IMAGE_SIGNATURES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"RIFF": "image/webp",
    b"\xabKTX": "image/ktx2",
}
TEXTURE_EXTENSION = {
    "image/webp": "EXT_texture_webp",
    "image/ktx2": "KHR_texture_basisu",
    "image/avif": "EXT_texture_avif",
}


def texture_slots(material: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Every reference to a texture in a material's JSON, at any depth: the object and its key."""
    if isinstance(material, list):
        for item in material:
            yield from texture_slots(item)
    if not isinstance(material, dict):
        return
    for key, value in list(material.items()):
        if key == "extras":
            continue
        if key.lower().endswith("texture") and isinstance(value, dict) and "index" in value:
            yield material, key
        yield from texture_slots(value)


def extension_names(value: Any) -> Iterator[str]:
    """Every extension used inside a JSON value."""
    if isinstance(value, list):
        for item in value:
            yield from extension_names(item)
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "extensions" and isinstance(inner, dict):
                yield from inner
            if key != "extras":
                yield from extension_names(inner)


def read_appearance(doc: GltfDocument, k: int) -> Appearance:
    """Material number k."""
    entry = doc.table("materials")[k]
    surface = entry.entry("pbrMetallicRoughness")
    factor = surface.numbers("baseColorFactor", 4)
    red, green, blue, alpha = (1.0, 1.0, 1.0, 1.0) if factor is None else (float(x) for x in factor)
    native = _read_native(doc, k)
    surface.entry("baseColorTexture")
    base = (native["material"].get("pbrMetallicRoughness") or {}).get("baseColorTexture")
    texture = None
    if base is not None and "index" in base:
        slots = _image_slots(native["textures"][base["index"]])
        texture = native["images"][slots[0][0]["source"]] if slots else None
    return Appearance((red, green, blue, alpha), texture, {"gltf": native})


def _image_slots(texture: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Where a texture's JSON refers to images: itself, and extensions for other picture formats."""
    extensions = texture.get("extensions")
    inner = list(extensions.values()) if isinstance(extensions, dict) else []
    return [(value, "source") for value in (texture, *inner) if isinstance(value, dict) and "source" in value]


def _read_native(doc: GltfDocument, k: int) -> dict[str, Any]:
    """A material's JSON and what it refers to, renumbered to count within itself."""
    material = copy.deepcopy(dict(doc.table("materials")[k].value))
    textures: dict[int, dict[str, Any] | None] = {}
    samplers: dict[int, int] = {}
    images: dict[int, Image] = {}
    for holder, key in texture_slots(material):
        info = Entry(doc.source, holder[key], f"material {k} {key}")
        number = info.needed_index("index", len(doc.table("textures")), "texture")
        if number not in textures:
            textures[number] = _read_texture(doc, number, samplers, images)
        if textures[number] is None:
            del holder[key]
        else:
            holder[key]["index"] = number
    kept = [number for number, texture in textures.items() if texture is not None]
    for holder, key in texture_slots(material):
        holder[key]["index"] = kept.index(holder[key]["index"])
    image_order = list(images)
    for number in kept:
        texture = textures[number]
        assert texture is not None
        for holder, key in _image_slots(texture):
            holder[key] = image_order.index(holder[key])
    return {
        "material": material,
        "textures": [textures[number] for number in kept],
        "samplers": [copy.deepcopy(dict(doc.table("samplers")[number].value)) for number in samplers],
        "images": [images[number] for number in image_order],
    }


def _read_texture(
    doc: GltfDocument, number: int, samplers: dict[int, int], images: dict[int, Image]
) -> dict[str, Any] | None:
    """A texture's JSON with its sampler renumbered; None if one of its pictures is missing."""
    entry = doc.table("textures")[number]
    texture = copy.deepcopy(dict(entry.value))
    sampler = doc.index_of(entry, "sampler", "samplers")
    if sampler is not None:
        texture["sampler"] = samplers.setdefault(sampler, len(samplers))
    entry.entry("extensions")
    for holder, key in _image_slots(texture):
        picture = Entry(doc.source, holder, entry.location).needed_index(key, len(doc.table("images")), "image")
        holder[key] = picture
        try:
            if picture not in images:
                images[picture] = read_image(doc, picture)
        except FileError as error:
            warnings.warn(f"{error}; the texture is left out", PliantWarning, stacklevel=2)
            return None
    return texture


def read_image(doc: GltfDocument, k: int) -> Image:
    """Image number k, as its file's bytes."""
    entry = doc.table("images")[k]
    view = doc.index_of(entry, "bufferView", "bufferViews")
    uri = entry.text("uri")
    data = doc.resource(entry) if view is None else bytes(doc.view(view)[0])
    file_name = "" if uri.startswith("data:") else uri.replace("\\", "/").rsplit("/", 1)[-1]
    mime = next((mime for magic, mime in IMAGE_SIGNATURES.items() if data.startswith(magic)), entry.text("mimeType"))
    return Image(entry.text("name") or file_name or f"image {k}", data, mime or "application/octet-stream")


class MaterialWriter:
    """Materials of a file being written: textures, samplers and images shared where they are the same."""

    def __init__(self, *, texture_sets: int, double_sided: bool) -> None:
        self.texture_sets = texture_sets
        self.double_sided = double_sided
        self.materials: list[dict[str, Any]] = []
        self.textures: list[dict[str, Any]] = []
        self.samplers: list[dict[str, Any]] = []
        self.images: list[Image] = []
        self.required: set[str] = set()

    @property
    def extensions(self) -> set[str]:
        """Every extension that the materials use."""
        return {*extension_names(self.materials), *extension_names(self.textures), *extension_names(self.samplers)}

    def add(self, name: str, appearance: Appearance) -> int:
        """Write a material and return its number."""
        native = appearance.native.get("gltf")
        material = self._own(name, appearance) if native is None else self._given(name, appearance, native)
        for holder, key in list(texture_slots(material)):
            if self._texture_set(holder[key]) >= self.texture_sets:
                del holder[key]
        self.materials.append(material)
        return len(self.materials) - 1

    @staticmethod
    def _texture_set(info: Mapping[str, Any]) -> int:
        number = info.get("texCoord", 0)
        extensions = info.get("extensions")
        transform = extensions.get("KHR_texture_transform") if isinstance(extensions, dict) else None
        if isinstance(transform, dict) and "texCoord" in transform:
            number = transform["texCoord"]
        return number if isinstance(number, int) else 0

    def _given(self, name: str, appearance: Appearance, native: Mapping[str, Any]) -> dict[str, Any]:
        """The material that a glTF file had, under its name here and with a colour that may have been changed since."""
        material: dict[str, Any] = copy.deepcopy(native["material"])
        material["name"] = name
        surface = material["pbrMetallicRoughness"] = material.get("pbrMetallicRoughness") or {}
        color = [float(x) for x in np.clip(appearance.color, 0, 1)]
        if color != surface.get("baseColorFactor", [1.0] * 4):
            surface["baseColorFactor"] = color
        samplers = [self._shared(self.samplers, sampler) for sampler in native["samplers"]]
        images = [self._image(image) for image in native["images"]]
        textures = []
        for given in native["textures"]:
            texture = copy.deepcopy(given)
            if "sampler" in texture:
                texture["sampler"] = samplers[texture["sampler"]]
            for holder, key in _image_slots(texture):
                holder[key] = images[holder[key]]
            if "source" not in texture:
                self.required.update(texture.get("extensions", {}))
            textures.append(self._shared(self.textures, texture))
        for holder, key in texture_slots(material):
            holder[key]["index"] = textures[holder[key]["index"]]
        if not surface:
            del material["pbrMetallicRoughness"]
        return material

    def _own(self, name: str, appearance: Appearance) -> dict[str, Any]:
        """A plain, matt material."""
        color = [float(x) for x in np.clip(appearance.color, 0, 1)]
        surface: dict[str, Any] = {"baseColorFactor": color, "metallicFactor": 0.0, "roughnessFactor": 0.8}
        material: dict[str, Any] = {"name": name, "pbrMetallicRoughness": surface}
        if color[3] < 1:
            material["alphaMode"] = "BLEND"
        if self.double_sided:
            material["doubleSided"] = True
        image = _portable(appearance.texture) if appearance.texture is not None and self.texture_sets else None
        if image is not None:
            source = self._image(image)
            texture: dict[str, Any] = {"sampler": self._shared(self.samplers, {"wrapS": 10497, "wrapT": 10497})}
            extension = TEXTURE_EXTENSION.get(image.mime)
            if extension is None:
                texture["source"] = source
            else:
                texture["extensions"] = {extension: {"source": source}}
                self.required.add(extension)
            surface["baseColorTexture"] = {"index": self._shared(self.textures, texture)}
        return material

    @staticmethod
    def _shared(table: list[dict[str, Any]], value: dict[str, Any]) -> int:
        if value not in table:
            table.append(value)
        return table.index(value)

    def _image(self, image: Image) -> int:
        for k, other in enumerate(self.images):
            if other is image or (other.name == image.name and other.data == image.data):
                return k
        self.images.append(image)
        return len(self.images) - 1


def _portable(image: Image) -> Image | None:
    """The picture in a format that glTF may hold: others become PNG; None (and a warning) if it is no picture."""
    mime = next((mime for magic, mime in IMAGE_SIGNATURES.items() if image.data.startswith(magic)), image.mime)
    if mime in ("image/png", "image/jpeg", *TEXTURE_EXTENSION):
        return Image(image.name, image.data, mime)
    from PIL import Image as Pillow, UnidentifiedImageError

    out = io.BytesIO()
    try:
        Pillow.open(io.BytesIO(image.data)).convert("RGBA").save(out, "PNG")
    except (UnidentifiedImageError, OSError, ValueError) as error:
        warnings.warn(f'texture "{image.name}" is left out: {error}', PliantWarning, stacklevel=2)
        return None
    return Image(image.name, out.getvalue(), "image/png")

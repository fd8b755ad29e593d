"""USD materials, read as and written from appearances.

A look is a ``UsdPreviewSurface``: its diffuse colour and opacity, or a ``UsdUVTexture`` that feeds the colour, with the
colour as the texture's scale. Its other constant inputs (roughness, metallic, ...) are kept as
``native["usd"]["inputs"]``. Colours are linear; textures say that they are sRGB.
"""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import PliantWarning
from pliant.core.shapes import Appearance, Image
from pliant.io.naming import PICTURE_MARKS, file_stem, picture_name
from pliant.io.source import Source
from pliant.io.usd.geometry import NAME_PROPERTY, location_of
from pliant.io.usd.stage import library, within


def read_appearance(source: Source, prim: Any) -> Appearance:
    """What a material prim looks like; the default where it has no preview surface."""
    UsdShade = library("UsdShade")
    shader = UsdShade.Material(prim).ComputeSurfaceSource()[0]
    if not shader or shader.GetIdAttr().Get() != "UsdPreviewSurface":
        return Appearance()
    color, texture = _input(shader, "diffuseColor", (0.18, 0.18, 0.18), 3)
    opacity, _ = _input(shader, "opacity", (1.0,), 1)
    image = None
    if texture is not None:
        image = _image(source, texture)
        color, _ = _input(texture, "scale", (1.0, 1.0, 1.0, 1.0), 4)
    constants = {}
    for shader_input in shader.GetInputs():
        name, value = shader_input.GetBaseName(), _plain(shader_input.Get())
        if name not in ("diffuseColor", "opacity") and not shader_input.HasConnectedSource() and value is not None:
            constants[name] = value
    red, green, blue = color[:3]
    return Appearance((red, green, blue, opacity[0]), image, {"usd": {"inputs": constants}} if constants else {})


def _plain(value: Any) -> Any:
    """A number, or a tuple of numbers; None for the rest."""
    if isinstance(value, float):
        return float(str(np.float32(value)))  # 0.8 rather than 0.800000011920929
    if isinstance(value, int):
        return value
    if hasattr(value, "__len__") and not isinstance(value, str):
        return tuple(_plain(float(x)) for x in value)
    return None


def _input(shader: Any, name: str, default: tuple[float, ...], width: int) -> tuple[tuple[float, ...], Any]:
    """The numbers of a shader's input, and the texture that feeds it, if one does."""
    UsdShade = library("UsdShade")
    shader_input = shader.GetInput(name)
    if not shader_input:
        return default, None
    for attribute in UsdShade.Utils.GetValueProducingAttributes(shader_input):
        feeder = UsdShade.Shader(attribute.GetPrim())
        if attribute.GetName().startswith("outputs:"):
            if feeder and feeder.GetIdAttr().Get() == "UsdUVTexture":
                return default, feeder
            continue
        plain = _plain(attribute.Get())
        numbers = plain if isinstance(plain, tuple) else (plain,)
        if plain is not None and len(numbers) == width and np.isfinite(numbers).all():
            return numbers, None
    return default, None


def _image(source: Source, texture: Any) -> Image | None:
    """The picture a texture reads, from beside the stage or from inside its package."""
    asset = texture.GetInput("file").Get() if texture.GetInput("file") else None
    written, found = getattr(asset, "path", ""), getattr(asset, "resolvedPath", "")
    strays = bool(found) and not within(texture.GetPrim().GetStage(), found)
    data = _bytes_at(found) if found and not strays else b""
    for mark, mime, _ in PICTURE_MARKS:  # nothing else is a texture, whatever a stage from elsewhere points at
        if data.startswith(mark):
            return Image(Path(written.replace("\\", "/")).name, data, mime)
    problem = "lies outside the file's own folder" if strays else "is not a picture" if data else "is missing"
    label = f"{source.label}, {location_of(texture.GetPrim())}"
    warnings.warn(f'{label}: the texture "{written}" {problem} and is left out', PliantWarning, stacklevel=2)
    return None


def _bytes_at(resolved: str) -> bytes:
    """A file's bytes, or those of a file in a package: ``scene.usdz[textures/skin.png]``."""
    package, inner = library("Ar").SplitPackageRelativePathOuter(resolved)
    try:
        if not Path(package).is_file():  # a pipe or a device might never end
            return b""
        if not inner:
            return Path(resolved).read_bytes()
        with zipfile.ZipFile(package) as archive:
            return archive.read(inner)
    except (OSError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return b""


def identifier(name: str, taken: set[str]) -> str:
    """A prim name as near to `name` as USD and the names already taken allow."""
    base = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    base = f"_{base}" if base[0].isdigit() else base
    unique, k = base, 1
    while unique in taken:
        unique, k = f"{base}_{k}", k + 1
    taken.add(unique)
    return unique


def write_materials(stage: Any, scope: str, looks: Mapping[str, Appearance], path: Path) -> dict[str, Any]:
    """A material prim for each look, below `scope`; textures are written to a folder beside `path`."""
    Sdf, UsdGeom, UsdShade = library("Sdf"), library("UsdGeom"), library("UsdShade")
    if not looks:
        return {}
    UsdGeom.Scope.Define(stage, scope)
    materials, prims, files = {}, set[str](), dict[int, str]()
    for name, look in looks.items():
        prim_path = f"{scope}/{identifier(name, prims)}"
        material = UsdShade.Material.Define(stage, prim_path)
        material.GetPrim().SetCustomDataByKey(NAME_PROPERTY, name)
        surface = UsdShade.Shader.Define(stage, f"{prim_path}/surface")
        surface.CreateIdAttr("UsdPreviewSurface")
        material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
        _write_constants(surface, look)
        color = surface.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
        if look.texture is None:
            color.Set(tuple(look.color[:3]))
        else:
            written = _write_image(path, look.texture, files)
            color.ConnectToSource(_write_texture(stage, prim_path, look, written).ConnectableAPI(), "rgb")
        materials[name] = material
    return materials


def _write_constants(surface: Any, look: Appearance) -> None:
    types = library("Sdf").ValueTypeNames
    surface.CreateInput("opacity", types.Float).Set(float(look.color[3]))
    kept = look.native.get("usd", {}).get("inputs", {}) if isinstance(look.native.get("usd"), Mapping) else {}
    known = {
        "emissiveColor": types.Color3f,
        "specularColor": types.Color3f,
        "normal": types.Normal3f,
        "useSpecularWorkflow": types.Int,
    }
    numbers = ("metallic", "roughness", "clearcoat", "clearcoatRoughness", "opacityThreshold", "ior", "occlusion")
    known.update(dict.fromkeys((*numbers, "displacement"), types.Float))
    for name, value in kept.items():
        if name in known:
            surface.CreateInput(name, known[name]).Set(value)


def _write_texture(stage: Any, prim_path: str, look: Appearance, file: str) -> Any:
    Sdf, UsdShade = library("Sdf"), library("UsdShade")
    types = Sdf.ValueTypeNames
    reader = UsdShade.Shader.Define(stage, f"{prim_path}/uv")
    reader.CreateIdAttr("UsdPrimvarReader_float2")
    reader.CreateInput("varname", types.String).Set("st")
    texture = UsdShade.Shader.Define(stage, f"{prim_path}/texture")
    texture.CreateIdAttr("UsdUVTexture")
    texture.CreateInput("file", types.Asset).Set(Sdf.AssetPath(file))
    texture.CreateInput("st", types.Float2).ConnectToSource(reader.ConnectableAPI(), "result")
    texture.CreateInput("scale", types.Float4).Set((*map(float, look.color[:3]), 1.0))
    texture.CreateInput("sourceColorSpace", types.Token).Set("sRGB")
    for side in ("wrapS", "wrapT"):
        texture.CreateInput(side, types.Token).Set("repeat")
    reader.CreateOutput("result", types.Float2)
    texture.CreateOutput("rgb", types.Float3)
    return texture


def _write_image(path: Path, image: Image, files: dict[int, str]) -> str:
    """The asset path of a picture written beside `path`; one that several looks share is written once."""
    if id(image) in files:
        return files[id(image)]
    taken = {Path(written).stem.lower() for written in files.values()}
    folder = path.parent / f"{file_stem(path.name)}_textures"
    folder.mkdir(exist_ok=True)
    target = folder / picture_name(image, taken)
    target.write_bytes(image.data)
    files[id(image)] = f"./{folder.name}/{target.name}"
    return files[id(image)]

"""KHR_draco_mesh_compression: primitives whose attributes and faces are packed by Google's Draco.

DracoPy decodes them, where it is installed (the extra "draco"). What comes out takes the place of the accessors that
the primitive refers to, which are empty in such files.
"""

from __future__ import annotations

import numpy as np

from pliant.io.gltf.checked_json import Entry
from pliant.io.gltf.data import GltfDocument

DRACO = "KHR_draco_mesh_compression"


def unpack(doc: GltfDocument, primitive: Entry) -> None:
    """Fill the accessors of a primitive, if it is packed."""
    extensions = primitive.entry("extensions")
    if DRACO not in extensions:
        return
    accessors, attributes = len(doc.table("accessors")), primitive.entry("attributes")
    if "bufferView" in doc.table("accessors")[attributes.needed_index("POSITION", accessors, "accessor")]:
        return  # the file has both
    try:
        import DracoPy
    except ImportError:
        remedy = 'pip install "pliant[draco]", or export again without compression'
        raise primitive.error(f"is compressed with Draco; {remedy}") from None
    packed = extensions.entry(DRACO)
    data, _ = doc.view(packed.needed_index("bufferView", len(doc.table("bufferViews")), "bufferView"))
    try:
        mesh = DracoPy.decode(bytes(data))
    except Exception as error:  # its own kinds, and those of what it is made with
        raise primitive.error(f"its Draco data cannot be read ({str(error).splitlines()[0]:.80})") from error
    for name in packed.entry("attributes").value:
        number = packed.entry("attributes").whole(name)
        found = next((one for one in mesh.attributes if one["unique_id"] == number), None)
        if found is None:
            raise primitive.error(f"its Draco data has no attribute {number}, which is its {name}")
        doc.fill(attributes.needed_index(name, accessors, "accessor"), np.asarray(found["data"]))
    faces = getattr(mesh, "faces", None)
    if "indices" in primitive and faces is not None:
        doc.fill(primitive.needed_index("indices", accessors, "accessor"), np.asarray(faces).reshape(-1, 1))

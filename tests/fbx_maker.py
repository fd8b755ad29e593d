"""FBX files in text, as small as they come: a strip of squares on two bones, with a blend shape and a take."""

from __future__ import annotations

import numpy as np

SECOND = 46186158000
"""Ticks of FBX."""


def _array(values) -> str:
    values = np.asarray(values).ravel().tolist()
    return f"*{len(values)} {{ a: {','.join(map(repr, values))} }}"


def _property(name, kind, *values) -> str:
    return f'P: "{name}", "{kind}", "", "A"{"".join(f", {value}" for value in values)}'


def _vector(name, values) -> str:
    return _property(name, name, *values)


def _matrix(position) -> str:
    """By columns."""
    full = np.eye(4)
    full[3, :3] = position
    return _array(full)


def strip_fbx(*, up=1, unit=1.0, fps_mode=6, frames=11, angle=90.0, settings="") -> str:
    """A strip from x = 0 to 4, bones at 0 and 2; the second turns about z by an angle, "tall" rises to 1.

    up: 1 for y, 2 for z. unit: centimetres. fps_mode: of FBX; 6 is 30 a second.
    """
    x = np.repeat(np.arange(5.0), 2)
    points = np.column_stack([x, np.tile([0.0, 1.0], 5), np.zeros(10)])
    faces = [[2 * k, 2 * k + 2, 2 * k + 3, -(2 * k + 1) - 1] for k in range(4)]
    times = [0, (frames - 1) * SECOND // 30]
    front, front_sign = {1: (2, 1), 2: (1, -1)}[up]
    clusters = ""
    for number, (rows, at) in enumerate(((np.flatnonzero(x < 2), 0.0), (np.flatnonzero(x >= 2), 2.0))):
        clusters += f"""
    Deformer: {40 + number}, "SubDeformer::c{number}", "Cluster" {{
        Version: 100
        Indexes: {_array(rows)}
        Weights: {_array(np.ones(len(rows)))}
        Transform: {_matrix((-at, 0, 0))}
        TransformLink: {_matrix((at, 0, 0))}
    }}"""
    curves = "".join(
        f"""
    AnimationCurve: {number}, "AnimCurve::", "" {{
        Default: 0
        KeyVer: 4009
        KeyTime: {_array(times)}
        KeyValueFloat: {_array([0.0, end])}
        KeyAttrFlags: *1 {{ a: 4 }}
        KeyAttrDataFloat: *4 {{ a: 0,0,0,0 }}
        KeyAttrRefCount: *1 {{ a: 2 }}
    }}"""
        for number, end in ((72, angle), (73, 100.0))
    )
    return f"""; FBX 7.4.0 project file
FBXHeaderExtension:  {{
    FBXHeaderVersion: 1003
    FBXVersion: 7400
    Creator: "pliant's tests"
}}
GlobalSettings:  {{
    Version: 1000
    Properties70:  {{
        {_property("UpAxis", "int", up)}
        {_property("UpAxisSign", "int", 1)}
        {_property("FrontAxis", "int", front)}
        {_property("FrontAxisSign", "int", front_sign)}
        {_property("CoordAxis", "int", 0)}
        {_property("CoordAxisSign", "int", 1)}
        {_property("UnitScaleFactor", "double", unit)}
        {_property("TimeMode", "enum", fps_mode)}
        {settings}
    }}
}}
Objects:  {{
    Geometry: 10, "Geometry::strip", "Mesh" {{
        Vertices: {_array(points)}
        PolygonVertexIndex: {_array(faces)}
        LayerElementUV: 0 {{
            Version: 101
            Name: "map"
            MappingInformationType: "ByPolygonVertex"
            ReferenceInformationType: "Direct"
            UV: {_array(np.tile([0.0, 0, 1, 0, 1, 1, 0, 1], 4))}
        }}
        LayerElementMaterial: 0 {{
            Version: 101
            Name: ""
            MappingInformationType: "AllSame"
            ReferenceInformationType: "IndexToDirect"
            Materials: *1 {{ a: 0 }}
        }}
        Layer: 0 {{
            Version: 100
            LayerElement:  {{
                Type: "LayerElementUV"
                TypedIndex: 0
            }}
            LayerElement:  {{
                Type: "LayerElementMaterial"
                TypedIndex: 0
            }}
        }}
    }}
    Geometry: 11, "Geometry::tall", "Shape" {{
        Version: 100
        Indexes: {_array([1, 3])}
        Vertices: {_array([[0.0, 0.5, 0.0], [0.0, 0.5, 0.0]])}
    }}
    Model: 20, "Model::Strip", "Mesh" {{
        Version: 232
        Properties70:  {{
        }}
    }}
    Model: 21, "Model::Hip", "LimbNode" {{
        Version: 232
        Properties70:  {{
        }}
    }}
    Model: 22, "Model::Knee", "LimbNode" {{
        Version: 232
        Properties70:  {{
            {_vector("Lcl Translation", (2, 0, 0))}
        }}
    }}
    NodeAttribute: 31, "NodeAttribute::Hip", "LimbNode" {{
        TypeFlags: "Skeleton"
    }}
    NodeAttribute: 32, "NodeAttribute::Knee", "LimbNode" {{
        TypeFlags: "Skeleton"
    }}
    Material: 35, "Material::Skin", "" {{
        Version: 102
        ShadingModel: "lambert"
        Properties70:  {{
            {_property("DiffuseColor", "Color", 0.5, 0.25, 0.125)}
        }}
    }}
    Deformer: 39, "Deformer::skin", "Skin" {{
        Version: 101
    }}{clusters}
    Deformer: 50, "Deformer::shapes", "BlendShape" {{
        Version: 100
    }}
    Deformer: 51, "SubDeformer::shapes.tall", "BlendShapeChannel" {{
        Version: 100
        DeformPercent: 0
        FullWeights: *1 {{ a: 100 }}
    }}
    AnimationStack: 60, "AnimStack::Rig|Bend", "" {{
        Properties70:  {{
            P: "LocalStop", "KTime", "Time", "",{times[1]}
            P: "ReferenceStop", "KTime", "Time", "",{times[1]}
        }}
    }}
    AnimationLayer: 61, "AnimLayer::base", "" {{
    }}
    AnimationCurveNode: 70, "AnimCurveNode::R", "" {{
        Properties70:  {{
            {_property("d|X", "Number", 0)}
            {_property("d|Y", "Number", 0)}
            {_property("d|Z", "Number", 0)}
        }}
    }}
    AnimationCurveNode: 71, "AnimCurveNode::DeformPercent", "" {{
        Properties70:  {{
            {_property("d|DeformPercent", "Number", 0)}
        }}
    }}{curves}
}}
Connections:  {{
    C: "OO",20,0
    C: "OO",21,0
    C: "OO",22,21
    C: "OO",10,20
    C: "OO",35,20
    C: "OO",31,21
    C: "OO",32,22
    C: "OO",39,10
    C: "OO",40,39
    C: "OO",41,39
    C: "OO",21,40
    C: "OO",22,41
    C: "OO",50,10
    C: "OO",51,50
    C: "OO",11,51
    C: "OO",61,60
    C: "OO",70,61
    C: "OO",71,61
    C: "OP",70,22, "Lcl Rotation"
    C: "OP",71,51, "DeformPercent"
    C: "OP",72,70, "d|Z"
    C: "OP",73,71, "d|DeformPercent"
}}
"""

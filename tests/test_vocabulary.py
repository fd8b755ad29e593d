"""Names in the field's words, each class and constant defined once (the words are listed in `vocabulary`)."""

from __future__ import annotations

from vocabulary import defined_twice, files, private_words

KEPT = {
    "contact/mesh_obstacle.py": {"turn"},
    "contact/obstacles.py": {"turn"},
    "contact/solids.py": {"turn"},
    "core/errors.py": {"place"},
    "core/skeleton.py": {"turns"},
    "engines/blend/blendshapes.py": {"still"},
    "engines/simulate/rod.py": {"places", "turns"},
    "engines/transfer/app/posed_scene.py": {"turn"},
    "engines/transfer/app/scene.py": {"held"},
    "engines/transfer/deformation_transfer.py": {"held"},
    "engines/transfer/plan.py": {"held", "turn"},
    "engines/transfer/rig.py": {"places"},
    "render/movie.py": {"turn"},
}
"""Public names and scene keys that stay for compatibility, by file."""


def test_no_identifier_uses_a_word_of_our_own() -> None:
    wrong = []
    for path in files():
        for entry in private_words(path):
            file, _, rest = entry.split(":", 2)
            if rest.split()[0] not in KEPT.get(file, set()):
                wrong.append(entry)
    assert wrong == []


def test_every_class_and_constant_is_defined_once() -> None:
    assert set(defined_twice()) <= {"Sphere"}  # pliant.Sphere, a region, and pliant.contact.Sphere are public names

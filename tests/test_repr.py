"""What values say of themselves fits on a line, however large they are."""

import pytest

from pliant import gallery


@pytest.mark.parametrize(
    "value",
    [
        gallery.bar(500),
        gallery.bar(500).base,
        gallery.robot(1000).uvs,
        gallery.robot(1000).labels["material"],
        next(iter(gallery.robot(1000).appearances.values())),
        gallery.animal_skeleton(),
        gallery.animal_gallop(),
        gallery.tets(600),
        gallery.cloud(600),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_short_line(value):
    assert len(repr(value)) < 200
    assert "\n" not in repr(value)
    assert "array" not in repr(value)

"""What every test shares: the real data's folder, and built-in meshes to read and write."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The real meshes, rigs and motions; tests that need them skip where they are absent."""
    if not DATA.is_dir():
        pytest.skip("the real data (../shared/data) is not here")
    return DATA

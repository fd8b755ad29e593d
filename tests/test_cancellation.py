"""Solves that are stopped in the middle, in every engine, in and out of contact; a solve afterwards is as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pliant.app.scene import scene_from
from pliant.core.cancellation import cancelled_by, check_cancelled
from test_studio_history import BAR, HAND, TENTACLE

SWINGING = {key: value for key, value in TENTACLE.items() if key != "static"}
SCENES: dict[str, dict[str, Any]] = {
    "blend": HAND | {"weights": [{"fist": 0.4}]},
    "blend in contact": HAND | {"weights": [{"fist": 0.4}], "obstacles": [{"what": "sphere:0,0.09,0.04,0.03"}]},
    "transfer": BAR | {"positions": [*BAR["positions"][:2], {"at": [0.42, 0.59, 0.05], "to": [0.3, 0.8, 0.2]}]},
    "simulate at rest": TENTACLE | {"gravity": 9.81, "material": {"young": 5e3}, "stretch_limit": 0.1},
    "simulate": SWINGING | {"hold": 0.1, "gravity": 9.81},
    "simulate in contact": SWINGING | {"hold": 0.1, "obstacles": [{"what": "sphere:0.3,2,0,0.3"}]},
}


class EnoughError(Exception):
    """Ends a solve."""


@pytest.mark.parametrize("what", SCENES)
@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")
def test_a_solve_ends_in_the_middle_and_leaves_nothing_behind(what: str) -> None:
    scene, calls = scene_from(SCENES[what], Path()), [0]
    last = np.inf

    def check() -> None:
        calls[0] += 1
        if calls[0] > last:
            raise EnoughError

    with cancelled_by(check):
        whole = scene.run().clip
    count = calls[0]
    assert count > 2 * len(whole), "more than once a frame"
    last, calls[0] = count // 2, 0
    with pytest.raises(EnoughError), cancelled_by(check):
        scene.run()
    check_cancelled()  # it holds inside alone
    np.testing.assert_array_equal(scene.run().clip.points, whole.points)

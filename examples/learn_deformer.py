"""A small network learns a rig's shapes from its sliders: what linear blending lacks, on a set of ``pliant sample``.

pliant sample rig.glb --poses 4096 -o set.zarr; python examples/learn_deformer.py set.zarr
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import zarr


def main(path: str = "set.zarr", epochs: int = 200, width: int = 128) -> dict[str, float]:
    torch.manual_seed(0)
    data = zarr.open_group(path, mode="r")
    train, test = (np.flatnonzero((data["split"][:] == k) & data["converged"][:]) for k in (0, 2))
    x, y = (torch.from_numpy(data[name][:]) for name in ("weights", "points"))
    y = (y - torch.from_numpy(data["rest"][:])).flatten(1) / np.linalg.norm(np.ptp(data["rest"][:], axis=0))
    linear = torch.linalg.lstsq(x[train], y[train]).solution  # the best that sliders alone can do
    left = y - x @ linear
    basis = torch.linalg.svd(left[train], full_matrices=False).Vh[: min(64, len(train))]  # (components, 3 vertices)
    scale = (left[train] @ basis.T).std()
    net = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], width), torch.nn.SiLU(), torch.nn.Linear(width, width), torch.nn.SiLU(),
        torch.nn.Linear(width, len(basis)),
    )  # fmt: skip
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    target = left @ basis.T / scale
    for _ in range(epochs):
        for batch in torch.tensor(train)[torch.randperm(len(train))].split(64):
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(net(x[batch]), target[batch]).backward()
            optimiser.step()
        schedule.step()
    with torch.no_grad():
        learned = left[test] - scale * net(x[test]) @ basis
    errors = {
        name: d.reshape(len(test), -1, 3).norm(dim=2) for name, d in (("linear", left[test]), ("network", learned))
    }
    found = {f"{name} {how}": float(getattr(e, how)()) for name, e in errors.items() for how in ("mean", "max")}
    print(", ".join(f"{name} {value:.3%}" for name, value in found.items()), "of the diagonal, on poses not seen")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""Line searches: when a step along a descent direction is short enough."""

SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant: the share of the decrease predicted by the slope that a step has to reach."""

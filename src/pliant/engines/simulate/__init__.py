"""Simulation (Song et al. 2006): flesh that follows a skeleton, without a volume mesh."""

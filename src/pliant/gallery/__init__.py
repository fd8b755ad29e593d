"""Procedural shapes, poses, skeletons and cages that ship with pliant."""

"""Simulation as users reach it: scene, command, report and the studio's panel."""

"""The plan of a body: how it stands, which limbs it has, and which limbs of two bodies correspond."""

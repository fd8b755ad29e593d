from .clicks import click_joint as click_joint
from .curve_skeleton import extract_skeleton as extract_skeleton

"""Transfer (Chen et al. 2010): the motion of one thing on another, in a cage."""

"""Physical blendshapes (Ma et al. 2011): poses of one mesh, blended as a body of springs."""

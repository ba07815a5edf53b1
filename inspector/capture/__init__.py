"""The capture: the file itself, its rotation, what is beside it, and merging several."""

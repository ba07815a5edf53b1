"""Records become runs: which record belongs to which run, and what a run is."""

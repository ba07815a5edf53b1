"""Runs of agents: which record belongs to which run, and what a run contains."""

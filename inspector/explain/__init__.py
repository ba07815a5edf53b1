"""Explanations of one agent or one run: its bootstrap, trust, files, resources, connections."""

"""One agent or one run explained: its bootstrap, trust, files, resources, connections."""

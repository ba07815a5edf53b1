"""The terminal inspector: read, search and play back a capture. Only ``cli`` imports it."""

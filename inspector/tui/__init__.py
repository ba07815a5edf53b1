"""The terminal inspector: a capture to read, to search and to play. A leaf: nothing imports it but ``cli``."""

"""The command ``puppet-inspector``: a module per command, and what several of them need."""

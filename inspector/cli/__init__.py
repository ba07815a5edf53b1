"""The command ``puppet-inspector``: one module per command, and the code that several commands share."""

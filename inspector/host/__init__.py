"""This host's Puppet: its settings, its keys, and giving up root."""

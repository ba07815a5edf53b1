"""This host's Puppet settings, keys and CRLs, and dropping root privileges."""

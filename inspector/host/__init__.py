"""This host's Puppet settings and keys, and dropping root privileges."""

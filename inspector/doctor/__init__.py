"""Read-only checks of Puppet directories, live masters and proxy certificates."""

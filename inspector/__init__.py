"""puppet-inspector: see what a Puppet or OpenVox agent and its master really say to each other."""

__version__ = "0.1.0"

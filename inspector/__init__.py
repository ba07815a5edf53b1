"""puppet-inspector: see what a Puppet or OpenVox agent and its master really say to each other."""

__version__ = "1.0.0"

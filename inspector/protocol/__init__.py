"""Puppet's protocol on the wire: endpoints, bodies, certificates. Pure functions: no I/O, no clock, no rules."""

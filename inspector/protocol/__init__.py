"""What Puppet says on the wire, pure: endpoints, bodies, certificates. No I/O, no clock, no opinion."""

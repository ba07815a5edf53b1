"""Both ends of the wire, honest or broken on purpose: a CA, a master and agents, all on loopback.

For the demonstration and for tests; no Puppet is needed. The proxy between them is not part of it.
"""

from inspector.lab.faults import FAULTS, HEALTHY, Fault
from inspector.lab.scene import Lab

__all__ = ["FAULTS", "HEALTHY", "Fault", "Lab"]

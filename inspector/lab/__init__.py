"""A CA, a master and agents on loopback, healthy or broken on purpose.

For ``demo`` and for tests; needs no Puppet. The proxy between agents and master is not part of the lab.
"""

from inspector.lab.faults import FAULTS, HEALED, HEALTHY, Fault
from inspector.lab.loop import LabLoop
from inspector.lab.scene import Lab

__all__ = ["FAULTS", "HEALED", "HEALTHY", "Fault", "Lab", "LabLoop"]

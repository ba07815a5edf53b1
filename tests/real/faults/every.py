"""Every fault, and those that the tests play."""

from __future__ import annotations

from tests.real.faults import agents, bootstrap, catalogs, connections, trust

ALL = (*bootstrap.FAULTS, *trust.FAULTS, *agents.FAULTS, *connections.FAULTS, *catalogs.FAULTS)
_FIRST = {fault.kind: fault for fault in ALL[::-1]}
_QUICK = {fault.kind: fault for fault in ALL[::-1] if not fault.restarts}
EXAMPLES = tuple((_FIRST | _QUICK).values())
"""The first of each kind, where there is one without a restart of the master."""

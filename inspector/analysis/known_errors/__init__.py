"""Messages of agents, masters and their tools, with causes, a check and a fix, for ``puppet-inspector explain "..."``.

The texts are those of Puppet and OpenVox. Each module has those about one subject.
"""

from __future__ import annotations

from inspector.analysis.known_errors import (
    agents,
    authorities,
    catalogs,
    certificates,
    connections,
    manifests,
    node_data,
    resources,
    trust,
)

MESSAGES = (
    *certificates.MESSAGES,
    *trust.MESSAGES,
    *connections.MESSAGES,
    *manifests.MESSAGES,
    *node_data.MESSAGES,
    *catalogs.MESSAGES,
    *resources.MESSAGES,
    *agents.MESSAGES,
    *authorities.MESSAGES,
)
"""Every known message."""

"""What to do before a certificate or a CRL is refused: the fixes of the rules, which were tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.fleet.trust.abilities import numbers
from inspector.fleet.trust.effects import Kind, Verdict
from inspector.rules.fixes import advice, group
from inspector.rules.puppet_commands import FixContext, fill

if TYPE_CHECKING:
    from inspector.fleet.trust.inventory import Inventory, Node
    from inspector.fleet.trust.radius import Group
    from inspector.rules.fixes import Fix

_ENROL = (group("enrol"),)
_STEPS: dict[Kind, Fix] = {
    Kind.NODE_ENDED: _ENROL,
    Kind.NODE_REVOKED: _ENROL,
    Kind.MASTER_ENDED: (group("renew_master"),),
    Kind.MASTER_REVOKED: (group("renew_master"),),
    Kind.CA_ENDED: (
        advice("give the CA a new certificate for the same key, and put it into ca_crt.pem"),
        advice("bring the new bundle to every agent: agents of 8.1 and later fetch it every day, to others copy "
               "it as certs/ca.pem"),
    ),
    Kind.CA_REVOKED: (advice("set up a new CA; every node below it enrols anew"), group("enrol_ca")),
    Kind.CRL_ENDED: (group("renew_crl"),),
    Kind.CRL_MISSING: (group("renew_crl"),),
}  # fmt: skip


def steps(found: Group, inventory: Inventory) -> Fix:
    """Return what prevents that the nodes of a group break; empty if they do not."""
    if found.reason.verdict is Verdict.WORKS:
        return ()
    nodes = [affected.node for affected in found.nodes]
    only = nodes[0] if len(nodes) == 1 else None
    master = inventory.certificates.get(found.reason.certificate or "")
    return fill(
        _STEPS[found.reason.kind],
        FixContext(
            name=only.certname if only else None,
            host=nodes[0].server,
            master=master.certname if master else None,
            names=tuple(dict.fromkeys(master.names)) if master else (),
            early_ca=_early(nodes[0].master_version),
            early_node=_early_node(nodes),
        ),
    )


def _early(version: str | None) -> bool | None:
    """Whether a version is 5 or earlier; None: it is not known."""
    return None if numbers(version) == (0, 0) else numbers(version) < (6, 0)


def _early_node(nodes: list[Node]) -> bool | None:
    """The same of the nodes; None also if some are and some are not."""
    found = {_early(node.agent_version) for node in nodes}
    return found.pop() if len(found) == 1 else None

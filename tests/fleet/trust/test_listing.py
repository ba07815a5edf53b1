"""All certificates and CRLs, by what ends first."""

from __future__ import annotations

from inspector.fleet.trust.listing import entries
from tests.support.trust import DAY, NOW, certificate, crl, inventory, node

ROOT = certificate("root")
OLD = certificate("web", ROOT, serial=2, roles=("agent",), not_before=NOW - 900 * DAY, not_after=NOW - DAY / 2)
NEW = certificate("web", ROOT, serial=3, roles=("agent", "issued"), not_after=NOW + 90 * DAY)
BOTH = certificate("master", ROOT, serial=4, roles=("agent", "master"), not_after=NOW + 30.5 * DAY)


def test_what_ends_first_is_first() -> None:
    found = entries(inventory([ROOT, OLD, NEW, BOTH], [], crl(ROOT, days=7), crl(BOTH, days=None)))
    assert [(one.role, one.name, one.serial, one.days(NOW), one.replaced) for one in found] == [
        ("agent", "web", "0x0002", -1, True),
        ("CRL", "CN=root", "7", 7, False),
        ("master and agent", "master", "0x0004", 30, False),
        ("agent", "web", "0x0003", 90, False),
        ("CA", "root", "0x0001", 1000, False),
        ("CRL", "CN=master", "7", None, False),
    ]


def test_an_older_one_that_a_node_uses_was_not_replaced() -> None:
    """Two hosts with one name."""
    found = entries(inventory([ROOT, OLD, NEW], [node("web", OLD)]))
    assert [one.replaced for one in found if one.name == "web"] == [False, False]

"""What tables say of nodes, their certificates and their masters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspector.fleet.directory import TableDirectory
from inspector.fleet.tables import CertificateRow, CrlRow, ExchangeRow, RunRow
from inspector.fleet.trust import inventory
from tests.support.conversations import CA, ROOT, Agent, together
from tests.support.made_tables import CAPTURE, tables
from tests.support.tables_of import of_records, shown
from tests.support.trust import NOW

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.tables import TableRow
    from inspector.fleet.trust.inventory import Inventory, Node

HOUR = 3600.0


def micros(hours: float) -> int:
    return round((NOW + hours * HOUR) * 1e6)


def certificate(fingerprint: str, serial: str = "0x0004", hours: float = 0, **given: Any) -> CertificateRow:
    values = {"role": "agent", "issuer": "CN=ca", "issuer_key": "id"} | given
    return CertificateRow(capture=CAPTURE, time=micros(hours), last=micros(hours), fingerprint=fingerprint,
                          serial=serial, **values)  # fmt: skip


def run(number: int, hours: float, own: str | None, master: str | None = "m", **given: Any) -> RunRow:
    values = {"certname": "web", "server": "puppet", "address": "192.0.2.1", "outcome": "complete"} | given
    return RunRow(capture=CAPTURE, run=number, time=micros(hours), certificate=own, master_certificate=master, **values)


def read(folder: Path, *rows: TableRow) -> Inventory:
    with shown(TableDirectory.open(tables(folder, *rows))) as connection:
        return inventory.read(connection)


def only(found: Inventory) -> Node:
    (node,) = found.nodes
    return node


@pytest.mark.slow
def test_of_records(tmp_path: Path) -> None:
    """From traffic: bootstrap, CA, CRL and a run."""
    agent = Agent(version="8.10.0").bootstrap().run()
    with shown(of_records(tmp_path, together(agent))) as connection:
        found = inventory.read(connection)
    node = only(found)
    (own,) = node.certificates
    assert (node.certname, node.agent_version, node.downloads) == ("a.example", "8.10.0", 1)
    assert {"agent", "issued"} <= {*found.certificates[own].roles}
    assert {one.serial for one in found.certificates.values() if "ca" in one.roles} == {1, 2}
    assert {crl.issuer for crl in found.crls} == {f"CN={name}" for name in ("Test CA", "Test Root CA")}
    assert CA.certificate.serial_number == 2
    assert ROOT.certificate.serial_number == 1


def test_a_certificate_that_was_renewed(tmp_path: Path) -> None:
    found = read(tmp_path, certificate("old"), certificate("new", "0x0005"), certificate("m", role="master"),
                 run(1, 0, "old"), run(2, 1, "old"), run(3, 2, "new"), run(4, 3, None))  # fmt: skip
    node = only(found)
    assert (node.certificates, node.replaced) == (("new",), ("old",))
    assert found.certificates["new"].serial == 5
    assert node.last == NOW + 2 * HOUR


def test_two_hosts_that_take_turns(tmp_path: Path) -> None:
    runs = [run(number, number, ("one", "two")[number % 2], address=f"192.0.2.{number % 2}") for number in range(1, 5)]
    node = only(read(tmp_path, certificate("one"), certificate("two"), *runs))
    assert (node.certificates, node.replaced, node.addresses) == (("one", "two"), (), 2)


def test_the_same_name_of_two_cas_is_two_nodes(tmp_path: Path) -> None:
    found = read(
        tmp_path, certificate("one"), certificate("two", issuer_key="other"), run(1, 0, "one"), run(2, 1, "two"),
        run(3, 2, "one"),
    )  # fmt: skip
    assert [node.certificates for node in found.nodes] == [("one",), ("two",)]


def test_a_node_that_has_left_a_ca_is_one(tmp_path: Path) -> None:
    rows = [certificate(name, issuer_key=f"id of {name}") for name in ("one", "two", "three")]
    runs = [run(number, number, name) for number, name in enumerate(("one", "one", "two", "three", "three"), 1)]
    node = only(read(tmp_path, *rows, *runs))
    assert (node.certificates, sorted(node.replaced)) == (("three",), ["one", "two"])


@pytest.mark.slow
def test_a_masters_certificate_that_was_replaced_is_not_used_whoever_answered_last(tmp_path: Path) -> None:
    rows = [certificate("web", subject="CN=web"), certificate("a", subject="CN=a", role="master"),
            *(certificate(name, subject="CN=b", role="master") for name in ("b-old", "b-new"))]  # fmt: skip
    for number, last in enumerate(("a", "b-new")):
        answers = ("a", "b-old", "a", "b-new", "a", "b-new", last)
        runs = [run(at, at, "web", master) for at, master in enumerate(answers, 1)]
        folder = tmp_path / str(number)
        folder.mkdir()
        assert only(read(folder, *rows, *runs)).masters == ("a", "b-new")


def test_masters_behind_a_name_and_one_that_was_replaced(tmp_path: Path) -> None:
    """All masters that answer to the name that a node calls are its masters, whoever answered it last."""
    rows = [certificate(name) for name in ("web", "db", "far")]
    runs = [
        run(1, 0, "web", "gone"), run(2, 1, "web", "a"), run(3, 2, "db", "b", certname="db"), run(4, 3, "web", "b"),
        run(5, 4, "db", "a", certname="db"), run(6, 4, "far", "c", certname="far", server="elsewhere"),
    ]  # fmt: skip
    found = read(tmp_path, *rows, *runs)
    assert {node.certname: node.masters for node in found.nodes} == {"db": ("a", "b"), "web": ("a", "b"), "far": ("c",)}


def test_what_is_newest(tmp_path: Path) -> None:
    """Versions, clock, downloads of the CRL; other programs with the node's certificate are no agents."""
    runs = [
        run(1, 0, "web", agent_version="7.23.0", master_version="7.9.5", duration=60.0),
        run(2, 1, "web", agent_version="8.10.0", agent_clock=7200.0, outcome="failed"),
        run(3, 2, "web", agent_version="1.0.0", tool="curl"),
    ]
    fetched = [
        ExchangeRow(capture=CAPTURE, run=number, certname="web", seq=seq, time=micros(0), endpoint="crl", status=status)
        for seq, (number, status) in enumerate([(1, 200), (1, 200), (2, 304), (3, 500)])
    ]
    node = only(read(tmp_path, certificate("web"), *runs, *fetched))
    assert (node.agent_version, node.master_version, node.clock, node.downloads) == ("8.10.0", "7.9.5", 7200.0, 2)
    assert (node.last, node.worked) == (NOW + HOUR, NOW + 60)


def test_of_the_crls_of_a_ca_the_latest(tmp_path: Path) -> None:
    def row(fingerprint: str, made: float, *serials: str, issuer_key: str = "id") -> CrlRow:
        return CrlRow(capture=CAPTURE, time=micros(9), last=micros(9), fingerprint=fingerprint, issuer="CN=ca",
                      issuer_key=issuer_key, last_update=micros(made), next_update=None, serials=list(serials),
                      revoked=len(serials))  # fmt: skip

    def numbered(number: int, *serials: str) -> CrlRow:
        made = row(f"{number}", 5, *serials, issuer_key="same second")
        made.number = f"{number}"
        return made

    found = read(tmp_path, row("new", 2, "0x0004", "0x00FF"), row("old", 1), row("other", 0, issuer_key="of another"),
                 numbered(9), numbered(10, "0x0001"))  # fmt: skip
    assert [(crl.issuer_key, sorted(crl.serials), crl.next_update) for crl in found.crls] == [
        ("id", [4, 255], None), ("of another", [], None), ("same second", [1], None),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rows", [(), (run(1, 0, "unknown"),), (run(1, 0, None),)])
def test_without_certificates(tmp_path: Path, rows: tuple[RunRow, ...]) -> None:
    assert read(tmp_path, *rows).nodes == ()

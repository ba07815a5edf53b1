"""Two CAs compared: what NEW answers differently, of which nodes, and how it is corrected."""

from __future__ import annotations

import datetime
import shlex
import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.doctor import ca_view, migration, puppet_dir
from inspector.host import crls, pki
from inspector.model import Severity
from tests.support.ca_directories import ROOT, MadeCa

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.doctor.ca_view import CaView
    from inspector.doctor.migration import Difference

NODES = ("master.example", "node1.example", "node2.example", "node3.example")


@pytest.fixture
def old() -> MadeCa:
    ca = MadeCa()
    for name in NODES:
        ca.issue(name)
    return ca


def differences(tmp_path: Path, old: MadeCa | CaView, new: MadeCa | CaView, now: float = 0) -> list[Difference]:
    """What differs, the directories written to ``old`` and ``new``."""
    views = [
        ca_view.of_directory(one.write(tmp_path / name)) if isinstance(one, MadeCa) else one
        for name, one in (("old", old), ("new", new))
    ]
    found = migration.compare(views[0], views[1], now or time.time())
    return list(found.differences)


def only(found: list[Difference]) -> tuple[Severity, str, tuple[str, ...]]:
    (one,) = found
    return one.diagnosis.severity, one.diagnosis.title, one.nodes


def titles(found: list[Difference]) -> list[str]:
    return [f"{one.diagnosis.severity} {one.diagnosis.title}" for one in found]


def executed(fix: tuple[object, ...], *, but: str = "systemctl") -> None:
    """Execute the commands of a fix, without those that need a service."""
    for step in fix:
        command = getattr(step, "command", "")
        if command and but not in command:
            subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True)


def test_a_copy_has_no_difference(tmp_path: Path, old: MadeCa) -> None:
    old.request("node9.example")
    old.revoke("node3.example")
    assert differences(tmp_path, old, old.copy()) == []


def of_openvox(tmp_path: Path, old: MadeCa, new: MadeCa) -> list[Difference]:
    """What differs if NEW is an openvox-ca."""
    views = (
        ca_view.of_directory(old.write(tmp_path / "old")),
        ca_view.of_directory(new.write(tmp_path / "new", openvox=True)),
    )
    found = migration.compare(views[0], views[1], time.time()).differences
    return [one for one in found if not one.diagnosis.title.startswith("NEW: ")]


def test_an_openvox_ca_goes_on(tmp_path: Path, old: MadeCa) -> None:
    """Its inventory is written otherwise, and its file with a serial number is not used."""
    new = old.copy()
    new.serial = 1
    assert of_openvox(tmp_path, old, new) == []


def test_an_openvox_ca_is_corrected_with_its_own_commands(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    old.revoke("node3.example")
    del new.signed["node1.example"]
    new.inventory = [one for one in new.inventory if one.serial_number != 4]
    found = of_openvox(tmp_path, old, new)
    imported = "openvox-ca-ctl import-cert"
    for one, (title, command) in zip(found, (
        ("revoked nodes that NEW accepts again", "openvox-ca-ctl revoke --serial 6 --force"),
        ("nodes that NEW does not know", imported),
        ("NEW's inventory lacks certificates of OLD", imported),
    ), strict=True):  # fmt: skip
        assert one.diagnosis.title == title
        assert command in one.diagnosis.steps[-1].command


def test_an_openvox_ca_enrols_nodes_with_its_commands(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.revoke("node1.example")
    (found,) = of_openvox(tmp_path, old, new)
    assert "openvox-ca-ctl clean --certname node1.example" in [step.command for step in found.diagnosis.steps]


def test_another_openvox_ca(tmp_path: Path, old: MadeCa) -> None:
    new = MadeCa(authority=pki.make_ca("Puppet CA: other.example", ROOT, serial=2))
    command = of_openvox(tmp_path, old, new)[0].diagnosis.steps[1].command
    assert command.startswith(f"openvox-ca-ctl import --cadir {tmp_path}/new --cert-bundle {tmp_path}/old/ca_crt.pem ")


# -- what is revoked ---------------------------------------------------------------------------------------


def test_revoked_nodes_are_accepted_again(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    old.revoke("node1.example")
    old.clean("node2.example")
    found = differences(tmp_path, old, new)
    assert titles(found)[0] == "error revoked nodes that NEW accepts again"
    assert found[0].nodes == ("node1.example", "node2.example")
    assert "node2.example (serial number 0x0005)" in found[0].diagnosis.detail
    assert "node2.example" not in [
        name for one in found[1:] for name in one.nodes if "does not know" in one.diagnosis.title
    ]


def test_its_fix_joins_both_crls(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    old.revoke("node1.example")
    new.clean("node3.example")
    (found, *_) = differences(tmp_path, old, new)
    command = shlex.split(found.diagnosis.steps[-1].command)
    assert command[:3] == ["puppet-inspector", "fix", "new-crl"]
    assert command[-1] == "--execute"
    planned = crls.plan(tmp_path / "new", time.time(), tmp_path / "old/ca_crl.pem")
    crls.write(planned, time.time())
    after = ca_view.of_directory(tmp_path / "new")
    assert after.directory is not None
    assert after.directory.revoked == {4, 6}


def test_a_revoked_certificate_that_has_ended_is_nothing(tmp_path: Path, old: MadeCa) -> None:
    old.issue("short.example", lifetime=datetime.timedelta(days=10))
    new = old.copy()
    old.clean("short.example")
    new.signed.pop("short.example")
    new.number = old.number
    later = time.time() + 5 * 86400
    assert differences(tmp_path, old, new, later) == []


def test_an_older_crl(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    old.number = 7
    assert only(differences(tmp_path, old, new)) == (Severity.WARNING, "NEW's CRL is older", ())


def test_nodes_that_new_has_revoked_are_refused(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.revoke("node1.example")
    new.clean("node2.example")
    found = differences(tmp_path, old, new)
    assert only(found) == (Severity.ERROR, "nodes that NEW refuses", ("node1.example", "node2.example"))
    assert "2 nodes: node1.example, node2.example; it has revoked their certificates" in found[0].diagnosis.detail


def test_nodes_that_enrolled_again_are_not_called_refused(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.clean("node1.example")
    new.issue("node1.example", pki.new_key())
    found = differences(tmp_path, old, new)
    assert only(found) == (Severity.WARNING, "nodes that enrolled again on NEW", ("node1.example",))


# -- the CA -------------------------------------------------------------------------------------------------


def test_another_ca_of_the_same_name(tmp_path: Path, old: MadeCa) -> None:
    new = MadeCa(authority=pki.make_ca("Puppet CA: ca.example", ROOT, serial=2))
    for name in NODES[:2]:
        new.issue(name)
    found = differences(tmp_path, old, new)
    assert titles(found)[0] == "error NEW is another CA"
    assert found[0].nodes == NODES
    assert "not the same key" in found[0].diagnosis.detail
    assert not {"NEW gives serial numbers of OLD again", "nodes that NEW refuses"} & {
        one.diagnosis.title for one in found
    }


def test_its_fix_makes_a_copy(tmp_path: Path, old: MadeCa) -> None:
    new = MadeCa(authority=pki.make_ca("Puppet CA: other.example", ROOT, serial=2))
    found = differences(tmp_path, old, new)
    executed(found[0].diagnosis.steps[1:2])
    views = [ca_view.of_directory(tmp_path / name) for name in ("old", "new")]
    assert migration.compare(views[0], views[1], time.time()).differences == ()


def renewed(ca: MadeCa, serial: int) -> pki.Authority:
    """The CA with a new certificate for the same key."""
    before = ca.authority.certificate
    builder = x509.CertificateBuilder(
        issuer_name=before.issuer, subject_name=before.subject, public_key=before.public_key(), serial_number=serial,
        not_valid_before=before.not_valid_before_utc,
        not_valid_after=before.not_valid_after_utc + datetime.timedelta(days=30),
        extensions=list(before.extensions),
    )  # fmt: skip
    from cryptography.hazmat.primitives import hashes

    return pki.Authority(builder.sign(ROOT.key, hashes.SHA256()), ca.authority.key)


def test_a_renewed_ca_goes_on(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.authority = renewed(old, 2)
    assert only(differences(tmp_path, old, new)) == (
        Severity.WARNING, "NEW has another certificate of the same CA", (),
    )  # fmt: skip


def test_a_renewed_ca_with_another_serial_number_refuses_all(tmp_path: Path, old: MadeCa) -> None:
    """Puppet's certificates name the serial number of the certificate of their CA."""
    new = old.copy()
    new.authority = renewed(old, 77)
    new.issue("fresh.example")
    found = differences(tmp_path, old, new)
    assert titles(found) == [
        "error nodes that NEW refuses",
        "warning NEW has another certificate of the same CA",
        "warning certificates that agents of OLD refuse",
        "notice nodes that only NEW knows",
    ]
    assert found[0].nodes == NODES
    assert found[2].nodes == ("fresh.example",)


# -- what was issued ------------------------------------------------------------------------------------------


def test_serial_numbers_that_will_be_given_again(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.serial, new.inventory = 2, new.inventory[:1]
    found = differences(tmp_path, old, new)
    assert titles(found) == [
        "error NEW gives serial numbers of OLD again",
        "warning NEW's inventory lacks certificates of OLD",
    ]
    assert found[0].diagnosis.steps[1].command == f"echo 0007 > {tmp_path / 'new/serial'}"
    executed(found[0].diagnosis.steps)
    inventory = found[1]
    assert inventory.nodes == NODES[1:]
    executed(inventory.diagnosis.steps)
    views = [ca_view.of_directory(tmp_path / name) for name in ("old", "new")]
    assert migration.compare(views[0], views[1], time.time()).differences == ()


def test_serial_numbers_that_both_have_given(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    old.issue("theirs.example")
    new.issue("ours.example")
    found = differences(tmp_path, old, new)
    assert titles(found)[0] == "error serial numbers that OLD and NEW have both given"
    assert found[0].nodes == ("ours.example", "theirs.example")
    assert "0x0007 (theirs.example on OLD, ours.example on NEW)" in found[0].diagnosis.detail
    # To clean the one would revoke the other.
    commands = [step.command for step in found[0].diagnosis.steps]
    assert commands == [
        "", f"rm {tmp_path}/new/signed/<certname>.pem", "puppet ssl clean; puppet agent -t",
        "puppetserver ca sign --certname <certname>",
    ]  # fmt: skip


def test_an_inventory_alone_shows_it_too(tmp_path: Path, old: MadeCa) -> None:
    """Certificates of nodes that were removed are in the inventory only."""
    new = old.copy()
    old.issue("theirs.example")
    new.issue("ours.example")
    del old.signed["theirs.example"], new.signed["ours.example"]
    assert titles(differences(tmp_path, old, new)) == [
        "error serial numbers that OLD and NEW have both given",
        "warning NEW's inventory lacks certificates of OLD",
    ]


def test_another_way_to_write_dates_is_no_difference(tmp_path: Path, old: MadeCa) -> None:
    old.issue("removed.example")
    del old.signed["removed.example"]
    views = [ca_view.of_directory(old.write(tmp_path / "old"))]
    (old.write(tmp_path / "new") / "inventory.txt").write_text(
        (tmp_path / "old/inventory.txt").read_text().replace("UTC", "Z")
    )
    views.append(ca_view.of_directory(tmp_path / "new"))
    assert migration.compare(views[0], views[1], time.time()).differences == ()


def test_a_node_with_a_revoked_number_is_refused_from_the_first_day(tmp_path: Path, old: MadeCa) -> None:
    old.issue("gone.example")
    old.clean("gone.example")
    new = old.copy()
    new.serial, new.inventory, new.signed = 7, [], {}
    before = ca_view.of_directory(old.write(tmp_path / "before"))
    first = migration.compare(before, ca_view.of_directory(new.write(tmp_path / "next")), time.time())
    assert "and 1 of them is revoked: such a node is never accepted" in first.differences[0].diagnosis.detail
    new.issue("fresh.example")
    second = migration.compare(before, ca_view.of_directory(new.write(tmp_path / "after")), time.time())
    assert "refused from the first day: fresh.example" in second.differences[0].diagnosis.detail


def test_random_serial_numbers_do_not_collide(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.serial = 1 << 127
    new.issue("random.example")
    view = ca_view.of_directory(new.write(tmp_path / "random"))
    found = differences(tmp_path, old, replace(view, serial=None))
    assert titles(found) == ["notice nodes that only NEW knows"]


def test_nodes_that_new_does_not_know(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    del new.signed["node1.example"]
    found = differences(tmp_path, old, new)
    assert only(found) == (Severity.WARNING, "nodes that NEW does not know", ("node1.example",))
    executed(found[0].diagnosis.steps)
    assert (tmp_path / "new/signed/node1.example.pem").read_bytes() == (
        tmp_path / "old/signed/node1.example.pem"
    ).read_bytes()


def test_many_of_them(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.signed = {}
    found = differences(tmp_path, old, new)
    assert only(found)[2] == NODES
    executed(found[0].diagnosis.steps)
    assert len([*(tmp_path / "new/signed").iterdir()]) == len(NODES)


def test_other_certificates(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.issue("node1.example", pki.new_key())
    new.issue("node2.example")
    new.issue("node3.example", alt_names=("web.example",))
    key, same, *rest = differences(tmp_path, old, new)
    assert rest == []
    assert only([key]) == (Severity.WARNING, "nodes with another key on NEW", ("node1.example",))
    assert only([same]) == (
        Severity.WARNING, "nodes with another certificate on NEW", ("node2.example", "node3.example"),
    )  # fmt: skip
    assert "alternative names of NEW only: DNS:web.example" in same.diagnosis.detail


def test_a_renewal_with_the_same_content_is_a_notice(tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.issue("node2.example")
    assert only(differences(tmp_path, old, new))[0] is Severity.NOTICE


# -- requests and settings --------------------------------------------------------------------------------------


def test_requests(tmp_path: Path, old: MadeCa) -> None:
    for name in ("lost.example", "other.example", "signed.example"):
        old.request(name)
    new = old.copy()
    del new.requests["lost.example"]
    new.request("other.example", pki.new_key())
    del new.requests["signed.example"]
    new.issue("signed.example", pki.new_key())
    found = differences(tmp_path, old, new)
    assert {one.diagnosis.title: one.nodes for one in found} == {
        "signing requests for other keys": ("other.example",),
        "NEW has signed another key": ("signed.example",),
        "signing requests that wait on OLD only": ("lost.example",),
        "nodes that only NEW knows": ("signed.example",),
    }


def test_what_only_new_has_wrong(tmp_path: Path, old: MadeCa) -> None:
    old.write(tmp_path / "old")
    old.write(tmp_path / "new")
    for name in ("old", "new"):
        (tmp_path / name / "signed/odd.example.pem").write_text("garbage")
    (tmp_path / "new/ca_crl.pem").unlink()
    views = [ca_view.of_directory(tmp_path / name) for name in ("old", "new")]
    found = migration.compare(views[0], views[1], time.time()).differences
    shown = titles(list(found))
    assert "error NEW: half-initialised CA" in shown
    assert "error NEW lacks a CRL" in shown
    assert "warning OLD: signed/odd.example.pem is not a valid certificate" in shown
    assert not any("NEW: signed/odd" in title for title in shown)


# -- what is not known is no difference ---------------------------------------------------------------------------


def test_what_a_capture_does_not_show_is_no_difference(tmp_path: Path, old: MadeCa) -> None:
    full = ca_view.of_directory(old.write(tmp_path / "full"))
    some = dict(list(full.certificates.items())[:2])
    part = replace(
        full, kind="capture", certificates=some, requests={}, serial=None, inventory=(), crls=None,
        directory=None,
    )  # fmt: skip
    for before, after in ((full, part), (part, full)):
        found = migration.compare(before, after, time.time())
        assert found.differences == ()
        assert any("does not show its serial numbers" in sentence for sentence in found.unknown)


@pytest.mark.parametrize("hidden", ["signed", "inventory.txt", "ca_crl.pem", "ca_crt.pem", "serial"])
def test_what_cannot_be_read_is_no_difference(
    tmp_path: Path, old: MadeCa, hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user may not be root, who may read everything."""
    old.revoke("node3.example")
    before = ca_view.of_directory(old.write(tmp_path / "old"))
    old.write(tmp_path / "new")
    opens, lists = puppet_dir.Folder.read, puppet_dir.Folder.list

    def read(folder: puppet_dir.Folder, name: str) -> bytes | None:
        if name == hidden:
            folder._unreadable(name, PermissionError(13, "Permission denied"))
            return None
        return opens(folder, name)

    def listing(folder: puppet_dir.Folder, directory: str = ".") -> list[str]:
        if directory == hidden:
            folder._unreadable(directory, PermissionError(13, "Permission denied"))
            return []
        return lists(folder, directory)

    monkeypatch.setattr(puppet_dir.Folder, "read", read)
    monkeypatch.setattr(puppet_dir.Folder, "list", listing)
    after = ca_view.of_directory(tmp_path / "new")
    for views, label in (((before, after), "NEW"), ((after, before), "OLD")):
        found = migration.compare(views[0], views[1], time.time()).differences
        # Whether OLD accepts a node that NEW has revoked is not known without OLD's CRL.
        more = ["warning nodes that NEW refuses"] if (hidden, label) == ("ca_crl.pem", "OLD") else []
        assert titles(list(found)) == [*more, f"warning {label}: not readable"]

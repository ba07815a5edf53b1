"""A CA's directory: its records compared with each other, with an agent's directory, and with traffic."""

from __future__ import annotations

import hmac
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis import known_errors
from inspector.doctor import cadir, ssldir
from inspector.doctor.cross_check import against_wire, join, with_causes
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import Severity
from inspector.rules import rule_of
from inspector.summaries.keys import WireKey
from inspector.text import clock
from tests.support.request_versions import armed, with_version

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.doctor.cadir import CaDir
    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.doctor.ssldir import SslDir

NAME = "node1.example"
DAY = 86400.0
PUPPET = 12345
"""The user id that the CA runs as: as root, tests give its files to this user."""


class Authority:
    """A CA and its directory as puppetserver keeps it; ``write`` brings the directory up to date."""

    def __init__(self, path: Path, name: str = "ca.example") -> None:
        self.ca, self.path = LabCA(name), path
        self.keys: dict[str, pki.PrivateKey] = {}
        self.issue("master.example")
        self.issue(NAME)

    def issue(self, certname: str) -> x509.Certificate:
        self.request(certname)
        certificate = self.ca.sign(certname)
        self.write()
        return certificate

    def request(self, certname: str, key: pki.PrivateKey | None = None, alt_names: tuple[str, ...] = ()) -> None:
        self.keys[certname] = key or pki.new_key()
        status, text = self.ca.submit(certname, pki.pem(pki.make_csr(certname, self.keys[certname], alt_names)))
        assert status == 200, text
        self.write()

    def write(self) -> None:
        self.ca.write_cadir(self.path)
        lines = [_line(certificate) for certificate in self.ca.inventory]
        self.put("inventory.txt", "".join(lines))
        self.put("serial", f"{len(lines) + 3:04X}")
        for directory, read in (("signed", self.ca.certificate), ("requests", self.ca.request)):
            (self.path / directory).mkdir(exist_ok=True)
            for name in self.keys:
                file = self.path / directory / f"{name}.pem"
                if pem := read(name):
                    file.write_bytes(pem)
                else:
                    file.unlink(missing_ok=True)
        if os.geteuid() == 0:
            for file in (self.path, *self.path.rglob("*")):
                os.chown(file, PUPPET, PUPPET)

    def put(self, name: str, text: str) -> Path:
        file = self.path / name
        file.write_text(text)
        return file

    def read(self) -> CaDir:
        return cadir.read(self.path)

    def found(self, now: float | None = None) -> list[Diagnosis]:
        found = cadir.examine(self.read(), now or time.time())
        return [diagnosis for diagnosis in found if diagnosis.title != "the CA directory belongs to root"]

    def only(self, now: float | None = None) -> Diagnosis:
        found = self.found(now)
        assert len(found) == 1, found
        return found[0]


class OpenvoxAuthority(Authority):
    """The same CA as an openvox-ca keeps its directory."""

    def write(self) -> None:
        super().write()
        private = self.path / "private"
        private.mkdir(exist_ok=True)
        (self.path / "ca_key.pem").replace(private / "ca_key.pem")
        (self.path / "serial").unlink()
        inventory = (self.path / "inventory.txt").read_text().replace("/CN=", "/")
        self.put("inventory.txt", inventory)
        (private / ".inventory_hmac_key").write_bytes(b"a key")
        (private / ".inventory_hmac_key").chmod(0o600)
        (self.path / ".inventory.hmac").write_bytes(hmac.digest(b"a key", inventory.encode(), "sha256"))
        if os.geteuid() == 0:
            for file in (self.path, *self.path.rglob("*")):
                os.chown(file, PUPPET, PUPPET)

    def problems(self) -> list[Diagnosis]:
        (ca, *problems) = sorted(self.found(), key=lambda found: found.title != "CA")
        assert (ca.severity, ca.detail) == (Severity.NOTICE, "openvox-ca")
        return problems


def _line(certificate: x509.Certificate) -> str:
    def date(time: datetime) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SUTC")

    dates = f"{date(certificate.not_valid_before_utc)} {date(certificate.not_valid_after_utc)}"
    return f"0x{certificate.serial_number:04x} {dates} /CN={pki.certname_of(certificate)}\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def test_a_crl_of_the_masters_that_nobody_reads_is_no_error(authority: Authority) -> None:
    authority.put("infra_crl.pem", "")
    found = authority.only()
    assert (found.severity, found.title) == (Severity.NOTICE, "infra CRL")
    assert found.detail == "infra_crl.pem: the file is empty"
    assert "enable-infra-crl" in found.steps[0].only_if


def test_a_healthy_ca_has_no_problems_and_stays_unchanged(authority: Authority) -> None:
    def snapshot() -> list[tuple[str, int, int]]:
        return sorted((str(p), (s := p.lstat()).st_mode, s.st_mtime_ns) for p in authority.path.rglob("*"))

    before = snapshot()
    assert authority.found() == []
    assert snapshot() == before


def test_the_fields_for_a_comparison(authority: Authority) -> None:
    authority.request("node2.example")
    authority.ca.revoke(NAME)
    authority.write()
    read = authority.read()
    assert set(read.signed) == {"master.example", NAME}
    assert set(read.requests) == {"node2.example"}
    assert read.serial == 5
    assert [(entry.serial, entry.name) for entry in read.inventory] == [(3, "master.example"), (4, NAME)]
    assert read.revoked == {4}


def test_the_ruby_ca_writes_a_heading_and_an_encrypted_key(authority: Authority) -> None:
    authority.put("inventory.txt", "# Inventory of signed certificates\n# SERIAL NOT_BEFORE NOT_AFTER SUBJECT\n"
                  + (authority.path / "inventory.txt").read_text())  # fmt: skip
    encrypted = authority.ca.authority.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (authority.path / "ca_key.pem").write_bytes(encrypted)
    assert authority.only().title == "the CA's key cannot be decrypted"
    (authority.path / "private").mkdir()
    authority.put("private/ca.pass", "secret").chmod(0o640)
    assert authority.found() == []
    assert authority.read().generation == "legacy"
    assert len(authority.read().inventory) == 2


# -- the CA itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ca_crt.pem", "ca_key.pem", "ca_crl.pem", "inventory.txt", "serial"])
def test_a_missing_file_keeps_the_ca_from_starting(authority: Authority, name: str) -> None:
    (authority.path / name).unlink()
    found = authority.only()
    assert (found.severity, found.title) == (Severity.ERROR, "half-initialised CA")
    assert f"missing: {name};" in found.detail


def test_the_key_of_another_ca(authority: Authority) -> None:
    pki.write_private(authority.path / "ca_key.pem", pki.key_pem(pki.new_key()))
    found = next(diagnosis for diagnosis in authority.found() if diagnosis.severity is Severity.ERROR)
    assert found.title == "the CA's key and certificate do not match"


def test_certificates_of_a_second_ca(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "ca.example")  # the same name: the CA was made anew
    (authority.path / "signed" / f"{NAME}.pem").write_bytes(other.ca.certificate(NAME) or b"")
    found = authority.only()
    assert (found.severity, found.title) == (Severity.WARNING, "certificates from another CA")
    assert NAME in found.detail
    assert "master.example" not in found.detail


def test_crls(authority: Authority) -> None:
    crl = authority.path / "ca_crl.pem"
    crl.write_bytes(authority.ca.signing_crl)
    assert (authority.only().title, authority.only().rule) == ("the CA's CRLs do not cover the chain", "B13")
    crl.write_bytes(LabCA("ca.example").crl_bundle)
    assert "invalid signature on the CA's CRL" in {diagnosis.title for diagnosis in authority.found()}
    blocks = authority.ca.crl_bundle.split(b"-----BEGIN X509 CRL-----\n")
    crl.write_bytes(b"-----BEGIN X509 CRL-----\n".join([b"", blocks[2], blocks[1]]))
    assert authority.only().title == "wrong order of the CRLs"


def test_the_end_of_the_crl(authority: Authority) -> None:
    end = time.time() + 5 * 365 * DAY
    assert "the CA's CRL expires soon" in {diagnosis.title for diagnosis in authority.found(end - 10 * DAY)}
    over = {diagnosis.title: diagnosis for diagnosis in authority.found(end + DAY)}
    assert over["the CA's CRL has expired"].rule == "B10"
    assert f"`puppet-inspector fix new-crl --cadir {authority.path} --execute`" in over["the CA's CRL has expired"].fix
    assert over["expired certificates"].severity is Severity.NOTICE


def test_the_end_of_the_ca(authority: Authority) -> None:
    end = time.time() + 15 * 365 * DAY
    assert "the CA certificate expires soon" in {diagnosis.title for diagnosis in authority.found(end - 40 * DAY)}
    assert "the CA certificate has expired" in {diagnosis.title for diagnosis in authority.found(end + DAY)}


def test_a_missing_crl_has_one_answer_on_all_roads(authority: Authority) -> None:
    (authority.path / "ca_crl.pem").write_bytes(authority.ca.signing_crl)
    found = authority.only()
    of_rule = [step.text for step in rule_of("B13").fix_for(None)]
    assert [step.text for step in found.steps] == of_rule
    assert found.steps[1].command == f"puppet-inspector fix new-crl --cadir {authority.path} --execute"
    printed = known_errors.find("Error: The CRL issued by 'CN=Puppet Root CA: 12ab34' is missing")
    assert printed
    assert {step.text for step in printed.known.fix} <= set(of_rule)


# -- serial, inventory, signed ----------------------------------------------------------------------------


def test_a_serial_that_was_already_issued(authority: Authority) -> None:
    authority.put("serial", "0004")
    found = authority.only()
    assert (found.severity, found.title) == (Severity.ERROR, "the CA would issue a serial number twice")
    assert f"the next serial number is 0004, but 0004 was already issued, to {NAME}" in found.detail
    assert f"`echo 0005 > {authority.path / 'serial'}`" in found.fix


def test_an_invalid_serial(authority: Authority) -> None:
    authority.put("serial", "five")
    assert authority.only().title == "unusable serial file"


def test_a_serial_that_the_ca_did_not_count(authority: Authority) -> None:
    authority.keys["proxy.example"] = pki.new_key()
    foreign = pki.sign(authority.ca.authority, authority.keys["proxy.example"].public_key(), "proxy.example")
    (authority.path / "signed" / "proxy.example.pem").write_bytes(pki.pem(foreign))
    assert [diagnosis.title for diagnosis in authority.found()] == ["certificates missing from the inventory"]


def test_one_serial_for_two(authority: Authority) -> None:
    inventory = authority.path / "inventory.txt"
    inventory.write_text(inventory.read_text() + inventory.read_text().splitlines()[1].replace(NAME, "twin.example"))
    found = authority.only()
    assert (found.severity, found.title) == (Severity.ERROR, "several certificates with one serial number")
    assert f"0004 ({NAME}, twin.example)" in found.detail
    assert "ca clean" not in found.fix  # it would revoke both


def test_a_certificate_that_the_inventory_does_not_know(authority: Authority) -> None:
    lines = (authority.path / "inventory.txt").read_text().splitlines()
    authority.put("inventory.txt", f"{lines[0]}\nnonsense\n")
    found = {diagnosis.title: diagnosis for diagnosis in authority.found()}
    assert set(found) == {"certificates missing from the inventory", "malformed inventory"}
    assert NAME in found["certificates missing from the inventory"].detail


def test_a_certificate_for_the_cas_own_commands_is_in_no_inventory(authority: Authority) -> None:
    """`puppetserver ca generate --ca-client` (2.4.0) signs beside the server, and writes no line."""
    key = pki.new_key()
    authority.keys["op.example"] = key
    right = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.3.39"), b"\x0c\x04true")
    extension = x509.Extension(right.oid, critical=False, value=right)
    made = pki.sign(authority.ca.authority, key.public_key(), "op.example", extensions=[extension])
    (authority.path / "signed" / "op.example.pem").write_bytes(pki.pem(made))
    found = authority.only()
    assert (found.severity, found.title) == (Severity.NOTICE, "certificates for the CA's own commands")


def test_an_older_certificate_than_the_inventory(authority: Authority) -> None:
    inventory = authority.path / "inventory.txt"
    inventory.write_text(inventory.read_text() + inventory.read_text().splitlines()[1].replace("0x0004", "0x0005"))
    authority.put("serial", "0006")
    assert authority.only().title == "outdated certificates in signed/"


def test_revoked_and_not_cleaned_then_cleaned(authority: Authority) -> None:
    authority.ca.revoke(NAME)
    authority.write()
    found = authority.only()
    assert (found.severity, found.title) == (Severity.NOTICE, "revoked but not cleaned")
    assert [step.command for step in found.steps] == [f"puppetserver ca clean --certname {NAME}"]
    authority.ca.clean(NAME)
    authority.write()
    assert authority.found() == []


def test_a_serial_revoked_that_was_never_issued(authority: Authority) -> None:
    lines = (authority.path / "inventory.txt").read_text().splitlines()
    authority.ca.clean(NAME)
    authority.write()
    authority.put("inventory.txt", lines[0] + "\n")
    assert authority.only().title == "revoked serial numbers that were never issued"


def test_a_certificate_under_another_name(authority: Authority) -> None:
    signed = authority.path / "signed"
    (signed / f"{NAME}.pem").rename(signed / "other.example.pem")
    found = authority.found()
    assert "other.example.pem is for CN=node1.example" in " ".join(diagnosis.detail for diagnosis in found)


def test_a_key_under_two_names(authority: Authority) -> None:
    authority.request("clone.example", authority.keys[NAME])
    found = {diagnosis.title: diagnosis for diagnosis in authority.found()}
    assert found["several agents share a key"].severity is Severity.WARNING
    assert f"clone.example, {NAME}" in found["several agents share a key"].detail


# -- requests ---------------------------------------------------------------------------------------------


def test_a_request_that_waits(authority: Authority) -> None:
    authority.request("node2.example")
    found = authority.only()
    fingerprint = authority.read().requests["node2.example"].fingerprint
    assert (found.severity, found.detail) == (Severity.NOTICE, f"node2.example (SHA256) {fingerprint}")
    assert "`puppetserver ca sign --certname node2.example`" in found.fix


def test_a_request_that_will_be_refused(authority: Authority) -> None:
    authority.request("node2.example", alt_names=("www.example",))
    found = {diagnosis.title: diagnosis for diagnosis in authority.found()}
    assert found["signing request that the CA will not sign"].detail.endswith("the alternative names DNS:www.example")


def test_a_request_of_puppetserver_ca_generate_is_one(authority: Authority) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    made = with_version(pki.make_csr("node2.example", key).public_bytes(Encoding.DER), 2, key)
    path = authority.path / "requests" / "node2.example.pem"
    path.write_bytes(armed(made, "CERTIFICATE REQUEST"))
    found = authority.only()
    assert (found.severity, found.detail.split()[0]) == (Severity.NOTICE, "node2.example")


def test_a_request_for_a_signed_name(authority: Authority) -> None:
    csr = pki.pem(pki.make_csr(NAME, pki.new_key()))
    (authority.path / "requests" / f"{NAME}.pem").write_bytes(csr)
    found = authority.only()
    assert (found.severity, found.rule) == (Severity.WARNING, "B18")


def test_modes_and_owners(authority: Authority) -> None:
    (authority.path / "ca_key.pem").chmod(0o644)
    assert authority.only().title == "private key accessible to all users"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_root_in_the_ca_of_puppet(authority: Authority) -> None:
    os.chown(authority.path / "ca_key.pem", 0, 0)
    found = authority.only()
    assert (found.severity, found.title) == (Severity.ERROR, "wrong owner")
    assert [step.command for step in found.steps] == [f"chown -R {PUPPET}: {authority.path}"]


@pytest.fixture
def openvox(tmp_path: Path) -> OpenvoxAuthority:
    return OpenvoxAuthority(tmp_path / "openvox")


def test_a_healthy_openvox_ca_is_named_and_has_no_problems(openvox: OpenvoxAuthority) -> None:
    assert openvox.problems() == []
    assert [entry.name for entry in openvox.read().inventory] == ["master.example", NAME]


def test_what_an_openvox_ca_does_not_need(openvox: OpenvoxAuthority) -> None:
    openvox.put("serial", "0001")  # left over from a master's CA, and not read
    assert openvox.problems() == []
    # A format of its own, which OpenSSL cannot read.
    openvox.put(
        "private/ca_key.pem",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAYplXTWgthp7\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    (problem,) = openvox.problems()
    assert (problem.severity, problem.title) == (Severity.NOTICE, "the CA's key is encrypted")
    (openvox.path / "private/ca_key.pem").unlink()
    (problem,) = openvox.problems()
    assert (problem.severity, problem.title) == (Severity.WARNING, "the CA's key is not in its directory")


def test_the_crl_of_an_openvox_ca_lives_a_month(openvox: OpenvoxAuthority) -> None:
    now = datetime.now(UTC)
    openvox.ca.publish_crl(now - timedelta(10), now + timedelta(20))
    openvox.write()
    assert openvox.problems() == []
    openvox.ca.publish_crl(now - timedelta(28), now + timedelta(2))
    openvox.write()
    (problem,) = openvox.problems()
    assert problem.rule == "B11"
    assert "openvox-ca-ctl reissue-crl" in [step.command for step in problem.steps]
    assert "new-crl" not in problem.fix


@pytest.mark.parametrize("change", ["line", "key"])
def test_an_inventory_that_an_openvox_ca_did_not_write(openvox: OpenvoxAuthority, change: str) -> None:
    if change == "line":
        with (openvox.path / "inventory.txt").open("a") as file:
            file.write("0ABC 2026-01-01T00:00:00UTC 2031-01-01T00:00:00UTC /added.example\n")
    else:
        (openvox.path / "private/.inventory_hmac_key").unlink()
    (problem,) = openvox.problems()
    assert (problem.severity, problem.title) == (Severity.ERROR, "the inventory was changed")
    assert problem.steps[-1].command == f"rm {openvox.path}/.inventory.hmac"
    assert problem.steps[-1].destroys


@pytest.mark.parametrize("name", ["ca_crt.pem", "ca_crl.pem", "inventory.txt"])
def test_what_an_openvox_ca_lacks(openvox: OpenvoxAuthority, name: str) -> None:
    (openvox.path / name).unlink()
    problem = openvox.problems()[0]
    assert (problem.severity, problem.title) == (Severity.ERROR, "half-initialised CA")
    assert f"missing: {name};" in problem.detail


def test_the_fixes_for_an_openvox_ca_are_its_own_commands(openvox: OpenvoxAuthority) -> None:
    openvox.request("new.example")
    openvox.put("private/ca_key.pem", pki.key_pem(pki.new_key()).decode())
    (openvox.path / "private/ca_key.pem").chmod(0o644)
    openvox.put("ca_crl.pem", LabCA("other.example").crl_bundle.decode())
    fixes = " ".join(problem.fix for problem in openvox.problems())
    assert "openvox-ca-ctl sign --certname new.example" in fixes
    assert f"puppet-inspector doctor --cadir {openvox.path}" in fixes
    assert "puppetserver" not in fixes


def test_an_agent_of_an_openvox_ca(openvox: OpenvoxAuthority, tmp_path: Path) -> None:
    pair = Pair(openvox, tmp_path / "agent")
    assert [found.title for found in pair.joined()] == []
    pair.new_key()
    (lost,) = (found for found in pair.joined() if found.severity is Severity.ERROR)
    assert "ignoring certificate request" not in lost.detail
    openvox.ca.revoke(NAME)
    openvox.write()
    assert not any(found.severity is Severity.ERROR for found in pair.joined())


def test_directories_that_are_not_a_cadir(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="There is no directory"):
        cadir.read(tmp_path / "nowhere")
    with pytest.raises(InspectorError, match="is not a cadir"):
        cadir.read(tmp_path)
    authority.ca.enrol(tmp_path / "ssl", "node3.example")
    with pytest.raises(InspectorError) as raised:
        cadir.read(tmp_path / "ssl")
    assert raised.value.hint == "Pass it with --ssldir."


# -- with an agent ----------------------------------------------------------------------------------------


class Pair:
    """The CA's directory and an agent's; ``certified`` and ``asked`` are what the agent has."""

    def __init__(self, authority: Authority, path: Path) -> None:
        self.authority, self.path = authority, path
        place = pki.SslDirPaths(path, NAME)
        place.create()
        self.place = place
        pki.write_private(place.key, pki.key_pem(authority.keys[NAME]))
        place.certificate.write_bytes(authority.ca.certificate(NAME) or b"")
        place.ca.write_bytes(authority.ca.ca_bundle)
        place.crl.write_bytes(authority.ca.crl_bundle)

    def agent(self) -> SslDir:
        return ssldir.read(self.path)

    def joined(self) -> list[Diagnosis]:
        return join(self.agent(), self.authority.read())

    def new_key(self) -> str:
        pki.write_private(self.place.key, pki.key_pem(pki.new_key()))
        self.place.certificate.unlink(missing_ok=True)
        return self.agent().key or ""


@pytest.fixture
def pair(authority: Authority, tmp_path: Path) -> Pair:
    return Pair(authority, tmp_path / "ssl")


def test_the_agents_trouble_follows_from_the_cas(pair: Pair) -> None:
    end = time.time() + (5 * 365 + 1) * DAY
    ca = cadir.examine(pair.authority.read(), end)
    alone = {diagnosis.title: diagnosis for diagnosis in ssldir.examine(pair.agent(), end)}
    explained = {diagnosis.title: diagnosis for diagnosis in with_causes(list(alone.values()), ca)}
    detail = alone["the agent's CRL has expired"].detail
    assert explained["the agent's CRL has expired"].detail == f"{detail}; consequence of 'the CA's CRL has expired'"
    assert explained["certificate expired"] == alone["certificate expired"]


def test_a_broken_file_of_the_ca_has_a_fix(pair: Pair) -> None:
    (pair.authority.path / "ca_crl.pem").write_bytes(b"no")
    broken = next(
        diagnosis for diagnosis in pair.authority.found() if diagnosis.title == "ca_crl.pem is not a valid CRL"
    )
    assert "backup" in broken.fix


def test_agent_and_ca_agree(pair: Pair) -> None:
    assert pair.joined() == []
    assert join(pair.agent(), None) == []


def test_the_agent_lost_its_key(pair: Pair) -> None:
    key = pair.new_key()
    found = pair.joined()
    assert [(diagnosis.severity, diagnosis.rule) for diagnosis in found] == [(Severity.ERROR, "B18")]
    assert f"the agent's key is key {key[:16]}…" in found[0].detail
    assert f"{NAME} already has a signed certificate; ignoring certificate request" in found[0].detail
    assert f"`puppetserver ca clean --certname {NAME}`" in found[0].fix


def test_signed_but_not_fetched(pair: Pair) -> None:
    pair.place.certificate.unlink()
    assert [(diagnosis.severity, diagnosis.title) for diagnosis in pair.joined()] == [
        (Severity.NOTICE, "certificate signed, but not downloaded yet"),
    ]


def test_the_ca_revoked_it(pair: Pair) -> None:
    pair.authority.ca.revoke(NAME)
    pair.authority.write()
    found = pair.joined()
    assert [diagnosis.title for diagnosis in found] == [
        "the CA has revoked the agent's certificate",
        "the agent has an older CRL",
    ]
    assert "crl.pem has CRL number 0 from CN=Puppet CA: ca.example, the CA has number 1" in found[1].detail


def test_the_ca_issued_the_name_again(pair: Pair) -> None:
    pair.authority.ca.clean(NAME)
    pair.authority.issue(NAME)
    found = [diagnosis.title for diagnosis in pair.joined() if diagnosis.severity is Severity.ERROR]
    assert found == ["the CA has revoked the agent's certificate", "the CA has a certificate for another key"]


def test_the_ca_lost_it(pair: Pair) -> None:
    (pair.authority.path / "signed" / f"{NAME}.pem").unlink()
    assert [diagnosis.title for diagnosis in pair.joined()] == ["the CA does not have the agent's certificate"]


def test_a_renewed_certificate(pair: Pair) -> None:
    renewed = pki.sign(pair.authority.ca.authority, pair.authority.keys[NAME].public_key(), NAME)
    pair.place.certificate.write_bytes(pki.pem(renewed))
    assert [diagnosis.severity for diagnosis in pair.joined()] == [Severity.NOTICE]


def test_the_agent_trusts_another_ca(pair: Pair) -> None:
    pair.place.ca.write_bytes(LabCA("other.example").ca_bundle)
    assert "the agent trusts another CA" in [diagnosis.title for diagnosis in pair.joined()]


@pytest.mark.parametrize(
    ("own", "what"), [(True, "waiting to be signed"), (False, "the CA has a signing request for another key")]
)
def test_a_request_on_the_ca(pair: Pair, own: bool, what: str) -> None:
    pair.authority.ca.clean(NAME)
    pair.new_key()
    pair.authority.request(NAME, pki.read_key(pair.place.key) if own else None)
    found = [diagnosis for diagnosis in pair.joined() if "CRL" not in diagnosis.title]
    assert [diagnosis.title for diagnosis in found] == [what]
    assert found[0].severity is (Severity.NOTICE if own else Severity.ERROR)


@pytest.mark.parametrize(("generation", "severity"), [("legacy", Severity.ERROR), ("modern", Severity.NOTICE)])
def test_a_local_request_that_the_ca_does_not_have(pair: Pair, generation: Generation, severity: Severity) -> None:
    pair.authority.ca.clean(NAME)
    pair.authority.write()
    pair.new_key()
    agent = pair.agent()
    agent = replace(agent, csr_key=agent.key, generation=generation)
    found = [diagnosis for diagnosis in join(agent, pair.authority.read()) if "CRL" not in diagnosis.title]
    assert [diagnosis.severity for diagnosis in found] == [severity]


# -- with a capture ---------------------------------------------------------------------------------------


AT = 1_700_000_000.0


def test_the_csr_of_the_traffic_and_a_certificate_for_another_key(pair: Pair) -> None:
    old = pair.agent().key or ""
    key = pair.new_key()
    wire_keys = [
        WireKey("csr", "stranger.example", old, AT, 1),
        WireKey("csr", NAME, key, AT + 60, 2),
        WireKey("certificate", NAME, old, AT + 61, 3),
    ]
    (found,) = against_wire(pair.agent(), pair.authority.read(), wire_keys)
    assert (found.severity, found.rule) == (Severity.ERROR, "B22")
    asked, served = (clock(AT + 60)[:5], clock(AT + 61)[:5])
    assert found.detail.startswith(
        f"the agent's key matches the CSR of {asked} (record 2); the CA serves a certificate for another key "
        f"({served} (record 3)"
    )
    assert f"`puppetserver ca clean --certname {NAME}`" in found.fix


def test_a_key_that_was_made_after_the_csr(pair: Pair) -> None:
    old = pair.agent().key or ""
    pair.new_key()
    (found,) = against_wire(pair.agent(), None, [WireKey("csr", NAME, old, AT, 7)])
    assert found.severity is Severity.ERROR
    assert "the agent's key does not match the CSR of" in found.detail
    pair.place.key.unlink()
    pair.place.certificate.write_bytes(pair.authority.ca.certificate(NAME) or b"")
    (found,) = against_wire(pair.agent(), None, [WireKey("csr", NAME, old, AT, 7)])
    assert "which is not in this ssldir" in found.detail


def test_a_healthy_bootstrap_in_the_traffic(pair: Pair) -> None:
    key = pair.agent().key or ""
    wire_keys = [
        WireKey("csr", NAME, key, AT, 1),
        WireKey("certificate", NAME, key, AT, 2),
        WireKey("client", NAME, key, AT, 3),
    ]
    (found,) = against_wire(pair.agent(), pair.authority.read(), wire_keys)
    assert found.severity is Severity.NOTICE
    assert against_wire(pair.agent(), None, []) == []


def test_the_certname_is_used_elsewhere(pair: Pair) -> None:
    (found,) = against_wire(pair.agent(), None, [WireKey("client", NAME, "ab" * 32, AT, 9)])
    assert (found.severity, found.title) == (Severity.WARNING, "the certname is used elsewhere")
    assert "abababababababab…" in found.detail

"""An agent's directory: no diagnoses for a healthy one, the agent's message and a fix for a broken one."""

from __future__ import annotations

import base64
import os
import shlex
import stat
import time
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization

from inspector.doctor import ssldir
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.protocol.x509 import Revocation

NAME = "node1.example"
DAY = 86400.0


class Agent:
    """An enrolled agent's directory as 6.4 and later leave it; a test breaks one thing."""

    def __init__(self, ca: LabCA, path: Path, certname: str = NAME) -> None:
        self.ca, self.certname = ca, certname
        self.place = ca.enrol(path, certname)
        self.path = path

    def write(self, name: str, data: bytes) -> Path:
        file = self.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        return file

    def csr(self, key: pki.PrivateKey) -> Path:
        return self.write(f"certificate_requests/{self.certname}.pem", pki.pem(pki.make_csr(self.certname, key)))

    def found(
        self,
        now: float | None = None,
        *,
        certname: str | None = None,
        generation: Generation | None = None,
        revocation: Revocation = "chain",
    ) -> list[Diagnosis]:
        return ssldir.examine(ssldir.read(self.path, certname, generation), now or time.time(), revocation)

    def only(self, now: float | None = None, **options: Generation) -> Diagnosis:
        found = self.found(now, **options)  # type: ignore[arg-type]
        assert len(found) == 1, found
        return found[0]


@pytest.fixture
def ca() -> LabCA:
    return LabCA("ca.example")


@pytest.fixture
def agent(ca: LabCA, tmp_path: Path) -> Agent:
    return Agent(ca, tmp_path / "ssl")


def snapshot(path: Path) -> list[tuple[str, int, int, int]]:
    return sorted((str(p), (s := p.lstat()).st_mode, s.st_mtime_ns, s.st_size) for p in path.rglob("*"))


def test_a_healthy_directory_has_no_problems_and_stays_unchanged(agent: Agent) -> None:
    before = snapshot(agent.path)
    assert agent.found() == []
    assert snapshot(agent.path) == before


def test_the_fields_for_a_comparison(agent: Agent) -> None:
    key = pki.read_key(agent.place.key)
    agent.csr(key)
    read = ssldir.read(agent.path)
    assert read.certname == NAME
    assert read.certificate is not None
    assert read.key == read.csr_key == read.certificate.key
    assert read.authorities[0].common_name == "Puppet CA: ca.example"
    assert len(read.crls) == 2
    assert read.generation == "legacy"  # a request kept beside its certificate


def test_a_private_key_is_never_shown(agent: Agent) -> None:
    agent.place.key.write_bytes(pki.key_pem(pki.new_key()))
    assert "PRIVATE" not in repr(ssldir.read(agent.path)) + repr(agent.found())


# -- what belongs together ------------------------------------------------------------------------------


def test_certificate_of_another_key(agent: Agent) -> None:
    agent.place.key.write_bytes(pki.key_pem(pki.new_key()))
    found = agent.only()
    assert found.severity is Severity.ERROR
    assert f"The certificate for 'CN={NAME}' does not match its private key" in found.detail
    assert [step.command for step in found.steps][:2] == [
        f"puppetserver ca clean --certname {NAME}", "puppet ssl clean; puppet agent -t"
    ]  # fmt: skip


def test_commands_of_a_legacy_agent(agent: Agent) -> None:
    agent.place.key.write_bytes(pki.key_pem(pki.new_key()))
    fix = agent.only(generation="legacy").fix
    assert f"`puppet cert clean {NAME}`" in fix
    assert "puppet ssl" not in fix


def test_certificate_without_its_key(agent: Agent) -> None:
    agent.place.key.unlink()
    found = agent.only()
    assert (found.severity, found.title) == (Severity.ERROR, "certificate without its private key")


def test_certificate_of_another_name(agent: Agent) -> None:
    key = pki.read_key(agent.place.key)
    agent.place.certificate.write_bytes(pki.pem(pki.sign(agent.ca.authority, key.public_key(), "other.example")))
    found = agent.only()
    assert found.title == "certificate for another name"
    assert "CN=other.example" in found.detail


def test_an_encrypted_key_and_its_password(agent: Agent) -> None:
    key = pki.read_key(agent.place.key)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"sesame"),
    )
    agent.place.key.write_bytes(encrypted)
    found = agent.only()
    assert found.title == "the private key cannot be decrypted"
    assert "encrypted" in found.detail
    agent.write("private/password", b"sesame")
    assert agent.found() == []


def test_a_stale_public_key(agent: Agent) -> None:
    public = pki.new_key().public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    agent.write(f"public_keys/{NAME}.pem", pem)
    found = agent.only()
    assert (found.severity, found.title) == (Severity.NOTICE, "stale public key")


def test_braces_in_a_path_are_no_placeholder(ca: LabCA, tmp_path: Path) -> None:
    agent = Agent(ca, tmp_path / "{enrol} it's", "{list}.example")
    agent.csr(pki.new_key())
    found = agent.only()
    (step,) = found.steps
    assert step.command == f"rm {shlex.quote(str(agent.path / 'certificate_requests/{list}.example.pem'))}"


def test_a_weak_key(ca: LabCA, agent: Agent) -> None:
    key = pki.new_key(1024)
    agent.place.key.write_bytes(pki.key_pem(key))
    agent.place.certificate.write_bytes(pki.pem(pki.sign(ca.authority, key.public_key(), NAME)))
    assert [(diagnosis.severity, diagnosis.title) for diagnosis in agent.found()] == [(Severity.WARNING, "weak key")]


# -- bootstrap ------------------------------------------------------------------------------------------


def test_waiting_for_a_certificate(agent: Agent) -> None:
    agent.place.certificate.unlink()
    agent.csr(pki.read_key(agent.place.key))
    found = agent.only()
    assert (found.severity, found.title) == (Severity.NOTICE, "waiting for the certificate")
    assert f"`puppetserver ca sign --certname {NAME}`" in found.fix


def test_a_local_request_blocks_a_legacy_agent(agent: Agent) -> None:
    key = pki.read_key(agent.place.key)
    agent.place.certificate.unlink()
    csr = agent.csr(key)
    public = key.public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    agent.write(f"public_keys/{NAME}.pem", pem)  # 6.4 and later write none
    found = agent.only()
    assert (found.severity, found.title) == (Severity.WARNING, "a local signing request")
    assert f"`rm {csr}; puppet agent -t`" in found.fix
    assert f"`puppet cert sign {NAME}`" in found.fix


@pytest.mark.parametrize(("generation", "severity"), [("legacy", Severity.ERROR), ("modern", Severity.NOTICE)])
def test_a_local_request_of_another_key(agent: Agent, generation: Generation, severity: Severity) -> None:
    agent.place.certificate.unlink()
    agent.csr(pki.new_key())
    found = agent.only(generation=generation)
    assert (found.severity, found.title) == (severity, "signing request for another key")


def test_a_certname_in_upper_case(ca: LabCA, tmp_path: Path) -> None:
    agent = Agent(ca, tmp_path / "ssl", "Node1.example")
    agent.place.certificate.unlink()
    assert "certname with upper-case letters" in [
        diagnosis.title for diagnosis in agent.found() if diagnosis.severity is Severity.ERROR
    ]


def test_nobody_enrolled_yet(tmp_path: Path) -> None:
    (tmp_path / "certs").mkdir()
    found = ssldir.examine(ssldir.read(tmp_path), time.time())
    assert [(diagnosis.severity, diagnosis.title) for diagnosis in found] == [(Severity.NOTICE, "not enrolled")]


# -- trust ----------------------------------------------------------------------------------------------


def test_another_ca(agent: Agent) -> None:
    other = LabCA("other.example")
    agent.place.ca.write_bytes(other.ca_bundle)
    agent.place.crl.write_bytes(other.crl_bundle)
    found = agent.only()
    assert (found.severity, found.title) == (Severity.ERROR, "certificate from another CA")
    assert "Puppet CA: other.example" in found.detail
    assert f"`rm {agent.place.ca} {agent.place.crl}; puppet agent -t`" in found.fix


def test_a_bundle_without_the_intermediate_ca(agent: Agent) -> None:
    """The agent of 7.23 goes on with a warning, and does not without the root."""
    agent.place.ca.write_bytes(pki.pem(agent.ca.root.certificate))
    found = agent.only()
    assert (found.severity, found.title) == (Severity.WARNING, "the CA bundle lacks an intermediate CA")
    assert found.detail.startswith(f"The issuer 'CN=Puppet CA: ca.example' of certificate 'CN={NAME}' cannot be found")
    agent.place.ca.write_bytes(pki.pem(agent.ca.authority.certificate))
    found = agent.found()[0]
    assert (found.severity, found.title) == (Severity.ERROR, "certificate from another CA")
    assert "of certificate 'CN=Puppet CA: ca.example' is missing; " in found.detail


def test_a_revoked_certificate(agent: Agent) -> None:
    agent.ca.revoke(NAME)
    agent.place.crl.write_bytes(agent.ca.crl_bundle)
    found = agent.only()
    assert (found.title, found.detail) == ("certificate revoked", f"Certificate 'CN={NAME}' is revoked")
    assert found.steps[0].text.startswith("find out who revoked it"), "it may be meant"
    assert all(step.only_if for step in found.steps if step.destroys)


def test_crls_that_do_not_cover_the_chain(agent: Agent) -> None:
    agent.place.crl.write_bytes(agent.ca.signing_crl)
    found = agent.only()
    assert (found.title, found.rule) == ("the agent's CRLs do not cover the chain", "B13")
    first, *others = found.steps
    assert (first.on, first.only_if) == ("node", ""), "the CA may have it"
    assert all(step.only_if.startswith("the CA sends the same again") for step in others[:-1])
    assert "Puppet Root CA" in found.detail
    assert agent.found(revocation="leaf") == []


def test_no_crl_is_fetched_with_the_next_run(agent: Agent) -> None:
    agent.place.crl.unlink()
    found = agent.only()
    assert (found.severity, found.title) == (Severity.NOTICE, "no CRL")
    assert agent.found(revocation="none") == []


def test_no_ca_certificate(agent: Agent) -> None:
    agent.place.ca.unlink()
    found = agent.only()
    assert (found.severity, found.rule) == (Severity.WARNING, "B01")


def test_the_end_of_certificate_and_crl(agent: Agent) -> None:
    end = time.time() + 5 * 365 * DAY
    assert [diagnosis.title for diagnosis in agent.found(end - 60 * DAY)] == ["certificate expires within three months"]
    soon = agent.found(end - 10 * DAY)
    assert {diagnosis.title for diagnosis in soon} == {"certificate expires soon", "the agent's CRL expires soon"}
    assert {diagnosis.severity for diagnosis in soon} == {Severity.WARNING}
    over = {diagnosis.title: diagnosis for diagnosis in agent.found(end + DAY)}
    assert set(over) == {"certificate expired", "the agent's CRL has expired"}
    assert f"CN={NAME}' has expired" in over["certificate expired"].detail
    assert over["the agent's CRL has expired"].rule == "B10"


@pytest.mark.parametrize(("before", "when"), [(0.5, "within a day"), (1.5, "in a day"), (10.5, "in 10 days")])
def test_how_soon_a_certificate_expires(agent: Agent, before: float, when: str) -> None:
    certificate = ssldir.read(agent.path).certificate
    assert certificate is not None
    found = {diagnosis.title: diagnosis for diagnosis in agent.found(certificate.not_after - before * DAY)}
    assert found["certificate expires soon"].detail.endswith(f", {when}")


def test_a_clock_behind(agent: Agent) -> None:
    found = agent.found(time.time() - 2 * DAY)
    assert {"certificate not yet valid", "the agent's CRL is not yet valid"} <= {diagnosis.title for diagnosis in found}
    assert all("timedatectl" in diagnosis.fix for diagnosis in found)


def test_agents_accept_a_crl_that_begins_in_two_minutes(agent: Agent) -> None:
    assert agent.found(time.time() - 120) == []


# -- leftovers ------------------------------------------------------------------------------------------


def test_a_second_ca(agent: Agent) -> None:
    other = LabCA("this-host.example")
    other.write_cadir(agent.path / "ca")
    agent.write("ca/inventory.txt", b"")
    agent.write("ca/serial", b"0001\n")
    found = agent.only()
    assert (found.severity, found.title) == (Severity.WARNING, "a second CA")
    assert "Puppet CA: this-host.example" in found.detail
    assert f"`mv {agent.path}/ca {agent.path}/ca.old`" in found.fix


def test_a_half_initialised_master(agent: Agent) -> None:
    agent.write("ca/ca_crt.pem", agent.ca.ca_bundle)
    agent.write("ca/serial", b"0001\n")
    found = agent.only()
    assert (found.severity, found.title) == (Severity.ERROR, "half-initialised CA")
    assert "ca/ has ca_crt.pem, serial, not ca_key.pem, ca_crl.pem, inventory.txt" in found.detail


def test_the_link_to_the_ca_of_puppetserver_7(agent: Agent, tmp_path: Path) -> None:
    LabCA("elsewhere.example").write_cadir(tmp_path / "puppetserver")
    (agent.path / "ca").symlink_to(tmp_path / "puppetserver")
    assert agent.found() == []


def test_other_files_and_the_lock(agent: Agent) -> None:
    agent.write("ssl.lock", b"4711")
    agent.write("certs/old.example.pem", agent.place.certificate.read_bytes())
    agent.write("crl.pem.rpmsave", b"")
    found = {diagnosis.title: diagnosis for diagnosis in agent.found()}
    assert set(found) == {"locked", "other files"}
    assert "4711" in found["locked"].detail
    assert "crl.pem.rpmsave, certs/old.example.pem" in found["other files"].detail


# -- files that are not what they should be -------------------------------------------------------------


def test_broken_and_empty_files(agent: Agent) -> None:
    agent.place.certificate.write_bytes(b"")
    agent.place.crl.write_bytes(b"<html>no</html>")
    agent.place.key.write_bytes(b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n")
    found = [diagnosis for diagnosis in agent.found() if diagnosis.severity is Severity.ERROR]
    assert {diagnosis.title for diagnosis in found} >= {
        f"certs/{NAME}.pem is not a valid certificate", "crl.pem is not a valid CRL",
        f"private_keys/{NAME}.pem is not a valid private key",
    }  # fmt: skip
    assert f"certs/{NAME}.pem: the file is empty" in [diagnosis.detail for diagnosis in found]
    assert all(diagnosis.fix for diagnosis in found)


@pytest.mark.parametrize("file", ["crl", "ca"])
def test_a_file_that_only_openssl_cannot_read(agent: Agent, file: str) -> None:
    path: Path = getattr(agent.place, file)
    lines = path.read_text().split("-----")
    der = base64.b64decode(lines[2])
    # A common name that is no string.
    lines[2] = "\n" + base64.encodebytes(der.replace(b"\x06\x03U\x04\x03\x0c", b"\x06\x03U\x04\x03\x04")).decode()
    path.write_text("-----".join(lines))
    titles = {diagnosis.title for diagnosis in agent.found()}
    assert ("crl.pem is not a valid CRL" if file == "crl" else "certs/ca.pem is not a valid certificate") in titles


def test_a_broken_crl_is_reported_once(agent: Agent) -> None:
    agent.place.crl.write_bytes(b"<html>no</html>")
    found = agent.only()
    assert found.title == "crl.pem is not a valid CRL"
    assert [step.command for step in found.steps] == ['rm -f "$(puppet config print hostcrl)"; puppet agent -t']


def test_a_pipe_is_not_opened(agent: Agent) -> None:
    agent.place.crl.unlink()
    os.mkfifo(agent.place.crl)
    found = {diagnosis.detail: diagnosis for diagnosis in agent.found()}["crl.pem is not a regular file"]
    assert "Move it away" in found.fix


def test_a_device_is_not_followed(agent: Agent) -> None:
    agent.place.crl.unlink()
    agent.place.crl.symlink_to("/dev/zero")
    assert "crl.pem is not a regular file" in [diagnosis.detail for diagnosis in agent.found()]


def test_a_huge_file_is_not_read(agent: Agent) -> None:
    with agent.place.crl.open("wb") as file:
        file.truncate(200 << 20)
    assert "file too large" in [diagnosis.title for diagnosis in agent.found()]


def test_files_that_may_not_be_read(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: Path, flags: int) -> int:
        if str(path) == str(agent.place.key):
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    monkeypatch.setattr("inspector.doctor.puppet_dir.os.open", refuse)
    found = agent.only()
    assert (found.severity, found.title) == (Severity.WARNING, "not readable")
    assert f"private_keys/{NAME}.pem" in found.detail
    assert found.fix == "Run this as root."


def test_a_directory_that_cannot_be_read_is_not_diagnosed(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of it: not that nobody enrolled here, and not that there are no problems."""

    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    with pytest.raises(InspectorError, match="permission denied") as raised:
        agent.only()
    assert raised.value.hint == "Run this as root."


def test_hostile_names_reach_no_terminal(agent: Agent) -> None:
    agent.write("certs/\x1b[31mred.pem", b"")
    agent.write("odd {clean} $(reboot)", b"")
    found = agent.found(certname=NAME)
    assert not any("\x1b" in diagnosis.detail + diagnosis.fix for diagnosis in found)


# -- modes and owners -----------------------------------------------------------------------------------


def test_a_key_accessible_to_all_users(agent: Agent) -> None:
    agent.place.key.chmod(0o644)
    found = agent.only()
    assert (found.severity, found.title) == (Severity.WARNING, "private key accessible to all users")
    assert [step.command for step in found.steps] == [f"chmod o= {agent.place.key}", "puppet agent -t"]


def test_a_file_that_all_users_may_write(agent: Agent) -> None:
    agent.place.ca.chmod(0o666)
    assert agent.only().title == "writable by all users"


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_the_modes_of_every_generation_are_accepted(agent: Agent, mode: int) -> None:
    agent.place.key.chmod(mode)
    agent.path.chmod(0o771)
    assert stat.S_IMODE(agent.path.stat().st_mode) == 0o771
    assert agent.found() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_key_of_another_user(agent: Agent) -> None:
    for path in (agent.path, *agent.path.rglob("*")):
        os.chown(path, 12345, 12345)
    assert agent.found() == []
    os.chown(agent.place.key, 0, 0)
    found = agent.only()
    assert (found.severity, found.title) == (Severity.WARNING, "wrong owner")
    assert f"private_keys/{NAME}.pem is 0600 root; the owner of the directory (12345)" in found.detail
    os.chown(agent.place.key, 12345, 12345)
    os.chown(agent.path / "certs", 0, 0)
    (agent.path / "certs").chmod(0o700)
    found = agent.only()
    assert "certs is 0700 root; the owner of the directory" in found.detail
    assert "chown -R 12345: " in found.fix


# -- what is not an ssldir ------------------------------------------------------------------------------------


def test_no_directory_and_the_wrong_one(ca: LabCA, tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="There is no directory"):
        ssldir.read(tmp_path / "nowhere")
    with pytest.raises(InspectorError, match="is empty: no agent has run here as this user") as raised:
        ssldir.read(tmp_path)
    assert raised.value.hint == "The first `puppet agent -t` creates its files."
    (tmp_path / "facts.d").mkdir()
    with pytest.raises(InspectorError, match="is not an ssldir"):
        ssldir.read(tmp_path)
    ca.write_cadir(tmp_path / "ca")
    with pytest.raises(InspectorError) as raised:
        ssldir.read(tmp_path / "ca")
    assert raised.value.hint == "Pass it with --cadir."


def test_several_agents_in_one_directory(agent: Agent) -> None:
    agent.ca.enrol(agent.path, "node2.example")
    with pytest.raises(InspectorError) as raised:
        ssldir.read(agent.path)
    assert "--certname" in raised.value.hint
    assert [diagnosis.title for diagnosis in agent.found(certname=NAME)] == ["other files"]
    with pytest.raises(InspectorError, match="has no files of nope") as raised:
        ssldir.read(agent.path, "nope")
    assert raised.value.hint == f"It has files of {NAME}, node2.example."


def test_a_missing_name_in_an_unreadable_directory(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    real = type(agent.path).iterdir

    def refuse(path: Path) -> Iterator[Path]:
        if path.name == "private_keys":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    found = {diagnosis.title: diagnosis for diagnosis in agent.found(certname="other.example")}
    assert "private_keys/other.example.pem cannot be used" in found["no certificate yet"].detail


def test_a_name_in_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "certs").mkdir()
    found = next(
        diagnosis for diagnosis in ssldir.examine(ssldir.read(tmp_path, NAME), time.time()) if "yet" in diagnosis.title
    )
    assert found.detail.startswith(f"private_keys/{NAME}.pem is missing; ")

"""``puppet-inspector provision``: the sources of the certificate."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.cli.main import main
from inspector.cli.provision import LIFETIME, Result, provision
from inspector.errors import InspectorError
from inspector.host import pki, puppetconf
from inspector.lab.ca import LabCA
from inspector.proxy import identity

if TYPE_CHECKING:
    from collections.abc import Callable

    type Install = Callable[..., None]

HOST, NAME = "host.example", "proxy.example"

GENERATES = """#!/bin/sh
[ "$1" = --version ] && echo 7.9.5 && exit
echo "$@" >> "$0.log"
cp SSLDIR/made.key SSLDIR/private_keys/proxy.example.pem
cp SSLDIR/made.crt SSLDIR/certs/proxy.example.pem
echo "Successfully saved certificate"
"""
"""A fake command of a CA: it copies a prepared key and certificate."""


@pytest.fixture
def ca() -> LabCA:
    return LabCA("ca.example")


@pytest.fixture
def cadir(ca: LabCA, tmp_path: Path) -> Path:
    ca.write_cadir(tmp_path / "ca")
    return tmp_path / "ca"


@pytest.fixture(autouse=True)
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This host's puppet.conf: an agent without a certificate, no CA. Files are made in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    place = puppetconf._Place(str(tmp_path / "conf"), str(tmp_path / "var"), ("$confdir/ssl",), ("$ssldir/ca",))
    monkeypatch.setattr(puppetconf, "_PLACES", (place,))
    file = tmp_path / "conf" / "puppet.conf"
    file.parent.mkdir()
    file.write_text(f"[main]\ncertname = {HOST}\nserver = master.example\n")
    return file


@pytest.fixture
def own(ca: LabCA, conf: Path) -> pki.SslDirPaths:
    """This host, enrolled."""
    return ca.enrol(conf.parent / "ssl", HOST)


@pytest.fixture
def ca_host(ca: LabCA, own: pki.SslDirPaths, tmp_path: Path) -> Install:
    """Makes this the CA's host, with a command of that name."""
    ca.write_cadir(own.path / "ca")
    made = ca.enrol(tmp_path / "made", NAME)
    (own.path / "made.key").write_bytes(made.key.read_bytes())
    (own.path / "made.crt").write_bytes(made.certificate.read_bytes())

    def install(command: str, text: str = GENERATES) -> None:
        program = tmp_path / "bin" / command
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.replace("SSLDIR", str(own.path)))
        program.chmod(0o755)

    return install


def _failed(result: Result) -> dict[str, str]:
    return {check.name: check.message for check in result.checks if not check.ok}


# -- this host's own certificate ----------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, HOST])
def test_an_enrolled_host_uses_its_own_certificate(name: str | None, own: pki.SslDirPaths) -> None:
    result = provision(name)
    assert result.ok
    assert (result.how, result.name, result.certificate, result.key) == ("own", HOST, own.certificate, own.key)
    text = "\n".join(result.lines())
    assert f"proxy can use this host's own certificate under the name {HOST}" in text
    assert f"puppet agent -t --server {HOST} --serverport 8140" in text
    assert 'mitmdump -s "$(puppet-inspector addon)"\n' in text
    assert "To undo this" not in text


def test_another_name_is_not_its_own(own: pki.SslDirPaths) -> None:
    result = provision(NAME)
    assert not result.ok
    assert _failed(result) == {
        "name": f"Server hostname '{NAME}' did not match server certificate; expected one of {HOST}"
    }
    text = "\n".join(result.lines())
    assert f"on the CA's host: puppet-inspector provision {NAME}" in text
    assert "Start the proxy:" not in text


def test_a_host_without_a_certificate() -> None:
    with pytest.raises(InspectorError, match="This host has no certificate") as error:
        provision()
    assert "--cadir DIR" in error.value.hint


# -- the CA on this host ------------------------------------------------------------------------------


def test_the_command_for_puppetserver(ca_host: Install) -> None:
    ca_host("puppetserver")
    result = provision(NAME, alt_names=["puppet"])
    assert result.ok
    command = f"puppetserver ca generate --certname {NAME} --subject-alt-names {NAME},puppet"
    assert result.command == command.split()
    assert result.take_back[0] == f"puppetserver ca clean --certname {NAME}"
    assert (result.executed, result.certificate, result.checks) == (False, None, [])
    assert f"  {command}" in result.lines()


def test_the_command_for_puppet_3(ca_host: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    ca_host("puppet")
    result = provision(NAME, alt_names=["puppet"])
    assert result.command[1:] == ["cert", "generate", NAME, f"--dns_alt_names={NAME},puppet"]
    assert result.take_back[0].endswith(f"puppet cert clean {NAME}")
    assert "--masterport up to Puppet 6" in "\n".join(result.lines())


def test_the_command_is_run_if_asked(ca_host: Install, tmp_path: Path) -> None:
    ca_host("puppetserver")
    result = provision(NAME, execute=True)
    assert (tmp_path / "bin/puppetserver.log").read_text() == f"ca generate --certname {NAME}\n"
    assert result.executed
    assert result.ok
    target = Path(f"{NAME}.pem")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert pki.certname_of(identity.load(target, target).chain[0]) == NAME
    text = "\n".join(result.lines())
    assert "Successfully saved certificate" in text
    assert f"--set puppet_cert={NAME}.pem" in text
    assert "Run on this host" not in text
    # A second call uses the certificate of the first.
    again = provision(NAME, execute=True)
    assert (again.command, again.ok) == ([], True)
    assert "has already issued the certificate" in again.notes[0]


def test_the_command_may_fail(ca_host: Install) -> None:
    ca_host("puppetserver", "#!/bin/sh\necho 'Error: connection refused' >&2\nexit 1\n")
    with pytest.raises(InspectorError, match=f"ca generate --certname {NAME}` exited with status 1") as error:
        provision(NAME, execute=True)
    assert "connection refused" in error.value.hint


def test_nothing_is_run_if_the_file_is_there(ca_host: Install, tmp_path: Path) -> None:
    ca_host("puppetserver")
    Path(f"{NAME}.pem").write_text("mine")
    with pytest.raises(InspectorError, match="already exists"):
        provision(NAME, execute=True)
    assert not (tmp_path / "bin/puppetserver.log").exists()


FAILS_LATE = """#!/bin/sh
echo "$@" >> "$0.log"
[ "$2" = clean ] && rm -f SSLDIR/ca/signed/proxy.example.pem && exit
cp SSLDIR/made.key SSLDIR/private_keys/proxy.example.pem
mkdir -p SSLDIR/ca/signed && cp SSLDIR/made.crt SSLDIR/ca/signed/proxy.example.pem
[ "$FAILS" ] && exit 1
cp SSLDIR/made.crt SSLDIR/certs/proxy.example.pem
"""


def _of_name(own: pki.SslDirPaths) -> list[Path]:
    return sorted([*own.path.rglob(f"{NAME}.pem"), *Path().glob(f"{NAME}.pem")])


def test_a_command_that_fails_leaves_nothing_that_it_made(
    ca_host: Install, own: pki.SslDirPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca_host("puppetserver", FAILS_LATE)
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(InspectorError, match="exited with status 1") as error:
        provision(NAME, execute=True)
    assert "What this made was removed again: the certificate of proxy.example on the CA, " in error.value.hint
    assert _of_name(own) == []
    assert (tmp_path / "bin/puppetserver.log").read_text().endswith(f"ca clean --certname {NAME}\n")


def test_what_agents_would_not_trust_is_not_left_behind(ca_host: Install, own: pki.SslDirPaths, tmp_path: Path) -> None:
    """And what was there before stays."""
    ca_host("puppetserver", FAILS_LATE)
    (own.path / "public_keys").mkdir(exist_ok=True)
    (mine := own.path / "public_keys" / f"{NAME}.pem").write_text("mine")
    other = LabCA("other.example").enrol(tmp_path / "other", NAME)
    result = provision(NAME, execute=True, ca=other.ca, crl=other.crl)
    assert not result.ok
    assert _of_name(own) == [mine]
    assert result.notes[-1].startswith("What this made was removed again: the certificate of proxy.example on the CA, ")
    assert result.take_back == []


def test_a_file_that_cannot_be_written_leaves_nothing_either(ca_host: Install, own: pki.SslDirPaths) -> None:
    ca_host("puppetserver", FAILS_LATE)
    with pytest.raises(InspectorError, match="cannot be written"):
        provision(NAME, execute=True, output=Path("absent/p.pem"))
    assert _of_name(own) == []


def test_a_revoked_one_has_a_way_out(ca: LabCA, ca_host: Install, own: pki.SslDirPaths) -> None:
    ca_host("puppetserver")
    assert provision(NAME, execute=True).ok
    left = _of_name(own)
    ca.revoke(NAME)
    (own.path / "ca/ca_crl.pem").write_bytes(ca.crl_bundle)
    result = provision(NAME, execute=True)
    assert not result.ok
    assert "is revoked: serial number" in result.notes[0]
    remove, again = result.steps
    assert all(str(path.resolve()) in remove.destroys or str(path) in remove.destroys for path in left)
    assert again.command == f"puppet-inspector provision {NAME} --execute"
    text = "\n".join(result.lines())
    assert "The way out:" in text
    assert "Start the proxy:" not in text
    for path in left:
        path.unlink()
    assert provision(NAME).command


def test_one_of_another_ca_has_a_way_out(ca_host: Install, own: pki.SslDirPaths, tmp_path: Path) -> None:
    ca_host("puppetserver")
    other = LabCA("other.example").enrol(tmp_path / "other", NAME)
    stale = Path(f"{NAME}.pem")
    stale.write_bytes(other.key.read_bytes() + other.certificate.read_bytes())
    result = provision(NAME, execute=True)
    assert f"{NAME}.pem is of another CA than the one on this host: CN=Puppet CA: other.example." in result.notes
    assert result.steps[0].command == f"rm {NAME}.pem"
    (own.path / "ca/signed").mkdir()
    (own.path / "ca/signed" / f"{NAME}.pem").touch()
    for made, copy in ((other.key, "private_keys"), (other.certificate, "certs")):
        (own.path / copy / f"{NAME}.pem").write_bytes(made.read_bytes())
    forget, remove, _ = provision(NAME).steps
    assert forget.command == f"puppetserver ca clean --certname {NAME}"
    assert forget.destroys
    assert str(own.path / "certs" / f"{NAME}.pem") in remove.command


# -- made with a CA directory -------------------------------------------------------------------------


def test_one_is_made_with_a_cadir(cadir: Path, tmp_path: Path, ca: LabCA) -> None:
    target = tmp_path / "p.pem"
    result = provision(NAME, alt_names=["puppet"], cadir=cadir, output=target)
    assert result.ok, result.checks
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    leaf, issuer = identity.load(target, target).chain
    assert issuer == ca.authority.certificate
    assert pki.certname_of(leaf) == NAME
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [NAME, "puppet"]
    assert leaf.serial_number.bit_length() > 100
    assert leaf.not_valid_after_utc - datetime.now(UTC) <= LIFETIME
    assert result.take_back == [f"rm {target}"]
    assert f"--set puppet_cert={target} --set puppet_identity=mint:{cadir}" in result.proxy
    assert f"--set puppet_ca={cadir}/ca_crt.pem" in result.proxy


def test_an_existing_file_is_never_overwritten(cadir: Path, tmp_path: Path) -> None:
    target = tmp_path / "p.pem"
    target.write_text("mine")
    with pytest.raises(InspectorError, match="already exists"):
        provision(NAME, cadir=cadir, output=target)
    assert target.read_text() == "mine"


def test_a_node_of_that_name_is_not_doubled(cadir: Path) -> None:
    (cadir / "signed").mkdir()
    (cadir / "signed" / f"{NAME}.pem").touch()
    with pytest.raises(InspectorError, match=f"already has a certificate for {NAME}"):
        provision(NAME, cadir=cadir)


def test_mistakes_with_a_cadir(cadir: Path, tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="needs a name"):
        provision(cadir=cadir)
    with pytest.raises(InspectorError, match=r"contains no usable ca_crt\.pem"):
        provision(NAME, cadir=tmp_path)
    with pytest.raises(InspectorError, match="cannot be written"):
        provision(NAME, cadir=cadir, output=tmp_path / "absent" / "p.pem")
    (cadir / "ca_key.pem").unlink()
    with pytest.raises(InspectorError, match="cannot be read as a private key"):
        provision(NAME, cadir=cadir)


@pytest.mark.parametrize("name", ["Proxy.example", "../etc", "a b", "-x", "a..b", "*.example", ""])
def test_invalid_certnames(name: str, cadir: Path) -> None:
    with pytest.raises(InspectorError, match="is not a valid certname"):
        provision(name, cadir=cadir)
    with pytest.raises(InspectorError, match="is not a valid certname"):
        provision(NAME, alt_names=[name], cadir=cadir)


# -- the command --------------------------------------------------------------------------------------


def test_json_has_always_the_same_fields(
    own: pki.SslDirPaths, cadir: Path, ca_host: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    ca_host("puppetserver")
    fields = {"name", "how", "certificate", "key", "command", "executed", "ok", "checks", "notes", "proxy", "agent",
              "take_back", "steps"}  # fmt: skip
    for how, arguments in (
        ("own", []),
        ("ca", [NAME]),
        ("cadir", ["p1.example", "--cadir", str(cadir)]),
        ("given", ["--cert", "p1.example.pem"]),
    ):
        assert main(["provision", "--json", *arguments]) == 0
        document = json.loads(capsys.readouterr().out)
        assert set(document) == fields
        assert document["how"] == how
        assert document["ok"] is True
        assert all(set(check) == {"check", "ok", "message"} for check in document["checks"])

"""What the proxy says when more than this host can reach it, and which keys it will not start with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import IdentityError, InspectorError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.proxy import identity, options, tls

if TYPE_CHECKING:
    from pathlib import Path

NAME = "proxy.example"


@pytest.fixture
def ca() -> LabCA:
    return LabCA("master.example")


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> pki.SslDirPaths:
    return ca.enrol(tmp_path / "ssl", NAME)


def settled(place: pki.SslDirPaths, **given: object) -> options.Settings:
    chosen = {f"puppet_{name}": value for name, value in given.items()}
    files = {"puppet_ca": str(place.ca), "puppet_crl": str(place.crl), "puppet_identity": f"keys:{place.path}"}
    pem = place.path / "shown.pem"
    pki.write_private(pem, place.key.read_bytes() + place.certificate.read_bytes())
    given_ = options.with_defaults(mode=["regular"], puppet_master="master.example", puppet_cert=str(pem), **files)
    for name, value in chosen.items():
        setattr(given_, name, value)
    return options.resolve(given_, own_mode=False)


@pytest.mark.parametrize(
    ("addresses", "reached"),
    [
        (["127.0.0.1:8140"], None),
        (["[::1]:8140", "127.0.0.2:1"], None),
        (["0.0.0.0:8140"], "0.0.0.0:8140"),
        (["[::]:8140", "127.0.0.1:8140"], "[::]:8140"),
        (["192.0.2.1:8140", "[2001:db8::1]:8140"], "192.0.2.1:8140, [2001:db8::1]:8140"),
    ],
)
def test_it_says_what_others_can_reach(place: pki.SslDirPaths, addresses: list[str], reached: str | None) -> None:
    lines = [line for line in options.startup_lines(settled(place), addresses) if "from the network" in line]
    assert len(lines) == bool(reached)
    assert all(line.startswith(f"-- {reached} can be reached from the network: ") for line in lines)


def test_nothing_is_exposed_unless_it_is_asked_for(place: pki.SslDirPaths) -> None:
    assert settled(place).listen[0] == "127.0.0.1"
    assert settled(place).warnings == ()


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o620, 0o602, 0o666])
def test_a_key_that_is_open_to_others_is_refused(place: pki.SslDirPaths, mode: int) -> None:
    place.key.chmod(mode)
    with pytest.raises(IdentityError, match=f"mode {mode:04o}. Run chmod g-w,o= {place.key} ") as refused:
        tls.PresentedCertificate(place.certificate, place.key)
    assert refused.value.hint.endswith("puppet_unsafe_keys=true).")
    assert tls.PresentedCertificate(place.certificate, place.key, unsafe=True).credentials.chain


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_puppets_own_modes_are_fine(place: pki.SslDirPaths, mode: int) -> None:
    place.key.chmod(mode)
    assert tls.PresentedCertificate(place.certificate, place.key).credentials.chain


def test_a_directory_in_which_anybody_can_exchange_the_key(place: pki.SslDirPaths, tmp_path: Path) -> None:
    place.key.parent.chmod(0o777)
    with pytest.raises(IdentityError, match=f"chmod o-w {place.key.parent}"):
        identity.load(place.certificate, place.key)
    place.key.parent.chmod(0o1777)  # as /tmp: only the owner exchanges a file
    assert identity.load(place.certificate, place.key)
    # A link is no better than what it leads to.
    moved = tmp_path / "open"
    moved.mkdir()
    moved.chmod(0o777)
    place.key.rename(moved / "key.pem")
    place.key.symlink_to(moved / "key.pem")
    with pytest.raises(IdentityError, match=f"its directory {moved} has mode 0777"):
        identity.load(place.certificate, place.key)


def test_the_key_of_a_ca_is_a_key(ca: LabCA, tmp_path: Path) -> None:
    ca.write_cadir(tmp_path / "ca")
    (tmp_path / "ca" / "ca_key.pem").chmod(0o644)
    with pytest.raises(InspectorError, match="mode 0644"):
        identity.source_of(f"mint:{tmp_path / 'ca'}")
    assert identity.source_of(f"mint:{tmp_path / 'ca'}", unsafe=True).mode == "mint"


def test_an_open_key_stops_the_start_unless_it_is_meant_so(place: pki.SslDirPaths) -> None:
    pem = place.path / "open.pem"
    pem.write_bytes(place.key.read_bytes() + place.certificate.read_bytes())
    pem.chmod(0o644)
    with pytest.raises(InspectorError, match="Other users can read or change the private key"):
        settled(place, cert=str(pem))
    assert settled(place, cert=str(pem), unsafe_keys=True).presented_path == pem


def test_a_renewed_key_that_is_open_is_not_taken_up(place: pki.SslDirPaths, ca: LabCA) -> None:
    shown = tls.PresentedCertificate(place.certificate, place.key)
    before = shown.refresh()
    key = pki.new_key()
    place.certificate.write_bytes(pki.pem(pki.sign(ca.authority, key.public_key(), NAME)))
    place.key.write_bytes(pki.key_pem(key))
    place.key.chmod(0o644)
    assert shown.refresh() is before
    assert shown.error
    assert "mode 0644" in shown.error
    place.key.chmod(0o640)
    assert shown.refresh() is not before
    assert shown.error is None


def test_only_the_common_name_is_sent_in_headers(ca: LabCA) -> None:
    key = pki.new_key()
    leaf = pki.sign(ca.authority, key.public_key(), "a.example")
    headers = dict(identity.HeaderIdentity().headers(leaf))
    assert headers["X-Client-DN"] == "CN=a.example"
    assert headers["X-Client-Verify"] == "SUCCESS"
    assert all(value.isprintable() for value in headers.values())

"""Who has no identity in the master's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.errors import IdentityError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.proxy.tap.identities import PRIVILEGED, Minted, Nobody

if TYPE_CHECKING:
    from pathlib import Path

ROLE = "1.3.6.1.4.1.34380.1.1.13"
"""pp_role, a trusted fact."""
NODE = "web1.example"


def certificate(oid: str = "") -> x509.Certificate:
    ca, key = pki.make_ca("CA"), pki.new_key()
    named = x509.ObjectIdentifier(oid) if oid else None
    extensions = (
        [x509.Extension(named, critical=False, value=x509.UnrecognizedExtension(named, b"\x0c\x01x"))] if named else []
    )
    return pki.sign(ca, key.public_key(), NODE, extensions=extensions)


@pytest.mark.parametrize("oid", PRIVILEGED)
def test_who_may_do_more_than_others(oid: str, tmp_path: Path) -> None:
    LabCA("puppet.example").write_cadir(tmp_path / "ca")
    with pytest.raises(IdentityError, match=PRIVILEGED[oid]):
        Minted(tmp_path / "ca").credentials_for(certificate(oid), NODE)


@pytest.mark.parametrize("oid", ["", ROLE])
def test_everybody_else_is_served(oid: str, tmp_path: Path) -> None:
    LabCA("puppet.example").write_cadir(tmp_path / "ca")
    assert Minted(tmp_path / "ca").credentials_for(certificate(oid), NODE)


def test_without_the_cas_key_nobody_is_who_has_a_certificate() -> None:
    with pytest.raises(IdentityError, match="not on this host"):
        Nobody().credentials_for(certificate(), NODE)

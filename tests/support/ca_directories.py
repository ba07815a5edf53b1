"""CAs' directories in the form of puppetserver, made quickly: to be copied, changed and compared."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.host import pki

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography import x509

PUPPET = 12345
"""The user id that the CA runs as: as root, tests give its files to this user."""
ROOT = pki.make_ca("Puppet Root CA: 0123456789abcd", serial=1)
AUTHORITY = pki.make_ca("Puppet CA: ca.example", ROOT, serial=2)


@dataclass(slots=True)
class MadeCa:
    """A CA whose directory can be written; a copy of it goes its own way."""

    authority: pki.Authority = AUTHORITY
    keys: dict[str, pki.PrivateKey] = field(default_factory=dict)
    signed: dict[str, x509.Certificate] = field(default_factory=dict)
    requests: dict[str, x509.CertificateSigningRequest] = field(default_factory=dict)
    inventory: list[x509.Certificate] = field(default_factory=list)
    revoked: list[int] = field(default_factory=list)
    serial: int = 3
    number: int = 1

    def copy(self) -> MadeCa:
        """Return the same CA, which goes its own way from now on."""
        return MadeCa(
            self.authority, {**self.keys}, {**self.signed}, {**self.requests}, [*self.inventory], [*self.revoked],
            self.serial, self.number,
        )  # fmt: skip

    def issue(
        self,
        name: str,
        key: pki.PrivateKey | None = None,
        alt_names: tuple[str, ...] = (),
        lifetime: datetime.timedelta = pki.LEAF_LIFETIME,
    ) -> x509.Certificate:
        """Sign a node's key; without ``key`` the one that it has, or its first."""
        self.keys[name] = key or self.keys.get(name) or pki.new_key()
        certificate = pki.sign(
            self.authority, self.keys[name].public_key(), name, alt_names, serial=self.serial, lifetime=lifetime,
            not_before=datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=9),
        )  # fmt: skip
        self.serial += 1
        self.inventory.append(certificate)
        self.signed[name] = certificate
        return certificate

    def request(self, name: str, key: pki.PrivateKey | None = None) -> None:
        self.keys[name] = key or self.keys.get(name) or pki.new_key()
        self.requests[name] = pki.make_csr(name, self.keys[name])

    def revoke(self, name: str) -> None:
        self.revoked.append(self.signed[name].serial_number)
        self.number += 1

    def clean(self, name: str) -> None:
        self.revoke(name)
        del self.signed[name]

    def write(self, path: Path, *, slash: bool = False) -> Path:
        """Write the directory; ``slash``: with subjects as openvox-ca writes them into the inventory."""
        for made in (path, path / "signed", path / "requests"):
            made.mkdir()
        (path / "ca_crt.pem").write_bytes(pki.pem(self.authority.certificate, ROOT.certificate))
        pki.write_private(path / "ca_key.pem", pki.key_pem(self.authority.key))
        crl = pki.make_crl(self.authority, self.revoked, self.number)
        (path / "ca_crl.pem").write_bytes(pki.pem(crl, pki.make_crl(ROOT)))
        (path / "serial").write_text(f"{self.serial:04X}")
        (path / "inventory.txt").write_text("".join(_line(one, slash=slash) for one in self.inventory))
        for name, certificate in self.signed.items():
            (path / f"signed/{name}.pem").write_bytes(pki.pem(certificate))
        for name, request in self.requests.items():
            (path / f"requests/{name}.pem").write_bytes(pki.pem(request))
        if os.geteuid() == 0:
            for file in (path, *path.rglob("*")):
                os.chown(file, PUPPET, PUPPET)
        return path


def _line(certificate: x509.Certificate, *, slash: bool) -> str:
    first, last = (
        f"{moment:%Y-%m-%dT%H:%M:%SUTC}"
        for moment in (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    )
    name = pki.certname_of(certificate)
    return f"0x{certificate.serial_number:04x} {first} {last} /{'' if slash else 'CN='}{name}\n"

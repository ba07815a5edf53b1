"""The ways to ask another master for a node's catalog: with which certificate, and at which endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cryptography import x509 as cx509

from inspector import inputs
from inspector.errors import IdentityError, InspectorError
from inspector.host import puppetconf
from inspector.model import Identity
from inspector.protocol import x509
from inspector.protocol.pem import UNREADABLE
from inspector.proxy import identity
from inspector.rehearsal import requests
from inspector.rehearsal.requests import Asked, Unsendable

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Request
    from inspector.protocol import documents as d
    from inspector.proxy.identity import Credentials

RULE = """\
Add this to the rules in auth.conf of that master, and reload it (systemctl reload puppetserver):
{{
    match-request: {{
        path: "^/puppet/v4/catalog/?$"
        type: regex
        method: [post]
    }}
    allow: ["{certname}"]
    sort-order: 499
    name: "puppet-inspector rehearse"
}}"""
STORES = (
    "A master that stores in PuppetDB would overwrite the data of every node that is rehearsed as an agent; whether it "
    "stores cannot be seen on the wire."
)


class Road(Protocol):
    """A way to a catalog."""

    name: str
    ca: Path | None
    """The CA bundle beside its certificates, if there is one."""
    one_ca: bool
    """Whether all certificates are of one CA: a master that does not know it accepts none."""

    def credentials(self, of: Asked) -> Credentials:
        """Return the certificate and key for a node. Raises IdentityError or Unsendable."""

    def request(self, of: Asked, environment: str | None, facts: d.Facts | None) -> Request:
        """Return the request for its catalog; ``facts`` if they are not those that were recorded. Raises Unsendable."""

    def identity(self, of: Asked) -> Identity:
        """Return what the record says of the certificate."""


class AsAgent:
    """``keys:DIR`` and ``mint:CADIR``: as each node itself asks."""

    def __init__(self, name: str, source: identity.IdentitySource, ca: Path) -> None:
        self.name, self._source = name, source
        self.ca = ca if inputs.is_file(ca) else None
        self.one_ca = name == "mint"

    def credentials(self, of: Asked) -> Credentials:
        if not identity.CERTNAME.fullmatch(of.certname):
            raise Unsendable("its name is no certname")
        if isinstance(self._source, identity.KeyDirectory):
            return self._source.stored(of.certname)  # not the recorded certificate, which another CA may have signed
        if of.certificate is None:
            raise Unsendable("its certificate was not recorded, so its trusted facts are not known")
        found = self._source.credentials_for(_certificate(of.certificate), of.certname)
        assert found is not None  # noqa: S101 - a minting CA has credentials
        return found

    def request(self, of: Asked, environment: str | None, facts: d.Facts | None) -> Request:
        return requests.as_recorded(of, environment, facts)

    def identity(self, of: Asked) -> Identity:
        return Identity(self.name, of.certname)


class V4:
    """``v4``: one certificate for all nodes, and nothing is stored."""

    name = "v4"
    one_ca = True

    def __init__(self, credentials: Credentials, ca: Path | None) -> None:
        self._credentials, self.ca = credentials, ca
        self.certname = identity.certname_of(credentials.chain[0])

    def credentials(self, of: Asked) -> Credentials:
        return self._credentials

    def request(self, of: Asked, environment: str | None, facts: d.Facts | None) -> Request:
        certificate = x509.certificate(_certificate(of.certificate)) if of.certificate else None
        return requests.v4(of, certificate, environment, facts)

    def identity(self, of: Asked) -> Identity:
        return Identity("keys", self.certname)

    @property
    def rule(self) -> str:
        """The setting that allows this certificate to compile for all nodes."""
        return RULE.format(certname=self.certname)


def road_of(text: str, certificate: Path | None, key: Path | None, *, stores: bool) -> AsAgent | V4:
    """Return the road that the user named; ``stores``: the user knows that data of nodes may be overwritten. Raises
    InspectorError."""
    name, _, argument = text.partition(":")
    match name, argument:
        case (("keys" | "mint"), directory) if directory:
            if not stores:
                raise InspectorError(
                    STORES,
                    "Use --road v4, which stores nothing; or, if it may, add --stores-data-of-nodes.",
                )
            folder = inputs.expanded(directory)
            if name == "keys":
                return AsAgent(name, identity.KeyDirectory(folder), folder / "certs" / "ca.pem")
            return AsAgent(name, identity.Mint(folder, alt_names=True), folder / "ca_crt.pem")
        case "v4", "":
            return _v4(certificate, key)
    raise InspectorError(f"{text!r} is no road.", "Use --road v4, keys:DIR or mint:CADIR.")


def _v4(certificate: Path | None, key: Path | None) -> V4:
    if certificate is not None:
        return V4(identity.load(certificate, key or certificate), None)
    conf = puppetconf.read()
    if not inputs.is_file(conf.certificate):
        raise InspectorError(
            f"This host has no certificate {conf.certificate}.",
            "Name one that the new master's CA signed: --cert PEM --key PEM.",
        )
    return V4(identity.load(conf.certificate, conf.key), conf.ca if inputs.is_file(conf.ca) else None)


def _certificate(der: bytes) -> cx509.Certificate:
    try:
        return cx509.load_der_x509_certificate(der)
    except UNREADABLE as error:
        raise IdentityError("its recorded certificate cannot be read.") from error

"""Conversations for examples and tests: ``talk(ca(), crl(), csr(), issued(), catalog(), report())``.

Each part makes one exchange of an agent with its master, well-formed and healthy unless told otherwise.
Certificates are made when first needed, and kept. Nothing here is for production use.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal
from urllib.parse import quote

from cryptography.hazmat.primitives.serialization import Encoding

from inspector import pki
from inspector.model import Exchange, Leg, Record, Request, Response

NAME = "node1.example"
MASTER = "puppet.example"

type Part = Callable[[_Scene], Exchange]
type Shown = Literal["own", "foreign"]


@dataclass(slots=True)
class _Scene:
    """Who talks, and when."""

    version: str
    certificate: bool
    shown: Shown
    time: float
    connection: int = 0

    @property
    def legacy(self) -> bool:
        return int(self.version.partition(".")[0]) < 4


@cache
def _authorities() -> tuple[pki.Authority, pki.Authority]:
    root = pki.make_ca("Sample Root CA")
    return root, pki.make_ca("Sample CA", root)


@cache
def _foreign() -> pki.Authority:
    return pki.make_ca("Foreign CA")


@cache
def _key(_name: str) -> pki.PrivateKey:
    return pki.new_key()


@cache
def _chain(certname: str, key: str, issuer: str = "own") -> tuple[bytes, ...]:
    authority = _authorities()[1] if issuer == "own" else _foreign()
    leaf = pki.sign(authority, _key(key).public_key(), certname)
    return (leaf.public_bytes(Encoding.DER),)


def _time() -> float:
    """Within the validity of everything made here, without looking at a clock."""
    return _authorities()[0].certificate.not_valid_before_utc.timestamp() + 86_500


def talk(
    *parts: Part,
    version: str = "7.23.0",
    certificate: bool = True,
    shown: Shown = "own",
    certname: str = NAME,
) -> list[Record]:
    """A conversation of one agent: a record a part, numbered from 1, one second apart.

    ``version`` is the agent's, ``certificate`` whether its run requests carry one, ``shown`` which CA made
    the certificate that the agent is shown for the master's.
    """
    scene = _Scene(version, certificate, shown, _time() + 3600)
    records: list[Record] = []
    for seq, part in enumerate(parts, 1):
        scene.time += 1
        scene.connection = seq
        exchange = part(scene)
        exchange = dataclasses.replace(exchange, seq=seq)
        records.append(_renamed(exchange, certname))
    return records


def _renamed(exchange: Exchange, certname: str) -> Exchange:
    if certname == NAME:
        return exchange
    request = dataclasses.replace(exchange.request, target=exchange.request.target.replace(NAME, certname))
    return dataclasses.replace(exchange, request=request)


def _exchange(
    scene: _Scene,
    method: str,
    path: str,
    *,
    status: int = 200,
    body: bytes = b"",
    sent: bytes = b"",
    media: str = "text/plain",
    sends: str = "",
    run: bool = False,
    headers: tuple[tuple[str, str], ...] = (),
) -> Exchange:
    authenticated = run and scene.certificate
    leg = Leg(
        id=f"agent-{'run' if run else scene.connection}",
        side="agent",
        address="192.0.2.7",
        port=40_000 + (0 if run else scene.connection),
        connected=scene.time - 0.1,
        secured=scene.time - 0.05,
        tls_version="TLSv1.3",
        sni=MASTER,
        peer_chain=_chain(NAME, "agent") if authenticated else (),
        own_chain=_chain(MASTER, "master", scene.shown),
    )
    agent = (("X-Puppet-Version", scene.version),) if not scene.legacy else ()
    content = (("Content-Type", sends),) if sends else ()
    request = Request(
        headers=(*agent, ("Accept", media), *content, *headers, ("Host", f"{MASTER}:8140")),
        body=sent,
        method=method,
        target=path,
        started=scene.time,
        ended=scene.time + 0.01,
    )
    response = Response(
        headers=(("Content-Type", media), ("X-Puppet-Version", "7.23.0")),
        body=body,
        status=status,
        started=scene.time + 0.1,
        ended=scene.time + 0.2,
    )
    return Exchange(leg, request, response)


def _ca_path(scene: _Scene, rest: str) -> str:
    return f"/production/{rest}?" if scene.legacy else f"/puppet-ca/v1/{rest}"


def _master_path(scene: _Scene, rest: str) -> str:
    return f"/production/{rest}" if scene.legacy else f"/puppet/v3/{rest}?environment=production"


def ca(*, refresh: bool = False) -> Part:
    """The download of the CA bundle: intermediate and root."""
    root, own = _authorities()

    def part(scene: _Scene) -> Exchange:
        headers = (("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"),) if refresh else ()
        body = pki.pem(own.certificate, root.certificate)
        return _exchange(scene, "GET", _ca_path(scene, "certificate/ca"), body=body, headers=headers)

    return part


def crl(*, status: int = 200, expired: bool = False, complete: bool = True) -> Part:
    """The download of the CRL bundle; ``complete=False`` leaves the root's CRL out."""
    root, own = _authorities()

    def part(scene: _Scene) -> Exchange:
        start = datetime.datetime.fromtimestamp(_time(), datetime.UTC)
        until = start + datetime.timedelta(seconds=60) if expired else None
        lists = [pki.make_crl(own, last_update=start, next_update=until)]
        if complete:
            lists.append(pki.make_crl(root, last_update=start))
        body = pki.pem(*lists) if status == 200 else b"Could not find certificate_revocation_list ca"
        return _exchange(scene, "GET", _ca_path(scene, "certificate_revocation_list/ca"), status=status, body=body)

    return part


def csr(*, key: str = "agent", status: int = 200, text: str = "") -> Part:
    """A signing request; ``text`` is what the CA says after the name when it refuses."""

    def part(scene: _Scene) -> Exchange:
        return _exchange(
            scene,
            "PUT",
            _ca_path(scene, f"certificate_request/{NAME}").rstrip("?"),
            sent=pki.pem(pki.make_csr(NAME, _key(key))),
            sends="text/plain",
            status=status,
            body=f"{NAME} {text}; ignoring certificate request".encode() if text else b"",
        )

    return part


def issued(*, key: str = "agent") -> Part:
    """The signed certificate, made for the agent's key or for another."""
    # A certificate for "other" is one that the agent whose key is "agent" can't use, and vice versa.
    return lambda scene: _exchange(scene, "GET", _ca_path(scene, f"certificate/{NAME}"), body=_pem(_chain(NAME, key)))


def not_issued() -> Part:
    """A poll before anybody signed."""
    return lambda scene: _exchange(
        scene,
        "GET",
        _ca_path(scene, f"certificate/{NAME}"),
        status=404,
        body=f"Could not find certificate {NAME}".encode(),
    )


def catalog(*, uuid: str | None = "a-1", status: int = 200, environment: str = "production") -> Part:
    """The catalog: facts there, resources back."""

    def part(scene: _Scene) -> Exchange:
        facts = quote(json.dumps({"name": NAME, "values": {"puppetversion": scene.version}}))
        form = f"environment=production&facts_format=application%2Fjson&facts={quote(facts)}"
        form += f"&transaction_uuid={uuid}" if uuid else ""
        body: object = {"name": NAME, "environment": environment, "resources": []}
        if status >= 400:
            body = {"message": "Server Error: no catalog", "issue_kind": "RUNTIME_ERROR"}
        return _exchange(
            scene, "POST", _master_path(scene, f"catalog/{NAME}"), sent=form.encode(), status=status,
            sends="application/x-www-form-urlencoded", media="application/json",
            body=json.dumps(body).encode(), run=True,
        )  # fmt: skip

    return part


def report(*, uuid: str | None = "a-1", status: int = 200, told: str = "unchanged") -> Part:
    """The report; ``told`` is the run's status in it."""

    def part(scene: _Scene) -> Exchange:
        document = {
            "host": NAME, "status": told, "environment": "production", "report_format": 12,
            "transaction_uuid": uuid, "puppet_version": scene.version,
        }  # fmt: skip
        return _exchange(
            scene, "PUT", _master_path(scene, f"report/{NAME}"), sent=json.dumps(document).encode(),
            sends="application/json", media="application/json", status=status, body=b'["store"]', run=True,
        )  # fmt: skip

    return part


def _pem(chain: tuple[bytes, ...]) -> bytes:
    from cryptography import x509

    return b"".join(x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM) for der in chain)

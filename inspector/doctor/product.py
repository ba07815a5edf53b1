"""Determine what answers at a master's address: a Puppet master, another service of Puppet, or some other server.

All else that a check of a live master finds is only worth reading if it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from inspector import regex
from inspector.doctor import findings
from inspector.doctor.tls_client import Unreachable, open_session
from inspector.protocol.ca_service import OPENVOX_CA
from inspector.rules.fixes import advice, on_node
from inspector.text import address, clean

if TYPE_CHECKING:
    from inspector.doctor.findings import Diagnosis
    from inspector.doctor.tls_client import HttpResponse, Target
    from inspector.protocol.ca_service import CaService

PROTECTED = "/puppet/v3/environments"
"""A path that every agent with a certificate may read, and nobody without one (docs/protocol.md#default-rules)."""
_CA, _CRL = "/puppet-ca/v1/certificate/ca", "/puppet-ca/v1/certificate_revocation_list/ca"
OLD_CA = "/production/certificate/ca"
"""The CA's certificate of a master of Puppet 3."""
_SERVICES = "/status/v1/services"
"""The path at which Puppet Server, PuppetDB and Puppet Enterprise name their services to everybody."""
_OF_A_MASTER = frozenset({"server", "master", "ca", "puppet-profiler"})
_OTHERS = {"puppetdb-status": "PuppetDB", "rbac-service": "the console of Puppet Enterprise",
           "broker-service": "the broker of Puppet Enterprise's orchestrator"}  # fmt: skip
_EXPIRATIONS = "/puppet-ca/v1/expirations"
"""Only an openvox-ca names these two dates, and to everybody."""
_PEM = b"-----BEGIN CERTIFICATE-----"
_TITLE = regex.compile(rb"<title[^>]*>([^<]{1,200})", regex.IGNORECASE)


def unreachable(target: Target, error: Unreachable) -> Diagnosis:
    """Return the diagnosis for a server that does not answer, or not as one does that speaks TLS and HTTP."""
    detail = f"no Puppet master answers at {address(target.host, target.port)}: {error}"
    return findings.error(error.title, detail, error.fix)


_OF_ANOTHER = (
    on_node("check the name and the port", "puppet config print server serverport --section agent"),
    advice("check that it passes the connections on to a master", only_if="it is a load balancer"),
)


def another_server(target: Target, answer: HttpResponse) -> Diagnosis | None:
    """Return the diagnosis for a server that is no Puppet master; None if it is one.

    ``answer`` is to the request for the CA's certificate, which agents send first.
    """
    if _of_master(answer):
        return None
    for path in (OLD_CA, PROTECTED):
        if (other := _ask(target, path)) and _of_master(other):
            return None
    services = _names(_ask(target, _SERVICES))
    if services & _OF_A_MASTER:
        return None
    product = next((name for service, name in _OTHERS.items() if service in services), None)
    product = product or answer.headers.get("server", "")[:100] or "a web server"
    detail = (
        f"no Puppet master answers at {address(target.host, target.port)}, but {product}: to the request for the CA's "
        f"certificate it answers {answer.status}{excerpt(answer)}"
    )
    return findings.error("no Puppet master", detail, _OF_ANOTHER)


def master(target: Target, answer: HttpResponse) -> Diagnosis:
    """Return the fact that a Puppet master answers."""
    version = answer.headers.get("x-puppet-version")
    detail = address(target.host, target.port) + (f", Puppet {version}" if version else "")
    return findings.notice("a Puppet master answers", detail)


def has_ca(target: Target) -> bool:
    """Whether a CA answers."""
    answer = _ask(target, _CA)
    return answer is not None and answer.status == 200 and _PEM in answer.body


def without_ca(target: Target, answer: HttpResponse) -> bool:
    """Whether a master has no CA service, as a compiler; ``answer`` is to the request for the CA's certificate."""
    if answer.status != 404 or ((old := _ask(target, OLD_CA)) and old.status == 200):
        return False
    crl = _ask(target, _CRL)
    return crl is not None and crl.status == 404


def ca_service(target: Target, answer: HttpResponse) -> CaService | None:
    """Return the program of a CA; None if it is one of Puppet's own.

    ``answer`` is to the request for its certificate.
    """
    if "x-puppet-version" in answer.headers or not _of_master(answer):
        return None
    return OPENVOX_CA if _names(_ask(target, _EXPIRATIONS)) == {"ca_certificate", "ca_crl"} else None


def excerpt(answer: HttpResponse) -> str:
    """Return the beginning of an unexpected text, or its HTML title."""
    heading = _TITLE.search(answer.body[:65536])
    text = (heading[1] if heading else answer.body[:100]).decode("utf-8", "replace").strip()
    return f" ({clean(' '.join(text.split()))})" if text else ""


def _of_master(answer: HttpResponse) -> bool:
    """Tell whether only a Puppet master answers so."""
    if "x-puppet-version" in answer.headers or answer.body.startswith((b"Forbidden request", b"-----BEGIN CERT")):
        return True
    return answer.status == 200 and _PEM in answer.body


def _names(answer: HttpResponse | None) -> frozenset[str]:
    """Return the names in a JSON object; none if it is something else."""
    if answer is None:
        return frozenset()
    try:
        return frozenset(msgspec.json.decode(answer.body, type=dict[str, object]))
    except (msgspec.DecodeError, RecursionError):
        return frozenset()


def _ask(target: Target, path: str) -> HttpResponse | None:
    try:
        return open_session(target, path).answer
    except Unreachable:
        return None

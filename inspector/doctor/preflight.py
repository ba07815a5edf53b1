"""Check whether agents that use a name for the proxy will trust its certificate.

Runs every check that an agent makes, on the files as they are now. The master is not asked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.doctor.findings import serves, wrong_name
from inspector.errors import IdentityError
from inspector.protocol import x509
from inspector.proxy import identity, tls
from inspector.text import utc_day

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_VALIDITY = frozenset({9, 10})
_REVOKED = 23


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its result."""

    name: str
    ok: bool
    message: str
    """The facts if the check passes, else the reason in the agent's words."""


def checks(name: str, certificate: Path, key: Path, ca: Path, crl: Path) -> list[Check]:
    """Check a certificate that is presented under ``name`` to agents with this CA bundle and these CRLs.

    Raises IdentityError if certificate, key or CA bundle cannot be used at all.
    """
    presented = identity.load(certificate, key)
    try:
        material = tls.SiteTrust(ca, crl)
    except IdentityError as error:
        raise IdentityError(error.message, "Pass the agents' CA bundle: --ca FILE (and --crl FILE).") from error
    leaf = x509.certificate(presented.chain[0])
    names = ", ".join(alt_name.partition(":")[2] for alt_name in leaf.alt_names) or leaf.subject
    problems = _problems(presented, material)
    expired = [problem for problem in problems if problem.code in _VALIDITY]
    revoked = [problem for problem in problems if problem.code == _REVOKED]
    undecided = [problem for problem in problems if problem.undecided]
    untrusted = [problem for problem in problems if problem not in (*expired, *revoked, *undecided)]
    wrong_usage = f"certificate verify failed [unsuitable certificate purpose for {leaf.subject}]"
    unknown = ["not known: no chain to a CA that agents trust"] if untrusted else []
    unlisted = (
        [] if any(crl.issuer == presented.chain[0].issuer for crl in material.crls) else ["not known without a CRL"]
    )
    return [
        _check("chain", untrusted, f"issued by {leaf.issuer}, trusted by {ca}"),
        _check("validity", expired, f"from {utc_day(leaf.not_before)} to {utc_day(leaf.not_after)}"),
        _check(
            "name", [] if x509.names_match(leaf, name) else [wrong_name(name, leaf)], f"the certificate is for {names}"
        ),
        _check(
            "usage",
            [] if serves(presented.ders[0]) else [wrong_usage],
            "the certificate is valid for servers (serverAuth)",
        ),
        _check("revocation", revoked or unknown or unlisted, f"serial number {leaf.serial} is not on a CRL"),
        _check("CRL", [material.error] if material.error else undecided or unknown, f"{crl} covers the chain"),
    ]


def _check(name: str, problems: Sequence[object], facts: str) -> Check:
    return Check(name, not problems, "; ".join(map(str, problems)) or facts)


def _problems(presented: identity.Credentials, material: tls.SiteTrust) -> list[x509.Problem]:
    authorities = [authority.public_bytes(Encoding.DER) for authority in material.authorities]
    crls = [crl.public_bytes(Encoding.DER) for crl in material.crls]
    problems = x509.verify(presented.ders, authorities, crls, time.time())
    leaf = presented.chain[0]
    serials = {entry.serial_number for crl in material.crls for entry in crl if crl.issuer == leaf.issuer}
    if leaf.serial_number in serials and all(problem.code != _REVOKED for problem in problems):
        # OpenSSL does not read a CRL that has expired.
        problems.append(x509.Problem(_REVOKED, 0, x509.name_of(leaf.subject), x509.name_of(leaf.issuer)))
    return problems

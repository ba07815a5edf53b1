"""Will agents that call the proxy by a name trust a certificate? Every question an agent asks, with its answer.

Asks the files as they are now; what the master thinks of anything is not its business.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509 as cx509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from inspector.errors import IdentityError
from inspector.protocol import x509
from inspector.proxy import identity, tls
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_VALIDITY = frozenset({9, 10})
_REVOKED = 23


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer."""

    name: str
    ok: bool
    message: str
    """The facts if it is well, else the reason in the agent's words."""


def checks(name: str, certificate: Path, key: Path, ca: Path, crl: Path) -> list[Check]:
    """The preflight of a certificate shown under ``name`` to agents that hold this CA bundle and these CRLs.

    Raises IdentityError if certificate, key or CA bundle can't be used at all.
    """
    shown = identity.load(certificate, key)
    try:
        material = tls.Material(ca, crl)
    except IdentityError as error:
        raise IdentityError(error.message, "Name the agents' CA bundle: --ca FILE (and --crl FILE).") from error
    leaf = x509.certificate(shown.chain[0])
    names = ", ".join(each.partition(":")[2] for each in leaf.alt_names) or leaf.subject
    found = _problems(shown, material)
    expiry = [each for each in found if each.code in _VALIDITY]
    revoked = [each for each in found if each.code == _REVOKED]
    lacking = [each for each in found if each.undecided]
    untrusted = [each for each in found if each not in (*expiry, *revoked, *lacking)]
    wrong_name = f"Server hostname '{name}' did not match server certificate; expected one of {names}"
    wrong_usage = f"certificate verify failed [unsuitable certificate purpose for {leaf.subject}]"
    unknown = ["not known: there is no chain to a CA that agents trust"] if untrusted else []
    unlisted = [] if any(crl.issuer == shown.chain[0].issuer for crl in material.crls) else ["not known without a CRL"]
    return [
        _check("chain", untrusted, f"issued by {leaf.issuer}, which {ca} leads to"),
        _check("validity", expiry, f"from {wording.utc(leaf.not_before)[:10]} to {wording.utc(leaf.not_after)[:10]}"),
        _check("name", [] if x509.names_match(leaf, name) else [wrong_name], f"it is for {names}"),
        _check("usage", [] if _serves(shown.chain[0]) else [wrong_usage], "it is good for servers (serverAuth)"),
        _check("revocation", revoked or unknown or unlisted, f"serial {leaf.serial} is on no CRL"),
        _check("CRL", [material.trouble] if material.trouble else lacking or unknown, f"{crl} covers the chain"),
    ]


def _check(name: str, problems: Sequence[object], well: str) -> Check:
    return Check(name, not problems, "; ".join(map(str, problems)) or well)


def _problems(shown: identity.Credentials, material: tls.Material) -> list[x509.Problem]:
    authorities = [each.public_bytes(Encoding.DER) for each in material.authorities]
    crls = [each.public_bytes(Encoding.DER) for each in material.crls]
    problems = x509.verify(shown.ders, authorities, crls, time.time())
    leaf = shown.chain[0]
    serials = {entry.serial_number for crl in material.crls for entry in crl if crl.issuer == leaf.issuer}
    if leaf.serial_number in serials and all(each.code != _REVOKED for each in problems):
        # OpenSSL does not look into a CRL that has expired.
        problems.append(x509.Problem(_REVOKED, 0, x509.name_of(leaf.subject), x509.name_of(leaf.issuer)))
    return problems


def _serves(certificate: cx509.Certificate) -> bool:
    try:
        usage = certificate.extensions.get_extension_for_class(cx509.ExtendedKeyUsage).value
    except cx509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.SERVER_AUTH in usage or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usage

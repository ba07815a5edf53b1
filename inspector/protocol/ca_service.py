"""Which program a CA is, where its answers show it (docs/protocol.md#openvox-ca)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inspector.protocol.documents import Certificates, ErrorDocument
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from inspector.model import Response
    from inspector.protocol.documents import Document
    from inspector.protocol.endpoints import Match

type CaService = Literal["openvox-ca"]

OPENVOX_CA: CaService = "openvox-ca"
KEY_FILE: dict[CaService | None, str] = {None: "ca_key.pem", OPENVOX_CA: "private/ca_key.pem"}
"""The file of the CA's key in its directory; None: of one of Puppet's own."""
_COMMENT = bytes.fromhex("06096086480186f842010d")
"""The extension nsComment, which every certificate of Puppet's own CAs has."""
_ISSUED = (Kind.CERTIFICATE, Kind.RENEWAL)
_TEXTS = frozenset({
    "access denied", "CA cert not found", "CA not ready", "certificate already exists",
    "certificate key does not meet policy; renew with a new CSR", "certificate not eligible for renewal",
    "certificate not found", "client certificate required", "client certificate required for renewal", "conflict",
    "CRL not found", "CSR CN does not match authenticated client CN", "CSR key does not meet policy", "CSR not found",
    "invalid subject", "private key delivery requires TLS", "rate limit exceeded",
})  # fmt: skip
"""Refusals of an openvox-ca. Other programs in Go (a load balancer) have the same headers, but not these texts."""


def of(match: Match, response: Response, document: Document | None) -> CaService | None:
    """Return the program that gave an answer; None if it is one of Puppet's own, or if the answer does not show it.

    The missing version alone shows nothing: a device in between may have removed it.
    """
    if match.endpoint.area != "ca" or match.dialect != "v3" or response.header("x-puppet-version") is not None:
        return None
    if isinstance(document, ErrorDocument):
        ours = document.message.strip() in _TEXTS and response.header("x-content-type-options") == "nosniff"
        return OPENVOX_CA if ours else None
    if match.endpoint.kind in _ISSUED and isinstance(document, Certificates):
        return OPENVOX_CA if _COMMENT not in document.certificates[0].der else None
    return None

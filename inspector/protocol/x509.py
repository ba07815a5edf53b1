"""Certificates, signing requests and revocation lists: PEM to plain fields, and the errors an agent would print.

Reading uses cryptography, and for what that refuses a reading of our own. Verifying a chain uses OpenSSL's own store,
because agents and masters use it too: the same checks in the same order give the same errors
(``cryptography.x509.verification`` refuses Puppet's critical extendedKeyUsage and does not support CRLs).
"""

from __future__ import annotations

from inspector.protocol.chains import (
    CRL_TROUBLE,
    Problem,
    Revocation,
    Verifier,
    check_usable,
    in_agents_words,
    issuer_chain,
    usable_certificates,
    usable_crls,
    verify,
)
from inspector.protocol.fields import common_name, fingerprint, key_id, name_of, printed_fingerprint
from inspector.protocol.oids import AUTHORIZATION_OIDS, PUPPET_OIDS, authorizing, oid_name
from inspector.protocol.pem import (
    MAX_BLOCKS,
    Malformed,
    certificate,
    names_match,
    pem_blocks,
    read_certificates,
    read_crls,
    read_csr,
    read_der,
    request_of,
)
from inspector.protocol.unusual import extensions_of_request, signed_part

__all__ = [
    "AUTHORIZATION_OIDS",
    "CRL_TROUBLE",
    "MAX_BLOCKS",
    "PUPPET_OIDS",
    "Malformed",
    "Problem",
    "Revocation",
    "Verifier",
    "authorizing",
    "certificate",
    "check_usable",
    "common_name",
    "extensions_of_request",
    "fingerprint",
    "in_agents_words",
    "issuer_chain",
    "key_id",
    "name_of",
    "names_match",
    "oid_name",
    "pem_blocks",
    "printed_fingerprint",
    "read_certificates",
    "read_crls",
    "read_csr",
    "read_der",
    "request_of",
    "signed_part",
    "usable_certificates",
    "usable_crls",
    "verify",
]

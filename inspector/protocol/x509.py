"""Certificates, signing requests and revocation lists: PEM to plain fields, and what an agent would say.

Reading uses cryptography. Verifying a chain uses OpenSSL's own store, because that is what agents and
masters use: the same checks in the same order, so the same errors (``cryptography.x509.verification``
refuses Puppet's critical extendedKeyUsage and knows no CRL).
"""

from __future__ import annotations

from inspector.protocol.chains import CRL_TROUBLE, Problem, Revocation, Verifier, in_agents_words, issuer_chain, verify
from inspector.protocol.oids import AUTHORIZATION_OIDS, PUPPET_OIDS, authorizing, oid_name
from inspector.protocol.pem import (
    MAX_BLOCKS,
    Malformed,
    certificate,
    common_name,
    fingerprint,
    key_id,
    name_of,
    names_match,
    pem_blocks,
    printed_fingerprint,
    read_certificates,
    read_crls,
    read_csr,
    read_der,
)

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
    "common_name",
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
    "verify",
]

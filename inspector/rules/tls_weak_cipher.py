from functools import lru_cache

from inspector.rules.kit import *
from inspector.rules.tls_old_version import OLD

_BROKEN = regex.compile(r"(?:^|[-_])(NULL|EXP\d*|EXPORT\d*|ADH|AECDH|ANON|RC4|RC2|3DES|DES|MD5)(?:[-_]|$)")
_SHA1 = regex.compile(r"[-_]SHA$")


@rule(
    "T02",
    Severity.ERROR,
    opening=True,
    otherwise="warning for CBC with SHA-1, or with an agent up to version 3; notice if both apply",
    title="weak cipher",
    fix=(
        advice(
            "leave out RC4, RC2, DES, triple DES, MD5, NULL, export and anonymous suites, and those with CBC and SHA-1 "
            "(`...-SHA`)"
        ),
        on_node("upgrade the agent, or set `ciphers` in its puppet.conf (version 6 and later)"),
        on_master("set `cipher-suites` in webserver.conf (up to version 4: SSLCipherSuite in its web server)"),
    ),
    source="docs/protocol.md#tls-versions-and-ciphers; RFC 7465 section 2; RFC 9325 section 4.1",
    good=lambda: [
        talk(*(altered(part, leg={"cipher": "ECDHE-RSA-AES128-GCM-SHA256"}) for part in (catalog(), report()))),
        talk(*(altered(part, leg={"cipher": "ECDHE-ECDSA-AES256-SHA384"}) for part in (catalog(), report()))),
    ],
    bad=lambda: [
        talk(*(altered(part, leg={"cipher": "ECDHE-RSA-RC4-SHA"}) for part in (catalog(), report()))),
        talk(*(altered(part, leg={"cipher": "DES-CBC3-SHA"}) for part in (catalog(), report()))),
        talk(*(altered(part, leg={"cipher": "ECDHE-RSA-AES256-SHA"}) for part in (catalog(), report()))),
    ],
)
def tls_weak_cipher(case: ExchangeCase) -> Iterator[Statement]:
    """The connection uses encryption that can be broken (RC4, triple DES), no encryption (NULL), or an unauthenticated
    peer (anonymous). Suites with CBC and SHA-1 are only outdated. With a TLS version before 1.2 there is no better
    choice."""
    exchange = case.exchange
    for side, leg in (("the agent", exchange.agent), ("the master", exchange.master)):
        weak = _weakness(leg.cipher) if leg and leg.cipher else None
        if leg is None or weak is None or (weak is Severity.WARNING and leg.tls_version in OLD):
            continue
        severity = weak
        if case.run.dialect == "legacy" and side == "the agent":
            severity = Severity.WARNING if weak is Severity.ERROR else Severity.NOTICE
        yield Statement(
            brief(f"{side} and the proxy agreed on the cipher {leg.cipher}"),
            severity=severity,
            at=places.tls(f"cipher: {leg.cipher}"),
        )


@lru_cache(maxsize=256)
def _weakness(cipher: str) -> Severity | None:
    cipher = cipher.upper()
    if _BROKEN.search(cipher):
        return Severity.ERROR
    return Severity.WARNING if _SHA1.search(cipher) else None

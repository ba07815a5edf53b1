"""T01 and T02: connections with an old TLS version or a weak cipher."""

from functools import lru_cache

from inspector.rules.kit import *

_OLD_VERSIONS = {"SSLv2": "SSL 2", "SSLv3": "SSL 3", "TLSv1": "TLS 1.0", "TLSv1.0": "TLS 1.0", "TLSv1.1": "TLS 1.1"}


@rule(
    "T01",
    Severity.ERROR,
    opening=True,
    otherwise="warning for agents up to version 3",
    title="TLS older than 1.2",
    fix=(
        on_node("upgrade the agent, or its Ruby and OpenSSL", only_if="the agent is the limit"),
        on_master(
            "allow newer versions: `ssl-protocols: [TLSv1.2, TLSv1.3]` in webserver.conf (up to version 4: SSLProtocol "
            "in its web server)",
            only_if="the master is",
        ),
    ),
    source="docs/protocol.md#tls-versions-and-ciphers; RFC 8996 section 4; RFC 8996 section 5",
    good=lambda: [talk(*(altered(part, leg={"tls_version": "TLSv1.2"}) for part in (catalog(), report())))],
    bad=lambda: [
        talk(*(altered(part, leg={"tls_version": "TLSv1"}) for part in (catalog(), report()))),
        talk(*(altered(part, leg={"tls_version": "TLSv1.1"}) for part in (catalog(), report())), version="3.8.7"),
    ],
)
def tls_old_version(case: ExchangeCase) -> Iterator[Statement]:
    """Two ends could agree on nothing better than a TLS version that has been forbidden since 2021 and that current
    OpenSSL and Java refuse. The proxy itself offers all versions up to 1.3, so the limit is the other end's. Agents of
    2.7 and 3.x on old systems support nothing newer."""
    exchange = case.exchange
    master = exchange.master.tls_version if exchange.master else None
    if exchange.agent.tls_version in _OLD_VERSIONS:
        severity = Severity.WARNING if case.run.dialect == "legacy" else Severity.ERROR
        yield Statement(
            f"the agent uses {_OLD_VERSIONS[exchange.agent.tls_version]}",
            severity=severity,
            at=places.tls(f"version: {exchange.agent.tls_version}"),
        )
    if master in _OLD_VERSIONS:
        yield Statement(f"the master uses {_OLD_VERSIONS[master]}", at=places.tls(f"version: {master}"))


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
        if leg is None or weak is None or (weak is Severity.WARNING and leg.tls_version in _OLD_VERSIONS):
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

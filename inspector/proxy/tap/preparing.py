"""Checks before a tap begins: agents connect to this server themselves, and the whole way through the proxy works; and
which agents have which address."""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector import inputs, regex
from inspector.errors import InspectorError
from inspector.host import pki, serverconf
from inspector.protocol import x509
from inspector.proxy import tls
from inspector.proxy.identity import MINTED_LIFETIME, Credentials
from inspector.proxy.tap import access_log
from inspector.proxy.tap import table as tables
from inspector.proxy.tap.access_log import AccessLog, Share
from inspector.proxy.tap.watch import Beat, Watch
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inspector.host.serverconf import ServerConf

OTHER = "Another server is named with --config DIR."
PATIENCE = 20.0
"""Seconds that the first answers may take: a busy server is one to look at."""
OURS = "puppet-inspector"
"""Whose certificate the server is shown once, to see whether it accepts what its CA's key signs."""
_TRANSLATION = regex.compile(r"\b(?:dnat|redirect|DNAT|REDIRECT)\b")
_LEGACY = ("iptables-legacy-save", "ip6tables-legacy-save", "iptables-save", "ip6tables-save")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The results of the checks."""

    server: ServerConf
    name: str
    """The server's."""
    trust: tls.SiteTrust
    """What agents are verified by."""
    log: AccessLog
    before: Share
    """How many requests failed lately."""
    chosen: Mapping[str, set[str]]
    """The agents' addresses, and all certnames known of each; empty: every agent."""


def prepare(server: ServerConf, patterns: Sequence[str]) -> Prepared:
    """Make all checks. Raises InspectorError."""
    check(server)
    trust, name = examine(server)
    ask(server, name)
    log, before = AccessLog(server.access_log), Share()
    lines = list(log.latest())
    before.count(lines, time.time() - access_log.BEFORE)
    chosen = addresses(patterns, access_log.nodes(lines)) if patterns else {}
    return Prepared(server, name, trust, log, before, chosen)


def check(server: ServerConf) -> None:
    """Raise InspectorError where a tap would do harm or see nothing."""
    if server.trusts_headers or server.plain:
        what = "allow-header-cert-info in auth.conf" if server.trusts_headers else "a plain HTTP port in webserver.conf"
        raise InspectorError(
            f"TLS ends before this server ({what}): agents do not connect to it themselves.",
            "Put the proxy where TLS ends, or use `run` on a node.",
        )
    if server.host not in serverconf.EVERYWHERE and ipaddress.ip_address(server.host).is_loopback:
        raise InspectorError(
            f"The server listens on {address(server.host, server.port)} only: no other host connects to it itself.",
            "Put the proxy before what stands in front of it, or use `run` on a node.",
        )
    if _published(server.port):
        raise InspectorError(
            f"Port {server.port} is translated by this host's own rules (a container, or a balancer).",
            "Tap where the server itself listens, or use `run` on a node.",
        )


def _published(port: int) -> bool:
    """Whether rules of this host lead connections with the port elsewhere: nftables', older ones, or IPVS."""
    if _translates(tables.run("list ruleset"), port):
        return True
    for program in filter(None, map(shutil.which, _LEGACY)):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                [program, "-t", "nat"], capture_output=True, text=True, timeout=tables.PATIENCE, check=False
            )
            if _translates(done.stdout, port):
                return True
    try:
        return f":{port:04X} " in inputs.read(inputs.expanded("/proc/net/ip_vs")).decode()
    except OSError:
        return False


def _translates(rules: str, port: int) -> bool:
    """Whether a rule names the port and another place."""
    named = regex.compile(rf"(?:dport|--dports?) (?:v?map )?(?:\S*,)?(?:{port}\b|\{{[^}}]*\b{port}\b)")
    return any(named.search(rule) and _TRANSLATION.search(rule) for rule in rules.splitlines())


def examine(server: ServerConf) -> tuple[tls.SiteTrust, str]:
    """Return what agents are verified by, and the server's name. Raises InspectorError if agents would refuse what the
    proxy presents, or the proxy could verify nobody."""
    try:
        trust = tls.SiteTrust(server.ca, server.crl)
        presented = tls.PresentedCertificate(server.certificate, server.key, unsafe=True)
    except InspectorError as error:
        hint = f"Start the server of {server.directory} once. {OTHER}"
        raise InspectorError(error.message, hint) from error
    now = time.time()
    if problems := trust.problems(now):
        raise InspectorError(f"Agents cannot be verified: {problems[0]}", f"Renew it, then start again. {OTHER}")
    ders = [x509.certificate(each).der for each in trust.authorities]
    if found := x509.verify(presented.credentials.ders, ders, [], now, "none"):
        raise InspectorError(
            f"Agents refuse the server's certificate: {found[0]}.", "Renew it: its agents fail anyway."
        )
    leaf = x509.certificate(presented.credentials.chain[0])
    return trust, leaf.common_name or leaf.subject


def ask(server: ServerConf, name: str) -> None:
    """Ask the server without a certificate, and with one as the proxy will show it. Raises InspectorError."""
    if not _answers(Watch(server.address, name, patience=PATIENCE)):
        raise InspectorError(
            f"The server at {address(*server.address)} does not answer.", "See whether it runs, and its log."
        )
    if not server.cadir:
        return
    authority, key = pki.read_authority(server.cadir), pki.new_key()
    leaf = pki.sign(authority, key.public_key(), OURS, lifetime=MINTED_LIFETIME)
    if not _answers(Watch(server.address, name, Credentials((leaf, authority.certificate), key), PATIENCE)):
        raise InspectorError(
            f"The server does not accept a certificate that the CA's key in {server.cadir} signs.",
            f"See whether that CA is in {server.ca} and its CRL in {server.crl}.",
        )


def _answers(watch: Watch) -> bool:
    with contextlib.closing(watch):
        return watch.ask() is Beat.ANSWERED


def ask_proxy(proxy: tuple[str, int], name: str) -> None:
    """Go the whole way once. Raises InspectorError."""
    with contextlib.closing(Watch(proxy, name, patience=PATIENCE)) as watch:
        match watch.ask():
            case Beat.MASTER_AWAY:
                raise InspectorError("The server does not answer the proxy.", "See its log.")
            case Beat.SILENT:
                raise InspectorError("The proxy does not answer in time.", "Is the host overloaded? Try again later.")


def addresses(patterns: Sequence[str], nodes: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the addresses of the agents that are named, with all certnames known of each; ``nodes`` are those of the
    access log. Raises InspectorError if nothing is known of one."""
    found: dict[str, set[str]] = {}
    for pattern in patterns:
        at = {host for host, names in nodes.items() if any(map(regex.glob(pattern).fullmatch, names))}
        if host := access_log.plain(pattern):
            at.add(host)
        elif not set(pattern) & set("*?"):
            with contextlib.suppress(OSError, UnicodeError):
                at |= {str(where[0]) for *_, where in socket.getaddrinfo(pattern, None, type=socket.SOCK_STREAM)}
        if not at:
            raise InspectorError(
                f"No address is known of {pattern}: neither from DNS nor from the server's access log.",
                "Give the agent's address: --agent 192.0.2.7.",
            )
        found |= {host: nodes.get(host, set()) for host in at}
    return found

"""The table of nftables that hands connections over, and nothing else of the host's rules."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from typing import TYPE_CHECKING

from inspector.errors import InspectorError
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "puppet_inspector"
LIFE = 3
"""Seconds for which connections are handed over after the latest ``renew``."""
PATIENCE = 5.0
"""Seconds that nft may take."""
PROGRAM = "nft"


class Table:
    """The table. It is there from ``create`` to ``remove``; it hands over only as long as it is renewed."""

    def __init__(self, port: int, host: str | None = None, chosen: Iterable[str] = ()) -> None:
        """``port`` is the master's; ``host`` its only address, None for all of this host's; ``chosen`` are the agents'
        addresses, all if there are none."""
        self._port, self._host = port, host
        self._chosen = sorted(set(chosen))

    def create(self, listening: Iterable[tuple[str, int]]) -> None:
        """Make the table, which hands nothing over yet, to these local addresses. Raises InspectorError."""
        if exists():
            raise InspectorError(
                f"The table {NAME} is there already: another tap runs, or one was killed.",
                "Remove it: puppet-inspector tap --remove",
            )
        run("\n".join(self._lines(listening)))

    def _lines(self, listening: Iterable[tuple[str, int]]) -> Iterable[str]:
        yield f"table inet {NAME} {{"
        yield f"  set ports {{ type inet_service; timeout {LIFE}s; }}"
        for family, kind in ((4, "ipv4_addr"), (6, "ipv6_addr")):
            yield f"  set exempt{family} {{ type {kind}; }}"
            yield f"  set chosen{family} {{ type {kind}; {_elements(self._chosen, family)} }}"
        yield "  chain way {"
        yield "    type filter hook prerouting priority mangle; policy accept;"
        yield '    iifname "lo" return'  # the proxy's own connections to the master
        yield "    fib daddr type != local return"  # what this host only forwards
        if self._host:
            yield f"    {_protocol(self._host)} daddr != {self._host} return"
        for family, word in ((4, "ip"), (6, "ip6")):
            yield f"    {word} saddr @exempt{family} return"
            if self._chosen:
                yield f"    {word} saddr != @chosen{family} return"
        for host, port in listening:
            protocol = "ipv6" if ":" in host else "ipv4"
            yield f"    meta nfproto {protocol} tcp dport @ports tproxy {_protocol(host)} to {address(host, port)}"
        yield "  }"
        yield "}"

    def renew(self) -> None:
        """Hand connections over for the next seconds. Raises InspectorError."""
        # To add an element that is there does not extend its life, and to delete one that is not fails.
        element = f"element inet {NAME} ports {{ {self._port} }}"
        run(f"add {element}\ndelete {element}\nadd {element}")

    def withdraw(self) -> None:
        """Hand over no more connections, from this moment. Raises InspectorError."""
        run(f"flush set inet {NAME} ports")

    def exempt(self, host: str) -> None:
        """Let an agent's next connections be direct. Raises InspectorError."""
        host = host.partition("%")[0]  # of a link-local one, its interface
        family = ipaddress.ip_address(host).version
        run(f"add element inet {NAME} exempt{family} {{ {host} }}")


def exists() -> bool:
    """Whether the table is there. Raises InspectorError."""
    return NAME in run("list tables inet").replace("inet ", "").split()


def remove() -> None:
    """Take the table away, if it is there. Raises InspectorError."""
    if exists():
        run(f"delete table inet {NAME}")


def run(commands: str) -> str:
    """Let nft execute commands, all or none. Raises InspectorError."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise InspectorError(
            "nft is not installed.", "Install nftables: apt-get install nftables, dnf install nftables."
        )
    try:
        done = subprocess.run(
            [program, "-f", "-"], input=commands, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InspectorError(f"nft cannot be used: {error}.", "Run as root.") from error
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if "rror" in line), done.stderr.strip())
        hint = "Run as root, on a kernel with nft_tproxy (4.19 and later)."
        raise InspectorError(f"nft refuses the table: {reason.strip()}.", hint)
    return done.stdout


def _protocol(host: str) -> str:
    return "ip6" if ":" in host else "ip"


def _elements(hosts: Iterable[str], family: int) -> str:
    of_family = [host for host in hosts if ipaddress.ip_address(host).version == family]
    return f"elements = {{ {', '.join(of_family)} }};" if of_family else ""

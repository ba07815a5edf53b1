"""One run of this host's agent that uses the proxy as its HTTP proxy: what is intercepted, and how."""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.errors import InspectorError
from inspector.host import pki
from inspector.proxy.connect import trust as trusts
from inspector.proxy.connect.dialing import SiteProxy
from inspector.proxy.connect.files import WRITTEN, RunFile
from inspector.proxy.connect.interception import Decision, Interception, Way
from inspector.proxy.connect.trust import Revocation
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Leg
    from inspector.proxy.connection_state import Refusal
    from inspector.proxy.tls import Trust

UNREAD = "-- passed on unread: "
"""What a line begins with about a server whose connections are not intercepted."""
ROOT = 0
LOOKS = 10
"""How often at most it is looked whether the agent has finished writing a file."""
LIFETIME = timedelta(days=2)
"""How long the CA of a run is valid: longer than any run."""
SOCKETS = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
"""The kernel's tables of TCP sockets, by version of IP."""


class Plan(msgspec.Struct, frozen=True, tag="run"):
    """What `run` has found out about the node and its agent."""

    certname: str
    ssldir: str
    ca: str
    """The node's own CA bundle (``localcacert``)."""
    crl: str
    """The node's own CRLs (``hostcrl``)."""
    directory: str
    """Where the run's copies of both are, for this user only."""
    servers: Sequence[tuple[str, int]]
    """The names and ports to intercept."""
    user: int
    """Whose connections are served."""
    revocation: Revocation = "chain"
    timeout: float = 120.0
    """Seconds that a connection may take: the agent's ``http_connect_timeout``."""
    descriptors: Sequence[int] = ()
    """The socket that listens, which whoever started the proxy holds for the whole run."""
    site: SiteProxy | None = None
    ca_server: tuple[str, int] = ("", 0)
    """Where the agent downloads its CA bundle and CRLs."""
    ca_digest: str = ""
    """The SHA-256 (hex) that the CA bundle must have which the agent downloads: another one stays as it is."""

    @property
    def own_ca(self) -> Path:
        """The run's copy of the CA bundle."""
        return Path(self.directory, "ca.pem")

    @property
    def added_ca(self) -> Path:
        """The run's own CA alone."""
        return Path(self.directory, "run_ca.pem")

    @property
    def own_crl(self) -> Path:
        """The run's copy of the CRLs."""
        return Path(self.directory, "crl.pem")


class RunInterception(Interception):
    """One run of this host's own agent."""

    def __init__(self, plan: Plan, trust: Trust, report: Callable[[str], None]) -> None:
        """Make the run's copies of the agent's files. ``report`` prints a line. Raises InspectorError."""
        super().__init__(
            plan.servers, trust, report, lifetime=LIFETIME, timeout=plan.timeout, site=plan.site,
            ca_digest=plan.ca_digest,
        )  # fmt: skip
        self._plan = plan
        self._refusals: Refusal | None = None
        """Why the master refuses the node's certificate, once it has."""
        authority = self._authority
        pki.write_private(plan.added_ca, authority.certificate)
        self._files = (
            RunFile(Path(plan.ca), plan.own_ca, authority.certificate, authority.removed),
            RunFile(Path(plan.crl), plan.own_crl, authority.crl, authority.removed),
        )

    def admits(self, peer: tuple[str, int], own: tuple[str, int]) -> bool:
        """Whether a connection is of the agent's user; that of anybody else is reported."""
        owner = socket_owner(peer, own)
        if owner in (self._plan.user, ROOT):  # `run` need not be root to start an agent with sudo
            return True
        self.report_once(f"-- refused a connection of user {'?' if owner is None else owner}: it is not the agent's")
        return False

    def leg(self, facts: Leg) -> Leg:
        return dataclasses.replace(facts, node=self._plan.certname)

    def sync(self, *, ended: bool = False) -> None:
        for file in self._files:
            try:
                file.sync(ended=ended)
            except InspectorError as error:
                self.report_once(f"-- what the agent wrote to {file.own} stays there as it was: {error}")
        super().sync(ended=ended)

    async def decide(self, server: tuple[str, int]) -> Decision:
        # The bundle that an agent has just downloaded verifies its next connection, which comes at once.
        for _ in range(LOOKS):
            if not any(file.unsettled for file in self._files):
                break
            await asyncio.sleep(WRITTEN)
        return await super().decide(server)

    async def why_refused(self, chain: Sequence[bytes]) -> Refusal:
        if self._refusals is None:
            self._refusals = await asyncio.to_thread(trusts.refusals, self._plan.ca_server, self._plan.site, chain)
        return self._refusals

    def other(self, server: tuple[str, int]) -> Decision:
        self.report_once(f"{UNREAD}{address(*server)}, none of the node's Puppet servers (--also records it)")
        return Decision(Way.TUNNELLED)


def socket_owner(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """Return the number of the user whose process on this host has the connection from ``peer`` to ``own``; None if
    there is no such process (any more).

    For a socket that is closed the kernel keeps no owner, and prints that of root; such a one has no inode.
    """
    version = ipaddress.ip_address(peer[0]).version
    wanted = _hex(*peer), _hex(*own)
    try:
        with SOCKETS[version].open(encoding="ascii") as table:
            for line in table:
                words = line.split(maxsplit=10)
                if (words[1], words[2]) == wanted:
                    return int(words[7]) if words[9] != "0" else None
    except OSError:
        return None
    return None


def _hex(host: str, port: int) -> str:
    """Return an address as the kernel prints it: words of four bytes in the machine's order (proc(5))."""
    packed = ipaddress.ip_address(host).packed
    words = (packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
    return f"{b''.join(words).hex().upper()}:{port:04X}"

"""What a proxy does with the connections that agents ask it for: intercept them, pass them on unread, or neither."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING

from inspector import regex
from inspector.host import pki
from inspector.model import RUN_CA
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.proxy.connect import acceptance
from inspector.proxy.connect.dialing import dial
from inspector.proxy.connection_state import Refusal
from inspector.proxy.identity import Credentials

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta

    from inspector.model import Leg
    from inspector.proxy.connect.acceptance import Examination
    from inspector.proxy.connect.dialing import SiteProxy
    from inspector.proxy.tls import Trust

ADDED = "the proxy added its own CA, which the agent trusts for this run"
"""How an answer with an addition is marked in its record."""
ANY = "*"
"""In place of a server's name: every server, on a port."""
FORBIDDEN = "puppet-inspector connects with puppet_master only"
VALID = 30.0
"""Seconds for which the result of an examination counts: a run makes several connections to one server."""
CERTIFICATES = 100
"""Servers with a certificate; an agent has a handful."""
_BLOCK = regex.compile(rb"-----BEGIN [A-Z0-9 ]{1,40}-----[^-]+-----END [A-Z0-9 ]{1,40}-----\r?\n?")


@dataclass(frozen=True, slots=True)
class Addition:
    """What is added to a body."""

    content: bytes
    digest: str = ""
    """The SHA-256 (hex) that the body must have; empty: any."""

    def added_to(self, body: bytes) -> bytes:
        """Return a body with the addition, if that belongs to it."""
        if self.digest and hashlib.sha256(body).hexdigest() != self.digest:
            return body
        return body + (b"" if body.endswith(b"\n") else b"\n") + self.content


class RunAuthority:
    """A proxy's own CA with its CRL, whose key is in memory only; it signs certificates for the servers that agents ask
    for."""

    def __init__(self, lifetime: timedelta) -> None:
        """The CA, its CRL and what it signs are valid for ``lifetime``."""
        self._lifetime = lifetime
        # Two CAs of one name break verification, so no two runs have the same.
        self._authority = pki.make_ca(f"{RUN_CA} {secrets.token_hex(8)}", lifetime=lifetime)
        self._key = pki.new_key()
        now = datetime.now(UTC)
        crl = pki.make_crl(self._authority, last_update=now - pki.BACKDATED, next_update=now + lifetime)
        self.certificate = pki.pem(self._authority.certificate)
        """The CA's certificate in PEM."""
        self.crl = pki.pem(crl)
        """Its CRL in PEM."""
        self._own = {_unbroken(self.certificate), _unbroken(self.crl)}
        self._signed: dict[str, Credentials] = {}

    def credentials_for(self, host: str) -> Credentials:
        """Return the certificate to present as the server of this name or address, and its key."""
        if host not in self._signed:
            if len(self._signed) >= CERTIFICATES:
                self._signed.clear()
            leaf = pki.sign(self._authority, self._key.public_key(), host, lifetime=self._lifetime)
            self._signed[host] = Credentials((leaf, self._authority.certificate), self._key)
        return self._signed[host]

    def removed(self, content: bytes) -> bytes:
        """Return a file's content without the certificate and the CRL of this CA."""
        return _BLOCK.sub(lambda block: b"" if _unbroken(block[0]) in self._own else block[0], content)


def _unbroken(block: bytes) -> bytes:
    """Return a PEM block without its line breaks, which programs place as they like."""
    return b"".join(block.split())


class Way(Enum):
    """What happens with a connection that the agent asks for."""

    INTERCEPTED = auto()
    TUNNELLED = auto()
    NONE = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens with a connection, and what the server showed; None if nobody looked."""

    way: Way
    examination: Examination | None = None


class Interception:
    """A proxy's CA, and the servers that agents reach through it."""

    def __init__(
        self,
        servers: Iterable[tuple[str, int]],
        trust: Trust,
        report: Callable[[str], None],
        *,
        lifetime: timedelta,
        timeout: float,
        site: SiteProxy | None = None,
        ca_digest: str = "",
    ) -> None:
        """``servers`` are intercepted, and verified by ``trust``. ``report`` prints a line. The CA is valid for
        ``lifetime``. A connection may take ``timeout`` seconds, through the ``site``'s own HTTP proxy if there is one.
        ``ca_digest``: the SHA-256 (hex) that a CA bundle must have to which the CA is added."""
        self._servers = {(host.lower(), port) for host, port in servers}
        self._trust = trust
        self._report = report
        self._reported: set[str] = set()
        self._authority = RunAuthority(lifetime)
        self._timeout, self._ca_digest = timeout, ca_digest
        self.site = site
        """The HTTP proxy through which servers are reached."""
        self._examined: dict[tuple[tuple[str, int], bytes], Examination] = {}
        self._looks: dict[tuple[tuple[str, int], bytes], asyncio.Task[Examination]] = {}
        """Examinations under way."""

    def admits(self, peer: tuple[str, int], own: tuple[str, int]) -> bool:
        """Whether a connection from ``peer`` to ``own`` is served."""
        return True

    def leg(self, facts: Leg) -> Leg:
        """Return a connection of an agent as a record."""
        return facts

    def credentials_for(self, server: tuple[str, int]) -> Credentials:
        """Return the certificate to present as this server, and its key."""
        return self._authority.credentials_for(server[0])

    def sync(self, *, ended: bool = False) -> None:
        """Write what the agent has learned to where it belongs; ``ended``: it learns nothing more."""
        self._trust.refresh()

    def dial(self, server: tuple[str, int]) -> socket.socket:
        """Return a connection with a server. Raises OSError."""
        return dial(server, self.site, self._timeout)

    def other(self, server: tuple[str, int]) -> Decision:
        """Decide on a connection with a server that is not intercepted."""
        raise NotImplementedError

    async def why_refused(self, chain: Sequence[bytes]) -> Refusal:
        """Return why the master refuses an agent's certificate chain (DER), as far as it can be found out."""
        return Refusal()

    async def decide(self, server: tuple[str, int]) -> Decision:
        """Decide on a connection that an agent asks for."""
        self.sync()
        if server not in self._servers and (ANY, server[1]) not in self._servers:
            return self.other(server)
        key = server, self._trust.digest
        examination = self._examined.get(key)
        if examination is None or not examination.accepted or time.time() - examination.at > VALID:
            # Many agents may ask at once, and a look takes a thread, for minutes where nothing answers.
            look = self._looks.get(key) or self._look(key)
            examination = await asyncio.shield(look)
        if examination.unreachable is not None:
            return Decision(Way.NONE, examination)
        return Decision(Way.INTERCEPTED if examination.accepted else Way.TUNNELLED, examination)

    def _look(self, key: tuple[tuple[str, int], bytes]) -> asyncio.Task[Examination]:
        """Begin to examine a server."""

        async def look() -> Examination:
            try:
                found = await asyncio.to_thread(acceptance.examine, key[0], self._trust, self.site, self._timeout)
                self._examined[key] = found
                return found
            finally:
                del self._looks[key]

        self._looks[key] = task = asyncio.get_running_loop().create_task(look())
        return task

    def addition(self, method: bytes, target: bytes) -> Addition | None:
        """Return what is added to a good answer to a request: the proxy's CA to a CA bundle, its CRL to the CRLs."""
        match = endpoints.match(method.decode("latin-1"), target.decode("latin-1"))
        if match is None or match.certname not in (None, "ca"):
            return None
        match match.endpoint.kind:
            case Kind.CA_BUNDLE:
                return Addition(self._authority.certificate, self._ca_digest)
            case Kind.CRL:
                return Addition(self._authority.crl)
        return None

    def report_once(self, line: str) -> None:
        """Print a line, unless it was printed before."""
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

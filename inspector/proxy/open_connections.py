"""What is under way in a running proxy: the agents' connections, each with the request that has no complete answer yet.

The event loop says what begins and ends; the recorder's thread writes it beside the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inspector import regex
from inspector.capture.present import CONNECTIONS, REQUESTS, TEXT
from inspector.model import OpenConnection, OpenRequest, Present
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from inspector.proxy.connection_state import AgentConnection

    type Head = tuple[float, bytes, bytes]


_NAME = regex.compile(r"[a-z0-9][a-z0-9._-]{0,254}")
"""A certname or an environment as hosts and sites have it."""
HIDDEN = "MASKED"
"""What stands for the part of a path that may contain a secret, as in a masked record."""


class _Connection:
    """An agent's connection after its handshake."""

    __slots__ = ("_certname", "_request", "address", "agent", "connected", "head", "last", "leg")

    def __init__(self, leg: str, agent: AgentConnection, address: str, connected: float) -> None:
        self.leg = leg
        self.agent = agent
        self.address = address
        self.connected = connected
        self.last = 0.0
        """When its latest exchange ended."""
        self.head: Head | None = None
        """Of the request under way: when it began, its method and its target."""
        self._request: tuple[Head, OpenRequest] | None = None
        self._certname: str | None = None

    @property
    def certname(self) -> str:
        """The name in its certificate, if that is verified; empty otherwise."""
        if self._certname is None:
            self._certname = self.agent.verified_name
        return self._certname

    def request(self, *, redacts: bool) -> OpenRequest | None:
        """Return the request under way; made once, when it is asked for."""
        head = self.head
        if head is None:
            return None
        if self._request is None or self._request[0] is not head:
            time, method, target = head
            verb, path = method[:TEXT].decode("latin-1"), target[:TEXT].decode("latin-1")
            self._request = head, OpenRequest(self.leg, time, verb, _harmless(verb, path) if redacts else path)
        return self._request[1]

    def open(self) -> OpenConnection:
        """Return the connection as it is written."""
        return OpenConnection(self.leg, self.connected, self.address[:TEXT], self.certname[:TEXT] or None, self.last)


class OpenConnections:
    """The connections of a proxy's agents."""

    def __init__(self, only: regex.Pattern[str] | None = None, *, redacts: bool = False) -> None:
        """``only``: of agents whose names match it (``puppet_only``). ``redacts`` leaves out what may be secret."""
        self._only = only
        self._redacts = redacts
        self._connections: dict[str, _Connection] = {}
        self.changes = 0
        """A number that differs after something began or ended."""

    def __len__(self) -> int:
        return len(self._connections)

    def connect(self, leg: str, agent: AgentConnection, address: str, connected: float) -> None:
        """An agent's handshake is finished."""
        self._connections[leg] = _Connection(leg, agent, address, connected)
        self.changes += 1

    def begin(self, leg: str, time: float, method: bytes, target: bytes) -> None:
        """The head of a request has arrived."""
        if connection := self._connections.get(leg):
            connection.head = time, method, target
            self.changes += 1

    def end(self, leg: str, time: float) -> None:
        """The exchange is over."""
        if connection := self._connections.get(leg):
            connection.head, connection.last = None, time
            self.changes += 1

    def close(self, leg: str) -> None:
        """A connection is closed."""
        if self._connections.pop(leg, None):
            self.changes += 1

    def present(self, now: float, recording: Literal["open", "ended"] = "open") -> Present:
        """Return what is under way, as far as a capture has room for it. On any thread."""
        connections, requests = [], []
        for connection in list(self._connections.values()):  # in one step: others come and go meanwhile
            request = connection.request(redacts=self._redacts)
            if self._only is None or self._chosen(connection, request):
                connections.append(connection)
                if request is not None:
                    requests.append((not connection.certname, request))
        # Strangers can open many: whoever has a certificate comes first, then whoever has waited longest.
        requests.sort(key=lambda each: (each[0], each[1].time))
        connections.sort(key=lambda each: (not each.certname, each.connected))
        listed = [request for _, request in requests[:REQUESTS]]
        return Present(
            recording,
            now,
            tuple(sorted(listed, key=lambda each: each.time)),
            tuple(each.open() for each in sorted(connections[:CONNECTIONS], key=lambda each: each.connected)),
            max(0, len(requests) - REQUESTS),
            max(0, len(connections) - CONNECTIONS),
        )

    def _chosen(self, connection: _Connection, request: OpenRequest | None) -> bool:
        """Whether a connection is one of an agent to be recorded, as far as that is known by now."""
        name = connection.agent.claimed_name
        if name is None and request is not None:
            match = endpoints.match(request.method, request.target)
            name = match.certname if match else None
        return name is not None and self._only is not None and self._only.fullmatch(name) is not None


def _harmless(method: str, target: str) -> str:
    """Return what of a target is no secret: of a request of Puppet's its path without the name of a file, which only
    the masking process can look through; of any other request nothing."""
    path = target.partition("?")[0]
    match = endpoints.match(method, path)
    if match is None or not all(_NAME.fullmatch(name) for name in (match.environment, match.certname) if name):
        return ""
    if match.key is None:
        return path
    mount = match.endpoint.kind is not Kind.BACKUP  # there it is a digest of the file
    return "/".join([*path.split("/")[: (4 if match.dialect == "v3" else 3) + mount], HIDDEN])

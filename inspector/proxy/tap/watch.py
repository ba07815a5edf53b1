"""Whether a proxy in the master's place answers: asked each second, as an agent without a certificate would."""

from __future__ import annotations

import http.client
import socket
import ssl
from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.proxy.identity import Credentials

PATH = "/status/v1/simple"
"""What a master answers to anybody, by its own auth.conf."""
PATIENCE = 0.9
"""Seconds that an answer may take."""


class Beat(Enum):
    """How the proxy answered."""

    ANSWERED = auto()
    """With the master's answer."""
    MASTER_AWAY = auto()
    """It could not reach the master."""
    SILENT = auto()
    """Not at all, or not in time."""


class Watch:
    """Asks a proxy, over one connection as long as that is open."""

    def __init__(self, address: tuple[str, int], name: str, credentials: Credentials | None = None) -> None:
        """``name`` is the master's, for SNI and ``Host``; ``credentials`` are what an agent would show."""
        self._address, self._name = address, name
        self._context = ssl.create_default_context()
        # It is our own proxy, and what it presents was examined before.
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        if credentials:
            credentials.load(self._context)
        self._connection: http.client.HTTPSConnection | None = None

    def ask(self) -> Beat:
        """Send a request, and wait for the answer."""
        fresh = self._connection is None
        try:
            status = self._status()
        except (OSError, http.client.HTTPException):
            self.close()
            # A connection that was idle may have been closed by the master's rules.
            return Beat.SILENT if fresh else self.ask()
        return Beat.MASTER_AWAY if status == HTTPStatus.BAD_GATEWAY else Beat.ANSWERED

    def _status(self) -> int:
        if self._connection is None:
            made = http.client.HTTPSConnection(*self._address, context=self._context, timeout=PATIENCE)
            plain = socket.create_connection(self._address, PATIENCE)
            made.sock = self._context.wrap_socket(plain, server_hostname=self._name)
            self._connection = made
        self._connection.request("GET", PATH, headers={"Host": self._name})
        answer = self._connection.getresponse()
        answer.read(1024)
        if answer.will_close:
            self.close()
        return answer.status

    def close(self) -> None:
        """Close the connection."""
        if self._connection:
            self._connection.close()
            self._connection = None

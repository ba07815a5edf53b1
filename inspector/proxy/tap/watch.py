"""Whether a proxy in the master's place answers: asked each second, as an agent without a certificate would."""

from __future__ import annotations

import http.client
import socket
import ssl
from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING

from inspector.host import https
from inspector.proxy import tls

if TYPE_CHECKING:
    from inspector.proxy.identity import Credentials

PATH = "/status/v1/simple"
"""What a master answers to anybody, by its own auth.conf."""
PATIENCE = 1.5
"""Seconds that an answer may take, and a handshake with the proxy alone."""


class Beat(Enum):
    """How the proxy answered."""

    ANSWERED = auto()
    """With the master's answer."""
    MASTER_AWAY = auto()
    """It could not reach the master, or the master did not answer it in time."""
    SILENT = auto()
    """Not at all."""


class Watch:
    """Asks a proxy, over one connection as long as that is open."""

    def __init__(
        self, address: tuple[str, int], name: str, credentials: Credentials | None = None, patience: float = PATIENCE
    ) -> None:
        """``name`` is the master's, for SNI and ``Host``; ``credentials`` are what an agent would show; ``patience``:
        seconds that an answer may take."""
        self._address, self._name, self._patience = address, name, patience
        self._context = ssl.create_default_context()
        # It is our own proxy, and what it presents was examined before.
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._context.set_ciphers(tls.CIPHERS.decode())  # what a site has is its own
        if credentials:
            credentials.load(self._context)
        self._connection: http.client.HTTPConnection | None = None

    def ask(self) -> Beat:
        """Send a request, and wait for the answer."""
        fresh = self._connection is None
        try:
            status = self._status()
        except TimeoutError:
            self.close()
            return Beat.MASTER_AWAY if self._greets() else Beat.SILENT
        except (OSError, http.client.HTTPException):
            self.close()
            # A connection that was idle may have been closed by the master's rules.
            return Beat.SILENT if fresh else self.ask()
        return Beat.MASTER_AWAY if status == HTTPStatus.BAD_GATEWAY else Beat.ANSWERED

    def _greets(self) -> bool:
        """Whether the proxy makes a TLS handshake: it asks no master for that."""
        try:
            self._connection = self._connected()
        except OSError:
            return False
        return True

    def _connected(self) -> http.client.HTTPConnection:
        plain = socket.create_connection(self._address, self._patience)
        return https.over(plain, self._context, self._name)

    def _status(self) -> int:
        if self._connection is None:
            self._connection = self._connected()
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

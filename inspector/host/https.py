"""Requests over TLS, on a connection that somebody has made."""

from __future__ import annotations

import contextlib
import http.client
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def over(plain: socket.socket, context: ssl.SSLContext, name: str) -> http.client.HTTPConnection:
    """Make the TLS handshake with the server of a name. If it fails the connection is closed.

    Raises OSError, and ValueError for what is no name.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(plain.close)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        secured = context.wrap_socket(plain, server_hostname=name)
        stack.pop_all()
    connection = http.client.HTTPConnection(name)
    connection.auto_open = 0  # a lost connection would be opened again without TLS
    connection.sock = secured
    return connection

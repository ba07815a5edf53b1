"""Connections to servers: straight, or behind an HTTP proxy that the site needs."""

from __future__ import annotations

import os
import socket
import time
from base64 import b64encode
from collections.abc import Sequence

import msgspec

from inspector import regex
from inspector.text import address

LONGEST = 16384
"""Bytes of a proxy's answer."""
_REFUSALS = range(300, 600)
_STATUS = regex.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]{0,300}))?\r?\n")


class SiteProxy(msgspec.Struct, frozen=True):
    """The HTTP proxy through which the agent reaches its servers without us."""

    host: str
    port: int
    credentials: str = ""
    """``user:password``."""
    bypassed: Sequence[str] = ()
    """The setting ``no_proxy``: the ends of the names that are reached directly, with ``*`` for anything; some with a
    port."""

    def serves(self, host: str, port: int) -> bool:
        """Whether a server is reached through this proxy, by Puppet's own rule."""
        return not any(_ends_as(host, port, each) for name in self.bypassed if (each := name.strip().lower()))


class SiteProxyError(OSError):
    """The site's proxy does not connect."""

    def __init__(self, text: str, answer: tuple[str, int]) -> None:
        """``answer`` is what an agent gets in place of the proxy's: the reason and the status."""
        super().__init__(text)
        self.answer = answer


def dial(server: tuple[str, int], site: SiteProxy | None, timeout: float) -> socket.socket:
    """Return a connection with a server. Raises OSError."""
    if site is None or not site.serves(*server):
        return connect(server, timeout)
    own = site.host, site.port
    try:
        connection = connect(own, timeout)
    except OSError as error:
        text = f"the HTTP proxy {address(*own)} cannot be reached: {reason(error)}"
        raise SiteProxyError(text, (in_rubys_words(own, error), 502)) from error
    try:
        target = address(*server)
        given = f"Proxy-Authorization: Basic {b64encode(site.credentials.encode()).decode()}\r\n"
        connection.sendall(
            f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{given if site.credentials else ''}\r\n".encode()
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):  # a byte at a time: what follows is the server's
            byte = connection.recv(1)
            if not byte or len(answer) > LONGEST:
                break
            answer += byte
        found = _STATUS.match(answer)
        if found is None or not found[1].startswith(b"2"):
            words, status = ((found[2] or b"").decode("latin-1"), int(found[1])) if found else ("no HTTP", 0)
            text = f"the HTTP proxy {address(*own)} does not connect with {target}: {f'{status or ""} {words}'.strip()}"
            raise SiteProxyError(text, (words, status) if status in _REFUSALS else (text, 502))
    except BaseException:
        connection.close()
        raise
    return connection


def connect(server: tuple[str, int], timeout: float) -> socket.socket:
    """Return a connection within this time in all: each address that the name has gets its share. Raises OSError."""
    found = socket.getaddrinfo(*server, type=socket.SOCK_STREAM)
    addresses = dict.fromkeys((family, where[:2]) for family, *_, where in found)
    until = time.monotonic() + timeout
    failures: list[OSError] = []
    for left, (_, where) in zip(range(len(addresses), 0, -1), addresses, strict=True):
        try:
            return socket.create_connection(
                (str(where[0]), int(where[1])), max(0.01, (until - time.monotonic()) / left)
            )
        except OSError as error:
            failures.append(error)
    raise failures[0]


def reason(error: OSError) -> str:
    """Return why a server cannot be reached, in the operating system's words."""
    if _timed_out(error):
        return "Connection timed out"
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)


def in_rubys_words(server: tuple[str, int], error: OSError) -> str:
    """Return why a server cannot be reached, as an agent prints it that connects itself."""
    host, port = server
    words = reason(error)
    if isinstance(error, socket.gaierror):
        words = f"getaddrinfo: {words}"
    elif _timed_out(error):
        words = "execution expired"
    elif error.errno:
        words = f'{words} - connect(2) for "{host}" port {port}'
    return f"Failed to open TCP connection to {host}:{port} ({words})"


def answer(server: tuple[str, int], error: OSError) -> tuple[str, int]:
    """Return the reason and the status to answer an agent with whose server cannot be reached: what the site's proxy
    answered, as without us."""
    if isinstance(error, SiteProxyError):
        return error.answer
    return in_rubys_words(server, error), 502


def _ends_as(host: str, port: int, pattern: str) -> bool:
    """Whether a server is meant by a word of ``no_proxy`` (Puppet::HTTP::Proxy.no_proxy?)."""
    name, _, number = pattern.partition(":")
    if number and number != str(port):
        return False
    return regex.search(f"{regex.escape(name).replace(r'\*', '.*')}$", host) is not None


def _timed_out(error: OSError) -> bool:
    """Whether our own patience ended; the system's has a number."""
    return isinstance(error, TimeoutError) and error.errno is None

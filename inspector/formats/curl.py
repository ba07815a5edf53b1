"""A recorded request as a curl command for a shell: it sends the same request again.

It runs in bash, zsh and ksh. It contains no secrets: it takes them from variables, and refuses to run without them.
Certificate and key are those in the agent's own configuration. Captured text is hostile: it is quoted, and the command
contains no control characters.
"""

from __future__ import annotations

import contextlib
import shlex
from typing import TYPE_CHECKING

from inspector import regex
from inspector.privacy import redact, secrets
from inspector.privacy.names import named
from inspector.protocol import endpoints, x509
from inspector.protocol.kinds import Kind
from inspector.text import address, clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Exchange, Request

INLINE = 2000
"""Size in bytes up to which a body is part of the command itself."""
SSLDIR = 'SSLDIR="$(puppet config print ssldir)"'
"""The line before the command: where the agent's certificate is. Edit it on another host."""
_OWN = {"host", "content-length", "connection", "keep-alive", "transfer-encoding", "accept-encoding", "expect", "te",
        "trailer", "upgrade", "proxy-connection"}  # fmt: skip
"""Headers about the connection, or that curl sends itself."""
_TOKEN = regex.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HOST = regex.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_UNSAFE = regex.compile(r"[^\x21-\x7e]")


def command(exchange: Exchange) -> str:
    """Return two lines for a shell. If the request has no host that is valid in a URL, they use the variable HOST."""
    shown = redact.exchange(exchange).request
    arguments = ["curl", "--globoff", "--path-as-is", *_identity(exchange), *_request(shown)]
    arguments += _body(exchange, shown) if exchange.request.body or exchange.request.lost else ()
    return f"{SSLDIR}\n{' '.join([*arguments, *_url(exchange, shown.target)])}"


def quoted(data: bytes) -> str:
    """Quote bytes as one word of a shell, without control characters. It cannot contain a NUL."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and clean(text) == text:
        return shlex.quote(text)
    plain = {0x27: "\\'", 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    # Three octal digits: unlike in hexadecimal, a digit that follows cannot be read as part of it.
    return (
        "$'"
        + "".join(plain.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in data)
        + "'"
    )


def _identity(exchange: Exchange) -> Iterator[str]:
    chain = exchange.agent.peer_chain
    if chain:
        name = None
        with contextlib.suppress(x509.Malformed):
            name = x509.read_der(chain[0]).common_name
        # A certname never contains a slash; a forged one must not lead out of the directory.
        if name and "/" not in name and "\0" not in name:
            word = quoted(name.encode(errors="replace"))
            yield f'--cert "$SSLDIR"/certs/{word}.pem --key "$SSLDIR"/private_keys/{word}.pem'
        else:
            yield '--cert "${CERT:?}" --key "${KEY:?}"'
    yield '--cacert "$SSLDIR"/certs/ca.pem'


def _request(request: Request) -> Iterator[str]:
    sends = bool(request.body or request.lost)
    if request.method == "HEAD":
        yield "--head"
    elif request.method != ("POST" if sends else "GET"):
        yield f"--request {quoted(_line(request.method))}"
    if request.header("accept-encoding"):
        yield "--compressed"
    for name, value in request.headers:
        lower = name.lower()
        if lower in _OWN or not _TOKEN.fullmatch(name):
            continue
        if secrets.credential(lower) or named(lower):
            yield f'--header "{lower}: ${{{regex.sub("[^A-Z]", "_", name.upper())}:?}}"'
        elif value.strip():
            yield f"--header {quoted(_line(f'{name}: {value}'))}"
        else:
            yield f"--header {quoted(_line(f'{name};'))}"  # curl's syntax for a header without a value
    if sends and request.header("content-type") is None:
        yield "--header Content-Type:"  # curl's syntax for omitting a header


def _body(exchange: Exchange, shown: Request) -> Iterator[str]:
    request = exchange.request
    found = endpoints.match(request.method, request.target)
    csr = (found is not None and found.endpoint.kind is Kind.CSR) or b"CERTIFICATE REQUEST" in request.body
    secret = csr or shown.body != request.body
    encoded = (request.header("content-encoding") or "identity").lower() != "identity"
    small = len(request.body) <= INLINE and b"\0" not in request.body and not request.lost
    try:
        request.body.decode()
    except UnicodeDecodeError:
        small = False
    if small and not secret and not encoded:
        yield f"--data-raw {quoted(request.body)}"  # unlike --data-binary it does not interpret a leading @
    else:
        content = "CSR" if csr else "body"
        yield f'--data-binary "@${{BODY:?set it to a file with the {content} of record {exchange.seq}}}"'


def _url(exchange: Exchange, target: str) -> Iterator[str]:
    authority = next((host for host in _hosts(exchange) if host and _HOST.fullmatch(host)), None)
    base = "https://" + (authority or '"${HOST:?}"')
    path = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("latin-1", "replace")), target)
    if path.startswith("/") and "#" not in path:
        yield base + shlex.quote(path)
    else:  # not possible in a URL
        yield f"--request-target {shlex.quote(path)} {base}/"


def _hosts(exchange: Exchange) -> Iterator[str | None]:
    yield exchange.request.header("host")
    yield exchange.agent.sni
    master = exchange.master
    if master and master.address and master.port:
        yield address(master.address, master.port)


def _line(text: str) -> bytes:
    """Return text as on the wire (Latin-1), without characters that end a header line or the word."""
    return regex.sub(r"[\0\r\n]", " ", text).encode("latin-1", "replace")

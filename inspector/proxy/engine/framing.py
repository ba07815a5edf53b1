"""HTTP/1 messages: where a head ends, what it says, and how long its body is.

Strict in both directions (RFC 9112): what two readers could read in two ways is refused, so the master reads exactly
what was examined here. A head is passed on as it is assembled again from its parsed lines; for every head that real
agents and masters send these are the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from inspector import __version__
from inspector.errors import InspectorError
from inspector.proxy.limits import CHUNKS, FRAMING, HEAD, LINE, LINES
from inspector.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Callable

type Fields = tuple[tuple[bytes, bytes], ...]
"""A head's headers in their order: names as they were sent, values without the blanks around them."""

NAME = 256
"""Bytes of a header's name. Some are remembered, a thousand of each sort."""
SIZE = 16
"""Digits of a length or of a chunk's size."""
CHUNKED, UNTIL_CLOSE = -1, -2
"""A body in chunks, and one that ends with the connection."""

_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CONTROLS = bytes([*range(9), *range(10, 32), 127])
"""Control characters except the tabulator."""
_TEXT = bytes(set(range(256)) - set(_CONTROLS)) + b"\r\n"
_DIGITS, _HEX = b"0123456789", b"0123456789abcdefABCDEF"


class Refused(InspectorError):
    """A message that is not passed on. ``status`` is the one of the answer to the agent."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True)
class Head:
    """A parsed head."""

    first: tuple[bytes, bytes, bytes]
    """The three parts of the first line: method, target and version, or version, status and reason."""
    fields: Fields
    length: int = 0
    """Bytes of the body, or ``CHUNKED``, or ``UNTIL_CLOSE``."""
    close: bool = False
    """Whether the connection ends after this message."""
    expects: bool = False
    """Whether the agent waits for an interim answer before it sends the body."""
    upgrades: bool = False
    """Whether another protocol is asked for, or offered."""

    def assembled(self, fields: Fields | None = None) -> bytes:
        """Return the head as it is passed on, with other headers if they are given."""
        lines = [b" ".join(self.first)]
        lines += [name + b": " + value for name, value in (self.fields if fields is None else fields)]
        lines.append(b"\r\n")
        return b"\r\n".join(lines)


def request(data: bytes) -> Head:
    """Parse a request's head, without the empty line at its end. Raises Refused."""
    first, fields = _parse(data)
    parts = first.split(b" ")
    if len(parts) != 3 or not parts[0] or parts[0].translate(None, _TOKEN):
        raise Refused(400, "the first line is not a request's")
    method, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Refused(400, "the protocol is not HTTP/1.1 or HTTP/1.0")
    if method == b"CONNECT":
        raise Refused(501, "the agent asked for a tunnel")
    if target[:1] != b"/" or b"\t" in target:
        raise Refused(400, "the target is not a path")
    head = Head((method, target, version), fields)
    _frame(head, version)
    if head.upgrades:
        raise Refused(501, "the agent asked for another protocol")
    return head


def response(data: bytes, method: bytes) -> Head:
    """Parse the head of the response to a request with this method. Raises Refused."""
    first, fields = _parse(data)
    version, _, rest = first.partition(b" ")
    status, _, reason = rest.partition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Refused(502, "the master's answer is not HTTP/1.1 or HTTP/1.0")
    if len(status) != 3 or status.translate(None, _DIGITS) or status < b"100":
        raise Refused(502, "the master's answer has no status")
    head = Head((version, status, reason), fields)
    framed = _frame(head, version)
    if status == b"101":
        raise Refused(502, "the master changed the protocol")
    if method == b"HEAD" or status in (b"204", b"304") or status < b"200":
        head.length = 0
    elif not framed:
        head.length, head.close = UNTIL_CLOSE, True
    return head


def refusal(status: int, reason: str) -> bytes:
    """Return an answer of our own, after which the connection ends."""
    body = f"puppet-inspector: {reason}\n".encode("utf-8", "replace")
    # Agents wait for so many seconds, and ask again.
    later = b"Retry-After: 5\r\n" if status == 503 else b""
    return (
        b"HTTP/1.1 %d %s\r\nServer: puppet-inspector/%s\r\nContent-Type: text/plain; charset=utf-8\r\n%s"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
        % (status, HTTPStatus(status).phrase.encode(), __version__.encode(), later, len(body), body)
    )


def _parse(data: bytes) -> tuple[bytes, Fields]:
    """Return the first line and the headers."""
    lines = data.split(b"\r\n")
    if len(lines) > LINES + 1:
        raise Refused(431, f"there are more than {LINES} headers")
    if data.translate(None, _TEXT):
        raise Refused(400, "a control character is in the head")
    if data.count(b"\n") != len(lines) - 1 or data.count(b"\r") != len(lines) - 1:
        raise Refused(400, "a line does not end with CR and LF")
    fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if len(name) > NAME:
            raise Refused(431, f"a header's name has more than {NAME} bytes")
        if not colon or _lower(name) is None:
            folded = line[:1] in (b" ", b"\t")
            raise Refused(400, "a header is folded into several lines" if folded else "a header's name is invalid")
        fields.append((name, value.strip(b" \t")))
    return lines[0], tuple(fields)


@remembered(1024)
def _lower(name: bytes) -> bytes | None:
    """Return a header's name in lower case; None if it is none."""
    return None if not name or name.translate(None, _TOKEN) else name.lower()


def _frame(head: Head, version: bytes) -> bool:
    """Set how long the body is and whether the connection ends; return whether the head says how long it is."""
    length, coding, connection = None, None, b""
    for name, value in head.fields:
        match _lower(name):
            case b"content-length":
                if length is not None or not value or len(value) > SIZE or value.translate(None, _DIGITS):
                    raise Refused(400, "the length of the body is not one number")
                length = int(value)
            case b"transfer-encoding":
                if coding is not None:
                    raise Refused(400, "there are several transfer codings")
                coding = value.lower()
            case b"connection":
                connection += b"," + value.lower()
            case b"expect":
                head.expects = value.lower() == b"100-continue"
            case b"upgrade":
                head.upgrades = True
    options = [option.strip() for option in connection.split(b",")]
    head.close = b"close" in options or (version == b"HTTP/1.0" and b"keep-alive" not in options)
    if coding is None:
        head.length = length or 0
        return length is not None
    if coding != b"chunked":
        raise Refused(501, "the transfer coding is not chunked")
    if length is not None:
        raise Refused(400, "there are a length and a transfer coding")
    if version == b"HTTP/1.0":
        raise Refused(400, "HTTP/1.0 has no transfer coding")
    head.length = CHUNKED
    return True


class Reader:
    """Reads the messages that arrive on one side of a connection: in turns ``head`` and ``body``."""

    def __init__(self) -> None:
        self._data: bytes | bytearray = b""
        self._at = 0
        """Where the next unread byte is."""
        self._examined = 0
        """How far the data was searched for the end of a head."""
        self._left = 0
        """Bytes of the body, or of the current chunk, that are still to come; or ``UNTIL_CLOSE``."""
        self._chunks = self._begun = False
        """Whether the body is in chunks, and whether one was read, after which a line end follows."""
        self._framing = 0
        """Bytes by which what is between the chunks exceeds them."""
        self._trailers: int | None = None
        """Bytes of the trailers so far; None before them."""
        self.complete = True
        """Whether the current message is read to its end."""
        self.more = False
        """Whether more of the body can be read at once: it has come in many chunks."""

    def feed(self, data: bytes) -> None:
        """Add what arrived."""
        if self._at == len(self._data):
            self._data, self._at, self._examined = data, 0, 0
            return
        if not isinstance(self._data, bytearray):
            self._data = bytearray(self._data)
        if self._at:
            del self._data[: self._at]
            self._examined -= self._at
            self._at = 0
        self._data += data

    @property
    def unread(self) -> int:
        """Bytes that arrived and were not read."""
        return len(self._data) - self._at

    def head(self, parse: Callable[[bytes], Head]) -> Head | None:
        """Read the next head; None if it has not arrived completely. Raises Refused."""
        data, begin = self._data, self._at
        if not self.unread:
            return None
        searched = max(self._examined, begin)
        end = data.find(b"\r\n\r\n", max(searched - 3, begin))
        if end < 0:
            if len(data) - begin > HEAD:
                raise Refused(431, f"the head has more than {HEAD} bytes")
            # Without this, who ends lines in another way would wait for an answer.
            if data.count(b"\n", searched) != data.count(b"\r\n", max(searched - 1, begin)):
                raise Refused(400, "a line does not end with CR and LF")
            self._examined = len(data)
            return None
        if end - begin > HEAD:
            raise Refused(431, f"the head has more than {HEAD} bytes")
        head = parse(bytes(data[begin:end]))
        self._at = self._examined = end + 4
        self._chunks, self._begun, self._trailers = head.length == CHUNKED, False, None
        self._framing = 0
        self._left = 0 if self._chunks else head.length
        self.complete = head.length == 0
        return head

    def body(self) -> bytes:
        """Read what has arrived of the body, without the framing of chunks; of many chunks some. Raises Refused."""
        self.more = False
        if self.complete:
            return b""
        if not self._chunks:
            return self._forget(self._take())
        pieces = []
        for _ in range(2 * CHUNKS):  # what is between two chunks, and a chunk
            if self.complete:
                break
            if self._left:
                if not (piece := self._take()):
                    break
                pieces.append(piece)
            elif not self._next_chunk():
                break
        else:
            self.more = not self.complete
        body = b"".join(pieces)
        self._framing -= len(body)
        if self._framing > FRAMING:
            raise Refused(400, "the chunks of a body are smaller than what is between them")
        return self._forget(body)

    def _forget(self, piece: bytes) -> bytes:
        """Free what was read, unless something follows it; return what was read."""
        if self._at == len(self._data):
            self._data, self._at, self._examined = b"", 0, 0
        return piece

    def _take(self) -> bytes:
        """Read what is there of the body or chunk."""
        data, at = self._data, self._at
        size = len(data) - at
        if self._left != UNTIL_CLOSE:
            size = min(size, self._left)
            self._left -= size
            self.complete = not self._left and not self._chunks
        self._at = at + size
        if size == len(data) and isinstance(data, bytes):
            return data
        return bytes(memoryview(data)[at : at + size])

    def _next_chunk(self) -> bool:
        """Read what is between two chunks; return whether there was enough of it."""
        if self._trailers is not None:
            return self._skip_trailer()
        data, at = self._data, self._at
        if self._begun:
            if data[at : at + 2] != b"\r\n"[: len(data) - at]:
                raise Refused(400, "a chunk does not end with CR and LF")
            at += 2
        end = data.find(b"\r\n", at, at + SIZE + 2)
        digits = bytes(data[at : end if end >= 0 else at + SIZE + 1])
        if end < 0:
            digits = digits.removesuffix(b"\r")
        if digits.translate(None, _HEX) or len(digits) > SIZE or (end >= 0 and not digits):
            raise Refused(400, "a chunk's size is not one number")
        if end < 0:
            return False
        self._framing += end + 2 - self._at
        self._at, self._left, self._begun = end + 2, int(digits, 16), True
        if not self._left:
            self._trailers = 0
        return True

    def _skip_trailer(self) -> bool:
        """Read a line after the last chunk, up to the empty one. Trailers are not passed on: neither agents nor masters
        send any."""
        assert self._trailers is not None  # noqa: S101 - it comes after the last chunk
        end = self._data.find(b"\r\n", self._at)
        self._trailers += (self.unread if end < 0 else end - self._at) + 2
        if self._trailers > LINE:
            raise Refused(400, f"the trailers have more than {LINE} bytes")
        if end < 0:
            self._trailers -= self.unread + 2
            return False
        line = bytes(self._data[self._at : end])
        if line:
            _parse(b"\r\n" + line)
        self.complete = not line
        self._at = end + 2
        return True

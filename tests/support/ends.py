"""A transport and TLS for the ends of a link, without a network."""

from __future__ import annotations

from typing import Any

from OpenSSL import SSL


class Transport:
    """A transport of which nothing is taken."""

    def __init__(self) -> None:
        self.size = 0
        self.data = b""
        """What was written."""
        self.reading = True
        self.ended = ""

    def get_write_buffer_size(self) -> int:
        return self.size

    def set_write_buffer_limits(self, _high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.1", 50000) if name == "peername" else self

    def setsockopt(self, *_: object) -> None:
        pass

    def is_closing(self) -> bool:
        return bool(self.ended)

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self.data += data

    def write_eof(self) -> None:
        pass

    def fileno(self) -> int:
        return -1

    def getsockopt(self, *_: object) -> bytes:
        return b"\1"  # the connection is established

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"


class Tls:
    """TLS that encrypts nothing."""

    def __init__(self) -> None:
        self.data = b""
        self.waits = False
        self.shut = False
        """Whether TLS's farewell was sent."""

    def send(self, data: bytes) -> int:
        if self.waits:
            raise SSL.WantReadError
        self.data += data[: 2**14]
        return len(data[: 2**14])

    def bio_read(self, size: int) -> bytes:
        if not self.data:
            raise SSL.WantReadError
        data, self.data = self.data[:size], self.data[size:]
        return data

    def bio_write(self, data: bytes) -> int:
        return len(data)

    def do_handshake(self) -> None:
        pass

    def recv(self, _size: int) -> bytes:
        raise SSL.WantReadError

    def shutdown(self) -> None:
        self.shut = True

    def get_servername(self) -> None:
        pass

    def get_protocol_version_name(self) -> str:
        return "TLSv1.3"

    def get_cipher_name(self) -> str:
        return "TLS_AES_256_GCM_SHA384"

    def get_peer_cert_chain(self) -> None:
        pass

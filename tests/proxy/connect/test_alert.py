"""An alert that is sent by hand, as OpenSSL's own client takes it."""

from __future__ import annotations

import contextlib

import pytest
from OpenSSL import SSL

from inspector.host import pki
from inspector.proxy.connect import alert
from inspector.proxy.connect.alert import SECRET, SentRecords
from tests.support.rows import each_row

CIPHERS = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
UNKNOWN_CA, CERTIFICATE_REVOKED, CERTIFICATE_REQUIRED = 48, 44, 116


def moved(source: SSL.Connection, target: SSL.Connection) -> bytes:
    """Pass on what one end has to send; return it."""
    data = b""
    with contextlib.suppress(SSL.WantReadError):
        while True:
            data += source.bio_read(65536)
    if data:
        target.bio_write(data)
    return data


class Pair:
    """A server of TLS 1.3 and its client, after their handshake."""

    def __init__(self, cipher: str) -> None:
        self.secret = b""
        self.alerts: list[tuple[str, int]] = []
        """What the client got, each with its level."""
        self.sent = SentRecords()
        server, client = SSL.Context(SSL.TLS_SERVER_METHOD), SSL.Context(SSL.TLS_CLIENT_METHOD)
        for context in (server, client):
            context.set_min_proto_version(SSL.TLS1_3_VERSION)
            context.set_tls13_ciphersuites(cipher.encode())
        ca, key = pki.make_ca("CA"), pki.new_key()
        server.use_certificate(pki.sign(ca, key.public_key(), "puppet"))
        server.use_privatekey(key)
        server.set_keylog_callback(self._keep)
        client.set_info_callback(self._listen)
        self.server, self.client = SSL.Connection(server), SSL.Connection(client)
        self.server.set_accept_state()
        self.client.set_connect_state()
        for source, target in ((self.client, self.server), (self.server, self.client)) * 2:
            with contextlib.suppress(SSL.WantReadError):
                source.do_handshake()
            if source is self.server and source.get_state_string() == b"SSL negotiation finished successfully":
                self.flush()  # the tickets
            else:
                moved(source, target)
        assert self.server.get_cipher_name() == cipher

    def _keep(self, _connection: SSL.Connection, line: bytes) -> None:
        self.secret = line if line.startswith(SECRET) else self.secret

    def _listen(self, _connection: SSL.Connection, where: int, code: int) -> None:
        if where == SSL.SSL_CB_READ_ALERT:
            self.alerts.append(("fatal" if code >> 8 == alert.FATAL else "warning", code & 0xFF))

    def flush(self) -> None:
        """Pass on what the server has to send, and count its records."""
        self.sent.add(moved(self.server, self.client))

    def receive(self) -> bytes:
        """What the client reads, until it has to wait."""
        data = b""
        with contextlib.suppress(SSL.WantReadError):
            while True:
                data += self.client.recv(65536)
        return data

    def by_hand(self, code: int) -> bytes:
        record = alert.fatal(code, self.secret, self.server.get_cipher_name() or "", self.sent.number)
        assert record
        return record


@pytest.mark.parametrize("code", [UNKNOWN_CA, CERTIFICATE_REVOKED, CERTIFICATE_REQUIRED])
@pytest.mark.parametrize("cipher", CIPHERS)
def test_the_client_gets_the_alert(cipher: str, code: int) -> None:
    pair = Pair(cipher)
    assert pair.sent.number, "session tickets were sent"
    pair.client.bio_write(pair.by_hand(code))
    with pytest.raises(SSL.Error, match="alert"):
        pair.client.recv(1)
    assert pair.alerts == [("fatal", code)]


@pytest.mark.parametrize("cipher", CIPHERS)
def test_it_is_read_behind_what_the_server_has_sent(cipher: str) -> None:
    pair = Pair(cipher)
    for piece in (b"a", b"b" * 40_000):
        while piece:
            piece = piece[pair.server.send(piece) :]
            pair.flush()
    number = pair.sent.number
    assert number > 4
    assert pair.receive() == b"a" + b"b" * 40_000
    pair.client.bio_write(pair.by_hand(UNKNOWN_CA))
    with pytest.raises(SSL.Error, match="unknown ca"):
        pair.client.recv(1)
    assert pair.alerts == [("fatal", UNKNOWN_CA)]


@pytest.mark.parametrize("off", [-1, 1])
def test_under_another_number_it_is_unreadable(off: int) -> None:
    """So every record has to be counted."""
    pair = Pair(CIPHERS[1])
    pair.sent.number += off
    pair.client.bio_write(pair.by_hand(UNKNOWN_CA))
    with pytest.raises(SSL.Error, match="bad record mac"):
        pair.client.recv(1)
    assert pair.alerts == []


def test_there_is_none_of_an_older_tls() -> None:
    assert alert.fatal(UNKNOWN_CA, SECRET + b"00 00", "ECDHE-RSA-AES256-GCM-SHA384", 0) is None
    assert alert.fatal(UNKNOWN_CA, b"CLIENT_RANDOM 00 00", CIPHERS[0], 0) is None
    assert alert.fatal(UNKNOWN_CA, b"", CIPHERS[0], 0) is None


# -- counting ---------------------------------------------------------------------------------------------

RECORDS = (b"", b"a" * 5, b"b" * 16_401, b"", b"c")


@each_row("size", [1, 2, 3, 4, 5, 6, 7, 1000, 2**20])
def test_records_are_counted_however_they_are_cut(size: int) -> None:
    data = b"".join(b"\x17\x03\x03" + len(record).to_bytes(2) + record for record in RECORDS)
    sent = SentRecords()
    for at in range(0, len(data), size):
        sent.add(data[at : at + size])
    assert sent.number == len(RECORDS)


def test_a_record_counts_when_its_length_is_known() -> None:
    sent = SentRecords()
    sent.add(b"")
    sent.add(b"\x17\x03\x03\x00")
    assert sent.number == 0
    sent.add(b"\x02")
    assert sent.number == 1
    sent.add(b"ab\x17\x03\x03\x00\x00")
    assert sent.number == 2

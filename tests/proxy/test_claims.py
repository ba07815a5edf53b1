"""Headers that claim an identity, in any spelling that some gateway understands."""

from __future__ import annotations

import pytest

from inspector.proxy import claims
from tests.support.rows import each_row

HOST = (b"Host", b"n")


@each_row(
    "name",
    [
        b"X-Client-DN", b"x-client-verify", b"X_Client_Cert", b"X.Client.DN", b"X-Client", b"x--client--dn-",
        b"X-SSL-Subject",
        b"X-SSL", b"SSL", b"SSL_CLIENT_S_DN", b"ssl-client-verify", b"Client-Cert", b"Client-Cert-Chain",
        b"X-Forwarded-Client-Cert", b"Forwarded_Client_Cert", b"-X-Client-DN",
    ],
)  # fmt: skip
def test_a_claim_is_removed_and_named(name: bytes) -> None:
    fields = (HOST, (name, b"CN=other"), (b"Accept", b"a"), (name.upper(), b"again"))
    assert claims.removed(fields) == ((HOST, (b"Accept", b"a")), (name.decode(),))


@pytest.mark.parametrize("name", [b"X-Other", b"Client", b"Sslx", b"X-Puppet-Version", b"Cert"])
def test_other_headers_stay(name: bytes) -> None:
    assert claims.removed([(name, b"a")]) == (((name, b"a"),), ())


@each_row(
    ("field", "why"),
    [
        ((b"X", b"a\rX-Client-DN: CN=b"), "line end"),
        ((b"X", b"a\nb"), "line end"),
        ((b"X", b"a\0b"), "line end"),
        ((b"Content_Length", b"1"), "where the message ends"),
        ((b"transfer.encoding", b"chunked"), "where the message ends"),
        ((b"Connection", b"close, X-Client-DN"), "removal"),
    ],
)
def test_what_a_gateway_may_read_in_another_way(field: tuple[bytes, bytes], why: str) -> None:
    assert why in (claims.ambiguous([HOST, field]) or "")


def test_what_every_gateway_reads_in_the_same_way() -> None:
    assert claims.ambiguous([HOST, (b"content-LENGTH", b"1"), (b"Connection", b"close, Keep-Alive")]) is None


def test_long_names_are_not_remembered() -> None:
    before = claims._known_claims.cache_info().currsize + claims._known_canonical.cache_info().currsize
    for number in range(10):
        name = b"x-client-" + b"a" * 1000 + b"%d" % number
        assert claims.removed([(name, b"a")])[0] == ()
        assert claims.ambiguous([(b"Connection", name)])
    assert claims._known_claims.cache_info().currsize + claims._known_canonical.cache_info().currsize <= before + 1


@pytest.mark.parametrize("option", [b"content-length", b"Transfer_Encoding"])
def test_nobody_asks_for_the_removal_of_a_length(option: bytes) -> None:
    assert claims.ambiguous([(b"Connection", b"close, " + option)])

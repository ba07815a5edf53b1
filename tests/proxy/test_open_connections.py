"""The live picture: what begins is in it until it ends, and strangers fill it only so far."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from inspector import regex
from inspector.capture.present import CONNECTIONS, REQUESTS, TEXT
from inspector.model import OpenConnection, OpenRequest
from inspector.protocol import endpoints
from inspector.proxy.open_connections import HIDDEN, OpenConnections
from tests.support.rows import each_row

if TYPE_CHECKING:
    from inspector.proxy.connection_state import AgentConnection

TARGET = b"/puppet/v3/catalog/a8.test?environment=production"


def agent(name: str = "", claimed: str | None = None) -> AgentConnection:
    """An agent with a verified name, or with one that it only claims."""
    return cast("AgentConnection", SimpleNamespace(verified_name=name, claimed_name=claimed or name or None))


def connected(leg: str = "leg", name: str = "a8.test", **options: Any) -> OpenConnections:
    picture = OpenConnections(**options)
    picture.connect(leg, agent(name), "192.0.2.8", 90.0)
    return picture


def test_it_begins_and_ends() -> None:
    picture = OpenConnections()
    seen = [picture.changes]
    assert len(picture) == 0
    picture.connect("leg", agent("a8.test"), "192.0.2.8", 90.0)
    picture.begin("leg", 95.0, b"POST", TARGET)
    now = picture.present(100.0)
    assert (now.recording, now.time) == ("open", 100.0)
    assert now.requests == (OpenRequest("leg", 95.0, "POST", TARGET.decode()),)
    assert now.connections == (OpenConnection("leg", 90.0, "192.0.2.8", "a8.test"),)
    picture.end("leg", 101.0)
    seen.append(picture.changes)
    assert picture.present(102.0).requests == ()
    assert picture.present(102.0).connections[0].last == 101.0
    picture.begin("leg", 103.0, b"PUT", b"/")
    assert [request.method for request in picture.present(104.0).requests] == ["PUT"]
    picture.close("leg")
    seen.append(picture.changes)
    ended = picture.present(105.0, "ended")
    assert (ended.recording, ended.requests, ended.connections) == ("ended", (), ())
    assert len(set(seen)) == 3


def test_what_belongs_to_no_connection_changes_nothing() -> None:
    picture = OpenConnections()
    picture.begin("leg", 95.0, b"GET", b"/")
    picture.end("leg", 96.0)
    picture.close("leg")
    assert picture.changes == 0
    assert picture.present(100.0).requests == ()


def test_they_are_in_the_order_of_their_arrival() -> None:
    picture = OpenConnections()
    for number in (3, 1, 2):
        picture.connect(str(number), agent("a8.test"), "192.0.2.8", 80.0 - number)
        picture.begin(str(number), 90.0 + number, b"GET", b"/")
    now = picture.present(100.0)
    assert [request.leg for request in now.requests] == ["1", "2", "3"]
    assert [connection.leg for connection in now.connections] == ["3", "2", "1"]


@pytest.mark.slow
def test_strangers_come_after_agents_and_the_rest_is_counted() -> None:
    picture = OpenConnections()
    for number in range(5000):
        picture.connect(f"stranger{number}", agent(), "198.51.100.1", number)
        picture.begin(f"stranger{number}", number, b"X" * 9999, b"/" + b"x" * 100_000)
    picture.connect("leg", agent("a8.test"), "192.0.2.8", 9000.0)
    picture.begin("leg", 9001.0, b"POST", TARGET)
    now = picture.present(9002.0)
    assert (len(now.requests), now.more_requests) == (REQUESTS, 5001 - REQUESTS)
    assert (len(now.connections), now.more_connections) == (CONNECTIONS, 5001 - CONNECTIONS)
    assert now.requests[-1].leg == now.connections[-1].leg == "leg"
    assert [request.leg for request in now.requests[:3]] == ["stranger0", "stranger1", "stranger2"]
    assert {len(request.target) for request in now.requests[:-1]} == {TEXT}
    assert {len(request.method) for request in now.requests[:-1]} == {TEXT}


@each_row(
    ("target", "shown"),
    [
        (TARGET.decode(), "/puppet/v3/catalog/a8.test"),
        ("/puppet-ca/v1/certificate_revocation_list/ca", "/puppet-ca/v1/certificate_revocation_list/ca"),
        ("/production/catalog/a8.test?facts=secret", "/production/catalog/a8.test"),
        ("/puppet/v3/file_content/modules/x/token-1234?x=y", f"/puppet/v3/file_content/modules/{HIDDEN}"),
        ("/production/file_content/plugins/x/token-1234", f"/production/file_content/plugins/{HIDDEN}"),
        (f"/puppet/v3/file_bucket_file/md5/{'a' * 32}/etc/shadow", f"/puppet/v3/file_bucket_file/{HIDDEN}"),
        ("/puppet/v3/catalog/ghp_a1B2c3", ""),
        ("/ghp_a1B2c3/catalog/a8.test", ""),
        ("/x/token-1234", ""),
        ("/puppet/v3/catalog/" + "y" * 1000, ""),
    ],
)  # fmt: skip
def test_with_masks_only_what_cannot_be_a_secret_is_in_it(target: str, shown: str) -> None:
    picture = connected(redacts=True)
    method = "GET"
    picture.begin("leg", 95.0, method.encode(), target.encode())
    (request,) = picture.present(100.0).requests
    assert request.target == shown
    known, found = (endpoints.match(method, of) for of in (target, request.target))
    assert found is None or (known is not None and found.endpoint.kind is known.endpoint.kind)


def test_only_the_agents_to_be_recorded_are_in_it() -> None:
    picture = OpenConnections(regex.compile("a8.*"))
    picture.connect("yes", agent("a8.test"), "192.0.2.8", 1.0)
    picture.connect("no", agent("b1.test"), "192.0.2.9", 2.0)
    picture.connect("refused", agent("", "b1.test"), "192.0.2.9", 3.0)
    picture.connect("unknown", agent(), "192.0.2.10", 4.0)
    for leg in ("yes", "no", "refused", "unknown"):
        picture.begin(leg, 5.0, b"GET", b"/puppet/v3/node/a9.test?environment=production")
    assert [connection.leg for connection in picture.present(6.0).connections] == ["yes"]
    picture.begin("unknown", 5.0, b"GET", b"/puppet-ca/v1/certificate/a8.test")
    now = picture.present(6.0)
    assert [connection.leg for connection in now.connections] == ["yes", "unknown"]
    assert [request.leg for request in now.requests] == ["yes", "unknown"]

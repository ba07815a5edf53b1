"""The head of a message as a table."""

from __future__ import annotations

from inspector.model import Request, Response
from inspector.pages import message


def test_the_first_line_of_a_message_is_named() -> None:
    request = Request((("Accept", "*/*"),), b"", method="PUT", target="/puppet/v3/report/x?environment=e")
    table = message.head(request)
    assert (table.plain(0, 0), table.plain(0, 1)) == ("request line", "PUT /puppet/v3/report/x?environment=e HTTP/1.1")
    assert table.plain(1, 0) == "Accept"
    table = message.head(Response((), b"", status=500, reason="Server Error"))
    assert (table.plain(0, 0), table.plain(0, 1)) == ("status line", "HTTP/1.1 500 Server Error")

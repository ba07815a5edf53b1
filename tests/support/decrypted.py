"""What tshark finds in the wire that was recorded, beside what the capture has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.model import Exchange
from inspector.summaries import listing
from tests.support.programs import fields

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.summaries.summary import Brief


def compare(path: Path, capture: Path) -> list[Brief]:
    """Check that tshark finds the requests and answers of the list on both legs; return those of the list."""
    briefs = [brief for brief, _ in listing.listed(capture) if brief.kind == "exchange"]
    with Capture.open(capture) as opened:
        exchanges = [record for record in opened.records() if isinstance(record, Exchange)]
    names = ("frame.interface_name", "http.request.method", "http.request.uri", "ip.src", "tcp.srcport", "tcp.dstport")
    for side, brief_of in (("agents", [b for b in briefs if b.leg]), ("masters", [b for b in briefs if b.master])):
        asked = fields(path, f'http.request && tls && frame.interface_name == "{side}"', *names)
        assert sorted((method, uri) for _, method, uri, *_ in asked) == sorted((b.method, b.target) for b in brief_of)
        answers = fields(path, f'http.response && frame.interface_name == "{side}"', "http.request_in",
                         "http.response.code")  # fmt: skip
        assert sorted(int(status) for _, status in answers) == sorted(b.status for b in brief_of if b.status)
        # Each answer belongs to the same request.
        uris = dict(fields(path, f'http.request && frame.interface_name == "{side}"', "frame.number",
                           "http.request.uri"))  # fmt: skip
        assert sorted((uris[number], int(status)) for number, status in answers) == sorted(
            (b.target, b.status) for b in brief_of if b.status is not None
        )
        for _, _, _, source, port, _ in asked:
            if side == "agents":
                assert (source, int(port)) in {(one.agent.address, one.agent.port) for one in exchanges}
    assert fields(path, "_ws.malformed", "frame.number") == []
    return briefs

"""Packets of the recorded HTTP: tshark reads the same requests and answers in them as the lists show."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.formats import exporting, packet_capture, pcapng
from inspector.model import Connection, Exchange, Request, Response
from inspector.summaries import listing
from tests.support.captures import save
from tests.support.conversations import Agent
from tests.support.hostile import hostile_records
from tests.support.odd_records import EMPTY, ODD
from tests.support.programs import fields, tree
from tests.support.recorded import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.formats.lossless import CaptureItem


def packets(path: Path, *items: CaptureItem) -> list[pcapng.Block]:
    """The packets of a file that is written for these."""
    packet_capture.write(items, path)
    with path.open("rb") as file:
        return [block for block in pcapng.blocks(file) if block.kind == pcapng.PACKET]


def test_the_file_is_private_says_what_it_is_and_is_in_order(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    chosen = exporting.Chosen.by(SAMPLES[0])
    assert chosen.write("pcapng", path) == len(chosen.owners)
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("rb") as file:
        section, agents, masters, *rest = pcapng.blocks(file)
    assert b"TCP is made up" in section.body
    assert (b"agents" in agents.body, b"masters" in masters.body) == (True, True)
    assert [block.time for block in rest] == sorted(block.time for block in rest)
    assert next(chosen.notes("pcapng")).startswith("The packets are made up")


def test_what_is_hostile_or_odd_costs_nothing(tmp_path: Path) -> None:
    records = [*hostile_records(), *ODD]
    for block in packets(tmp_path / "x.pcapng", *map(Connection, ()), *EMPTY, *records):
        assert "\x1b" not in block.comment
        assert 0 <= block.time < 2**63
    exchange = Agent(leg="1").catalog().records[0]
    assert isinstance(exchange, Exchange)
    huge = dataclasses.replace(exchange, response=Response(lost=2**62, status=200))
    assert len(packets(tmp_path / "y.pcapng", huge)) < 3000


def test_chunks_are_framed_again() -> None:
    chunked = (("Transfer-Encoding", "gzip, chunked"),)
    assert packet_capture.framed(b"", Response(chunked, b"abc")) == (b"3\r\nabc\r\n0\r\n\r\n", 0)
    assert packet_capture.framed(b"", Response(chunked, b"")) == (b"0\r\n\r\n", 0)
    assert packet_capture.framed(b"", Response(chunked, b"abc", lost=13)) == (b"10\r\nabc", 13)
    assert packet_capture.framed(b"h", Response((), b"abc"), empty=True) == (b"h", 0)
    assert packet_capture.request_head(Request((("A", "b"),), http_version="HTTP/2.0", target="/x")) == (
        b"GET /x HTTP/1.1\r\nA: b\r\n\r\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_tshark_finds_what_the_list_shows(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    exporting.Chosen.by(sample, opened=None).write("pcapng", path)
    briefs = [brief for brief, _ in listing.listed(sample) if brief.kind == "exchange"]
    asked = fields(path, "http.request", "frame.comment", "http.request.method", "http.request.uri", "ip.src",
                   "tcp.srcport", "frame.interface_name")  # fmt: skip
    by_seq = {int(comment.split("|")[0].removeprefix("record ")): rest for comment, *rest in asked}
    assert sorted(by_seq) == [brief.seq for brief in briefs]
    for brief in briefs:
        method, uri, source, _, interface = by_seq[brief.seq]
        assert (method, uri, source, interface) == (brief.method, brief.target, brief.address, "agents")
    answers = fields(path, "http.response", "http.request_in", "http.response.code")
    requests = {number: seq for (number, comment) in fields(path, "http.request", "frame.number", "frame.comment")
                for seq in [int(comment.split("|")[0].removeprefix("record "))]}  # fmt: skip
    found = {requests[number]: int(status) for number, status in answers}
    assert found == {brief.seq: brief.status for brief in briefs if brief.status}
    assert fields(path, "_ws.malformed || tcp.analysis.lost_segment || tcp.analysis.out_of_order", "frame.number") == []
    refused = [brief for brief, _ in listing.listed(sample) if brief.kind == "handshake"]
    comments = "".join(comment for (comment,) in fields(path, "frame.comment", "frame.comment"))
    assert comments.count("the TLS handshake failed") == len(refused)
    if any(brief.endpoint == "catalog" and brief.status == 200 for brief in briefs):
        assert all("json" in layers for layers in tree(path, "http.response && json"))
        assert len(fields(path, "http.response && json", "frame.number")) > 1


@pytest.mark.slow
def test_of_a_body_that_was_not_recorded_the_head_is_shown(tmp_path: Path) -> None:
    whole = (("Content-Length", "1000000"),)
    answers = (
        Response(whole, b"x" * 10, lost=999_990, status=200),
        Response((("Content-Length", "2"),), b"ok", status=404),
    )
    records = []
    for answer, record in zip(answers, Agent(leg="1").plugins().records, strict=False):
        assert isinstance(record, Exchange)
        records.append(dataclasses.replace(record, response=dataclasses.replace(answer, started=record.ended,
                                                                                ended=record.ended)))  # fmt: skip
    path = tmp_path / "x.pcapng"
    exporting.Chosen.by(save(tmp_path / "c.sqlite", *records), opened=None).write("pcapng", path)
    assert [code for (code,) in fields(path, "http.response", "http.response.code")] == ["200", "404"]

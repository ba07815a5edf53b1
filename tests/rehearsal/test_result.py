"""Times of a rehearsal."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from inspector.compare.documents import RunDocuments
from inspector.compare.masks import Masks
from inspector.model import Exchange, Response
from inspector.rehearsal import requests
from inspector.rehearsal.result import LONGEST, MOST, Logged, Logs, Result, Time
from inspector.runs.examples import catalog, talk
from inspector.runs.snapshot import RunSnapshot
from tests.support.compared import decoded, file
from tests.support.rehearsals import JSON


def test_percentiles_and_the_slowest() -> None:
    result = Result(times=[Time(f"n{number}", 1.0, float(number)) for number in range(1, 101)])
    assert [result.ratio(percentile) for percentile in (50, 90, 99)] == [51.0, 91.0, 100.0]
    assert [time.node for time in result.slowest][:2] == ["n100", "n99"]
    assert len(result.slowest) == 10


def test_without_times() -> None:
    assert Result().ratio(50) is None
    assert Time("n", 0.0, 1.0).ratio == 1.0


def test_each_node_is_kept_if_it_is_wanted() -> None:
    result = Result(each={})
    result.fail("a", "no key")
    assert result.each == {"a": "no key"}
    assert result.groups.failed[0].nodes == ("a",)
    Result().fail("a", "no key")


# -- what the master logged ------------------------------------------------------------------------------------

OF = requests.asked(record for record in talk(catalog()) if isinstance(record, Exchange))
V4 = dataclasses.replace(OF.exchange, request=requests.v4(OF, None))


def found(*of_nodes: tuple[str, Any], masks: Masks | None = None, exchange: Exchange = V4) -> list[Logged]:
    made = Logs()
    for node, entries in of_nodes:
        body = json.dumps({"catalog": {}, "logs": entries}).encode()
        answered = dataclasses.replace(exchange, response=Response(status=200, headers=(JSON,), body=body))
        run = RunDocuments("a.sqlite run 1", RunSnapshot(number=1, certname=node))
        made.add(run, answered, masks or Masks())
    return list(made)


def entry(message: str, level: str = "warning", **place: Any) -> dict[str, Any]:
    return {"level": level, "message": message, "source": "Puppet", "tags": [], **place}


def test_the_same_message_of_several_nodes_is_one() -> None:
    one = entry("Unknown variable on a.example", file="/m/a.example.pp", line=7)
    other = entry("Unknown variable on b.example", file="/m/b.example.pp", line=7)
    assert found(("a.example", [one, one]), ("b.example", [other]), ("c.example", [entry("bad", "err")])) == [
        Logged("err", "bad", "", ["c.example"]),
        Logged("warning", "Unknown variable on a.example", "/m/a.example.pp:7", ["a.example", "b.example"]),
    ]


def test_secrets_are_masked() -> None:
    secret = decoded([file("/a", content="correct horse battery", sensitive=["content"])])
    (logged,) = found(("a.example", [entry("got correct horse battery")]), masks=Masks([secret]))
    assert logged.message == "got MASKED"


def test_what_v4_alone_causes_is_left_out() -> None:
    text = "File[/a]['content'] contains a Deferred value. It will be converted to the String 'Deferred({})'"
    other = "It contains a value"
    assert [each.message for each in found(("a", [entry(text), entry(f"{text} (file: /x)\n"), entry(other)]))] == [
        other
    ]


def test_odd_logs() -> None:
    odd: tuple[Any, ...] = (None, 7, {"a": 1}, [7], [{"level": 1}], [{"message": None}], [[[]]])
    for entries in odd:
        assert found(("a", entries)) == []
    assert found(("a", [{}])) == [Logged("", "", "", ["a"])]
    many = [entry(str(number)) for number in range(MOST + 5)]
    assert len(found(("a", many))) == MOST
    (long,) = found(("a", [entry("x" * (LONGEST + 5))]))
    assert len(long.message) == LONGEST
    assert found(("a", [entry("x")]), exchange=OF.exchange) == []


def test_a_master_that_gets_faster_was_cold_and_is_measured_by_the_later_half() -> None:
    warming = [Time(f"n{number}", 1.0, ratio, float(number)) for number, ratio in enumerate((9.0, 7.0, 2.0, 1.0))]
    result = Result(times=warming[::-1])  # the order of the answers is another one
    assert result.cold == 8.0
    assert [result.ratio(percentile) for percentile in (0, 90)] == [1.0, 2.0]
    assert [time.node for time in result.slowest] == ["n2", "n3"]
    slow = Result(times=[Time(f"n{number}", 1.0, 8.0, float(number)) for number in range(4)])
    assert (slow.cold, slow.ratio(50)) == (None, 8.0)
    assert Result(times=warming[:3]).cold is None  # too few
    assert Result().cold is None

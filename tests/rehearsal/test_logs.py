"""What a master logs while it compiles: grouped, masked, and never more than is reasonable."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from inspector.compare.documents import RunDocuments
from inspector.compare.masks import Masks
from inspector.model import Exchange, Response
from inspector.rehearsal import logs, requests
from inspector.rehearsal.logs import Logged, Logs
from inspector.runs.examples import catalog, talk
from inspector.runs.snapshot import RunSnapshot
from tests.support.compared import decoded, file
from tests.support.rehearsals import JSON

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
    many = [entry(str(number)) for number in range(logs.MOST + 5)]
    assert len(found(("a", many))) == logs.MOST
    (long,) = found(("a", [entry("x" * (logs.LONGEST + 5))]))
    assert len(long.message) == logs.LONGEST
    assert found(("a", [entry("x")]), exchange=OF.exchange) == []

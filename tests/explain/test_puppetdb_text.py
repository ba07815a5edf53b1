"""Requests to PuppetDB in lines and as JSON: nothing secret, nothing raw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.explain import puppetdb, puppetdb_text
from inspector.runs.examples import (
    NAME,
    ExamplePart,
    altered,
    catalog,
    plugins,
    querying,
    report,
    slow,
    stored,
    talk,
    together,
    wait,
)  # fmt: skip

if TYPE_CHECKING:
    from inspector.explain.puppetdb import Joined


def _master(*parts: ExamplePart, agents: tuple[str, ...] = ()) -> Joined:
    runs = [
        talk(plugins(), slow(catalog(uuid=name), 8), wait(8), report(uuid=name), certname=name, after=after / 10)
        for after, name in enumerate(agents)
    ]
    return puppetdb.joined(Analyzer().steps(together(*runs, talk(*parts, certname="puppet.example", after=2))))


def test_whose_it_may_be() -> None:
    found = _master(querying("nodes{}"), agents=(NAME, "node2.example"))
    (query,) = found.others
    assert puppetdb_text.row(query)[6] == f"query nodes{{}} (of run 1 of {NAME} or run 2 of node2.example)"
    assert puppetdb_text.fields(found).others[0].candidates == [1, 2]
    assert puppetdb_text.others(found) == "1 request to PuppetDB of no run that is known"


def test_without_the_capture_of_the_agents() -> None:
    assert puppetdb_text.others(_master(stored())).endswith("name the capture of the agents as well")


def test_secrets_are_masked() -> None:
    found = _master(querying('resources{ title = "password=Hunter2Hunter2" }', status=400, answer=b"no"))
    (query,) = found.others
    shown = [*puppetdb_text.row(query), *puppetdb_text.found(found.others), repr(puppetdb_text.fields(found))]
    assert "Hunter2" not in "".join(shown)
    assert "D06" in shown[7]


def test_what_is_not_answered_or_odd() -> None:
    odd = altered(stored(), request={"target": "/pdb/cmd/v1?certname=%00"}, headers={"X-Uncompressed-Length": "x"})
    (call,) = _master(odd).others
    assert (call.command, call.certname, call.unpacked) == ("", "\0", None)
    assert "\0" not in "".join(puppetdb_text.row(call))

"""Requests of a master to PuppetDB, joined to the runs that caused them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.explain import puppetdb
from inspector.protocol.kinds import Kind
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
    from inspector.explain.puppetdb import Call, Joined
    from inspector.model import Record

OTHER = "node2.example"


def _joined(*talks: list[Record]) -> Joined:
    return puppetdb.joined(Analyzer().steps(together(*talks)))


def _agent(uuid: str = "a-1", certname: str = NAME, after: float = 0, took: float = 8) -> list[Record]:
    parts = [plugins(), slow(catalog(uuid=uuid), took), wait(took), report(uuid=uuid)]
    return list(talk(*parts, certname=certname, after=after))


def _master(*parts: ExamplePart, after: float = 2) -> list[Record]:
    return list(talk(*parts, certname="puppet.example", after=after))


def _known(calls: list[Call]) -> list[tuple[str, str | None]]:
    return [(call.what, call.by) for call in calls]


def test_by_transaction_name_and_time() -> None:
    found = _joined(
        _agent(), _master(stored(), querying("nodes{}"), stored("replace_catalog"), wait(4), stored("store_report"))
    )
    (served,) = found.runs
    assert (served.run.certname, found.others) == (NAME, [])
    assert _known(served.calls) == [
        (f"replace facts of {NAME}", "name and time"),
        ("query nodes{}", "time"),
        (f"replace catalog of {NAME}", "transaction_uuid"),
        (f"store report of {NAME}", "transaction_uuid"),
    ]
    # The report is not a part of the catalog's time.
    assert round(served.compile_waited / 0.2, 3) == 3
    assert round(served.seconds / 0.2, 3) == 4
    assert round(served.compile or 0) == 8


def test_facts_that_are_refused_belong_to_the_catalog_although_the_report_follows_at_once() -> None:
    parts = [plugins(), altered(catalog(uuid="a-1", status=500)), altered(report(uuid="a-1"), seq=3)]
    agent = list(talk(*parts))
    near = [dataclasses.replace(record) for record in agent]
    found = _joined(near, list(talk(stored(status=413), certname="puppet.example", after=1.05)))
    ((call,),) = [served.calls for served in found.runs]
    assert (call.cause, call.status) == (Kind.CATALOG, 413)


def test_of_several_that_are_compiled_nothing_says_whose_query_it_is() -> None:
    found = _joined(_agent(), _agent("b-1", OTHER, 0.3), _master(stored(), querying("nodes{}")))
    assert [(served.run.certname, _known(served.calls)) for served in found.runs] == [
        (NAME, [(f"replace facts of {NAME}", "name and time")])
    ]
    (query,) = found.others
    assert [run.certname for run in query.candidates] == [NAME, OTHER]


def test_a_run_that_is_not_recorded_is_not_guessed() -> None:
    found = _joined(_agent(), _master(stored("replace_catalog", transaction_uuid="other"), after=30))
    assert (found.runs, _known(found.others)) == ([], [(f"replace catalog of {NAME}", None)])
    assert _joined(_agent(), _master(stored("replace_catalog", transaction_uuid="other"))).runs == []
    # The name is that of a run that is over.
    assert _joined(_agent(), _master(stored(), after=60)).runs == []


def test_a_catalog_of_the_same_node_belongs_to_its_own_run() -> None:
    found = _joined(
        _agent(), _agent("a-2", after=40), _master(stored("replace_catalog", transaction_uuid="a-2"), after=42)
    )
    assert [(served.run.number, len(served.calls)) for served in found.runs] == [(2, 1)]

"""Every surface says the same of the nodes of a capture: which there are, their states, their causes, how many."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.store import Capture
from inspector.doctor import report as doctor
from inspector.fleet import conversion
from inspector.fleet.directory import TableDirectory
from inspector.fleet.overview import fields as fleet_fields
from inspector.fleet.overview import overview_of
from inspector.formats import json_output
from inspector.model import Exchange, OpenConnection, OpenRequest, Present
from inspector.report import copies, fields
from inspector.report.answers import answers_of
from inspector.rules import all_rules, rule_of
from inspector.runs.examples import (
    altered,
    ca,
    catalog,
    crl,
    csr,
    issued,
    node,
    not_issued,
    plugins,
    refused,
    talk,
    together,
    unanswered,
)
from inspector.summaries import index, indexer, reading
from inspector.summaries.judgement import NodeState
from inspector.summaries.source import Source
from tests.support.captures import keep, save
from tests.support.json_output import builtins
from tests.support.nodes import uncompiled, well
from tests.support.recorded import ABSENT, RECORDINGS, SAMPLES, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.model import Record
    from inspector.rules import Rule
    from inspector.summaries.judgement import Judgement
    from tests.conftest import Run

NAME, ADDRESS = "web1.example", "192.0.2.1"
DAY = 86_400.0


class Said:
    """What a surface says: of each node its state, its cause and the state's beginning; and the headline."""

    def __init__(self, states: Sequence[dict[str, Any]], headline: str) -> None:
        self.nodes = {each["certname"]: (each["state"], each["cause"], each["since"]) for each in states}
        self.headline = headline


def of_judgement(found: Judgement) -> Said:
    return Said(builtins(json_output.states(found)), found.headline)


def of_report(capture: Path) -> tuple[Said, dict[str, int]]:
    with copies.leaving(capture, opened=frozenset()) as copy:
        made = builtins(fields.fields(answers_of(copy), copy))
    headline = made["headline"]
    return Said(made["states"], headline[:1].lower() + headline[1:]), made["nodes"]


def of_fleet(captures: Sequence[Path], folder: Path, now: float) -> tuple[Said, dict[str, Any]]:
    directory = TableDirectory.create(folder)
    for capture in captures:
        conversion.convert(capture, directory, "here", now=now)
    made = fleet_fields(overview_of(directory))
    states = [node | {"state": node["now"]} for node in made["nodes"]]
    return Said(states, made["headline"]), made


def of_index(capture: Path, now: float) -> Said:
    """As the terminal inspector reads it."""
    place = index.place(capture)
    indexer.build(capture, place)
    with Capture.open(capture) as opened, Source(capture) as source:
        source.judge(opened.present(now), now)
        return of_judgement(source.judgement)


def agree(captures: Sequence[Path], folder: Path, now: float, *, timed: bool = False) -> dict[str, tuple[Any, ...]]:
    """Compare what all surfaces say; return it. Without ``timed``, those that read the clock are asked, too."""
    judged = doctor.of_captures(captures, now).judgement
    expected = of_judgement(judged)
    answers = {"check": of_judgement(reading.judged(reading.read_together(captures), now))}
    answers["fleet"], fleet = of_fleet(captures, folder / "tables", now)
    counted = Counter(str(node.state) for node in judged.nodes.values())
    if len(captures) == 1:
        answers["terminal"] = of_index(captures[0], now)
        if not timed:
            answers["report"], numbers = of_report(captures[0])
            assert numbers == {
                "failing": counted["failing"] + counted["waiting"], "with_errors": counted["errors"],
                "warnings": counted["warnings"], "well": counted["well"] + counted["silent"],
            }  # fmt: skip
    assert {name: each.nodes for name, each in answers.items()} == dict.fromkeys(answers, expected.nodes)
    assert fleet["standing"] == {str(state): counted[str(state)] for state in NodeState}
    assert {name: each.headline for name, each in answers.items() if name != "fleet"} == dict.fromkeys(
        (name for name in answers if name != "fleet"), expected.headline
    )
    assert expected.headline.startswith(answers["fleet"].headline)
    causes = Counter(cause for state, cause, _ in expected.nodes.values() if state not in ("well", "silent", "open"))
    assert {cause["rule"]: cause["nodes"] for cause in fleet["causes"]} == causes
    assert not [cause for cause in fleet["causes"] if cause["since"].startswith("1970")]
    return expected.nodes


def moment(*conversations: Sequence[Record]) -> float:
    return max(record.ended for records in conversations for record in records)


def examples(rule: Rule) -> list[Sequence[Record]]:
    return [*rule.bad(), *rule.good()]


WELL = frozenset({("well", None)})
"""How most good examples end: tables of that are compared in one test, that of the first rule."""


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_of_each_example_of_a_rule(tmp_path: Path, rule: Rule) -> None:
    """Of those that end alike one is asked for by all surfaces: tables are made for each."""
    asked = {WELL} if rule is not all_rules()[0] else set()
    reported = False
    for number, records in enumerate(filter(None, examples(rule))):
        folder = tmp_path / str(number)
        folder.mkdir()
        capture, now = save(folder / "c.sqlite", *records), moment(records)
        nodes = of_judgement(reading.judged(reading.read_together([capture]), now)).nodes
        assert of_judgement(doctor.of_captures([capture], now).judgement).nodes == nodes
        ends = frozenset((state, cause) for state, cause, _ in nodes.values())
        if ends not in asked:
            agree([capture], folder, now, timed=reported)
            asked.add(ends)
            reported = True


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_of_each_sample(tmp_path: Path, sample: Path) -> None:
    shutil.copyfile(sample, tmp_path / "c.sqlite")
    with Capture.open(tmp_path / "c.sqlite") as capture:
        ended = max(record.ended for record in capture.records())
    assert agree([tmp_path / "c.sqlite"], tmp_path, ended)


@pytest.mark.slow
@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
@pytest.mark.parametrize("recording", RECORDINGS, ids=name_of)
def test_of_each_recording(tmp_path: Path, recording: Path) -> None:
    records = records_of(recording)
    agree([save(tmp_path / "c.sqlite", *records)], tmp_path, moment(records))


# -- captures with several nodes and runs ----------------------------------------------------------------------


UNKNOWN = "something else"
"""Why there is no answer."""


def silent(name: str = NAME, address: str = ADDRESS, after: float = 0.0) -> Sequence[Record]:
    """A run whose requests are not answered, for a reason that no rule knows."""
    parts = (unanswered(part, UNKNOWN) for part in (plugins(), catalog()))
    return talk(*parts, certname=name, address=address, after=after)


def unnamed(after: float = 0.0, address: str = ADDRESS) -> Sequence[Record]:
    """An agent that refuses its master before it shows a name."""
    return talk(refused(), certificate=False, address=address, after=after, certname="")


def merged(*conversations: Sequence[Record]) -> list[Record]:
    return sorted(together(*conversations), key=lambda record: record.time)


WAITING = (ca(), crl(), csr(), not_issued())
SCENES: dict[str, tuple[tuple[Sequence[Record], ...], dict[str, tuple[str, str | None]]]] = {
    "a good run, then one without answers": ((well(1), silent(after=1800)), {NAME: ("failing", None)}),
    "a cause, then none is visible": ((uncompiled(1), silent(after=1800)), {NAME: ("failing", "S01")}),
    "a cause, a good run, then none is visible": (
        (uncompiled(1), well(1, 1800), silent(after=3600)),
        {NAME: ("failing", None)},
    ),
    "one waits, one is well": ((talk(*WAITING, certname="new.example"), well(1)),
                               {"new.example": ("waiting", None), NAME: ("well", None)}),
    "requests of a tool": (
        (talk(altered(plugins(), headers={"User-Agent": "curl/7.88.1"}), address="192.0.2.9"), well(1)),
        {NAME: ("well", None)},
    ),
    "likely a command": ((talk(ca(), crl(), csr(), issued(), certname="boot.example"), well(1)),
                         {NAME: ("well", None)}),
    "no name, then a name at that address": ((unnamed(), well(1, 1800)), {NAME: ("well", None)}),
    "never a name": ((unnamed(), well(2, 1800)), {ADDRESS: ("failing", "T08"), "web2.example": ("well", None)}),
    "the CA's CRL has ended, as another run shows": (
        (*rule_of("B10").bad()[:1], talk(unanswered(ca(), UNKNOWN), address="192.0.2.8", after=60)),
        {"192.0.2.8": ("failing", "B10")},
    ),
    "several days": (
        tuple(well(number, DAY * day) for number in (1, 2) for day in range(9) if number == 1 or day < 2),
        {NAME: ("well", None), "web2.example": ("silent", None)},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_of_captures_with_several_nodes_and_runs(tmp_path: Path, run: Run, scene: str) -> None:
    conversations, expected = SCENES[scene]
    records = merged(*conversations)
    capture = save(tmp_path / "c.sqlite", *records)
    found = agree([capture], tmp_path, moment(records))
    assert {name: each[:2] for name, each in found.items() if name in expected} == expected
    bad = any(state in ("failing", "errors", "waiting") for state, *_ in found.values())
    status, out, _ = run("doctor", capture)
    assert (status, out.partition("\n")[0].startswith(tuple(_lead(found)))) == (int(bad), True)


@pytest.mark.slow
def test_of_runs_that_are_under_way(tmp_path: Path) -> None:
    begun = talk(node(uuid="b-1"), plugins(), certname=NAME, address=ADDRESS, after=1800)
    first = talk(node(uuid="c-1"), plugins(), certname="new.example", address="192.0.2.9", after=1801)
    records = merged(well(1), begun, first)
    now = moment(records) + 20
    legs = [each[-1].agent for each in (begun, first) if isinstance(each[-1], Exchange)]
    requests = tuple(OpenRequest(leg.id, now - 15, "POST", "/puppet/v3/catalog/x") for leg in legs)
    connections = tuple(OpenConnection(leg.id, now - 20) for leg in legs)
    path = tmp_path / "c.sqlite"
    with Capture.create(path) as capture:
        keep(capture, *records)
        capture.set_present(Present("open", now, requests, connections))
        capture.flush()
        (tmp_path / "1").mkdir()
        found = agree([path], tmp_path / "1", now, timed=True)
        assert found == {NAME: ("well", None, found[NAME][2]), "new.example": ("open", None, None)}
    (tmp_path / "2").mkdir()  # nobody records any more
    found = agree([path], tmp_path / "2", now + DAY, timed=True)
    assert {name: state for name, (state, *_) in found.items()} == {NAME: "well", "new.example": "open"}


@pytest.mark.slow
def test_of_two_captures_of_one_node(tmp_path: Path) -> None:
    first, then = uncompiled(1), silent(after=1800)
    captures = [save(tmp_path / "a.sqlite", *first), save(tmp_path / "b.sqlite", *then)]
    found = agree(captures, tmp_path, moment(then))
    assert {name: each[:2] for name, each in found.items()} == {NAME: ("failing", "S01")}


def _lead(found: dict[str, tuple[Any, ...]]) -> Iterator[str]:
    states = Counter(state for state, *_ in found.values())
    worst = next(state for state in NodeState if states[str(state)])
    yield f"{states[str(worst)]} node"

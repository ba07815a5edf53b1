"""A reduced capture shows the finding, with the same verdict, in as little as possible, and tells nothing else."""

from __future__ import annotations

import dataclasses
import random
import re
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats import reduction
from inspector.formats.outgoing import ALL, Content
from inspector.formats.reduction import Effort, Ended, chosen
from inspector.model import Exchange
from inspector.protocol import bodies
from inspector.rules import all_rules
from inspector.runs.examples import catalog, node, plugins, report, talk, together
from inspector.runs.snapshot import RunState
from inspector.summaries import reading
from tests.support import places, planted
from tests.support.captures import recording, save
from tests.support.conversations import numbered
from tests.support.hostile import hostile_records
from tests.support.recorded import SAMPLES, VERSIONS, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.formats.reduction import Reduction
    from inspector.model import Record
    from inspector.rules import Rule

EVERY = [*SAMPLES, *VERSIONS, *sorted(places.SAMPLES.glob("upgrade/*.sqlite"))]


def reduced(
    capture: Path, target: Path, rule: str | None = None, opened: frozenset[Content] = frozenset(),
    effort: Effort | None = None,
) -> Reduction:  # fmt: skip
    found = reading.read(capture)
    return reduction.reduce(found, target, chosen(found, rule), opened, effort or Effort(3600))


def records_in(path: Path) -> list[Record]:
    with Capture.open(path) as capture:
        return list(capture.records())


def rules_in(path: Path) -> set[str]:
    found = reading.read(path)
    return {finding.rule for run in (*found.briefs, *found.apart.found) for finding in run.findings}


def check(made: Reduction, capture: Path, target: Path) -> None:
    assert made.before.same(made.after, texts=False)
    assert made.before.is_cause is made.after.is_cause
    assert {made.after.finding.rule} <= rules_in(target) <= rules_in(capture), "nothing that the capture does not show"
    if made.after.is_cause:
        causes = {run.cause for run in reading.read(target).briefs}
        assert made.after.finding.rule in causes, "read from the file, the verdict is the same"


# -- tries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("needed", [set(), {0}, {99}, {3, 4}, {0, 50, 99}, set(range(20, 40)), set(range(100))])
def test_what_is_not_needed_goes(needed: set[int]) -> None:
    effort = Effort(3600)
    assert {*effort.smallest(range(100), lambda left: needed <= {*left})} == needed
    assert effort.ended is Ended.SMALLEST


def test_few_tries_find_one_of_many() -> None:
    effort = Effort(3600)
    assert effort.smallest(range(100_000), lambda left: 77_777 in left) == [77_777]
    assert effort.tries < 60


def test_it_ends_with_what_it_has() -> None:
    now = iter(range(1000))
    effort = Effort(10, clock=lambda: next(now))
    left = effort.smallest(range(1000), lambda left: 7 in left and 700 in left)
    assert (7 in left, 700 in left, effort.ended) == (True, True, Ended.BUDGET)
    assert 2 < len(left) < 1000
    assert effort.smallest([1, 2], lambda _: True) == [1, 2], "no more tries"


def test_it_can_be_stopped() -> None:
    effort = Effort(3600)

    def show(left: Sequence[int]) -> bool:
        if effort.reached and effort.ended is Ended.SMALLEST:
            effort.stop()
        effort.check()
        return 7 in left

    left = effort.smallest(range(1000), show)
    assert (7 in left, effort.ended) == (True, Ended.INTERRUPTED)
    assert 1 < len(left) < 1000


# -- recorded captures --------------------------------------------------------------------------------------------


CASES = [(path, rule) for path in EVERY for rule in sorted(rules_in(path))]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "rule"), CASES, ids=[f"{name_of(path)}-{rule}" for path, rule in CASES])
def test_every_finding_of_the_samples(path: Path, rule: str, tmp_path: Path) -> None:
    target = tmp_path / "small.sqlite"
    made = reduced(path, target, rule)
    check(made, path, target)
    if made.whole.records > 3:  # of fewer, all bodies may be needed, and pseudonyms have other lengths than names
        assert made.left.records <= made.whole.records / 2
        assert made.left.bodies < made.whole.bodies / 3
    assert made.left.records <= made.whole.records
    assert names_in(path, target) == set()


def names_in(path: Path, target: Path) -> set[str]:
    """The names of hosts in a capture that another one has, too; those that pseudonyms have, too, say nothing."""
    name = re.compile(rb"[\w-]+(?:\.[\w-]+)*\.(?:example|test)(?![\w.])")
    known = re.compile(rb"(?:agent|master|host)\d+\.example")
    before = {*name.findall(planted.everything(records_of(path)))}
    return {one.decode() for one in name.findall(planted.everything(records_in(target)))
            if one in before and not known.fullmatch(one)}  # fmt: skip


# -- made ones ----------------------------------------------------------------------------------------------------


UNLIKE = {("D03", 3)}
"""Examples whose stand-ins are unlike them: that of a long title compresses well, and fits into a row of an index."""


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_what_each_rule_finds_is_still_found(rule: Rule, tmp_path: Path) -> None:
    for number, talked in enumerate(rule.bad() if callable(rule.bad) else rule.bad):
        source, target = tmp_path / f"{number}.sqlite", tmp_path / f"{number}-small.sqlite"
        save(source, *numbered(talked))
        if (rule.id, number) in UNLIKE:
            with pytest.raises(InspectorError, match="does not show"):
                reduced(source, target, rule.id)
            continue
        check(reduced(source, target, rule.id), source, target)


def resources(count: int) -> list[dict[str, object]]:
    return [{"type": "File", "title": f"/srv/{number}", "parameters": {"mode": "0644", "owner": "root"}}
            for number in range(count)]  # fmt: skip


def test_other_nodes_runs_resources_and_facts_go(tmp_path: Path) -> None:
    failing = talk(node(), plugins(), catalog(resources=resources(50), facts={f"fact{n}": n for n in range(50)}),
                   catalog(status=500, text="Evaluation Error: no role"), report(result="failed"))  # fmt: skip
    others = [talk(node(), plugins(), catalog(resources=resources(50)), report(), certname=f"n{n}.example", after=n)
              for n in range(5)]  # fmt: skip
    source, target = save(tmp_path / "a.sqlite", *together(failing, *others)), tmp_path / "b.sqlite"
    found = reading.read(source)
    shown = chosen(found)
    made = reduced(source, target)
    check(made, source, target)
    assert (made.before.finding.rule, made.before.is_cause) == (shown.finding.rule, True)
    assert made.whole.records == len(failing) + 4 * len(others)
    assert made.left.records <= 3
    assert made.left.bodies < made.whole.bodies / 20
    with Capture.open(target) as capture:
        assert capture.meta()["shared"]
        assert {leg.leg.id for leg in capture.connections()} == {
            leg.id for record in capture.records() for leg in record.legs
        }


def test_it_is_the_newest_failed_run_and_its_cause(tmp_path: Path) -> None:
    first = talk(node(), catalog(status=500, text="first"), report(result="failed"), certname="a.example")
    second = talk(node(), catalog(status=500, text="second"), certname="b.example", after=3600)
    good = talk(node(), plugins(), catalog(), report(), certname="c.example", after=7200)
    found = reading.read(save(tmp_path / "a.sqlite", *together(first, second, good)))
    shown = chosen(found)
    assert (shown.run.certname, shown.is_cause) == ("b.example", True)
    number = next(run.number for run in found.briefs if run.certname == "a.example")
    assert chosen(found, number=number).run.certname == "a.example"
    assert chosen(found, rule=shown.finding.rule).run.certname == "b.example"
    assert chosen(found, shown.finding.rule, number).run.certname == "a.example"


def test_a_run_that_is_under_way_is_not_reduced(tmp_path: Path) -> None:
    """Cut off, it shows what it does not show now: that no report came."""
    records = talk(node(), plugins(), catalog(resources=[{"type": "Notify", "title": "a"}] * 2))
    with recording(tmp_path / "a.sqlite", *records, legs=tuple(leg.id for record in records for leg in record.legs)):
        assert {(run.state, run.verdict) for run in reading.read(tmp_path / "a.sqlite").briefs} == {
            (RunState.OPEN, None)
        }
        with pytest.raises(InspectorError, match="by themselves") as raised:
            reduced(tmp_path / "a.sqlite", tmp_path / "b.sqlite", "P15")
    assert raised.value.hint == "Its run is under way, or was when the recording ended: take one that is over."
    assert not (tmp_path / "b.sqlite").exists()


def test_reduced_again_it_goes_on(tmp_path: Path) -> None:
    source = save(tmp_path / "a.sqlite", *together(
        talk(node(), catalog(status=500, text="no role")), talk(plugins(), catalog(), report(), certname="b.example"),
    ))  # fmt: skip
    whole = reduced(source, tmp_path / "b.sqlite", effort=(effort := Effort(0)))
    assert (effort.ended, effort.tries, whole.left.records) == (Ended.BUDGET, 0, whole.whole.records)
    check(whole, source, tmp_path / "b.sqlite")
    rest = reduced(tmp_path / "b.sqlite", tmp_path / "c.sqlite")
    assert rest.left.records < rest.whole.records == whole.left.records
    check(rest, source, tmp_path / "c.sqlite")


@pytest.mark.parametrize("opened", [frozenset[Content](), ALL], ids=["closed", "opened"])
def test_no_secret_is_left(opened: frozenset[Content], tmp_path: Path) -> None:
    """Neither of those that a record marks as one which is not left itself."""
    secret = planted.core(random.Random(7))  # noqa: S311 - nothing to protect
    marked = {"type": "Exec", "title": "x", "parameters": {"command": secret}, "sensitive_parameters": ["command"]}
    text = f"Evaluation Error: cannot use '{secret}'"
    source = save(tmp_path / "a.sqlite", *together(
        talk(node(), catalog(resources=[marked], facts={"db_password": secret, "note": secret}), report()),
        talk(node(), catalog(status=500, text=text), report(result="failed"), certname="b.example", after=9),
    ))  # fmt: skip
    made = reduced(source, tmp_path / "b.sqlite", opened=opened)
    left = records_in(tmp_path / "b.sqlite")
    assert made.left.records <= 2
    assert planted.found([secret], planted.everything(left)) == []
    assert b"b.example" not in planted.everything(left)
    assert planted.found([secret], made.after.finding.message.encode()) == []


@pytest.mark.slow
@pytest.mark.parametrize("place", planted.PLACES)
def test_no_planted_secret_is_left(place: str, tmp_path: Path) -> None:
    secret = planted.core(random.Random(place))  # noqa: S311 - nothing to protect
    records = planted.PLACES[place](f"password={secret}")
    failing = talk(node(), catalog(status=500, text="no role"), certname="b.example", after=9)
    source = save(tmp_path / "a.sqlite", *numbered([*records, *failing]))
    for rule in sorted(rules_in(source)):
        target = tmp_path / f"{rule}.sqlite"
        reduced(source, target, rule)
        assert planted.found([secret], planted.everything(records_in(target))) == [], rule


# -- hostile ones -------------------------------------------------------------------------------------------------


def with_body(record: Record, body: bytes) -> Record:
    assert isinstance(record, Exchange)
    assert record.response is not None
    return dataclasses.replace(record, response=dataclasses.replace(record.response, body=body))


HOSTILE: dict[str, Callable[[], bytes]] = {
    "deep": lambda: b"[" * bodies.MAX_DEPTH * 2 + b"]" * bodies.MAX_DEPTH * 2,
    "as deep as is read": lambda: b'{"message":"x","a":' + b"[" * 490 + b"]" * 490 + b"}",
    "large numbers": lambda: b'{"message":"x","values":{"a":' + b"9" * 5000 + b',"b":1e999}}',
    "names that are repeated": lambda: b'{"message":"x","values":{' + b",".join([b'"a":1'] * 2000) + b"}}",
    "half characters": lambda: b'{"message":"\\ud800","values":{"\\udfff":"\\ud800"}}',
    "many values": lambda: b'{"message":"x","values":[' + b",".join([b"[]"] * 20_000) + b"]}",
    "no JSON": lambda: b"\xff\x00" * 5000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies(name: str, tmp_path: Path) -> None:
    (first, failed) = talk(node(), catalog(status=500, text="no role"))
    source = save(tmp_path / "a.sqlite", first, with_body(failed, HOSTILE[name]()))
    assert rules_in(source)
    for rule in sorted(rules_in(source)):
        target = tmp_path / f"{rule}.sqlite"
        check(reduced(source, target, rule), source, target)


def test_hostile_texts(tmp_path: Path) -> None:
    source = save(tmp_path / "a.sqlite", *hostile_records())
    assert rules_in(source)
    for rule in rules_in(source):
        check(reduced(source, tmp_path / f"{rule}.sqlite", rule), source, tmp_path / f"{rule}.sqlite")


def test_what_is_too_large_for_the_memory_keeps_its_bodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = save(tmp_path / "a.sqlite", *talk(node(), catalog(status=500, text="no role"), report()))
    monkeypatch.setattr(reduction, "IN_MEMORY", 100)
    effort = Effort(3600)
    made = reduced(source, tmp_path / "b.sqlite", effort=effort)
    assert effort.ended is Ended.SIZE
    assert made.left.records < made.whole.records
    check(made, source, tmp_path / "b.sqlite")


def test_nothing_is_left_if_what_may_leave_does_not_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = save(tmp_path / "a.sqlite", *talk(node(), catalog(status=500, text="x")))
    monkeypatch.setattr(reduction, "_leaving", lambda *_: iter(()))
    with pytest.raises(InspectorError, match="does not show"):
        reduced(source, tmp_path / "b.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["a.sqlite"]

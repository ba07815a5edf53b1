"""The result of a rehearsal in lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.compare.comparison import Choices
from inspector.rehearsal import text
from inspector.rehearsal.client import Target
from inspector.rehearsal.fact_changes import FactChanges
from inspector.rehearsal.plan import Plan
from inspector.rehearsal.result import Logged, Result, Time


def lines(result: Result, **options: Any) -> list[str]:
    plan = Plan(Target("new.example", 8140, Path("ca.pem"), 1.0), None, Choices(), **options)  # type: ignore[arg-type]
    return [line.text for line in text.lines(plan, result)]


def test_versions() -> None:
    assert lines(Result())[0] == "new.example:8140; recorded: another master"
    result = Result(old_versions={"7.23.0", "8.1.0"}, new_versions={"8.10.0"})
    assert lines(result)[0] == "new.example:8140, version 8.10.0; recorded: version 7.23.0, 8.1.0"
    assert text.older(Result(old_versions={"8.9.0"}, new_versions={"7.0.0"}))
    assert not text.older(Result(old_versions={"8.9.0"}, new_versions={"8.10.0"}))
    assert "  it is older than the recorded master" in lines(Result(old_versions={"8.9"}, new_versions={"7.0"}))


def test_noise_and_facts_and_waiting() -> None:
    noise = {"File[/a]/content": ["a"], "Notify[\x1b]": ["a", "b"]}
    result = Result(noise=noise, noisy=["a", "b"], waited=7.0)
    found = lines(result, twice=True, facts=FactChanges(without_legacy=True))
    at = found.index("  noise: 3 differences of 2 nodes left out: two compiles of the same have them")
    assert found[at + 1 : at + 3] == ["    Notify[\\x1b]: a, b", "    File[/a]/content: a"]
    many = lines(Result(noise={f"File[/{n}]": ["a"] for n in range(20)}, noisy=["a"]), twice=True)
    assert "    ... 5 more (--full)" in many
    assert found[1].endswith("and with others: without legacy facts")
    assert "  it was too busy at times: waited 7.0 s" in found
    assert any("not compared: 1 Deferred value: v4" in line for line in lines(Result(deferred=1)))
    same = Result()
    same.groups.same.append("a")
    assert "  noise: two compiles of the same are equal" in lines(same, twice=True)
    assert not any("noise" in line for line in lines(Result(), twice=True))  # nothing was compiled twice


def test_what_was_not_checked() -> None:
    assert lines(Result())[1] == "  whether its certificate is revoked was not checked (--crl)"
    plan = Plan(Target("a", 1, Path("ca.pem"), 1.0, Path("crl.pem")), None, Choices())  # type: ignore[arg-type]
    assert not any("--crl" in line.text for line in text.lines(plan, Result()))


def test_noise_of_two_masters() -> None:
    old = Target("old.example", 8141, Path("ca.pem"), 1.0)
    found = lines(Result(unmeasured=["b\x1b"]), twice=True, old=old)
    assert found[2:4] == [
        "  noise: two compiles of the same by new.example:8140 or old.example:8141 are equal",
        "  noise of old.example:8141 not known: 1 node got no catalog: b\\x1b",
    ]


def test_many_messages_are_cut() -> None:
    result = Result()
    for number in range(20):
        result.logs._found["", str(number)] = Logged("warning", str(number), "", ["a"])
    assert lines(result)[-1] == "  ... 5 more (--full)"


def test_times() -> None:
    result = Result(times=[Time("slow\x1b", 1.0, 3.0), Time("fast", 1.0, 0.5)])
    found = lines(result)
    assert found[2] == "  compile time: 3 times the recorded one (median; 90 %: 3, 99 %: 3)"
    assert found[3] == "    slow\\x1b: 1.0 s -> 3.0 s  (3.0 times)"
    assert not any("fast" in line for line in found)
    assert found[4] == "    so few do not show whether the master was cold, as after a start: rehearse again"


def test_a_cold_master_is_called_so() -> None:
    result = Result(times=[Time(f"n{number}", 1.0, 8.0 if number < 2 else 1.0, float(number)) for number in range(4)])
    found = lines(result)
    assert found[2] == "  compile time: 1 times the recorded one (median; 90 %: 1, 99 %: 1)"
    assert found[3] == "    without the earlier half (8 times): the master was cold, as after a start"

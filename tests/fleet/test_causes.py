"""Why nodes are not well: the fix that stands in a report, made for what the nodes have in common."""

from __future__ import annotations

from typing import Any

from inspector.fleet.causes import Troubled, causes_of
from inspector.fleet.names import CaptureNames
from inspector.rules import rule_of
from inspector.rules.fixes import plain
from inspector.rules.puppet_commands import FixContext
from inspector.summaries.judgement import NodeState

NAMES = CaptureNames({"01": "a.sqlite"})


def node(name: str, cause: str | None = "B18", reason: str = "a reason", **given: Any) -> Troubled:
    about = {"agent": "8.10.0", "master": "7.9.5", "ca_service": None, "host": "puppet"}
    about |= {key: given.pop(key) for key in list(given) if key in about}
    values: dict[str, Any] = {"state": NodeState.FAILING, "outcome": "failed", "since": 5.0, "last": 9.0} | given
    context = FixContext.of_versions(name, **about)  # type: ignore[arg-type]
    return Troubled(name, cause=cause, reason=reason, run="01:7", context=context, **values)


def fixes(*nodes: Troubled) -> list[str]:
    return [plain(cause.steps) for cause in causes_of(nodes, {}, NAMES)]


def test_the_fix_of_one_node_has_its_name() -> None:
    (cause,) = causes_of([node("web1.example")], {"B18": (3.0, "other.example")}, NAMES)
    assert "`puppetserver ca clean --certname web1.example`" in plain(cause.steps)
    assert (cause.since, cause.first, cause.run) == (3.0, "other.example", "a.sqlite:7")
    assert cause.meaning == rule_of("B18").explanation


def test_the_fix_of_several_has_what_they_have_in_common() -> None:
    (fix,) = fixes(node("a"), node("b"))
    assert "`puppetserver ca clean --certname <certname>`" in fix
    assert "puppet cert" not in fix
    (fix,) = fixes(node("a"), node("b", master="5.3.0", agent="5.5.0"))
    assert "`puppetserver ca clean --certname <certname>` (up to version 5: `puppet cert clean <certname>`)" in fix
    (fix,) = fixes(node("a", ca_service="openvox-ca"), node("b", ca_service="openvox-ca"))
    assert "`openvox-ca-ctl clean --certname <certname>`" in fix


def test_a_known_message_of_its_rule_has_its_own_fix_and_meaning() -> None:
    known = "no catalog: Could not find class ::profile::app for a.example on node a.example"
    general, special = (causes_of([node("a", "S01", reason)], {}, NAMES)[0] for reason in ("no catalog", known))
    assert special.steps != general.steps
    assert special.meaning != general.meaning == rule_of("S01").explanation
    elsewhere, usual = (causes_of([node("a", "B18", reason)], {}, NAMES)[0] for reason in (known, "a reason"))
    assert (elsewhere.steps, elsewhere.meaning) == (usual.steps, usual.meaning), "it is not about that rule"


def test_no_command_is_made_of_a_name_that_a_shell_would_read() -> None:
    (fix,) = fixes(node("$(reboot)", host="`reboot`"))
    assert "reboot" not in fix


def test_a_cause_that_is_not_visible_says_where_to_look() -> None:
    (cause,) = causes_of([node("a", None, outcome="unfinished")], {}, NAMES)
    assert (cause.rule, cause.title) == (None, "the cause is not visible in the traffic")
    assert "check the agent's log" in plain(cause.steps).lower()


def test_a_rule_of_another_site_has_no_fix_here() -> None:
    (cause,) = causes_of([node("a", "U77")], {}, NAMES)
    assert (cause.title, cause.steps, cause.meaning) == ("U77", (), "")


def test_the_reason_and_the_run_are_those_of_the_latest_run_with_it() -> None:
    (cause,) = causes_of([node("a", reason="old", last=1.0), node("b", reason="new", last=2.0)], {}, NAMES)
    assert cause.reason == "new"

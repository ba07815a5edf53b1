"""``explain`` with messages as users paste them: text, JSON, and what is unknown."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.explain import printed_by
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules
from tests.support.json_output import valid
from tests.support.messages import MESSAGES

if TYPE_CHECKING:
    from tests.conftest import Run

PASTED = (
    "\x1b[1;31mError: Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation "
    "Error: Error while evaluating a Function Call, Could not find cl\nass ::a::b for web1.example (file: "
    "/etc/site.pp, line: 1, column: 1) on node web1.example\x1b[0m\nWarning: Not using cache on failed catalog"
)


def test_a_pasted_message_is_explained_line_by_line(run: Run) -> None:
    status, out, _ = run("explain", PASTED)
    assert status == 0
    labels = [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")]
    assert labels == ["message", "printed by", "meaning", "causes", "check", "fix", "visible", "rules"]
    assert "1. The module is not deployed" in out
    assert "r10k deploy environment" in out
    assert "\x1b" not in out
    assert run("explain", "The", "CRL", "issued", "by", "'CN=x'", "has", "expired")[0] == 0


def test_the_name_in_the_message_is_in_the_commands(run: Run) -> None:
    pasted = "Server Error: Function lookup() did not find a value for the name 'a' on node web1.example"
    assert "puppet lookup <key> --node web1.example" in run("explain", pasted)[1]
    assert "--node <certname>" in run("explain", pasted.replace("web1.example", "$(reboot)"))[1]


@pytest.mark.parametrize(
    ("what", "labels"),
    [
        ("b23", ["rule", "severity", "meaning", "checked", "agents", "thresholds", "fix", "source"]),
        ("dh key too small", ["message", "meaning", "causes", "check", "fix", "visible", "rules"]),
        ("GET catalog", ["endpoint", "purpose", "phase", "requests", "indirector", "sent by", "allowed", "source"]),
    ],
)
def test_an_explanation_as_text_has_plain_labels(run: Run, what: str, labels: list[str]) -> None:
    _, out, _ = run("explain", what)
    assert [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")] == labels


def test_every_explanation_as_json_fits_the_schema(run: Run) -> None:
    rules, endpoints = (rule.id for rule in all_rules()), dict.fromkeys(endpoint.name for endpoint in ENDPOINTS)
    for what in (*rules, *endpoints, *(f"Error: {known.texts[0]}" for known in MESSAGES)):
        status, out, _ = run("explain", what, "--json")
        assert (what, status) == (what, 0)
        assert all(valid("explain", out).values()), what


def test_without_a_topic_it_has_an_example(run: Run) -> None:
    status, out, err = run("explain")
    assert (status, out) == (2, "")
    sentence, hint = err.splitlines()
    assert sentence == "puppet-inspector: There is nothing to explain."
    assert "puppet-inspector explain 'Error: " in hint


@pytest.mark.parametrize("rule", ["B99", "s1234"])
def test_a_rule_that_is_none_is_an_error_with_the_list_of_all(run: Run, rule: str) -> None:
    assert run("explain", rule) == (
        2, "", f"puppet-inspector: There is no rule {rule.upper()}.\n  `puppet-inspector explain rules` lists them.\n"
    )  # fmt: skip


def test_an_unknown_message_is_an_error_with_the_nearest_ones(run: Run) -> None:
    status, out, err = run("explain", "the resource could not be aliased twice: declaration")
    assert (status, out) == (2, "")
    first, second, *commands = err.splitlines()
    assert first == "puppet-inspector: No known message matches."
    assert second.strip() == "Paste the whole line, as it was printed. The nearest ones:"
    for command in commands:
        assert run(*shlex.split(command)[1:])[0] == 0
    assert len(commands) == 3


@pytest.mark.parametrize(
    "pasted", ["the flux capacitor overheated", " ", "\x1b[31m \x1b[0m \n", "error: error: error:"]
)
def test_what_shares_no_words_with_any_message_is_an_error_with_a_hint(run: Run, pasted: str) -> None:
    status, out, err = run("explain", pasted)
    assert (status, out) == (2, "")
    assert "`explain S01` for a rule" in err


def test_who_prints_a_message_comes_before_its_meaning(run: Run) -> None:
    _, out, _ = run("explain", "Could not retrieve catalog from remote server: Error 500 on SERVER: x", "--json")
    explanation = valid("explain", out)
    assert list(explanation)[:3] == ["message", "printed by", "meaning"]
    assert "the agent's configurer (lib/puppet/configurer.rb)" in explanation["printed by"]


def test_origins_are_read_for_messages_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> bytes:
        raise AssertionError("nobody asked for them")

    printed_by._origins.cache_clear()
    monkeypatch.setattr(installation, "origins", read)
    assert run("explain", "B23")[0] == 0
    assert run("explain", "GET", "catalog")[0] == 0


UNEXPLAINED = "Debug: The total number of facts registered is 250"


def test_a_message_without_an_explanation_has_its_origin(run: Run) -> None:
    status, out, _ = run("explain", UNEXPLAINED, "--json")
    assert status == 0
    assert valid("explain", out) == {
        "message": UNEXPLAINED,
        "printed by": "the agent's configurer (lib/puppet/configurer.rb), as a debug message, when it has gathered its "
        "facts; nothing between agent and master.",
    }
    _, out, _ = run("explain", f"\x1b[31m{UNEXPLAINED}\x1b[0m")
    labels = [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")]
    assert labels == ["message", "printed by"]


@pytest.mark.parametrize("what", ["docs/protocol.md#crls", "protocol.md#crls", "#crls"])
def test_a_cited_section_is_printed(run: Run, what: str) -> None:
    status, out, _ = run("explain", what)
    assert status == 0
    assert out.startswith("CRLs\n\nA CRL bundle")
    assert valid("explain", run("explain", what, "--json")[1])["anchor"] == "crls"


def test_an_unknown_section_is_one_error_with_a_hint(run: Run) -> None:
    status, out, err = run("explain", "#crlls")
    assert (status, out) == (2, "")
    assert err == "puppet-inspector: docs/protocol.md has no section 'crlls'.\n  Did you mean '#crls'?\n"


def test_all_rules_and_endpoints_are_listed(run: Run) -> None:
    status, out, _ = run("explain", "rules")
    assert (status, [line.split()[0] for line in out.splitlines()[1:]]) == (0, [rule.id for rule in all_rules()])
    listed = valid("explain", run("explain", "rules", "--json")[1])
    assert listed["rules"][0] == {
        "rule": "B01", "severity": "notice", "title": "CA fetched over an unverified connection"
    }  # fmt: skip
    names = [row["endpoint"] for row in valid("explain", run("explain", "endpoints", "--json")[1])["endpoints"]]
    assert names == [row.name for row in ENDPOINTS]

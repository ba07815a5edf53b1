"""The generated pages are current, and ``explain`` answers whatever it is asked."""

from __future__ import annotations

import ast
import inspect
import sys
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.verdicts import NO_SERVER
from inspector.errors import InspectorError
from inspector.explain import reference
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules
from tests.support import places

if TYPE_CHECKING:
    from inspector.rules import Rule

DOCS = places.DOCS


def test_the_pages_are_current() -> None:
    for name, made in reference.PAGES.items():
        assert (DOCS / name).read_text(encoding="utf-8") == made(), f"{name}: run `make docs`"


def test_every_rule_is_on_the_page_with_its_severity() -> None:
    text = (DOCS / "rules.md").read_text(encoding="utf-8")
    for rule in all_rules():
        below = text.partition(f"\n## {rule.id} {rule.title}\n\n")[2]
        assert below.startswith(f"*{rule.severity}")


def test_every_endpoint_is_explained() -> None:
    for name in {endpoint.name for endpoint in ENDPOINTS}:
        output = reference.explain(name)
        assert output["endpoint"] == name
        assert all(output.values()), name
        # What a person reads has no regular expression left in it.
        assert not any(mark in output["requests"] for mark in ("(?", "[^", ".*", ".+", "\\")), name


def test_every_rule_is_explained() -> None:
    for rule in all_rules():
        assert reference.explain(rule.id.lower())["rule"].startswith(rule.id)


def test_a_path_is_explained() -> None:
    assert reference.explain("/puppet/v3/file_metadata/modules/m/f?environment=x")["endpoint"] == "file_metadata"
    assert reference.explain("production/certificate/ca")["endpoint"] == "ca"


@pytest.mark.parametrize(
    ("what", "near"),
    [("file_metdata", "file_metadata"), ("B99", "explain rules"), ("nonsense", "`explain catalog` for an endpoint")],
)
def test_what_is_unknown_is_reported_with_the_nearest(what: str, near: str) -> None:
    with pytest.raises(InspectorError) as error:
        reference.explain(what)
    assert near in error.value.hint
    assert len(error.value.hint) < 120


def test_a_message_that_nobody_knows() -> None:
    with pytest.raises(InspectorError) as error:
        reference.explain("the flux capacitor overheated")
    assert error.value.message == "No known message matches."
    assert "`explain S01` for a rule" in error.value.hint


def test_a_request_is_explained_by_its_method() -> None:
    explanations = [
        reference.explain(f"{method} /puppet-ca/v1/certificate_request/web1") for method in ("PUT", "GET", "DELETE")
    ]
    names = [explanation["endpoint"] for explanation in explanations]
    assert names == ["certificate_request", "certificate_request_lookup", "certificate_request_delete"]
    assert reference.explain("POST catalog")["endpoint"] == "catalog"
    with pytest.raises(InspectorError, match="crl does not accept DELETE") as error:
        reference.explain("DELETE /puppet-ca/v1/certificate_revocation_list/ca")
    assert error.value.hint == "Its methods: GET, PUT."


# -- severities -------------------------------------------------------------------------------------------


def code_of(rule: Rule) -> list[ast.AST]:
    """What a rule's function contains, and what the functions of its module do that it calls."""
    tree = ast.parse(inspect.getsource(sys.modules[rule.function.__module__]))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    reached, ahead = set(), {rule.function.__name__}
    while ahead:
        reached |= ahead
        nodes = [node for name in ahead for line in functions[name].body for node in ast.walk(line)]
        ahead = {node.id for node in nodes if isinstance(node, ast.Name)} & functions.keys() - reached
    return [node for name in reached for line in functions[name].body for node in ast.walk(line)]


def names_a_severity(rule: Rule) -> bool:
    calls = [node for node in code_of(rule) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Statement"]
    return any(key.arg == "severity" for call in calls for key in call.keywords)


def severities(rule: Rule) -> set[str]:
    return {
        node.attr.lower()
        for node in code_of(rule)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Severity"
    }


@pytest.mark.slow
def test_a_rule_with_other_severities_says_when() -> None:
    page = reference.rules_page()
    for rule in all_rules():
        assert bool(rule.otherwise) is (names_a_severity(rule) or rule.id in NO_SERVER), rule.id
        if rule.otherwise:
            named = [part.partition(" ")[0] for part in rule.otherwise.split("; ")]
            assert len(set(named)) == len(named), rule.id
            of_the_verdict = {"warning"} if rule.id in NO_SERVER else set()
            assert set(named) == severities(rule) - {str(rule.severity)} | of_the_verdict, rule.id
            assert reference.explain(rule.id)["severity"].startswith(f"{rule.severity}; {rule.otherwise}")
            assert f"*{rule.severity} ({rule.otherwise}), " in page, rule.id


def test_sources_are_links_in_the_pages_and_paths_elsewhere() -> None:
    section, file = "protocol.md#ca-download", "puppet 7.23.0 lib/puppet/ssl/state_machine.rb"
    assert reference.explain("B05")["source"] == f"docs/{section}; {file}"
    assert f"**Source:** [{section}]({section}); `{file}`" in reference.rules_page()
    assert reference.explain("ca")["source"] == "docs/protocol.md#endpoint-ca"
    assert "| [protocol.md#endpoint-ca](protocol.md#endpoint-ca) |" in reference.endpoints_page()


def test_the_port_of_a_message_is_in_its_check_and_not_taken_for_the_right_one() -> None:
    output = reference.explain(
        'Failed to open TCP connection to p.example:8141 (Connection refused - connect(2) for "p.example" port 8141)'
    )
    assert "`ss -ltn sport = :8141`" in output["check"]
    assert "config set serverport <right port> " in output["remedy"]

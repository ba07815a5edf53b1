"""Signs in single records, and what is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.explain.readiness import signs
from inspector.explain.readiness.changes import CHANGES
from inspector.model import Handshake, Leg
from inspector.runs.examples import altered, asked, catalog, plugins, renewal, report, talk
from tests.support import upgrades
from tests.support.upgrades import DEFERRED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.explain.readiness.signs import Sign
    from inspector.model import Record


def texts(sign: Sign, records: Sequence[Record]) -> list[str]:
    analyzer = Analyzer(rules=())
    return [text for record in records if (text := sign(analyzer.feed(record)))]


def test_what_a_record_shows() -> None:
    rows: list[tuple[Sign, str, str]] = [
        (signs.legacy_facts, "legacy-facts", "3 legacy facts, including ipaddress_eth0, operatingsystem, osfamily"),
        (signs.pson, "pson", "catalog is answered in PSON"),
        (signs.ca_tool, "ca-tool", "GET certificate_statuses"),
        (signs.deferred, "deferred", "Deferred values in File[/a] (content)"),
        (signs.strict_warning, "strict", "Unknown variable: 'osfamily'."),
        (signs.unchanged_resources, "reports-shorter", "1 of 1 resources of a report are unchanged"),
        (signs.stored_report, "report-store", "the master stores its reports"),
        (signs.zones, "zone", "Zone[web]"),
        (signs.checksum_content, "checksum-content", "a checksum is the content of File[/a]"),
        (signs.filebucket_server, "filebucket-server", "a server is named by Filebucket[main] (bucket.example)"),
        (signs.other_name, "catalog-name", "the catalog for node1.example is named other.example"),
    ]
    for sign, key, text in rows:
        assert texts(sign, upgrades.showing(key)) == [text], sign


def test_every_request_of_an_old_agent_has_an_old_url() -> None:
    found = texts(signs.legacy_url, upgrades.showing("legacy-url"))
    assert found[-1] == "PUT report below /production/"
    assert len(found) == 3


def test_pson_in_both_directions() -> None:
    sent = altered(report(), headers={"Content-Type": "text/pson"})
    assert texts(signs.pson, talk(catalog(form={"facts_format": "pson"}), sent)) == [
        "the facts are sent as PSON", "report is sent as PSON",
    ]  # fmt: skip


def test_a_renewal_that_was_answered_and_one_that_was_not() -> None:
    assert texts(signs.renewed, talk(renewal(), renewal(status=404))) == ["the CA renews certificates"]


def test_contents_and_filebuckets_that_are_as_they_were() -> None:
    rows: list[tuple[Sign, str, dict[str, object]]] = [
        (signs.checksum_content, "File", {"content": "{md5}no digest"}),
        (signs.checksum_content, "File", {"content": f"{{md5}}{'0' * 32}", "source": "puppet:///modules/a/b"}),
        (signs.checksum_content, "File", {"content": DEFERRED}),
        (signs.filebucket_server, "Filebucket", {"path": False}),
        (signs.filebucket_server, "Filebucket", {"server": "a.example", "path": "/bucket"}),
    ]
    for sign, kind, parameters in rows:
        resource = {"type": kind, "title": "a", "parameters": parameters}
        assert texts(sign, talk(catalog(resources=[resource]))) == [], parameters


def test_a_few_facts_of_such_names_may_be_a_sites_own() -> None:
    assert texts(signs.legacy_facts, talk(catalog(facts={"uuid": "1", "id": "2"}))) == []


def test_other_lines_of_a_log_are_none() -> None:
    rows: list[tuple[str, str]] = [("warning", "This is deprecated"), ("err", "Unknown variable: 'a'.")]
    for level, message in rows:
        assert texts(signs.strict_warning, talk(report(logs=[{"level": level, "message": message}]))) == [], level


def test_resources_with_something_to_report_are_no_sign() -> None:
    rows: list[str] = ["changed", "failed", "skipped", "out_of_sync"]
    for status in rows:
        assert texts(signs.unchanged_resources, talk(report(resource_statuses={"File[/a]": {status: True}}))) == []


def test_the_name_of_the_server_is_in_the_handshake_or_in_a_header() -> None:
    named = altered(catalog(), leg={"sni": "puppet"})
    by_header = altered(catalog(), leg={"sni": None}, headers={"Host": "puppet:8140"})
    other = altered(catalog(), leg={"sni": "puppet.example"}, headers={"Host": "puppet"})
    assert len(texts(signs.default_server, talk(named, by_header, other))) == 2
    refused = Handshake(Leg("1", "agent", sni="puppet"), 1.0, "unknown ca", seq=1)
    assert texts(signs.default_server, [refused]) == ["connects to the name puppet"]


@pytest.mark.parametrize("sign", [change.sign for change in CHANGES if change.sign], ids=lambda sign: sign.__name__)
def test_a_record_of_another_kind_shows_nothing(sign: Sign) -> None:
    records = [
        *talk(plugins(), asked("/status/v1/simple", b"running", run=False)),
        Handshake(Leg("9", "agent"), 2.0, ""),
    ]
    assert texts(sign, records) == []

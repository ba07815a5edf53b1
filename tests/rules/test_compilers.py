"""What two compilers have in common, and what not: only a difference that lasts is one."""

from __future__ import annotations

import dataclasses

import pytest

from inspector.model import Finding, Severity
from inspector.runs.examples import (
    ExamplePart,
    answered_by,
    answering_chain,
    carried,
    catalog,
    listing,
    made,
    plugins,
    refused,
    report,
    stored,
    talk,
    together,
)  # fmt: skip
from tests.support.apart import off
from tests.support.conversations import runs_of


def by_master(alert: str, name: str = "c1.example") -> ExamplePart:
    leg = {"side": "master", "own_chain": carried(made()), "peer_chain": answering_chain(name)}
    return refused(alert, by="master", leg=leg)


def at(place: str, alert: str = "certificate_revoked") -> ExamplePart:
    return refused(alert, by="proxy", certificate=True, leg={"place": place})


def found(rule: str, *parts: ExamplePart) -> list[Finding]:
    return [finding for run in runs_of(talk(*parts)) for finding in run.findings if finding.rule == rule]


RUN = answered_by("c2.example", plugins(), catalog(), report())


def test_a_compiler_that_accepts_what_another_refuses_has_an_older_crl() -> None:
    (finding,) = found("S34", by_master("certificate_revoked"), *RUN)
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "c2.example accepts the certificate of node1.example, which c1.example refuses (certificate_revoked): "
        "the CRL of the first one is older"
    )
    (finding,) = found("S34", at("c1:8140 on c1"), *RUN)
    assert "which the proxy at c1:8140 on c1 refuses" in finding.message


def test_a_compiler_that_does_not_know_the_ca_is_wrong() -> None:
    (finding,) = found("S34", *RUN[:2], by_master("unknown_ca"), RUN[2])
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith("the other has other CA certificates")


@pytest.mark.parametrize(
    "parts",
    [
        [*RUN[:2], by_master("certificate_revoked")],  # revoked while it ran
        [*RUN[:2], by_master("certificate_revoked", "c2.example"), RUN[2]],  # by itself
        [*RUN[:2], refused("certificate_revoked", by="proxy", certificate=True), RUN[2]],  # by the only proxy
        [*RUN[:2], by_master("handshake_failure"), RUN[2]],  # for another reason
    ],
)
def test_no_other_compiler_is_needed_to_explain_that(parts: list[ExamplePart]) -> None:
    assert found("S34", *parts) == []


def test_catalogs_of_two_versions_at_one_time_are_of_two_codes() -> None:
    def versions(one: object, other: object, after: float = 20) -> list[str]:
        records = together(
            talk(*answered_by("c1.example", catalog(version=one), report())),
            talk(*answered_by("c2.example", catalog(version=other, uuid="b"), report(uuid="b")), after=after,
                 certname="node2.example", address="192.0.2.8"),
        )  # fmt: skip
        return [finding.message for run in runs_of(records) for finding in run.findings if finding.rule == "S33"]

    assert versions("5f2e", "77ab") == [
        "c2.example makes catalogs of version 77ab, c1.example of 5f2e, within a minute"
    ]
    assert versions("5f2e", "5f2e") == []
    assert versions("5f2e", "77ab", after=600) == []  # deployed meanwhile
    assert versions(1795943541, "1795943601") == []  # when each read its code


def test_the_files_that_differ_are_named() -> None:
    one, other = {"a.rb": b"1", "b.rb": b"2"}, {"a.rb": b"1", "b.rb": b"3", "c.rb": b"4"}
    records = together(
        talk(*answered_by("c1.example", listing("plugins", one), report())),
        talk(*answered_by("c2.example", listing("plugins", other), report()), after=20,
             certname="node2.example", address="192.0.2.8"),
    )  # fmt: skip
    messages = [finding.message for run in runs_of(records) for finding in run.findings if finding.rule == "S33"]
    assert messages == ["c2.example and c1.example list different plugins within a minute: b.rb, c.rb"]


@pytest.mark.parametrize(
    ("status", "seconds", "suffix"),
    [(503, 0.05, "; the master's request to PuppetDB is record 2, answered 503"), (200, 0.05, ""), (503, -9.0, "")],
)
def test_a_catalog_that_puppetdb_did_not_serve_names_what_was_recorded_there(
    status: int, seconds: float, suffix: str
) -> None:
    """Of a place before PuppetDB; what failed before the agent asked is of something else."""
    first, failed = talk(plugins(), catalog(status=500, text="Failed to execute '/pdb/cmd/v1' at PuppetDB"))
    (asked,) = talk(stored(status=status), certname="puppet.example")
    there = off(asked, failed.time + seconds - asked.time)
    records = [dataclasses.replace(record, seq=seq) for seq, record in enumerate((first, there, failed), 1)]
    (finding,) = [found for run in runs_of(records) for found in run.findings if found.rule == "S28"]
    assert finding.message.endswith(f"at PuppetDB{suffix}")
    assert finding.seqs == (3,)

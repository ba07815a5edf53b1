"""The boxes of an agent's trust and identity, and the link at which each fault breaks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.clocks import DAY
from inspector.explain.bootstrap import Bootstraps, Condition
from inspector.explain.trust_chain import Part, TrustChain, chain_of
from inspector.runs.examples import (
    NAME,
    bundle,
    ca,
    carried,
    catalog,
    crl,
    csr,
    foreign_ca,
    issued,
    made,
    not_issued,
    refused,
    report,
    talk,
)
from tests.support.hostile import hostile_records
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.model import Record
    from inspector.runs.examples import ExamplePart

SOUND, BROKEN, WAITING, UNKNOWN = Condition


def chains(records: Iterable[Record], after: float = 0.0) -> dict[str, TrustChain]:
    analyzer, bootstraps, last = Analyzer(), Bootstraps(), 0.0
    for record in records:
        bootstraps.add(analyzer.feed(record))
        last = record.ended
    analyzer.finish()
    return {name: chain_of(bootstraps.of(name, last + after), last + after) for name in bootstraps.names()}


def chain(*parts: ExamplePart, after: float = 0.0, version: str = "7.23.0") -> TrustChain:
    (found,) = chains(talk(*parts, version=version), after).values()
    return found


def test_a_healthy_bootstrap_holds_in_all_links() -> None:
    found = chain(ca(), crl(), csr(), issued(), catalog(), report())
    assert {link.condition for link in found.links} == {SOUND}
    assert {box.condition for box in found.boxes} == {SOUND}
    assert [box.part for box in found.boxes] == list(Part)
    assert found.box(Part.CERTIFICATE).lines[0] == f"CN={NAME}"
    assert "called puppet.example" in found.box(Part.MASTER).lines
    for part, issuer in ((Part.CA, "Sample Root CA"), (Part.MASTER, "Sample CA"), (Part.CERTIFICATE, "Sample CA")):
        assert found.box(part).lines[-1] == f"issued by CN={issuer}", part
    assert found.box(Part.REQUEST).seqs == (3,)
    assert found.broken == []


def test_the_request_that_became_the_certificate_was_accepted() -> None:
    again = csr(status=400, text="already has a signed certificate")
    found = chain(ca(), crl(), csr(), not_issued(), again, issued(), catalog(), report())
    assert found.box(Part.REQUEST).lines[1] == "answered 200"
    assert found.link(Part.REQUEST, Part.CERTIFICATE).condition is SOUND
    assert chain(ca(), crl(), again, issued(key="old")).box(Part.REQUEST).lines[1].startswith("answered 400")


def test_each_fault_breaks_at_its_link() -> None:
    rows: list[tuple[tuple[ExamplePart, ...], Part, Part, str]] = [
        ((ca(), crl(expired=True)), Part.CRL, Part.CA, "expired"),
        ((ca(), crl(complete=False)), Part.CRL, Part.CA, "missing"),
        ((ca(), crl(starts=DAY, ends=2 * DAY)), Part.CRL, Part.CA, "not yet valid"),
        ((bundle(foreign_ca()), refused("unknown_ca")), Part.CA, Part.MASTER, "another CA"),
        ((ca(), crl(), refused("bad_certificate", leg={"sni": "puppet.wrong"})), Part.CA, Part.MASTER, "another name"),
        ((ca(), crl(), csr(), issued(key="another")), Part.REQUEST, Part.CERTIFICATE, "another key"),
        ((catalog(), report(), csr(key="another"), not_issued()), Part.REQUEST, Part.CERTIFICATE, "another key"),
        (
            (refused("certificate_revoked", by="proxy", leg={"peer_chain": carried(made())}),),
            Part.CA, Part.CERTIFICATE, "revoked",
        ),
        ((refused("certificate_expired"),), Part.CA, Part.MASTER, "expired"),
    ]  # fmt: skip
    for parts, source, target, breaks in rows:
        found = chain(*parts)
        (link,) = found.broken
        assert (link.source, link.target, link.breaks) == (source, target, breaks), parts
        assert link.why, parts
        assert found.link(source, target) is link, parts


def test_what_does_not_fit_is_broken_and_what_made_it_is_not() -> None:
    found = chain(ca(), crl(), csr(), issued(key="another"))
    conditions = {box.part: box.condition for box in found.boxes}
    assert conditions[Part.CERTIFICATE] is BROKEN
    assert conditions[Part.KEY] is conditions[Part.REQUEST] is SOUND
    found = chain(ca(), crl(expired=True))
    assert (found.box(Part.CRL).condition, found.box(Part.CA).condition) == (BROKEN, SOUND)


def test_a_request_that_waits_is_not_broken() -> None:
    found = chain(ca(), crl(), csr(), not_issued())
    assert found.link(Part.REQUEST, Part.CERTIFICATE).condition is WAITING
    assert found.box(Part.CERTIFICATE).condition is WAITING
    assert found.broken == []


def test_a_certificate_that_expires_breaks_at_that_time() -> None:
    parts = (ca(), crl(), csr(), issued(made=made(ends=30 * DAY)), catalog(), report())
    assert chain(*parts).broken == []
    late = chain(*parts, after=31 * DAY)
    assert late.link(Part.CA, Part.CERTIFICATE).condition in (SOUND, BROKEN)
    assert "expired" in {link.breaks for link in chain(*parts, after=20 * 365 * DAY).broken}


def test_what_is_not_in_the_capture_is_unknown_unless_a_run_shows_that_it_holds() -> None:
    found = chain(csr(), not_issued())
    assert found.link(Part.CA, Part.MASTER).condition is UNKNOWN
    assert found.box(Part.CA).condition is UNKNOWN
    found = chain(catalog(), report())
    assert found.link(Part.CA, Part.MASTER).condition is SOUND
    assert found.link(Part.CA, Part.CERTIFICATE).condition is SOUND
    assert found.link(Part.CRL, Part.CA).condition is UNKNOWN


def test_it_is_made_of_everything_that_was_recorded() -> None:
    for path in SAMPLES:
        found = chains(records_of(path))
        assert found
        for each in found.values():
            assert len(each.boxes) == len(Part)
            assert all(line for box in each.boxes for line in box.lines)
    for each in chains(hostile_records()).values():
        assert all(len(line) < 500 for box in each.boxes for line in box.lines)
        assert all(len(link.why) < 2000 for link in each.links)

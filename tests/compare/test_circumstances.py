"""What surrounded two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.compare import circumstances
from inspector.compare.differences import Differences, Section
from inspector.compare.masks import Masks
from inspector.runs.examples import altered, carried, catalog, made, report, talk
from tests.support.compared import Brief, brief, file, gathered

if TYPE_CHECKING:
    from inspector.compare.documents import RunDocuments


def compared(before: RunDocuments, after: RunDocuments, section: Section = Section.RUN) -> list[Brief]:
    found = Differences(Masks())
    circumstances.compare(before, after, found)
    return brief(each for each in found.found if each.section is section)


def test_versions_environment_and_address() -> None:
    good = catalog(resources=[file("/a")])
    other = catalog(resources=[file("/a")], environment="test", asks="test")
    before = gathered(talk(good, report(), version="7.23.0"))
    after = gathered(
        talk(other, report(environment="test"), version="8.1.0", address="192.0.2.9", master_version="8.2.0")
    )
    assert compared(before, after) == [
        ("changed", "agent version", "7.23.0", "8.1.0"),
        ("changed", "master version", "7.23.0", "8.2.0"),
        ("changed", "environment", "production", "test"),
        ("changed", "environment asked for", "production", "test"),
        ("changed", "agent address", "192.0.2.7", "192.0.2.9"),
    ]
    assert compared(before, before) == []


def test_a_failure() -> None:
    before = gathered(talk(catalog(resources=[file("/a")]), report()))
    after = gathered(talk(catalog(status=500, text="Server Error: no role"), report(result="failed")))
    found = compared(before, after)
    assert ("changed", "outcome", "complete", "failed") in found
    assert ("changed", "catalog", "received", "got no catalog: no role") in found


def test_certificates_and_tls() -> None:
    def of(key: str, **leg: object) -> RunDocuments:
        presented = {"peer_chain": carried(made(key=key, serial=7 if key else 8))} | leg
        parts = catalog(resources=[file("/a")]), report()
        return gathered(talk(*(altered(part, leg=presented) for part in parts)))

    found = compared(of(""), of("other", tls_version="TLSv1.2", cipher="AES"))
    (certificate, *rest) = found
    assert certificate[1] == "agent certificate"
    assert "serial 0x0008" in certificate[2]
    assert "serial 0x0007" in certificate[3]
    assert rest == [
        ("changed", "TLS version (agent)", "TLSv1.3", "TLSv1.2"),
        ("changed", "cipher (agent)", "TLS_AES_256_GCM_SHA384", "AES"),
    ]


def test_findings() -> None:
    before = gathered(talk(catalog(resources=[file("/a")]), report()))
    after = gathered(talk(catalog(status=500, text="Server Error: no role"), report(result="failed")))
    found = compared(before, after, Section.FINDINGS)
    assert "S01" in [each[1] for each in found if each[0] == "added"]
    assert compared(after, after, Section.FINDINGS) == []
    assert {each[0] for each in compared(after, before, Section.FINDINGS)} >= {"removed"}

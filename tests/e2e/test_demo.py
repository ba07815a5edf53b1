"""Every scenario of the lab, through the real proxy: what it shows is what the capture tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector import demo
from inspector.lab import FAULTS
from inspector.model import Handshake
from tests.e2e.conftest import analyzed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, tmp_path: Path) -> None:
    analyzer = analyzed(demo.record(tmp_path / "demo.sqlite", name, quiet=True))
    fault = FAULTS[name]
    assert fault.outcome in {run.outcome for run in analyzer.runs}
    raised = {finding.rule for run in analyzer.runs for finding in run.findings}
    assert set(fault.rules) <= raised
    # Beside its own the scenario raises only what follows from it: an unpinned CA, a signing request that
    # waits, and for two keys of one name the other two sides of the same thing.
    assert raised - set(fault.rules) <= {"B01", "B17"} | ({"B18", "B20", "B22"} if "B2" in str(fault.rules) else set())


def test_healthy(tmp_path: Path) -> None:
    analyzer = analyzed(demo.record(tmp_path / "demo.sqlite", quiet=True))
    first, second = analyzer.runs
    assert (first.outcome, second.outcome) == ("complete", "complete")
    assert [str(phase) for phase in first.spans] == ["certificates", "node", "plugins", "catalog", "files", "report"]
    assert [str(phase) for phase in second.spans] == ["plugins", "catalog", "files", "report"]
    assert {(each.rule, str(each.severity)) for each in first.findings} == {("B01", "warning"), ("B17", "notice")}
    assert second.findings == []
    assert first.certname == second.certname == "web1.lab.example"


@pytest.mark.parametrize(
    ("fault", "alert", "by", "reason"),
    [
        ("revoked", "certificate_revoked", "proxy", "Certificate 'CN=web1.lab.example' is revoked"),
        ("wrong-ca", "unknown_ca", "agent", "unable to get local issuer certificate for CN=proxy.lab.example"),
        ("expired-crl", "certificate_expired", "agent", "CRL of theirs expired"),
        ("hostname-mismatch", "bad_certificate", "agent", "'puppet.wrong.example' did not match"),
    ],
)
def test_refused_handshakes_say_who_and_why(fault: str, alert: str, by: str, reason: str, tmp_path: Path) -> None:
    analyzer = analyzed(demo.record(tmp_path / "demo.sqlite", fault, quiet=True))
    run = analyzer.runs[-1]
    seq, handshake = run.handshakes[0]
    assert isinstance(handshake, Handshake)
    assert seq == handshake.seq
    assert (handshake.alert, handshake.alert_by) == (alert, by)
    assert reason in handshake.reason

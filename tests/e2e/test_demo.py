"""Every scenario of the lab, through the real proxy: what it shows is what the capture tells."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.cli import demo
from inspector.lab import FAULTS, HEALED
from tests.support.briefs import documents
from tests.support.proxies import analyzed

REMEDIES = {
    "expired-crl": "puppet-inspector fix new-crl --cadir",
    "missing-crl": "restore it from the CA's backup",
    "incomplete-crl": "certificate_revocation leaf",
    "no-crl-check": "`puppet config set certificate_revocation chain --section agent`",
    "repeated-csr": "`puppetserver ca sign --certname web1.lab.example`",
    "cloned-certname": "`puppetserver ca clean --certname web1.lab.example`",
    "lost-key": "`puppetserver ca clean --certname web1.lab.example`",
    "revoked": "`puppetserver ca clean --certname web1.lab.example`",
    "wrong-ca": '`rm -f "$(puppet config print localcacert)"',
    "hostname-mismatch": "`puppet config set server proxy.lab.example --section agent`",
    "catalog-error": "deploy the module",
    "missing-file": "correct `source`",
    "no-client-certificate": "`puppet ssl bootstrap`",
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, own: bool, tmp_path: Path) -> None:
    analyzer = analyzed(demo.record(tmp_path / "demo.sqlite", FAULTS[name], quiet=True, own=own))
    fault = FAULTS[name]
    assert fault.outcome in {run.outcome for run in analyzer.runs}
    # A first CA download is unverified by nature; what is worth knowing only is no fault.
    grave = {finding.rule for run in analyzer.runs for finding in run.findings if finding.severity != "notice"} - {
        "B01"
    }
    assert grave | {fault.rules[0]} == set(fault.rules)
    document = [run["verdict"] for run in documents(analyzer.runs)]
    verdict = document[-1]
    assert verdict["cause"] == fault.rules[0]
    assert set(verdict["symptoms"]) | {fault.rules[0]} >= grave - {"B01"}
    assert verdict["certainty"] == ("likely" if name in LIKELY else "certain")
    assert REMEDIES[name] in verdict["remedy"]


LIKELY = {"wrong-ca", "hostname-mismatch", "no-crl-check"}
"""What only an alert, or what did not happen, tells."""


@pytest.mark.both_roads
def test_healthy(own: bool, tmp_path: Path) -> None:
    analyzer = analyzed(demo.record(tmp_path / "demo.sqlite", quiet=True, own=own))
    first, second = analyzer.runs
    assert (first.outcome, second.outcome) == ("complete", "complete")
    assert [str(phase) for phase in first.spans] == ["certificates", "node", "plugins", "catalog", "files", "report"]
    assert [str(phase) for phase in second.spans] == ["plugins", "catalog", "files", "report"]
    assert {finding.rule for finding in first.findings if finding.severity != "notice"} == set()
    assert {finding.rule for finding in first.findings} >= {"B17"}
    assert [finding for finding in second.findings if finding.severity != "notice"] == []
    assert [run["verdict"] for run in documents(analyzer.runs)] == [None, None]
    assert first.certname == second.certname == "web1.lab.example"


def test_a_failing_node_is_healed(own: bool, tmp_path: Path) -> None:
    analyzer = analyzed(demo.record(tmp_path / "demo.sqlite", HEALED, quiet=True, own=own))
    first, second = documents(analyzer.runs)
    assert (first["outcome"], first["verdict"]["cause"]) == ("waiting", "B18")
    assert "puppetserver ca clean --certname web1.lab.example" in first["verdict"]["remedy"]
    assert (second["outcome"], second["verdict"]) == ("complete", None)


def test_what_it_prints_last_works_as_printed(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("puppet-inspector")
    done = subprocess.run(
        [program, "demo", "--own", "-o", "demo.sqlite"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    printed = done.stdout.partition("\nnext:\n")[2].splitlines()
    assert [shlex.split(line)[1:] for line in printed] == [
        ["check", "demo.sqlite"], ["bootstrap", "demo.sqlite"], ["demo.sqlite"]
    ]  # fmt: skip
    for line in printed[:2]:
        again = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "web1.lab.example" in again.stdout


@pytest.mark.parametrize(
    ("fault", "alert", "by", "reason"),
    [
        ("revoked", "certificate_revoked", "proxy", "Certificate 'CN=web1.lab.example' is revoked"),
        ("wrong-ca", "unknown_ca", "agent", "unable to get local issuer certificate for CN=proxy.lab.example"),
        ("expired-crl", "certificate_expired", "agent", "its CA or a CRL expired"),
        ("hostname-mismatch", "bad_certificate", "agent", "'puppet.wrong.example' did not match"),
    ],
)
def test_refused_handshakes_say_who_and_why(
    fault: str, alert: str, by: str, reason: str, own: bool, tmp_path: Path
) -> None:
    analyzer = analyzed(demo.record(tmp_path / "demo.sqlite", FAULTS[fault], quiet=True, own=own))
    run = analyzer.runs[-1]
    handshake = run.handshakes[0]
    assert (handshake.alert, handshake.alert_by) == (alert, by)
    assert reason in handshake.reason

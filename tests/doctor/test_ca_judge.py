"""Which certificates a CA's servers accept, and how often OpenSSL is asked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inspector.doctor import ca_view
from inspector.doctor.ca_judge import EARLY, EXPIRED, REVOKED, UNTRUSTED, Judge
from inspector.host import pki
from tests.support.ca_directories import ROOT, MadeCa

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from inspector.protocol.certificates import Certificate

DAY = 86400.0


def made(tmp_path: Path) -> ca_view.CaView:
    ca = MadeCa()
    for name in ("node1.example", "node2.example", "node3.example"):
        ca.issue(name)
    ca.revoke("node3.example")
    return ca_view.of_directory(ca.write(tmp_path / "ca"))


def test_the_reasons(tmp_path: Path) -> None:
    view, now = made(tmp_path), time.time()
    by = {moment: Judge(view, now + moment * DAY, each=False) for moment in (0, -20, 3650)}
    one, gone = view.certificates["node1.example"], view.certificates["node3.example"]
    assert [by[0].refusal(one), by[0].refusal(gone)] == ["", REVOKED]
    assert [by[-20].refusal(one), by[3650].refusal(one)] == [EARLY, EXPIRED]
    other = MadeCa(authority=pki.make_ca("Puppet CA: ca.example", ROOT, serial=2))
    other.issue("node4.example")
    foreign = ca_view.of_directory(other.write(tmp_path / "other"))
    assert by[0].refusal(foreign.certificates["node4.example"]) == UNTRUSTED
    assert Judge(ca_view.CaView("capture", ""), now, each=False).refusal(one) == ""


def test_it_takes_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL verifies once for each CA, not once for each node."""
    view = made(tmp_path)
    verified: list[Certificate] = []
    before = Judge._distrust

    def counted(judge: Judge, certificate: Certificate) -> str:
        verified.append(certificate)
        return before(judge, certificate)

    monkeypatch.setattr(Judge, "_distrust", counted)
    for each, times in ((False, 1), (True, 2)):  # the third is revoked
        verified.clear()
        judge = Judge(view, time.time(), each=each)
        assert [judge.refusal(one) for one in view.certificates.values()] == ["", "", REVOKED]
        assert len(verified) == times

"""The wire between a real agent and a real master, recorded: tshark decrypts it, and finds what the capture has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.formats import wire
from tests.support.decrypted import compare
from tests.support.programs import fields, tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.through import Stage


def test_a_real_bootstrap_and_run_are_decrypted(stage: Stage, tmp_path: Path) -> None:
    agent = stage.agent("wire.example")
    with stage.proxy(f"keys:{agent.ssldir}", own=True, puppet_wire="true") as road:
        assert road.run(agent, waitforcert=0).status == 1  # its request was not signed
        stage.master.sign(agent.certname)
        assert road.run(agent).status == 2
    path = tmp_path / "wire.pcapng"
    wire.write(stage.capture, None, path)
    briefs = compare(path, stage.capture)
    assert {"certificates", "catalog", "files", "report"} <= {str(brief.phase) for brief in briefs}
    assert tree(path, "http.response && json")
    # The agent's certificate is on both legs, encrypted: only the secrets make it visible.
    assert {side for (side,) in fields(path, "tls.handshake.type == 11", "frame.interface_name")} == {
        "agents", "masters",
    }  # fmt: skip

"""The sockets that take connections to any address, and what the proxy gets to know."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec
import pytest

from inspector.errors import InspectorError
from inspector.proxy.connect.plan import Plan
from inspector.proxy.tap.plan import TapPlan, listen

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_sockets_that_share_a_port_at_loopback() -> None:
    with ExitStack() as stack:
        made = [stack.enter_context(each) for each in listen()]
        assert [each.getsockname()[0] for each in made] == ["127.0.0.1", "::1"][: len(made)]
        assert len({each.getsockname()[1] for each in made}) == 1
        assert made[0].getsockopt(socket.SOL_IP, socket.IP_TRANSPARENT) == 1


def test_others_than_root_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(socket.socket):
        def setsockopt(self, *_: object) -> None:
            raise PermissionError

    monkeypatch.setattr("socket.socket", Refused)
    with pytest.raises(InspectorError, match="Only root"):
        listen()


def test_it_is_another_plan_than_that_of_a_run(tmp_path: Path) -> None:
    plan = TapPlan([3, 4], ("127.0.0.1", 8140), "puppet.example", "c.pem", "k.pem", "ca.pem", "crl.pem", str(tmp_path))
    assert msgspec.convert(msgspec.to_builtins(plan), Plan | TapPlan) == plan

"""Whose connection it is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from inspector.proxy.connect import peers


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_of_this_host_has_an_owner(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"{host} is no address of this host")
    with server, socket.create_connection(server.getsockname()[:2]) as near:
        far, _ = server.accept()
        with far:
            peer, own = near.getsockname()[:2], far.getsockname()[:2]
            assert peers.owner(peer, own) == os.geteuid()
            assert peers.owner((host, peer[1] ^ 1), own) is None
            assert peers.owner(peer, (host, own[1] ^ 1)) is None


def test_it_is_the_users_of_the_other_end_not_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has both ends of a connection of this host."""
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:1FCC 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1\n"
        "   1: 0100007F:C350 0100007F:1FCC 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n"
    )
    monkeypatch.setitem(peers.TABLES, 4, table)
    assert peers.owner(("127.0.0.1", 50000), ("127.0.0.1", 8140)) == 1000
    assert peers.owner(("127.0.0.1", 8140), ("127.0.0.1", 50000)) == 0
    assert peers.owner(("127.0.0.2", 50000), ("127.0.0.1", 8140)) is None


def test_nobody_is_known_without_the_kernels_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.TABLES, 4, Path("/nonexistent/tcp"))
    assert peers.owner(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


def test_who_has_closed_a_connection_is_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel prints root for a socket without an owner: anybody could pass for it so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
        with far:
            peer, own = near.getsockname(), far.getsockname()
            near.close()
            assert peers.owner(peer, own) is None
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   1: 0100007F:C350 0100007F:1FCC 05 00000000:00000000 00:00000000 00000000     0        0 0 1\n"
    )
    monkeypatch.setitem(peers.TABLES, 4, table)
    assert peers.owner(("127.0.0.1", 50000), ("127.0.0.1", 8140)) is None

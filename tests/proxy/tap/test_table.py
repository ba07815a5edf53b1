"""The table of nftables, in a namespace of the test's own (``tests/e2e/test_tap.py`` sends connections through it)."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.proxy.tap import table as module
from inspector.proxy.tap.table import Table
from tests.support.namespaces import USABLE, Network

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    not USABLE and not os.environ.get("PUPPET_INSPECTOR_REAL"), reason="needs root, iproute2 and nftables"
)
LISTENING = (("127.0.0.1", 9999), ("::1", 9999))


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    with Network(0) as made:
        whole = subprocess.run
        monkeypatch.setattr(subprocess, "run", lambda words, **named: whole(made.words(made.master, *words), **named))
        yield made


def test_it_hands_over_only_as_long_as_it_is_renewed(network: Network) -> None:
    table = Table(8140)
    table.create(LISTENING)
    assert "elements" not in network.ruleset()
    table.renew()
    table.renew()
    assert "elements = { 8140 expires" in network.ruleset()
    table.withdraw()
    assert "elements" not in network.ruleset()
    table.withdraw()
    table.renew()
    assert "elements = { 8140 expires" in network.ruleset()
    assert module.exists()
    module.remove()
    assert (module.exists(), network.ruleset()) == (False, "")
    module.remove()


def test_who_is_exempt_and_who_is_chosen(network: Network) -> None:
    table = Table(8140, "192.0.2.1", ["192.0.2.7", "2001:db8::7"])
    table.create(LISTENING)
    rules = network.ruleset()
    for text in ("elements = { 192.0.2.7 }", "elements = { 2001:db8::7 }", "ip saddr != @chosen4 return",
                 "ip6 saddr != @chosen6 return", "ip daddr != 192.0.2.1 return"):  # fmt: skip
        assert text in rules
    table.exempt("192.0.2.8")
    table.exempt("192.0.2.8")
    table.exempt("2001:db8::8")
    assert "elements = { 192.0.2.8 }" in network.ruleset()
    assert "elements = { 2001:db8::8 }" in network.ruleset()


def test_two_taps_are_one_too_many(network: Network) -> None:
    Table(8140).create(LISTENING)
    with pytest.raises(InspectorError, match="is there already"):
        Table(8141).create(LISTENING)


def test_what_nft_refuses_is_an_error(network: Network) -> None:
    with pytest.raises(InspectorError, match="nft refuses the table"):
        module.run("nonsense")


def test_a_host_without_nft(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRAM", "no-such-nft")
    with pytest.raises(InspectorError, match="nft is not installed"):
        module.exists()

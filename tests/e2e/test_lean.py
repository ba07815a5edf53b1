"""``puppet_lean``: mitmdump without those of its own addons that a Puppet proxy does without."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from mitmproxy import options
from mitmproxy.tools.dump import DumpMaster

from inspector.proxy.fast import addon_trim
from inspector.proxy.fast.handler import Listeners
from tests.e2e.wire import Peer
from tests.support.proxies import analyzed, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied

STAY = {"core", "block", "disableh2c", "proxyauth", "proxyserver", "scriptloader", "nextlayer", "tlsconfig",
        "clientplayback", "keepserving", "errorcheck"}  # fmt: skip


@pytest.fixture
def mitmdump(tmp_path: Path) -> Iterator[Any]:
    """mitmdump's master, as our addon leaves its options."""
    loop = asyncio.new_event_loop()
    handlers = list(logging.getLogger().handlers)
    master: Any = DumpMaster(options.Options(confdir=str(tmp_path)), loop=loop, with_termlog=False)
    master.options.update(flow_detail=0)
    yield master
    master.options.update(save_stream_file=None)  # closes it
    for handler in set(logging.getLogger().handlers) - set(handlers):
        logging.getLogger().removeHandler(handler)
    loop.close()


def test_what_serves_and_protects_stays(mitmdump: Any) -> None:
    before = set(mitmdump.addons.lookup)
    gone = addon_trim.slim(mitmdump)
    assert set(mitmdump.addons.lookup) >= STAY
    assert before - set(mitmdump.addons.lookup) == set(gone)
    assert set(gone) == set(addon_trim.NOT_NEEDED)


def test_mitmproxys_tls_addon_is_asked_when_ours_has_spoken(mitmdump: Any) -> None:
    """It makes a certificate for each connection that has none by then."""
    asked: list[str] = []

    class Ours:
        name = "ours"

        def tls_start_client(self, _data: object) -> None:
            asked.append("ours")

    mitmdump.addons.add(Ours())
    mitmdump.addons.get("tlsconfig").tls_start_client = lambda _data: asked.append("mitmproxy's")
    before = sorted(mitmdump.addons.lookup)
    addon_trim.prefer_ours(mitmdump.addons)
    for act in Listeners(mitmdump.addons).of("tls_start_client"):
        act(None)
    assert asked == ["ours", "mitmproxy's"]
    assert sorted(mitmdump.addons.lookup) == before


@pytest.mark.parametrize(
    ("option", "value", "addon"),
    [
        ("save_stream_file", "flows.mitm", "save"),
        ("hardump", "flows.har", "savehar"),
        ("modify_headers", ["/~q/X-Site/one"], "modifyheaders"),
        ("modify_body", ["/~s/a/b"], "modifybody"),
        ("map_remote", ["|a|b"], "mapremote"),
        ("block_list", [":~u x:404"], "blocklist"),
        ("stickycookie", ".*", "stickycookie"),
        ("flow_detail", 2, "dumper"),
    ],
)
def test_what_the_user_asked_for_stays(mitmdump: Any, tmp_path: Path, option: str, value: Any, addon: str) -> None:
    if option in ("save_stream_file", "hardump"):
        value = str(tmp_path / value)
    mitmdump.options.update(**{option: value})
    gone = addon_trim.slim(mitmdump)
    assert addon not in gone
    assert mitmdump.addons.get(addon) is not None
    assert set(gone) == set(addon_trim.NOT_NEEDED) - {addon}


def test_every_addon_that_goes_is_one_of_mitmproxys(mitmdump: Any) -> None:
    """A name that mitmproxy does not have (any more) would take nothing out."""
    assert set(addon_trim.NOT_NEEDED) <= set(mitmdump.addons.lookup)
    asked_by = {name for names in addon_trim.NOT_NEEDED.values() for name in names}
    assert asked_by <= set(mitmdump.options.keys())


def test_a_run_is_the_same(lab: Lab, capture: Path, proxied: Proxied) -> None:
    with proxied(lab, puppet_lean="true") as proxy:
        assert lab.agent("agent.lab.example").run().status == 2
    assert proxy.status == 0
    (run,) = analyzed(capture).runs
    assert (run.certname, run.outcome) == ("agent.lab.example", "complete")
    assert any(line.startswith("== run 1 of agent.lab.example") for line in proxy.lines)


def test_the_users_flow_file_is_written(lab: Lab, capture: Path, proxied: Proxied, tmp_path: Path) -> None:
    flows = tmp_path / "flows.mitm"
    with proxied(lab, "-w", str(flows), puppet_lean="true") as proxy:
        Peer(proxy.address, lab.proxy_name).ask("GET", "/puppet-ca/v1/certificate/ca")
    assert len(records(capture)) == 1
    assert b"/puppet-ca/v1/certificate/ca" in flows.read_bytes()

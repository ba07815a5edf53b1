"""Flows that are read: when nothing is proxied, which flows are analyzed, and what fails."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from mitmproxy.addons.view import View
from mitmproxy.test import taddons, tflow

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats.mitm_flows import flow_of
from inspector.model import Exchange
from inspector.proxy import options
from inspector.proxy.mitm import commands, reading
from inspector.proxy.mitm.reading import ERROR, OTHER, ReadFlows, annotate
from tests.support.recorded import SAMPLES, records_of
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mitmproxy import http

KEY = next(path for path in SAMPLES if path.stem == "mismatched-key")


# -- with or without a proxy ----------------------------------------------------------------------------


def chosen(
    monkeypatch: pytest.MonkeyPatch,
    bundle: Path,
    *,
    own_mode: bool = False,
    interactive: bool = True,
    given: Mapping[str, str] = MappingProxyType({}),
    **mitmproxys: Any,
) -> str:
    """Return why flows are only read on a host with this CA bundle."""
    monkeypatch.setattr("inspector.host.puppetconf.read", lambda: SimpleNamespace(ca=bundle))
    values = options.with_defaults(**{"server": True, "rfile": None, **mitmproxys, **given})
    return reading.reason(values, own_mode=own_mode, interactive=interactive)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A CA bundle that exists."""
    path = tmp_path / "ca.pem"
    path.touch()
    return path


def test_without_a_ca_bundle_flows_are_only_read(monkeypatch: pytest.MonkeyPatch, bundle: Path) -> None:
    assert chosen(monkeypatch, bundle) == ""
    missing = bundle.with_name("missing.pem")
    assert chosen(monkeypatch, missing) == f"there is no CA bundle at {missing}"


def test_with_a_file_to_read_or_without_a_server_the_host_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, bundle: Path
) -> None:
    for path in (bundle, bundle.with_name("missing.pem")):
        assert "puppet_master" in chosen(monkeypatch, path, rfile="flows.mitm", interactive=False)
        assert chosen(monkeypatch, path, server=False) == "the server is off"
        assert chosen(monkeypatch, path, server=False, own_mode=True) == "the server is off"


def test_a_user_who_wants_a_proxy_gets_one_or_an_error(monkeypatch: pytest.MonkeyPatch, bundle: Path) -> None:
    missing = bundle.with_name("missing.pem")
    wanted = dict.fromkeys([*dict(options.OPTIONS), *dict(options.FLAGS)], "x")
    for name in reading.WITHOUT_PROXY:
        assert chosen(monkeypatch, missing, given={name: wanted.pop(name)})
    for name, value in wanted.items():
        assert chosen(monkeypatch, missing, rfile="flows.mitm", given={name: value}) == "", name
    assert chosen(monkeypatch, missing, own_mode=True) == ""
    # mitmdump without a file could do nothing at all.
    assert chosen(monkeypatch, missing, interactive=False) == ""


def test_a_ca_bundle_that_cannot_be_reached_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_file", refuse)
    assert chosen(monkeypatch, tmp_path / "ca.pem")


def test_a_puppet_conf_that_cannot_be_read_is_left_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise InspectorError("it cannot be read")

    monkeypatch.setattr("inspector.host.puppetconf.read", fail)
    assert reading.reason(options.with_defaults(server=True, rfile=None), own_mode=False, interactive=True) == ""


# -- which flows ----------------------------------------------------------------------------------------


def sample() -> list[http.HTTPFlow]:
    """The two flows of a sample, both with B18 and B23."""
    return [flow_of(record) for record in records_of(KEY) if isinstance(record, Exchange)]


def within(
    act: Callable[[ReadFlows, View], Awaitable[None]], *, is_proxied: Callable[[http.HTTPFlow], bool] = lambda _: False
) -> None:
    """Act in a mitmproxy with a user interface."""

    async def call() -> None:
        view = View()
        with taddons.context(view) as context:  # type: ignore[no-untyped-call]
            context.options.add_option("puppet_rules", str, "", "")
            flows = ReadFlows(is_proxied)
            flows.watch()
            await act(flows, view)
            await flows.close()
            context.master._legacy_log_events.uninstall()

    asyncio.run(call())


async def analyzed(flows: ReadFlows) -> list[Exchange]:
    """Return the records of the analysis, once it is over."""
    waiting = flows.capture()
    assert waiting is not None
    await flows.finish()
    with Capture.open(await waiting) as capture:
        return [record for record in capture.records() if isinstance(record, Exchange)]


def copied(flow: http.HTTPFlow) -> http.HTTPFlow:
    copy: http.HTTPFlow = flow.copy()  # type: ignore[no-untyped-call]
    return copy


def rules(flow: http.HTTPFlow) -> list[str]:
    return [part.partition(":")[0] for part in flow.comment.split("; ")]


@pytest.mark.slow
def test_flows_are_marked_with_what_check_finds() -> None:
    async def act(flows: ReadFlows, view: View) -> None:
        assert flows.capture() is None
        for flow in reversed(read := sample()):
            view.add([flow])
        records = await analyzed(flows)
        assert [record.request.method for record in records] == ["PUT", "GET"]
        for flow in read:
            assert flow.marked == ":red_circle:"
            assert rules(flow) == ["B18", "B23"]

    within(act)


@pytest.mark.slow
def test_a_copy_or_a_second_reading_is_no_further_exchange() -> None:
    async def act(flows: ReadFlows, view: View) -> None:
        read = sample()
        copies = [copied(flow) for flow in read]
        view.add([*read, *copies])
        assert len(await analyzed(flows)) == 2
        assert [rules(flow) for flow in (*read, *copies)] == [["B18", "B23"]] * 4

    within(act)


def test_what_passed_the_proxy_is_left_out_with_its_copies() -> None:
    live = sample()

    async def act(flows: ReadFlows, view: View) -> None:
        view.add(live)
        assert flows.capture() is None
        copy = copied(live[0])
        copy.comment = "B01: found while it passed"
        view.add([copy])
        await flows.finish()
        assert copy.comment == "B01: found while it passed"
        assert flows._capture is None

    within(act, is_proxied=live.__contains__)


@pytest.mark.slow
def test_flows_that_the_user_interface_has_dropped_are_not_analyzed_again() -> None:
    async def act(flows: ReadFlows, view: View) -> None:
        view.add(read := sample())
        first = await analyzed(flows)
        view.remove(read[:1])
        view.add([tflow.tflow(resp=True)])
        second = await analyzed(flows)
        assert (len(first), len(second)) == (2, 2)
        assert read[0].request.path not in [record.request.target for record in second]

    within(act)


@pytest.mark.slow
def test_a_flow_that_cannot_be_stored_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    async def act(flows: ReadFlows, view: View) -> None:
        broken = tflow.tflow(resp=True)
        broken.request.timestamp_start = 1e300
        view.add([*sample(), broken])
        assert len(await analyzed(flows)) == 2

    within(act)
    assert "1 flows could not be analyzed" in caplog.messages


def test_a_failed_analysis_is_one_line(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: list[str]) -> tuple[int, bytes, bytes]:
        return 2, b"", b"a warning\nthe rules file is\x1b broken\n"

    monkeypatch.setattr(commands, "run", fail)

    async def act(flows: ReadFlows, view: View) -> None:
        view.add(read := sample())
        await analyzed(flows)
        assert read[0].comment == ""

    within(act)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith("The flows could not be analyzed: the rules file is")
    assert "\x1b" not in line


def test_nothing_is_left_if_mitmproxy_ends_while_the_capture_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, going = threading.Event(), threading.Event()
    write = ReadFlows._write

    def slowly(self: ReadFlows, groups: Any) -> Any:
        begun.set()
        going.wait(PATIENCE)
        return write(self, groups)

    monkeypatch.setattr(ReadFlows, "_write", slowly)
    made: list[Path] = []

    async def act(flows: ReadFlows, view: View) -> None:
        view.add(sample())
        flows._hurry.set()
        await asyncio.to_thread(begun.wait, PATIENCE)
        asyncio.get_running_loop().call_later(0.1, going.set)
        await flows.close()
        assert flows._directory is not None
        made.append(Path(flows._directory.name))

    within(act)
    assert not made[0].exists()


@pytest.mark.slow
def test_the_temporary_capture_is_private_and_goes() -> None:
    folders: list[Path] = []

    async def act(flows: ReadFlows, view: View) -> None:
        for _ in range(2):
            view.add([copied(flow) for flow in sample()])
            await analyzed(flows)
            assert flows._capture is not None
            folders.append(flows._capture.parent)
        assert len(list(folders[0].glob("*.sqlite"))) == 1
        assert folders[0].stat().st_mode & 0o777 == 0o700

    within(act)
    assert not folders[0].exists()


B01, B18 = ("B01", "warning", "unverified\x1b[31m"), ("B18", "error", "another key")


def test_findings_are_a_mark_and_a_comment() -> None:
    flow = tflow.tflow()
    assert annotate(flow, [B01])
    assert (flow.marked, flow.comment.partition("\x1b")[1]) == (OTHER, "")
    assert annotate(flow, [B01, B18])
    assert flow.marked == ERROR
    assert flow.comment.startswith("B01: unverified")
    assert flow.comment.endswith("; B18: another key")


def test_findings_of_a_later_analysis_replace_those_before() -> None:
    flow = tflow.tflow()
    annotate(flow, [B18])
    assert not annotate(flow, [B18])
    assert annotate(flow, [])
    assert (flow.marked, flow.comment) == ("", "")


def test_what_a_user_wrote_and_marked_stays() -> None:
    flow = tflow.tflow()
    flow.marked, flow.comment = ":star:", "look here\n\nB18 is known"
    assert annotate(flow, [B18])
    assert (flow.marked, flow.comment) == (":star:", "look here\n\nB18 is known\nB18: another key")
    assert annotate(flow, [])
    assert (flow.marked, flow.comment) == (":star:", "look here\n\nB18 is known")


def test_a_mark_of_ours_that_a_user_removed_does_not_come_back() -> None:
    flow = tflow.tflow()
    annotate(flow, [B18])
    flow.marked = ""
    assert not annotate(flow, [B18])
    assert flow.marked == ""


@pytest.mark.parametrize("mark", [ERROR, OTHER])
def test_a_mark_like_ours_on_a_flow_without_findings_is_the_users(mark: str) -> None:
    flow = tflow.tflow()
    flow.marked = mark
    assert not annotate(flow, [])
    assert flow.marked == mark

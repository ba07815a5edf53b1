"""What mitmproxy shows of Puppet's bodies, asked for as its own user interfaces ask."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy import contentviews as mitm_views
from mitmproxy import http
from mitmproxy.contentviews import Metadata
from mitmproxy.test import taddons, tflow

from inspector.formats.mitm_flows import export_flows, flow_of
from inspector.model import Exchange, Leg, Request, Response
from inspector.privacy.secrets import MASK
from inspector.proxy.mitm import contentviews
from inspector.text import clean
from tests.support import places
from tests.support.recorded import SAMPLES, records_of
from tests.support.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(mitm_views.registry, "_by_name", dict(mitm_views.registry._by_name))
    contentviews.add()
    with taddons.context():  # type: ignore[no-untyped-call]
        yield


def shown(flow: http.HTTPFlow, message: http.Message | None, view: str = "auto") -> tuple[str | None, str]:
    """Which view mitmproxy takes, and what it shows."""
    assert message is not None
    result = mitm_views.prettify_message(message, flow, view)
    return result.view_name, result.text


def flows(*names: str) -> Iterator[tuple[str, http.HTTPFlow]]:
    """The flows of the samples whose path has one of these in it."""
    for sample in SAMPLES:
        for record in records_of(sample):
            if isinstance(record, Exchange) and any(name in record.request.path for name in names):
                yield record.request.method, flow_of(record)


def first(method: str, name: str, status: int = 200) -> http.HTTPFlow:
    return next(flow for verb, flow in flows(name) if verb == method and flow.response
                and flow.response.status_code == status)  # fmt: skip


@each_row(
    ("method", "name", "request_says", "answer_says"),
    [
        ("POST", "/catalog/", ("Facts\nclientcert: node", "Form\n"), ("Catalog\nStage[main]  contains", "By type\n")),
        ("PUT", "/report/", ("Resources\n", "Events\n", "Log\n", "Metrics\n"), None),
        ("GET", "/node/", None, ("Node\nname: node",)),
        ("GET", "/file_metadatas/plugins", None, ("Files\ntype ", "directory")),
        ("GET", "/file_metadata/modules", None, ("File\n", "Fields\n")),
        ("GET", "/certificate/ca", None, ("Certificates\nCN=Puppet CA", "  signed by: ")),
        ("GET", "/certificate_revocation_list/", None, ("CRLs\nCRL of CN=Puppet CA", "  number: 0")),
        ("PUT", "/certificate_request/", ("Signing request\nCN=node", "  self-signature: valid"), None),
    ],
)  # fmt: skip
def test_puppets_bodies_are_shown_decoded(
    method: str, name: str, request_says: tuple[str, ...] | None, answer_says: tuple[str, ...] | None
) -> None:
    flow = first(method, name)
    for message, says in ((flow.request, request_says), (flow.response, answer_says)):
        if says is not None:
            view, text = shown(flow, message)
            assert view == "Puppet"
            assert all(say in text for say in says), text
        elif message is flow.request:
            assert not message.raw_content


def test_an_error_is_shown_in_the_masters_words() -> None:
    flow = first("GET", "/file_metadata/", 404)
    view, text = shown(flow, flow.response)
    assert view == "Puppet"
    assert text.split("\n") == ["Error", "Not Found: Could not find file_metadata modules/demo/node2.example.txt", "",
                                "issue kind: RESOURCE_NOT_FOUND", ""]  # fmt: skip


def test_a_files_content_and_what_is_not_puppets_stay_mitmproxys() -> None:
    flow = first("GET", "/file_content/")
    assert shown(flow, flow.response)[0] != "Puppet"
    other = tflow.tflow(resp=True)
    assert shown(other, other.response)[0] != "Puppet"
    assert contentviews.Puppet().render_priority(b"x", Metadata()) < 0


def test_secrets_are_masked() -> None:
    body = (b'{"name":"a","version":1,"environment":"production","classes":[],"edges":[],"resources":[{"type":"User",'
            b'"title":"x","parameters":{"password":{"__ptype":"Sensitive","__pvalue":"s3cr3t"}}}]}')  # fmt: skip
    flow = flow_of(Exchange(Leg("a", "agent"), Request(method="POST", target="/puppet/v3/catalog/a?environment=b"),
                            Response((("Content-Type", "application/json"),), body, status=200)))  # fmt: skip
    view, text = shown(flow, flow.response)
    assert view == "Puppet"
    assert "s3cr3t" not in text
    assert MASK in text


def test_a_large_body_does_not_hold_the_proxy_up(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = first("POST", "/catalog/")
    monkeypatch.setattr(contentviews, "LARGE", 10)
    assert shown(flow, flow.response)[0] != "Puppet"
    assert "puppet-inspector open" in shown(flow, flow.response, "puppet")[1]


def test_what_cannot_be_read_says_why() -> None:
    flow = first("POST", "/catalog/")
    assert flow.response
    flow.response.raw_content = b'{"\x1b'
    flow.response.headers.pop("content-encoding", None)
    view, text = shown(flow, flow.response)
    assert view == "Puppet"
    assert text.startswith("Cannot be decoded: ")
    assert "\x1b" not in text


def test_the_view_can_be_asked_for_anything() -> None:
    assert "Not a request" in contentviews.Puppet().prettify(b"x", Metadata())
    other = tflow.tflow(resp=True, err=True)
    for message in (other.request, other.response):
        view, text = shown(other, message, "puppet")
        assert (view, "Couldn't parse" in text) == ("Puppet", False)


@settings(max_examples=150)
@given(st.sampled_from([record for sample in SAMPLES for record in records_of(sample) if isinstance(record, Exchange)]),
       st.binary(max_size=60), st.integers(0, 4000), st.booleans())  # fmt: skip
def test_no_body_raises(exchange: Exchange, body: bytes, cut: int, plain: bool) -> None:
    def broken[M: Request | Response](message: M) -> M:
        headers = tuple(header for header in message.headers if not plain or header[0].lower() != "content-encoding")
        return dataclasses.replace(message, headers=headers, body=message.body[:cut] + body)

    answer = broken(exchange.response) if exchange.response else None
    flow = flow_of(dataclasses.replace(exchange, request=broken(exchange.request), response=answer))
    for message in (flow.request, flow.response):
        if message is not None:
            data = message.raw_content or b""
            text = contentviews.Puppet().prettify(data, Metadata(flow=flow, http_message=message))
            assert clean(text.replace("\n", "")) == text.replace("\n", "")


SCRIPT = """
import asyncio
from pathlib import Path
from mitmproxy import ctx
from inspector.proxy.mitm import contentviews as views
from inspector.proxy.mitm.commands import PuppetCommands

class Ends:
    async def running(self):
        ctx.master.commands.execute("puppet.runs")
        await asyncio.gather(*commands._tasks)
        ctx.master.shutdown()

views.add()
async def capture():
    return Path({capture!r})

commands = PuppetCommands(capture)
addons = [commands, Ends()]
"""


@pytest.mark.slow
def test_the_real_mitmdump_shows_bodies_and_runs(tmp_path: Path) -> None:
    """In a process of its own: views and commands as they are loaded by an addon."""
    sample = next(path for path in SAMPLES if path.stem == "first-run")
    export_flows(records_of(sample), tmp_path / "flows.mitm")
    (tmp_path / "script.py").write_text(SCRIPT.format(capture=str(sample)))
    options = (f"confdir={tmp_path}", "flow_detail=3", "keepserving=true", "server=false")
    command = [str(Path(sys.executable).with_name("mitmdump")), "-s", str(tmp_path / "script.py")]
    command += ["-r", str(tmp_path / "flows.mitm"), *(word for option in options for word in ("--set", option))]
    environment = {**os.environ, "PYTHONPATH": str(places.ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment)
    assert "    Catalog\n    Stage[main]  contains" in done.stdout
    assert "    Signing request\n    CN=node1.example  signing request" in done.stdout
    assert "node1.example  7.23.0   production   complete" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr

"""Which server answered what of a run."""

from __future__ import annotations

import dataclasses
import hashlib

from inspector.model import Exchange, Leg, Phase
from inspector.runs import servers
from inspector.runs.examples import answered_by, ca, catalog, crl, listing, plugins, report, talk, together
from inspector.runs.servers import Server
from tests.support.conversations import runs_of

FILES = {"facter/role.rb": b"1"}


def test_each_server_with_what_it_answered() -> None:
    records = talk(
        *answered_by("ca.example", ca(), crl(number=7)),
        *answered_by("c1.example", listing("plugins", FILES)),
        *answered_by("c2.example", catalog(version="2f1e", code_id="urn:1", environment="test"), report()),
        certificate=True,
    )
    (run,) = runs_of(records)
    authority, first, second = run.servers
    assert (authority.name, authority.phases, authority.requests) == ("ca.example", [Phase.CERTIFICATES], 2)
    assert (authority.crl, authority.environment) == (7, None)
    assert authority.crl_from is not None
    assert authority.ca is not None
    assert (first.name, first.phases, first.version) == ("c1.example", [Phase.PLUGINS], "7.23.0")
    assert (second.catalog, second.code_id, second.environment) == ("2f1e", "urn:1", "test")
    assert (second.phases, second.first, second.address) == ([Phase.CATALOG, Phase.REPORT], 4, "192.0.2.1:8140")
    master = records[3]
    assert isinstance(master, Exchange)
    assert master.master
    assert second.certificate == hashlib.sha256(master.master.peer_chain[0]).hexdigest()
    assert second.words.startswith(
        "c2.example: catalog, report (2); 7.23.0; test; catalog 2f1e; code urn:1; certificate "
    )


def test_a_server_without_a_certificate_has_the_name_of_its_address() -> None:
    leg = Leg("m", "master", "192.0.2.9", 8140, place="here")
    records = [dataclasses.replace(record, master=leg) for record in talk(catalog()) if isinstance(record, Exchange)]
    (server,) = runs_of(records)[0].servers
    assert (server.name, server.certificate, server.places) == ("192.0.2.9:8140", None, ["here"])
    assert servers.name_of(Leg("m", "master", peer_chain=(b"no certificate",))) == "?:?"


def test_what_the_proxy_answers_itself_is_of_no_server() -> None:
    assert runs_of(talk(plugins(), catalog()))[0].servers == ()


def test_a_snapshot_does_not_change_with_its_run() -> None:
    (run,) = runs_of(talk(*answered_by("c1.example", catalog(), report())))
    before = run.servers
    run.answering["c1.example 192.0.2.1:8140"].phases.append(Phase.OTHER)
    assert before[0].phases == [Phase.CATALOG, Phase.REPORT]


def test_parts_of_one_run_have_their_servers_together() -> None:
    one = Server("a", "a:1", None, 9, places=["p"], requests=2, phases=[Phase.CATALOG], catalog="5")
    other = Server("a", "a:1", None, 3, places=["q", "p"], requests=1, phases=[Phase.CERTIFICATES], ca="ff")
    third = Server("b", "b:1", None, 4, requests=1)
    merged = servers.merge({"a": one, "b": third}, {"a": other})
    assert merged["b"] is third
    assert merged["a"] == Server(
        "a", "a:1", None, 3, places=["q", "p"], requests=3, phases=[Phase.CERTIFICATES, Phase.CATALOG], catalog="5",
        ca="ff",
    )  # fmt: skip


def test_servers_are_bounded() -> None:
    parts = [
        part for number in range(servers.MOST + 5) for part in answered_by(f"c{number}.example", catalog(status=503))
    ]
    assert max(len(run.servers) for run in runs_of(together(talk(*parts)))) == servers.MOST

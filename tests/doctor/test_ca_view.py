"""What a CA is known to answer: by its directory, by a capture, by asking it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from inspector.doctor import ca_view, migration
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.runs.examples import ca as bundle
from inspector.runs.examples import catalog, crl, csr, issued, talk
from tests.support.ca_directories import MadeCa
from tests.support.captures import save

if TYPE_CHECKING:
    from pathlib import Path

NAME = "puppet.example"


def test_a_copy_is_parsed_once(tmp_path: Path) -> None:
    ca = MadeCa()
    ca.issue("node1.example")
    known: dict[bytes, object] = {}
    old, new = (ca_view.of_directory(ca.write(tmp_path / name), known) for name in ("old", "new"))
    assert old.certificates["node1.example"] is new.certificates["node1.example"]
    assert old.lacks("node2.example")
    assert not old.lacks("node1.example")


def test_a_request_is_not_taken_for_a_certificate(tmp_path: Path) -> None:
    """A file has one meaning at each place, whatever was parsed elsewhere."""
    ca = MadeCa()
    ca.request("node1.example")
    ca.write(tmp_path / "old")
    (tmp_path / "old/signed/node1.example.pem").write_bytes((tmp_path / "old/requests/node1.example.pem").read_bytes())
    view = ca_view.of_directory(tmp_path / "old", {})
    assert view.certificates == {}
    assert set(view.requests) == {"node1.example"}


# -- a running CA -------------------------------------------------------------------------------------------


def test_a_running_ca_is_asked_for_nodes(tmp_path: Path) -> None:
    ca = LabCA(NAME)
    place = ca.enrol(tmp_path / "master", NAME, ("localhost",))
    for name in ("node1.example", "node2.example"):
        ca.submit(name, pki.pem(pki.make_csr(name, pki.new_key())))
    ca.sign("node1.example")
    (tmp_path / "ca").mkdir()
    ca.write_cadir(tmp_path / "ca")
    for part, name, pem in (
        ("signed", "node1.example", ca.certificate("node1.example")),
        ("requests", "node2.example", ca.request("node2.example")),
    ):
        (tmp_path / "ca" / part).mkdir()
        (tmp_path / "ca" / part / f"{name}.pem").write_bytes(pem or b"")
    (tmp_path / "ca/inventory.txt").write_text("")
    (tmp_path / "ca/serial").write_text("0009")
    with LabMaster(ca, place) as master:
        port = master.address[1]
        names = ["node1.example", "node2.example", "gone.example"]
        view = ca_view.of_live(f"localhost:{port}", names)
        old = ca_view.of_directory(tmp_path / "ca")
        assert migration.compare(old, view, time.time()).differences == ()
        ca.revoke("node1.example")
        changed = ca_view.of_named(f"localhost:{port}", names, None)
    assert set(view.certificates) == {"node1.example"}
    assert set(view.requests) == {"node2.example"}
    assert view.lacks("gone.example")
    assert view.unknown == ()
    assert view.crls is not None
    assert len(view.crls) == 2
    (found,) = migration.compare(old, changed, time.time()).differences
    assert (found.diagnosis.title, found.nodes) == ("nodes that NEW refuses", ("node1.example",))


def test_agents_refuse_a_server_whose_certificate_is_revoked(tmp_path: Path) -> None:
    ca = LabCA(NAME)
    place = ca.enrol(tmp_path / "master", NAME, ("localhost",))
    with LabMaster(ca, place) as master:
        new = ca_view.of_live(f"localhost:{master.address[1]}", [])
    ca._revoked.append(ca.inventory[0].serial_number)
    ca.publish_crl()
    (tmp_path / "ca").mkdir()
    ca.write_cadir(tmp_path / "ca")
    old = ca_view.of_directory(tmp_path / "ca")
    titles = [one.diagnosis.title for one in migration.compare(old, new, time.time()).differences]
    assert {"revoked nodes that NEW accepts again", "agents of OLD refuse NEW's server"} <= set(titles)


def test_only_so_many_nodes_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ca_view, "ASKED", 1)
    ca = LabCA(NAME)
    with LabMaster(ca, ca.enrol(tmp_path / "master", NAME)) as master:
        view = ca_view.of_live(f"127.0.0.1:{master.address[1]}", ["a.example", "b.example"])
    assert view.asked == frozenset({"a.example"})
    assert "was asked for the first 1 of 2 nodes only" in view.unknown[0]


def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match=r"No CA answers at 127\.0\.0\.1:1"):
        ca_view.of_named("127.0.0.1:1", [], None)
    with pytest.raises(InspectorError, match="There is no directory"):
        ca_view.of_named(f"{tmp_path}/nothing", [], None)


# -- a capture ------------------------------------------------------------------------------------------------


def test_a_capture_shows_what_was_downloaded_and_shown(tmp_path: Path) -> None:
    path = save(
        tmp_path / "a.sqlite",
        *talk(bundle(), crl(number=4, revoked=[9]), csr(), issued()),
        *talk(catalog(), certname="node2.example", address="192.0.2.8", after=60),
    )
    view = ca_view.of_named(str(path), [], None)
    assert view.kind == "capture"
    assert [one.is_ca for one in view.authorities]
    assert view.crls is not None
    assert view.crls[0].revoked == [9]
    assert "node1.example" in view.certificates
    assert set(view.requests) == {"node1.example"}
    assert not view.lacks("node9.example")
    assert view.unknown == ()


def test_a_capture_without_a_bootstrap(tmp_path: Path) -> None:
    view = ca_view.of_capture(save(tmp_path / "a.sqlite", *talk(catalog())))
    assert [one.partition(" in ")[0] for one in view.unknown] == [
        "not recorded: the CA bundle",
        "not recorded: the CRLs",
    ]

"""``puppet-inspector rehearse``: what it prints, what it leaves behind, its mistakes."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization

from inspector.capture.store import Capture
from inspector.model import REPLAY_OF, Exchange, Response
from tests.support import json_output
from tests.support.compared import file
from tests.support.rehearsals import failing, fleet, new_master, usual

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

NODES = ("a.example", "b.example", "c.example", "d.example")


def other(certname: str, facts: dict[str, Any], environment: str) -> list[dict[str, Any]] | Response:
    """One node does not compile, one gets the usual catalog, two have the same change."""
    if certname == "d.example":
        return failing()
    made = usual(certname, facts, environment)
    return made if certname == "c.example" else [*made, file("/etc/new", mode="0644")]


def test_a_fleet(run: Run, tmp_path: Path) -> None:
    capture, output = fleet(tmp_path, *NODES), tmp_path / "new.sqlite"
    with new_master(tmp_path, other) as master:
        status, out, err = run("rehearse", capture, *master.v4, "-o", output)
    assert (status, err) == (2, "")
    assert f"{master.address}, version 8.10.0; recorded: version 7.23.0\n" in out
    assert "3 nodes compared: 2 changed, 1 without a change; 1 not compared\n" in out
    assert "the same change on 2 nodes: a.example, b.example\n  + File[/etc/new]" in out
    assert "not compared: 1 node: d.example\n  no catalog: no role for this node (" in out
    assert "without a change: 1 node: c.example\n" in out
    assert out.endswith(f"recorded in {output}\n")
    assert len(master.received) == 4


@pytest.mark.parametrize("road", ["keys", "mint"])
def test_as_the_agents_ask(run: Run, tmp_path: Path, road: str) -> None:
    capture = fleet(tmp_path, "a.example", "b.example")
    with new_master(tmp_path) as master:
        master.enrol("a.example", "b.example")
        status, out, err = run("rehearse", capture, *master.as_agents(road), "-o", tmp_path / "new.sqlite")
    assert (status, err) == (0, "")
    assert "2 nodes compared: 0 changed, 2 without a change" in out
    assert sorted(certname or "" for _, certname in master.received) == ["a.example", "b.example"]
    with Capture.open(capture) as recorded:
        sent = [
            one.request for one in recorded.records() if isinstance(one, Exchange) and "catalog" in one.request.path
        ]
    assert sorted(one.body for one, _ in master.received) == sorted(one.body for one in sent)
    assert sorted(one.target for one, _ in master.received) == sorted(one.target for one in sent)
    status, out, _ = run("diff", tmp_path / "new.sqlite", "--format", "json")
    assert (status, json_output.valid("diff", out)["without_change"]) == (0, ["a.example", "b.example"])
    status, out, err = run("diff", capture, tmp_path / "new.sqlite")
    assert (status, out) == (2, "")
    assert f"Name it alone: `puppet-inspector diff {tmp_path / 'new.sqlite'}`" in err


def test_json(run: Run, tmp_path: Path) -> None:
    with new_master(tmp_path, other) as master:
        words = [fleet(tmp_path, *NODES), *master.v4, "-o", tmp_path / "new.sqlite", "--json", "--twice"]
        status, out, _ = run("rehearse", *words)
    found = json_output.valid("rehearse", out)
    assert (status, found["status"], found["master"], found["road"]) == (2, 2, master.address, "v4")
    assert found["groups"][0]["nodes"] == ["a.example", "b.example"]
    assert found["without_change"] == ["c.example"]
    assert found["noise"] == {"differences": 0, "nodes": [], "not_measured": [], "left_out": []}
    assert (found["old_master"], found["revocation_checked"], found["warnings"], found["logs"]) == (None, False, [], [])
    assert {each["node"] for each in found["slowest"]} == {"a.example", "b.example", "c.example"}


def test_junit(run: Run, tmp_path: Path) -> None:
    with new_master(tmp_path, other) as master:
        words = [fleet(tmp_path, *NODES), *master.v4, "-o", tmp_path / "new.sqlite", "--junit", tmp_path / "j.xml"]
        run("rehearse", *words)
        assert run("rehearse", *words)[2].startswith(f"puppet-inspector: {tmp_path}/j.xml already exists.\n")
    suite = ET.fromstring((tmp_path / "j.xml").read_text())  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "2", "1")
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds == {"a.example": ["failure"], "b.example": ["failure"], "c.example": [], "d.example": ["error"]}


def test_a_page_to_pass_on(run: Run, tmp_path: Path) -> None:
    with new_master(tmp_path, other) as master:
        words = [fleet(tmp_path, *NODES), *master.v4]
        status, page, _ = run("rehearse", *words, "-o", tmp_path / "new.sqlite", "--format", "html")
        mistaken = run("rehearse", *words, "--with", "all")
        assert mistaken[2].startswith("puppet-inspector: --with is for pages.\n")
    assert (status, page[:15], page[-8:]) == (2, "<!DOCTYPE html>", "</html>\n")
    assert f"<h2>{master.address}, version 8.10.0" in page
    assert "3 nodes compared: 2 changed, 1 without a change; 1 not compared" in page
    assert "the same change on 2 nodes: a.example, b.example" in page
    assert '<li class="added">  + File[/etc/new]' in page


def test_nodes_are_chosen(run: Run, tmp_path: Path) -> None:
    with new_master(tmp_path) as master:
        words = [fleet(tmp_path, *NODES), *master.v4, "-o", tmp_path / "new.sqlite"]
        status, _, _ = run("rehearse", *words, "--agent", "[ab].example")
    assert status == 0
    assert len(master.received) == 2


def test_one_that_is_interrupted_at_once_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspector.rehearsal.rehearsal import Rehearsal

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Rehearsal, "_record", interrupted)
    with new_master(tmp_path) as master:
        status, _, err = run("rehearse", fleet(tmp_path, *NODES), *master.v4, "-o", tmp_path / "new.sqlite")
    assert status == 130
    assert "Interrupted before the first answer: nothing is recorded." in err
    assert "--resume" not in err
    assert not (tmp_path / "new.sqlite").exists()


def test_a_change_of_facts_that_fits_none_is_listed(run: Run, tmp_path: Path) -> None:
    with new_master(tmp_path) as master:
        words = [fleet(tmp_path, *NODES, facts={"osfamily": "Debian"}), *master.v4]
        extra = ["--drop-fact", "osfamly", "--drop-fact", "osfamily", "--fact", "osfamily=Debian"]
        status, out, _ = run("rehearse", *words, "-o", tmp_path / "a.sqlite", *extra)
        _, listed, _ = run("rehearse", *words, "-o", tmp_path / "b.sqlite", *extra, "--json")
    assert status == 0
    assert "  without osfamly: no node has such a fact, or it has this value\n" in out
    assert '  osfamily = "Debian": no node has such a fact, or it has this value\n' in out
    found = json_output.valid("rehearse", listed)
    assert found["facts_without_effect"] == ["without osfamly", 'osfamily = "Debian"']


def test_a_replay_is_no_recording_of_the_node(run: Run, tmp_path: Path) -> None:
    recorded = fleet(tmp_path, "a.example")
    folder = tmp_path / "captures"
    folder.mkdir()
    replayed = folder / "replayed.sqlite"
    shutil.copy(recorded, replayed)
    with contextlib.closing(sqlite3.connect(replayed)) as base, base:
        base.execute("INSERT INTO meta VALUES (?, ?)", (REPLAY_OF, "a.sqlite run 1"))
    with new_master(tmp_path) as master:
        words = [*master.v4, "-o", tmp_path / "new.sqlite"]
        status, _, err = run("rehearse", replayed, *words)
        assert (status, "is the capture of a replay: its agent need not be the node" in err) == (2, True)
        status, _, err = run("rehearse", folder, *words)
        assert (status, "There are only captures of replays in" in err) == (2, True)
        status, _, err = run("readiness", folder)
        assert (status, "There are only captures of replays in" in err) == (2, True)
        shutil.copy(recorded, folder / "recorded.sqlite")
        os.utime(replayed)  # the newest
        status, out, _ = run("rehearse", folder, *words)
    assert (status, "1 node compared" in out) == (0, True)


def test_an_interrupted_rehearsal_is_continued(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.rehearsal.rehearsal import Rehearsal

    capture, output = fleet(tmp_path, *NODES), tmp_path / "new.sqlite"
    take = Rehearsal._record

    def interrupted(self: Rehearsal, *words: Any) -> None:
        take(self, *words)
        if self.done == 2:
            raise KeyboardInterrupt

    with new_master(tmp_path, other) as master:
        words = ["rehearse", capture, *master.v4, "-o", output, "--jobs", "1"]
        with monkeypatch.context() as patched:
            patched.setattr(Rehearsal, "_record", interrupted)
            status, _, err = run(*words)
        assert status == 130
        assert "Interrupted after 2 of 4 nodes.\n" in err
        assert f"-o {output} --resume continues." in err
        before = len(master.received)
        status, out, _ = run(*words, "--resume", "--environment", "other")
        assert (status, out) == (2, "")
        with Capture.open(output) as made:
            known = made.count()
        status, out, _ = run(*words, "--resume")
    assert status == 2
    assert known == 2
    assert len(master.received) == before + 2
    assert "3 nodes compared: 2 changed, 1 without a change; 1 not compared\n" in out


def test_facts(run: Run, tmp_path: Path) -> None:
    def compiles(_name: str, facts: dict[str, Any], _environment: str) -> list[dict[str, Any]]:
        return [file("/etc/os", content=f"{facts.get('osfamily')} {facts['os']['family']}")]

    facts = {"osfamily": "Debian", "os": {"family": "Debian"}}
    with new_master(tmp_path, compiles) as master:
        capture = fleet(tmp_path, "a.example", facts=facts)
        for number, (words, after) in enumerate((
            (["--without-legacy-facts"], "None Debian"),
            (["--fact", "os.family=Suse"], "Debian Suse"),
            (["--drop-fact", "osfam*"], "None Debian"),
        )):  # fmt: skip
            output = tmp_path / f"new{number}.sqlite"
            status, out, _ = run("rehearse", capture, *master.v4, *words, "-o", output)
            assert status == 1
            assert f'~ File[/etc/os]/content: "Debian Debian" -> "{after}"' in out
            assert "compared: its catalogs with the recorded facts, and with others: " in out


def test_mistakes(run: Run, tmp_path: Path) -> None:
    capture = fleet(tmp_path, "a.example")
    with new_master(tmp_path, v4_allowed=False) as master:
        rest = [*master.v4, "-o", tmp_path / "new.sqlite"]
        for words, sentence, hint in (
            (["--environment", "a b"], "'a b' is no environment.", "Use letters"),
            (["--jobs", "0"], "--jobs 0 is not possible.", "Use a number from 1 to 64."),
            (["--timeout", "-1"], "--timeout -1 is not possible.", "Use a number of seconds."),
            (["--fact", "x"], "'x' gives no fact a value.", "Use the form NAME=VALUE"),
            (["--road", "v5"], "'v5' is no road.", "Use --road v4, keys:DIR or mint:CADIR."),
            (["--road", f"keys:{master.keys}"], "A master that stores in PuppetDB would overwrite", "Use --road v4"),
            (["--agent", "x*"], f"{capture} has no runs of 'x*'.", "It has runs of a.example."),
            (["--master", "localhost:1"], "Cannot connect to localhost:1: Connection refused.", "Check the address"),
            (
                ["--ca", tmp_path / "none.pem"],
                f"Cannot read the CA bundle {tmp_path}/none.pem: No such",
                "Name the new",
            ),
            (
                ["--crl", master.tool.ca],
                f"{master.tool.ca} has no CRL.",
                "Name the CRLs",
            ),
            (["--old-master", "old.example"], "--old-master is only of use with --twice", "Add --twice"),
            (
                ["--old-master", "old.example", "--twice", "--fact", "a=1"],
                "--old-master is only of use with --twice",
                "Leave it out.",
            ),
            (["--old-master", "localhost:1", "--twice"], "Cannot connect to localhost:1: Connection", "Check the"),
            (["--resume"], f"There is no capture at {tmp_path}/new.sqlite.", "Give"),
            ([], f"{master.address} does not allow tool.example to compile catalogs of nodes (403).", "Add this to"),
        ):
            status, out, err = run("rehearse", capture, *rest, *words)
            assert (status, out) == (2, ""), words
            assert err.startswith(f"puppet-inspector: {sentence}"), err
            assert f"\n  {hint}" in err
        assert '    allow: ["tool.example"]' in err
    assert not (tmp_path / "new.sqlite").exists()


def test_a_revoked_master(run: Run, tmp_path: Path) -> None:
    with new_master(tmp_path) as master:
        crl = master.tool.crl
        words = [fleet(tmp_path, "a.example"), *master.v4, "-o", tmp_path / "new.sqlite", "--crl", crl]
        hints = []
        for revoked in (False, True):
            if revoked:
                master.ca.revoke("localhost")
            crl.write_bytes(master.ca.crl_bundle if revoked else master.ca.signing_crl)
            status, out, err = run("rehearse", *words)
            assert (status, out, master.received) == (2, "", [])
            hints.append(err.splitlines()[1])
    assert hints == [
        f"  {crl} must have a valid CRL of each CA in its chain (on the CA: `puppet config print cacrl`).",
        f"  It needs a new certificate, unless {crl} is not its CA's.",
    ]


def test_another_ca(run: Run, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with new_master(tmp_path) as master, new_master(tmp_path / "one") as stranger:
        words = [*master.v4, "--ca", stranger.tool.ca, "-o", tmp_path / "new.sqlite"]
        status, out, err = run("rehearse", fleet(tmp_path, "a.example"), *words)
    assert (status, out, master.received) == (2, "", [])
    assert f"Cannot connect to {master.address}: certificate verify failed: " in err
    assert "(--ca names another bundle)" in err
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize("status", [200, 502])
def test_something_that_is_no_master(run: Run, tmp_path: Path, status: int) -> None:
    page = Response(
        status=status, headers=(("Content-Type", "text/html"),), body=b"<html><title>Gateway</title></html>"
    )
    with new_master(tmp_path, before=lambda _: page) as master:
        words = ["rehearse", fleet(tmp_path, "a.example"), *master.v4, "-o", tmp_path / "new.sqlite"]
        ended, out, err = run(*words)
    assert (ended, out) == (2, "")
    assert f"{master.address} answers with a web page ({status}): it is no master." in err
    assert not (tmp_path / "new.sqlite").exists()


def test_an_older_master(run: Run, tmp_path: Path) -> None:
    gone = Response(status=404, body=b"")
    with new_master(tmp_path, before=lambda _: gone) as master:
        words = ["rehearse", fleet(tmp_path, "a.example"), *master.v4, "-o", tmp_path / "new.sqlite"]
        ended, out, err = run(*words)
    assert (ended, out) == (2, "")
    assert f"{master.address} has no /puppet/v4/catalog (404): it is older than Puppet Server 6" in err


def test_a_key_that_cannot_be_read_is_said_with_what_to_do(run: Run, tmp_path: Path) -> None:
    with new_master(tmp_path) as master:
        private = serialization.load_pem_private_key(master.tool.key.read_bytes(), None)
        kinds = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        encrypted, none = tmp_path / "encrypted.pem", tmp_path / "none.pem"
        encrypted.write_bytes(private.private_bytes(*kinds, serialization.BestAvailableEncryption(b"x")))
        none.write_text("no key")
        words = [fleet(tmp_path, "a.example"), *master.v4, "-o", tmp_path / "new.sqlite"]
        for key, sentence, hint in (
            (encrypted, "Password was not given but private key is encrypted.", f"openssl pkey -in {encrypted} -out"),
            (none, "cannot be read as a private key: it contains none in PEM format.", "Name the file with the key"),
            (tmp_path / "x.pem", "cannot be read as a private key: No such file or directory.", "Name the file"),
        ):
            status, out, err = run("rehearse", *words, "--key", key)
            assert (status, out) == (2, "")
            assert sentence in err
            assert hint in err
        status, _, err = run("rehearse", *words, "--junit", tmp_path / "gone/j.xml")
    assert (status, len(master.received)) == (2, 0), "found before anything is asked"
    assert f"There is no directory {tmp_path / 'gone'}." in err

"""``doctor --cadir OLD --compare NEW``: what it prints, its JSON, its exit status, and mistakes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from inspector.host import pki
from inspector.runs.examples import ca as bundle
from inspector.runs.examples import catalog, crl, talk
from tests.support.ca_directories import ROOT, MadeCa
from tests.support.captures import save
from tests.support.json_output import valid
from tests.support.users import as_nobody

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

RULE = '{{ match-request: {{ path: "/", type: path }}, {}: "*", name: all, sort-order: 1 }}'
AUTH = f"authorization: {{{{ version: 1, rules: [ {RULE} ] }}}}"


@pytest.fixture
def old() -> MadeCa:
    ca = MadeCa()
    for name in ("node1.example", "node2.example"):
        ca.issue(name)
    return ca


def snapshot(path: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p), (s := p.lstat()).st_mode, s.st_mtime_ns) for p in path.rglob("*"))


def test_no_difference(run: Run, tmp_path: Path, old: MadeCa) -> None:
    paths = [old.write(tmp_path / name) for name in ("old", "new")]
    before = snapshot(tmp_path)
    status, out, err = run("doctor", "--cadir", paths[0], "--compare", paths[1])
    assert (status, err) == (0, "")
    facts = "CN=Puppet CA: ca.example, 2 certificates, 0 requests, CRL 1 with 0 revoked, next serial number 0x0005"
    assert out.splitlines()[:3] == [f"OLD {paths[0]}: {facts}", f"NEW {paths[1]}: {facts}", "no difference for 2 nodes"]
    assert "note: no ca.conf lies beside OLD's directory: what it would sign was not compared" in out
    assert snapshot(tmp_path) == before


def test_a_difference_with_its_nodes_and_fix(run: Run, tmp_path: Path, old: MadeCa) -> None:
    new = old.copy()
    new.write(tmp_path / "new")
    old.revoke("node1.example")
    old.write(tmp_path / "old")
    script = tmp_path / "heal.sh"
    options = ("doctor", "--cadir", tmp_path / "old", "--compare", tmp_path / "new", "--fix-script", script)
    status, out, _ = run(*options)
    assert status == 1
    assert "1 error for 2 nodes\n" in out
    assert "ERROR revoked nodes that NEW accepts again: " in out
    assert f"wrote {script}" in out
    assert f"puppet-inspector fix new-crl --cadir {tmp_path / 'new'}" in script.read_text()
    document = valid("doctor", run(*options, "--json")[1])
    assert document["headline"] == "1 error for 2 nodes"
    assert document["fix_script"] == str(script)
    (difference,) = document["differences"]
    assert (difference["severity"], difference["nodes"], difference["rule"]) == ("error", ["node1.example"], "B15")
    assert (document["old"]["kind"], document["old"]["next_serial"]) == ("directory", "0x0005")
    assert [crl["revoked"] for crl in document["old"]["crls"]] == [1, 0]


def test_a_capture_and_a_directory(run: Run, tmp_path: Path) -> None:
    """The nodes of a recording against the directory of another CA."""
    capture = save(tmp_path / "a.sqlite", *talk(bundle(), crl(number=1), catalog()))
    new = MadeCa(authority=pki.make_ca("Puppet CA: other.example", ROOT, serial=2)).write(tmp_path / "new")
    status, out, _ = run("doctor", capture, "--compare", new)
    assert status == 1
    assert "ERROR NEW is another CA: " in out
    assert "NEW refuses 1 node: node1.example" in out
    assert "note: OLD does not show its serial numbers, its inventory and its settings" in out
    assert run("doctor", "--cadir", new, "--compare", capture)[0] == 1


def test_auth_conf_beside_both(run: Run, tmp_path: Path, old: MadeCa) -> None:
    for name, word in (("old", "allow"), ("new", "deny")):
        (tmp_path / name / "conf.d").mkdir(parents=True)
        (tmp_path / name / "conf.d/auth.conf").write_text(AUTH.format(word))
        old.write(tmp_path / name / "ca")
    options = ("doctor", "--cadir", tmp_path / "old/ca", "--compare", tmp_path / "new/ca")
    status, out, _ = run(*options)
    assert status == 0
    assert "NOTICE auth.conf differs: " in out
    assert "puppet-inspector auth <capture> --auth-conf " in out
    capture = save(tmp_path / "a.sqlite", *talk(catalog()))
    status, out, _ = run(*options, capture)
    assert status == 1
    assert "ERROR auth.conf decides otherwise: 1 of 1 recorded request would be answered otherwise: " in out
    assert "of node1.example: denied by" in out
    (tmp_path / "new/conf.d/auth.conf").write_text("authorization: {")
    assert "ERROR an auth.conf is unusable: " in run(*options, capture)[1]


def test_mistakes(run: Run, tmp_path: Path, old: MadeCa) -> None:
    path = old.write(tmp_path / "old")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("text")
    (tmp_path / "link").symlink_to(path)
    for words, text in (
        (("--compare", path), "--compare needs one CA to compare with."),
        (("--cadir", path, "--compare", path), "OLD and NEW are the same"),
        (("--cadir", path, "--compare", tmp_path / "link"), "OLD and NEW are the same"),
        (("--cadir", path, "--compare", tmp_path / "empty"), "is not a cadir"),
        (("--cadir", tmp_path / "empty", "--compare", path), "is not a cadir"),
        (("--cadir", path, "--compare", tmp_path / "nothing"), "There is no directory"),
        (("--cadir", tmp_path / "nothing", "--compare", path), "There is no directory"),
        (("--cadir", path, "--compare", tmp_path / "text"), "is not a capture"),
        (("--cadir", path, "--compare", "a:b:c:d:99999999"), ""),
        (("--cadir", path, "--compare", "127.0.0.1:1"), "No CA answers at 127.0.0.1:1"),
        (("--cadir", path, "--compare", path, "--live", "x"), "--live cannot be used with --compare."),
        (("--cadir", path, "--compare", path, "--ssldir", path), "--ssldir cannot be used with --compare."),
    ):
        status, out, err = run("doctor", *words)
        assert (status, out) == (2, ""), words
        assert err.startswith("puppet-inspector: ")
        assert text in err


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_directories_that_the_user_may_not_read(tmp_path_factory: pytest.TempPathFactory, old: MadeCa) -> None:
    base = tmp_path_factory.mktemp("ca")
    status, out, err = as_nobody("doctor", "--cadir", old.write(base / "old"), "--compare", old.write(base / "new"))
    assert (status, out) == (2, "")
    assert "Run this as root." in err

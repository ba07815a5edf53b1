"""A CA that moves to another host: what ``doctor --compare`` says that NEW does, and what real agents get from it.

The session's master is NEW, and OLD a copy of its directory at an earlier or later moment: so one server is enough.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from inspector.cli import main
from tests.real.machine import write_puppet_conf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.real.agent import RealAgent
    from tests.real.puppet import RealMaster
    from tests.real.through import Stage

REFUSED, AGAIN = "nodes that NEW refuses", "revoked nodes that NEW accepts again"
BORN = "born.example"
NUMBERS = "NEW gives serial numbers of OLD again"


def copied(master: RealMaster, to: Path) -> Path:
    shutil.copytree(master.cadir, to)
    return to


def serves_its_crl(master: RealMaster, timeout: float = 60) -> None:
    """Wait until the server has taken over its CRL file."""
    deadline = time.monotonic() + timeout
    while (master.ssldir / "crl.pem").read_bytes() != (master.cadir / "ca_crl.pem").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(2)  # and until its connections have


def test_what_new_does_is_what_agents_get(stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    master = stage.master

    def found(old: Path, new: object) -> dict[str, list[str]]:
        """The nodes of each difference."""
        capsys.readouterr()
        main.main(["doctor", "--cadir", str(old), "--compare", str(new), "--json"])
        return {one["what"]: one["nodes"] for one in json.loads(capsys.readouterr().out)["differences"]}

    def accepted(agent: RealAgent) -> bool:
        return stage.direct.run(agent).status in (0, 2)

    stays, left = stage.enrolled("stays.example"), stage.enrolled("left.example")
    before = copied(master, tmp_path / "before")
    assert found(before, master.cadir) == {}

    master.revoke(left.certname)
    serves_its_crl(master)
    for new in (master.cadir, f"{master.name}:{master.port}"):
        assert found(before, new) == {REFUSED: [left.certname]}
    assert (accepted(stays), accepted(left)) == (True, False)

    after = copied(master, tmp_path / "after")
    shutil.copyfile(before / "ca_crl.pem", master.cadir / "ca_crl.pem")
    serves_its_crl(master)
    for new in (master.cadir, f"{master.name}:{master.port}"):
        assert found(after, new) == {AGAIN: [left.certname]}
    shutil.copyfile(before / "ca_crl.pem", left.ssldir / "crl.pem")  # else it refuses its own certificate
    assert accepted(left)

    fix = ["fix", "new-crl", "--cadir", f"{master.cadir}", "--add", f"{after / 'ca_crl.pem'}", "--execute"]
    assert main.main(fix) == 0
    for backup in master.cadir.glob("ca_crl.pem.*"):
        backup.unlink()
    serves_its_crl(master)
    assert found(after, master.cadir) == {}
    assert not accepted(left)

    with_number(master, left, lambda: born(stage, found, after))


def with_number(master: RealMaster, of: RealAgent, play: Callable[[], None]) -> None:
    """Play something while the CA gives the serial number of a node next."""
    files = [master.cadir / "serial", master.cadir / "inventory.txt"]
    texts = [file.read_text() for file in files]
    line = next(line for line in texts[1].splitlines() if line.endswith(f"/CN={of.certname}"))
    files[0].write_text(f"{int(line.partition(' ')[0], 16):04X}")
    try:
        play()
    finally:  # other tests look at this directory
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        (master.cadir / f"signed/{BORN}.pem").unlink(missing_ok=True)


def born(stage: Stage, found: Callable[[Path, object], dict[str, list[str]]], old: Path) -> None:
    """A new node gets a revoked number, and is refused with its first connection."""
    assert NUMBERS in found(old, stage.master.cadir)
    agent = stage.enrolled(BORN)
    assert "NEW: several certificates with one serial number" in found(old, stage.master.cadir)
    assert stage.direct.run(agent).status == 1


def test_an_imported_ca_counts_from_the_beginning(
    master: RealMaster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, conf = copied(master, tmp_path / "old"), tmp_path / "new"
    conf.mkdir()
    settings = {"confdir": conf, "ssldir": conf / "ssl", "cadir": conf / "ca", "certname": "new.example"}
    write_puppet_conf(conf, {"main": settings | {"keylength": 2048}})
    imported = ("--private-key", "ca_key.pem", "--cert-bundle", "ca_crt.pem", "--crl-chain", "ca_crl.pem")
    words = [word if word.startswith("--") else f"{old / word}" for word in imported]
    subprocess.run(["puppetserver", "ca", "import", *words, "--config", f"{conf}/puppet.conf"], check=True)
    assert main.main(["doctor", "--cadir", f"{old}", "--compare", f"{conf / 'ca'}", "--json"]) == 1
    found = {one["what"] for one in json.loads(capsys.readouterr().out)["differences"]}
    assert {NUMBERS, "nodes that NEW does not know", "NEW's inventory lacks certificates of OLD"} <= found
    assert REFUSED not in found

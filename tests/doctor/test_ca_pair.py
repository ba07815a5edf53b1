"""What comparisons need of two CAs: who has a serial number, where files are, which program NEW is."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from inspector.doctor import ca_view
from inspector.doctor.ca_pair import Ident, Pair, second
from inspector.doctor.ca_view import CaView
from tests.support.ca_directories import MadeCa

if TYPE_CHECKING:
    from pathlib import Path


def pair(tmp_path: Path, *, openvox: bool = False) -> Pair:
    ca = MadeCa()
    ca.issue("node1.example")
    old = ca_view.of_directory(ca.write(tmp_path / "old one"))
    new = ca_view.of_directory(ca.write(tmp_path / "new one", openvox=openvox))
    return Pair(old, new, time.time())


def test_who_has_a_serial_number(tmp_path: Path) -> None:
    both = pair(tmp_path, openvox=True)
    old, new = both.given(both.old), both.given(both.new)
    assert (both.same_key, both.names) == (True, {3: "node1.example"})
    assert old == new
    assert old[3].issued
    assert not old[3].is_not(Ident("node1.example", "", ""))
    assert old[3].is_not(Ident("node2.example", "", ""))
    assert old[3].is_not(old[3]._replace(fingerprint="00"))


def test_paths_are_quoted_or_blanks(tmp_path: Path) -> None:
    both = pair(tmp_path)
    command = ["/bin/sh", "-c", f"ls -d {both.of_old('.', 'signed')}"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    assert shown.stdout.splitlines() == [f"{tmp_path}/old one", f"{tmp_path}/old one/signed"]
    live = Pair(CaView("capture", "a"), CaView("live", "b"), 0)
    assert (live.of_old("."), live.of_new("serial")) == ("<directory of OLD>", "<directory of NEW>/serial")
    assert not live.same_key


def test_the_program_that_new_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for directory, openvox, service in ((tmp_path / "a", False, "puppetserver"), (tmp_path / "b", True, "openvox-ca")):
        both = pair(directory, openvox=openvox)
        assert both.openvox is openvox
        assert [both.stop.command, both.start.command] == [f"systemctl {word} {service}" for word in ("stop", "start")]


def test_a_time_as_an_inventory_has_it() -> None:
    assert second(0) == "1970-01-01T00:00:00"
    assert second(1e300) == ""

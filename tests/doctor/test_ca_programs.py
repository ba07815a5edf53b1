"""What is particular to each CA's program; ``test_cadir`` examines whole directories."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from inspector.doctor import cadir
from inspector.doctor.ca_programs import OPENVOX, PUPPET, CaProgram
from inspector.doctor.cadir import CaDir
from inspector.doctor.puppet_dir import Folder
from inspector.rules.fixes import group
from tests.support.ca_directories import MadeCa

if TYPE_CHECKING:
    from pathlib import Path

BOTH = pytest.mark.parametrize("program", [PUPPET, OPENVOX], ids=lambda program: program.unit)


@BOTH
def test_a_directory_is_known_by_its_program(tmp_path: Path, program: CaProgram) -> None:
    path = MadeCa().write(tmp_path / "ca", openvox=program is OPENVOX)
    found = cadir.read(path)
    assert found.program is program
    assert all((path / name).is_file() for name in (*program.needed, program.key_file))
    assert (found.serial is None) is (program is OPENVOX)


@BOTH
def test_fixes_name_the_directory(tmp_path: Path, program: CaProgram) -> None:
    """Its commands are to be pasted: none has a blank where the path is known, or asks Puppet for another one."""
    steps = CaDir(folder=Folder(tmp_path), program=program).steps(*program.new_crl, group("missing_crl"))
    commands = [step.command for step in steps if step.command]
    assert any(f"{tmp_path}" in command for command in commands)
    assert not [command for command in commands if "cadir>" in command or "print cadir" in command or "{" in command]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_a_secret_that_all_users_may_read_is_named_once(tmp_path: Path) -> None:
    """The password of a Puppet CA that the openvox-ca took over lies among its own secrets."""
    path = MadeCa().write(tmp_path / "ca", openvox=True)
    (path / "private/ca.pass").write_text("secret")
    (path / "private/ca.pass").chmod(0o644)
    [found] = [one for one in cadir.examine(cadir.read(path), 0) if one.title == "private key accessible to all users"]
    assert found.detail == "private/ca.pass is 0644 root"

"""Dropping root privileges: for real if the tests run as root, and the refusals."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host import pki, privileges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Run

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")

DROPPED = """
import os, sys
from pathlib import Path
from inspector.host import privileges
from inspector.proxy import identity
from inspector.errors import InspectorError
closed, group, made = map(Path, sys.argv[1:])
privileges.drop("nobody")
print(os.getresuid(), os.getresgid(), os.getgroups(), os.environ["HOME"])
for key in (closed, group):
    try:
        print(key.name, len(identity.load(key, key).chain))
    except InspectorError as error:
        print(key.name, "Permission denied" in str(error))
try:
    os.seteuid(0)
except PermissionError:
    print("for good")
made.write_text("")
print(oct(made.stat().st_mode & 0o777))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in which other users can open files by name; pytest's own directories are closed to them."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@ROOT
def test_root_becomes_the_user_for_good(place: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    key = pki.new_key()
    pem = pki.key_pem(key) + pki.pem(pki.sign(pki.make_ca("ca"), key.public_key(), "a.example"))
    closed, group, room = place / "closed.pem", place / "group.pem", place / "room"
    for file, mode in ((closed, 0o600), (group, 0o640)):
        pki.write_private(file, pem)
        file.chmod(mode)
    os.chown(group, 0, nobody.pw_gid)
    room.mkdir()
    os.chown(room, nobody.pw_uid, nobody.pw_gid)
    command = [sys.executable, "-c", DROPPED, *map(str, (closed, group, room / "made"))]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    uid, gid = nobody.pw_uid, nobody.pw_gid
    assert lines == [
        f"{(uid,) * 3} {(gid,) * 3} {sorted(os.getgrouplist('nobody', gid))} {nobody.pw_dir}",
        "closed.pem True",  # readable for root only: unreadable after the drop
        "group.pem 1",
        "for good",
        "0o600",
    ]


@pytest.mark.parametrize("name", ["no-such-user", "", "a\0b"])
def test_an_unknown_user(name: str) -> None:
    with pytest.raises(InspectorError, match="There is no user"):
        privileges.drop(name)


def test_becoming_root_is_refused() -> None:
    with pytest.raises(InspectorError, match="none would be dropped"):
        privileges.drop("root")


def test_only_root_becomes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(InspectorError, match="Only root can become user nobody"):
        privileges.drop("nobody")


def test_remaining_privileges_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel, or a capability, that leaves the process more than it should have."""
    done = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("setgroups", "setresgid", "setresuid", "setuid"):
        monkeypatch.setattr(os, name, lambda *given, name=name: done.append((name, *given)))
    nobody = pwd.getpwnam("nobody")
    monkeypatch.setattr(os, "getresuid", lambda: (nobody.pw_uid,) * 3)
    monkeypatch.setattr(os, "getresgid", lambda: (nobody.pw_gid,) * 3)
    with pytest.raises(InspectorError, match="could not be dropped"):
        privileges.drop("nobody")
    # Groups while it still may, the user last.
    assert [name for name, *_ in done] == ["setgroups", "setresgid", "setresuid", "setuid"]


def test_the_proxy_drops_root_before_anything_else(run: Run) -> None:
    status, out, err = run("proxy", "--user", "no-such-user", "--set", "puppet_ca=/nowhere")
    assert (status, out) == (2, "")
    assert err.startswith(
        "puppet-inspector: There is no user 'no-such-user'.\n  Create one that may read Puppet's keys:"
    )


@pytest.mark.parametrize("number", ["1", "2"])
def test_a_user_who_can_not_execute_python_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied", sys.executable)

    monkeypatch.setattr("os.execv", closed)
    monkeypatch.setattr("inspector.proxy.workers.Workers", closed)
    status, _, error = run("proxy", "--workers", number)
    assert status == 2
    assert f"Cannot execute {sys.executable}: Permission denied." in error
    assert "--user" in error

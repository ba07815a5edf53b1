"""Giving up root: once for real, where the tests run as root; and what is refused."""

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

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")

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
    """A directory in which others find what they know the name of; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@ROOT
def test_root_goes_on_as_the_user_and_nobody_goes_back(place: Path) -> None:
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
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    uid, gid = nobody.pw_uid, nobody.pw_gid
    assert told == [
        f"{(uid,) * 3} {(gid,) * 3} {sorted(os.getgrouplist('nobody', gid))} {nobody.pw_dir}",
        "closed.pem True",  # what only root could read is not read before, nor after
        "group.pem 1",
        "for good",
        "0o600",
    ]


@pytest.mark.parametrize("name", ["no-such-user", "", "a\0b"])
def test_a_user_that_is_none(name: str) -> None:
    with pytest.raises(InspectorError, match="There is no user"):
        privileges.drop(name)


def test_root_is_nobody_to_become() -> None:
    with pytest.raises(InspectorError, match="nothing would be given up"):
        privileges.drop("root")


def test_only_root_becomes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(InspectorError, match="Only root can become nobody"):
        privileges.drop("nobody")


def test_what_was_not_given_up_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel, or a capability, that lets it keep more than it should."""
    done = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("setgroups", "setresgid", "setresuid", "setuid"):
        monkeypatch.setattr(os, name, lambda *given, name=name: done.append((name, *given)))
    nobody = pwd.getpwnam("nobody")
    monkeypatch.setattr(os, "getresuid", lambda: (nobody.pw_uid,) * 3)
    monkeypatch.setattr(os, "getresgid", lambda: (nobody.pw_gid,) * 3)
    with pytest.raises(InspectorError, match="could not be given up"):
        privileges.drop("nobody")
    # Groups while it still may, the user last.
    assert [name for name, *_ in done] == ["setgroups", "setresgid", "setresuid", "setuid"]


def test_the_proxy_gives_up_root_before_anything_else(run: Run) -> None:
    status, out, err = run("proxy", "--user", "no-such-user", "--set", "puppet_ca=/nowhere")
    assert (status, out) == (2, "")
    assert err.startswith("puppet-inspector: There is no user 'no-such-user'.\n  Make one that may read Puppet's keys:")


@pytest.mark.parametrize("number", ["1", "2"])
def test_a_user_who_can_not_execute_python_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied", sys.executable)

    monkeypatch.setattr("os.execv", closed)
    monkeypatch.setattr("inspector.proxy.fast.workers.Workers", closed)
    status, _, error = run("proxy", "--workers", number)
    assert status == 2
    assert f"{sys.executable} can't be executed: Permission denied." in error
    assert "--user" in error

"""Only regular files are read, and no more of them than can be used."""

from __future__ import annotations

import gzip
import os
import re
from typing import TYPE_CHECKING

import pytest

from inspector import inputs, installation
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.errors import IdentityError, InspectorError
from inspector.host import pki, serverconf
from inspector.proxy.identity import KeyDirectory
from inspector.summaries import inventory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a directory": lambda path: path.mkdir(),
}


def test_a_home_directory_that_nobody_has_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of/mine")
    assert str(inputs.expanded("~/x")) == "/home/of/mine/x"
    with pytest.raises(InspectorError, match="~nobody-of-this-name/x has no home directory"):
        inputs.expanded("~nobody-of-this-name/x")


@pytest.mark.parametrize("name", ODD)
def test_what_is_not_a_file_is_not_waited_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    ODD[name](path)
    assert not inputs.regular(path)
    with pytest.raises(OSError) as raised:  # noqa: PT011 - which one depends on what it is
        inputs.read(path)
    assert raised.value.strerror


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert inputs.regular(path)
    path.write_bytes(b"abc")
    assert inputs.regular(path)
    assert inputs.read(path, 3) == b"abc"
    with pytest.raises(OSError, match="larger than 2 bytes"):
        inputs.read(path, 2)


def test_a_link_is_followed_only_if_that_is_meant(tmp_path: Path) -> None:
    path, link = tmp_path / "x", tmp_path / "y"
    path.write_bytes(b"abc")
    link.symlink_to(path)
    assert inputs.read(link) == b"abc"
    with pytest.raises(OSError, match="symbolic links"):
        inputs.read(link, links=False)


OURS = {
    "inputs.py", "capture/present.py", "cli/explain.py", "cli/main.py", "doctor/puppet_dir.py", "fleet/confined.py",
    "fleet/directory.py", "host/puppetconf.py", "installation.py",
}  # fmt: skip
"""The module itself, one that asks for the locks on a file and reads nothing of it, one that reads a page of the
package, one that opens /dev/null for an output that is closed, one that reports each file that is none, one that reads
how much memory it has, one that locks a directory, one that reads /etc/resolv.conf, and one that reads the package's
own messages."""
READING = re.compile(
    r'\.read_bytes\(|\.read_text\(|\.open\("rb?"|O_RDONLY(?! \| os\.O_DIRECTORY)|(?<![\w.])(?<!def )open\('
)


def test_nothing_else_opens_a_file_to_read() -> None:
    assert {
        str(path.relative_to(installation.PACKAGE))
        for path in installation.PACKAGE.rglob("*.py")
        if READING.search(path.read_text()) and "lab" not in path.parts
    } == OURS


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_are_cut_where_they_are_too_long(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "x"
    path.write_bytes(pack(b"a\n" + b"b" * 25 + b"\n\nc"))
    assert [line for line, _ in inputs.lines(path, 10)] == [b"a\n", b"b" * 10, b"\n", b"c"]
    assert [at for _, at in inputs.lines(path, 10)][-1] <= path.stat().st_size


def test_lines_of_a_damaged_file_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b"a\n" * 1000)[:-9])
    with pytest.raises(OSError, match="damaged"):
        list(inputs.lines(path))


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A directory that this user may not enter, with a file and a directory in it."""
    if os.geteuid() != 0:
        pytest.skip("changes the user")
    for path in (tmp_path, *tmp_path.parents):
        path.chmod(path.stat().st_mode | 0o055)
    (tmp_path / "closed/folder").mkdir(parents=True)
    (tmp_path / "closed/a.sqlite").touch()
    (tmp_path / "closed").chmod(0o700)
    os.seteuid(65534)
    yield tmp_path / "closed"
    os.seteuid(0)


@pytest.mark.parametrize("tell", [inputs.exists, inputs.is_file, inputs.is_directory])
def test_what_cannot_be_seen_is_not_called_missing(tell: Callable[[Path], bool], closed: Path) -> None:
    for name in ("a.sqlite", "folder", "nothing"):
        with pytest.raises(PermissionError):
            tell(closed / name)


@pytest.mark.parametrize("look", [Capture.open, lambda path: paths.chosen([path]), inventory.captures_in,
                                  KeyDirectory, serverconf.read])  # fmt: skip
def test_no_command_calls_missing_what_it_may_not_see(look: Callable[[Path], object], closed: Path) -> None:
    for name in ("a.sqlite", "folder"):
        with pytest.raises(PermissionError):
            look(closed / name)


def test_a_key_that_cannot_be_seen_is_not_called_missing(closed: Path) -> None:
    with pytest.raises(IdentityError, match="no key for node: Permission denied"):
        KeyDirectory(closed / "folder", made_later=True).credentials_for(pki.make_ca("CA").certificate, "node")


def test_what_is_at_a_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "broken").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    found = {}
    for name in (".", "file", "link", "broken", "loop", "nothing", "file/below", "a\0b"):
        path = tmp_path / name
        found[name] = (inputs.exists(path), inputs.is_file(path), inputs.is_directory(path))
    nothing = (False, False, False)
    assert found == {
        ".": (True, False, True), "file": (True, True, False), "link": (True, True, False),
        "broken": nothing, "loop": nothing, "nothing": nothing, "file/below": nothing, "a\0b": nothing,
    }  # fmt: skip

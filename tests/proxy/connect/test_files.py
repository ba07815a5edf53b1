"""The copies that an agent uses in one run, and what of them reaches the node's own files."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host import pki
from inspector.proxy.connect import files
from inspector.proxy.connect.files import RunFile
from inspector.proxy.connect.interception import RunAuthority

if TYPE_CHECKING:
    from pathlib import Path

OLD = 1_500_000_000 * 10**9
"""A time in nanoseconds, long ago."""


@pytest.fixture(scope="module")
def authority() -> RunAuthority:
    return RunAuthority(timedelta(days=2))


@pytest.fixture(scope="module")
def bundles() -> list[bytes]:
    return [pki.pem(pki.make_ca(f"Puppet CA: {number}").certificate) for number in range(2)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is complete at once."""
    monkeypatch.setattr(files, "WRITTEN", -3600.0)


class Node:
    """A file of a node, and the copy of its agent."""

    def __init__(self, folder: Path, authority: RunAuthority, content: bytes | None) -> None:
        self.own, self.copy, self.addition = folder / "own.pem", folder / "copy.pem", authority.certificate
        if content is not None:
            self.own.write_bytes(content)
            os.utime(self.own, ns=(OLD, OLD))
        self.file = RunFile(self.own, self.copy, authority.certificate, authority.removed)

    def write(self, content: bytes) -> None:
        """Write the copy as Puppet does."""
        fresh = self.copy.with_name("fresh")
        fresh.write_bytes(content)
        fresh.replace(self.copy)

    @property
    def written(self) -> int:
        """When the node's own file was written."""
        return self.own.stat().st_mtime_ns


@pytest.fixture
def node(tmp_path: Path, authority: RunAuthority, bundles: list[bytes]) -> Node:
    return Node(tmp_path, authority, bundles[0])


def test_a_copy_is_the_nodes_file_and_more(node: Node, bundles: list[bytes]) -> None:
    assert node.copy.read_bytes() == node.addition + bundles[0]
    assert node.copy.stat().st_mtime_ns == OLD, "an agent asks by it whether something is newer"
    assert node.copy.stat().st_mode == node.own.stat().st_mode


def test_what_follows_a_block_is_as_bad_as_before(
    tmp_path: Path, authority: RunAuthority, bundles: list[bytes]
) -> None:
    """A block that does not end would end with ours."""
    content = bundles[0] + b"-----BEGIN CERTIFICATE-----\ngarbage"
    assert Node(tmp_path, authority, content).copy.read_bytes() == authority.certificate + content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage\n",
        b"-----BEGIN CERTIFICATE-----\ngarbage\n",
        b"-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n",
        b"-----BEGIN X509 CRL-----\ngarbage\n-----END X509 CRL-----\n",
    ],
)
def test_a_file_at_which_an_agent_stops_is_left_to_it(content: bytes, tmp_path: Path, authority: RunAuthority) -> None:
    node = Node(tmp_path, authority, content)
    assert not files.usable(node.own, files.CERTIFICATE)
    assert not node.copy.exists()
    node.file.sync(ended=True)
    assert node.own.read_bytes() == content


def test_what_is_missing_stays_missing(tmp_path: Path, authority: RunAuthority) -> None:
    node = Node(tmp_path, authority, None)
    assert not node.copy.exists()
    node.file.sync()
    node.file.sync(ended=True)
    assert not node.own.exists()
    assert not node.copy.exists()


def test_a_file_that_cannot_be_read_is_left_to_the_agent(tmp_path: Path, authority: RunAuthority) -> None:
    (tmp_path / "own.pem").mkdir()
    node = Node(tmp_path, authority, None)
    assert not files.usable(node.own, files.CERTIFICATE)
    assert not node.copy.exists()
    node.file.sync(ended=True)
    assert node.own.is_dir()


@pytest.mark.parametrize("label", [files.CERTIFICATE, files.CRL])
def test_what_an_agent_goes_on_with(label: bytes, tmp_path: Path, bundles: list[bytes]) -> None:
    path = tmp_path / "own.pem"
    assert files.usable(path, label)
    path.write_bytes(bundles[0])
    assert files.usable(path, label) is (label == files.CERTIFICATE)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("before", [True, False])
def test_what_the_agent_writes_reaches_the_node_without_our_ca(
    before: bool, ended: bool, tmp_path: Path, authority: RunAuthority, bundles: list[bytes]
) -> None:
    node = Node(tmp_path, authority, bundles[0] if before else None)
    node.write(bundles[1] + node.addition)
    node.copy.chmod(0o640)
    os.utime(node.copy, ns=(OLD + 5, OLD + 5))
    node.file.sync(ended=ended)
    assert node.own.read_bytes() == bundles[1]
    assert (node.own.stat().st_mode & 0o777, node.written) == (0o640, OLD + 5)
    assert [path.name for path in tmp_path.iterdir() if path not in (node.own, node.copy)] == []
    node.write(bundles[0] + bundles[1] + node.addition)
    node.file.sync(ended=ended)
    assert node.own.read_bytes() == bundles[0] + bundles[1]


def test_what_the_agent_does_not_write_is_not_written(node: Node, bundles: list[bytes]) -> None:
    before = node.own.stat()
    node.file.sync()
    node.file.sync(ended=True)
    assert node.own.stat() == before


def test_when_the_agent_asked_is_passed_on(node: Node, bundles: list[bytes]) -> None:
    """Nothing was newer, and the agent notes when it asked."""
    inode = node.own.stat().st_ino
    os.utime(node.copy, ns=(OLD + 7, OLD + 7))
    node.file.sync()
    assert (node.own.read_bytes(), node.own.stat().st_ino, node.written) == (bundles[0], inode, OLD + 7)


def test_what_the_agent_may_make_of_its_rights_is_passed_on(node: Node, bundles: list[bytes]) -> None:
    """Its settings have owner and mode of these files."""
    node.copy.chmod(0o600)
    node.file.sync()
    assert node.own.stat().st_mode & 0o777 == 0o600
    assert (node.own.read_bytes(), node.written) == (bundles[0], OLD)
    node.own.chmod(0o644)
    node.file.sync(ended=True)
    assert node.own.stat().st_mode & 0o777 == 0o644, "what somebody else makes of them stays"


def test_a_file_without_a_final_newline_is_not_rewritten(
    tmp_path: Path, authority: RunAuthority, bundles: list[bytes]
) -> None:
    node = Node(tmp_path, authority, bundles[0].rstrip())
    os.utime(node.copy, ns=(OLD + 7, OLD + 7))
    node.file.sync(ended=True)
    assert (node.own.read_bytes(), node.written) == (bundles[0].rstrip(), OLD + 7)


@pytest.mark.parametrize("ended", [False, True])
def test_half_a_file_is_not_passed_on(ended: bool, node: Node, bundles: list[bytes]) -> None:
    whole = bundles[1] + node.addition
    for size in (0, 10, len(bundles[1]) // 2, len(whole) - 10):
        node.write(whole[:size])
        node.file.sync(ended=ended)
        assert node.own.read_bytes() == bundles[0], size
    node.write(whole)
    node.file.sync(ended=ended)
    assert node.own.read_bytes() == bundles[1]


def test_what_was_written_just_now_is_not_passed_on_before_the_end(
    node: Node, bundles: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "WRITTEN", 3600.0)
    node.write(bundles[1] + node.addition)
    node.file.sync()
    assert node.own.read_bytes() == bundles[0]
    node.file.sync(ended=True)
    assert node.own.read_bytes() == bundles[1]


def test_a_file_that_somebody_else_changed_is_left_alone(node: Node, bundles: list[bytes]) -> None:
    node.own.write_bytes(b"of somebody else")
    node.write(bundles[1] + node.addition)
    with pytest.raises(InspectorError, match="changed by another process"):
        node.file.sync()
    assert node.own.read_bytes() == b"of somebody else"
    node.file.sync()  # it is said once for each time that the agent writes


def test_a_file_that_somebody_else_made_is_left_alone(
    tmp_path: Path, authority: RunAuthority, bundles: list[bytes]
) -> None:
    node = Node(tmp_path, authority, None)
    node.own.write_bytes(b"of somebody else")
    node.write(bundles[1] + node.addition)
    with pytest.raises(InspectorError, match="changed by another process"):
        node.file.sync(ended=True)
    assert node.own.read_bytes() == b"of somebody else"


def test_a_file_that_somebody_removed_is_no_failure_of_ours(node: Node) -> None:
    node.own.unlink()
    os.utime(node.copy, ns=(OLD + 7, OLD + 7))
    with pytest.raises(InspectorError, match=str(node.own)):
        node.file.sync()
    assert not node.own.exists()


def test_a_copy_that_the_agent_removes_removes_nothing(node: Node, bundles: list[bytes]) -> None:
    node.copy.unlink()
    node.file.sync(ended=True)
    assert node.own.read_bytes() == bundles[0]

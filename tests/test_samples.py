"""The recorded samples hold nothing of the machine they were recorded on, and are single files."""

from __future__ import annotations

import functools
import gzip
import ipaddress
import platform
import re
import socket
import sqlite3
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

import pytest
import zstandard

from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = places.ROOT
SAMPLES = ROOT / "captures/samples"
NAMES = ("first-run", "bootstrap-waiting", "out-of-sync", "compile-error", "mismatched-key", "revoked",
         "upgrade/recorded", "upgrade/rehearsed", "versions/puppet-8", "versions/openvox-9")  # fmt: skip
LIMIT = 150_000

PLACES = (str(ROOT).encode(), b"/tmp/", b"/root", b"/home/", b"pyenv", b"/usr/local", b"/sbin:", b"puppet-inspector-")
ADDRESS = re.compile(rb"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}")
MAC = re.compile(rb"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])|(?<![\w:])fe80::")
KERNEL = re.compile(rb"(?<![\d.])\d+\.\d+\.\d+-\d+-\w+")
INVENTED = {"6.1.0-18-amd64", "localhost", "puppet", "proxy", "node1", "node2", "agent", "server", "production",
            "web1", "web2", "db1", "mon1", "node8", "node9"}  # fmt: skip
"""What samples say of machines that do not exist, and words that they hold anyway."""
DOCUMENTATION = [
    ipaddress.ip_network(net) for net in ("127.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
]


@functools.cache
def here() -> frozenset[str]:
    """What this machine is called, and what it runs."""
    return frozenset({platform.release(), platform.version(), socket.gethostname()} - INVENTED)


def columns(sample: Path) -> Iterator[tuple[str, bytes]]:
    """Every value of every table, blobs unpacked: where it stands, and its bytes."""
    with sqlite3.connect(f"{sample.as_uri()}?mode=ro&immutable=1", uri=True) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f"SELECT * FROM {table}"):
                for column, value in enumerate(row):
                    where = f"{table}[{row[0]}].{column}"
                    if table == "blob" and column == 3:
                        value = zstandard.ZstdDecompressor().decompress(value)
                    yield from unpacked(where, value if isinstance(value, bytes) else str(value).encode())
    database.close()


def unpacked(where: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """A value as it is, and what compression and escaping hide in it (facts are escaped twice)."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if b"%" in data and is_text(data):
        yield f"{where} unescaped", unquote_to_bytes(unquote_to_bytes(data.replace(b"+", b" ")))
    if b"%25" not in data:  # there, what is left of an escape stands right before a number
        yield where, data


def betrayals(data: bytes) -> Iterator[bytes]:
    """What a value says of a real machine."""
    yield from (place for place in PLACES if place in data)
    # a name stands alone: "vm" is also a part of words
    names = (name.encode() for name in here())
    yield from (name for name in names if re.search(rb"(?<![\w.-])%s(?![\w-])" % re.escape(name), data))
    yield from (match for match in KERNEL.findall(data) if match.decode() not in INVENTED)
    yield from MAC.findall(data)
    for text in ADDRESS.findall(data):
        try:
            address = ipaddress.ip_address(text.decode())
        except ValueError:
            continue
        if not any(address in net for net in DOCUMENTATION if net.version == address.version):
            yield text


def is_text(data: bytes) -> bool:
    """Whether it can be read; in random bytes any short word may stand."""
    return b"\0" not in data and all(byte >= 9 for byte in data)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_machine(name: str) -> None:
    sample = SAMPLES / f"{name}.sqlite"
    found = [
        (where, what) for where, data in columns(sample) for what in betrayals(data) if is_text(data) or len(what) > 4
    ]
    assert found == []


@pytest.mark.parametrize("name", NAMES)
def test_one_small_file(name: str) -> None:
    sample = SAMPLES / f"{name}.sqlite"
    assert sample.stat().st_size < LIMIT
    assert sample.read_bytes()[18:20] == b"\x01\x01", "a sample in WAL mode grows files beside it when it is read"


def test_no_other_samples() -> None:
    assert {str(path.relative_to(SAMPLES).with_suffix("")) for path in SAMPLES.rglob("*.sqlite")} == set(NAMES)
    assert not [path.name for path in SAMPLES.iterdir() if path.name.endswith(("-wal", "-shm"))]


PLANTED = (
    f"path: {ROOT}/x",
    "ran in /tmp/abc",
    '"ip":"10.1.2.3"',
    "/usr/bin:/sbin:/bin",
    "02:42:ac:11:00:02",
    "6.12.9-1-amd64",
)


@pytest.mark.parametrize("planted", [*PLANTED, *sorted(here())])
def test_the_check_finds_what_it_is_for(planted: str) -> None:
    twice = quote(quote(f'{{"a": "{planted}"}}', safe=""), safe="").encode()
    for data in (twice, gzip.compress(twice), f'"{planted}"'.encode()):
        assert [what for _, text in unpacked("planted", data) for what in betrayals(text)] != []

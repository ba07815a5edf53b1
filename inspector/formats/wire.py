"""What was on the wire, with the secrets of the TLS sessions: files beside a capture that ``puppet_wire`` makes.

Each process of a proxy has one, in the format of Wireshark. An export puts the chosen connections of all of them into
one file, with the secrets before all packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import inputs
from inspector.capture import paths
from inspector.errors import InspectorError
from inspector.formats import pcapng
from inspector.formats.files import created
from inspector.formats.packet_capture import Sorted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from inspector.formats.pcapng import Block

COMMENT = (
    "What was on the wire between agents, puppet-inspector's proxy and the master, with the secrets of the TLS "
    "sessions: everything in it can be read, passwords too. TCP is made up around the TLS records: addresses, ports "
    "and times are true, sequence numbers and acknowledgements are not."
)
CONNECTION = "connection "
"""Begins the comment of a connection's first packet and of its secrets; then comes its identifier."""
FILES = 1000
"""Files beside a capture, of processes that were started again."""


def name(capture: Path, number: int) -> Path:
    """Return the path of one of the files beside a capture."""
    return paths.companion(capture, f".wire{f'-{number}' if number else ''}.pcapng")


def files(capture: Path) -> list[Path]:
    """Return the files beside a capture."""
    return [path for number in range(FILES) if (path := name(capture, number)).exists()]


def write(capture: Path, legs: Collection[str] | None, path: Path) -> int:
    """Write connections (None: all) to a new file; return their number. Raises InspectorError."""
    found = files(capture)
    if not found:
        raise InspectorError(
            f"There is no file {name(capture, 0).name} beside {capture}.",
            "The wire is only there if the proxy recorded it: puppet-inspector proxy --set puppet_wire=true",
        )
    written: set[str] = set()
    secrets: list[bytes] = []
    with created(path) as file, Sorted(path) as packets:
        for source in found:
            for ident, block in _blocks(source):
                if legs is not None and ident not in legs:
                    continue
                if block.kind == pcapng.SECRETS:
                    secrets.append(block.data)
                else:
                    written.add(ident)
                    packets.add_block(block.time, block.whole())
        file.write(pcapng.section(COMMENT) + pcapng.interface("agents") + pcapng.interface("masters"))
        if secrets:
            file.write(pcapng.secrets(b"".join(secrets)))
        packets.write(file)
    return len(written)


def _blocks(path: Path) -> Iterator[tuple[str, Block]]:
    """Yield packets and secrets, each with the identifier of its connection."""
    owners: dict[frozenset[bytes], str] = {}
    with inputs.opened(path) as file:
        for block in pcapng.blocks(file):
            comment = block.comment if block.kind in (pcapng.PACKET, pcapng.SECRETS) else ""
            ident = comment.removeprefix(CONNECTION) if comment.startswith(CONNECTION) else ""
            if block.kind == pcapng.SECRETS:
                yield ident, block
            elif block.kind == pcapng.PACKET and (ends := _ends(block.data)):
                if ident:
                    owners[ends] = ident
                yield owners.get(ends, ""), block


def _ends(data: bytes) -> frozenset[bytes] | None:
    """Return both ends of a packet's connection; None for what is no packet of ours."""
    if len(data) >= 40 and data[0] == 0x45:
        return frozenset((data[12:16] + data[20:22], data[16:20] + data[22:24]))
    if len(data) >= 60 and data[0] >> 4 == 6:
        return frozenset((data[8:24] + data[40:42], data[24:40] + data[42:44]))
    return None

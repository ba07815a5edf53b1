"""The capture of a rehearsal: which node was answered what. It can be continued after an interruption."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from inspector.capture import replacing
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.model import Connection, Exchange
from inspector.rehearsal.compiling import UNAVAILABLE, Role, read_name
from inspector.rehearsal.requests import is_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

META = "rehearsal"
"""The item of metadata that says what a capture rehearses."""


class Answers:
    """Writes the answers, and finds those that were written before."""

    def __init__(self, path: Path, identity: Mapping[str, str], *, resume: bool) -> None:
        """Create the capture, or continue one of the same ``identity``: what must be equal, by what it is called if it
        is not. Raises InspectorError."""
        self._seqs: dict[str, dict[Role, list[int]]] = {}
        if resume:
            self._seqs = _read(path, identity)
        else:
            replacing.must_be_new(path)
        self.path = path
        self._capture = Capture.create(path)
        self._capture.set_meta([(META, json.dumps(identity))])

    @property
    def empty(self) -> bool:
        """Whether there is no answer yet."""
        return self._capture.last == 0

    def of(self, node: str) -> dict[Role, list[Exchange]]:
        """Return what was answered to a node before."""
        return {role: self._exchanges(seqs) for role, seqs in self._seqs.get(node, {}).items()}

    def add(self, exchanges: Iterable[Exchange]) -> None:
        """Write the answers to a node, all or none."""
        for exchange in exchanges:
            for leg in exchange.legs:
                self._capture.note(Connection(leg))
            self._capture.append(exchange)
        self._capture.flush()

    def describe(self, item: str, value: str) -> None:
        """Write an item of metadata."""
        self._capture.set_meta([(item, value)])

    def close(self) -> None:
        """Close the capture; one without an answer does not remain."""
        replacing.close(self._capture)

    def _exchanges(self, seqs: list[int]) -> list[Exchange]:
        records = (self._capture.record(seq) for seq in seqs)
        return [record for record in records if isinstance(record, Exchange)]


def _check(path: Path, found: str | None, identity: Mapping[str, str]) -> None:
    """Raise InspectorError if a capture is not the beginning of a rehearsal."""
    try:
        begun = msgspec.json.decode((found or "{}").encode(), type=dict[str, str])
    except msgspec.DecodeError:
        begun = {}
    if not begun:
        raise InspectorError(f"{path} is not the beginning of a rehearsal.", "Choose another name with -o.")
    if others := [name for name, value in identity.items() if begun.get(name) != value]:
        raise InspectorError(
            f"{path} is the beginning of another rehearsal: with {', '.join(others)}.",
            "Continue it with the command that it was begun with, or choose another name with -o.",
        )


def _read(path: Path, identity: Mapping[str, str]) -> dict[str, dict[Role, list[int]]]:
    """Return what was answered before. Raises InspectorError."""
    with Capture.open(path) as capture:
        _check(path, capture.meta().get(META), identity)
        return by_node(capture)


def by_node(capture: Capture) -> dict[str, dict[Role, list[int]]]:
    """Return the numbers of the records that are answers, by node. Raises CaptureError."""
    found: dict[str, dict[Role, list[int]]] = {}
    for record in capture.records():
        named = read_name(record.agent.id) if isinstance(record, Exchange) else None
        if named is None or not isinstance(record, Exchange):
            continue
        role, roles = named[1], found.setdefault(named[0], {})
        if not is_file(record.request):
            roles.pop(role, None)
            if record.response is not None and record.response.status != UNAVAILABLE:
                roles[role] = [record.seq]
        elif role in roles:
            if record.response is None or record.response.status == UNAVAILABLE:
                del roles[role]  # it is asked again
            else:
                roles[role].append(record.seq)
    return found

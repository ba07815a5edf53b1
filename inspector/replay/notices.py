"""Notices before a real agent runs against a recording: what it will execute, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex
from inspector.model import Exchange
from inspector.privacy.harmless import STAND_IN
from inspector.privacy.names import MASK
from inspector.protocol import decode
from inspector.protocol.endpoints import KINDS
from inspector.protocol.kinds import Kind
from inspector.replay.recording import contents_listed
from inspector.rules.words import some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.replay.recording import Recording

_HOST = regex.compile(r"[a-z]{1,10}://([^/]{1,255})", regex.IGNORECASE)
MASKS = (MASK.encode(), f"{STAND_IN}-".encode())


def notices(recording: Recording) -> list[str]:
    """Return what must be known, the dangerous first."""
    return [
        *_code(recording),
        *_applied(recording),
        *_elsewhere(recording),
        *_unusable(recording),
        *_withheld(recording),
        *_plugins(recording),
        *_handshakes(recording),
    ]


def missing_plugins(recording: Recording) -> list[str]:
    """Return the plugins that are listed, and whose content was not recorded."""
    missing = contents_listed(recording.steps.values(), recording.answers).keys() - recording.borrowed.keys()
    return sorted(one.subject for one in missing if KINDS[one.endpoint] is Kind.PLUGIN_CONTENT)


def _code(recording: Recording) -> Iterator[str]:
    plugins = recording.plugins()
    if plugins:
        yield (
            f"the agent will execute code of this capture, also with --noop: {len(plugins)} plugins, including "
            f"{some(plugins)}. Replay only captures of people that you trust."
        )


def _applied(recording: Recording) -> Iterator[str]:
    for seq, catalog in recording.catalogs:
        names = [found.ref for found in catalog.resources if found.parameters.get("noop") in (False, "false")]
        if names:
            yield (
                f"record {seq}: the catalog sets noop => false, which --noop does not change: {some(names)} will be "
                f"applied to this host"
            )


def _elsewhere(recording: Recording) -> Iterator[str]:
    hosts: dict[str, int] = {}
    for seq, catalog in recording.catalogs:
        for file in catalog.files:
            for source in file.sources:
                if found := _HOST.match(source):
                    hosts.setdefault(found[1], seq)
    for host, seq in hosts.items():
        yield f"record {seq}: the catalog names {host} as a source of files: the agent asks that host, not the replay"


def _unusable(recording: Recording) -> Iterator[str]:
    for question, answers in recording.answers.items():
        for answer in answers:
            if answer.trouble:
                yield f"record {answer.seq}, {question}: {answer.trouble}; it is answered with 404"
            elif answer.response is None:
                yield f"record {answer.seq}, {question}: it had no answer; the replay closes the connection as well"


def _withheld(recording: Recording) -> Iterator[str]:
    if recording.shared:
        yield (
            "values were withheld from this capture, and names replaced: contents of files, facts and parameters may "
            "be stand-ins"
        )
    for seq, step in recording.steps.items():
        response = step.record.response if isinstance(step.record, Exchange) else None
        body = decode.content(response) if response else None
        count = sum(body.count(mask) for mask in MASKS) if body else 0
        if count and step.match:
            yield f"record {seq}, {step.match.endpoint.name}: {count} values of the answer are masked or stand-ins"


def _plugins(recording: Recording) -> Iterator[str]:
    names = missing_plugins(recording)
    if names:
        yield f"{len(names)} plugins that the run lists were not fetched while it was recorded: {some(names)}"


def _handshakes(recording: Recording) -> Iterator[str]:
    if recording.revoked:
        yield "the agent's certificate was revoked: the replay gives it one and revokes it at once"
    if recording.refusals:
        yield f"{recording.refusals} handshakes failed when it was recorded: they are not replayed"
    if not recording.answers and not recording.revoked:
        yield "nothing of this run is behind the bootstrap: there is no catalog"

"""Captures to replay, and agents of the lab that run against a replay."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.lab.agent import LabAgent
from inspector.lab.wire import ServerAddress, Wire, verifying
from inspector.progress import unwatched
from inspector.replay import recording
from inspector.replay.agent_command import FOLDER
from inspector.replay.master import ReplayMaster
from tests.support import places
from tests.support.captures import save

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Record
    from inspector.replay.master import Served
    from inspector.replay.recording import Recording

NAME = "localhost"


def sample(folder: Path, name: str) -> Path:
    """A copy of a sample: reading it must leave nothing beside the original."""
    return Path(shutil.copy(places.SAMPLES / f"{name}.sqlite", folder / f"{Path(name).name}.sqlite"))


def of_sample(folder: Path, name: str, run: int | None = None) -> Recording:
    return recording.read(sample(folder, name), unwatched, run)


def of_records(folder: Path, *records: Record, run: int | None = None, agent: str | None = None) -> Recording:
    return recording.read(save(folder / "recorded.sqlite", *records), unwatched, run, agent)


@contextmanager
def replayed(folder: Path, recorded: Recording, pace: float = 0.0) -> Iterator[ReplayMaster]:
    with ReplayMaster(recorded, folder / "replay", NAME, pace=pace) as master:
        yield master


def agent(folder: Path, master: ReplayMaster, certname: str = "", **options: float) -> LabAgent:
    """The agent of the replay, with the key that was prepared for it; one with another name has another key."""
    server, place = ServerAddress(NAME, master.address), folder / "replay" / FOLDER
    return LabAgent(certname or master.recording.certname, place, server, **options)  # type: ignore[arg-type]


def wire(agent: LabAgent) -> Wire:
    """A connection of an agent that has its certificate."""
    place = agent.place
    return Wire(agent.server, verifying(place.ca, place.crl, (place.certificate, place.key)))


def served(master: ReplayMaster) -> list[Served]:
    """What happened so far; the server reports an exchange after the answer was sent, so the master must be closed."""
    found = []
    while not master.served.empty():
        found.append(master.served.get())
    return found

"""A rehearsal that was recorded, in pairs: what each node really received, and what the other master answered.

The capture of a rehearsal names the runs that it is about; nothing is sent to compare them again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.capture.store import Capture
from inspector.compare import documents
from inspector.compare.comparison import Choices
from inspector.compare.differences import Patterns, Section
from inspector.errors import InspectorError
from inspector.model import REHEARSAL_OF, Exchange
from inspector.rehearsal import answers, comparing, requests
from inspector.rehearsal.comparing import How
from inspector.rehearsal.compiling import Role
from inspector.rehearsal.requests import Unsendable
from inspector.rehearsal.result import Result
from inspector.summaries import pairing, reading
from inspector.text import clean, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.compare.comparison import Comparison
    from inspector.compare.groups import Group
    from inspector.progress import Watch
    from inspector.rehearsal.plan import Plan
    from inspector.rehearsal.result import Time
    from inspector.summaries.pairing import ChosenRun
    from inspector.summaries.reading import CaptureRuns


class _Run(msgspec.Struct):
    """A run that is rehearsed."""

    node: str
    capture: str
    """The path of its capture, from the directory of the rehearsal's."""
    number: int


class _Described(msgspec.Struct):
    master: str
    files: bool
    v4: bool
    tags: bool
    ignored: list[str]
    runs: list[_Run]


def described(plan: Plan, nodes: Sequence[ChosenRun], output: Path) -> str:
    """Return the metadata of a rehearsal."""
    folder = output.absolute().parent
    runs = [
        _Run(node.brief.name, os.path.relpath(node.found.capture.absolute(), folder), node.brief.number)
        for node in nodes
    ]
    how = plan.how
    found = _Described(str(plan.target), how.files, how.v4, how.choices.tags, list(how.choices.ignored.texts), runs)
    return msgspec.json.encode(found).decode()


@dataclass(frozen=True, slots=True)
class Pair:
    """A node of a rehearsal."""

    node: str
    failure: str = ""
    """Why there is no catalog to compare; empty if there is one."""
    groups: tuple[tuple[int, Group], ...] = ()
    """The changes of this node, each with the number of its group."""
    time: Time | None = None
    """How long the catalog took."""
    seq: int | None = None
    """The record with the new catalog, or the reason why there is none."""

    @property
    def state(self) -> str:
        """The state of the node: no catalog, changed, the same."""
        return "no catalog" if self.failure else "changed" if self.groups else "the same"

    @property
    def summary(self) -> str:
        """The state of the node in a line."""
        found = [difference for _, group in self.groups for difference in group.differences]
        if not found:
            return clean(self.failure.removeprefix(f"{self.state}: "))
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        return f"{plural(len(found), 'change')}: {clean(found[0].address)}{more}"


def recorded(path: Path) -> bool:
    """Whether a capture is that of a rehearsal. Raises CaptureError."""
    with Capture.open(path) as capture:
        return REHEARSAL_OF in capture.meta()


class Pairs:
    """The rehearsal of a capture."""

    def __init__(self, path: Path, choices: Choices | None = None) -> None:
        """``choices`` are added to those of the rehearsal. Raises InspectorError if the capture is not that of one."""
        self.path = path
        with Capture.open(path) as capture:
            text = capture.meta().get(REHEARSAL_OF)
            if text is None:
                raise InspectorError(
                    f"{path} is not the capture of a rehearsal.", "`puppet-inspector rehearse` makes one."
                )
            self._seqs = answers.by_node(capture)
        try:
            self._described = msgspec.json.decode(text.encode(), type=_Described)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InspectorError(f"The metadata of {path} cannot be read: {error}.", "Rehearse again.") from error
        described = self._described
        choices = choices or Choices()
        ignored = Patterns([*described.ignored, *choices.ignored.texts], Section)
        tags = described.tags or choices.tags
        self._how = How(Choices(ignored, tags=tags), described.files, described.v4)
        self._known: dict[str, CaptureRuns] = {}

    @property
    def master(self) -> str:
        """The master that was asked."""
        return self._described.master

    @property
    def names(self) -> list[str]:
        """The nodes, in the order in which they were asked."""
        return [run.node for run in self._described.runs]

    def compared(self, watch: Watch, nodes: Sequence[str] | None = None, *, whole: bool = False) -> Result:
        """Compare all nodes, or some; ``whole``: with everything that is found in ``Result.each``. Raises
        InspectorError, also if a capture with a recorded run is not there."""
        wanted = None if nodes is None else set(nodes)
        runs = [run for run in self._described.runs if wanted is None or run.node in wanted]
        result = Result(each={} if whole else None)
        with Capture.open(self.path) as rehearsed:
            for number, run in enumerate(runs):
                watch(number, len(runs), "comparing node")
                self._compare(rehearsed, run, result)
        return result

    def read(self, watch: Watch) -> tuple[list[Pair], Result]:
        """Return the nodes, those without a catalog first, then those with changes, and all that was found. Raises
        InspectorError."""
        result = self.compared(watch)
        failures = {node: failed.reason for failed in result.groups.failed for node in failed.nodes}
        times = {time.node: time for time in result.times}
        groups: dict[str, list[tuple[int, Group]]] = {}
        for number, group in enumerate(result.groups.groups, 1):
            for name in group.nodes:
                groups.setdefault(name, []).append((number, group))
        found = [
            Pair(name, failures.get(name, ""), tuple(groups.get(name, ())), times.get(name), self._seq(name))
            for name in self.names
        ]
        order = ("no catalog", "changed", "the same")
        return sorted(found, key=lambda pair: (order.index(pair.state), [at for at, _ in pair.groups])), result

    def _seq(self, node: str) -> int | None:
        roles = self._seqs.get(node, {})
        seqs = roles.get(Role.CHANGED) or roles.get(Role.PLAIN)
        return seqs[0] if seqs else None

    def _compare(self, rehearsed: Capture, run: _Run, result: Result) -> None:
        path = Path(os.path.normpath(self.path.absolute().parent / run.capture))
        if run.capture not in self._known:
            if not path.is_file():
                raise InspectorError(
                    f"{clean(str(path))}, whose runs were rehearsed, is not there.",
                    f"Put {clean(path.name)} there again: it has the catalogs that the nodes received.",
                )
            self._known[run.capture] = reading.read(path)
        chosen = pairing.numbered(self._known[run.capture], run.number)
        if chosen.brief.name != run.node:
            raise InspectorError(
                f"Run {run.number} of {clean(str(path))} is not that of {clean(run.node)}.",
                "It is not the capture that was rehearsed: put that one there.",
            )
        with Capture.open(path) as source:
            before = documents.of_run(source, chosen.run.seqs, chosen.brief, f"{path.name} run {run.number}",
                                      chosen.found.unanalyzed)  # fmt: skip
            try:
                asked = requests.asked(_exchanges(source, chosen.run.seqs))
            except Unsendable as error:
                result.fail(run.node, str(error))
                return
            made = {role: _exchanges(rehearsed, seqs) for role, seqs in self._seqs.get(run.node, {}).items()}
            if Role.PLAIN not in made:
                result.fail(run.node, "it was not answered: --resume asks again")
                return
            comparing.compare(self._how, result, asked, before, made)

    def one(self, node: str, watch: Watch) -> Comparison:
        """Return the comparison of a node with a catalog. Raises InspectorError."""
        found = (self.compared(watch, [node], whole=True).each or {}).get(node)
        if isinstance(found, str | None):
            raise InspectorError(f"{clean(node)} was not compared: {clean(found or 'it was not rehearsed')}.")
        return found


def _exchanges(capture: Capture, seqs: Sequence[int]) -> list[Exchange]:
    records = (capture.record(seq) for seq in seqs)
    return [record for record in records if isinstance(record, Exchange)]

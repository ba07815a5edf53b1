"""A rehearsal: every node's catalog is asked for, recorded, and compared with what the agent really received."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from inspector.capture.store import Capture
from inspector.compare import comparison, documents
from inspector.errors import CaptureError, IdentityError, InspectorError
from inspector.model import Exchange
from inspector.protocol.kinds import Kind
from inspector.rehearsal import answered, compiling, requests, roads
from inspector.rehearsal.answers import Answers
from inspector.rehearsal.client import Client, Unreachable
from inspector.rehearsal.compiling import Compiled, Role, Task
from inspector.rehearsal.fact_changes import FactChanges
from inspector.rehearsal.requests import Unsendable
from inspector.rehearsal.result import Result, Time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from inspector.compare.comparison import Choices, Comparison
    from inspector.compare.differences import Difference
    from inspector.compare.documents import RunDocuments
    from inspector.explain.file_transfers import FileUse
    from inspector.progress import Watch
    from inspector.rehearsal.client import Target
    from inspector.rehearsal.requests import Asked
    from inspector.rehearsal.roads import Road
    from inspector.summaries.pairing import ChosenRun

AHEAD = 4
"""Nodes that are prepared, or not yet compared, for each job."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is rehearsed, and how."""

    target: Target
    road: Road
    choices: Choices
    environment: str | None = None
    """Another one than the recorded."""
    facts: FactChanges = field(default_factory=FactChanges)
    twice: bool = False
    files: bool = False
    jobs: int = 2

    @property
    def identity(self) -> str:
        """What a capture must have been made with to be continued."""
        return json.dumps([str(self.target), self.road.name, self.environment, str(self.facts), self.twice, self.files])


@dataclass(slots=True)
class _Queued:
    """A node that is asked."""

    name: str
    task: Task | None
    """None: it cannot be asked."""
    before: RunDocuments | None
    future: Future[Compiled]
    recorded: bool = False


class Rehearsal:
    """Conducts a rehearsal; a context in which its capture is open."""

    def __init__(self, plan: Plan, nodes: Sequence[ChosenRun], output: Path, *, resume: bool = False) -> None:
        """``resume``: continue a capture. Raises InspectorError."""
        self.plan, self.nodes = plan, nodes
        self.result = Result()
        self.done = 0
        """How many nodes were answered, or cannot be asked."""
        self._output, self._resume = output, resume
        self._stop = threading.Event()
        self._sources: dict[Path, Capture] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with self._stack as stack:
            for path in dict.fromkeys(node.found.capture for node in self.nodes):
                self._sources[path] = stack.enter_context(Capture.open(path))
            self._answers = Answers(self._output, self.plan.identity, resume=self._resume)
            stack.callback(self._answers.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, watch: Watch) -> Result:
        """Ask for and compare every node. Raises InspectorError if the master answers none."""
        left, total = deque(self.nodes), len(self.nodes)
        self._try_connection()
        queue: deque[_Queued] = deque()
        with ThreadPoolExecutor(self.plan.jobs, "rehearsal") as pool:
            try:
                while left or queue:
                    while left and len(queue) < AHEAD * self.plan.jobs:
                        queue.append(self._queued(left.popleft(), pool))
                    watch(self.done, total, "rehearsing node")
                    wait([each.future for each in queue if not each.recorded], 0.2, FIRST_COMPLETED)
                    for each in queue:
                        if each.future.done() and not each.recorded:
                            self._record(each)
                    while queue and queue[0].recorded:  # in the order of the nodes, whichever is faster
                        self._take(queue.popleft())
            except BaseException:
                self._stop.set()
                self.plan.target.abort()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        watch(total, total, "rehearsing node")
        return self.result

    # -- before -------------------------------------------------------------------------------------------

    def _asked(self, node: ChosenRun) -> Asked:
        """Raises Unsendable, CaptureError."""
        capture = self._sources[node.found.capture]
        records = (capture.record(seq) for seq in node.run.seqs)
        return requests.asked(record for record in records if isinstance(record, Exchange))

    def _before(self, node: ChosenRun) -> RunDocuments:
        label = f"{node.found.capture.name} run {node.brief.number}"
        return documents.of_run(
            self._sources[node.found.capture], node.run.seqs, node.brief, label, node.found.unanalyzed
        )

    def _try_connection(self) -> None:
        """Connect once, without a request. Raises InspectorError if that fails: it would fail for all nodes."""
        for node in self.nodes:
            try:
                asked = self._asked(node)
                credentials = self.plan.road.credentials(asked)
            except (Unsendable, IdentityError, CaptureError):
                continue
            try:
                with Client(self.plan.target, credentials, self.plan.road.identity(asked), node.brief.name) as client:
                    client.connect()
            except Unreachable as error:
                raise InspectorError(
                    f"Cannot connect to {self.plan.target}: {error}.", _hint(str(error), self.plan.target)
                ) from error
            return

    def _queued(self, node: ChosenRun, pool: ThreadPoolExecutor) -> _Queued:
        """Let a node be asked, if it can be."""
        name = node.brief.name
        try:
            task = self._task(node)
            before = self._before(node)
        except (Unsendable, IdentityError, CaptureError) as error:
            impossible: Future[Compiled] = Future()
            impossible.set_result(Compiled(unreachable=getattr(error, "message", str(error))))
            return _Queued(name, None, None, impossible)
        if task.files:
            task = dataclasses.replace(task, known={use.name: use.metadata.checksum.digest for use in before.files
                                                    if use.metadata and use.metadata.checksum})  # fmt: skip
        return _Queued(name, task, before, pool.submit(compiling.compile_all, self.plan.target, task, self._stop))

    def _task(self, node: ChosenRun) -> Task:
        """Return what a node has to ask. Raises Unsendable, IdentityError, CaptureError."""
        plan, asked = self.plan, self._asked(node)
        made = {Role.PLAIN: plan.road.request(asked, plan.environment, None)}
        if plan.twice:
            made[Role.AGAIN] = made[Role.PLAIN]
        if plan.facts:
            made[Role.CHANGED] = plan.road.request(asked, plan.environment, plan.facts.applied(asked.facts))
        known = self._answers.of(node.brief.name)
        left = {role: request for role, request in made.items() if role not in known}
        return Task(node.brief.name, asked, left, plan.road.credentials(asked), plan.road.identity(asked), plan.files)

    # -- after --------------------------------------------------------------------------------------------

    def _record(self, queued: _Queued) -> None:
        """Record what was answered to a node, at once: what is recorded is not asked again."""
        compiled = queued.future.result()
        if queued.task is not None:
            self._check_first(queued.task, compiled)
        self._answers.add(exchange for made in compiled.exchanges.values() for exchange in made)
        queued.recorded = True
        self.done += 1

    def _take(self, queued: _Queued) -> None:
        """Compare what was answered to a node."""
        compiled = queued.future.result()
        self.result.waited += compiled.waited
        if queued.task is None or queued.before is None:
            self.result.fail(queued.name, compiled.unreachable)
        elif compiled.unreachable:
            self.result.fail(queued.name, f"no connection: {compiled.unreachable}")
        else:
            self.result.reused += not queued.task.requests
            self._compare(queued.task, queued.before, self._answers.of(queued.name) | compiled.exchanges)

    def _check_first(self, task: Task, compiled: Compiled) -> None:
        """Raise InspectorError if what answers first is no master, or refuses what it will refuse for all nodes."""
        first = next((answered.catalog_of(each) for each in compiled.exchanges.values()), None)
        if not self._answers.empty or first is None or first.response is None:
            return
        where, status = self.plan.target, first.response.status
        v4 = self.plan.road if isinstance(self.plan.road, roads.V4) else None
        if v4 and status == 403:
            raise InspectorError(f"{where} does not allow {v4.certname} to compile catalogs of nodes (403).", v4.rule)
        if v4 and status in (404, 405):
            raise InspectorError(
                f"{where} has no {requests.V4} ({status}): it is older than Puppet Server 6, or no master.",
                "Ask it as the agents do: --road keys:DIR.",
            )
        if answered.is_web_page(task.asked, first):
            raise InspectorError(
                f"{where} answers with a web page ({status}): it is no master.",
                "Check the address and the port of --master (8140 by default).",
            )

    def _compare(self, task: Task, before: RunDocuments, exchanges: Mapping[Role, list[Exchange]]) -> None:
        sides: dict[Role, RunDocuments] = {}
        for role, made in exchanges.items():
            found = answered.catalog_of(made)
            sides[role] = answered.gathered(task.asked, made, f"{self._answers.path.name} {task.name}")
            if found is not None and found.response:
                self.result.new_versions.update(filter(None, [found.response.header("x-puppet-version")]))
            if found is not None and sides[role].without_catalog:
                reason = answered.failure(task.asked, found, sides[role])
                with_facts = " with the other facts" if role is Role.CHANGED else ""
                self.result.fail(task.name, f"no catalog{with_facts}: {reason}")
                return
        self._add_time(task, before, exchanges[Role.PLAIN])
        changed = sides.get(Role.CHANGED)
        old, new = (before, sides[Role.PLAIN]) if changed is None else (sides[Role.PLAIN], changed)
        if old.without_catalog:
            self.result.fail(
                task.name, f"it has a catalog now; the recorded run {old.without_catalog}: {old.catalog_failure}"
            )
            return
        if self.plan.files:
            old = dataclasses.replace(old, files=_named(old))
        found_all = comparison.answers(old, new, self.plan.choices, with_files=self.plan.files)
        if Role.AGAIN in sides:
            found_all = self._without_noise(task.name, found_all, sides[Role.PLAIN], sides[Role.AGAIN])
        if changed is None and isinstance(self.plan.road, roads.V4):
            left = [each for each in found_all.differences if not answered.is_deferred_as_text(each)]
            self.result.deferred += len(found_all.differences) - len(left)
            found_all = dataclasses.replace(found_all, differences=left)
        self.result.add(task.name, found_all)

    def _without_noise(self, name: str, found: Comparison, one: RunDocuments, other: RunDocuments) -> Comparison:
        noise = {
            _place(each) for each in comparison.answers(one, other, self.plan.choices, with_files=False).differences
        }
        left = [each for each in found.differences if _place(each) not in noise]
        if noise:
            self.result.noisy.append(name)
            self.result.noise += len(found.differences) - len(left)
        return dataclasses.replace(found, differences=left)

    def _add_time(self, task: Task, before: RunDocuments, exchanges: list[Exchange]) -> None:
        recorded = [made.duration for made in before.requests if made.kind is Kind.CATALOG]
        found = answered.catalog_of(exchanges)
        if recorded and found is not None:
            self.result.times.append(Time(task.name, recorded[-1], max(0.0, found.ended - found.time)))
        if before.run.master_version:
            self.result.old_versions.add(before.run.master_version)


def _named(of: RunDocuments) -> list[FileUse]:
    """The files that a catalog names: not plugins, nor what is in directories."""
    return [use for use in of.files if use.asking == "metadata" or (use.resources and use.asking == "catalog")]


def _place(difference: Difference) -> tuple[str, str, str]:
    return difference.section, difference.name, difference.part


def _hint(reason: str, target: Target) -> str:
    if "certificate verify failed" in reason:
        return f"It must have a certificate for {target.host} of a CA in {target.ca} (--ca names another bundle)."
    return "Check the address and the port of --master, and whether the master runs."

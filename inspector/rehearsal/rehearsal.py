"""A rehearsal: every node's catalog is asked for, recorded, and compared with what the agent really received."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from inspector.capture.store import Capture
from inspector.compare import documents
from inspector.errors import CaptureError, IdentityError, InspectorError
from inspector.model import REHEARSAL_OF, Exchange
from inspector.privacy.names import MASK
from inspector.protocol.facts import leaves
from inspector.rehearsal import answered, comparing, compiling, fact_changes, pairs, requests, roads
from inspector.rehearsal.answers import Answers
from inspector.rehearsal.client import Client, Unreachable
from inspector.rehearsal.compiling import Compiled, Question, Role, Task
from inspector.rehearsal.requests import Unsendable
from inspector.rehearsal.result import Result
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.compare.documents import RunDocuments
    from inspector.progress import Watch
    from inspector.rehearsal.client import Target
    from inspector.rehearsal.plan import Plan
    from inspector.rehearsal.requests import Asked
    from inspector.summaries.pairing import ChosenRun

SAMPLE = 10
"""Nodes of a capture in which masks are looked for."""
AHEAD = 4
"""Nodes that are prepared, or not yet compared, for each job."""


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

    _in_pairs = True
    """Whether each node received something with which an answer is compared."""

    def __init__(self, plan: Plan, nodes: Sequence[ChosenRun], output: Path, *, resume: bool = False) -> None:
        """``resume``: continue a capture. Raises InspectorError."""
        self.plan, self.nodes = plan, nodes
        self.result = Result()
        self.done = 0
        """How many nodes were answered, or cannot be asked."""
        self._output, self._resume = output, resume
        self._answered = False
        """Whether what answers has been looked at."""
        self._stop = threading.Event()
        self._sources: dict[Path, Capture] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with self._stack as stack:
            for path in dict.fromkeys(node.found.capture for node in self.nodes):
                self._sources[path] = stack.enter_context(Capture.open(path))
            self._answers = Answers(self._output, self.plan.identity(self.nodes), resume=self._resume)
            stack.callback(self._answers.close)
            if self._in_pairs:
                self._answers.describe(REHEARSAL_OF, pairs.described(self.plan, self.nodes, self._output))
            self.result.warnings += self._warnings()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def recorded(self) -> bool:
        """Whether there are answers in its capture."""
        return not self._answers.empty

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
                for target in self.plan.targets:
                    target.abort()
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
        """Connect once to each master, without a request. Raises InspectorError if that fails: it would fail for all
        nodes."""
        for node in self.nodes:
            try:
                asked = self._asked(node)
                credentials = self.plan.road.credentials(asked)
            except (Unsendable, IdentityError, CaptureError):
                continue
            for target in self.plan.targets:
                try:
                    with Client(target, credentials, self.plan.road.identity(asked), node.brief.name) as client:
                        client.connect()
                except Unreachable as error:
                    raise InspectorError(f"Cannot connect to {target}: {error}.", _hint(str(error), target)) from error
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
        return _Queued(name, task, before, pool.submit(compiling.compile_all, task, self._stop))

    def _warnings(self) -> Iterator[str]:
        """Yield why the answers will say little: facts that are not those of the nodes."""
        for path, capture in self._sources.items():
            nodes = [node for node in self.nodes if node.found.capture == path][:SAMPLE]
            if "shared" in capture.meta():
                yield f"{clean(path.name)} is a shared capture: its names and facts are not those of the nodes"
            elif any(self._masked(node) for node in nodes):
                yield f"{clean(path.name)} was recorded without secrets (puppet_redact): its facts are masked in part"

    def _masked(self, node: ChosenRun) -> bool:
        try:
            values = list(leaves(self._asked(node).facts.values))
        except (Unsendable, CaptureError):
            return False
        return any(isinstance(value, str) and MASK in value for _, value in values)

    def _task(self, node: ChosenRun) -> Task:
        """Return what a node has to ask. Raises Unsendable, IdentityError, CaptureError."""
        plan, asked = self.plan, self._asked(node)
        made = {Role.PLAIN: Question(plan.target, plan.road.request(asked, plan.environment, None))}
        if plan.twice:
            made[Role.AGAIN] = made[Role.PLAIN]
        if plan.facts:
            changed = plan.road.request(asked, plan.environment, plan.facts.applied(asked.facts))
            self.result.effective |= {
                str(one) for one in plan.facts.each
                if str(one) not in self.result.effective
                and any(fact_changes.between(asked.facts, one.applied(asked.facts)))
            }  # fmt: skip
            made[Role.CHANGED] = Question(plan.target, changed)
        if plan.old is not None:
            made[Role.OLD] = made[Role.OLD_AGAIN] = Question(plan.old, plan.road.request(asked, None, None))
        known = self._answers.of(node.brief.name)
        left = {role: question for role, question in made.items() if role not in known}
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
        if queued.task is None or queued.before is None or compiled.unreachable:
            self.result.fail(queued.name, compiled.unreachable)
        else:
            self.result.reused += not queued.task.questions
            exchanges = self._answers.of(queued.name) | compiled.exchanges
            comparing.compare(self.plan.how, self.result, queued.task.asked, queued.before, exchanges)

    def _check_first(self, task: Task, compiled: Compiled) -> None:
        """Raise InspectorError if what answers first is no master, or refuses what it will refuse for all nodes."""
        if self._answered:
            return
        for role, exchanges in compiled.exchanges.items():
            first, where = answered.catalog_of(exchanges), task.questions[role].target
            if first is not None and first.response is not None:
                self._answered = True
                self._check(task, first, first.response.status, where)
            elif first is not None and self.plan.road.one_ca and "unknown ca" in (first.error or ""):
                name = clean(task.identity.certname or "")
                raise InspectorError(
                    f"{where} does not accept the certificate of {name}: its CA is unknown there.",
                    "It must be one that the CA of that master signed (on the CA: `puppetserver ca generate --certname "
                    "NAME`).",
                )

    def _check(self, task: Task, first: Exchange, status: int, where: Target) -> None:
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


def _hint(reason: str, target: Target) -> str:
    if "certificate revoked" in reason:
        return f"It needs a new certificate, unless {target.crl} is not its CA's."
    if "CRL" in reason:
        return f"{target.crl} must have a valid CRL of each CA in its chain (on the CA: `puppet config print cacrl`)."
    if "certificate verify failed" in reason:
        return f"It must have a certificate for {target.host} of a CA in {target.ca} (--ca names another bundle)."
    return "Check the address and the port of --master, and whether the master runs."

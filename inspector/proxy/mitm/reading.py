"""Flows that mitmproxy reads from files: their marks and comments are the findings of ``puppet-inspector check``.

They are no live traffic: nothing in them is changed, and they are never recorded beside what is. They are imported into
a temporary capture, which another process analyzes, as in a proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from mitmproxy import ctx as _untyped
from mitmproxy import http
from mitmproxy.hooks import UpdateHook

from inspector import regex
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats import importing, mitm_flows
from inspector.host import puppetconf
from inspector.proxy import options
from inspector.proxy.mitm import commands
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from mitmproxy import flow

    from inspector.model import Exchange

    type Group = list[http.HTTPFlow]
    """A flow and its copies."""

ctx: Any = _untyped
"""mitmproxy's context; its option and addon managers have no type annotations."""

QUIET = 0.3
"""Seconds without another flow after which those so far are analyzed."""
WITHOUT_PROXY = ("puppet_rules", "puppet_rules_dir")
"""The options that have a meaning without a proxy."""
ERROR, OTHER = ":red_circle:", ":warning:"
"""The marks of flows with an error, and with other findings only."""
_OURS = regex.compile(r"[A-Z][0-9]{2}: ")
"""How our line of a comment begins: all other lines are the user's, and never changed."""


def reason(values: Any, *, own_mode: bool, interactive: bool) -> str:
    """Return why flows are read only, and nothing is proxied; empty if a proxy is wanted.

    It always is if an option is given that only a proxy uses, so that what is missing for it stays an error.
    ``own_mode``: the user's --mode says where to listen. ``interactive``: a user can still open files later.
    """
    names = {*dict(options.OPTIONS), *dict(options.FLAGS), *dict(options.LISTS)}.difference(WITHOUT_PROXY)
    if any(getattr(values, name) for name in names):
        return ""
    if not values.server:
        return "the server is off"
    if own_mode:
        return ""
    if values.rfile:
        return "flows are read from a file; with puppet_master=HOST it proxies as well"
    try:
        bundle = puppetconf.read().ca
    except InspectorError:
        return ""  # the proxy reports it
    return "" if not interactive or _is_file(bundle) else f"there is no CA bundle at {bundle}"


def _is_file(path: Path) -> bool:
    with contextlib.suppress(OSError):  # in a directory that this user may not enter
        return path.is_file()
    return False


class _Finding(msgspec.Struct):
    rule: str
    severity: str
    message: str
    seqs: list[int]


class _NotAnalyzed(msgspec.Struct):
    seq: int
    reason: str


class _Checked(msgspec.Struct):
    """The output of ``puppet-inspector check --json``."""

    findings: list[_Finding]
    not_analyzed: list[_NotAnalyzed]


def annotate(flow: flow.Flow, findings: Sequence[tuple[str, str, str]]) -> bool:
    """Show findings (rule, severity and message of each) instead of those of an earlier analysis, if there are any.

    What a user marked or wrote stays. Return whether anything changed.
    """
    lines = flow.comment.split("\n") if flow.comment else []
    others = [line for line in lines if not _OURS.match(line)]
    ours = ["; ".join(f"{rule}: {clean(message)}" for rule, _, message in findings)] if findings else []
    if [*others, *ours] == lines:
        return False  # also if a user has removed the mark since
    if not flow.marked or (len(others) < len(lines) and flow.marked in (ERROR, OTHER)):
        errors = any(severity == "error" for _, severity, _ in findings)
        flow.marked = (ERROR if errors else OTHER) if findings else ""
    flow.comment = "\n".join([*others, *ours])
    return True


class ReadFlows:
    """The flows that were read, as far as the user interface still has them."""

    def __init__(self, is_proxied: Callable[[http.HTTPFlow], bool]) -> None:
        """``is_proxied``: whether a flow passed this proxy instead."""
        self._is_proxied = is_proxied
        self._flows: list[http.HTTPFlow] = []
        """All of them, if there is no user interface that has them."""
        self._added = 0.0
        self._pending = False
        """Whether flows were added since the last analysis."""
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing: asyncio.Future[list[Group]] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._capture: Path | None = None
        self._number = 0

    def add(self, flow: http.HTTPFlow) -> None:
        """Add a flow that was read, to be analyzed soon."""
        if ctx.master.addons.get("view") is None:
            self._flows.append(flow)
        loop = asyncio.get_running_loop()
        self._added, self._pending = loop.time(), True
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._analyze())

    def watch(self) -> None:
        """Notice the flows that a user interface adds without asking any addon: those that mitmproxy loads (L)."""
        if (view := ctx.master.addons.get("view")) is not None:
            view.sig_view_add.connect(self._on_view)

    def _on_view(self, flow: Any) -> None:
        if isinstance(flow, http.HTTPFlow) and not self._is_proxied(flow):
            self.add(flow)

    def capture(self) -> Awaitable[Path] | None:
        """Return the capture with the flows, once they are analyzed; None if there is none.

        Its result raises InspectorError if the capture could not be written.
        """
        return None if self._capture is None and not self._pending else self._analyzed()

    async def _analyzed(self) -> Path:
        if self._task:
            await asyncio.wait([self._task])
        if self._capture is None:
            raise InspectorError("The flows could not be analyzed.", "The event log says why.")
        return self._capture

    async def finish(self) -> None:
        """Analyze the rest now."""
        self._hurry.set()
        if self._task:
            await self._task

    async def close(self) -> None:
        """Give up the analysis, and delete the capture."""
        if self._task:
            self._task.cancel()
        if self._writing:
            await asyncio.wait([self._writing])  # a thread cannot be cancelled
        if self._directory:
            self._directory.cleanup()

    # -- analysis -----------------------------------------------------------------------------------

    async def _analyze(self) -> None:
        while self._pending:
            await self._settle()
            self._pending = False
            try:
                await self._mark(self._groups())
            except Exception as error:  # noqa: BLE001 - whatever a file of anybody contains
                logging.warning(f"The flows could not be analyzed: {clean(str(error))}")

    async def _settle(self) -> None:
        """Wait until no more flows are added for a while."""
        while (left := self._added + QUIET - asyncio.get_running_loop().time()) > 0 and not self._hurry.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), left)

    def _groups(self) -> list[Group]:
        """Return the flows. A copy that a user made, or that was read twice, is no further exchange."""
        view = ctx.master.addons.get("view")
        groups: dict[object, Group] = {}
        for flow in self._flows if view is None else view.resolve("@all"):
            if isinstance(flow, http.HTTPFlow):
                groups.setdefault(_key(flow), []).append(flow)
        return [group for group in groups.values() if not any(map(self._is_proxied, group))]

    async def _mark(self, groups: list[Group]) -> None:
        if not groups:
            return
        self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, groups))
        numbered = await asyncio.shield(self._writing)
        checked = await self._check()
        found: dict[int, list[tuple[str, str, str]]] = {}
        for finding in checked.findings:
            for seq in finding.seqs:
                found.setdefault(seq, []).append((finding.rule, finding.severity, finding.message))
        read: dict[int, tuple[Group, dict[tuple[str, str, str], None]]] = {}
        for seq, group in enumerate(numbered, 1):
            read.setdefault(id(group), (group, {}))[1].update(dict.fromkeys(found.get(seq, ())))
        changed = [flow for group, mine in read.values() for flow in group if annotate(flow, list(mine))]
        await ctx.master.addons.trigger_event(UpdateHook(changed))
        marked = sum(bool(mine) for _, mine in read.values())
        logging.info(f"{len(read)} flows were read; {marked} have findings: puppet.check explains them")
        if lost := len(groups) - len(read) + len(checked.not_analyzed):
            logging.warning(f"{lost} flows could not be analyzed")

    def _write(self, groups: Iterable[Group]) -> list[Group]:
        """Write the flows to a new capture; return for each of its records the flows that it is of."""
        pairs = sorted(_exchanges(groups), key=lambda pair: pair[0].ended)
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="puppet-inspector-")
        previous, self._number = self._capture, self._number + 1
        path = Path(self._directory.name) / f"flows-{self._number}.sqlite"
        noted: set[str] = set()
        numbered = []
        with Capture.create(path) as capture:
            for exchange, group in pairs:
                for record in importing.with_refusal(exchange):
                    importing.keep(record, capture, noted)
                    numbered.append(group)
                if len(capture.pending) >= importing.BATCH:
                    capture.flush()
            capture.set_meta([("source", "flows that mitmproxy read")])
        self._capture = path
        if previous:
            previous.unlink(missing_ok=True)
        return numbered

    async def _check(self) -> _Checked:
        """Return what ``puppet-inspector check`` finds. Raises InspectorError."""
        arguments = [
            "check",
            "--json",
            *commands.check_options(),
            "--",
            str(self._capture),
        ]
        status, output, errors = await commands.run(arguments)
        if status:
            raise InspectorError(errors.decode(errors="replace").strip().rpartition("\n")[2])
        return msgspec.json.decode(output, type=_Checked)


def _key(flow: http.HTTPFlow) -> object:
    request, response = flow.request, flow.response
    ended = response.timestamp_end if response else None
    times = request.timestamp_start, request.timestamp_end, ended
    return flow.client_conn.id, *times, request.data.method, request.data.path


def _exchanges(groups: Iterable[Group]) -> Iterable[tuple[Exchange, Group]]:
    """Yield the exchanges that can be stored."""
    for group in groups:
        with contextlib.suppress(Exception):  # mitmproxy checks little of what it reads
            yield mitm_flows.recorded(group[0]), group

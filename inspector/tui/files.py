"""The files of one run: which were requested, in sync or fetched, and whether their content was correct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.worker import get_current_worker

from inspector.explain import file_transfers
from inspector.explain.file_transfers import FileState, FileUse
from inspector.pages.styles import BAD, DOUBT, GOOD
from inspector.protocol.files import ChecksumResult
from inspector.text import clean, size
from inspector.tui.columns import Column
from inspector.tui.part import Cancelled, Details, PartView, middle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inspector.analysis.analyzer import Step

_STATES = {
    FileState.WRONG: BAD,
    FileState.MISSING: BAD,
    FileState.REFUSED: BAD,
    FileState.FETCHED: DOUBT,
    FileState.IN_SYNC: GOOD,
    FileState.PASSED: "dim",
    FileState.UNKNOWN: "dim",
    FileState.BARE: "dim",
}
_RANK = {state: place for place, state in enumerate(FileState)}
_BAD = (FileState.WRONG, FileState.MISSING, FileState.REFUSED)
_ASKING = {
    "metadata": "metadata requested",
    "listing": "listed with its directory",
    "plugins": "listed with its mount",
    "catalog": "in the static catalog",
    "content": "fetched without metadata",
}


def _digest(use: FileUse) -> Text:
    verdict = use.verdict
    if verdict is None:
        return Text("-")
    match verdict.verdict:
        case ChecksumResult.RIGHT:
            return Text("right", style=GOOD)
        case ChecksumResult.WRONG:
            return Text("WRONG", style=BAD)
        case ChecksumResult.UNCHECKABLE:
            return Text(clean(verdict.why), style="dim")


def _checksum(use: FileUse) -> str:
    checksum = use.metadata.checksum if use.metadata else None
    return clean(checksum.value) if checksum else "-"


def _mode(mode: int | str | None) -> str:
    return f"{mode:04o}" if isinstance(mode, int) and 0 <= mode < 0o10000 else clean(str(mode or "-"))[:8]


def _owner(use: FileUse) -> str:
    if use.metadata is None:
        return "-"
    owner, group = ("-" if part is None else str(part) for part in (use.metadata.owner, use.metadata.group))
    return clean(f"{owner}:{group}")


class Files(PartView[FileUse]):
    """The files of a run. Enter opens the exchange that is evidence for a file's state."""

    TITLE = "Files"
    COLUMNS = (
        Column("file", lambda use, width: middle(use.name, width), 24, 4, sort=lambda use: use.name),
        Column("environment", lambda use, _: clean(use.environment or "-"), 11, 1, least=100,
               sort=lambda use: use.environment or ""),
        Column("state", lambda use, _: Text(use.state, style=_STATES[use.state]), 11,
               sort=lambda use: _RANK[use.state]),
        Column("type", lambda use, _: clean(use.metadata.type or "-") if use.metadata else "-", 9, least=120,
               sort=lambda use: use.metadata.type if use.metadata else ""),
        Column("checksum", lambda use, _: _checksum(use), 10, 1, least=120),
        Column("mode", lambda use, _: _mode(use.metadata.mode) if use.metadata else "-", 4, least=120),
        Column("owner", lambda use, _: _owner(use), 9, least=120),
        Column("fetched", lambda use, _: f"{use.times}x" if use.times else "-", 7, right=True,
               sort=lambda use: -use.times),
        Column("bytes", lambda use, _: size(use.size) if use.times else "-", 9, right=True,
               sort=lambda use: -use.size),
        Column("digest", lambda use, _: _digest(use), 8, 1, sort=lambda use: _digest(use).plain),
    )  # fmt: skip

    def key(self, item: FileUse) -> tuple[str, str | None]:
        return item.name, item.environment

    def state_of(self, item: FileUse) -> str:
        return item.state

    def differs(self, item: FileUse) -> bool:
        return item.state.differs

    def prepare(self) -> Callable[[], Sequence[FileUse]]:
        source, number = self.source, self.number

        def steps() -> Iterator[Step]:
            worker = get_current_worker()
            for step in source.steps(number):
                if worker.is_cancelled:
                    raise Cancelled
                yield step

        # The causes of a failed run come first, then the order of the requests.
        return lambda: sorted(
            file_transfers.files(steps()), key=lambda use: _RANK[use.state] if use.state in _BAD else len(FileState)
        )

    def nothing(self) -> str:
        return "The agent requested no files."

    def sums(self, items: Sequence[FileUse]) -> str:
        totals = file_transfers.totals(items)
        again = f" (+{totals.again} repeated)" if totals.again else ""
        return (
            f"{totals.asked} requested, {totals.in_sync} in sync, {totals.fetched} fetched{again}, "
            f"{size(totals.size)}, {totals.wrong} wrong, {totals.missing} missing"
        )

    def proof(self, item: FileUse) -> int:
        return item.seq

    def describe(self, item: FileUse, details: Details) -> None:
        line = details.line
        line("file", item.name, "bold")
        line("environment", item.environment or "-")
        line("state", item.state, _STATES[item.state])
        if item.present is not None:
            line("the agent", "already had it" if item.present else "did not have this content")
        seqs = ", ".join(str(seq) for seq in item.asked[-5:])
        line("request", f"{_ASKING[item.asking]}{f' (record {seqs})' if seqs else ''}")
        if item.status != 200:
            line("status", str(item.status or "no answer"))
        if item.instead:
            line("used instead", item.instead)
        for ref in item.resources[:20]:
            line("resource", ref)
        if metadata := item.metadata:
            line("type", metadata.type or "-")
            line("checksum", metadata.checksum.value if metadata.checksum else "-")
            line("mode, owner", f"{_mode(metadata.mode)} {_owner(item)}")
            if metadata.destination:
                line("link target", metadata.destination)
        for fetch in item.fetches[:50]:
            answer = f"{fetch.status or 'no answer'}, {size(fetch.size)}, digest {fetch.verdict}"
            line(f"fetch {fetch.seq}", answer + (f": {fetch.why}" if fetch.why else ""))

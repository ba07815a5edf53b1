"""F04 and F05: files that are fetched twice in a run, or in every run."""

from inspector.protocol.files import is_plugin
from inspector.rules.kit import *
from inspector.runs.run_history import REPEATED

_FILE = "modules/demo/app.conf"


@rule(
    "F04",
    Severity.NOTICE,
    title="the same file fetched twice in one run",
    fix=(
        advice("let one of them copy the file, and make the others links to it or let them depend on it",
               only_if="several resources copy the same file"),
    ),
    source="docs/protocol.md#file-requests",
    good=lambda: [
        talk(plugins(), catalog(), metadata(_FILE), content(_FILE), report()),
        talk(plugins(), catalog(), metadata(_FILE), content(_FILE), metadata("modules/demo/b"),
             content("modules/demo/b"), report()),
    ],
    bad=lambda: [talk(plugins(), catalog(), metadata(_FILE), content(_FILE), content(_FILE), report())],
)  # fmt: skip
def file_fetched_twice(case: RunCase) -> Iterator[Statement]:
    """The agent fetched the same content more than once in one run: several resources have the same source, or the
    agent displays differences (`-t`, show_diff), for which it fetches a changed file a second time."""
    twice = {
        name: fetches for name, fetches in case.run.files.fetched.items() if fetches.times > 1 and not is_plugin(name)
    }
    if twice:
        seqs = [seq for fetches in list(twice.values())[:20] for seq in (fetches.first, fetches.last)]
        yield Statement(f"fetched more than once: {some(list(twice))}", tuple(sorted(seqs)), at=places.REQUEST_LINE)


def _run(number: int, *, fetches: bool = True) -> list[Record]:
    uuid = f"a-{number}"
    parts = [plugins(), catalog(uuid=uuid), metadata(_FILE), *([content(_FILE)] if fetches else []), report(uuid=uuid)]
    return talk(*parts, after=1800.0 * number)


@rule(
    "F05",
    Severity.WARNING,
    otherwise="notice below the threshold warning_runs",
    title="the same file is fetched in every run",
    fix=(
        advice("see what the report says about that file"),
        on_node("find what changes it back between runs", only_if="the file is changed each time"),
        advice("look for `checksum => mtime` or `ctime`, and for two resources that write to one file"),
    ),
    source="docs/protocol.md#file-metadata",
    good=lambda: [together(_run(1), _run(2, fetches=False), _run(3))],
    bad=lambda: [together(_run(1), _run(2), _run(3)), together(*map(_run, range(1, 6)))],
)
def file_fetched_each_run(case: RunCase, *, runs: float = 3, warning_runs: float = 5) -> Iterator[Statement]:
    """A file that is in its desired state is not fetched again. This one was fetched in several runs in a row:
    something changes it back, the configured checksum never matches, or it was deployed again before each run."""
    run = case.run
    if not run.files.fetched:
        return
    previous = [earlier for earlier in case.ledger.fleet.before(run) if earlier.key == run.key]
    rows = {name: 1 + in_a_row(name in earlier.fetched for earlier in reversed(previous)) for name in run.files.fetched}
    repeated = case.ledger.fleet.changed_in_a_row(run, run.changed)  # of these files P11 says more
    known = {name for ref, row in repeated.items() if row >= REPEATED for name in run.files.sources.get(ref, ())}
    always = [name for name, row in rows.items() if row >= runs and name not in known]
    if always:
        longest = max(rows[name] for name in always)
        downloads = sorted(run.files.fetched[name].last for name in always[:20])
        seqs = (*(earlier.seqs[0] for earlier in previous[1 - longest :]), *downloads)
        severity = Severity.WARNING if longest >= warning_runs else Severity.NOTICE
        yield Statement(
            f"fetched in {longest} runs in a row: {some(always)}", seqs, severity=severity, at=places.REQUEST_LINE
        )

from itertools import pairwise

from inspector.rules.kit import *


def _runs(refreshes: str, pause: float = 1800) -> list[ExamplePart]:
    """Runs of an agent: an ``r`` for each that asks for a newer CA bundle, a point for others."""
    parts: list[ExamplePart] = []
    for number, refreshed in enumerate(refreshes):
        asks = [altered(ca(refresh=True, status=304), leg={"id": f"ca-{number}"})] if refreshed == "r" else []
        parts += [*asks, catalog(uuid=f"a-{number}"), report(uuid=f"a-{number}"), wait(pause)]
    return parts


@rule(
    "B47",
    Severity.NOTICE,
    title="CA bundle asked for again in every run",
    fix=(
        on_node("see how often it is to ask", "puppet config print ca_refresh_interval --section agent"),
        advice("nothing breaks; if it is a day, this agent does not remember that its copy is current when the master "
               "answers 304, or cannot write the file: upgrade it, or see who owns the file"),
        on_node("save the requests of a day", 'touch "$(puppet config print localcacert)"'),
    ),
    source="docs/protocol.md#ca-download",
    good=lambda: [
        talk(*_runs("r..r"), version="8.10.0", master_version="8.10.0"),
        talk(*_runs("rrrr", DAY), version="8.10.0", master_version="8.10.0"),
    ],
    bad=lambda: [talk(*_runs("rrr"), version="8.10.0", master_version="8.10.0")],
)  # fmt: skip
def ca_refreshed_each_run(case: RunCase, *, runs: float = 3, hours: float = 12) -> Iterator[Statement]:
    """The agent asks for a newer CA bundle in each of its runs, though once a day is its default. It notes when it
    asked by the time of its own file: if an answer that nothing changed (304) leaves that unchanged, or the file cannot
    be written, the agent asks again every time."""
    run = case.run
    refresh = next((answer for answer in run.cas if answer.refresh), None)
    if refresh is None:
        return
    before = case.ledger.fleet.before(run)[::-1]
    series = before[: in_a_row(past.ca_refreshed is not None for past in before)]
    began = [run.started, *(past.started for past in series)]
    pauses = [later - earlier for later, earlier in pairwise(began)]
    if len(series) + 1 >= runs and max(pauses, default=0.0) < hours * 3600:
        seqs = [past.ca_refreshed for past in series[::-1] if past.ca_refreshed is not None]
        yield Statement(
            f"the agent asked for a newer CA bundle in {len(series) + 1} runs one after another, "
            f"within {lasting(began[0] - began[-1])}",
            (*seqs, refresh.seq),
            at=places.header("request", "If-Modified-Since"),
        )

"""P13."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import On, places, rule
from inspector.rules.cases import ExchangeCase, Statement
from inspector.rules.words import cut, errors, line
from inspector.runs.examples import catalog, plugins, report, talk

_LOG = {"level": "err", "source": "Facter", "message": "Permission denied @ rb_sysopen - /proc/1/environ"}


@rule(
    "P13",
    Severity.NOTICE,
    On.EXCHANGE,
    at=(Kind.REPORT,),
    visible=Visible.WIRE,
    title="errors in the log of a successful run",
    remedy="Run `puppet agent -t --debug` on the node and look for the message: usually it comes from a custom fact "
    "or a plugin.",
    source="docs/protocol.md#report-status",
    good=lambda: [
        talk(plugins(), catalog(), report(logs=[_LOG | {"level": "warning"}])),
        talk(plugins(), catalog(), report(logs=[])),
    ],
    bad=lambda: [talk(plugins(), catalog(), report(logs=[_LOG, _LOG]))],
)
def errors_in_log(case: ExchangeCase) -> Iterator[Statement]:
    """The run counts as successful, but the agent logged an error: a fact could not be read, a plugin could not be
    loaded, a file could not be backed up. Whatever depends on it may be missing, and the report's status does not show
    it."""
    report = case.step.request
    if not isinstance(report, d.Report) or report.outcome not in ("changed", "unchanged"):
        return
    lines = errors(report)
    if lines:
        source = f"{cut(lines[0].source, 80)}: " if lines[0].source else ""
        suffix = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        yield Statement(
            f"error in the log: {source}{line(lines[0].message)}{suffix}",
            at=places.meaning(line(lines[0].message).partition("…")[0], "log"),
        )

from inspector.rules.kit import *
from inspector.rules.words import FIRST, READ, errors, line
from inspector.text import beginning

_FACT = regex.compile(r"(?i)resolving (?:a )?custom fact|\bfact[ =]|fact file")
"""An error of a fact: what the catalog was compiled from is incomplete."""
_LOG = {"level": "err", "source": "Facter", "message": "Permission denied @ rb_sysopen - /proc/1/environ"}


@rule(
    "P13",
    Severity.NOTICE,
    at=(Kind.REPORT,),
    title="errors in the log of a successful run",
    fix=(on_node("look for the message: usually it comes from a custom fact or a plugin", "puppet agent -t --debug"),),
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
        lines.sort(key=lambda entry: not _FACT.search(beginning(entry.message, READ)))
        texts = dict.fromkeys((f"{cut(entry.source, 80)}: " if entry.source else "") + line(entry.message)
                              for entry in lines)  # fmt: skip
        shown = "; ".join(list(texts)[:FIRST])
        suffix = f"; and {len(texts) - FIRST} more" if len(texts) > FIRST else ""
        yield Statement(
            f"error in the log: {shown}{suffix}",
            at=places.meaning(line(lines[0].message).partition("…")[0], "log"),
            printed=lines[0].message,
        )

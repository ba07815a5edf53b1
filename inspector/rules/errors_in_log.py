from inspector.rules.kit import *
from inspector.rules.words import FIRST, errors, line
from inspector.text import READ, beginning

_FACT = regex.compile(r"(?i)resolving (?:a )?custom fact|\bfact[ =]|fact file")
"""An error of a fact: what the catalog was compiled from is incomplete."""
_NO_VALUE = regex.compile(r"(?i)(?:while resolving (?:a )?(?:custom facts? (?:in )?)?|Fact resolution )(\S{1,200})")
"""What Facter logs of a fact or a file of facts that gives no value: its name follows."""
_NAMED = regex.compile(r"fact='([^']+)'?")
_LOG = {"level": "err", "source": "Facter", "message": "Permission denied @ rb_sysopen - /proc/1/environ"}


@rule(
    "P13",
    Severity.NOTICE,
    at=(Kind.REPORT,),
    otherwise="warning if facts have no value",
    title="errors in the log of a successful run",
    fix=(
        on_node("look for the message: usually it comes from a custom fact or a plugin", "puppet agent -t --debug"),
        on_node("see the fact alone, and correct it in its module", "puppet facts show <fact> --debug",
                only_if="the message names a fact"),
    ),
    source="docs/protocol.md#report-status",
    good=lambda: [
        talk(plugins(), catalog(), report(logs=[_LOG | {"level": "warning"}])),
        talk(plugins(), catalog(), report(logs=[])),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), report(logs=[_LOG, _LOG])),
        talk(plugins(), catalog(), report(logs=[_LOG | {
            "message": "Error while resolving custom fact fact='role', resolution='<anonymous>': no such device",
        }])),
    ],
)  # fmt: skip
def errors_in_log(case: ExchangeCase) -> Iterator[Statement]:
    """The run counts as successful, but the agent logged an error: a fact could not be read, a plugin could not be
    loaded, a file could not be backed up. Whatever depends on it may be missing, and the report's status does not show
    it. If a fact has no value, the catalog was compiled without it."""
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
        failed = _failed_facts(lines)
        count = f"{len(failed)} facts have no value: {some(failed)}; " if len(failed) > 1 else ""
        yield Statement(
            f"{count}error in the log: {shown}{suffix}",
            severity=Severity.WARNING if failed else None,
            at=places.meaning(line(lines[0].message).partition("…")[0], "log"),
            printed=lines[0].message,
        )


def _failed_facts(lines: list[d.LogLine]) -> list[str]:
    """Return the names of the facts, or of the files of facts, that gave no value."""
    found = (_NO_VALUE.search(beginning(entry.message, READ)) for entry in lines)
    words = (match[1].rstrip(",:") for match in found if match)
    return list(dict.fromkeys(named[1] if (named := _NAMED.match(word)) else word for word in words))

"""P01 and P06: resources that failed, or did not restart."""

from inspector.rules.kit import *
from inspector.rules.words import FIRST, TEXT, errors, failure, line, located
from inspector.runs.observations import ObservedFiles, refusal
from inspector.text import READ

COMPARED = 50
"""Failed resources whose messages are compared."""

_MOST = 50
"""How many of the first and of the last refused requests are named."""
_FAILED = {
    "Exec[/bin/false]": {
        "failed": True,
        "file": "/etc/puppetlabs/code/environments/production/manifests/site.pp",
        "line": 12,
    },
    "Notify[after]": {"skipped": True},
}
_LOG = {
    "level": "err",
    "source": "/Stage[main]/Main/Exec[/bin/false]/returns",
    "message": "change from 'notrun' to ['0'] failed: '/bin/false' returned 1 instead of one of [0]",
}


@rule(
    "P01",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="resources failed",
    fix=(
        advice("correct the resource that the message names, at that place in the manifest or on the node"),
        advice("leave it as it is", only_if="it was a noop run, and what is lacking another resource brings"),
        on_node("run the agent again; resources that were skipped because they depend on it are then applied as well",
                "puppet agent -t"),
    ),
    source="docs/protocol.md#report-status",
    explains=("P13",),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report(result="changed", resource_statuses={"Notify[x]": {"changed": True}})),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), report(result="failed", resource_statuses=_FAILED, logs=[_LOG])),
        talk(plugins(), catalog(), report(result="failed", noop=True, resource_statuses=_FAILED)),
        talk(plugins(), catalog(), report(result="failed", logs=[_LOG], metrics={
            "resources": {"name": "resources", "label": "Resources", "values": [["failed", "Failed", 1]]},
        })),
    ],
    also=("R18",),
)  # fmt: skip
def resources_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The catalog was applied, but some of its resources could not be brought into their desired state. Resources that
    depend on them were skipped. A noop run installs nothing: there a resource also fails because the package, file or
    user that it needs, which another resource brings, is not on the node yet."""
    report = case.step.request
    if not isinstance(report, d.Report):
        return
    failed = report.failed
    count = len(failed) or whole(report.counts.get("failed"))
    if count < 1:
        return
    summary = "1 resource failed" if count == 1 else f"{count} resources failed"
    if report.noop:
        summary += " in a noop run, which installs nothing"
    if failed:
        texts = {ref: failure(report, ref) for ref in failed[:COMPARED]}
        names = {ref: located(report, ref) for ref in texts}
    else:  # 2.7 sends empty statuses: failures are in its log only
        lines = [error for error in errors(report) if (error.source or "").startswith("/Stage[")]
        texts = {entry.source or "": entry.message for entry in lines[:COMPARED]}
        names = {source: cut(source, 100) for source in texts}
    failures = []
    groups = _by_message(texts)
    room = TEXT if len(groups) == 1 else 2 * TEXT // 3
    for message, refs in list(groups.items())[:FIRST]:
        count -= len(refs)
        text = line(message, room)
        more = f" and {len(refs) - 1} more" if len(refs) > 1 else ""
        failures.append(names[refs[0]] + more + (f": {text}" if text else ""))
    if failures and count > 0:
        failures.append(f"and {count} more")
    yield Statement(
        f"{summary}: {'; '.join(failures)}" if failures else summary,
        at=places.meaning(failed[0] if failed else "err", "resources" if failed else "log"),
        printed=next(iter(texts.values()), ""),
        follows=_refused(_reasons(report), case.run.files),
    )


_PRINTED = regex.compile(r"Error (\d{3}) on SERVER: (.*)", regex.DOTALL)
_SOURCE = regex.compile(r"puppet://[^/\s]*/([^\s:'\"]+)")
_SAVED = "back up"
"""What an agent prints of a file that it could not save in the filebucket; the answers to HEAD have no message."""


def _reasons(report: d.Report) -> Iterator[str]:
    """Yield why each resource failed: what its events say, or the log of agents without them."""
    lines = [entry.message for entry in errors(report) if (entry.source or "").startswith("/Stage[")]
    for ref in report.failed:
        events = [event for event in report.resource_statuses[ref].events or [] if event.status == "failure"]
        if not events:
            break
        yield from (event.message or "" for event in events)
    else:
        if report.failed:
            return
    yield from lines or [""]


def _refused(reasons: Iterator[str], files: ObservedFiles) -> tuple[int, ...]:
    """Return the refused requests that are the reason of all failures; empty if one of them has another reason."""
    seqs: dict[int, None] = {}
    for reason in reasons:
        seq = _refused_request(reason[:READ], files)
        if seq is None:
            return ()
        seqs[seq] = None
    found = sorted(seqs)
    return (*found[:_MOST], *found[-_MOST:])


def _refused_request(reason: str, files: ObservedFiles) -> int | None:
    printed = _PRINTED.search(reason)
    if printed and (known := files.refusals.get(refusal(printed[1], printed[2]))):
        return known.seq
    if printed and _SAVED in reason:
        backups = (each for each in files.refusals.values() if each.kind is Kind.BACKUP)
        return next((each.seq for each in backups if str(each.status) == printed[1]), None)
    if "Could not retrieve" in reason:
        for name in _SOURCE.findall(reason):
            answer = files.metadata_answers.get(name)
            if answer and answer.status is not None and answer.status >= 400:
                return answer.seq
    return None


def _by_message(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the resources with the same error message together."""
    groups: dict[str, list[str]] = {}
    for ref, text in texts.items():
        groups.setdefault(line(text, READ), []).append(ref)
    return groups


@rule(
    "P06",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="restart failed",
    fix=(
        on_node("see why the restart failed", "systemctl status <service>; journalctl -u <service>"),
        on_node("restart it by hand once that is fixed: Puppet does it only when something notifies the resource "
                "again"),
    ),
    source="docs/protocol.md#report-status",
    explains=("P13",),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report(result="changed", resource_statuses={
            "Service[app]": {"changed": True, "failed_to_restart": False},
        })),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), report(result="failed", resource_statuses={
            "Service[app]": {"failed_to_restart": True},
        })),
    ],
)  # fmt: skip
def restart_failed(case: ExchangeCase) -> Iterator[Statement]:
    """A resource that a service (or an exec) subscribes to was changed, and the restart failed. The new configuration
    is on the node, but the service may still run with the old one, or not at all."""
    report = case.step.request
    if not isinstance(report, d.Report):
        return
    refs = [ref for ref, status in report.resource_statuses.items() if status.failed_to_restart]
    count = len(refs) or whole(report.metric("resources", "failed_to_restart"))
    if count > 0:
        summary = "1 resource did not restart" if count == 1 else f"{count} resources did not restart"
        yield Statement(
            f"{summary}: {some(refs)}" if refs else summary, at=places.meaning(refs[0] if refs else "failed_to_restart")
        )

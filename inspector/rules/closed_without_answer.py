from inspector.rules.connection_errors import closed, ours
from inspector.rules.kit import *
from inspector.runs.examples import given_up
from inspector.runs.observations import Unanswered

_OWN = 'openssl crl -noout -nextupdate -in "$(puppet config print hostcrl)"'
_BETWEEN = (
    on_master(
        "see whether it was restarted or killed at that time, or had no memory left", "journalctl -u puppetserver"
    ),
    on_master("start it", "systemctl start puppetserver", only_if="it does not run"),
    advice(
        "look at what is in between, a load balancer or a firewall: its time limit, and whether its own master is up",
        only_if="the master ran all the time",
    ),
    advice("let it keep idle connections for 10 s or more", only_if="the connection had been idle"),
    on_node("run the agent again", "puppet agent -t"),
)
_REFUSED = (
    on_ca("see whether the agent's certificate is revoked or expired", "{list}"),
    on_node("check it there as well", "{verify}"),
    on_master("compare its clock", "date -u"),
    on_master("see when the CRL expires", _OWN),
    *_BETWEEN,
)
_AT_ONCE = 3
"""Seconds within which a connection is closed that is refused."""


def _fix(run: Run) -> Fix | None:
    return _REFUSED if _refused(run, _closed(run)) else None


@rule(
    "T28",
    Severity.ERROR,
    otherwise="warning in a run that was completed nevertheless",
    title="the master closed the connection without an answer",
    fix=_BETWEEN,
    instead=_fix,
    source="docs/protocol.md#interrupted-answers; puppet 7.23.0 lib/puppet/http/factory.rb",
    explains=("T09", "T14", "T18", "T20", "T22", "S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(plugins(), unanswered(catalog()), catalog(), report()),
        talk(plugins(), unanswered(catalog(), "the agent disconnected")),
    ],
    bad=lambda: [
        talk(given_up(ca(), "the master closed the connection without an answer", 4)),
        talk(plugins(), unanswered(catalog()), report(result="failed")),
        talk(*(unanswered(part, "server closed connection") for part in (plugins(), catalog(), report()))),
    ],
)
def closed_without_answer(case: RunCase) -> Iterator[Statement]:
    """The connection to the master was fine, but the master, or what is in front of it, closed it while the agent
    waited for an answer. From version 6 on an agent does not send such a request again. Most often the master was
    restarted or killed, or a load balancer lost it. A master that refuses the agent's certificate, with TLS 1.3, may do
    the same, then with every connection and at once."""
    run, found = case.run, _closed(case.run)
    if run.tool or not found:
        return
    needed = run.outcome != "complete" or any(each.endpoint.kind in (Kind.CATALOG, Kind.REPORT) for each in found)
    yield Statement(
        _words(run, found),
        tuple(each.seq for each in found[:20]),
        severity=None if needed else Severity.WARNING,
        at=places.NO_ANSWER,
    )


def _words(run: Run, found: list[Unanswered]) -> str:
    if _refused(run, found):
        return (
            "the master closed every connection without an answer: most often because it refuses the agent's "
            "certificate (revoked, expired, not valid yet by its clock), or because its own CRL has expired"
        )
    names = some(list(dict.fromkeys(each.endpoint.name for each in found)))
    longest, idle = max(each.waited for each in found), max(each.idle for each in found)
    when = f" after {lasting(longest)}" if longest >= 1 else f", idle before for {lasting(idle)}" if idle >= 1 else ""
    before = "; it had answered other requests of this run" if run.answered else ""
    return f"no answer to {names}: the master closed the connection{when}{before}"


def _closed(run: Run) -> list[Unanswered]:
    """Return the requests whose connection was closed by the master's side, if that gave no reason."""
    explained = {handshake.leg.id for handshake in run.handshakes if handshake.alert or handshake.culprits}
    return [
        each
        for each in run.unanswered
        if each.endpoint.kind in (*RUN, *BOOTSTRAP)
        and closed(each.reason)
        and not ours(each.reason)
        and (each.leg is None or (each.leg.secured is not None and each.leg.id not in explained))
    ]


def _refused(run: Run, found: list[Unanswered]) -> bool:
    """Whether it looks like a refused certificate: the agent showed one, and each connection was closed at once."""
    several = len(run.seqs) > 1 and not run.answered
    return bool(several and run.authenticated and all(each.waited < _AT_ONCE for each in found))

from inspector.model import Identity, Leg
from inspector.rules.connection_errors import by_proxy
from inspector.rules.kit import *
from inspector.rules.puppetdb_refuses import named
from inspector.rules.trust import without_identity

_OF_TIME = "verify time is synchronized"
"""What OpenSSL's words for a time that is not now end with (``protocol.chains``)."""
_CLOSED = "the master closed the connection without an answer"
_UNREADABLE = Identity("keys", reason="the key of node1.example cannot be used: it has mode 0644")


@rule(
    "T23",
    Severity.ERROR,
    at=(*RUN, Kind.RENEWAL, *PUPPETDB),
    otherwise="notice for the renewal of the certificate: the agent keeps the one that it has",
    title="the proxy did not use the agent's identity, and the master refused it",
    fix=(
        on_proxy(
            "see what it can use; the line `identity` that it prints at its start names the option, puppet_identity",
            "puppet-inspector doctor --ssldir <ssldir>",
        ),
        on_proxy(
            "see whether its clock is right and set by NTP",
            "timedatectl",
            only_if="the message says `verify time is synchronized`",
        ),
        on_proxy("correct what the message names, in the files of puppet_identity, puppet_ca and puppet_crl or there"),
        on_node("run the agent again", "puppet agent -t"),
    ),
    source="docs/protocol.md#default-rules",
    explains=("S02", "T04"),
    without_catalog=NO_CATALOG_NO_REPORT,
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(*(altered(part, identity=_UNREADABLE) for part in (plugins(), catalog(), report()))),
    ],
    bad=lambda: [
        talk(*(altered(part, identity=_UNREADABLE) for part in (plugins(), catalog(status=403), report(status=403)))),
        talk(*(altered(part, identity=Identity("none")) for part in (catalog(status=403), report(status=403)))),
        talk(altered(renewal(status=403), identity=_UNREADABLE, master=Leg("master#1", "master")), catalog(), report(),
             version="8.10.0", master_version="8.10.0"),
        talk(altered(unconnected(stored(), _CLOSED), identity=_UNREADABLE, master=Leg("master#1", "master"))),
        talk(altered(querying(status=403, answer=b"denied"), identity=_UNREADABLE)),
    ],
)  # fmt: skip
def identity_not_used(case: ExchangeCase) -> Iterator[Statement]:
    """The agent presented its certificate, but towards the master this proxy used no identity for it: it had no usable
    key, could not verify the agent, or is set to use none. The master then refuses what only a node with a certificate
    may request. Without the proxy the agent would not be refused. Before PuppetDB the agent is a master, and PuppetDB
    ends a connection without a certificate."""
    used, renews = case.exchange.identity, case.kind is Kind.RENEWAL
    refused = case.status in (401, 403) or (renews and case.status == 400)
    refused |= case.kind in PUPPETDB and case.status is None and not by_proxy(case.exchange)
    if refused and used and without_identity(case.exchange):
        reason = brief(used.reason.rstrip(".")) if used.reason else "puppet_identity is none"
        what = named(case) if case.kind in PUPPETDB else case.endpoint
        how = f"was refused with {case.status}" if case.status else "got no answer"
        yield Statement(
            f"{what} {how}: no identity was used ({reason})",
            severity=Severity.NOTICE if renews else None,
            follows=(case.exchange.seq,) if _OF_TIME in (used.reason or "") else (),  # T10
        )

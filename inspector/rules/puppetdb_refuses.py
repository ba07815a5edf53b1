"""D01, D02, D05 and D06: what PuppetDB refuses."""

from inspector.protocol import puppetdb
from inspector.rules.connection_errors import by_proxy
from inspector.rules.kit import *
from inspector.rules.trust import without_identity
from inspector.text import size

LOG = "grep -rhs --include=puppetdb.log 'ERROR\\|WARN' /var/log/puppetlabs /var/log/puppetdb | tail"
"""Shows what PuppetDB wrote last."""
_TOO_LARGE = {"error": "Command rejected due to size 5000 exceeding max-command-size 1000"}
_NOT_LISTED = {"error": "Permission denied: certificate name puppet.example is not in the allowlist"}
_RETIRED = {"error": 'Version 3 of command "replace facts" is retired. The minimum supported version is 4.'}


def named(case: ExchangeCase) -> str:
    """Return the name of a request to PuppetDB."""
    match = case.step.match
    if match is None or case.kind is Kind.PUPPETDB_QUERY:
        return f"the query {asked_for(case)}".rstrip()
    return cut(f"{puppetdb.command(match) or 'the command'} of {puppetdb.node(match) or 'a node'}", 200)


def asked_for(case: ExchangeCase) -> str:
    """Return the query that was sent to PuppetDB, which may be cut."""
    match = case.step.match
    return cut(puppetdb.query(match, case.step.request), 300) if match else ""


@rule(
    "D01",
    Severity.ERROR,
    at=(Kind.PUPPETDB_COMMAND,),
    refused=True,
    title="PuppetDB refuses a command for its size",
    fix=(
        on_node("see in the report or the catalog what is large (P04 and R11 name it)"),
        on_puppetdb(
            "let larger ones in: `max-command-size` in bytes, in `[command-processing]` of conf.d/config.ini, or "
            "`reject-large-commands = false` there"
        ),
        on_puppetdb("restart it", "systemctl restart puppetdb"),
    ),
    source="docs/protocol.md#endpoint-puppetdb_command",
    event=True,
    good=lambda: [talk(stored(), stored("replace_catalog"), stored("store_report"))],
    bad=lambda: [talk(stored(), stored("store_report", status=413, answer=_TOO_LARGE))],
)
def command_too_large(case: ExchangeCase) -> Iterator[Statement]:
    """PuppetDB, or a proxy before it, takes no command of this size. A report is lost: the agent is told that all is
    well, and only the master's log has an error. Without its facts or its catalog stored, the node gets no catalog."""
    if case.status == 413:
        request = case.exchange.request
        unpacked = puppetdb.unpacked(request)
        plain = "" if unpacked is None else f", {size(unpacked)} unpacked"
        yield Statement(
            f"{named(case)} ({size(request.size)}{plain}) was refused with 413: {brief(case.answer)}",
            at=places.answer(case.step.response),
        )


@rule(
    "D02",
    Severity.ERROR,
    at=PUPPETDB,
    refused=True,
    title="PuppetDB does not allow this master",
    fix=(
        on_puppetdb(
            "add the name of the master's certificate, on a line of its own, to the file of `certificate-allowlist` in "
            "`[puppetdb]` of its conf.d"
        ),
        on_puppetdb("restart it", "systemctl restart puppetdb"),
    ),
    source="docs/protocol.md#endpoint-puppetdb_command",
    event=True,
    good=lambda: [talk(stored(), querying())],
    bad=lambda: [talk(stored(status=403, answer=_NOT_LISTED)), talk(querying(status=401, answer=b"denied"))],
)
def master_not_allowed(case: ExchangeCase) -> Iterator[Statement]:
    """PuppetDB trusts the CA of the certificate, and not its name: it has a list of names, and this one is not on it.
    Each node that needs what is asked for or stored gets no catalog. A proxy in between that uses a certificate of its
    own has that one's name."""
    if case.status in (401, 403) and not without_identity(case.exchange):  # T23
        identity = case.exchange.identity
        who = (identity.certname if identity else None) or case.run.certname or "a client without a certificate"
        yield Statement(
            f"{named(case)} was refused with {case.status} to {cut(who, 100)}: {brief(case.answer)}",
            at=places.answer(case.step.response),
        )


@rule(
    "D05",
    Severity.ERROR,
    at=PUPPETDB,
    title="PuppetDB does not serve the master",
    fix=(
        on_puppetdb("see whether it runs", "systemctl status puppetdb"),
        on_puppetdb("read its log: its database may be down, or it is still starting", LOG),
        advice("see whether a proxy or load balancer answers in its place", only_if="it runs"),
    ),
    source="docs/protocol.md#endpoint-puppetdb_command",
    event=True,
    good=lambda: [talk(stored(), querying())],
    bad=lambda: [
        talk(stored(status=503, answer={"error": "starting"})),
        talk(querying(status=500, answer=b"connection failed")),
        talk(unconnected(stored(), "cannot connect to the master p:8081: Connection refused")),
    ],
)
def not_available(case: ExchangeCase) -> Iterator[Statement]:
    """PuppetDB cannot be reached, or answers that it failed. A master with several in `server_urls` tries the next one;
    without another, a node whose facts are not stored, or whose query is not answered, gets no catalog."""
    if case.status is not None and case.status >= 500:
        yield Statement(
            f"{named(case)} was answered {case.status}: {brief(case.answer)}", at=places.answer(case.step.response)
        )
    elif case.status is None and not by_proxy(case.exchange) and not without_identity(case.exchange):  # T23
        yield Statement(f"{named(case)} got no answer: {brief(case.exchange.error or '')}", at=places.NO_ANSWER)


@rule(
    "D06",
    Severity.ERROR,
    at=PUPPETDB,
    refused=True,
    title="PuppetDB does not understand the master",
    fix=(
        on_master("correct the query in the manifest (`puppetdb_query`)", only_if="it is a query"),
        on_master(
            "give it the terminus of PuppetDB's version: package `puppetdb-termini`, of Debian "
            "`puppet-terminus-puppetdb`",
            only_if="it is a command",
        ),
    ),
    source="docs/protocol.md#endpoint-puppetdb_command",
    event=True,
    good=lambda: [talk(stored(), querying())],
    bad=lambda: [
        talk(querying("nodes[certname", status=400, answer=b"PQL parse error at line 1, column 15:\n\nnodes[certname")),
        talk(stored(version="3", status=400, answer=_RETIRED)),
    ],
)
def not_understood(case: ExchangeCase) -> Iterator[Statement]:
    """PuppetDB refuses a query that is wrong, or a command in a version that it no longer takes. The node whose catalog
    is compiled gets none: the master's error has PuppetDB's answer, but not the query."""
    status = case.status or 0
    if not 400 <= status < 500 or status in (401, 403, 413, 429):
        return
    if status == 404 and case.exchange.request.method == "GET":
        return  # nothing is stored, or not yet
    yield Statement(
        f"{named(case)} was refused with {status}: {brief(case.answer)}", at=places.answer(case.step.response)
    )

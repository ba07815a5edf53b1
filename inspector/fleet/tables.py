"""The tables that captures are turned into: their columns, types and units.

A row is a struct. Before it is in a table it is in a spool, where it names its run by ``Run.place``: the number of its
run and its agent's name may only be known later. ``directory`` puts them in.

Columns are never renamed and keep their meaning; a new one is added at the end, and VERSION counts up.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, NamedTuple

import msgspec

from inspector import columns
from inspector.columns import Column, about, moment, number, run_number, seconds, size
from inspector.runs.snapshot import RunColumns

VERSION = 3
"""The version of the columns; ``captures`` has the one with which a capture was converted."""

Capture = Annotated[str, about("The capture, as in `captures`.")]
RunNumber = Annotated[
    int, run_number("The number of the run in its capture, as `runs` lists it; null: it is in no run.")
]


class Row(msgspec.Struct, kw_only=True, gc=False):
    """The columns of every row."""

    capture: Capture


class AgentRow(Row, kw_only=True):
    """A row that may belong to a run."""

    run: RunNumber = 0
    certname: Annotated[str | None, about("The node.")] = None


class RunRow(RunColumns, frozen=True, kw_only=True, gc=False):
    """One run of an agent."""

    capture: Capture
    run: RunNumber = 0
    time: Annotated[int, moment("When it began.")]
    cause: Annotated[str | None, about("The rule that explains why it did not go well.")] = None
    reason: Annotated[str | None, about("Why, in a sentence.")] = None
    certainty: Annotated[str | None, about("certain, likely or not visible.")] = None
    errors: Annotated[int, number("Findings that are errors.")] = 0
    warnings: Annotated[int, number("Findings that are warnings.")] = 0
    notices: Annotated[int, number("Findings that are notices.")] = 0
    server: Annotated[str | None, about("The agent's name for the master.")] = None
    key: Annotated[str | None, about("Digest of the agent's public key.")] = None
    certificate: Annotated[str | None, about("Fingerprint of the certificate that the agent presented.")] = None
    master_certificate: Annotated[str | None, about("Fingerprint of the certificate that the master presented.")] = None
    requests: Annotated[int, number("Its exchanges and failed handshakes.")] = 0
    certificates_time: Annotated[float | None, seconds("In the phase certificates; null: there was none.")] = None
    node_time: Annotated[float | None, seconds("In the phase node.")] = None
    plugins_time: Annotated[float | None, seconds("In the phase plugins.")] = None
    catalog_time: Annotated[float | None, seconds("In the phase catalog.")] = None
    files_time: Annotated[float | None, seconds("In the phase files.")] = None
    report_time: Annotated[float | None, seconds("In the phase report.")] = None
    facts_wait: Annotated[float | None, seconds("Silence while the agent gathered facts.")] = None
    apply_wait: Annotated[float | None, seconds("Silence while the agent applied the catalog.")] = None
    compile_time: Annotated[
        float | None, seconds("From the end of the latest catalog request to the first byte of its answer.")
    ] = None
    agent_clock: Annotated[float | None, seconds("How far the agent's clock is ahead of the proxy's.")] = None
    master_clock: Annotated[float | None, seconds("How far the master's clock is ahead of the proxy's.")] = None
    catalog_format: Annotated[str | None, about("Media type of the latest catalog.")] = None
    checksum_type: Annotated[str | None, about("Checksum types that the agent asked for, joined by dots.")] = None
    static_catalog: Annotated[bool | None, about("Whether its catalog was static (named a `code_id`).")] = None
    resources: Annotated[int | None, number("Resources in its latest catalog.")] = None
    catalog: Annotated[
        int | None,
        run_number("The run of this capture whose rows in `resources` are this run's: a catalog is there once."),
    ] = None
    facts: Annotated[
        int | None, run_number("The run of this capture whose rows in `facts` are this run's, volatile ones apart.")
    ] = None
    report_status: Annotated[str | None, about("failed, changed or unchanged, as the report says.")] = None
    cached_catalog: Annotated[str | None, about("The report's `cached_catalog_status`.")] = None
    noop: Annotated[bool | None, about("The report's `noop`.")] = None
    corrective: Annotated[bool | None, about("The report's `corrective_change`.")] = None
    changed: Annotated[int | None, number("Resources that the report says were changed.")] = None
    failed: Annotated[int | None, number("Resources that the report says failed.")] = None
    command: Annotated[
        str | None, about("The command of Puppet's other than the agent whose requests these are, also if only likely.")
    ] = None
    run_state: Annotated[str, about("over; or open, or cut off: under way when it was converted, or recorded.")] = (
        "over"
    )
    state: Annotated[
        str | None,
        about("What the node was after it: failing, errors, waiting, warnings or well; null: it does not say."),
    ] = None
    standing_cause: Annotated[
        str | None, about("The rule that explains `state`: of this run, or likely of the failed one before it.")
    ] = None
    standing_reason: Annotated[str | None, about("The same in a sentence.")] = None
    standing_since: Annotated[int | None, moment("When the node got into `state`.")] = None


class ExchangeRow(AgentRow, kw_only=True):
    """One request and its answer."""

    seq: Annotated[int, number("The record number, as `show` takes it.")]
    time: Annotated[int, moment("When it began.")]
    duration: Annotated[float, seconds("From its first byte to its last.")] = 0.0
    waited: Annotated[float | None, seconds("From the end of the request to the first byte of the answer.")] = None
    phase: Annotated[str, about("certificates, node, plugins, catalog, files, report or other.")] = "other"
    endpoint: Annotated[str | None, about("The endpoint, as in docs/protocol.md; null: not one of Puppet's.")] = None
    method: Annotated[str, about("The request's method.")] = ""
    path: Annotated[str, about("The path of its URL, without the query.")] = ""
    environment: Annotated[str | None, about("The environment in its URL.")] = None
    status: Annotated[int | None, about("The answer's status; null: there was no answer.", "", "USMALLINT")] = None
    error: Annotated[str | None, about("Why there was no answer.")] = None
    sent: Annotated[int, size("The request's body.")] = 0
    received: Annotated[int, size("The answer's body.")] = 0
    request_format: Annotated[str | None, about("Media type of the request's body.")] = None
    format: Annotated[str | None, about("Media type of the answer's body.")] = None
    encoding: Annotated[str | None, about("Content-Encoding of the answer.")] = None
    connection: Annotated[str | None, about("The agent's connection, as in `connections`.")] = None
    master: Annotated[str | None, about("The address of the master that answered.")] = None
    authenticated: Annotated[bool, about("The agent presented a certificate.")] = False
    identity: Annotated[str | None, about("The identity used towards the master.")] = None
    queue: Annotated[float | None, seconds("Waiting for a JRuby; null: no log of the master says it.")] = None
    compile: Annotated[float | None, seconds("Compiling the catalog, as the master's logs say.")] = None
    serve: Annotated[float | None, seconds("The master's other work, as its access log says.")] = None


class FindingRow(AgentRow, kw_only=True):
    """One deviation of a run."""

    time: Annotated[int, moment("When it was first observed.")]
    rule: Annotated[str, about("The rule, as `explain` takes it.")] = ""
    severity: Annotated[str, about("error, warning or notice.")] = ""
    message: Annotated[str, about("What was found.")] = ""
    seqs: Annotated[list[int], about("The records that show it.", "", "UINTEGER[]")] = []
    cause: Annotated[bool, about("It explains why the run did not go well.")] = False
    consequence: Annotated[bool, about("It follows from the cause.")] = False


class ConnectionRow(Row, kw_only=True):
    """One TLS connection, also one without a request."""

    time: Annotated[int, moment("When it was opened.")]
    connection: Annotated[str, about("Its name in the capture.")] = ""
    side: Annotated[str, about("agent or master: which of the proxy's sides it is on.")] = ""
    certname: Annotated[str | None, about("The name in the certificate that the peer presented.")] = None
    address: Annotated[str | None, about("The peer's address.")] = None
    port: Annotated[int | None, about("The peer's port.", "", "USMALLINT")] = None
    handshake: Annotated[float | None, seconds("From the open connection to the end of the TLS handshake.")] = None
    duration: Annotated[float | None, seconds("Until it was closed; null: its end is not recorded.")] = None
    closed_by: Annotated[str | None, about("peer or proxy.")] = None
    tls: Annotated[str | None, about("The version of TLS; null: the handshake was not finished.")] = None
    cipher: Annotated[str | None, about("The cipher suite.")] = None
    sni: Annotated[str | None, about("The name that the client asked for.")] = None
    certificate: Annotated[str | None, about("Fingerprint of the certificate that the peer presented.")] = None


class HandshakeRow(AgentRow, kw_only=True):
    """One TLS handshake that failed."""

    seq: Annotated[int, number("The record number.")]
    time: Annotated[int, moment("When it failed.")]
    side: Annotated[str, about("agent or master: which of the proxy's sides it was on.")] = ""
    address: Annotated[str | None, about("The peer's address.")] = None
    sni: Annotated[str | None, about("The name that the client asked for.")] = None
    reason: Annotated[str, about("Why it failed.")] = ""
    alert: Annotated[str | None, about("The TLS alert's name as in RFC 8446.")] = None
    alert_by: Annotated[str | None, about("agent, proxy or master.")] = None
    certificate: Annotated[str | None, about("Fingerprint of the certificate that the peer presented.")] = None


class CertificateRow(Row, kw_only=True):
    """One certificate in one role: the same one may be in several roles, and is in every capture that shows it."""

    time: Annotated[int, moment("When it was first observed.")]
    last: Annotated[int, moment("When it was last observed.")]
    fingerprint: Annotated[str, about("SHA-256 of its DER.")] = ""
    role: Annotated[
        str,
        about("agent or master: presented by one; issued: served to an agent; ca: in a CA bundle or in a chain."),
    ] = ""
    certname: Annotated[str | None, about("Its common name.")] = None
    subject: Annotated[str, about("Its subject.")] = ""
    names: Annotated[list[str], about("Its alternative names.", "", "VARCHAR[]")] = []
    serial: Annotated[str, about("Its serial number, hexadecimal, as `puppetserver ca list` prints it.")] = ""
    issuer: Annotated[str, about("The subject of its issuer.")] = ""
    issuer_key: Annotated[str | None, about("Its authority key identifier.")] = None
    not_before: Annotated[int, moment("From when it is valid.")] = 0
    not_after: Annotated[int, moment("Until when it is valid.")] = 0
    ca: Annotated[bool, about("It may issue others.")] = False
    key: Annotated[str, about("Digest of its public key.")] = ""
    key_identifier: Annotated[str | None, about("Its subject key identifier.")] = None
    key_type: Annotated[str, about("The type of its key.")] = ""
    key_size: Annotated[int | None, about("The size of its key.", "bits", "USMALLINT")] = None
    signature: Annotated[str, about("The algorithm of its signature.")] = ""
    extensions: Annotated[str | None, about("Its Puppet extensions, as JSON; preshared keys are masked.")] = None


class CrlRow(Row, kw_only=True):
    """One CRL that a master served; a CA publishes it anew with every certificate that it revokes."""

    time: Annotated[int, moment("When it was first observed.")]
    last: Annotated[int, moment("When it was last observed.")]
    fingerprint: Annotated[str, about("SHA-256 of its DER.")] = ""
    issuer: Annotated[str, about("The subject of its CA.")] = ""
    issuer_key: Annotated[str | None, about("Its authority key identifier.")] = None
    number: Annotated[str | None, about("Its CRL number.")] = None
    last_update: Annotated[int, moment("When it was made.")] = 0
    next_update: Annotated[int | None, moment("Until when it is valid.")] = None
    revoked: Annotated[int, number("How many certificates it lists.")] = 0
    serials: Annotated[list[str], about("Their serial numbers, hexadecimal: the first 100,000.", "", "VARCHAR[]")] = []


class FactRow(AgentRow, kw_only=True):
    """One value of an agent's facts. A set of facts that a node already sent in this capture is not there again
    (`runs.facts`); facts that change by themselves are there once a day."""

    time: Annotated[int, moment("When they were sent.")]
    path: Annotated[str, about("Names and places in lists, joined by dots: `os.release.major`.")] = ""
    value: Annotated[str | None, about("The value; secrets are masked.")] = None
    type: Annotated[str, about("string, integer, float, boolean or null; of an empty value hash or array.")] = ""
    volatile: Annotated[bool, about("It changes by itself, such as the uptime.")] = False


class ResourceRow(AgentRow, kw_only=True):
    """One resource of a catalog. A catalog whose resources a node already got in this capture is not there again
    (`runs.catalog`)."""

    time: Annotated[int, moment("When the catalog was sent.")]
    type: Annotated[str, about("The resource's type.")] = ""
    title: Annotated[str, about("The resource's title; likely secrets are masked.")] = ""
    file: Annotated[str | None, about("The manifest.")] = None
    line: Annotated[int | None, number("The line in it.")] = None
    parameters: Annotated[
        str, about("Keyed hash of its parameters: equal within a directory if the parameters are.")
    ] = ""


class ResourceEventRow(AgentRow, kw_only=True):
    """One change, or failed change, of a resource's property, from a report."""

    time: Annotated[int, moment("When the report was sent.")]
    type: Annotated[str, about("The resource's type.")] = ""
    title: Annotated[str, about("The resource's title; likely secrets are masked.")] = ""
    property: Annotated[str | None, about("What was changed.")] = None
    status: Annotated[str | None, about("success, failure, noop or audit.")] = None
    old: Annotated[str | None, about("The value before; secrets are masked.")] = None
    new: Annotated[str | None, about("The value wanted; secrets are masked.")] = None
    message: Annotated[str | None, about("What the agent says of it; secrets are masked.")] = None
    corrective: Annotated[bool | None, about("Something else had changed it since the last run.")] = None
    file: Annotated[str | None, about("The manifest.")] = None
    line: Annotated[int | None, number("The line in it.")] = None


class CaptureRow(Row, kw_only=True):
    """One capture that was converted."""

    time: Annotated[int, moment("When its first record began.")]
    last: Annotated[int, moment("When its last record ended.")] = 0
    name: Annotated[str, about("The name of its file.")] = ""
    records: Annotated[int, number("Records that were converted.")] = 0
    first_seq: Annotated[int, number("Its first record number.")] = 0
    last_seq: Annotated[int, number("Its last record number.")] = 0
    lost: Annotated[int, number("Records that its gaps say were lost.")] = 0
    unanalyzed: Annotated[int, number("Records that were not analyzed, or not completely.")] = 0
    trouble: Annotated[str | None, about("What of it could not be read.")] = None
    complete: Annotated[bool, about("No proxy was writing it any more.")] = False
    closed: Annotated[bool, about("It was converted for others: names are pseudonyms (`--shared`).")] = False
    inspector: Annotated[str, about("The version of puppet-inspector that converted it.")] = ""
    version: Annotated[int, number("The version of these columns.")] = VERSION
    rules: Annotated[str, about("Digest of the site's own rules that were applied.")] = ""
    until: Annotated[int | None, moment("Until when it is known to have been recorded.")] = None
    sources: Annotated[
        list[str],
        about("The captures that were merged into it (several places); none: it was not merged.", "", "VARCHAR[]"),
    ] = []


_ORDER = ("certname", "time", "capture", "seq", "fingerprint", "role", "rule", "path", "type", "title", "property")


class FleetFindingRow(Row, kw_only=True):
    """One deviation that only several captures show."""

    certname: Annotated[str | None, about("The node; null: it is about several.")] = None
    time: Annotated[int, moment("When the run that completes it began.")]
    rule: Annotated[str, about("The rule, as `explain` takes it.")] = ""
    severity: Annotated[str, about("error, warning or notice.")] = ""
    message: Annotated[str, about("What was found.")] = ""
    runs: Annotated[list[str], about("The runs that show it, as `capture:run`: the first 100.", "", "VARCHAR[]")] = []


type TableRow = Row | RunRow
"""A row of some table: a run's begins with the columns that its snapshot has, too."""


class Table(NamedTuple):
    """A table."""

    name: str
    row: type[TableRow]
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    """What is one row in a table though it may be several in a spool: `time` is the first, `last` the last of them."""

    @property
    def meaning(self) -> str:
        """What one row is."""
        return " ".join((self.row.__doc__ or "").split())

    @property
    def of_agents(self) -> bool:
        """Whether rows belong to runs."""
        return any(column.name == "run" for column in self.columns)

    @property
    def order(self) -> str:
        """The columns that rows are sorted by: one node's rows are together, and compress well."""
        names = {column.name for column in self.columns}
        return ", ".join(name for name in _ORDER if name in names)


PARTITIONS = (
    Column("date", "DATE", "UTC", "The day of `time`; a directory's name."),
    Column("site", "VARCHAR", "", "Where it was recorded (`--site`); a directory's name."),
)
"""The columns that all tables have besides: those of the partitions."""
_ORDER_OF_RUNS = (
    "capture run certname time duration address outcome cause reason certainty errors warnings notices agent_version "
    "master_version dialect server compiler environment environment_asked transaction_uuid key certificate "
    "master_certificate tool requests connections sent received certificates_time node_time plugins_time catalog_time "
    "files_time report_time facts_wait apply_wait compile_time agent_clock master_clock catalog_format checksum_type "
    "static_catalog resources catalog facts report_status cached_catalog noop corrective changed failed"
)
"""The columns of `runs` in the order in which they were published; one that is not among them follows."""


def _table(name: str, row: type[TableRow], key: tuple[str, ...] = (), order: str = "") -> Table:
    found = {column.name: column for column in columns.of(row)}
    return Table(name, row, tuple(found[column] for column in dict.fromkeys((*order.split(), *found))), key)


TABLES = MappingProxyType(
    {
        table.name: table
        for table in (
            _table("runs", RunRow, order=_ORDER_OF_RUNS),
            _table("exchanges", ExchangeRow),
            _table("findings", FindingRow),
            _table("connections", ConnectionRow),
            _table("handshakes", HandshakeRow),
            _table("certificates", CertificateRow, ("capture", "fingerprint", "role")),
            _table("crls", CrlRow, ("capture", "fingerprint")),
            _table("facts", FactRow),
            _table("resources", ResourceRow),
            _table("resource_events", ResourceEventRow),
            _table("captures", CaptureRow),
            _table("fleet_findings", FleetFindingRow),
        )
    }
)
"""By name."""
OF_ROW = MappingProxyType({table.row: table for table in TABLES.values()})
"""The tables by their rows."""

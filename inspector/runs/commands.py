"""Recognize a ``puppet`` command other than the agent by its requests: it has the agent's User-Agent.

An agent's run begins with certificates, with the node, or with a check of its environment, and its requests for the
node and the catalog carry a transaction_uuid (docs/protocol.md#requests-of-commands). 2.7 has neither, and of 3 the
version is known too late: there, few requests are a command's for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Handshake
    from inspector.protocol.endpoints import Dialect, Match
    from inspector.runs.observations import CertificateAnswer, CsrSent, ReportSent, Unanswered

_PLUGINS = frozenset({Kind.PLUGIN_LISTING, Kind.PLUGIN_METADATA, Kind.PLUGIN_CONTENT})
_CERTIFICATES = frozenset({Kind.CA_BUNDLE, Kind.CRL, Kind.CSR, Kind.CERTIFICATE})
_SINGLE = {
    Kind.CATALOG: "puppet catalog download",
    Kind.NODE: "puppet node find",
    Kind.FACTS: "puppet facts upload",
    Kind.BACKUP: "puppet filebucket",
    Kind.RENEWAL: "puppet ssl renew_cert",
}
"""Commands that make one kind of request."""
PLUGIN_FACTS = "plugin_list:pluginfacts"
"""The list that only agents ask for that ask for their node first; 2.7 knows neither."""


@dataclass(frozen=True, slots=True)
class Command:
    """The command whose requests a run consists of."""

    name: str
    certain: bool = True
    """False: an agent that was stopped makes the same requests."""


class Requests(Protocol):
    """What is read of a ``Run``."""

    tool: str | None
    stranger: bool
    dialect: Dialect | None
    transaction_uuid: str | None
    closed: bool
    single: bool
    kinds: set[Kind | None]
    listings: dict[str, int | None]

    @property
    def major(self) -> tuple[int, int]: ...
    @property
    def old_engine(self) -> bool: ...
    @property
    def certificate(self) -> d.Certificate | None: ...
    @property
    def handshakes(self) -> Sequence[Handshake]: ...
    @property
    def reports(self) -> Sequence[ReportSent]: ...
    @property
    def unanswered(self) -> Sequence[Unanswered]: ...
    @property
    def csrs(self) -> Sequence[CsrSent]: ...
    @property
    def certificates(self) -> Sequence[CertificateAnswer]: ...


def without_run(match: Match, request: d.Document | None, transaction_uuid: str | None) -> bool:
    """Whether a request belongs to no agent's run: there it would have a transaction_uuid, or (2.7, 3) facts."""
    if transaction_uuid is not None:
        return False
    if match.dialect == "legacy":  # agents up to 3 send facts with the catalog request, and never otherwise
        return match.endpoint.kind is Kind.FACTS or (isinstance(request, d.CatalogRequest) and request.facts is None)
    if match.endpoint.kind is Kind.CATALOG:
        return isinstance(request, d.CatalogRequest)
    return match.endpoint.kind is Kind.NODE


def of(run: Requests) -> Command | None:
    """Return the command whose requests a run consists of; None for an agent's run, and for another client's."""
    if run.tool or run.stranger or run.handshakes or run.reports or run.major == (0, 0):
        return None
    if run.dialect == "legacy":
        return _of_legacy(run)
    kinds = run.kinds - {Kind.SERVER_STATUS}  # any command makes this request first where there is a server_list
    if kinds and kinds <= _CERTIFICATES:
        return _of_certificates(run)
    if kinds <= _PLUGINS and Kind.PLUGIN_LISTING in kinds:
        # The others may leave the node out: strict_environment_mode, use_cached_catalog.
        return Command("puppet plugin download", certain=(6, 25) <= run.major < (7, 0) or run.major >= (7, 10))
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind in _SINGLE and run.transaction_uuid is None:
        # An agent that renews its certificate goes on at once.
        return Command(_SINGLE[kind]) if kind is not Kind.RENEWAL or run.closed else None
    return None


def _of_legacy(run: Requests) -> Command | None:
    kinds = run.kinds
    if kinds <= _PLUGINS and PLUGIN_FACTS in run.listings:
        return Command("puppet plugin download", certain=False)  # strict_environment_mode leaves the node out
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind not in _SINGLE or run.transaction_uuid is not None:
        return None
    if kind in (Kind.CATALOG, Kind.FACTS):
        return Command(_SINGLE[kind]) if run.single else None
    # 3.0 asks for the node without a transaction_uuid, and a capture may begin while an agent backs up files.
    return Command(_SINGLE[kind], certain=False)


def _of_certificates(run: Requests) -> Command | None:
    """``puppet ssl`` begins as an agent does from 6.4 on, and stops earlier."""
    if run.old_engine or run.unanswered or not (run.csrs or run.certificates):
        return None
    if not run.csrs:
        # An agent sends its request before it polls; one that polls without any is B40.
        return Command("puppet ssl download_cert") if len(run.certificates) == 1 else None
    if not run.closed:
        return None
    if run.csrs[-1].status == 400 and (not run.certificates or run.certificates[-1].seq < run.csrs[-1].seq):
        return Command("puppet ssl submit_request")  # an agent then asks for the certificate
    # An agent goes on at once. `puppet ssl submit_request` makes the same requests if the CA signs at once.
    return Command("puppet ssl bootstrap") if run.certificate else None

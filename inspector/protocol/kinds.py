"""Kinds of requests, one per row of the endpoint table, and their permissions. Code and rules test the kind, never the
name.

A new endpoint of a known kind (a second way to fetch a file's content, for example) only needs a row in ``ENDPOINTS``:
the file view, the runs, the filters and the rules handle it like the others of its kind.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """The purpose of a request: what it fetches or sends."""

    CONNECTION = "connection"
    """An agent asks an HTTP proxy for a connection; recorded if there was none."""
    CA_BUNDLE = "CA bundle"
    CERTIFICATE = "certificate"
    CSR = "signing request"
    CSR_LOOKUP = "signing request lookup"
    CRL = "CRL"
    RENEWAL = "certificate renewal"
    NODE = "node"
    ENVIRONMENT_CHECK = "environment check"
    PLUGIN_LISTING = "plugin listing"
    """The metadata of all files of a plugin mount."""
    PLUGIN_METADATA = "plugin metadata"
    PLUGIN_CONTENT = "plugin content"
    CATALOG = "catalog"
    FILE_METADATA = "file metadata"
    FILE_LISTING = "file listing"
    """The metadata of all files of a directory that a file resource copies."""
    FILE_CONTENT = "file content"
    STATIC_CONTENT = "static file content"
    """The content of a file in the version that a static catalog names."""
    BACKUP = "file backup"
    FACTS = "facts"
    REPORT = "report"
    SERVER_STATUS = "server status"
    """Whether a server of ``server_list`` is available."""
    CERTIFICATE_STATUS = "certificate status"
    REMOVED = "removed"
    """A tool's request that newer masters no longer support; the row contains the first version without it."""
    PUPPETDB_COMMAND = "PuppetDB command"
    """A master stores a node's facts, catalog or report."""
    PUPPETDB_QUERY = "PuppetDB query"
    TOOL = "tool"
    """Any other request of a tool or of monitoring."""


CONTENT = (Kind.FILE_CONTENT, Kind.PLUGIN_CONTENT, Kind.STATIC_CONTENT)
"""Fetches of one file's content."""
METADATA = (Kind.FILE_METADATA, Kind.FILE_LISTING, Kind.PLUGIN_LISTING, Kind.PLUGIN_METADATA)
"""Requests for the metadata of files that may be fetched next."""
FILES = (*CONTENT, *METADATA, Kind.ENVIRONMENT_CHECK, Kind.BACKUP)
"""All requests about single files or lists of files: most of a run's requests."""
PLUGIN_LISTINGS = (Kind.ENVIRONMENT_CHECK, Kind.PLUGIN_LISTING)
"""Requests that an agent makes once per round of plugins."""
PARSED = (
    Kind.NODE, Kind.ENVIRONMENT_CHECK, Kind.PLUGIN_LISTING, Kind.PLUGIN_METADATA, Kind.CATALOG, Kind.FILE_METADATA,
    Kind.FILE_LISTING,
)  # fmt: skip
"""Responses that agents decode by their Content-Type."""
RUN = (*PARSED, *CONTENT, Kind.BACKUP, Kind.FACTS, Kind.REPORT)
"""Requests of a run, except those for certificates."""
BOOTSTRAP = (Kind.CA_BUNDLE, Kind.CRL, Kind.CERTIFICATE, Kind.CSR, Kind.CSR_LOOKUP, Kind.RENEWAL)
"""Requests of an agent to the CA."""

PUPPETDB = (Kind.PUPPETDB_COMMAND, Kind.PUPPETDB_QUERY)
"""Requests of a master to PuppetDB."""


class Access(StrEnum):
    """Who may make the request, by the default rules (docs/protocol.md#default-rules)."""

    ANYBODY = "anybody"
    CERTIFICATE = "any certificate"
    OWN = "own certname"
    """The client certificate's name must be the one in the URL."""
    CLI = "pp_cli_auth"
    """A certificate with the extension pp_cli_auth: the server's own."""
    DENIED = "nobody"
    """Nobody, until auth.conf allows it."""

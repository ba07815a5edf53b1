"""The table of endpoints: one row per endpoint, both dialects; the first matching row wins.

To add an endpoint, add a row to ``ENDPOINTS``. A row contains the kind of request, its phase in a run, the decoders of
its bodies, and which part of the URL is a certname. Rows are matched against the raw path, before any normalisation:
the double slash in a filebucket path is intended.

Each endpoint has an entry in docs/protocol.md; URLs: docs/protocol.md#legacy-urls, docs/protocol.md#v3-urls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

from inspector import regex
from inspector.model import Phase
from inspector.protocol import decode
from inspector.protocol.documents import CatalogRequest, Document, Report
from inspector.protocol.files import PLUGIN_MOUNTS
from inspector.protocol.indirector import Verb, verb, verbs
from inspector.protocol.kinds import Access, Kind
from inspector.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Collection

    from inspector.protocol.decode import Decoder

type Dialect = Literal["legacy", "v3"]
type Area = Literal["master", "ca", "root"]
"""The area of an endpoint's path: ``/puppet/v3``, ``/puppet-ca/v1``, or outside both."""

_MOUNTS = f"(?:{'|'.join(PLUGIN_MOUNTS)})"
DIGESTS = r"(?:md5|sha1|sha224|sha256|sha384|sha512)"


class Endpoint(NamedTuple):
    """One row: a request that an agent (or a tool) sends to a master."""

    name: str
    kind: Kind
    phase: Phase
    area: Area
    methods: tuple[str, ...]
    path: str
    """Regular expression for the path below its area; group ``name`` is a certname, ``key`` any other key."""
    purpose: str
    caller: str
    """Which client sends it, when, and in which versions."""
    access: Access
    request: Decoder = decode.nothing
    response: Decoder = decode.opaque
    query: str = ""
    """A regular expression that the query must contain."""
    dialects: tuple[Dialect, ...] = ("legacy", "v3")
    needed: bool = False
    """Whether a run cannot continue when this is refused (HTTP 401, 403)."""
    settings: str = "no agent settings"
    """The agent's settings that control it (docs/protocol.md#default-settings)."""
    removed: str = ""
    """The first version of masters without it."""
    absent: tuple[str, ...] = ()
    """Methods whose 404 only says that it is not there, or not yet: the agent expects that, and goes on."""

    @property
    def source(self) -> str:
        """Its section in the protocol page."""
        return f"docs/protocol.md#endpoint-{self.name}"

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """The indirector's names for its requests: each once, in the order of ``methods``."""
        return verbs(self.methods, self.path) if self.area != "root" else ()


_CERT, _PLUG, _CAT, _FILE, _OTHER = Phase.CERTIFICATES, Phase.PLUGINS, Phase.CATALOG, Phase.FILES, Phase.OTHER
_ANY, _CRT, _OWN, _CLI, _NO = Access.ANYBODY, Access.CERTIFICATE, Access.OWN, Access.CLI, Access.DENIED
_V3: tuple[Dialect, ...] = ("v3",)
_OLD: tuple[Dialect, ...] = ("legacy",)
_GET, _PUT, _POST = ("GET",), ("PUT",), ("POST",)
_READ = ("GET", "POST")
"""Up to 6.13 a GET whose request line would exceed 1024 bytes is sent as POST (docs/protocol.md#get-or-post)."""
_TOOL = "tools"

ENDPOINTS: tuple[Endpoint, ...] = (
    # -- certificates ----------------------------------------------------------------------------
    Endpoint("ca", Kind.CA_BUNDLE, _CERT, "ca", _GET, "certificate/ca", "download the CA bundle",
             "every agent without ca.pem; 8.1 and later daily with If-Modified-Since", _ANY,
             response=decode.certificates, needed=True, settings="server, ca_server; ca_fingerprint (6 and later); "
             "ca_refresh_interval (8.1 and later, 1d)"),
    Endpoint("certificate", Kind.CERTIFICATE, _CERT, "ca", _GET, "certificate/(?P<name>[^/]+)",
             "ask for the signed certificate", "every agent without a certificate, until it is signed", _ANY,
             response=decode.certificates, needed=True, absent=_GET,
             settings="certname; waitforcert (2m; less than 1: the agent exits), maxwaitforcert"),
    Endpoint("certificate_request", Kind.CSR, _CERT, "ca", _PUT, "certificate_request/(?P<name>[^/]+)",
             "submit a certificate signing request", "every agent without a certificate; 6.4 and later with each poll",
             _ANY, request=decode.csr, response=decode.submitted, needed=True,
             settings="certname, dns_alt_names, csr_attributes.yaml; waitforcert (each poll since 6.4)"),
    Endpoint("certificate_request_lookup", Kind.CSR_LOOKUP, _CERT, "ca", _GET, "certificate_request/(?P<name>[^/]+)",
             "look for a signing request that waits already", "agents of 2.7 to 6.3", _ANY, response=decode.csr,
             settings="certname; waitforcert", absent=_GET),
    Endpoint("crl", Kind.CRL, _CERT, "ca", _GET, "certificate_revocation_list/[^/]+",
             "download the certificate revocation lists", "6.0 and later before the signing request; older ones once, "
             "with their certificate; refreshed by crl_refresh_interval (8.1 and later daily)", _ANY,
             response=decode.crls, needed=True, settings="certificate_revocation (chain, leaf or false); "
             "crl_refresh_interval (8.1 and later 1d; 6 and 7: only if it is set)"),
    Endpoint("renewal", Kind.RENEWAL, _CERT, "ca", _POST, "certificate_renewal", "renew the agent's own certificate",
             "8.2 and later within hostcert_renewal_interval", _CRT, response=decode.certificates, dialects=_V3,
             settings="hostcert_renewal_interval (30d); on the CA allow-auto-renewal"),
    # -- node, plugins ---------------------------------------------------------------------------
    Endpoint("node", Kind.NODE, Phase.NODE, "master", _READ, "node/(?P<name>[^/]+)", "learn the node's environment",
             "3.0 and later; from 6.26 and 7.13 on only without a last run; never 2.7, 6.25, 7.10 to 7.12", _OWN,
             response=decode.node, settings="environment; use_cached_catalog, strict_environment_mode (with either it "
             "is left out)"),
    Endpoint("environment_check", Kind.ENVIRONMENT_CHECK, _PLUG, "master", _GET, "file_metadatas/plugins",
             "check that the environment exists", "6.25, 7.10 and later, each run", _CRT, response=decode.metadatas,
             query=r"(?:^|&)recurse=false(?:&|$)", dialects=_V3, settings="environment; strict_environment_mode"),
    Endpoint("plugin_list", Kind.PLUGIN_LISTING, _PLUG, "master", _READ, f"file_metadatas/(?P<key>{_MOUNTS})",
             "list the plugins, external facts or translations", "every run; pluginfacts since 3.4, locales 5.3.4 to 6 "
             "(later only with disable_i18n=false)", _CRT, response=decode.metadatas, needed=True,
             settings="pluginsync (before 6), ignore_plugin_errors, disable_i18n (locales); digest_algorithm"),
    Endpoint("plugin_metadata", Kind.PLUGIN_METADATA, _PLUG, "master", _READ,
             f"file_metadata/(?P<key>{_MOUNTS}(?:/.*)?)", "look up a directory of plugins, or one plugin",
             "every agent whose list of plugins was answered with an error", _CRT, response=decode.metadata,
             settings="pluginsync (before 6), ignore_plugin_errors, disable_i18n (locales); digest_algorithm"),
    Endpoint("plugin_file", Kind.PLUGIN_CONTENT, _PLUG, "master", _READ,
             f"file_content/(?P<key>{_MOUNTS}(?:/.*)?)", "fetch one plugin",
             "every agent, for each plugin that is new or differs", _CRT,
             settings="pluginsync (before 6), ignore_plugin_errors, disable_i18n (locales)"),
    # -- catalog ---------------------------------------------------------------------------------
    Endpoint("catalog", Kind.CATALOG, _CAT, "master", ("POST", "GET"), "catalog/(?P<name>[^/]+)",
             "send the facts, get the catalog", "every run without use_cached_catalog; again after a change of "
             "environment, up to five times", _OWN, request=decode.catalog_request, response=decode.catalog,
             needed=True, settings="environment, strict_environment_mode; use_cached_catalog, usecacheonfailure "
             "(true); http_read_timeout (6 and later 10m)"),
    # -- files -----------------------------------------------------------------------------------
    Endpoint("static_file_content", Kind.STATIC_CONTENT, _FILE, "master", _GET, "static_file_content/(?P<key>.+)",
             "fetch a file in the version that the static catalog names", "4.4 and later with static catalogs", _CRT,
             dialects=_V3, settings="no agent settings: the catalog's code_id and content_uri decide"),
    Endpoint("file_metadatas", Kind.FILE_LISTING, _FILE, "master", _READ, "file_metadatas/(?P<key>.+)",
             "list a directory that a file resource copies", "file resources with recurse", _CRT,
             response=decode.metadatas,
             settings="no agent settings: the resource's source, recurse, links, source_permissions; "
             "digest_algorithm"),
    Endpoint("file_metadata", Kind.FILE_METADATA, _FILE, "master", _READ, "file_metadata/(?P<key>.+)",
             "look up one file that a file resource copies", "file resources with a source, each candidate in turn",
             _CRT, response=decode.metadata, absent=_READ,
             settings="no agent settings: the resource's source, links, source_permissions; digest_algorithm"),
    Endpoint("file_content", Kind.FILE_CONTENT, _FILE, "master", _READ, "file_content/(?P<key>.+)",
             "fetch a file's content", "file resources that are out of sync", _CRT,
             settings="no agent settings: the resource's source; http_read_timeout (6 and later 10m)"),
    Endpoint("file_bucket_file", Kind.BACKUP, _FILE, "master", ("HEAD", "GET", "PUT", "POST"),
             f"file_bucket_file/(?P<key>{DIGESTS}/[0-9a-f]+(?:/.*)?)", "back a file up, or get one back",
             "file resources with a remote filebucket, before they change a file; restore and diff", _CRT,
             request=decode.bucket, absent=("HEAD",),
             settings="no agent settings: the resource's backup, with a remote filebucket"),
    # -- facts, report ---------------------------------------------------------------------------
    Endpoint("facts", Kind.FACTS, Phase.REPORT, "master", _PUT, "facts/(?P<name>[^/]+)", "send the facts again",
             "resubmit_facts at the end of a run; `puppet facts upload`", _OWN, request=decode.facts,
             response=decode.anything, settings="resubmit_facts"),
    Endpoint("report", Kind.REPORT, Phase.REPORT, "master", _PUT, "report/(?P<name>[^/]+)", "send the run's report",
             "every run with report=true, also a failed one", _OWN, request=decode.report, response=decode.processors,
             settings="report, report_server"),
    # -- of an agent to an HTTP proxy; a connection that is made is recorded as what it carries ------
    Endpoint("connect", Kind.CONNECTION, _CERT, "root", ("CONNECT",), "[^/]+:[0-9]+", "reach a server",
             "agents that use an HTTP proxy", _ANY, response=decode.nothing, dialects=_V3,
             settings="http_proxy_host, http_proxy_port"),
    # -- probes and tools: never dropped, but no phase of a run ------------------------------------
    Endpoint("status_simple", Kind.SERVER_STATUS, _OTHER, "root", _GET, "/status/v1/simple(?:/(?P<key>[^/]+))?",
             "is the server up?", "agents with server_list (5.5.22 and later); load balancers", _ANY,
             response=decode.text, dialects=_V3, settings="server_list", absent=_GET),
    Endpoint("status_services", Kind.TOOL, _OTHER, "root", _GET, "/status/v1/services(?:/(?P<key>[^/]+))?",
             "status of the server's services", "monitoring", _ANY, response=decode.anything, dialects=_V3),
    Endpoint("certificate_status", Kind.CERTIFICATE_STATUS, _OTHER, "ca", ("GET", "PUT", "DELETE"),
             "certificate_status/(?P<key>[^/]+)", "sign, revoke, delete or look at a certificate",
             "`puppetserver ca`, `puppet cert`, `openvox-ca-ctl`", _CLI, request=decode.desired_state,
             response=decode.certificate_status),
    Endpoint("certificate_status_by_serial", Kind.CERTIFICATE_STATUS, _OTHER, "ca", _PUT,
             "certificate_status_by_serial/(?P<key>[^/]+)", "revoke the certificate with a serial number",
             "`openvox-ca-ctl revoke --serial`", _CLI, request=decode.desired_state, response=decode.nothing,
             dialects=_V3),
    Endpoint("certificate_statuses", Kind.CERTIFICATE_STATUS, _OTHER, "ca", _GET, "certificate_statuses/(?P<key>[^/]+)",
             "list all certificates", "`puppetserver ca list`", _CLI, response=decode.certificate_statuses),
    Endpoint("certificate_request_delete", Kind.TOOL, _OTHER, "ca", ("DELETE",), "certificate_request/(?P<key>[^/]+)",
             "throw a signing request away", _TOOL, _CLI, response=decode.nothing),
    Endpoint("crl_update", Kind.TOOL, _OTHER, "ca", _PUT, "certificate_revocation_list", "replace the CRLs",
             "`puppetserver ca import`", _CLI, request=decode.crls, response=decode.text, dialects=_V3),
    Endpoint("crl_reissue", Kind.TOOL, _OTHER, "ca", _PUT, "certificate_revocation_list/ca",
             "sign the CA's own CRL anew", "`openvox-ca-ctl reissue-crl`", _CLI, response=decode.crls, dialects=_V3),
    Endpoint("certificate_import", Kind.TOOL, _OTHER, "ca", _PUT, "certificate/(?P<key>[^/]+)",
             "make a certificate known to the CA", "`openvox-ca-ctl import-cert`", _CLI, request=decode.certificates,
             response=decode.anything, dialects=_V3),
    Endpoint("generate", Kind.TOOL, _OTHER, "ca", _POST, "generate/(?P<key>[^/]+)", "make a key and a certificate",
             "`openvox-ca-ctl generate`", _CLI, response=decode.anything, dialects=_V3),
    Endpoint("ocsp", Kind.TOOL, _OTHER, "ca", _READ, "ocsp(?:/(?P<key>.+))?", "is a certificate revoked?",
             "programs that use OCSP; no agent", _ANY, request=decode.opaque, response=decode.opaque, dialects=_V3),
    Endpoint("clean", Kind.TOOL, _OTHER, "ca", _PUT, "clean", "revoke and delete certificates",
             "`puppetserver ca clean`", _CLI, request=decode.anything, response=decode.text, dialects=_V3),
    Endpoint("sign", Kind.TOOL, _OTHER, "ca", _POST, "sign(?:/all)?", "sign several requests",
             "`puppetserver ca sign` of 8 and OpenVox", _CLI, request=decode.anything, response=decode.anything,
             dialects=_V3),
    Endpoint("expirations", Kind.TOOL, _OTHER, "ca", _GET, "expirations", "when the CA's certificates and CRLs end",
             "monitoring", _CRT, response=decode.anything, dialects=_V3),
    Endpoint("environments", Kind.TOOL, _OTHER, "master", _GET, "environments", "list the environments", _TOOL, _CRT,
             response=decode.environments, dialects=_V3),
    Endpoint("environments", Kind.TOOL, _OTHER, "root", _GET, "/v2.0/environments", "list the environments", _TOOL,
             _CRT, response=decode.environments, dialects=_OLD),
    Endpoint("environment", Kind.REMOVED, _OTHER, "master", _GET, "environment/(?P<key>[^/]+)",
             "application orchestration", "tools of 4 to 6", _NO, response=decode.anything, dialects=_V3, removed="7"),
    Endpoint("environment_classes", Kind.TOOL, _OTHER, "master", _GET, "environment_classes",
             "the classes of an environment", "classifiers", _NO, response=decode.environment_classes, dialects=_V3),
    Endpoint("environment_modules", Kind.TOOL, _OTHER, "master", _GET, "environment_modules",
             "the modules of the environments", _TOOL, _NO, response=decode.anything, dialects=_V3),
    Endpoint("environment_transports", Kind.TOOL, _OTHER, "master", _GET, "environment_transports",
             "the device transports of an environment", _TOOL, _NO, response=decode.anything, dialects=_V3),
    Endpoint("tasks", Kind.TOOL, _OTHER, "master", _GET, "(?:tasks|plans)(?:/(?P<key>.+))?", "tasks and plans",
             "orchestration", _CRT, response=decode.anything, dialects=_V3),
    Endpoint("compile", Kind.TOOL, _OTHER, "master", _POST, "compile", "compile for a tool", "bolt", _NO,
             request=decode.anything, response=decode.anything, dialects=_V3),
    Endpoint("catalog_v4", Kind.TOOL, _OTHER, "root", _POST, "/puppet/v4/catalog/?", "compile a catalog for a tool",
             "tools; no ordinary agent", _NO, request=decode.anything, response=decode.anything, dialects=_V3),
    Endpoint("facts_lookup", Kind.TOOL, _OTHER, "master", _GET, "(?:facts|facts_search|inventory)/(?P<key>[^/]+)",
             "read facts", "the inventory service", _NO, response=decode.anything),
    Endpoint("status", Kind.REMOVED, _OTHER, "master", _GET, "status(?:es)?/(?P<key>[^/]+)", "is the master alive?",
             "`puppet status`, monitoring, up to 6", _CRT, response=decode.master_status, removed="7"),
    Endpoint("resource_type", Kind.REMOVED, _OTHER, "master", _GET, "resource_types?/(?P<key>.+)",
             "classes and defined types", _TOOL, _NO, response=decode.anything, removed="6"),
    Endpoint("run", Kind.REMOVED, _OTHER, "master", _PUT, "run/(?P<key>[^/]+)", "start an agent", "`puppet kick`", _NO,
             request=decode.anything, response=decode.anything, dialects=_OLD, removed="4"),
    Endpoint("debug", Kind.TOOL, _OTHER, "master", ("GET", "PUT", "DELETE", "HEAD"),
             "(?:instrumentation_[a-z]+|key|resources?)/(?P<key>.+)", "debugging indirections", _TOOL, _NO,
             request=decode.anything, response=decode.anything, dialects=_OLD),
    Endpoint("admin_api", Kind.TOOL, _OTHER, "root", ("GET", "DELETE"),
             "/puppet-admin-api/v1/(?P<key>environment-cache|jruby-pool(?:/thread-dump)?)", "flush caches and JRubies",
             "deployment tools", _NO, response=decode.anything, dialects=_V3),
    Endpoint("healthz", Kind.TOOL, _OTHER, "root", _GET, "/healthz/(?P<key>live|ready|startup)",
             "is the CA up?", "monitoring of an openvox-ca", _ANY, response=decode.anything, dialects=_V3),
    Endpoint("metrics", Kind.TOOL, _OTHER, "root", _READ, "/metrics/v[12](?:/(?P<key>.*))?", "metrics", "monitoring",
             _NO, request=decode.anything, response=decode.anything, dialects=_V3),
    # -- of a master to PuppetDB ------------------------------------------------------------------
    Endpoint("puppetdb_command", Kind.PUPPETDB_COMMAND, _OTHER, "root", _POST, "/pdb/cmd/v1",
             "store a node's facts, catalog or report", "masters with PuppetDB's terminus", _CRT,
             request=decode.command, response=decode.anything, dialects=_V3),
    Endpoint("puppetdb_query", Kind.PUPPETDB_QUERY, _OTHER, "root", _READ, "/pdb/query/v4(?:/(?P<key>.*))?",
             "ask what is stored", "masters with PuppetDB's terminus, dashboards", _CRT, request=decode.anything,
             response=decode.anything, dialects=_V3, absent=_GET),
)  # fmt: skip
KINDS = {endpoint.name: endpoint.kind for endpoint in ENDPOINTS}
"""Endpoints by name, for code that only has the name."""

V3_PREFIXES = {"master": "/puppet/v3/", "ca": "/puppet-ca/v1/", "root": ""}
"""The path prefixes of the areas."""
_WITHOUT_PREFIX = "/(?:puppet-ca/v1/)?"
"""An openvox-ca takes the CA's requests without their prefix, too: it may be behind a proxy that removes it."""
_RESERVED = {"puppet", "puppet-ca", "puppet-admin-api", "status", "metrics", "v2.0", "healthz", "pdb"}
"""First path segments that are prefixes of the v3 dialect, and not environments of the legacy one."""


@dataclass(frozen=True, slots=True)
class Match:
    """An endpoint and the data in its URL."""

    endpoint: Endpoint
    dialect: Dialect
    environment: str | None
    certname: str | None
    """The certname in the URL, for endpoints that have one there."""
    key: str | None
    """The part of the URL that names an object (a file, a mount), percent-decoded once as on a master."""
    parameters: tuple[tuple[str, str], ...]
    verb: Verb | None = None
    """None if there is no indirection, or if a master does not support the method."""


def _compile(endpoint: Endpoint) -> tuple[Endpoint, regex.Pattern[str] | None, regex.Pattern[str] | None]:
    v3 = legacy = None
    if "v3" in endpoint.dialects:
        begins = _WITHOUT_PREFIX if endpoint.area == "ca" else regex.escape(V3_PREFIXES[endpoint.area])
        v3 = regex.compile(begins + endpoint.path, regex.DOTALL)
    if "legacy" in endpoint.dialects:
        # The environment is part of the path even for the CA's objects, where it has no meaning.
        prefix = "" if endpoint.area == "root" else "/(?P<environment>[^/]+)/"
        legacy = regex.compile(prefix + endpoint.path, regex.DOTALL)
    return endpoint, v3, legacy


_COMPILED = tuple(_compile(endpoint) for endpoint in ENDPOINTS)


@remembered(4096)
def match(method: str, target: str) -> Match | None:
    """Return the endpoint of a request line; None if it is not Puppet's. ``target`` as sent (Latin-1)."""
    path, _, query = target.partition("?")
    first = path[1:].partition("/")[0]
    for endpoint, v3, legacy in _COMPILED:
        if method not in endpoint.methods:
            continue
        dialect: Dialect = "v3"
        found = v3.fullmatch(path) if v3 else None
        if found is None and legacy is not None and (first not in _RESERVED or endpoint.area == "root"):
            dialect, found = "legacy", legacy.fullmatch(path)
        if found is None or (endpoint.query and not regex.search(endpoint.query, query)):
            continue
        groups = found.groupdict()
        parameters = tuple(parse_qsl(query, keep_blank_values=True, encoding="utf-8", errors="replace"))
        environment = groups.get("environment") if dialect == "legacy" else _first(parameters, "environment")
        below = path.split("/", 2)[-1] if dialect == "legacy" else path.removeprefix(V3_PREFIXES[endpoint.area])
        return Match(
            endpoint,
            dialect,
            unquote(environment) if environment else None,
            unquote(groups["name"]) if groups.get("name") else None,
            unquote(groups["key"]) if groups.get("key") else None,
            parameters,
            None if endpoint.area == "root" else verb(method, below.removeprefix("/")),
        )
    return None


def transaction_uuid(match: Match | None, request: Document | None) -> str | None:
    """Return the transaction_uuid that an agent sends with a request, which is the same in all of one run."""
    if isinstance(request, (CatalogRequest, Report)):
        return request.transaction_uuid
    for key, value in match.parameters if match else ():
        if key == "transaction_uuid":
            return value
    return None


def paths(of: Collection[Kind]) -> regex.Pattern[str]:
    """Return an expression that finds the paths of these kinds of requests in a target, faster than ``match``."""
    bare = (regex.sub(r"\(\?P<\w+>", "(?:", endpoint.path) for endpoint in ENDPOINTS if endpoint.kind in of)
    return regex.compile(f"/(?:{'|'.join(bare)})", regex.DOTALL)


def _first(parameters: tuple[tuple[str, str], ...], name: str) -> str | None:
    return next((value for key, value in parameters if key == name), None)

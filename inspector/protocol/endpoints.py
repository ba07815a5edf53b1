"""Which request is which: one row per endpoint, both dialects, first row that fits wins.

To add an endpoint, add a row to ``ENDPOINTS``. A row says in which phase of a run the request belongs,
how its bodies are read and which part of the URL is a certname. Rows are tried on the raw path, before
any normalisation: the double slash in a filebucket path is meant.

Sources: protocol reference 1.1.1, 1.1.5, 1.3, 1.4, 1.5 and the classifier of 2.10.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

from inspector.model import Phase
from inspector.protocol import decode

if TYPE_CHECKING:
    from inspector.protocol.decode import Decoder

type Dialect = Literal["legacy", "v3"]
type Area = Literal["master", "ca", "root"]
"""Where an endpoint lives: below ``/puppet/v3``, below ``/puppet-ca/v1``, or at a path of its own."""

PLUGIN_MOUNTS = r"(?:plugins|pluginfacts|locales|facts)"
DIGESTS = r"(?:md5|sha1|sha224|sha256|sha384|sha512)"


class Endpoint(NamedTuple):
    """One row: what an agent (or a tool) asks a master for."""

    name: str
    phase: Phase
    area: Area
    methods: tuple[str, ...]
    path: str
    """Regular expression for the path below its area; group ``name`` is a certname, ``key`` any other key."""
    purpose: str
    request: Decoder = decode.nothing
    response: Decoder = decode.opaque
    query: str = ""
    """A regular expression that the query must contain."""
    dialects: tuple[Dialect, ...] = ("legacy", "v3")
    needed: bool = False
    """A run can't go on when this is refused (HTTP 401, 403)."""


_CERT, _PLUG, _CAT, _FILE = Phase.CERTIFICATES, Phase.PLUGINS, Phase.CATALOG, Phase.FILES
_V3: tuple[Dialect, ...] = ("v3",)
_OLD: tuple[Dialect, ...] = ("legacy",)

ENDPOINTS: tuple[Endpoint, ...] = (
    # -- certificates ----------------------------------------------------------------------------
    Endpoint("ca", _CERT, "ca", ("GET",), "certificate/ca", "download the CA bundle",
             response=decode.certificates, needed=True),
    Endpoint("certificate", _CERT, "ca", ("GET",), "certificate/(?P<name>[^/]+)",
             "ask for the signed certificate", response=decode.certificates, needed=True),
    Endpoint("certificate_request", _CERT, "ca", ("PUT",), "certificate_request/(?P<name>[^/]+)",
             "submit a certificate signing request", request=decode.csr, needed=True),
    Endpoint("certificate_request_lookup", _CERT, "ca", ("GET",), "certificate_request/(?P<name>[^/]+)",
             "look for a signing request that waits already (2.7 to 6.3)", response=decode.csr),
    Endpoint("crl", _CERT, "ca", ("GET",), "certificate_revocation_list/[^/]+",
             "download the certificate revocation lists", response=decode.crls, needed=True),
    Endpoint("renewal", _CERT, "ca", ("POST",), "certificate_renewal",
             "renew the agent's own certificate (8.2 and later)", response=decode.certificates, dialects=_V3),
    # -- node, plugins ---------------------------------------------------------------------------
    Endpoint("node", Phase.NODE, "master", ("GET", "POST"), "node/(?P<name>[^/]+)",
             "learn the node's environment", response=decode.node),
    Endpoint("environment_check", _PLUG, "master", ("GET",), "file_metadatas/plugins",
             "check that the environment exists (6.25, 7.10 and later)", response=decode.metadatas,
             query=r"(?:^|&)recurse=false(?:&|$)", dialects=_V3),
    Endpoint("plugin_list", _PLUG, "master", ("GET", "POST"), f"file_metadatas?/(?P<key>{PLUGIN_MOUNTS})",
             "list the plugins, external facts or translations", response=decode.metadatas, needed=True),
    Endpoint("plugin_file", _PLUG, "master", ("GET", "POST"),
             f"file_content/(?P<key>{PLUGIN_MOUNTS}(?:/.*)?)", "fetch one plugin"),
    # -- catalog ---------------------------------------------------------------------------------
    Endpoint("catalog", _CAT, "master", ("POST", "GET"), "catalog/(?P<name>[^/]+)",
             "send the facts, get the catalog", request=decode.catalog_request, response=decode.catalog,
             needed=True),
    # -- files -----------------------------------------------------------------------------------
    Endpoint("static_file_content", _FILE, "master", ("GET",), "static_file_content/(?P<key>.+)",
             "fetch a file in the version that the static catalog names", dialects=_V3),
    Endpoint("file_metadatas", _FILE, "master", ("GET", "POST"), "file_metadatas/(?P<key>.+)",
             "list a directory that a file resource copies", response=decode.metadatas),
    Endpoint("file_metadata", _FILE, "master", ("GET", "POST"), "file_metadata/(?P<key>.+)",
             "look up one file that a file resource copies", response=decode.metadata),
    Endpoint("file_content", _FILE, "master", ("GET", "POST"), "file_content/(?P<key>.+)",
             "fetch a file's content"),
    Endpoint("file_bucket_file", _FILE, "master", ("HEAD", "GET", "PUT", "POST"),
             f"file_bucket_file/(?P<key>{DIGESTS}/[0-9a-f]+(?:/.*)?)", "back a file up, or get one back"),
    # -- facts, report ---------------------------------------------------------------------------
    Endpoint("facts", Phase.REPORT, "master", ("PUT",), "facts/(?P<name>[^/]+)",
             "send the facts again after the run", request=decode.facts),
    Endpoint("report", Phase.REPORT, "master", ("PUT",), "report/(?P<name>[^/]+)",
             "send the run's report", request=decode.report),
    # -- probes and tools: never dropped, but no phase of a run ------------------------------------
    Endpoint("status_simple", Phase.OTHER, "root", ("GET",), "/status/v1/simple(?:/(?P<key>[^/]+))?",
             "is the server up? (server_list)", response=decode.text, dialects=_V3),
    Endpoint("status_services", Phase.OTHER, "root", ("GET",), "/status/v1/services(?:/(?P<key>[^/]+))?",
             "status of the server's services", response=decode.anything, dialects=_V3),
    Endpoint("certificate_status", Phase.OTHER, "ca", ("GET", "PUT", "DELETE"),
             "certificate_status/(?P<key>[^/]+)", "sign, revoke or look at a certificate (tool)",
             request=decode.anything, response=decode.anything),
    Endpoint("certificate_statuses", Phase.OTHER, "ca", ("GET",), "certificate_statuses/(?P<key>[^/]+)",
             "list all certificates (tool)", response=decode.anything),
    Endpoint("certificate_request_delete", Phase.OTHER, "ca", ("DELETE",),
             "certificate_request/(?P<key>[^/]+)", "throw a signing request away (tool)"),
    Endpoint("crl_update", Phase.OTHER, "ca", ("PUT",), "certificate_revocation_list",
             "replace the CRLs (tool)", request=decode.crls, dialects=_V3),
    Endpoint("clean", Phase.OTHER, "ca", ("PUT",), "clean", "revoke and delete certificates (tool)",
             request=decode.anything, dialects=_V3),
    Endpoint("sign", Phase.OTHER, "ca", ("POST",), "sign(?:/all)?", "sign requests (tool)",
             request=decode.anything, response=decode.anything, dialects=_V3),
    Endpoint("expirations", Phase.OTHER, "ca", ("GET",), "expirations",
             "when the CA's certificates and CRLs end (tool)", response=decode.anything, dialects=_V3),
    Endpoint("environments", Phase.OTHER, "master", ("GET",), "environments", "list the environments (tool)",
             response=decode.anything, dialects=_V3),
    Endpoint("environments", Phase.OTHER, "root", ("GET",), "/v2.0/environments",
             "list the environments (tool)", response=decode.anything, dialects=_OLD),
    Endpoint("environment_classes", Phase.OTHER, "master", ("GET",),
             "environment_(?:classes|modules|transports)", "what an environment holds (tool)",
             response=decode.anything, dialects=_V3),
    Endpoint("environment", Phase.OTHER, "master", ("GET",), "environment/(?P<key>[^/]+)",
             "application orchestration (4 to 6)", response=decode.anything, dialects=_V3),
    Endpoint("tasks", Phase.OTHER, "master", ("GET",), "(?:tasks|plans)(?:/(?P<key>.+))?",
             "tasks and plans (tool)", response=decode.anything, dialects=_V3),
    Endpoint("compile", Phase.OTHER, "master", ("POST",), "compile", "compile for a tool",
             request=decode.anything, response=decode.anything, dialects=_V3),
    Endpoint("catalog_v4", Phase.OTHER, "root", ("POST",), "/puppet/v4/catalog/?",
             "compile a catalog for a tool", request=decode.anything, response=decode.anything, dialects=_V3),
    Endpoint("facts_lookup", Phase.OTHER, "master", ("GET",), "(?:facts|facts_search|inventory)/(?P<key>[^/]+)",
             "read facts (tool)", response=decode.anything),
    Endpoint("status", Phase.OTHER, "master", ("GET",), "status(?:es)?/(?P<key>[^/]+)",
             "is the master alive? (3 to 6)", response=decode.anything),
    Endpoint("resource_type", Phase.OTHER, "master", ("GET",), "resource_types?/(?P<key>.+)",
             "classes and defined types (tool)", response=decode.anything),
    Endpoint("run", Phase.OTHER, "master", ("PUT",), "run/(?P<key>[^/]+)",
             "start an agent (`puppet kick`)", dialects=_OLD),
    Endpoint("admin_api", Phase.OTHER, "root", ("GET", "DELETE"), "/puppet-admin-api/v1/.*",
             "flush caches and JRubies (tool)", response=decode.anything, dialects=_V3),
    Endpoint("metrics", Phase.OTHER, "root", ("GET", "POST"), "/metrics/v[12](?:/.*)?", "metrics (tool)",
             response=decode.anything, dialects=_V3),
)  # fmt: skip

_V3_PREFIX = {"master": "/puppet/v3/", "ca": "/puppet-ca/v1/", "root": ""}
_RESERVED = {"puppet", "puppet-ca", "puppet-admin-api", "status", "metrics", "v2.0"}
"""First path segments that are prefixes of the v3 dialect, not environments of the legacy one."""


@dataclass(frozen=True, slots=True)
class Match:
    """An endpoint and what its URL says."""

    endpoint: Endpoint
    dialect: Dialect
    environment: str | None
    certname: str | None
    """The certname in the URL, where the endpoint has one there."""
    key: str | None
    """The rest of the URL that names a thing (a file, a mount), percent-decoded once as a master does."""
    parameters: tuple[tuple[str, str], ...]


def _compile(endpoint: Endpoint) -> tuple[Endpoint, re.Pattern[str] | None, re.Pattern[str] | None]:
    v3 = legacy = None
    if "v3" in endpoint.dialects:
        v3 = re.compile(re.escape(_V3_PREFIX[endpoint.area]) + endpoint.path, re.ASCII | re.DOTALL)
    if "legacy" in endpoint.dialects:
        # The environment is part of the path, also for the CA's objects, where it means nothing.
        prefix = "" if endpoint.area == "root" else "/(?P<environment>[^/]+)/"
        legacy = re.compile(prefix + endpoint.path, re.ASCII | re.DOTALL)
    return endpoint, v3, legacy


_COMPILED = tuple(_compile(endpoint) for endpoint in ENDPOINTS)


def match(method: str, target: str) -> Match | None:
    """The endpoint of a request line, None if it is none of Puppet's. ``target`` as sent (Latin-1)."""
    path, _, query = target.partition("?")
    first = path[1:].partition("/")[0]
    for endpoint, v3, legacy in _COMPILED:
        if method not in endpoint.methods:
            continue
        dialect: Dialect = "v3"
        found = v3.fullmatch(path) if v3 else None
        if found is None and legacy is not None and (first not in _RESERVED or endpoint.area == "root"):
            dialect, found = "legacy", legacy.fullmatch(path)
        if found is None or (endpoint.query and not re.search(endpoint.query, query)):
            continue
        groups = found.groupdict()
        parameters = tuple(parse_qsl(query, keep_blank_values=True, encoding="utf-8", errors="replace"))
        environment = groups.get("environment") if dialect == "legacy" else _first(parameters, "environment")
        return Match(
            endpoint,
            dialect,
            unquote(environment) if environment else None,
            unquote(groups["name"]) if groups.get("name") else None,
            unquote(groups["key"]) if groups.get("key") else None,
            parameters,
        )
    return None


def _first(parameters: tuple[tuple[str, str], ...], name: str) -> str | None:
    return next((value for key, value in parameters if key == name), None)


def endpoint_named(name: str) -> Endpoint:
    """The first row of that name. Raises KeyError."""
    for endpoint in ENDPOINTS:
        if endpoint.name == name:
            return endpoint
    raise KeyError(name)

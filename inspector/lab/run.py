"""The run of an agent with a certificate: node, plugins, catalog, files and report, on one connection.

Sends the requests of a 7.23 agent in their order (docs/protocol.md#order-of-requests) and stores the downloads, so that
a second run changes nothing. Nothing is applied to the system: a "file" is stored under a hashed name in the agent's
directory. Static catalogs and PSON are not supported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

import msgspec

from inspector.lab import documents as d
from inspector.lab.wire import LabResponse, WireError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.lab.wire import Wire

_JSON = "application/json, text/pson"
_CATALOG = "application/vnd.puppet.rich+json, application/json, text/pson"
_BINARY = "application/octet-stream"
_FORM = "application/x-www-form-urlencoded"
_IGNORED = [("ignore", name) for name in (".svn", "CVS", ".git", ".hg")]
_CATALOG_TRIES = 5


class AgentRun:
    """One run, started once with ``go``. ``files`` is the directory for downloads and the agent's "managed files"."""

    def __init__(self, wire: Wire, certname: str, environment: str, files: Path) -> None:
        self._wire = wire
        self._certname = certname
        self._configured = environment
        self._environment = environment
        self._files = files
        self._uuid = str(uuid.uuid4())
        self._remote_buckets: set[str] = set()
        self.report = d.Report(certname, environment, self._uuid, datetime.now(UTC))

    def go(self, *, first: bool) -> int:
        """Run, and return the exit status of ``puppet agent -t``.

        It is 0, 2, 4 or 6 (``--detailed-exitcodes``), or 1 without a catalog.
        """
        if first:
            self._node()
        if self._environment_exists():
            self._pluginsync()
        if catalog := self._catalog():
            self._apply(catalog)
        self.report.catalog, self.report.environment = catalog, self._environment
        self._send_report()
        if catalog is None:
            return 1
        return (2 if self.report.changed else 0) + (4 if self.report.failed else 0)

    # -- before the catalog ---------------------------------------------------------------------------

    def _node(self) -> None:
        query = [
            ("environment", self._environment),
            ("configured_environment", self._configured),
            ("transaction_uuid", self._uuid),
        ]
        answer = self._ask("GET", f"/puppet/v3/node/{self._certname}", query, _JSON)
        node = self._decode(answer, d.NodeDefinition)
        if node is None:
            self._log("warning", "Unable to fetch my node definition, but the agent run will continue")
        elif node.environment:
            self._environment = node.environment

    def _environment_exists(self) -> bool:
        path = "/puppet/v3/file_metadatas/plugins"
        query = [("recurse", "false"), *self._metadata("ignore", "manage")]
        answer = self._ask("GET", path, query, _JSON)
        if answer.status == 404:
            name = self._environment
            self._log("notice", f"Environment '{name}' not found on server, skipping initial pluginsync.")
        return answer.ok

    def _pluginsync(self) -> None:
        for mount, permissions in (("pluginfacts", "use"), ("plugins", "ignore")):
            self._log("info", f"Retrieving {mount}")
            query = [("recurse", "true"), ("max_files", "-1"), *_IGNORED, *self._metadata(permissions, "follow")]
            answer = self._ask("GET", f"/puppet/v3/file_metadatas/{mount}", query, _JSON)
            for entry in self._decode(answer, list[d.FileMetadata]) or ():
                if entry.type == "file" and entry.relative_path:
                    source = f"{mount}/{entry.relative_path}"
                    try:
                        self._fetch(source, entry.checksum, source)
                    except _ResourceError as error:
                        self._log("err", str(error))

    def _catalog(self) -> d.Catalog | None:
        """POST until agent and master agree on the environment; return None if there is no catalog."""
        for _ in range(_CATALOG_TRIES):
            body = d.catalog_form(self._certname, self._environment, self._configured, self._uuid)
            path, query = f"/puppet/v3/catalog/{self._certname}", [("environment", self._environment)]
            answer = self._ask("POST", path, query, _CATALOG, body, _FORM)
            catalog = self._decode(answer, d.Catalog)
            if catalog is None:
                self._log("err", "Could not retrieve catalog; skipping run")
                return None
            if catalog.environment in (None, "", self._environment):
                return catalog
            self._log(
                "notice",
                f"Local environment: '{self._environment}' doesn't match server specified environment "
                f"'{catalog.environment}', restarting agent run with environment '{catalog.environment}'",
            )
            self._environment = str(catalog.environment)
            self._pluginsync()
        self._log("err", "Catalog environment didn't stabilize after 4 fetches, aborting run")
        return None

    # -- the catalog's resources ----------------------------------------------------------------------

    def _apply(self, catalog: d.Catalog) -> None:
        self._remote_buckets = {
            r.title for r in catalog.resources if r.type == "Filebucket" and r.parameters.get("path") is False
        }
        for declared in catalog.resources:
            if declared.kind == "compilable_type" and declared.type != "Stage":
                resource = d.Resource(declared)
                try:
                    resource.change = self._settle(declared)
                except _ResourceError as error:
                    resource.failure = str(error)
                    self._log("err", str(error))
                self.report.resources.append(resource)

    def _settle(self, declared: d.Declared) -> str | None:
        """Bring a resource in sync, and return the change, if any."""
        if declared.type in ("Notify", "Exec"):
            return "executed successfully"
        parameters = declared.parameters
        if declared.type == "File" and (sources := list(_puppet_sources(parameters.get("source")))):
            path = str(parameters.get("path") or declared.title)
            backup = parameters.get("backup") in self._remote_buckets
            fetch = self._tree if parameters.get("recurse") else self._file
            return "content changed" if fetch(sources, path, backup=backup) else None
        wanted = json.dumps(parameters, sort_keys=True).encode()
        local = self.local(f"{declared.type}[{declared.title}]")
        if local.exists() and local.read_bytes() == wanted:
            return None
        local.write_bytes(wanted)
        return "created"

    def _tree(self, sources: list[str], path: str, *, backup: bool) -> bool:
        query = [("recurse", "true"), ("max_files", "0"), *self._metadata("ignore", "manage")]
        for source in sources:
            answer = self._ask("GET", f"/puppet/v3/file_metadatas/{quote(source)}", query, _JSON)
            if answer.ok and (entries := self._decode(answer, list[d.FileMetadata])):
                files = [(e.relative_path, e.checksum) for e in entries if e.type == "file" and e.relative_path]
                changes = [
                    self._fetch(f"{source}/{name}", checksum, f"{path}/{name}", backup=backup)
                    for name, checksum in files
                ]
                return any(changes)
        raise self._no_source(sources)

    def _file(self, sources: list[str], path: str, *, backup: bool) -> bool:
        for source in sources:
            target = f"/puppet/v3/file_metadata/{quote(source)}"
            answer = self._ask("GET", target, self._metadata("ignore", "manage"), _JSON)
            if answer.ok and (entry := self._decode(answer, d.FileMetadata)):
                return self._fetch(source, entry.checksum, path, backup=backup)
        raise self._no_source(sources)

    def _no_source(self, sources: list[str]) -> _ResourceError:
        names = ", ".join(f"puppet:///{source}" for source in sources)
        where = f"environment {self._environment} source(s) {names}"
        return _ResourceError(f"Could not retrieve information from {where}")

    def _fetch(self, source: str, checksum: d.Checksum, path: str, *, backup: bool = False) -> bool:
        """Download a file unless the local copy is in sync; return whether it was downloaded."""
        local = self.local(path)
        old = local.read_bytes() if local.exists() else None
        if old is not None and _sha256(old) == checksum.value:
            return False
        if backup and old is not None:
            self._back_up(old, path)
        environment = [("environment", self._environment)]
        answer = self._ask("GET", f"/puppet/v3/file_content/{quote(source)}", environment, _BINARY)
        if not answer.ok:
            raise _ResourceError(f"Could not retrieve content of puppet:///{source}: {_why(answer)}")
        if checksum.type == "sha256" and _sha256(answer.body) != checksum.value:
            raise _ResourceError(f"File written to disk did not match desired checksum; discarding {path}")
        local.write_bytes(answer.body)
        return True

    def _back_up(self, content: bytes, path: str) -> None:
        """Back up a file before the download: HEAD, and PUT if it is not in the bucket.

        The path's own slash makes two slashes in the URL.
        """
        target = f"/puppet/v3/file_bucket_file/sha256/{hashlib.sha256(content).hexdigest()}/{quote(path)}"
        environment = [("environment", self._environment)]
        if not self._ask("HEAD", target, environment, _BINARY).ok:
            self._ask("PUT", target, environment, _BINARY, content, _BINARY)

    def local(self, path: str) -> Path:
        """Return the local path for a name; the hash keeps every name of a catalog inside the directory."""
        return self._files / hashlib.sha256(path.encode()).hexdigest()[:32]

    # -- the wire -------------------------------------------------------------------------------------

    def _send_report(self) -> None:
        path, query = f"/puppet/v3/report/{self._certname}", [("environment", self._environment)]
        answer = self._ask("PUT", path, query, _JSON, self.report.body(), "application/json")
        if not answer.ok:
            self._log("err", f"Could not send report: {_why(answer)}")

    def _metadata(self, permissions: str, links: str) -> list[tuple[str, str]]:
        """Return the parameters at the end of every metadata request, in their order."""
        return [
            ("links", links),
            ("checksum_type", "sha256"),
            ("source_permissions", permissions),
            ("environment", self._environment),
        ]

    def _ask(
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]],
        accept: str,
        body: bytes | None = None,
        content_type: str = "",
    ) -> LabResponse:
        """Send a request and return the answer; its status is 0 if there is none."""
        try:
            return self._wire.request(method, f"{path}?{urlencode(query)}", accept, body, content_type)
        except WireError as error:
            self._log("err", f"Request to {path} failed: {error}")
            return LabResponse(0, str(error).encode(), "")

    def _decode[T](self, answer: LabResponse, shape: type[T]) -> T | None:
        if not answer.ok:
            if answer.status not in (0, 404):
                self._log("err", _why(answer))
            return None
        try:
            return msgspec.json.decode(answer.body, type=shape)
        except msgspec.MsgspecError as error:
            self._log("err", f"Could not intern from {answer.content_type}: {error}")
            return None

    def _log(self, level: str, message: str) -> None:
        self.report.logs.append((level, message))


class _ResourceError(Exception):
    """A resource failed; the run continues."""


def _puppet_sources(value: Any) -> Iterator[str]:
    for source in value if isinstance(value, list) else [value]:
        if isinstance(source, str) and source.startswith("puppet://"):
            yield unquote(source.removeprefix("puppet://").partition("/")[2])


def _sha256(content: bytes) -> str:
    return f"{{sha256}}{hashlib.sha256(content).hexdigest()}"


def _why(answer: LabResponse) -> str:
    text = answer.body.decode(errors="replace")
    if "json" in answer.content_type:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(answer.body)["message"]
    return f"Error {answer.status} on SERVER: {text}"

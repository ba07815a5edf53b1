"""What a rule or a view reads of a document: facts, catalogs, reports, tools' answers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.endpoints import match
from inspector.protocol.facts import FactLimits
from inspector.protocol.rich import Rich, read, secrets
from tests.support.bodies import JSON, PACK, PSON, YAML, answered, asked


def test_facts_are_counted_and_measured_as_an_agent_does() -> None:
    facts = d.Facts("a", {"os": {"name": "x", "release": {"major": 1}}, "list": [1, 2], "osfamily": "x", "none": None})
    assert facts.count == 6
    assert facts.legacy == ["osfamily"]
    assert facts.size == len(json.dumps(facts.values, separators=(",", ":")))
    assert facts.exceeded() == []


@pytest.mark.parametrize(
    ("values", "limits", "problem"),
    [
        ({str(n): n for n in range(513)}, FactLimits(), "513 top-level facts, more than 512"),
        ({"a": list(range(10241))}, FactLimits(), "10241 values, more than 10240"),
        ({"a": list(range(2049))}, FactLimits(values=2048), "2049 values, more than 2048"),
        ({"a": {"n" * 2600: 1}}, FactLimits(), "a name below 'a' is longer than 2560 bytes"),
        ({"a": {"b": ["v" * 4097]}}, FactLimits(), "the value of 'a.b.0' is longer than 4096 bytes"),
        ({"a": ["v" * 4000] * 4300}, FactLimits(), "17212907 bytes, more than 16777216"),
    ],
)
def test_each_limit_of_facts_is_reported(values: dict[str, Any], limits: FactLimits, problem: str) -> None:
    assert d.Facts("a", values).exceeded(limits) == [problem]


META = {"path": "/etc/x", "type": "file", "owner": 0, "group": "root", "mode": 420, "source": "puppet:///m/x",
        "checksum": {"type": "md5", "value": "{md5}ab"}, "content_uri": "puppet:///modules/m/files/x"}  # fmt: skip
CATALOG = {
    "name": "a.b", "version": 7, "code_id": "v1", "catalog_uuid": "u-1", "catalog_format": 2, "environment": "x",
    "classes": ["settings", "m"], "tags": ["m"],
    "edges": [{"source": "Class[M]", "target": "File[/x]"}],
    "metadata": {"/x": META},
    "recursive_metadata": {"/d": {"puppet:///m/d": [META, META]}},
    "resources": [
        {"type": "File", "title": "/x", "tags": ["file"], "file": "/init.pp", "line": 3, "exported": False,
         "kind": "compilable_type", "parameters": {"source": "puppet:///m/x", "content": "hush", "checksum": "md5",
                                                   "checksum_value": "ab",
                                                   "mode": {"__ptype": "Sensitive", "__pvalue": "0600"}},
         "sensitive_parameters": ["content"]},
        {"type": "File", "title": "/d", "parameters": {"source": ["a", "b"], "path": "/d/", "recurse": True}},
        {"type": "File", "title": "/plain", "parameters": {"source": None}},
        {"type": "My::Thing", "title": "t[1]", "parameters": {"source": "no file"}},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("media", "body"),
    [
        (JSON, json.dumps(CATALOG).encode()),
        ("application/vnd.puppet.rich+json", json.dumps(CATALOG).encode()),
        (PSON, json.dumps({"document_type": "Catalog", "data": CATALOG}).encode()),
        (PACK, msgspec.msgpack.encode(CATALOG)),
        ("application/vnd.puppet.rich+msgpack", msgspec.msgpack.encode(CATALOG)),
        (YAML, b"--- " + json.dumps(CATALOG).encode()),
    ],
)
def test_a_catalog_is_the_same_in_every_notation(media: str, body: bytes) -> None:
    catalog = decode.catalog(answered(media, body))
    assert isinstance(catalog, d.Catalog)
    assert (catalog.code_id, catalog.catalog_uuid, catalog.catalog_format, catalog.version) == ("v1", "u-1", 2, 7)
    assert (catalog.classes, catalog.edges) == (["settings", "m"], [d.Edge("Class[M]", "File[/x]")])
    assert catalog.static
    assert not d.Catalog("a").static
    found = catalog.find("file[/x]")
    assert found is not None
    assert (found.ref, found.line, found.kind, found.tags) == ("File[/x]", 3, "compilable_type", ["file"])
    assert found.sensitive == ["content", "mode"]
    assert catalog.sensitive == {"File[/x]": ["content", "mode"]}
    assert found.values == {"source": "puppet:///m/x", "checksum": "md5", "checksum_value": "ab",
                            "content": Rich("Sensitive", "hush"),
                            "mode": Rich("Sensitive", "0600")}  # fmt: skip
    assert catalog.find("My::Thing[t[1]]") is catalog.resources[3]
    assert [catalog.find(ref) for ref in ("File[/y]", "File", "", "File[/x")] == [None] * 4
    file, tree = catalog.files
    assert (file.ref, file.path, file.sources) == ("File[/x]", "/x", ["puppet:///m/x"])
    assert [metadata.content_uri for metadata in file.metadata] == ["puppet:///modules/m/files/x"]
    assert (file.checksum, file.checksum_value, file.contents) == ("md5", "ab", {"modules/m/files/x": file.metadata[0]})
    assert (tree.checksum, tree.checksum_value) == (None, None)
    assert catalog.contents == {"modules/m/files/x": [file.metadata[0]] * 3}
    assert catalog.in_clear == {"File[/x]": ["content", "mode"]}
    assert (file.metadata[0].owner, file.metadata[0].group) == (0, "root")
    assert (tree.path, tree.sources, len(tree.metadata)) == ("/d/", ["a", "b"], 2)


def test_a_resource_is_found_whatever_its_type_is() -> None:
    strange = d.Resource("[", "role web, rack A7")
    assert d.Catalog(name="node1.example", version="1", resources=[strange]).find(strange.ref) is strange


def deferred(levels: int) -> Any:
    """Secrets that an agent finds out with secrets that it finds out with ..."""
    value: Any = ""
    for _ in range(levels):
        value = {"__ptype": "Sensitive", "__pvalue": {"__ptype": "Deferred", "name": "f", "arguments": [value]}}
    return value


@pytest.mark.parametrize(
    ("value", "clear"),
    [
        ("hush", True),
        (["", "x"], True),
        (0, True),
        (None, False),
        ("", False),
        ("Sensitive [value redacted]", False),
        ({"__ptype": "Sensitive", "__pvalue": "hush"}, True),
        ({"__ptype": "Sensitive", "__pvalue": "Sensitive [value redacted]"}, False),
        ({"__ptype": "Sensitive", "__pvalue": {"__ptype": "Binary", "__pvalue": "AAH/"}}, True),
        ({"__ptype": "Deferred", "name": "vault", "arguments": ["secret/x"]}, False),
        ({"__ptype": "Deferred", "name": "f", "arguments": [{"__ptype": "Sensitive", "__pvalue": "x"}]}, True),
        ({"__ptype": "Sensitive", "__pvalue": {"__ptype": "Deferred", "name": "vault"}}, False),
        ({"a": {"b": [None]}}, False),
        (deferred(100), False),
    ],
)
def test_a_secret_is_in_clear_or_not(value: Any, clear: bool) -> None:
    resource = d.Resource("File", "/x", {"content": value, "mode": "0600"}, sensitive_parameters=["content", "absent"])
    assert resource.sensitive == ["content"]
    assert resource.in_clear == (["content"] if clear else [])


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("puppet:///modules/m/files/a%20b/%C3%A4", "modules/m/files/a b/ä"),
        ("puppet://puppet.example:8140/modules/m/f", "modules/m/f"),
        ("puppet:///", None),
        ("http://x/modules/m/f", None),
        ("/modules/m/f", None),
        (None, None),
    ],
)
def test_a_content_uri_is_the_key_of_a_request(uri: str | None, path: str | None) -> None:
    assert d.FileMetadata(content_uri=uri).content_path == path
    if path and uri and uri.startswith("puppet:///"):
        found = match("GET", f"/puppet/v3/static_file_content/{uri.removeprefix('puppet:///')}?code_id=v1")
        assert found is not None
        assert found.key == path


def test_metadata_of_a_file_has_all_that_is_sent() -> None:
    sent = {"path": "/m/files", "relative_path": "l", "links": "manage", "type": "link", "destination": "/to",
            "owner": 0, "group": 0, "mode": 493, "source": None, "content_uri": None,
            "checksum": {"type": "sha256lite", "value": "{sha256lite}0"}}  # fmt: skip
    assert decode.metadata(answered(JSON, json.dumps(sent).encode())) == d.FileMetadata(
        "/m/files", "l", "link", d.Checksum("sha256lite", "{sha256lite}0"), "manage", "/to", 493, 0, 0
    )


def test_a_catalog_in_dot_is_text() -> None:
    assert decode.catalog(answered("text/dot", b"digraph x {}")) == d.Text("digraph x {}")


REFERRED = {
    "a": {"x": [1, {"__ptype": "Sensitive", "__pvalue": ["hush"]}]},
    "it's": "odd",
    "hash": {"__ptype": "Hash", "__pvalue": [3, "three", None, "nil"]},
    "object": {"__ptype": "My::Type", "attribute": "v"},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$['a']['x'][0]", 1),
        ("$.a.x[0]", 1),
        ("$['a']", {"x": [1, Rich("Sensitive", ["hush"])]}),
        ("$['a']['x'][1]", Rich("Sensitive", ["hush"])),
        ("$['a']['x'][1][0]", "hush"),
        (r"$['it\'s']", "odd"),
        ('$["it\'s"]', "odd"),
        ("$['hash'][3]", "three"),
        ("$['hash'][null]", "nil"),
        ("$['object']['attribute']", "v"),
        *(
            (nowhere, Rich("LocalRef", nowhere))
            for nowhere in ("$['b']", "$['a'][0]", "$['a']['x'][-1]", "$['a']['x'][7]", "$['hash'][4]", "$[true]",
                            "$['a'", "$['a']x", "a", "", "$", "$['ref']", "$" + "['a']" * 300)
        ),
    ],
)  # fmt: skip
def test_a_local_reference_is_what_it_refers_to(path: str, found: Any) -> None:
    value = REFERRED | {"ref": {"__ptype": "LocalRef", "__pvalue": path}}
    assert read(value)["ref"] == found
    assert d.Resource("My::Thing", "x", value).values["ref"] == (found if path != "$" else read(value))


def test_local_references_end() -> None:
    def ref(path: str) -> dict[str, str]:
        return {"__ptype": "LocalRef", "__pvalue": path}

    assert read({"a": ref("$['b']"), "b": ref("$['a']")})["a"] == Rich("LocalRef", "$['a']")
    assert read({"a": {"b": [ref("$['a']")]}}) == {"a": {"b": [Rich("LocalRef", "$['a']")]}}
    # Ten to the power of nine values, each named by a reference to ten of the next.
    doubling: dict[str, Any] = {"0": ["x"] * 10} | {str(n): [ref(f"$['{n - 1}']")] * 10 for n in range(1, 10)}
    assert len(str(read(doubling))) < 2_000_000
    many: dict[str, Any] = {"x": ["x"] * 9_999, "refs": [ref("$['x']")] * 1000}
    found = read(many)["refs"]
    assert (found[0], found[1]) == (["x"] * 9_999, Rich("LocalRef", "$['x']"))
    large: dict[str, Any] = {"h": {"__ptype": "Hash", "__pvalue": [0] * 30_000}, "ref": ref("$['h'][0]")}
    assert read(large)["ref"] == Rich("LocalRef", "$['h'][0]")


def test_rich_values_may_be_nested_deeply() -> None:
    for inner, marked in (({"__pvalue": 1}, "Sensitive"), ([1], "List")):
        value: Any = inner
        for _ in range(499):
            value = {"__ptype": marked, "__pvalue": value}
        assert isinstance(read(value), Rich)
        assert secrets(value) is (marked == "Sensitive")
        assert d.Resource("A", "b", {"c": value}, sensitive_parameters=["c"]).sensitive == ["c"]
        assert d.Resource("A", "b", {"c": value}, sensitive_parameters=["c"]).in_clear == ["c"]


RICH: list[tuple[Any, Any, str]] = [
    ({"__ptype": "Sensitive", "__pvalue": {"a": [1]}}, Rich("Sensitive", {"a": [1]}), "Sensitive [value redacted]"),
    ({"__ptype": "Binary", "__pvalue": "AAH/"}, Rich("Binary", b"\x00\x01\xff"), "Binary(3 bytes)"),
    ({"__ptype": "Binary", "__pvalue": "no base64"}, Rich("Binary", "no base64"), "Binary(no base64)"),
    ({"__ptype": "Timestamp", "__pvalue": "2026-11-21T08:00:00.000000000 UTC"},
     Rich("Timestamp", "2026-11-21T08:00:00.000000000 UTC"), "Timestamp(2026-11-21T08:00:00.000000000 UTC)"),
    ({"__ptype": "Timespan", "__pvalue": "0-01:00:00.0"}, Rich("Timespan", "0-01:00:00.0"), "Timespan(0-01:00:00.0)"),
    ({"__ptype": "SemVer", "__pvalue": "1.2.3"}, Rich("SemVer", "1.2.3"), "SemVer(1.2.3)"),
    ({"__ptype": "Regexp", "__pvalue": "^a"}, Rich("Regexp", "^a"), "Regexp(^a)"),
    ({"__ptype": "URI", "__pvalue": "http://x"}, Rich("URI", "http://x"), "URI(http://x)"),
    ({"__ptype": "Symbol", "__pvalue": "undef"}, Rich("Symbol", "undef"), "Symbol(undef)"),
    ({"__ptype": "LocalRef", "__pvalue": "$[0]"}, Rich("LocalRef", "$[0]"), "LocalRef($[0])"),
    ({"__ptype": "Default"}, Rich("Default"), "default"),
    ({"__ptype": "Deferred", "name": "upcase", "arguments": ["abc", {"__ptype": "Default"}]},
     Rich("Deferred", {"name": "upcase", "arguments": ["abc", Rich("Default")]}), "Deferred(upcase(abc, default))"),
    ({"__ptype": "Hash", "__pvalue": [1, "a", {"__ptype": "Default"}, 2]},
     Rich("Hash", [[1, "a"], [Rich("Default"), 2]]), "Hash([[1, 'a'], [Rich(type='Default', value=None), 2]])"),
    ({"__ptype": "Hash", "__pvalue": [[1, "a"]]}, Rich("Hash", [[1, "a"]]), "Hash([[1, 'a']])"),
    ({"__ptype": "Hash", "__pvalue": [1]}, Rich("Hash", [[1]]), "Hash([[1]])"),
    ({"__ptype": "Pcore::IntegerType", "from": 1}, Rich("Pcore::IntegerType", {"from": 1}),
     "Pcore::IntegerType({'from': 1})"),
    ({"__ptype": {"__ptype": "Pcore::ObjectType", "name": "My::Type"}, "x": 1}, Rich("My::Type", {"x": 1}),
     "My::Type({'x': 1})"),
    ({"__ptype": 7, "__pvalue": 1}, Rich("7", 1), "7(1)"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "found", "shown"), RICH, ids=[str(row[1].type) for row in RICH])
def test_rich_data_becomes_something_to_show(sent: Any, found: Rich, shown: str) -> None:
    packed = decode.anything(answered("application/vnd.puppet.rich+msgpack", msgspec.msgpack.encode({"p": [sent]})))
    plain = decode.anything(answered("application/vnd.puppet.rich+json", json.dumps({"p": [sent]}).encode()))
    assert isinstance(plain, d.Data)
    assert packed == plain
    assert read(plain.value) == {"p": [found]}
    assert str(found) == shown
    assert found.sensitive is (found.type == "Sensitive")


REPORT = {
    "host": "a.b", "status": "changed", "report_format": 12, "noop": False, "noop_pending": True,
    "corrective_change": True, "cached_catalog_status": "on_failure", "transaction_completed": True,
    "server_used": "m:8140", "job_id": "7", "code_id": "v1", "catalog_uuid": "u", "puppet_version": "8.10.0",
    "logs": [{"level": "err", "message": "boom", "source": "Puppet", "time": "t", "file": "/x.pp", "line": 3,
              "tags": ["err"]}],
    "metrics": {
        "time": {"name": "time", "label": "Time", "values": [["file", "File", 0.5], ["total", "Total", 2],
                                                             ["bad", "Bad", None], ["short"]]},
        "resources": {"name": "resources", "label": "Resources", "values": [["failed", "Failed", 1]]},
    },
    "resource_statuses": {
        "File[/x]": {"title": "/x", "resource_type": "File", "failed": False, "changed": True, "evaluation_time": 0.25,
                     "change_count": 1, "corrective_change": True, "containment_path": ["Stage[main]"],
                     "events": [{"property": "content", "previous_value": "{md5}a", "desired_value": ["b"],
                                 "status": "success", "message": "m", "name": "content_changed", "time": "t",
                                 "redacted": False, "corrective_change": True, "audited": False}]},
        "Exec[e]": {"title": "e", "failed": True, "failed_to_restart": True, "skipped": False},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("media", "body"),
    [
        (JSON, json.dumps(REPORT).encode()),
        (PSON, json.dumps(REPORT).encode()),
        (PSON, json.dumps({"document_type": "Report", "data": REPORT}).encode()),
        (PACK, msgspec.msgpack.encode(REPORT)),
        (YAML, b"--- !ruby/object:Puppet::Transaction::Report " + json.dumps(REPORT).encode()),
    ],
)
def test_a_report_is_the_same_in_every_notation(media: str, body: bytes) -> None:
    report = decode.report(asked(media, body))
    assert isinstance(report, d.Report)
    assert (report.outcome, report.noop, report.noop_pending, report.corrective_change) == (
        "changed",
        False,
        True,
        True,
    )
    assert (report.cached_catalog_status, report.transaction_completed) == ("on_failure", True)
    assert (report.server_used, report.job_id, report.code_id, report.catalog_uuid) == ("m:8140", "7", "v1", "u")
    assert report.logs == [d.LogLine("err", "boom", "Puppet", "t", "/x.pp", 3)]
    assert report.times == {"file": 0.5, "total": 2}
    assert report.counts == {"failed": 1}
    assert (report.metric("time", "total"), report.metric("resources", "failed")) == (2, 1)
    assert [report.metric(*key) for key in (("time", "bad"), ("time", "short"), ("events", "total"))] == [None] * 3
    assert (report.failed, report.changed) == (["Exec[e]"], ["File[/x]"])
    status = report.resource_statuses["File[/x]"]
    assert (status.resource_type, status.evaluation_time, status.change_count) == ("File", 0.25, 1)
    assert status.events is not None
    (event,) = status.events
    assert (event.property, event.status, event.name) == ("content", "success", "content_changed")
    assert (event.previous_value, event.desired_value, event.corrective_change) == ("{md5}a", ["b"], True)


@pytest.mark.parametrize("number", range(2, 13))
def test_every_format_of_report_is_known(number: int) -> None:
    report = decode.report(asked(JSON, json.dumps({"host": "a", "report_format": number}).encode()))
    assert isinstance(report, d.Report)
    assert report.known_format
    assert not d.Report(report_format=13).known_format


def test_a_report_of_format_2_has_no_status_of_its_own() -> None:
    body = (
        b"--- !ruby/object:Puppet::Transaction::Report\nhost: a\nreport_format: 2\nresource_statuses:\n"
        b"  File[/x]: !ruby/object:Puppet::Resource::Status {changed: true, skipped: false}\n"
        b"  File[/y]: !ruby/object:Puppet::Resource::Status {failed: %s}\n"
    )
    for failed, outcome in ((b"true", "failed"), (b"false", "changed")):
        report = decode.report(asked(YAML, body % failed))
        assert isinstance(report, d.Report)
        assert (report.status, report.outcome) == (None, outcome)
        assert report.counts == {"failed": failed == b"true", "changed": 1, "skipped": 0, "out_of_sync": 0}
    assert d.Report().outcome is None


def test_yaml_of_ruby_becomes_plain_values() -> None:
    body = b"""--- !ruby/object:Puppet::Transaction::Report
host: !ruby/string:Puppet::Parser::Name
  str: a.b
status: :changed
environment: !binary eMO8
puppet_version: "3.8.7"
logs:
  - !ruby/object:Puppet::Util::Log
    level: :warning
    message: !binary |
      Y2Fm6Q==
    tags: !ruby/object:Puppet::Util::TagSet
      hash:
        notice: true
    ? !ruby/sym time
    : 2026-11-21 08:25:37.123456789 +00:00
resource_statuses:
  a: &base {failed: false, evaluation_time: 1.5e-05}
  b:
    <<: *base
    changed: yes
  c: {<<: [{failed: true}, {failed: false, skipped: true}], line: ~}
"""
    assert decode.report(asked(YAML, body)) == d.Report(
        "a.b", "changed", environment="x\xfc", puppet_version="3.8.7",
        logs=[d.LogLine("warning", "caf\xe9", time="2026-11-21 08:25:37.123456789 +00:00")],
        resource_statuses={
            "a": d.ResourceStatus(failed=False, evaluation_time=1.5e-05),
            "b": d.ResourceStatus(failed=False, evaluation_time=1.5e-05, changed=True),
            "c": d.ResourceStatus(failed=True, skipped=True),
        },
    )  # fmt: skip
    found = decode.anything(
        answered(YAML, b"--- {t: !ruby/set {hash: {a: true}}, n: [0x1F, 010, 1:30, .inf, no, -1_0, 0b, 1.e, +.5]}")
    )
    assert found == d.Data({"t": ["a"], "n": [31, 8, "1:30", float("inf"), False, -10, "0b", "1.e", 0.5]})


def test_answers_to_tools_are_typed() -> None:
    def decoded(decoder: decode.Decoder, value: Any) -> d.Document:
        return decoder(answered(JSON, json.dumps(value).encode()))

    settings = {"modulepath": ["/m"], "manifest": "/x"}
    found = decoded(decode.environments, {"search_paths": ["/e"], "environments": {"x": {"settings": settings}}})
    assert isinstance(found, d.Environments)
    assert (found.search_paths, found.environments["x"].settings) == (["/e"], settings)
    classes = {"name": "x", "files": [{"path": "/i.pp", "classes": [{"name": "c", "params": [
        {"name": "p", "type": "String", "default_literal": "d", "default_source": "'d'"}]}]},
        {"path": "/j.pp", "error": "Syntax error"}]}  # fmt: skip
    found = decoded(decode.environment_classes, classes)
    assert isinstance(found, d.EnvironmentClasses)
    assert (found.files[0].classes[0].params[0].type, found.files[1].error) == ("String", "Syntax error")
    assert decoded(decode.master_status, {"is_alive": True, "version": "6.0"}) == d.MasterStatus(True, "6.0")
    status = {"name": "a", "state": "signed", "fingerprint": "AA", "fingerprints": {"SHA256": "AA"},
              "dns_alt_names": [], "serial_number": 7, "authorization_extensions": {"pp_cli_auth": "true"}}  # fmt: skip
    found = decoded(decode.certificate_status, status)
    assert isinstance(found, d.CertificateStatus)
    assert (found.name, found.state, found.authorization_extensions) == ("a", "signed", {"pp_cli_auth": "true"})
    assert decoded(decode.certificate_statuses, [status]) == d.CertificateStatuses([found])
    assert decoded(decode.desired_state, {"desired_state": "signed"}) == d.DesiredState("signed")
    assert decode.certificate_status(answered("", b"", status=204)) == d.Nothing()
    assert decode.certificate_status(answered("text/plain", b"done")) == d.Text("done")
    for document in (found, d.MasterStatus(True)):
        assert msgspec.json.encode(d.plain(document))

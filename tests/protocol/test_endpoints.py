"""Request lines as real agents and tools send them, and what each is."""

from __future__ import annotations

from inspector.model import Phase
from inspector.protocol.endpoints import ENDPOINTS, match

BUCKET = "0123456789abcdef0123456789abcdef"

ROWS: list[tuple[str, str, str, str, str | None, str | None, str | None]] = [
    # method, target, endpoint, dialect, environment, certname, key
    ("GET", "/puppet-ca/v1/certificate/ca", "ca", "v3", None, None, None),
    ("GET", "/production/certificate/ca?", "ca", "legacy", "production", None, None),
    ("GET", "/production/certificate/ca?fail_on_404=true", "ca", "legacy", "production", None, None),
    ("GET", "/puppet-ca/v1/certificate/a.example?environment=x&", "certificate", "v3", "x", "a.example", None),
    ("GET", "/production/certificate/a.example?", "certificate", "legacy", "production", "a.example", None),
    ("PUT", "/puppet-ca/v1/certificate_request/a.example", "certificate_request", "v3", None, "a.example", None),
    ("PUT", "/x/certificate_request/a.example", "certificate_request", "legacy", "x", "a.example", None),
    ("GET", "/puppet-ca/v1/certificate_request/a.b", "certificate_request_lookup", "v3", None, "a.b", None),
    ("GET", "/x/certificate_request/a.b?", "certificate_request_lookup", "legacy", "x", "a.b", None),
    ("GET", "/puppet-ca/v1/certificate_revocation_list/ca", "crl", "v3", None, None, None),
    ("GET", "/production/certificate_revocation_list/ca?", "crl", "legacy", "production", None, None),
    ("POST", "/puppet-ca/v1/certificate_renewal", "renewal", "v3", None, None, None),
    ("GET", "/puppet/v3/node/a.b?environment=x&transaction_uuid=u", "node", "v3", "x", "a.b", None),
    ("GET", "/x/node/a.b?transaction_uuid=u&fail_on_404=true", "node", "legacy", "x", "a.b", None),
    ("POST", "/x/node/a.b", "node", "legacy", "x", "a.b", None),
    ("GET", "/puppet/v3/file_metadatas/plugins?recurse=false&environment=x", "environment_check", "v3", "x", None,
     None),
    ("GET", "/puppet/v3/file_metadatas/plugins?environment=x&recurse=false", "environment_check", "v3", "x", None,
     None),
    ("GET", "/puppet/v3/file_metadatas/plugins?recurse=true&environment=x", "plugin_list", "v3", "x", None, "plugins"),
    ("GET", "/puppet/v3/file_metadatas/plugins?norecurse=false", "plugin_list", "v3", None, None, "plugins"),
    ("GET", "/puppet/v3/file_metadatas/pluginfacts?recurse=false", "plugin_list", "v3", None, None, "pluginfacts"),
    ("GET", "/puppet/v3/file_metadata/plugins?environment=x", "plugin_metadata", "v3", "x", None, "plugins"),
    ("GET", "/x/file_metadata/pluginfacts/a.txt", "plugin_metadata", "legacy", "x", None, "pluginfacts/a.txt"),
    ("GET", "/x/file_metadatas/plugins?links=manage&recurse=false", "plugin_list", "legacy", "x", None, "plugins"),
    ("GET", "/puppet/v3/file_metadatas/locales", "plugin_list", "v3", None, None, "locales"),
    ("GET", "/puppet/v3/file_content/plugins/facter/x.rb?environment=x", "plugin_file", "v3", "x", None,
     "plugins/facter/x.rb"),
    ("GET", "/x/file_content/facts/x%20y.rb", "plugin_file", "legacy", "x", None, "facts/x y.rb"),
    ("POST", "/puppet/v3/catalog/a.b?environment=x", "catalog", "v3", "x", "a.b", None),
    ("POST", "/x/catalog/a.b", "catalog", "legacy", "x", "a.b", None),
    ("GET", "/x/catalog/a.b?facts_format=pson", "catalog", "legacy", "x", "a.b", None),
    ("GET", "/puppet/v3/static_file_content/modules/m/files/f?code_id=1&environment=x", "static_file_content", "v3",
     "x", None, "modules/m/files/f"),
    ("GET", "/puppet/v3/file_metadatas/modules/m/tree?environment=x", "file_metadatas", "v3", "x", None,
     "modules/m/tree"),
    ("GET", "/x/file_metadatas/modules/m/tree", "file_metadatas", "legacy", "x", None, "modules/m/tree"),
    ("GET", "/puppet/v3/file_metadata/modules/m/f?environment=x", "file_metadata", "v3", "x", None, "modules/m/f"),
    ("POST", "/x/file_metadata/modules/m/f", "file_metadata", "legacy", "x", None, "modules/m/f"),
    ("GET", "/x/file_metadata/modules/m/%C3%A4%25%2Bb%3F", "file_metadata", "legacy", "x", None, "modules/m/ä%+b?"),
    ("GET", "/puppet/v3/file_content/modules/m/f?environment=x", "file_content", "v3", "x", None, "modules/m/f"),
    ("GET", "/x/file_content/modules/plugins/f", "file_content", "legacy", "x", None, "modules/plugins/f"),
    ("HEAD", f"/puppet/v3/file_bucket_file/md5/{BUCKET}//etc/motd?environment=x", "file_bucket_file", "v3", "x", None,
     f"md5/{BUCKET}//etc/motd"),
    ("PUT", f"/x/file_bucket_file/sha256/{BUCKET}", "file_bucket_file", "legacy", "x", None, f"sha256/{BUCKET}"),
    ("PUT", "/puppet/v3/facts/a.b?environment=x", "facts", "v3", "x", "a.b", None),
    ("PUT", "/x/facts/a.b", "facts", "legacy", "x", "a.b", None),
    ("PUT", "/puppet/v3/report/a.b?environment=x&", "report", "v3", "x", "a.b", None),
    ("PUT", "/x/report/a.b", "report", "legacy", "x", "a.b", None),
    ("CONNECT", "puppet.example:8140", "connect", "v3", None, None, None),
    ("GET", "/status/v1/simple", "status_simple", "v3", None, None, None),
    ("GET", "/status/v1/simple/server", "status_simple", "v3", None, None, "server"),
    ("GET", "/status/v1/services", "status_services", "v3", None, None, None),
    ("GET", "/puppet-ca/v1/certificate_status/a.b", "certificate_status", "v3", None, None, "a.b"),
    ("DELETE", "/x/certificate_status/a.b", "certificate_status", "legacy", "x", None, "a.b"),
    ("GET", "/puppet-ca/v1/certificate_statuses/any_key", "certificate_statuses", "v3", None, None, "any_key"),
    ("DELETE", "/puppet-ca/v1/certificate_request/a.b", "certificate_request_delete", "v3", None, None, "a.b"),
    ("PUT", "/puppet-ca/v1/certificate_revocation_list", "crl_update", "v3", None, None, None),
    ("PUT", "/puppet-ca/v1/certificate_revocation_list/ca", "crl_reissue", "v3", None, None, None),
    ("PUT", "/puppet-ca/v1/certificate/a.b", "certificate_import", "v3", None, None, "a.b"),
    ("PUT", "/puppet-ca/v1/certificate_status_by_serial/472C95FA", "certificate_status_by_serial", "v3", None, None,
     "472C95FA"),
    ("POST", "/puppet-ca/v1/generate/a.b?dns=c.d", "generate", "v3", None, None, "a.b"),
    ("POST", "/puppet-ca/v1/ocsp", "ocsp", "v3", None, None, None),
    ("GET", "/ocsp/MEIwQDA%2BMDww", "ocsp", "v3", None, None, "MEIwQDA+MDww"),
    ("GET", "/healthz/ready", "healthz", "v3", None, None, "ready"),
    ("POST", "/pdb/cmd/v1?command=store_report&version=8&certname=a.b", "puppetdb_command", "v3", None, None, None),
    ("GET", "/pdb/query/v4/nodes/a.b/facts", "puppetdb_query", "v3", None, None, "nodes/a.b/facts"),
    ("POST", "/pdb/query/v4", "puppetdb_query", "v3", None, None, None),
    ("PUT", "/puppet-ca/v1/clean", "clean", "v3", None, None, None),
    ("POST", "/puppet-ca/v1/sign/all", "sign", "v3", None, None, None),
    ("GET", "/puppet-ca/v1/expirations", "expirations", "v3", None, None, None),
    ("GET", "/puppet/v3/environments", "environments", "v3", None, None, None),
    ("GET", "/v2.0/environments", "environments", "legacy", None, None, None),
    ("GET", "/puppet/v3/environment_classes?environment=x", "environment_classes", "v3", "x", None, None),
    ("GET", "/puppet/v3/environment/x", "environment", "v3", None, None, "x"),
    ("GET", "/puppet/v3/tasks/m/t?environment=x", "tasks", "v3", "x", None, "m/t"),
    ("POST", "/puppet/v3/compile", "compile", "v3", None, None, None),
    ("POST", "/puppet/v4/catalog", "catalog_v4", "v3", None, None, None),
    ("GET", "/x/facts_search/search?facts.a=b", "facts_lookup", "legacy", "x", None, "search"),
    ("GET", "/puppet/v3/facts/a.b?environment=x", "facts_lookup", "v3", "x", None, "a.b"),
    ("GET", "/puppet/v3/status/any?environment=x", "status", "v3", "x", None, "any"),
    ("GET", "/x/statuses/any", "status", "legacy", "x", None, "any"),
    ("GET", "/x/resource_types/*", "resource_type", "legacy", "x", None, "*"),
    ("PUT", "/x/run/a.b", "run", "legacy", "x", None, "a.b"),
    ("DELETE", "/puppet-admin-api/v1/jruby-pool", "admin_api", "v3", None, None, "jruby-pool"),
    ("GET", "/metrics/v2/list", "metrics", "v3", None, None, "list"),
    ("GET", "/puppet/v3/environment_modules?environment=x", "environment_modules", "v3", "x", None, None),
    ("GET", "/puppet/v3/environment_transports?environment=x", "environment_transports", "v3", "x", None, None),
    ("GET", "/x/instrumentation_data/a", "debug", "legacy", "x", None, "a"),
    # without the prefix: an openvox-ca takes them
    ("GET", "/certificate/ca", "ca", "v3", None, None, None),
    ("PUT", "/certificate_request/a.b", "certificate_request", "v3", None, "a.b", None),
    ("GET", "/certificate_status/a.b", "certificate_status", "v3", None, None, "a.b"),
    ("POST", "/certificate_renewal", "renewal", "v3", None, None, None),
    ("POST", "/sign/all", "sign", "v3", None, None, None),
    # odd, but a master takes it
    ("GET", "/puppet/v3/node/a%2Eb?environment=x%79", "node", "v3", "xy", "a.b", None),
    ("GET", "/st%61ging/node/a.b", "node", "legacy", "staging", "a.b", None),
    ("GET", "/puppetry/node/a.b", "node", "legacy", "puppetry", "a.b", None),
    ("GET", "/status_quo/catalog/a.b", "catalog", "legacy", "status_quo", "a.b", None),
]  # fmt: skip

NONE = [
    ("GET", "/"),
    ("GET", ""),
    ("GET", "*"),
    ("GET", "/favicon.ico"),
    ("BREW", "/puppet-ca/v1/certificate/ca"),
    ("CONNECT", "puppet.example"),
    ("GET", "puppet.example:8140"),
    ("POST", "/puppet-ca/v1/certificate/ca"),
    ("GET", "/puppet-ca/v1/certificate/"),
    ("GET", "/puppet-ca/v1/certificate/a/b"),
    ("GET", "/puppet-ca/v2/certificate/ca"),
    ("GET", "//puppet/v3/node/a.b"),
    ("GET", "/puppet/v3//node/a.b"),
    ("GET", "/puppet/node/a.b"),
    ("GET", "/v2.0/node/a.b"),
    ("GET", "/x/environments"),
    ("POST", "/x/certificate_renewal"),
    ("PUT", f"/puppet/v3/file_bucket_file/crc/{BUCKET}"),
]


def test_a_request_line_is_recognised() -> None:
    wrong = []
    for method, target, *expected in ROWS:
        found = match(method, target)
        read = found and [found.endpoint.name, found.dialect, found.environment, found.certname, found.key]
        if read != expected:
            wrong.append((method, target, read))
    assert wrong == []


def test_what_is_none_of_puppets_matches_nothing() -> None:
    assert [(method, target) for method, target in NONE if match(method, target)] == []


def test_every_row_of_the_table_is_tried() -> None:
    tried = {(found.endpoint, found.dialect) for row in ROWS if (found := match(row[0], row[1]))}
    assert {endpoint for endpoint, _ in tried} == set(ENDPOINTS)
    both = {endpoint for endpoint in ENDPOINTS if endpoint.phase is not Phase.OTHER and len(endpoint.dialects) == 2}
    assert {(endpoint, dialect) for endpoint in both for dialect in ("legacy", "v3")} <= tried


VERBS = {
    "find": ["ca", "certificate", "certificate_request_lookup", "crl", "node", "plugin_metadata", "plugin_file",
             "catalog", "file_metadata", "file_content", "status", "facts_lookup", "debug"],
    "search": ["environment_check", "plugin_list", "file_metadatas", "certificate_statuses", "facts_lookup", "status",
               "resource_type"],
    "save": ["certificate_request", "certificate_import", "crl_reissue", "file_bucket_file", "facts", "report", "run"],
    "head": ["file_bucket_file"],
    "destroy": ["certificate_status", "certificate_request_delete"],
    None: ["renewal", "static_file_content", "connect", "status_simple", "status_services",
           "certificate_status_by_serial", "crl_update", "generate", "ocsp", "clean", "sign", "expirations",
           "environments", "environment", "environment_classes", "environment_modules", "environment_transports",
           "tasks", "compile", "catalog_v4", "admin_api", "healthz", "metrics", "puppetdb_command",
           "puppetdb_query"],
}  # fmt: skip
"""The rows of ROWS above, each with what its request is to the indirector."""


def test_every_request_line_has_its_verb() -> None:
    by_verb: dict[str | None, list[str]] = {}
    for method, target, *_ in ROWS:
        found = match(method, target)
        assert found is not None
        assert found.verb in found.endpoint.verbs or found.verb is None is not found.endpoint.verbs
        names = by_verb.setdefault(found.verb, [])
        names += [found.endpoint.name] if found.endpoint.name not in names else []
    # One row may be two indirections.
    by_verb["find"].remove("certificate_status")
    assert {verb: sorted(names) for verb, names in by_verb.items()} == {
        verb: sorted(names) for verb, names in VERBS.items()
    }


def test_a_request_is_what_the_indirector_takes_it_for() -> None:
    for method, target, verb in (
        ("GET", "/x/file_metadata/plugins", "find"),
        ("GET", "/x/file_metadatas/plugins", "search"),
        ("POST", "/puppet/v3/file_metadata/modules/m/f", "find"),
        ("POST", "/puppet/v3/file_metadatas/modules/m/tree", None),
        ("GET", f"/x/file_bucket_file/md5/{BUCKET}", "find"),
        ("POST", f"/x/file_bucket_file/md5/{BUCKET}", "find"),
        ("PUT", "/puppet-ca/v1/certificate_status/a.b", "save"),
        ("GET", "/x/inventory/a.b", "search"),
        ("GET", "/x/facts/a.b", "find"),
        ("GET", "/x/status/any", "find"),
        ("GET", "/x/resource_type/apache", "find"),
        ("GET", "/x/resources/user", "search"),
        ("GET", "/x/instrumentation_probes/a", "search"),
        ("PUT", "/x/resources/user", None),
        ("HEAD", "/x/resource/user/root", "head"),
        ("DELETE", "/x/key/a.b", "destroy"),
        ("GET", "/x/instrumentation_other/a", None),
        ("GET", "/puppet/v3/environment/catalog", None),
        ("POST", "/puppet/v4/catalog/", None),
        ("GET", "/catalog/node/a.b", "find"),
    ):
        found = match(method, target)
        assert found, target
        assert found.verb == verb, target


def test_a_row_tells_all_its_verbs() -> None:
    output = {endpoint.name: endpoint.verbs for endpoint in ENDPOINTS}
    assert output["file_bucket_file"] == ("head", "find", "save")
    assert output["plugin_list"] == ("search",)
    assert output["file_metadatas"] == ("search",)
    assert output["certificate_status"] == ("find", "save", "destroy")
    assert output["static_file_content"] == output["catalog_v4"] == output["sign"] == output["status_simple"] == ()
    assert [name for name, verbs in output.items() if not verbs] == VERBS[None]


def test_the_query_is_kept_in_order_with_repetitions() -> None:
    found = match("GET", "/puppet/v3/file_metadatas/plugins?ignore=.svn&ignore=.git&links&environment=%C3%A4")
    assert found is not None
    assert found.parameters == (("ignore", ".svn"), ("ignore", ".git"), ("links", ""), ("environment", "ä"))


def test_an_endpoint_has_a_name_and_a_purpose() -> None:
    for endpoint in ENDPOINTS:
        assert endpoint.name
        assert endpoint.purpose

"""Decisions of puppetserver; tests/real compares many more of them with the real one."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.explain.authorization import puppetserver
from inspector.explain.authorization.decision import ANONYMOUS, Client, Decision, Question, Verdict
from inspector.host import pki
from inspector.host.auth_conf import puppetserver as files
from tests.support import auth_confs
from tests.support.auth_confs import PP_CLI_AUTH, PP_ROLE, PRIVATE
from tests.support.conversations import CA

A = Client("a.example", {})


def rule(
    *, name: str = "x", order: int = 500, request: str = "path: /puppet-ca/, type: path", rest: str = 'allow: "*"'
) -> str:
    return f'{{name: "{name}", sort-order: {order}, match-request: {{{request}}}, {rest}}}'


def decide(
    conf: str, target: str = "/puppet-ca/x", client: Client = A, method: str = "GET",
    headers: tuple[tuple[str, str], ...] = (),
) -> Decision:  # fmt: skip
    if not conf.startswith("authorization"):
        conf = f"authorization: {{version: 1, rules: [{conf}]}}"
    read = files.read(Path("auth.conf"), conf)
    return puppetserver.decide(read, Question(method, target, client, headers))


def test_usual_rules() -> None:
    rows: list[tuple[str, str, str | None, str, str | None, str]] = [
        ("GET", "/puppet/v3/catalog/a.example?x=1", "a.example", "allowed", "own catalog",
         "allow $1, which is a.example"),
        ("get", "/puppet/v3/catalog/A.Example", "a.example", "allowed", "own catalog", "allow $1, which is A.Example"),
        ("GET", "/puppet/v3/catalog/b.example", "a.example", "denied", "own catalog",
         "no entry is for a.example; $1 is b.example"),
        ("GET", "/puppet/v3/catalog/a.example", None, "denied", "own catalog", "the client has no certificate"),
        ("PUT", "/puppet/v3/catalog/a.example", "a.example", "denied", "all else", "deny *"),
        ("HEAD", "/puppet/v3/catalog/a.example", "a.example", "denied", "all else", "deny *"),
        ("GET", "/puppet/v3/catalog/a.example/", "a.example", "denied", "all else", "deny *"),
        ("GET", "/puppet/v3/catalog/*", "a.example", "allowed", "own catalog", "allow $1, which is *"),
        ("GET", "/puppet/v3/catalog/*.example", "a.example", "allowed", "own catalog", "allow $1, which is *.example"),
        ("GET", "/puppet/v3/catalog/a%20b", "a.example", "fails", "own catalog",
         "allow $1 becomes 'a b', which puppetserver does not take for a name: 500"),
        ("GET", "/puppet/v3/file_metadatas/plugins", "a.example", "allowed", "files", "allow *"),
        ("GET", "/puppet-ca/v1/certificate/ca", None, "allowed", "bootstrap", "allow-unauthenticated"),
        ("GET", "/puppet/v3/../x", "a.example", "not asked", None, "the path has `.` or `..`: 400"),
        ("GET", "/puppet/v3/file_content/../../../metrics/v2/list", "a.example", "allowed", "files", "allow *"),
    ]  # fmt: skip
    for method, target, name, verdict, rule, why in rows:
        client = Client(name, {}) if name else ANONYMOUS
        found = decide(auth_confs.USUAL, target, client, method)
        assert (found.verdict, found.rule and found.rule.name, found.why) == (verdict, rule, why), method


def test_what_no_rule_is_for_is_denied() -> None:
    found = decide(rule(request="path: /other, type: path"))
    assert (found.verdict, found.rule) == (Verdict.DENIED, None)


def test_the_first_rule_decides_by_sort_order_and_then_by_name() -> None:
    denies = rule(name="B", rest='deny: "*"')
    assert decide(f"{rule(name='a')}, {denies}").verdict is Verdict.DENIED
    assert decide(f"{rule(name='A')}, {denies}").verdict is Verdict.ALLOWED
    assert decide(f"{rule(name='z', order=1)}, {denies}").verdict is Verdict.ALLOWED


def test_a_denial_says_what_the_certificate_lacks() -> None:
    rows: list[tuple[str, dict[str, str], str]] = [
        ('{extensions: {pp_cli_auth: "true"}}', {}, "the certificate has no pp_cli_auth"),
        ('{extensions: {pp_role: [web, db]}}', {PP_ROLE: "app"}, "pp_role of the certificate is 'app'"),
        ('{extensions: {pp_region: [], pp_role: web}}', {}, "the certificate has no pp_role"),
        ('{extensions: {subject-alt-name: {dns-name: b.example}}}', {},
         "the certificate has none of the alternative names"),
        ('[b.example, {extensions: {pp_role: web}}]', {}, "no entry is for a.example; the certificate has no pp_role"),
        ('[{extensions: {pp_role: web}}, {extensions: {pp_role: db}}]', {PP_ROLE: "web\x1b"},
         "pp_role of the certificate is 'web\\x1b'"),
    ]  # fmt: skip
    for allow, extensions, why in rows:
        found = decide(rule(rest=f"allow: {allow}"), client=Client("a.example", extensions))
        assert (found.verdict, found.why) == (Verdict.DENIED, why), allow


def test_deny_is_compared_before_allow() -> None:
    assert decide(rule(rest='allow: "*", deny: "*.example"')).verdict is Verdict.DENIED
    assert decide(rule(rest='allow: "*", deny: "*.org"')).verdict is Verdict.ALLOWED


def test_query_parameters() -> None:
    rows: list[tuple[str, str, Verdict]] = [
        ("query-params: {e: production}", "?e=production", Verdict.ALLOWED),
        ("query-params: {e: production}", "?e=test&e=production", Verdict.ALLOWED),
        ("query-params: {e: production}", "?e=test", Verdict.DENIED),
        ("query-params: {e: production}", "", Verdict.DENIED),
        ('query-params: {e: ""}', "?e=", Verdict.ALLOWED),
        ('query-params: {e: ""}', "?e", Verdict.DENIED),
        ("query-params: {e: [a, b], f: c}", "?f=c&e=b", Verdict.ALLOWED),
        ("query-params: {e: [a, b], f: c}", "?e=b", Verdict.DENIED),
        ("query-params: {e: []}", "?e=b", Verdict.DENIED),
    ]
    for request_, query, verdict in rows:
        conf = rule(request=f"path: /puppet-ca/, type: path, {request_}")
        assert decide(conf, f"/puppet-ca/x{query}").verdict is verdict, request_


WEB = Client("a.example", {PP_ROLE: "web", PP_CLI_AUTH: "true"}, {"dns-name": ("a.example", "alias.example")})
SITE = Client("a.example", {PRIVATE: "site"})


def test_entries() -> None:
    rows: list[tuple[str, Client, str]] = [
        ('{extensions: {pp_role: "web"}}', WEB, "allowed"),
        (f'{{extensions: {{"{PP_ROLE}": "web"}}}}', WEB, "allowed"),
        ("{extensions: {pp_role: [db, web], pp_cli_auth: \"true\"}}", WEB, "allowed"),
        ("{extensions: {pp_role: db}}", WEB, "denied"),
        ("{extensions: {pp_role: web, pp_region: x}}", WEB, "denied"),
        ("{extensions: {pp_role: web}}", A, "denied"),
        ("{extensions: {}}", A, "allowed"),
        (f'{{extensions: {{"{PRIVATE}": site}}}}', SITE, "allowed"),
        ("{extensions: {site_name: site}}", SITE, "not decided"),
        ("{extensions: {site_name: site}}", WEB, "denied"),
        ("{extensions: {site_name: site, pp_role: x}}", SITE, "denied"),
        ("{extensions: {pp_role: web}}", Client("a.example"), "not decided"),
        ("{extensions: {subject-alt-name: {dns-name: alias.example}}}", WEB, "allowed"),
        ("{extensions: {subject-alt-name: {dns-name: [b, alias.example], ip: \"::1\"}}}", WEB, "allowed"),
        ("{extensions: {subject-alt-name: {ip: \"::1\"}}}", WEB, "denied"),
        ("alias.example", WEB, "allowed"),
        ('"/^alias/"', WEB, "allowed"),
        ('"/^b/"', WEB, "denied"),
        ('"/(/"', WEB, "fails"),
        ('"/(?=a)a/"', WEB, "not decided"),
        ('{rbac: {permission: "a:b:c"}}', WEB, "denied"),
        ('"$1"', WEB, "fails"),
    ]  # fmt: skip
    for entry, client, verdict in rows:
        assert decide(rule(rest=f"allow: {entry}"), client=client).verdict == verdict, entry


def test_short_names_are_not_known_below_status() -> None:
    names = rule(request="path: /status, type: path", rest="allow: {extensions: {pp_role: web}}")
    numbers = names.replace("pp_role", f'"{PP_ROLE}"')
    assert decide(names, "/status/v1", WEB).verdict is Verdict.DENIED
    assert decide(numbers, "/status/v1", WEB).verdict is Verdict.ALLOWED


def test_parts_of_the_path_in_an_entry() -> None:
    rows: list[tuple[str, str, str]] = [
        ("$2.$1", "example/a", "allowed"),
        ("$01.$2", "example/a", "denied"),
        ("$02.$01", "example/a", "allowed"),
        ("$0", "example/a", "fails"),
        ("*.$1", "example/x", "allowed"),
        ("/^$2/", "x/a", "allowed"),
        ("$3", "example/a", "fails"),
        ("$1", "A.EXAMPLE/x", "allowed"),
        ("$1", "a/x", "denied"),
    ]
    for text, target, verdict in rows:
        conf = rule(request='path: "^/puppet-ca/([^/]+)/([^/]+)(/z)?$", type: regex', rest=f'allow: "{text}"')
        assert decide(conf, f"/puppet-ca/{target}").verdict == verdict, text


def test_a_number_that_java_does_not_read() -> None:
    assert decide(rule(rest='allow: "$08"')).verdict is Verdict.FAILS


def test_a_path_that_re2_does_not_execute_is_not_decided() -> None:
    found = decide(rule(request='path: "^/(?!puppet)", type: regex'))
    assert (found.verdict, found.rule and found.rule.line) == (Verdict.UNDECIDED, 1)
    assert "look-around" in found.why
    # The method says already that the rule is for another request.
    assert decide(rule(request='path: "^/(?!puppet)", type: regex, method: put')).verdict is Verdict.DENIED


def test_roles_of_puppet_enterprise_are_not_decided() -> None:
    conf = rule(rest='allow: {rbac: {permission: "a:b:c"}}')
    for client in (A, ANONYMOUS):
        assert decide(conf, client=client, headers=(("X-Authentication", "t"),)).verdict is Verdict.UNDECIDED
        assert decide(conf, client=client).verdict is Verdict.DENIED


HEADERS = f"authorization: {{version: 1, allow-header-cert-info: true, rules: [{rule(rest='allow: h.example')}]}}"
PEM = quote(pki.sign(CA, pki.new_key().public_key(), "h.example").public_bytes(Encoding.PEM).decode(), safe="")


def test_clients_in_headers() -> None:
    rows: list[tuple[str, str, str]] = [
        ("SUCCESS", "CN=h.example", "allowed"),
        ("SUCCESS", "/O=x/CN=h.example", "allowed"),
        ("SUCCESS", "cn = h.example, O=x", "allowed"),
        ("SUCCESS", "/cn=h.example", "denied"),
        ("SUCCESS", "h.example", "denied"),
        ("SUCCESS", "O=x", "denied"),
        ("SUCCESS", "CN=h.example/O=x", "not decided"),
        ("SUCCESS", "nonsense=1,CN=h.example", "not decided"),
        ("NONE", "CN=h.example", "denied"),
        ("success", "CN=h.example", "denied"),
    ]
    for verify, name, verdict in rows:
        headers = (("X-Client-Verify", verify), ("X-Client-DN", name))
        assert decide(HEADERS, headers=headers).verdict == verdict, verify


def test_certificates_in_headers() -> None:
    claims = (("X-Client-Verify", "SUCCESS"), ("X-Client-DN", "CN=h.example"))
    assert decide(HEADERS, headers=(*claims, ("X-Client-Cert", PEM))).verdict is Verdict.ALLOWED
    for value in ("nonsense", PEM * 2, "%2"):
        assert decide(HEADERS, headers=(*claims, ("X-Client-Cert", value))).verdict is Verdict.UNASKED


def test_headers_count_only_where_they_are_allowed() -> None:
    conf = HEADERS.replace("allow-header-cert-info: true, ", "")
    headers = (("X-Client-Verify", "SUCCESS"), ("X-Client-DN", "CN=h.example"))
    assert decide(conf, client=ANONYMOUS, headers=headers).verdict is Verdict.DENIED
    # Without headers: what stands in front of the master will set them from the certificate.
    assert decide(HEADERS, client=Client("h.example", {})).verdict is Verdict.ALLOWED

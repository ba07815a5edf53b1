"""Generated auth.conf files of puppetserver, and requests that meet their corners. The seed decides everything."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from inspector.host.auth_conf import patterns
from inspector.host.auth_conf.rules import GROUP
from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Mapping

USUAL = (places.DOCS / "examples/auth.conf").read_text()
"""A small auth.conf of puppetserver, with rules as its packages bring them."""
PP_ROLE, PP_CLI_AUTH = "1.3.6.1.4.1.34380.1.1.13", "1.3.6.1.4.1.34380.1.3.39"
PRIVATE = "1.3.6.1.4.1.34380.1.2.7"
"""An extension without a short name."""


@dataclass(frozen=True)
class Peer:
    """A client and its certificate."""

    name: str
    extensions: Mapping[str, str] = field(default_factory=dict)
    """By object identifier."""
    alt_names: tuple[str, ...] = ()
    """Besides the certname."""


PEERS = (
    Peer("n1.example"),
    Peer("n2.example", {PP_ROLE: "web"}, ("alias.example",)),
    Peer("Upper.Example", {PRIVATE: "site"}),
    Peer("word"),
    Peer("word@x"),
    Peer("a.b.example", {PP_ROLE: "db", PP_CLI_AUTH: "true"}),
    Peer("cli.example", {PP_CLI_AUTH: "true"}),
)
_PATHS = (
    "/", "/puppet", "/puppet/", "/puppet/v3", "/puppet/v3/catalog", "/puppet/v3/catalog/", "/puppet/v3/node/n1",
    "/puppet/v3/file", "/puppet/v3/file_metadata", "/puppet/v3/report/", "/puppet-ca", "/puppet-ca/v1/certificate",
    "/puppet-ca/v1/certificate/", "/puppet-ca/v1/certificate/n1.example", "/puppet-ca/v1/clean", "/status",
    "/status/v1", "/status/v1/simple", "/status//v1", "/status/v1/%73imple", "/puppet-admin-api", "/puppet-ca/v1/a b",
    "/puppet-ca/é", "/PUPPET", "puppet",
)  # fmt: skip
_PATTERNS = (
    "^/puppet/v3/catalog/([^/]+)$", "^/puppet/v3/(catalog|node)/([^/]+)$", "^/puppet-ca/v1/certificate/([^/]+)$",
    "/([^/]+)$", "^/puppet-ca/v1/certificate/([^.]+)\\\\.(.+)$", "^/status/v1/(simple|services)(/.*)?$",
    "(?i)/STATUS/", "^/puppet.*", "n1", "^/puppet/v3/catalog/(\\\\w+)\\\\.", "/v1/?$", "^/puppet-ca/v1/[a-z_]+/(.*)$",
    "^$", "", "^/puppet-ca/v1/(certificate|certificate_request)/?([^/]*)$", "\\\\Q/status\\\\E",
    "^/puppet/v3/[^/]+/(?<name>[^/?]+)", "%", "^/puppet-ca/v1/(é|a b)",
)  # fmt: skip
_STRANGE = (
    "^/(?!puppet)", "(.)\\\\1", "[^/]++$", "(?x) /status", "^/[a-z&&[^p]]", "(/[^/]*)+$",
)  # fmt: skip
"""What RE2 does not execute."""
_NAMES = (
    "*", "*", "*", "*", "*", "*", "$1", "$1", "$1", "n1.example", "N1.EXAMPLE", "n2.example", "*.example",
    "*.b.example", "upper.example", "Upper", "word", "WORD", "word@x", "/^n[12]/", "/example$/", "/Example/", "/^.$/",
    "$1.example", "$2", "$1.$2", "*.$1", "alias.example", "n1.example.", "/(?=n)n1/", "$01", "/$1/", "/(/",
    "other.example",
)  # fmt: skip
_EXTENSIONS: tuple[dict[str, Any], ...] = (
    {"pp_cli_auth": "true"}, {PP_CLI_AUTH: "true"}, {"pp_role": "web"}, {"pp_role": ["db", "web"]}, {"pp_role": "db",
    "pp_cli_auth": "true"}, {"pp_role": ""}, {"pp_region": "x"}, {PRIVATE: "site"}, {"site_name": "x"},
    {"subject-alt-name": {"dns-name": "alias.example"}}, {"subject-alt-name": {"dns-name": ["n1.example", "q"],
    "ip": "::1"}}, {},
)  # fmt: skip
_QUERIES: tuple[dict[str, Any], ...] = (
    {"environment": "production"}, {"environment": ["production", "test"]}, {"x": ""}, {"environment": "a b"},
    {"X": "1a"}, {"x": "1a", "y": "b"}, {"é": "ü"}, {"environment": []},
)  # fmt: skip
_METHODS: tuple[str | list[str], ...] = (
    "get", "GET", ["get", "head"], ["put", "post"], "delete", ["Get", "POST"], "head", [],
)  # fmt: skip

_SECTIONS: tuple[tuple[str, Any], ...] = (
    ("version", "1"), ("version", 2), ("version", None), ("version", 1.0), ("rules", {}), ("rules", "x"),
    ("allow-header-cert-info", "true"), ("allow-header-cert-info", True),
)  # fmt: skip
_BREAKAGES: tuple[tuple[str, Any], ...] = (
    ("name", None), ("name", 5), ("sort-order", None), ("sort-order", 0), ("sort-order", 1000), ("sort-order", "5"),
    ("sort-order", 1.5), ("sort-order", 7.0), ("match-request", None), ("match-request", "x"), ("match-request.path",
    None), ("match-request.path", 5), ("match-request.path", ["/"]), ("match-request.type", None),
    ("match-request.type", "Path"), ("match-request.type", "glob"), ("match-request.method", "patch"),
    ("match-request.method", ["get", 5]), ("match-request.method", ""), ("match-request.query-params", []),
    ("match-request.query-params", {"x": 5}), ("match-request.query-params", {"x": "5"}),
    ("match-request.query-params", {"x": ["5"]}), ("allow", "123"), ("allow", None), ("allow", 5), ("allow",
    ["n1.example", ["n2.example"]]), ("allow", True), ("allow", ""), ("allow", "a b"), ("allow", "é"), ("allow",
    "*.*"), ("allow", "**"), ("allow", {}), ("allow", {"certname": 5}), ("allow", {"extensions": "x"}), ("allow",
    {"extensions": {"pp_role": True}}), ("allow", {"extensions": {"pp_role": "7"}}), ("allow", "$9"), ("allow",
    {"extensions": {"1.3.6": {"x": "y"}}}), ("allow", {"certname": "a.b", "extensions": {"x": "y"}}), ("allow",
    {"extensions": {"subject-alt-name": "x"}}), ("allow", {"extensions": {"subject-alt-name": {"dns": "x"}}}),
    ("allow", {"rbac": {"permission": "a:b:c"}}), ("allow", {"rbac": "a:b:c"}), ("allow",
    {"rbac": {"permission": "a:b"}}), ("deny", {"rbac": {"permission": "a:b:c"}}), ("deny", ""),
    ("allow-unauthenticated", True), ("allow-unauthenticated", "yes"), ("allow-unauthenticated", False), ("nonsense",
    1), ("allow", '"quoted"'), ("allow", {"certname": "$3", "x": 1}), ("allow", "/a\\\\/b/"), ("allow",
    "$99999999999"), ("name", ""), ("match-request.path", "("), ("match-request.path", "a{x}"),
)  # fmt: skip


def generator(seed: int | str) -> Random:
    """Return the source of all choices."""
    return Random(seed)  # noqa: S311 - nothing of it is secret


def conf(random: Random, *, rules: int | None = None, headers: bool = False) -> str:
    """Return an auth.conf that puppetserver takes; with ``headers`` it identifies clients by these."""
    listed = [_rule(random, number) for number in range(rules or random.randint(2, 9))]
    return _text({"version": 1, "rules": listed} | ({"allow-header-cert-info": True} if headers else {}))


def broken(random: Random) -> str:
    """Return an auth.conf with a mistake, or something strange that puppetserver takes."""
    listed = [_rule(random, number) for number in range(random.randint(1, 3))]
    section: dict[str, Any] = {"version": 1, "rules": listed}
    kind = random.random()
    if kind < 0.1:
        key, value = random.choice(_SECTIONS)
        section[key] = value
    elif kind < 0.2 and len(listed) > 1:
        listed[0]["name"] = listed[1]["name"]
    else:
        for _ in range(random.randint(1, 2)):
            _break(random.choice(listed), *random.choice(_BREAKAGES))
    return _text(section)


def _break(rule: dict[str, Any], key: str, value: Any) -> None:
    outer, _, inner = key.partition(".")
    if not inner:
        rule[outer] = value
    elif isinstance(rule.get(outer), dict):
        rule[outer][inner] = value


def _text(section: dict[str, Any]) -> str:
    # JSON is HOCON; what stands twice is written once.
    return f"authorization: {json.dumps(section, indent=1, ensure_ascii=False)}\n".replace("\\\\\\\\", "\\\\")


def _rule(random: Random, number: int) -> dict[str, Any]:
    pattern = random.random() < 0.45
    path = random.choice(_PATTERNS if pattern and random.random() < 0.9 else _STRANGE if pattern else _PATHS)
    request: dict[str, Any] = {"path": path.replace("\\\\", "\\"), "type": "regex" if pattern else "path"}
    if random.random() < 0.5:
        request["method"] = random.choice(_METHODS)
    if random.random() < 0.2:
        request["query-params"] = random.choice(_QUERIES)
    name = random.choice(("rule", "Rule", "a rule", "é", "zz", "~", "1"))
    rule: dict[str, Any] = {
        "match-request": request, "sort-order": random.choice((1, 100, 500, 500, 500, 999)), "name": f"{name} {number}",
    }  # fmt: skip
    if random.random() < 0.25:
        rule["allow-unauthenticated"] = True
        return rule
    groups = patterns.read(request["path"], "java").groups or 0 if pattern else None
    keys = random.choice((["allow"], ["allow"], ["allow"], ["deny"], ["allow", "deny"]))
    for key in keys:
        entries = [_entry(random, groups) for _ in range(random.choice((1, 1, 2, 3)))]
        rule[key] = entries[0] if len(entries) == 1 and random.random() < 0.7 else entries
    return rule


def _entry(random: Random, groups: int | None) -> Any:
    """Return an entry of a rule whose path has so many groups; None: it is no expression, and ``$1`` is an error."""
    if random.random() < 0.2:
        return {"extensions": random.choice(_EXTENSIONS)}
    most = groups if groups is not None else 9 if random.random() < 0.1 else 0
    names = [name for name in _NAMES if all(int(found[1]) <= most for found in GROUP.finditer(name))]
    name = random.choice(names)
    return {"certname": name} if random.random() < 0.2 else name


_SEGMENTS = (
    "n1.example", "n2.example", "N1.example", "Upper.Example", "word", "word@x", "a.b.example", "*", "*.example",
    "n1", "n1.example.", "n1%2Eexample", "n1.example%2F", "n1.example/", "a%20b", "a/b", "a%2Fb", "$1", "/", "é",
    "%C3%A9", "%41", "%u0041", "x;y=1", ".", "..", "...", "%2e%2e", "a//b", "%0A", "%7F", "simple", "services", "!",
    "a:b", "%", "%zz", "%FF", "~", "", "?",
)  # fmt: skip
_PREFIXES = (
    "/puppet/v3/catalog/", "/puppet/v3/node/", "/puppet-ca/v1/certificate/", "/puppet-ca/v1/clean", "/status/v1/",
    "/puppet-ca/v1/", "/status/", "/puppet-ca/", "/puppet-admin-api/v1/", "/status",
    "/puppet-ca/v1/certificate_request/", "/puppet-ca/v1/certificate", "/%70uppet-ca/v1/certificate/",
    "/puppet-ca//v1//certificate/", "//status/v1/", "/puppet-ca/v1%2Fcertificate/", "/status/v1/../../puppet-ca/v1/",
    "/puppet-ca/../status/v1/", "/status/%76%31/", "/puppet-ca;x/v1/certificate/", "/status/v1//",
)  # fmt: skip
_ASKED = (
    "", "?environment=production", "?environment=test", "?x=", "?x", "?x=1a&y=b", "?x=&x=1a", "?environment=a+b",
    "?environment=a%20b&environment=production", "?%C3%A9=%C3%BC", "?X=1a", "?environment=production&environment=q",
    "?", "?environment=%zz&x=", "?environment", "?environment=Production", "?=&x=1a", "?x=1a%",
)  # fmt: skip


def question(random: Random) -> tuple[str, str, Peer | None]:
    """Return a method, a target and the client that sends them; None has no certificate."""
    method = random.choice(("GET", "GET", "GET", "PUT", "POST", "DELETE", "HEAD", "get", "OPTIONS", "PATCH"))
    target = random.choice(_PREFIXES) + random.choice(_SEGMENTS) + random.choice(_ASKED)
    return method, target.encode().decode("latin-1"), random.choice((*PEERS, PEERS[0], None))


def headers(random: Random, peer: Peer | None, certificate: bytes) -> tuple[tuple[str, str], ...]:
    """Return headers that name a client, or do not quite; ``certificate`` is in PEM form."""
    name = peer.name if peer else random.choice(("n1.example", "cli.example"))
    names = ("CN={}", "CN={}", "/CN={}", "/O=x/CN={}", "CN={},O=x", "O=x, CN = {}", "cn={}", "O=x", "{}", "", "/cn={}",
             "CN={}/O=x", "CN={},CN=other")  # fmt: skip
    sent = [("X-Client-Verify", random.choice(("SUCCESS",) * 8 + ("NONE", "success"))),
            ("X-Client-DN", random.choice(names).format(name))]  # fmt: skip
    value = random.choice(("pem",) * 9 + ("nonsense", "%2", "twice"))
    pem = quote(certificate.decode(), safe="") if certificate else ""
    sent.append(("X-Client-Cert", pem if value == "pem" else pem * 2 if value == "twice" else value))
    return tuple(header for header in sent if header[1] and random.random() < 0.9)

"""Decisions of the Ruby master; the rows were compared with Puppet 3.8's own classes for rights."""

from __future__ import annotations

from pathlib import Path

from inspector.explain.authorization import ruby
from inspector.explain.authorization.decision import ANONYMOUS, Client, Decision, Question, Verdict
from inspector.host.auth_conf import ruby as files

A = Client("a.example", {})


def decide(conf: str, method: str, target: str, client: Client = A) -> Decision:
    return ruby.decide(files.read(Path("auth.conf"), f"path /zz\n{conf}"), Question(method, target, client))


def test_rules_that_the_master_adds() -> None:
    rows: list[tuple[str, str, Client, str, str | None]] = [
        ("GET", "/production/catalog/a.example", A, "allowed", "path ~ ^/catalog/([^/]+)$"),
        ("POST", "/production/catalog/a.example", A, "allowed", "path ~ ^/catalog/([^/]+)$"),
        ("GET", "/production/catalog/b.example", A, "denied", "path ~ ^/catalog/([^/]+)$"),
        ("PUT", "/production/catalog/a.example", A, "denied", "path /"),
        ("GET", "/production/catalog/a.example", ANONYMOUS, "denied", "path /"),
        ("PUT", "/production/report/a.example", A, "allowed", "path ~ ^/report/([^/]+)$"),
        ("GET", "/production/file_metadatas/plugins?x=1", A, "allowed", "path /file"),
        ("GET", "/production/file_metadatas/plugins", ANONYMOUS, "denied", "path /"),
        ("HEAD", "/production/file_bucket_file/md5/x", A, "allowed", "path /file"),
        ("GET", "/production/certificate/ca", ANONYMOUS, "allowed", "path /certificate/ca"),
        ("GET", "/production/certificate_revocation_list/ca", ANONYMOUS, "denied", "path /"),
        ("GET", "/v2.0/environments", A, "allowed", "path /v2.0/environments"),
        ("GET", "/puppet/v3/catalog/a.example?environment=x", A, "allowed", "path ~ ^/puppet/v3/catalog/([^/]+)$"),
        ("GET", "/puppet/v3/environments", A, "allowed", "path /puppet/v3/environments"),
        ("PATCH", "/production/catalog/a.example", A, "not asked", None),
        ("GET", "/production/catalog", A, "not asked", None),
        ("PUT", "/production/file_metadatas/x", A, "not asked", None),
        ("GET", "/production/file_content/a/../b", A, "not decided", None),
    ]
    for method, target, client, verdict, rule in rows:
        found = decide("", method, target, client)
        assert (found.verdict, found.rule and found.rule.name) == (verdict, rule), method


def test_entries() -> None:
    rows: list[tuple[str, str, Client, str]] = [
        ("allow a.example", "GET", A, "allowed"),
        ("allow A.EXAMPLE", "GET", A, "allowed"),
        ("allow *.example\ndeny a.example", "GET", A, "denied"),
        ("deny *.example\nallow a.example", "GET", A, "allowed"),
        ("deny *.example\nallow *.a.example", "GET", Client("b.a.example", {}), "allowed"),
        ("deny a.example\nallow *", "GET", A, "allowed"),
        ("allow /^a/", "GET", A, "allowed"),
        ("allow /^b/", "GET", A, "denied"),
        ("allow /(/", "GET", A, "fails"),
        ("allow a", "GET", Client("a", {}), "allowed"),
        ("allow $1", "GET", A, "fails"),
        ("method save\nallow *", "HEAD", A, "allowed"),
        ("method search\nallow *", "GET", A, "denied"),
        ("environment test\nallow *", "GET", A, "denied"),
        ("environment test, production\nallow *", "GET", A, "allowed"),
        ("auth any\nallow *", "GET", ANONYMOUS, "allowed"),
        ("allow *", "GET", ANONYMOUS, "denied"),
        ("auth any\nallow a.example", "GET", ANONYMOUS, "not decided"),
        ("auth any\ndeny a.example", "GET", ANONYMOUS, "denied"),
        ("allow_ip 10.0.0.1", "GET", A, "not decided"),
        ("deny_ip 10.0.0.1", "GET", A, "denied"),
        ("deny_ip 10.0.0.1\nallow a.example", "GET", A, "not decided"),
    ]
    for rule, method, client, verdict in rows:
        assert decide(f"path /thing\n{rule}", method, "/production/thing/x", client).verdict == verdict, rule


def test_parts_of_the_path() -> None:
    rows: list[tuple[str, str]] = [
        ("a.example", "allowed"),
        ("A.example", "allowed"),
        ("b.example", "denied"),
        ("*.example", "allowed"),
        ("*", "fails"),
        ("x%20y", "fails"),
    ]
    for key, verdict in rows:
        assert decide("path ~ ^/thing/([^/]+)$\nallow $1", "GET", f"/production/thing/{key}").verdict == verdict, key


def test_why() -> None:
    found = decide("", "GET", "/production/node/b.example")
    assert (found.verdict, found.why) == (Verdict.DENIED, "no entry is for a.example; $1 is b.example")
    found = decide("", "GET", "/production/node/a.example")
    assert found.why == "allow $1, which is a.example"

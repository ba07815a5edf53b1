"""Targets, as puppetserver 7.9.5 (Jetty 9.4) presents them to auth.conf: each row was tried with it."""

from __future__ import annotations

import pytest

from inspector.explain.authorization.targets import Asked, Unasked, asked

CATALOG = "/puppet/v3/catalog/"


def path(target: str, method: str = "get") -> str:
    return asked(method, target).path


def test_paths_are_decoded() -> None:
    rows: list[tuple[str, str]] = [
        (CATALOG + "a.b", CATALOG + "a.b"),
        (CATALOG + "a%2Eb", CATALOG + "a.b"),
        (CATALOG + "a%2Fb", CATALOG + "a/b"),
        ("/puppet//v3/catalog/a", CATALOG + "a"),
        ("/puppet%2Fv3/catalog/a", CATALOG + "a"),
        ("/%70uppet/v3/catalog/a", CATALOG + "a"),
        (CATALOG + "a;x=1", CATALOG + "a"),
        ("/puppet/v3;x/catalog/a", CATALOG + "a"),
        (CATALOG + "a/", CATALOG + "a/"),
        (CATALOG + "%u0041", CATALOG + "A"),
        (CATALOG + "%C3%A9", CATALOG + "é"),
        (CATALOG + "\u00c3\u00a9", CATALOG + "é"),
        (CATALOG + "%FF", CATALOG + "\u00ff"),
        (CATALOG + "%uD83D%uDE00", CATALOG + "\N{GRINNING FACE}"),
        (CATALOG + "a%3Bb", CATALOG + "a;b"),
        (CATALOG + "%?e", CATALOG + "\u00fe"),
        (CATALOG + "...", CATALOG + "..."),
        ("https://master.example" + CATALOG + "a", CATALOG + "a"),
        (CATALOG + "a#b", CATALOG + "a"),
        ("/puppet-ca", "/puppet-ca"),
    ]
    for target, expected in rows:
        assert path(target) == expected, target


def test_some_paths_are_compared_as_they_were_sent() -> None:
    rows: list[str] = ["/status//v1/simple", "/status/v1/%73imple", "/status;x/v1", "/x/../status/v1",
                                    "/puppet/v3/file_content/../../../metrics/v2/list", "/metrics/v2"]  # fmt: skip
    for target in rows:
        found = asked("get", target)
        assert (found.path, found.named) == (target, False), target


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (CATALOG + "../a", 400),
        (CATALOG + "%2e%2e/a", 400),
        (CATALOG + "./a", 400),
        (CATALOG + "..;/a", 400),
        ("/puppet/../puppet/v3/catalog/a", 400),
        ("/../puppet/v3", 400),
        (CATALOG + "%zz", 400),
        (CATALOG + "%", 400),
        (CATALOG + "%4", 400),
        (CATALOG + "%00", 400),
        (CATALOG + "%u00", 400),
        (CATALOG + "\u00ff", 400),
        ("puppet/v3", 400),
        ("*", 400),
        ("https://host?x", 400),
        ("/", 404),
        ("/puppet/..", 404),
        ("//puppet/v3/catalog/a", 404),
        ("/nothing/here", 404),
        ("/metrics/v1", 404),
        ("/production/catalog", 404),
        ("/production/catalog/../catalog/a", 400),
        ("/a%20b/catalog/a", 404),
    ],
)
def test_some_targets_are_answered_without_auth_conf(target: str, status: int) -> None:
    with pytest.raises(Unasked, match=f": {status}$"):
        asked("get", target)


def test_urls_of_puppet_3_are_translated() -> None:
    rows: list[tuple[str, str, Asked]] = [
        ("get", "/production/catalog/a?x=1", Asked(CATALOG + "a", {"x": ("1",), "environment": ("production",)})),
        ("get", "/a_b/certificate/ca?", Asked("/puppet-ca/v1/certificate/ca", {"environment": ("a_b",)})),
        ("get", "/p/file_metadata/x?environment=q",
         Asked("/puppet/v3/file_metadata/x", {"environment": ("p",), "source_permissions": ("use",)})),
        ("get", "/v2.0/environments", Asked("/puppet/v3/environments", {})),
        ("delete", "/p/certificate_status/a", Asked("/puppet-ca/v1/certificate_status/a", {"environment": ("p",)})),
    ]  # fmt: skip
    for method, target, expected in rows:
        assert asked(method, target) == expected, method


def test_urls_of_puppet_3_have_methods() -> None:
    with pytest.raises(Unasked, match="404"):
        asked("put", "/production/catalog/a")


def test_query_parameters() -> None:
    rows: list[tuple[str, dict[str, tuple[str, ...]]]] = [
        ("a=1&a=&b=c=d&&=e", {"a": ("1", ""), "b": ("c=d",), "": ("e",)}),
        ("a", {}),
        ("a&b=", {"a": ("",), "b": ("",)}),
        ("a+b=c+d%20%2B", {"a b": ("c d +",)}),
        ("a=%zz&b=1", {"b": ("1",)}),
        ("a=%+1&b=%-1", {"a": ("\x01",)}),
        ("a=%C3%A9&b=%C3", {"a": ("é",), "b": ("\ufffd",)}),
        ("a=%", {}),
    ]
    for query, expected in rows:
        assert asked("get", f"/puppet/x?{query}").query == expected, query

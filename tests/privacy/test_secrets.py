"""What is hidden, and that nothing of it is left in sight: in documents, and in the bytes they came from."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inspector.analysis.analyzer import Analyzer
from inspector.model import Response
from inspector.privacy import hiding, secrets
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol import decode, rich
from inspector.protocol.documents import Catalog, Data, Resource, Undecodable
from inspector.runs.examples import asking_for, csr, talk
from tests.support.conversations import steps

WORD = "hunter2-horse"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END RSA PRIVATE KEY-----\n"


def test_what_puppet_marks_is_hidden_and_the_rest_is_not() -> None:
    sent = {
        "open": "seen",
        "marked": {"__ptype": "Sensitive", "__pvalue": WORD},
        "deep": [{"a": {"__ptype": "Sensitive", "__pvalue": {"user": "root", "word": WORD}}}],
        "redacted": {"__ptype": "Sensitive", "__pvalue": rich.REDACTED},
        "key": f"text before\n{KEY}",
    }
    found = hiding.masked(sent)
    assert found["open"] == "seen"
    assert found["marked"] == Secret(WORD)
    assert found["deep"][0]["a"] == Secret({"user": "root", "word": WORD})
    assert found["redacted"] == rich.REDACTED
    assert isinstance(found["key"], Secret)
    assert WORD not in str(found)
    assert "MIIEvQ" not in repr(found)


def test_parameters_that_are_only_listed_are_hidden_too() -> None:
    resource = Resource(
        "User", "a", {"name": "a", "password": WORD, "empty": ""}, sensitive_parameters=["password", "empty"]
    )
    assert hiding.parameters(resource) == {"name": "a", "password": Secret(WORD), "empty": ""}
    nested = {
        "resources": [{"type": "User", "parameters": {"password": WORD}, "sensitive_parameters": ["password", 1, "no"]}]
    }
    assert hiding.masked(nested)["resources"][0]["parameters"] == {"password": Secret(WORD)}


@pytest.mark.parametrize("way", ["$['a']", "$['a']['word']", "$['a']['__pvalue']['word']"])
def test_no_reference_leads_into_a_secret(way: str) -> None:
    resource = Resource("X", "x", {
        "a": {"__ptype": "Sensitive", "__pvalue": {"word": [WORD]}},
        "b": {"__ptype": "LocalRef", "__pvalue": way},
    })  # fmt: skip
    assert WORD not in str(hiding.parameters(resource))


@pytest.mark.parametrize(
    "name", ["Authorization", "cookie", "SET-COOKIE", "Proxy-Authorization", "X-Authentication", "Cookie2"]
)
def test_credentials_in_headers_are_hidden(name: str) -> None:
    assert hiding.header(name, WORD) == Secret(WORD)
    assert hiding.header("Accept", WORD) == WORD


def test_what_a_signing_request_carries_for_the_ca_is_hidden() -> None:
    renews, password = "1.3.6.1.4.1.34380.1.3.2", "1.2.840.113549.1.9.7"
    for made in (
        csr(attributes={password: WORD, renews: "true"}),
        csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.4": WORD})),
    ):
        (step,) = steps_of(made)
        request = step.request
        assert secrets.within(request) == [WORD]
        shown = [*secrets.attributes(request).values(), *secrets.extensions(request).values()]
        assert Secret(WORD) in shown
        assert set(shown) <= {Secret(WORD), "true"}
        # Base64 of DER: it can't be found in there, so all of it is covered.
        body = step.exchange.request.body
        assert secrets.spans(body, request) == [(0, len(body))]
    (plain,) = steps_of(csr())
    assert secrets.spans(plain.exchange.request.body, plain.request) == []


def steps_of(made: Any) -> list[Any]:
    return list(steps(Analyzer(), talk(made)))


VALUES = st.one_of(
    st.text(min_size=1, max_size=20).filter(lambda text: text != rich.REDACTED),
    st.integers(),
    st.booleans(),
    st.text(st.characters(codec="ascii"), min_size=1, max_size=3),
)


@given(VALUES, st.booleans(), st.booleans())
def test_nothing_of_a_secret_stands_in_a_covered_body(value: Any, ascii_only: bool, pretty: bool) -> None:
    document = {
        "resources": [{"type": "X", "title": "\u2603", "parameters": {"p": value}, "sensitive_parameters": ["p"]}]
    }
    body = json.dumps(document, ensure_ascii=ascii_only, indent=2 if pretty else None).encode("utf-8", "surrogatepass")
    catalog = Catalog(resources=[Resource("X", "\u2603", {"p": value}, sensitive_parameters=["p"])])
    found = secrets.spans(body, catalog)
    assert found
    covered = secrets.covered(body, found).decode("utf-8", "replace")
    assert MASK in covered
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert f'"p": {written}' not in covered


def test_a_body_is_covered_in_every_way_of_writing() -> None:
    word = 'pa/ss "wörd" & more'
    sure = Data({"__ptype": "Sensitive", "__pvalue": word})
    as_json = json.dumps(word)
    for body in (as_json, json.dumps(word, ensure_ascii=False), as_json.replace("/", "\\/"), quote(as_json[1:-1]),
                 quote(quote(as_json[1:-1]))):  # fmt: skip
        raw = f"before {body} after".encode()
        found = secrets.spans(raw, sure)
        assert found != [(0, len(raw))]
        covered = secrets.covered(raw, found)
        assert covered.startswith(b"before ")
        assert covered.endswith(b" after")
        assert b"rd" not in covered
    packed = b"\x1f\x8b\x08 whatever"
    assert secrets.spans(packed, sure) == [(0, len(packed))]


def test_a_private_key_is_covered_wherever_it_stands() -> None:
    for body in (
        KEY.encode(),
        json.dumps({"content": KEY}).encode(),
        f"content: |\n  {KEY}".encode(),
        KEY[:60].encode(),
        KEY.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK").encode(),
        KEY.replace("-----BEGIN", "---- BEGIN")
        .replace("-----END", "---- END")
        .replace("KEY-----", "KEY ----")
        .encode(),
    ):
        covered = secrets.covered(body, secrets.spans(body, None))
        assert b"MIIEvQ" not in covered
        assert MASK.encode() in covered
    assert secrets.spans(b"-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----", None) == []
    body = json.dumps({"content": KEY, "mode": "0600"}).encode()
    assert b'"mode": "0600"' in secrets.covered(body, secrets.spans(body, Data(json.loads(body))))


def test_what_can_not_be_decoded_is_covered_if_it_may_hold_secrets() -> None:
    broken = Undecodable("x")
    assert secrets.spans(b'{"__ptype":"Sensitive"', broken) == [(0, 22)]
    assert secrets.spans(b'"sensitive_parameters": []', broken) == []


@pytest.mark.parametrize("depth", [10, 450])
def test_depth_is_no_hiding_place(depth: int) -> None:
    value: Any = {"__ptype": "Sensitive", "__pvalue": WORD}
    for _ in range(depth):
        value = [value]
    assert WORD not in str(flat(hiding.masked(value)))
    assert secrets.within(Data(value)) == [WORD]


def flat(value: Any) -> list[Any]:
    waiting, found = [value], []
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        else:
            found.append(item)
    return found


def test_secrets_of_a_decoded_catalog_are_found() -> None:
    document = {"name": "a", "resources": [
        {"type": "File", "title": "/k", "parameters": {"content": WORD, "mode": "0600"},
         "sensitive_parameters": ["content"]},
    ], "edges": [], "classes": []}  # fmt: skip
    body = json.dumps(document).encode()
    read = decode.catalog(Response((("Content-Type", "application/json"),), body, status=200))
    assert isinstance(read, Catalog)
    covered = secrets.covered(body, secrets.spans(body, read)).decode()
    assert WORD not in covered
    assert '"mode": "0600"' in covered


def test_too_many_secrets_for_a_search_cover_the_whole_body(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [{"__ptype": "Sensitive", "__pvalue": f"secret-{number}"} for number in range(10)]
    body = json.dumps(values).encode()
    assert secrets.spans(body, Data(values)) != [(0, len(body))]
    monkeypatch.setattr(secrets, "_WORK", 9 * len(body))
    assert secrets.spans(body, Data(values)) == [(0, len(body))]


STRUCTURES = st.recursive(
    st.one_of(st.sampled_from(["Sensitive", WORD, KEY, "PRIVATE KEY", "p"]), st.text(max_size=5), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "__ptype", "__pvalue", "parameters", "sensitive_parameters"]), inner),
        st.builds(lambda value: {"__ptype": "Sensitive", "__pvalue": value}, inner),
        st.builds(lambda value: {"parameters": {"p": value}, "sensitive_parameters": ["p"]}, inner),
    ),
    max_leaves=8,
)


@given(STRUCTURES, st.sets(st.sampled_from("SsePRIVATK_")), st.booleans())
def test_whatever_hides_something_passes_the_quick_test(value: Any, escaped: set[str], pretty: bool) -> None:
    body = json.dumps(value, indent=2 if pretty else None)
    for character in escaped:
        body = body.replace(character, f"\\u{ord(character):04x}") if "\\" not in body else body
    assume(json.loads(body) == value)
    document = Data(value)
    if secrets.within(document) or secrets.spans(body.encode(), document):
        assert secrets.possible(body.encode(), "application/json", document)


def test_only_json_can_be_told_to_hide_nothing() -> None:
    plain = json.dumps({"sensitive_parameters": [], "message": "a \\n b", "file": "/x"}).encode()
    assert not secrets.possible(plain, "application/json", Data({}))
    assert not secrets.possible(plain, "text/pson", Catalog())
    assert secrets.possible(None, "application/json", Data({}))
    assert secrets.possible(plain, "application/x-msgpack", Data({}))
    assert secrets.possible(plain, "application/json", Undecodable("x"))


def test_what_cant_be_read_tells_whether_it_marks_something() -> None:
    assert secrets.marked(b'{"__ptype":"Sensitive"')
    assert not secrets.marked(b'{"sensitive_parameters":[]')
    assert secrets.hinted(b'"sensitive_parameters": [ "a"', "application/json")
    assert not secrets.hinted(b'"sensitive_parameters": []', "application/json")
    assert secrets.hinted(b"sensitive_parameters: []", "text/yaml")

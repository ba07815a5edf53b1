"""Records without their secrets: none is left, all else is as it was, and nothing that was captured stops it."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.analyzer import Analyzer
from inspector.model import Exchange, Gap, Handshake, Leg, Record, Request, Response
from inspector.privacy import patterns, redact, rewrite, secrets
from inspector.privacy.names import MASK
from inspector.privacy.redact import redacted
from inspector.protocol import bodies, x509
from inspector.protocol.documents import Catalog, CatalogRequest, CertificateRequest, Facts
from inspector.runs.examples import (
    ExamplePart,
    asking_for,
    bucket,
    catalog,
    csr,
    foreign_ca,
    plugins,
    querying,
    report,
    stored,
    talk,
)  # fmt: skip
from tests.support.conversations import runs_of, steps
from tests.support.recorded import SAMPLES, records_of
from tests.support.secrets import KEY, WORD

if TYPE_CHECKING:
    from pathlib import Path

CATALOG = "/puppet/v3/catalog/node1.example?environment=production"
JSON = "application/json"
SENSITIVE = {"__ptype": "Sensitive", "__pvalue": WORD}


def exchange(
    body: bytes = b"", media: str = JSON, *, sent: bytes = b"", sends: str = JSON, target: str = CATALOG,
    method: str = "POST", asks: tuple[tuple[str, str], ...] = (), answers: tuple[tuple[str, str], ...] = (),
) -> Exchange:  # fmt: skip
    request = Request((("Content-Type", sends), *asks), sent, method=method, target=target)
    return Exchange(Leg("a", "agent"), request, Response((("Content-Type", media), *answers), body, status=200))


def of(record: Record) -> Exchange:
    """It with masks; and masked once, there is nothing more to mask."""
    once = redacted(record)
    assert isinstance(once, Exchange)
    assert redacted(once) is once
    return once


def answer(record: Record) -> Response:
    """Its answer with masks."""
    found = of(record).response
    assert found is not None
    return found


def answered(value: Any, **more: Any) -> Any:
    return json.loads(answer(exchange(json.dumps(value).encode(), **more)).body)


# -- nothing is left, nothing else changes ------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_what_holds_no_secret_is_the_same_object(sample: Path) -> None:
    for record in records_of(sample):
        assert redacted(record) is record


def test_only_the_value_is_masked_and_every_other_byte_stays() -> None:
    parameters = b'{"a": %s,  "mode":"0600" , "note": "\\u2603"}'
    whole = (
        b' {"resources":[{"type":"File","title":"/k","parameters":' + parameters + b',"sensitive_parameters":["a"]}]}\n'
    )
    assert answer(exchange(whole % b'"hunter2-horse"')).body == whole % b'"MASKED"'
    assert answer(exchange(whole % b"12345")).body == whole % b'"MASKED"'


def test_signs_of_json_within_texts_end_none() -> None:
    body = (
        b'{"a\\\\": "x\\"y,", "\\\\\\"":[ -1, 2.5E3 ,true,{"password" : 12345678,"n":null} , ""],'
        b'"token":"q\\\\z\\"hunter2","e":{} , "l": [ [ ] ], "z": 1e-7 }'
    )
    masked = body.replace(b"12345678", b'"MASKED"').replace(b'"q\\\\z\\"hunter2"', b'"MASKED"')
    assert answer(exchange(body)).body == masked


def test_a_body_in_which_nothing_may_be_secret_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(redact, "_suspicious", lambda data, _: asked.append(data))
    record, searched = exchange(b'{"a": "b"}'), redact.SearchedBodies()
    for _ in range(2):
        redact.exchange(record, searched)
        redact.known(record, searched)
    assert asked.count(b'{"a": "b"}') == 1


def test_the_length_is_announced_as_before() -> None:
    body = json.dumps({"p": SENSITIVE}).encode()
    for promised in (len(body), len(body) + 7):
        output = answer(exchange(body, answers=(("Content-Length", str(promised)),)))
        assert int(output.header("content-length") or "") - len(output.body) == promised - len(body)
    hostile = answer(exchange(body, answers=(("Content-Length", "9" * 5000), ("content-length", "²"))))
    assert hostile.header("content-length") == "9" * 5000


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "gzip, deflate", "identity"])
def test_content_encodings_are_put_on_again(encoding: str) -> None:
    body = json.dumps({"p": SENSITIVE, "open": "seen"}).encode()
    packed = body
    for part in encoding.split(", "):
        packed = zlib.compress(packed) if part == "deflate" else packed if part == "identity" else gzip.compress(packed)
    output = answer(exchange(packed, answers=(("Content-Encoding", encoding),)))
    assert json.loads(bodies.plain(output)) == {"p": {"__ptype": "Sensitive", "__pvalue": MASK}, "open": "seen"}


def test_what_cant_be_unpacked_can_hold_anything() -> None:
    whole = gzip.compress(json.dumps({"p": SENSITIVE}).encode())
    for body, encoding in ((whole[:-9], "gzip"), (b"\x0b\x02\x80" + WORD.encode(), "br")):
        assert answer(exchange(body, answers=(("Content-Encoding", encoding),))).body == MASK.encode()


def test_what_is_no_json_but_marks_something_is_masked_whole() -> None:
    body = json.dumps({"p": SENSITIVE}).encode()
    assert answer(exchange(body[:-3])).body == MASK.encode()


@pytest.mark.parametrize("media", [JSON, "application/vnd.puppet.rich+msgpack", "text/yaml"])
def test_a_catalog_that_was_cut_off_may_no_longer_say_what_is_sensitive(media: str) -> None:
    resource = {"type": "File", "title": "/k", "parameters": {"content": WORD}, "sensitive_parameters": ["content"]}
    document = {"name": "node1.example", "resources": [resource]}
    whole = json.dumps(document).encode()
    if "msgpack" in media:
        whole = msgspec.msgpack.encode(document)
    elif "yaml" in media:
        whole = f"--- \nsensitive_parameters:\n- content\nparameters:\n  content: {WORD}\n  more: [".encode()
    for size in range(whole.index(WORD.encode()) + len(WORD), len(whole)) if "yaml" not in media else [len(whole)]:
        assert answer(exchange(whole[:size], media)).body == MASK.encode()


def test_a_password_that_was_cut_off() -> None:
    assert answer(exchange(f'{{"db_password":"{WORD}'.encode())).body == b'{"db_password":"MASKED'


def test_a_signing_request_that_cant_be_read() -> None:
    (record,) = talk(csr(attributes={"1.2.840.113549.1.9.7": WORD}))
    assert isinstance(record, Exchange)
    pem = record.request.body
    der = x509.read_csr(pem).der
    for body in (pem[:-20], pem.replace(b"\n", b"\n#", 2), der, base64.b64encode(der)):
        request = dataclasses.replace(record.request, body=body)
        assert of(dataclasses.replace(record, request=request)).request.body == MASK.encode()


# -- what is a secret ---------------------------------------------------------------------------------------


SECRET = """
password db_password rootPassword passwd api_key apiKey secret client_secret auth_token token private_key
ssh_private_key credentials password_hash secret_access_key db_pass snmp_community_string vpn_psk
profile::db::password password1 bindpw bind_pw db_pw dbpass passcode erlang_cookie snmp_community ssl_key
""".split()  # noqa: SIM905 - names in a row are easier to read
HARMLESS = """
password_max_age password_file token_ttl secret_path compass passenger sshrsakey public_key ssh_authorized_key tokenizer
key keys bypass
""".split()  # noqa: SIM905


def test_names_of_secrets_and_names_that_only_remind_of_them() -> None:
    def masked(name: str) -> bool:
        found = answered({"values": {name: WORD, "other": "seen"}})["values"]
        assert found in ({name: MASK, "other": "seen"}, {name: WORD, "other": "seen"})
        return bool(found[name] == MASK)

    assert [name for name in [*SECRET, "API Key"] if not masked(name)] == []
    assert [name for name in [*HARMLESS, "Exec[rotate token]"] if masked(name)] == []


def test_values_that_say_nothing() -> None:
    for value in ("", "true", "undef", "!", "*", "/etc/ssl/private/host.pem", "file:///etc/token", None, True):
        record = exchange(json.dumps({"parameters": {"password": value, "private_key": value}}).encode())
        assert redacted(record) is record, value


def test_all_of_a_mapping_or_list_of_that_name() -> None:
    output = answered({"facts": {"credentials": {"user": "abc", "deep": [WORD, 5, True]}}})
    assert output == {"facts": {"credentials": {"user": MASK, "deep": [MASK, MASK, True]}}}


def test_what_is_sensitive_is_masked_whatever_its_type() -> None:
    output = answered({"p": {"__ptype": "Sensitive", "__pvalue": {"a": True, "b": [1, None, ""]}}})
    assert output["p"]["__pvalue"] == {"a": MASK, "b": [MASK, None, ""]}
    output = answered({"p": {"__ptype": "Sensitive", "__pvalue": {WORD: "u", "user": ["x"]}}, "q": WORD})
    assert output == {"p": {"__ptype": "Sensitive", "__pvalue": {MASK: MASK, "user": [MASK]}}, "q": MASK}
    listed = {"parameters": {"a": {WORD: "u"}}, "sensitive_parameters": ["a"]}
    assert answered(listed)["parameters"] == {"a": {MASK: MASK}}
    # Keys in any order, and keys that are no texts.
    assert answered({"__pvalue": WORD, "__ptype": "Sensitive"})["__pvalue"] == MASK
    assert answered({"__ptype": "Hash", "__pvalue": ["db_password", WORD, 1, 2]})["__pvalue"] == [
        "db_password",
        MASK,
        1,
        2,
    ]


def test_an_event_about_a_password() -> None:
    output = answered({"property": "password", "previous_value": "$abc", "desired_value": WORD, "status": "success"})
    assert output == {"property": "password", "previous_value": MASK, "desired_value": MASK, "status": "success"}


PIECES = [
    ("--- a\n+++ b\n+db_password = correct-staple\n", "--- a\n+++ b\n+db_password = MASKED\n"),
    ('run --password="a b c" --user x', 'run --password="MASKED" --user x'),
    ("db_password: hunter2-horse\nuser: x", "db_password: MASKED\nuser: x"),
    ('{"token": "hunter2-horse"}', '{"token": "MASKED"}'),
    ("fetch https://me:hunter2@host/x", "fetch https://me:MASKED@host/x"),
    ("root:$6$salt$0123456789abcdef0123:19000:", "root:$6$MASKED:19000:"),
    ("id AKIAABCDEFGHIJKLMNOP here", "id AKIAMASKEDMASKEDMASK here"),
    (f"x glpat-{'a' * 20} y", "x glpat-MASKED-MASKED-MASKED y"),
    (f"x ghp_{'a' * 36} y", f"x ghp_{MASK * 6} y"),
    (KEY, f"-----BEGIN RSA PRIVATE KEY-----\n{MASK * 3}\n-----END RSA PRIVATE KEY-----\n"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----\n",
     f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{MASK * 3}\n-----END PGP PRIVATE KEY BLOCK-----\n"),
    ('---- BEGIN SSH2 PRIVATE KEY ----\nComment: "me"\nP2/5\n---- END SSH2 PRIVATE KEY ----',
     f'---- BEGIN SSH2 PRIVATE KEY ----\nComment: "me"\n{MASK * 3}\n---- END SSH2 PRIVATE KEY ----'),
    ("PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 2\nAAAAgQ\nD1+/=\nPrivate-MAC: 0b\n",
     "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 2\nMASKED\nPrivate-MAC: 0b\n"),
    ("[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n",
     "[Interface]\nPrivateKey = MASKED\n"),
    (f"key: {base64.b64encode(KEY.encode()).decode()} x",
     f"key: {base64.b64encode(patterns.text(KEY).encode()).decode()} x"),
    ("Server=x;User=y;Pwd=hunter2-horse;", "Server=x;User=y;Pwd=MASKED;"),
    (KEY[:90], f"-----BEGIN RSA PRIVATE KEY-----\n{MASK * 3}"),
    ("MYSQL_PWD=hunter2-horse mysqldump", "MYSQL_PWD=MASKED mysqldump"),
    ("secret_key_base: 0123456789abcdef", "secret_key_base: MASKED"),
    ("rocommunity hunter2 10.0.0.0/8", "rocommunity MASKED 10.0.0.0/8"),
    ("/usr/bin/curl -s -u robot:hunter2 http://a.example/", "/usr/bin/curl -s -u robot:MASKED http://a.example/"),
    ("curl --user 'robot:hunter2' a.example; id -u", "curl --user 'robot:MASKED' a.example; id -u"),
    ("mysql -u root -phunter2 -e 'select 1'", "mysql -u root -pMASKED -e 'select 1'"),
    ("mysqldump -phunter2 app", "mysqldump -pMASKED app"),
    ("mysql -p app", "mysql -p app"),
    ("https://hooks.slack.com/services/T0/B0/abcDEF", "https://hooks.slack.com/services/MASKED"),
    *((f"a {prefix}{'a1B2' * 6} b", f"a {prefix}MASKED b") for prefix in (
        "sk_live_", "rk_test_", "AIza", "npm_", "hvs.", "pypi-", "ya29.", "dckr_pat_", "shpat_", "tskey-", "glrt-",
    )),
    ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "Authorization: Bearer MASKED"),
]  # fmt: skip


def test_pieces_of_texts() -> None:
    for before, after in PIECES:
        assert patterns.signs(before), before
        assert patterns.text(before) == after
        assert patterns.text(after) == after
        assert answered({"message": before}) == {"message": after}
        output = answer(
            exchange(before.encode(), "application/octet-stream", target="/puppet/v3/file_content/modules/a/b")
        )
        assert output.body == after.encode()


def test_texts_without_a_secret() -> None:
    texts = [
        "password: authentication failed for root", "password = lookup('x')", "password => $password", "token: '%{x}'",
        "Syntax error at token: near", "password = profile::secret",
        "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----", "private_key => '/etc/ssl/private/host.pem'",
        base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBg\n-----END CERTIFICATE-----").decode(),
        "https://host:8140/x@y", "secret=${SECRET}",
    ]  # fmt: skip
    assert [text for text in texts if patterns.text(text) != text] == []


def test_a_plugin_is_code_whose_variables_may_be_called_so() -> None:
    body = f"password = something\n{KEY}".encode()
    output = answer(
        exchange(body, "application/octet-stream", target="/puppet/v3/file_content/plugins/a.rb", method="GET")
    )
    assert output.body.startswith(b"password = something\n-----BEGIN RSA PRIVATE KEY-----\nMASKED")


def test_credentials_in_headers() -> None:
    names = (
        "Authorization cookie SET-COOKIE X-Authentication X-Vault-Token X-Api-Key Cookie2 X-Session "
        "X-Forwarded-Authorization X-Original-Authorization Authentication"
    )
    for name in names.split():
        output = of(exchange(asks=((name, WORD), ("Accept", "*/*"))))
        assert output.request.headers[1:] == ((name, MASK), ("Accept", "*/*"))
    output = of(exchange(asks=(("Authorization", f"Basic {WORD}"),)))
    assert output.request.header("authorization") == "Basic MASKED"


def test_a_query_and_what_is_known_from_a_body() -> None:
    output = of(exchange(target=f"/metrics/v2?a=b&token={WORD}&c=%20", method="GET"))
    assert output.request.target == "/metrics/v2?a=b&token=MASKED&c=%20"
    body = json.dumps({"p": SENSITIVE, "message": f"ran with {WORD}"}).encode()
    output = of(
        exchange(body, target=f"{CATALOG}&x={WORD}", asks=(("X-Y", f"<{WORD}>"),), sent=f'["{WORD}!"]'.encode())
    )
    assert output.request.target == f"{CATALOG}&x=MASKED"
    assert output.request.header("x-y") == "<MASKED>"
    assert output.request.body == b'["MASKED!"]'
    assert WORD.encode() not in (output.response.body if output.response else b"")


@pytest.mark.parametrize(
    "target", ["https://me:correct5-staple@host/x", "/x;password=correct5-staple/y", f"/x?b=p%40ss%2F1&{WORD}"]
)
def test_secrets_in_any_part_of_a_url(target: str) -> None:
    body = json.dumps({"p": {"__ptype": "Sensitive", "__pvalue": "p@ss/1"}, "q": SENSITIVE}).encode()
    output = of(exchange(body, target=target)).request.target
    assert MASK in output
    assert "horse" not in output
    assert "staple" not in output
    assert "p%40ss" not in output


def test_a_signed_url_and_a_reason() -> None:
    output = of(exchange(target="/x?a=b&X-Amz-Signature=abc123&sig=x%3D&design=1", method="GET"))
    assert output.request.target == "/x?a=b&X-Amz-Signature=MASKED&sig=MASKED&design=1"
    record = exchange()
    assert record.response is not None
    reason = dataclasses.replace(record.response, reason=f"no password={WORD}")
    assert answer(dataclasses.replace(record, response=reason)).reason == "no password=MASKED"


@pytest.mark.parametrize("text", ['{"\\u0070assword":"%s"}', '{"__pt\\u0079pe":"S\\u0065nsitive","__pvalue":"%s"}'])
def test_markers_may_be_escaped(text: str) -> None:
    assert answer(exchange((text % WORD).encode())).body == (text % MASK).encode()
    assert answer(exchange((text % WORD).encode() + b",")).body == MASK.encode()


@pytest.mark.parametrize(("media", "before"), [("application/octet-stream", b""), ("text/plain", b"\n ")])
def test_json_that_does_not_say_so(media: str, before: bytes) -> None:
    document = answer(exchange(before + json.dumps({"p": SENSITIVE}).encode(), media))
    assert document.body == before + json.dumps({"p": SENSITIVE | {"__pvalue": MASK}}).encode()


def test_a_word_is_no_secret_elsewhere() -> None:
    output = answered({"p": {"__ptype": "Sensitive", "__pvalue": "root"}, "owner": "root"})
    assert output == {"p": {"__ptype": "Sensitive", "__pvalue": MASK}, "owner": "root"}


@pytest.mark.parametrize("secret", [WORD, f"{WORD} {'y9' * 60}", f"{WORD}\nand more"])
@pytest.mark.parametrize("before", ["", "x" * 170, "x" * 75, "x" * 195])
def test_no_finding_quotes_what_is_masked_in_its_record(secret: str, before: str) -> None:
    log = f"Execution of '{before} SET {secret}' returned 1"
    events = [{"property": "password_hash", "status": "failure", "desired_value": secret, "message": log}]
    statuses = {"Mysql_user[app]": {"failed": True, "events": events}}
    logs = [{"level": "err", "source": "/Stage[main]/Main/Mysql_user[app]/password_hash", "message": log}]
    records = talk(plugins(), catalog(), report(result="failed", resource_statuses=statuses, logs=logs))
    (run,) = runs_of(records)
    (message,) = (finding.message for finding in run.findings if finding.rule == "P01")
    assert "Execution" in message
    assert secret[:6] not in message
    assert "more" not in message
    # It is said as it would be of the masked record.
    (other,) = runs_of([redacted(record) for record in records])
    assert [finding.rule for finding in run.findings] == [finding.rule for finding in other.findings]


def test_what_a_master_says_why_it_refuses() -> None:
    facts = quote(quote(json.dumps({"name": "node1.example", "values": {"db_password": WORD}}), safe=""), safe="")
    sent = f"facts_format=application%2Fjson&facts={facts}".encode()
    asked = exchange(json.dumps({"message": f"cannot log in with {WORD}"}).encode(), sent=sent, sends="")
    assert asked.response is not None
    (run,) = runs_of([dataclasses.replace(asked, response=dataclasses.replace(asked.response, status=500))])
    assert "cannot log in with MASKED" in "".join(finding.message for finding in run.findings)


def test_a_message_without_a_secret_stays() -> None:
    assert redact.quoted("a … b …", {WORD}) == "a … b …"
    assert redact.quoted("ran hunter2… …-horse", {WORD}) == "ran MASKED… …MASKED"


# -- notations ------------------------------------------------------------------------------------------------

FACTS = {"name": "node1.example", "values": {"db_password": WORD, "os": "b & d", "puppetversion": "3.8.7"}}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("notation", ["pson", "application/json", "yaml", "b64_zlib_yaml"])
def test_facts_in_a_form(times: int, notation: str) -> None:
    text = json.dumps(FACTS)
    facts = text
    if "yaml" in notation:
        facts = f"--- !ruby/object:Puppet::Node::Facts\nname: node1.example\nvalues:\n  db_password: {WORD}\n"
        facts += "  os: b & d\n  puppetversion: '3.8.7'\n"
    if notation == "b64_zlib_yaml":
        facts = base64.b64encode(zlib.compress(facts.encode())).decode()
    for _ in range(times):
        facts = quote(facts, safe="")
    sent = f"environment=production&facts_format={quote(notation, safe='')}&facts={facts}".encode()
    record = exchange(sent=sent, sends="application/x-www-form-urlencoded", body=b"{}")
    output = of(record)
    (before,), (after,) = steps(Analyzer(), [record]), steps(Analyzer(), [output])
    assert isinstance(before.request, CatalogRequest)
    assert isinstance(after.request, CatalogRequest)
    values = {"db_password": MASK, "os": "b & d", "puppetversion": "3.8.7"}
    assert msgspec.to_builtins(after.request) | {"facts": None} == msgspec.to_builtins(before.request) | {"facts": None}
    assert after.request.facts == msgspec.structs.replace(before.request.facts, values=values)  # type: ignore[type-var]
    assert output.request.body.startswith(sent[: sent.index(b"facts=")])


def test_facts_in_the_query_of_an_old_agent() -> None:
    facts = quote(quote(json.dumps(FACTS), safe=""), safe="")
    output = of(exchange(method="GET", target=f"/production/catalog/node1.example?facts_format=pson&facts={facts}"))
    assert WORD not in unquote(unquote(output.request.target))
    assert MASK in output.request.target


@pytest.mark.parametrize("sends", ["", "application/x-www-form-urlencoded; charset=utf-8", JSON, "text/plain"])
def test_facts_in_a_form_that_does_not_call_itself_one(sends: str) -> None:
    facts = quote(quote(json.dumps(FACTS), safe=""), safe="")
    document = of(exchange(sent=f"facts_format=application%2Fjson&facts={facts}".encode(), sends=sends)).request.body
    assert document.startswith(b"facts_format=application%2Fjson&facts=")
    fields = bodies.form(document)
    read = bodies.facts_of_form(fields[b"facts"], fields[b"facts_format"].decode(), Facts)
    assert read.values == FACTS["values"] | {"db_password": MASK}  # type: ignore[operator]


def test_yaml_keeps_its_layout_tags_and_anchors() -> None:
    report = (
        "--- !ruby/object:Puppet::Transaction::Report\n  host: é\n  db_password: &id001 !binary |\n"
        "    aHVudGVyMi1ob3JzZQ==\n  again: *id001\n  ? secret\n  : >-\n    hunter2-horse\n"
        "  :token: 'hunter2-horse' # why\n  logs: []\n"
    )
    output = of(exchange(sent=report.encode(), sends="text/yaml", method="PUT")).request.body.decode()
    assert output == (
        '--- !ruby/object:Puppet::Transaction::Report\n  host: é\n  db_password: &id001 "MASKED"\n'
        '  again: *id001\n  ? secret\n  : "MASKED"\n  :token: "MASKED" # why\n  logs: []\n'
    )


def test_a_comment_in_yaml_is_no_hiding_place() -> None:
    body = f"--- \nsecret: {WORD}-{WORD}\n# {WORD}-{WORD}\n".encode()
    assert WORD.encode() not in of(exchange(sent=body, sends="text/yaml", method="PUT")).request.body


def test_msgpack() -> None:
    value = {"p": SENSITIVE, b"db_password": WORD.encode(), "n": 5, "raw": b"\xff"}
    output = answer(exchange(msgspec.msgpack.encode(value), "application/vnd.puppet.rich+msgpack"))
    assert msgspec.msgpack.decode(output.body) == {
        "p": {"__ptype": "Sensitive", "__pvalue": MASK}, "db_password": MASK, "n": 5, "raw": "ÿ"
    }  # fmt: skip


def test_text_that_is_no_utf8() -> None:
    body = b'{"a":"caf\xe9","password":"h\xfcnter2-horse"}'
    assert answer(exchange(body, "text/pson")).body == b'{"a":"caf\xe9","password":"MASKED"}'


# -- certificates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [csr(attributes={"1.2.840.113549.1.9.7": WORD, "1.3.6.1.4.1.34380.1.3.2": "true"}),
     csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.4": WORD, "1.3.6.1.4.1.34380.1.1.13": "webserver"}))],
    ids=["challenge password", "preshared key"],
)  # fmt: skip
def test_a_signing_request_stays_one(made: Any) -> None:
    (record,) = talk(made)
    output = of(record)
    assert isinstance(record, Exchange)
    (before,), (after,) = steps(Analyzer(), [record]), steps(Analyzer(), [output])
    assert isinstance(before.request, CertificateRequest)
    assert isinstance(after.request, CertificateRequest)
    assert secrets.within(before.request) == [WORD]
    assert secrets.within(after.request) == [(MASK * 3)[: len(WORD)]]
    assert len(output.request.body) == len(record.request.body)
    assert (after.request.key, after.request.subject) == (before.request.key, before.request.subject)
    assert set(after.request.extensions) == set(before.request.extensions)
    assert after.request.extensions.get("pp_role") == before.request.extensions.get("pp_role")
    assert after.request.attributes.get("pp_auth_auto_renew") == before.request.attributes.get("pp_auth_auto_renew")
    assert (before.request.signature_valid, after.request.signature_valid) == (True, False)


def test_a_preshared_key_in_a_certificate() -> None:
    from cryptography import x509 as lib
    from cryptography.hazmat.primitives.serialization import Encoding

    from inspector.host import pki

    ca = pki.make_ca("CA")
    extension = lib.UnrecognizedExtension(lib.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.4"), b"\x0c\x0d" + WORD.encode())
    made = pki.sign(
        ca, pki.new_key().public_key(), "node1.example", extensions=[lib.Extension(extension.oid, False, extension)]
    )
    der = made.public_bytes(Encoding.DER)
    leg = Leg("a", "agent", peer_chain=(der, b"no der", b"0\x82"), own_chain=(foreign_ca().public_bytes(Encoding.DER),))
    record = redacted(Handshake(leg, 1.0, "no"))
    assert isinstance(record, Handshake)
    assert WORD.encode() not in record.leg.peer_chain[0]
    assert x509.read_der(record.leg.peer_chain[0]).extensions["pp_preshared_key"] == (MASK * 3)[: len(WORD)]
    assert record.leg.peer_chain[1:] == leg.peer_chain[1:]
    assert record.leg.own_chain == leg.own_chain
    served = answer(
        exchange(made.public_bytes(Encoding.PEM), "text/plain", target="/puppet-ca/v1/certificate/a", method="GET")
    )
    assert x509.read_certificates(served.body)[0].extensions["pp_preshared_key"] == (MASK * 3)[: len(WORD)]


def test_a_bucket_is_filed_under_what_it_holds() -> None:
    (record,) = talk(bucket(f"a\n{KEY}".encode()))
    output = of(record)
    (step,) = steps(Analyzer(), [output])
    assert step.request.verdict.value == "right"  # type: ignore[union-attr]
    assert b"MIIEvQ" not in output.request.body


def test_failed_handshakes_and_gaps() -> None:
    for record in (
        Gap(1.0, "hook failed: password=hunter2-horse"),
        Handshake(Leg("a", "agent"), 1.0, "x", culprits=("token='abc1'",)),
    ):
        output = redacted(record)
        assert MASK in str(output)
        assert redacted(output) is output
    assert redacted(gap := Gap(1.0, "gone")) is gap


# -- whatever comes ---------------------------------------------------------------------------------------------

KEYS = ["a", "b", "__ptype", "__pvalue", "parameters", "sensitive_parameters"]
VALUES = st.recursive(
    st.one_of(st.sampled_from([WORD, KEY, "password", "x=1", True, None]), st.text(max_size=8), st.integers(0, 2**63)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner),
        st.builds(lambda value: {"__ptype": "Sensitive", "__pvalue": value}, inner),
        st.builds(lambda value: {"parameters": {"p": value}, "sensitive_parameters": ["p"]}, inner),
    ),
    max_leaves=10,
)  # fmt: skip


@given(st.lists(st.fixed_dictionaries({"parameters": st.dictionaries(st.sampled_from("ab"), VALUES)}), max_size=3),
       st.booleans(), st.sampled_from(["json", "msgpack"]))  # fmt: skip
def test_nothing_that_a_document_calls_secret_is_left(resources: list[Any], pretty: bool, kind: str) -> None:
    document = {"name": "n", "resources": [{"type": "X", "title": "t"} | resource for resource in resources]}
    body = (
        msgspec.msgpack.encode(document)
        if kind == "msgpack"
        else json.dumps(document, indent=2 if pretty else None).encode()
    )
    record = exchange(body, "application/x-msgpack" if kind == "msgpack" else JSON)
    (step,) = steps(Analyzer(), [record])
    output = of(record)
    assert output.response is not None
    if not isinstance(step.response, Catalog):
        return
    found = secrets.within(step.response)
    (after,) = steps(Analyzer(), [output])
    if found:
        assert isinstance(after.response, Catalog)
        assert set(secrets.within(after.response)) <= {MASK, patterns.text(KEY)}
        retained = output.response.body.decode("utf-8", "replace")
        assert WORD not in found or WORD not in retained
        assert "MIIEvQ" not in retained


MEDIA = [JSON, "text/pson", "text/yaml", "application/x-msgpack", "text/plain", "", "application/octet-stream",
         "application/x-www-form-urlencoded"]  # fmt: skip
STARTS = [b"", b'{"__ptype":"Sensitive"', b"--- \npassword: &a ", b"facts_format=b64_zlib_yaml&facts=", b"token=",
          b"-----BEGIN PRIVATE KEY-----",
          base64.b64encode(b"-----BEGIN PRIVATE KEY-----\nMII")]  # fmt: skip


@given(
    st.binary(max_size=200),
    st.sampled_from(MEDIA),
    st.sampled_from(["", "gzip", "deflate", "br"]),
    st.sampled_from(STARTS),
)
def test_it_never_raises(body: bytes, media: str, encoding: str, start: bytes) -> None:
    head = (("Content-Type", media), ("Content-Encoding", encoding), ("Content-Length", "x"))
    sent = start + body
    request = Request(head, sent, target="/p?" + sent.decode("latin-1"))
    of(Exchange(Leg("a", "agent", peer_chain=(body,)), request, Response(head, sent)))


@given(st.binary(max_size=60))
def test_masking_der_never_raises(tail: bytes) -> None:
    (record,) = talk(csr(attributes={"1.2.840.113549.1.9.7": WORD}))
    assert isinstance(record, Exchange)
    der = x509.read_csr(record.request.body).der
    masked = patterns.der(der)
    assert WORD.encode() not in masked
    patterns.der(der[:40] + tail + der[40:])
    patterns.der(tail)
    at = der.index(WORD.encode())
    assert len(patterns.der(der[:at] + tail)) == at + len(tail)


def test_depth_and_size_are_no_trouble() -> None:
    deep = b"[" * 100_000 + b'{"__ptype":"Sensitive","__pvalue":"hunter2-horse"}' + b"]" * 100_000
    assert answer(exchange(deep)).body == MASK.encode()
    der = b"0\x80" * 50_000
    assert patterns.der(der) is der
    fields = urlencode([("token", WORD)] * 20_000).encode()
    assert WORD.encode() not in of(exchange(sent=fields, sends="application/x-www-form-urlencoded")).request.body


def test_a_body_without_secrets_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    plain = redact._read

    def counted(body: bytes, media: str) -> rewrite.Tree:
        read.append(body)
        return plain(body, media)

    monkeypatch.setattr(redact, "_read", counted)
    harmless, secret = exchange(b'{"token_life": 1}'), exchange(b'{"token": "%s"}' % WORD.encode())
    searched = redact.SearchedBodies()
    for record in (harmless, secret):
        assert redact.known(record, searched) == redact.known(record)
        assert redacted(record, searched) == redacted(record)
    assert read.count(b'{"token_life": 1}') == 3, "once where it is remembered, twice where it is not"
    assert redacted(secret, searched) != secret


def test_a_plugin_that_stays_says_nothing_of_the_same_text_elsewhere() -> None:
    """Variables of code may be called like secrets, so less is masked there."""
    text = f'password = "{WORD}"'.encode()
    code = exchange(text, "application/octet-stream", method="GET", target="/puppet/v3/file_content/plugins/a.rb")
    other = exchange(text, "application/octet-stream", method="GET", target="/puppet/v3/file_content/modules/a/b")
    searched = redact.SearchedBodies()
    assert redacted(code, searched) == code
    new = redacted(other, searched)
    assert isinstance(new, Exchange)
    assert new.response is not None
    assert WORD.encode() not in new.response.body


@pytest.mark.parametrize("around", [
    b'{ "a" : [1.0, -0, 1E400, "\\u0041\\/\\"", {}], "a":"\\\\", "password":%s, "b":null}',
    b'[%s,\n' + b"9" * 5000 + b"]",
    b'[null, 1.50, true, {"__ptype":"Sensitive","__pvalue": %s }, 12345]', b' {"caf\xc3\xa9":{"token" :%s}} ',
])  # fmt: skip
def test_every_other_byte_of_json_stays(around: bytes) -> None:
    secret = b'"hunter2-horse"' if b"Sensitive" not in around else b"-12345.5e3"
    if around.startswith(b"["):
        around = around.replace(b"[%s", b'[{"password": %s}')
    for _ in range(2):  # the second time it may be remembered
        masked = redacted(exchange(around.replace(b"%s", secret)))
        assert isinstance(masked, Exchange)
        assert masked.response is not None
        assert masked.response.body == around.replace(b"%s", b'"MASKED"')


def test_a_body_without_a_secret_is_remembered_only_for_what_it_is() -> None:
    body = b'{"password_note":"token hunter2-horse"}'
    for media, shown in ((JSON, True), ("text/plain", False)):
        for _ in range(2):
            masked = redacted(exchange(b'"password=hunter2-horse"' if media == JSON else body, media))
            assert isinstance(masked, Exchange)
            assert masked.response is not None
            assert b"hunter2" not in masked.response.body or not shown


@pytest.mark.parametrize(
    "record",
    [
        stored(values={"db_password": "Tr0ub4dor&3", "note": "password=Tr0ub4dor&3"}),
        stored("replace_catalog", resources=[
            {"type": "User", "title": "a", "parameters": {"password": "Tr0ub4dor&3"}},
            {"type": "Notify", "title": "b", "parameters": {"message": SENSITIVE | {"__pvalue": "Tr0ub4dor&3"}}},
        ]),
        stored("store_report", logs=[{"level": "notice", "message": "password=Tr0ub4dor&3", "source": "x"}], resources=[
            {"resource_type": "User", "resource_title": "a", "events": [
                {"property": "password", "old_value": "Tr0ub4dor&3", "new_value": "Tr0ub4dor&3", "status": "success"}
            ]},
        ]),
        querying(answer=({"certname": "a", "name": "db_password", "value": "Tr0ub4dor&3"},)),
        querying(answer=({"type": "User", "title": "a", "parameters": {"password": "Tr0ub4dor&3"}},)),
        querying('resources{ parameters.password = "Tr0ub4dor&3" }'),
    ],
)  # fmt: skip
def test_what_goes_to_puppetdb_and_comes_from_there(record: ExamplePart) -> None:
    (plain,) = talk(record)
    assert isinstance(plain, Exchange)
    packed = dataclasses.replace(
        plain.request, body=gzip.compress(plain.request.body),
        headers=(*plain.request.headers, ("Content-Encoding", "gzip")),
    )  # fmt: skip
    for sent in (plain.request, packed):
        masked = of(dataclasses.replace(plain, request=sent))
        assert masked.response
        text = repr((masked.request.target, bodies.plain(masked.request), bodies.plain(masked.response)))
        assert "Tr0ub4dor" not in text
        assert "MASKED" in text

"""What stands in the tabs of a record, before it is drawn: of samples, of all rules' examples, of hostile ones."""

from __future__ import annotations

import dataclasses
import itertools
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis.analyzer import Analyzer, retrace
from inspector.cli import main as cli
from inspector.host import pki
from inspector.model import Exchange, Finding, Gap, Handshake, Identity, Leg, Place, Request, Response, Severity
from inspector.pages import catalog, plain, tabs
from inspector.pages.content import Content, breaks
from inspector.pages.message import COVERED, MODES, Body
from inspector.pages.model import ASK, BATCH, Item, Table, find, item_of
from inspector.privacy import secrets
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol.documents import Catalog, Certificates, Edge, Resource
from inspector.rules import all_rules
from inspector.runs import examples
from inspector.summaries import summary, wording
from inspector.summaries.summary import RunBrief
from inspector.tui.timed import anonymous
from tests.bench.analysis import catalog as big_catalog
from tests.support.conversations import CA, START, Agent, certificate, steps, together
from tests.support.hostile import harmless, hostile_records
from tests.support.recorded import SAMPLES, records_of
from tests.support.secrets import HIDING, WORD, hiding
from tests.support.tab_words import same_words
from tests.support.work import work_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from inspector.pages.tabs import Model, Tab, TabPart


def models(records: Sequence[Record]) -> Iterator[tuple[Step, str, str, Model]]:
    """Every part of every tab of some records."""
    taken = list(steps(Analyzer(), records))
    for place, step in enumerate(taken):
        for tab in tabs.tabs(step, tabs.known(step, taken[:place])):
            for part in tab.parts:
                yield step, tab.name, part.title, part.make()


def texts(model: Model) -> Iterator[str]:
    """All that a part would write to the terminal."""
    match model:
        case Item():
            waiting = [model]
            while waiting:
                item = waiting.pop()
                yield item.label.plain
                waiting += item.items if item.branch else []
        case Table():
            for row in range(len(model.rows)):
                yield from (model.cell(row, column).plain for column in range(len(model.fields)))
        case Content():
            assert isinstance(model.data, bytes)
        case Body():
            for mode in MODES:
                assert isinstance(model.content(mode).data, bytes)


def text_of(records: Sequence[Record], tab: str, part: str) -> str:
    """What a part of the last record says."""
    found = [model for step, name, title, model in models(records) if (name, title) == (tab, part)]
    last = found[-1]
    return last.data.decode() if isinstance(last, Content) else "\n".join(texts(last))


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_every_part_of_every_sample_can_be_shown(path: Any) -> None:
    names = set()
    for _, tab, part, model in models(records_of(path)):
        names.add((tab, part))
        assert all(harmless(text) for text in texts(model))
    assert {("Meaning", "Handshake"), ("TLS", "TLS")} <= names or {
        "Meaning",
        "Request",
        "TLS",
        "Timing",
        "Explain",
    } <= {tab for tab, _ in names}


@pytest.mark.slow
def test_every_rules_examples_can_be_shown() -> None:
    for rule in all_rules():
        for _, tab, part, model in itertools.chain.from_iterable(map(models, rule.bad())):
            assert all(harmless(text) for text in texts(model)), (rule.id, tab, part)


def test_hostile_records_are_shown_harmlessly() -> None:
    found = list(models(hostile_records()))
    assert {tab for _, tab, _, _ in found} == {"Meaning", "Request", "Response", "TLS", "Timing", "Explain"}
    assert [text for _, _, _, model in found for text in texts(model) if not harmless(text)] == []


def test_failed_handshakes_and_gaps_have_fewer_tabs() -> None:
    failed = Handshake(Leg("a", "agent"), START, "it is revoked", "certificate_revoked", "agent", ("CN=x",))
    records: list[Record] = [failed, Gap(START, "the disk is full", 3)]
    first, second = (tabs.tabs(step, tabs.known(step)) for step in steps(Analyzer(), records))
    assert [tab.name for tab in first] == ["Meaning", "TLS"]
    assert [tab.name for tab in second] == ["Meaning"]
    assert "problem: CN=x" in text_of(records[:1], "Meaning", "Handshake")
    assert "3 records were lost" in text_of(records[1:], "Meaning", "Gap")


# -- certificates ----------------------------------------------------------------------------------------


def test_a_certificate_is_verified_by_what_the_run_got() -> None:
    message = text_of(together(Agent().bootstrap(1)), "Meaning", "Certificates")
    assert "signed by: CN=Test CA" in message
    assert "key match: same as in the signing request of this run" in message
    assert "revoked: no, by the CRL of" in message


def test_an_expired_a_revoked_and_a_foreign_certificate_are_shown() -> None:
    mine = pki.sign(CA, pki.new_key().public_key(), "a.example")
    other = pki.sign(pki.make_ca("Test CA"), pki.new_key().public_key(), "a.example")
    agent = Agent().ca().crl()
    crl = pki.pem(pki.make_crl(CA, [mine.serial_number]))
    agent.ask("GET", agent.url("certificate_revocation_list/ca", ca=True), body=crl)
    for cert in (mine, other):
        agent.ask("GET", agent.url("certificate/a.example", ca=True), body=pki.pem(cert))
    records = together(agent)
    message = text_of(records[:4], "Meaning", "Certificates")
    assert "revoked: yes, on" in message
    assert "signed by: none of the recorded certificates named CN=Test CA" in text_of(
        records, "Meaning", "Certificates"
    )
    late = [_later(record, mine.not_valid_after_utc.timestamp() + 60) for record in records[:4]]
    assert "validity: expired on" in text_of(late, "Meaning", "Certificates")


def _later(record: Record, when: float) -> Record:
    assert isinstance(record, Exchange)
    assert record.response
    return dataclasses.replace(record, response=dataclasses.replace(record.response, ended=when))


def test_a_crl_says_whom_it_revokes() -> None:
    der = certificate("a.example", "a.example")
    from cryptography import x509

    serial = x509.load_der_x509_certificate(der).serial_number
    agent = Agent().ca()
    agent.ask(
        "GET", agent.url("certificate_revocation_list/ca", ca=True), body=pki.pem(pki.make_crl(CA, [serial])), own=True
    )
    message = text_of(together(agent), "Meaning", "CRLs")
    assert "signed by: CN=Test CA" in message
    assert "revokes: CN=a.example" in message


def test_tls_shows_both_chains_and_what_was_withheld() -> None:
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    der = CA.certificate.public_bytes(Encoding.DER)
    leg = Leg("m", "master", "192.0.2.9", 8140, secured=START, tls_version="TLSv1.3", cipher="X", sni="master.example",
              peer_chain=(certificate("master.example", "m"), der, b"no certificate"))  # fmt: skip
    message = text_of([dataclasses.replace(record, master=leg, stripped=("X-Client-DN",))], "TLS", "TLS")
    assert "1: CN=master.example" in message
    assert "signed by: CN=Test CA (serial 0x0002)" in message
    assert "3: cannot be read" in message
    assert "removed before the master: X-Client-DN" in message
    assert "SNI: master.example" in message


def test_what_an_imported_flow_does_not_say_is_not_recorded() -> None:
    """Who recorded it perhaps asked nobody for a certificate."""
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    bare = dataclasses.replace(record, agent=Leg("1", "agent", "192.0.2.1"), identity=None)
    message = text_of([bare], "TLS", "TLS")
    for fact in ("presented by the agent", "presented to the agent", "SNI", "ALPN"):
        assert f"{fact}: not recorded" in message
    assert "presented by the agent: no certificate" in text_of(
        [dataclasses.replace(bare, identity=Identity("keys"))], "TLS", "TLS"
    )
    imported = summary.brief_of(next(iter(retrace([bare]))))
    assert not anonymous(imported)
    assert anonymous(summary.brief_of(next(iter(retrace([dataclasses.replace(bare, identity=Identity("keys"))])))))


# -- secrets ---------------------------------------------------------------------------------------------


def test_no_secret_is_shown_anywhere_until_it_is_asked_for() -> None:
    screen_texts = []
    for _, tab, part, model in models(hiding()):
        screen_texts += [(tab, part, text) for text in texts(model)]
        if isinstance(model, Body):
            screen_texts += [
                (tab, part, model.content("pretty").data.decode()),
                (tab, part, model.content("raw").data.decode()),
            ]
            content = model.content("hex")
            shown = secrets.covered(content.data, list(content.hidden)).decode()
            screen_texts.append((tab, "hex", shown))
    assert [entry for entry in screen_texts if WORD in entry[2] or "other-secret" in entry[2]] == []
    assert sum(ASK in text for _, _, text in screen_texts) == 5  # password and content in both trees, and the cookie
    assert sum(MASK in text and tab == "Response" and part == "Body" for tab, part, text in screen_texts) == 2


def test_revealing_shows_one_value_or_one_body() -> None:
    found = {(tab, part): model for _, tab, part, model in models(hiding())}
    tree = found["Meaning", "By type"]
    assert isinstance(tree, Item)
    way = find(tree, "password")
    assert way
    item = tree
    for place in way:
        item = item.items[place]
    assert item.copied == MASK
    item.reveal()
    assert item.text == f"password: {WORD}"
    assert sum(ASK in text for text in texts(tree)) == 1
    body = found["Response", "Body"]
    assert isinstance(body, Body)
    assert WORD not in body.content("raw").data.decode()
    body.shown = True
    assert body.content("raw").data == json.dumps(HIDING).encode()
    assert body.content("hex").hidden == []


def test_a_body_in_which_the_secret_can_not_be_found_is_covered_whole() -> None:
    import gzip

    (record,) = hiding()
    assert isinstance(record, Exchange)
    assert record.response
    headers = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
    packed = gzip.compress(json.dumps(HIDING).encode())
    (step,) = retrace(
        [dataclasses.replace(record, response=dataclasses.replace(record.response, headers=headers, body=packed))]
    )
    assert isinstance(step.record, Exchange)
    assert step.record.response
    body = Body(step.record.response, step.response, "x")
    assert body.content("raw").data == COVERED.encode()
    assert body.content("hex").hidden == [(0, len(packed))]
    assert b'"uid": 0' in body.content("pretty").data
    assert WORD.encode() not in body.content("pretty").data
    assert body.decoded == json.dumps(HIDING).encode()


# -- trees, catalogs, bodies -----------------------------------------------------------------------------


def tree() -> Item:
    return item_of(
        "", {"os": {"name": "Debian", "release": {"major": "12"}}, "list": [1, 2, {"deep": "Web"}], "none": None}
    )


def test_a_tree_is_searched_also_where_nobody_looked() -> None:
    root = tree()
    way = find(root, "web")
    assert way == (1, 2, 0)
    assert find(root, "debian", way) == (0, 0)
    assert find(root, "debian", way, forward=False) == (0, 0)
    assert find(root, "nothing") is None
    first = find(root, "e")
    assert first is not None
    second = find(root, "e", first, again=True)
    assert second is not None
    assert second > first
    assert find(root, "e", second, forward=False, again=True) == first
    assert find(item_of("", {"a": Secret("web")}), "web") is None


def test_values_are_in_puppets_terms() -> None:
    lines = list(texts(item_of("", {"a": None, "b": True, "c": "x\ny", "d": b"12", "e": "z" * 1000})))
    assert "a: undef" in lines
    assert "b: true" in lines
    assert "c  2 lines" in lines
    assert "d: Binary(2 bytes)" in lines
    assert any("(1,000 characters)" in line for line in lines)


def test_a_catalog_is_a_tree_by_its_edges_whatever_they_are() -> None:
    edges = [("Stage[main]", "Class[A]"), ("Class[A]", "File[/x]"), ("Class[A]", "Gone[y]"), ("Loop[1]", "Loop[2]"),
             ("Loop[2]", "Loop[1]"), ("Self[s]", "Self[s]")]  # fmt: skip
    refs = ["Stage[main]", "Class[A]", "File[/x]", "Loop[1]", "Loop[2]", "Self[s]", "Alone[z]"]
    resources = [Resource(ref.partition("[")[0], ref.partition("[")[2][:-1], {"p": ref}, "/m/x.pp", 7) for ref in refs]
    root = catalog.contained(Catalog(edges=[Edge(*edge) for edge in edges], resources=resources))
    lines = list(texts(root))
    assert [item.name for item in root.items] == ["Stage[main]", "Alone[z]", "in a cycle"]
    assert "Gone[y]: not in this catalog" in lines
    assert "Loop[1]: contains itself" in lines
    assert "Self[s]: contains itself" in lines
    assert any(line.startswith("File[/x]  /m/x.pp:7") for line in lines)


@pytest.mark.slow
def test_a_large_catalog_is_a_tree_at_once() -> None:
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    made: list[Any] = []
    made_by, searched_by = [], []
    for size in (2_500_000, 5_000_000):
        (step,) = retrace([dataclasses.replace(record, response=big_catalog(size))])
        made.clear()
        parts = [part for tab in tabs.tabs(step, tabs.known(step))[:1] for part in tab.parts[:2]]
        made_by.append(work_of(partial(_made, parts, made)))
        for model in made:
            assert isinstance(model, Item)
            assert all(len(item.items) <= BATCH for item in model.items)
        # Nothing is found and nothing freezes: what can't be in a resource is not gone through.
        searched_by.append(work_of(partial(find, made[1], "zzz nothing")))
        assert find(made[1], "zzz nothing") is None
    assert made_by[1] < 2.2 * made_by[0]
    assert searched_by[1] < 2.2 * searched_by[0]


def _made(parts: Sequence[TabPart], into: list[Any]) -> None:
    into.extend(part.make() for part in parts)


def test_a_body_is_shown_pretty_as_it_came_and_in_hexadecimal() -> None:
    sent = b"facts_format=application%2Fjson&facts=%257B%2522name%2522%253A%2522a%2522%257D&environment=x"
    request = Request((("Content-Type", "application/x-www-form-urlencoded"),), sent)
    body = Body(request, None, "17-catalog-request")
    assert body.content("pretty").data.decode().splitlines() == [
        "facts_format = application/json", "facts =", "{", '  "name": "a"', "}", "environment = x",
    ]  # fmt: skip
    assert body.content("raw").data == sent
    assert body.content("hex").hexed
    assert body.name == "17-catalog-request.form"
    pson = Body(Response((("Content-Type", "text/pson"),), b'{"a":"\xff"}', status=200), None, "x")
    assert pson.content("pretty").data.decode() == '{\n  "a": "\u00ff"\n}'
    assert pson.mode == "pretty"
    assert Body(Response((), b"\x89PNG\x00\x01", status=200), None, "x").mode == "hex"
    broken = Body(Response((("Content-Type", "application/json"),), b'{"a":', status=200), None, "x")
    assert broken.content("pretty").data == b'{"a":'


def test_lines_are_cut_and_nothing_is_lost() -> None:
    rows: list[bytes] = [b"", b"\n", b"ab\ncd", b"ab\ncd\n", b"x" * 50, "ä€𝄞".encode() * 20, b"\x80" * 50, b"a b " * 30]
    for data in rows:
        starts = [*breaks(data, 10), len(data)]
        pieces = [data[begin:end] for begin, end in itertools.pairwise(starts)]
        assert b"".join(pieces) == data
        assert all(len(piece.rstrip(b"\n")) <= 10 for piece in pieces), data
        if data.strip(b"\x80"):
            assert "\ufffd" not in "".join(piece.decode("utf-8", "replace") for piece in pieces), data


def test_timing_and_explain_say_what_is_known() -> None:
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    message = text_of([record], "Timing", "Timing")
    assert "receiving the request" in message
    assert "waiting for the master" in message
    assert "total" in message
    output = text_of([record], "Explain", "Explain")
    assert "send the facts, get the catalog" in output
    assert "own certname (by default)" in output
    assert "usecacheonfailure" in output


def test_timing_is_in_the_order_of_time() -> None:
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    at = record.time
    master = Leg("m", "master", "192.0.2.9", 8140, connecting=at - 2, connected=at - 1.5, secured=at - 1)
    (model,) = [model for _, _, part, model in models([dataclasses.replace(record, master=master)]) if part == "Timing"]
    assert isinstance(model, Table)
    parts = [model.cell(row, 0).plain for row in range(len(model.rows))]
    assert parts.index("connecting to the master") < parts.index("receiving the request")
    assert parts.index("TLS with the master") < parts.index("waiting for the master")


def test_an_administrator_reads_first_what_it_is_for_and_who_governs_it() -> None:
    (record, *_) = together(Agent(leg="1").catalog())
    output = [line.split()[0] for line in text_of([record], "Explain", "Explain").split("\n\n")]
    assert output[:2] == ["purpose", "asked"]
    assert output.index("settings") < output.index("allowed") < output.index("endpoint")
    assert output[-2:] == ["indirector", "source"]


def report_of(sent: dict[str, Any]) -> list[Record]:
    (record, *_) = together(Agent(leg="1").report("failed"))
    assert isinstance(record, Exchange)
    headers = (("Content-Type", "application/json"),)
    body = json.dumps({"host": "a.example", "status": "failed", "report_format": 12, **sent}).encode()
    return [dataclasses.replace(record, request=dataclasses.replace(record.request, headers=headers, body=body))]


def test_a_failed_resource_says_why() -> None:
    one, other = ({"title": title, "resource_type": "Exec", "failed": True} for title in "ab")
    event = {"status": "failure", "property": "returns", "message": "returned 1"}
    log = {"level": "err", "source": "/Stage[main]/Main/Exec[b]/returns", "message": "no such command", "tags": []}
    sent = {
        "resource_statuses": {"Exec[a]": {**one, "events": [event]}, "Exec[b]": {**other, "events": []}},
        "logs": [log, {**log, "level": "notice", "message": "harmless"}],
    }
    lines = text_of(report_of(sent), "Meaning", "Resources").split("\n")
    assert lines[lines.index("Exec[a]") + 1] == "returned 1"
    assert lines[lines.index("Exec[b]") + 1] == "no such command"


def test_a_branch_that_can_not_be_made_says_so() -> None:
    def broken() -> list[Item]:
        raise RecursionError("too deep")

    assert [item.text for item in Item("a", inner=broken).items] == ["cannot be shown: too deep"]


# -- in plain text, for `show` ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_show_prints_the_words_of_the_tabs(path: Any) -> None:
    taken = list(steps(Analyzer(), records_of(path)))
    for place, step in enumerate(taken):
        related = [other for other in taken[:place] if other.run is step.run]
        shown = plain.lines(step, step.run, related)
        found = tabs.tabs(step, tabs.known(step, related))
        assert same_words(shown, found) > (20 if isinstance(step.record, Exchange) else 2)
        assert shown[0] == f"{step.record.seq}  {wording.line(summary.brief_of(step), step.run)}"
        number = step.run.number if step.run and step.run.number else "-"
        assert shown[1] == f"run {number}, phase {step.phase}"
        for finding in step.findings:
            assert any(line.startswith(f"{finding.severity} {finding.rule}: ") for line in shown[2:6])
        assert all(harmless(line) for line in shown)
        assert "Explain" not in shown


def test_show_on_the_command_line_judges_by_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = [path for path in SAMPLES if path.stem == "first-run"]
    taken = list(steps(Analyzer(), records_of(path)))
    place = max(place for place, step in enumerate(taken) if isinstance(step.response, Certificates))
    step = taken[place]
    assert cli.main(["show", str(path), str(step.record.seq)]) == 0
    shown = capsys.readouterr().out.splitlines()
    before = [other for other in taken[:place] if other.run is step.run]
    assert same_words(shown, tabs.tabs(step, tabs.known(step, before))) > 20
    assert any("key match: same as in the signing request of this run" in line for line in shown)
    assert any("revoked: no, by the CRL of" in line for line in shown)
    assert step.match
    assert f"{step.match.endpoint.name}: {step.match.endpoint.purpose}" in shown[:4]


@pytest.mark.slow
def test_show_is_harmless_whatever_was_captured() -> None:
    finding = Finding("B01", Severity.ERROR, "\x1b[2J\u202e", (1,))
    shown = [
        line
        for step in steps(Analyzer(), hostile_records())
        for line in plain.lines(
            step, RunBrief(number=1, findings=(dataclasses.replace(finding, seqs=(step.record.seq,)),))
        )
    ]
    assert [line for line in shown if not harmless(line)] == []
    assert sum("\\x1b[2J" in line for line in shown) > 20
    for rule in all_rules():
        for talk in rule.bad():
            assert all(harmless(line) for step in steps(Analyzer(), talk) for line in plain.lines(step, None))


def test_what_can_not_be_shown_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RecursionError("too \x1b deep")

    monkeypatch.setattr(tabs, "timing", broken)
    (record, *_) = together(Agent(leg="1").catalog())
    (step,) = retrace([record])
    shown = plain.lines(step, None)
    assert shown[shown.index("Timing") + 1] == "  Cannot be shown: too \\x1b deep"


def test_show_hides_secrets_and_says_how_to_see_them() -> None:
    (step,) = retrace(hiding())
    shown = plain.lines(step, None)
    assert [line for line in shown if WORD in line or "other-secret" in line or "press x" in line] == []
    assert f"password: {MASK} (show it with x in `puppet-inspector open`)" in [line.strip() for line in shown]
    (title,) = [line for line in shown if line.startswith("  pretty  application/json")]
    assert title.endswith(f"; {MASK}: show it with x in `puppet-inspector open`")
    assert any(f'"password": "{MASK}"' in line for line in shown)


@pytest.mark.slow
def test_show_ends_where_it_becomes_too_much() -> None:
    fewer, _ = _shown_of_a_report(20_000)
    more, shown = _shown_of_a_report(40_000)
    assert more < 2.2 * fewer
    assert len(shown) < 500
    assert "  ... 39,800 more lines; --json prints all" in shown
    assert sum("File[/x/" in line for line in shown) == plain.LINES
    assert any("large: view it with `puppet-inspector open`" in line for line in shown)


def _shown_of_a_report(resources: int) -> tuple[int, list[str]]:
    """The work of showing a report of so many changed resources, and what is shown."""
    title = "/x/{}".format
    statuses = {
        f"File[{title(n)}]": {"title": title(n), "resource_type": "File", "changed": True} for n in range(resources)
    }
    (record, *_) = together(Agent(leg="1").report("changed"))
    assert isinstance(record, Exchange)
    sent = {"host": "a.example", "status": "changed", "report_format": 12, "resource_statuses": statuses}
    headers = (("Content-Type", "application/json"),)
    request = dataclasses.replace(record.request, headers=headers, body=json.dumps(sent).encode())
    (step,) = retrace([dataclasses.replace(record, request=request)])
    shown: list[str] = []
    return work_of(lambda: shown.extend(plain.lines(step, None))), shown


def test_show_goes_through_branches_that_only_keep_others_short() -> None:
    body = json.dumps({f"fact{n:04}": n for n in range(2 * BATCH)}).encode()
    agent = Agent(leg="1").ask("GET", "/puppet/v3/tasks", body=body, media="application/json", own=True)
    (step,) = retrace(together(agent))
    shown = plain.lines(step, None)
    at = shown.index("Meaning: Response")
    assert shown[at + 1 : at + plain.LINES + 2] == [
        *(f"  fact{n:04}: {n}" for n in range(plain.LINES)),
        "  ... more lines; --json prints all",
    ]
    assert "  ... 802 more lines; --json prints all" in shown[at + plain.LINES + 2 :]


def test_show_prints_bytes_in_hexadecimal_and_cuts_long_lines() -> None:
    agent = Agent(leg="1")
    agent.ask("GET", "/puppet/v3/file_content/modules/m/f", body=b"\x89PNG\x00\x01", own=True)
    agent.ask("GET", "/puppet/v3/file_content/modules/m/g", body=b"x" * 100_000 + b"\nend", own=True)
    first, second = ([*plain.lines(step, None)] for step in retrace(together(agent)))
    assert any(line.startswith("  00000000  89 50 4e 47 00 01 ") and line.endswith(" .PNG..") for line in first)
    assert f"  {'x' * plain.LONGEST}… (100.0 kB)" in second
    assert "  end" in second


RULES = {rule.id: rule for rule in all_rules()}


def shown(records: Sequence[Record]) -> Iterator[tuple[Finding, list[Tab]]]:
    """Every finding with the tabs of each of its records."""
    analyzer = Analyzer()
    taken = list(steps(analyzer, records))
    by_seq = {step.record.seq: step for step in taken}
    for run in analyzer.finish():
        for finding in run.findings:
            for seq in finding.seqs:
                step = by_seq[seq]
                before = [other for other in taken if other.record.seq < seq and other.run is step.run]
                yield finding, tabs.tabs(step, tabs.known(step, before))


def part_of(place: Place, every: Sequence[Tab]) -> TabPart:
    (found,) = (
        part for tab in every if tab.name.lower() == place.tab for part in tab.parts if part.title.lower() == place.part
    )
    return found


def test_every_finding_has_a_place_in_each_of_its_records() -> None:
    for rule in RULES.values():
        for finding, every in itertools.chain.from_iterable(map(shown, rule.bad())):
            if finding.rule == rule.id:
                place = tabs.locate(finding.places, every)
                assert place, finding
                assert place.needle, finding
                assert tabs.contains(part_of(place, every), place.needle), finding


def test_every_finding_of_a_sample_has_a_place() -> None:
    for finding, every in itertools.chain.from_iterable(shown(records_of(path)) for path in SAMPLES):
        place = tabs.locate(finding.places, every)
        assert place, finding
        assert place.needle, finding


CASES = [
    ("S01", Place("meaning", "error", "Could not find class web")),
    ("S08", Place("timing", "timing", "waiting for the master")),
    ("T13", Place("request", "headers", "Connection  close", "Connection  ")),
    ("S13", Place("response", "headers", "Content-Encoding  br", "Content-Encoding  ")),
    ("T01", Place("tls", "tls", "version: TLSv1.1")),
    ("B05", Place("meaning", "certificates", "issuer: CN=Sample Root CA")),
    ("B15", Place("meaning", "crls", "number: 4")),
    ("B27", Place("meaning", "signing request", "alternative name: DNS:puppet.example")),
    ("B30", Place("meaning", "signing request", "pp_preshared_key")),
    ("B32", Place("meaning", "signing request", "signature: md5")),
    ("P06", Place("meaning", "resources", "Service[app]")),
    ("F02", Place("meaning", "catalog", "File[/etc/a.conf]")),
    ("R15", Place("meaning", "facts", "ipaddress_eth0: ")),
    ("R01", Place("request", "headers", "HTTP/")),
]


def test_the_place_of_evidence() -> None:
    for ident, place in CASES:
        shows = itertools.chain.from_iterable(map(shown, RULES[ident].bad()))
        found = [tabs.locate(finding.places, every) for finding, every in shows if finding.rule == ident]
        assert place in found, ident


def test_the_first_place_that_exists_counts() -> None:
    (step, *_) = steps(Analyzer(), together(Agent(leg="1").catalog()))
    of = tabs.tabs(step, tabs.known(step))
    absent, status = Place("meaning", "error", "none"), Place("response", "headers", "HTTP/")
    assert tabs.locate((absent, status), of) == status
    assert tabs.locate((Place("request", "headers", "no such text", "POST"),), of) == Place(
        "request", "headers", "POST", "POST"
    )
    assert tabs.locate((absent,), of) == Place("meaning", "")
    assert tabs.locate((), of) is None


def test_a_command_to_puppetdb_is_shown_as_what_it_stores() -> None:
    shown = {}
    for command in ("replace_facts", "replace_catalog", "store_report"):
        (step,) = Analyzer().steps(examples.talk(examples.stored(command)))
        parts = next(tab.parts for tab in tabs.tabs(step, tabs.known(step)) if tab.name == "Meaning")
        shown[command] = [part.title for part in parts]
        command_part = next(part for part in parts if part.title == "Command")
        assert tabs.contains(command_part, command.replace("_", " "))
    assert shown == {
        "replace_facts": ["Facts", "Command", "Response"],
        "replace_catalog": ["Catalog", "By type", "About", "Command", "Response"],
        "store_report": ["Resources", "Events", "Log", "Metrics", "About", "Command", "Response"],
    }

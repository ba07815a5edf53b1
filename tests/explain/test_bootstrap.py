"""An agent's bootstrap: its steps, where the agent is stuck, what its keys show, how long it will work."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis.analyzer import Analyzer
from inspector.explain import bootstrap as module
from inspector.explain.bootstrap import AgentBootstrap, Bootstraps, Condition
from inspector.explain.bootstrap_requests import BootstrapState
from inspector.explain.bootstrap_text import lines, plain
from inspector.host.pki import make_ca
from inspector.model import Exchange
from inspector.protocol.documents import CertificateRequest
from inspector.runs.examples import (
    MASTER,
    NAME,
    altered,
    asked,
    authorities,
    bundle,
    ca,
    catalog,
    crl,
    csr,
    issued,
    not_issued,
    of_openvox_ca,
    refused,
    report,
    talk,
    together,
    unanswered,
    wait,
)
from inspector.text import utc_day
from tests.support.conversations import SIGNED, WAITS, Agent
from tests.support.conversations import together as at_once
from tests.support.json_output import builtins
from tests.support.recorded import ABSENT, RECORDINGS, SAMPLES, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from inspector.model import Record
    from inspector.runs.examples import ExamplePart

DAY = 86_400.0
POLL = (wait(120), csr(status=400, text=WAITS), not_issued())
BOOT = (ca(), crl(), csr(), issued(), catalog(), report())


def climbed(records: Iterable[Record]) -> Bootstraps:
    analyzer, bootstraps = Analyzer(), Bootstraps()
    for record in records:
        bootstraps.add(analyzer.feed(record))
    analyzer.finish()
    return bootstraps


def bootstrap_of(records: Sequence[Record], name: str = NAME, *, later: float = 0.0) -> AgentBootstrap:
    return climbed(records).of(name, records[-1].ended + later)


def states(of: AgentBootstrap) -> list[str]:
    return [f"{step.state} {step.answers[0] if step.answers else ''} x{step.times}" for step in of.steps]


# -- steps ---------------------------------------------------------------------------------------------


def test_an_agent_that_waits_stops_at_its_certificate_and_tries_again() -> None:
    records = talk(ca(), crl(), csr(), not_issued(), *POLL * 14)
    bootstrap = bootstrap_of(records)
    assert states(bootstrap) == ["CA 200 x1", "CRL 200 x1", "CSR 200 x15", "certificate 404 x15"]
    assert [step.agent_state for step in bootstrap.steps] == ["NeedCACerts", "NeedCRLs", "NeedSubmitCSR", "NeedCert"]
    assert bootstrap.steps[2].answers == ("200", f"400 {WAITS}")
    polls = bootstrap.steps[-1]
    assert polls.interval == pytest.approx(121 + 1)
    assert polls.seqs == (4, 32)
    stuck = bootstrap.stuck
    assert stuck is not None
    assert (stuck.state, stuck.why) == (BootstrapState.CERTIFICATE, "its request is waiting to be signed")
    assert stuck.last - stuck.since == pytest.approx(14 * 122 + 0.2)
    assert stuck.next_try == pytest.approx(stuck.last + 122)
    assert not stuck.overdue
    text = " ".join(" ".join(lines(bootstrap)).split())
    assert "certificate 404 x15 over 28 min, every 2 min" in text
    assert "for 28 min: its request is waiting to be signed; it retries at 20" in text


@pytest.mark.parametrize(
    ("records", "conditions"),
    [
        (talk(ca(), crl(), csr(), not_issued()), "sound sound sound waiting"),
        (talk(ca(status=404)), "broken"),
        (talk(ca(), crl(status=404)), "sound broken"),
        (talk(ca(), crl(status=404), csr(), not_issued(), version="5.5.22"), "sound waiting sound waiting"),
        (talk(ca(), crl(), csr(status=404)), "sound sound broken"),
    ],
)
def test_only_for_what_may_come_later_a_404_is_waiting(records: Sequence[Record], conditions: str) -> None:
    (name,) = climbed(records).names()
    assert [step.condition for step in bootstrap_of(records, name).steps] == [*map(Condition, conditions.split())]


def test_an_agent_that_was_stopped_did_not_come_back() -> None:
    polls = talk(ca(), crl(), csr(), not_issued(), *POLL * 3)
    others = talk(catalog(), report(), certname="b.example", address="192.0.2.8", after=9000)
    stuck = bootstrap_of(together(polls, others)).stuck
    assert stuck is not None
    assert stuck.overdue
    assert "did not, so it was stopped" in " ".join(lines(bootstrap_of(together(polls, others))))


def test_only_the_first_ca_download_of_a_new_agent_is_unverified_and_says_what_that_means() -> None:
    bootstrap = bootstrap_of(talk(*BOOT))
    assert [step.verified for step in bootstrap.steps] == [False, True, True, True, True]
    assert [bool(step.risk) for step in bootstrap.steps] == [True, False, False, False, False]
    assert "their own CA" in bootstrap.steps[0].risk
    refresh = bootstrap_of(talk(ca(refresh=True), catalog(), report()))
    assert [step.verified for step in refresh.steps] == [True, True]


@pytest.mark.parametrize("version", ["3.8.7", "5.5.22"])
def test_an_old_agent_verifies_nothing_before_it_has_its_certificate(version: str) -> None:
    bootstrap = bootstrap_of(at_once(Agent(version=version).old_bootstrap(2).run()), "a.example")
    assert states(bootstrap) == [
        "CA 200 x1", "certificate 404 x1", "CSR lookup 404 none x1", "CSR 200 x1", "certificate 404 x3",
        "CA 200 x1", "certificate 200 x1", "CRL 200 x1", "run  x1",
    ]  # fmt: skip
    assert [step.verified for step in bootstrap.steps] == [False] * 7 + [True] * 2
    assert {step.agent_state for step in bootstrap.steps} == {None}
    output = " ".join(" ".join(lines(bootstrap)).split())
    assert output.count("not verified: ") == 4  # each danger once
    assert bootstrap.stuck is None


def test_an_old_agents_first_look_is_no_polling() -> None:
    agent = Agent(version="5.5.22").ca().poll().look().csr().poll().poll()
    for _ in range(3):
        agent.wait(119.9).poll()
    bootstrap = bootstrap_of(at_once(agent), "a.example")
    assert states(bootstrap)[1:] == ["certificate 404 x1", "CSR lookup 404 none x1", "CSR 200 x1", "certificate 404 x5"]
    assert bootstrap.steps[1].interval is None
    assert bootstrap.steps[4].interval == pytest.approx(120, abs=0.2)


def test_what_was_once_not_verified_stays_so() -> None:
    bootstrap = bootstrap_of(at_once(Agent(version="5.5.22").ca().ca(own=True)), "a.example")
    assert [(step.times, step.verified) for step in bootstrap.steps] == [(2, False)]


def test_observations_have_the_digests_that_people_compare() -> None:
    records = talk(ca(), crl(), csr(alt_names=["b.example"]), issued())
    bootstrap = bootstrap_of(records)
    facts = [dict(step.facts) for step in bootstrap.steps]
    import hashlib

    from inspector.protocol import x509

    answer = records[0].response if isinstance(records[0], Exchange) else None
    request = records[2].request if isinstance(records[2], Exchange) else None
    assert answer
    assert request
    assert facts[0]["sha256"] == hashlib.sha256(answer.body).hexdigest()
    asked_for = x509.read_csr(request.body)
    assert (facts[2]["key"], facts[2]["fingerprint"]) == (asked_for.key, asked_for.fingerprint)
    assert facts[2]["SANs"] == "DNS:b.example, DNS:node1.example"
    assert facts[3]["key"] == asked_for.key
    ends = x509.read_crls(records[1].response.body)[0].next_update if records[1].response else None  # type: ignore[union-attr]
    assert (
        facts[1]["lists"] == f"CN=Sample CA until {facts[1]['expires']}, CN=Sample Root CA until {facts[1]['expires']}"
    )
    assert ends
    assert facts[1]["expires"] == utc_day(ends)
    text = " ".join(" ".join(lines(bootstrap)).split())
    assert facts[0]["sha256"] in text
    assert facts[2]["fingerprint"] in text


AGAIN = (ca(), crl(), csr(), not_issued(), wait(120), csr(status=400, text=SIGNED), issued(), catalog(), report())
"""A request that is accepted, and sent again when it is signed."""


def test_a_request_that_is_sent_again_after_it_was_accepted_keeps_its_own_fingerprint() -> None:
    bootstrap = bootstrap_of(records := talk(*AGAIN))
    analyzer = Analyzer()
    asked = [request for record in records if isinstance(request := analyzer.feed(record).request, CertificateRequest)]
    accepted, later = (request.fingerprint for request in asked)
    assert accepted != later, "a key whose signatures differ"
    step = next(step for step in bootstrap.steps if step.state is BootstrapState.CSR)
    assert step.answers == ("200", f"400 {SIGNED}")
    assert (dict(step.facts)["fingerprint"], dict(step.facts)["last sent as"]) == (accepted, later)
    assert step.condition is Condition.SOUND
    assert next(key for key in bootstrap.keys if key.kind == "csr").fingerprint == accepted


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_digest_is_longer_than_a_line_and_keys_are_in_order(width: int) -> None:
    bootstrap = bootstrap_of(talk(*AGAIN))
    printed = lines(bootstrap, width)
    assert [line for line in printed if len(line) > width] == []
    text = "".join(line.strip() for line in printed)
    for step in bootstrap.steps:
        for name, value in step.facts:
            if name in ("fingerprint", "last sent as", "sha256"):
                assert value in text
    ends = [line for line in printed if line.rstrip()[-1] == ":" and line.rstrip()[-3:-1].isalnum()]
    assert bool(ends) is (width < 200), "broken between two groups"
    whole = "\n".join(lines(bootstrap))
    assert all(key.fingerprint in whole for key in bootstrap.keys)
    ends_of_keys = [line.partition("[record")[2] for line in lines(bootstrap, 300) if line.startswith("  key ")]
    keys = [int(end.strip("s] ").partition(" ")[0]) for end in ends_of_keys]
    assert keys == sorted(keys)
    assert "[records 3 and 5]" in text
    assert "[record 1]" in text


def test_a_signed_name_refuses_only_the_request_of_another_key() -> None:
    mine = bootstrap_of(talk(ca(), crl(), csr(status=400, text=SIGNED), issued(), catalog()))
    assert mine.steps[2].condition is Condition.SOUND
    other = bootstrap_of(talk(ca(), crl(), csr(status=400, text=SIGNED), issued(key="old")))
    assert other.steps[2].condition is Condition.BROKEN
    unknown = bootstrap_of(talk(ca(), crl(), csr(status=400, text=SIGNED)))
    assert unknown.steps[2].condition is Condition.BROKEN


def test_runs_with_one_certificate_are_one_step() -> None:
    runs = [talk(catalog(uuid=f"u-{n}"), report(uuid=f"u-{n}"), after=1800 * n) for n in range(5)]
    bootstrap = bootstrap_of(together(talk(*BOOT, certname=NAME), *[[*run] for run in runs[1:]]))
    assert states(bootstrap)[-1] == "run  x5"
    assert bootstrap.stuck is None
    first, anew = Agent().run(), Agent(owner="b").wait(1800).run("u-2")
    assert states(bootstrap_of(at_once(first, anew), "a.example")) == ["run  x1", "run  x1"]


def test_an_agent_without_a_name_is_found_by_its_address() -> None:
    bootstraps = climbed(talk(ca(), crl()))
    assert bootstraps.names() == ["192.0.2.7"]
    bootstrap = bootstraps.of("192.0.2.7", 0)
    assert states(bootstrap) == ["CA 200 x1", "CRL 200 x1"]
    assert bootstrap.stuck
    assert bootstrap.stuck.why.startswith("it stopped after the CRL")
    named = climbed(talk(ca(), crl(), csr()))
    assert named.names() == [NAME]
    assert states(named.of(NAME, 0)) == ["CA 200 x1", "CRL 200 x1", "CSR 200 x1"]


def test_an_agent_without_records_has_no_steps() -> None:
    unknown = climbed(talk(*BOOT)).of("other.example", 0)
    assert (unknown.steps, unknown.stuck, unknown.now) == ((), None, None)
    assert "no record of it" in " ".join(lines(unknown))
    assert plain(unknown).rungs == []


def test_tools_and_probes_are_in_no_agents_bootstrap() -> None:
    curl = {"X-Puppet-Version": None, "User-Agent": "curl/7.88.1"}
    probe = asked("/status/v1/simple/server", b"running", run=False, media="text/plain")
    assert climbed(talk(altered(ca(), headers=curl), altered(csr(), headers=curl), probe)).names() == []


# -- where it hangs ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "state", "why"),
    [
        ((ca(status=404),), "CA", "answered 404"),
        ((ca(), crl(status=404)), "CRL", "answered 404"),
        ((ca(), crl(), csr(status=403, body=b"Forbidden request")), "CSR", "answered 403 Forbidden request"),
        ((ca(), crl(), unanswered(csr())), "CSR", "no answer"),
        ((ca(), crl(), csr()), "CSR", "it stopped after the CSR"),
        ((ca(), crl(), csr(), issued()), "certificate", "it received its certificate, but no run followed"),
        ((ca(), crl(), csr(), issued(key="b")), "certificate", "so the agent discards it"),
        ((ca(), crl(), refused("unknown_ca", reason="certificate verify failed")), "TLS refused", "verify failed"),
        ((ca(), crl(), csr(), issued(), unanswered(catalog())), "run", "no answer for the requests of its run"),
        ((ca(), crl(), csr(), issued(), catalog(status=403)), "run", "403 for the requests of its run"),
    ],
)  # fmt: skip
def test_where_an_agent_stops(parts: tuple[object, ...], state: str, why: str) -> None:
    records = talk(*parts)  # type: ignore[arg-type]
    bootstraps = climbed(records)
    stuck = bootstraps.of(bootstraps.names()[0], records[-1].ended).stuck
    assert stuck is not None
    assert stuck.state == state
    assert why in stuck.why
    assert f"stops at {state}" in " ".join(lines(bootstraps.of(bootstraps.names()[0], 0)))


LOST = (ca(), crl(), csr(), not_issued(), ca(), crl(), csr(key="new", status=400, text=WAITS), not_issued())
OWN = "its request is waiting to be signed"


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (LOST, "what waits to be signed is the request with the key"),
        # Its first request again, or the same key after the request was lost.
        ((*LOST, csr(status=400, text=WAITS), not_issued()), OWN),
        ((csr(status=400, text=WAITS), not_issued()), "its own request from before this capture, or one with a key"),
        # The CA was cleaned, and has the new one.
        ((*LOST, csr(key="new"), not_issued()), OWN),
        ((csr(status=400, body=b"CSR has a forbidden extension"), not_issued()),
         "its signing request was answered 400 CSR has a forbidden extension"),
        ((unanswered(csr()), not_issued()), "its signing request got no answer"),
    ],
)  # fmt: skip
def test_what_waits_is_the_request_that_the_ca_took(parts: tuple[ExamplePart, ...], why: str) -> None:
    stuck = bootstrap_of(talk(*parts)).stuck
    assert stuck is not None
    assert why in stuck.why
    assert (stuck.why == OWN) is (why == OWN)


def test_an_old_agent_that_gets_what_it_did_not_ask_for_most_likely_has_another_key() -> None:
    stuck = bootstrap_of(talk(ca(), issued(), version="5.5.22")).stuck
    assert stuck is not None
    assert "most likely for another key" in stuck.why


def test_who_got_on_later_does_not_hang() -> None:
    stuck = talk(ca(), crl(), csr(status=400, text=SIGNED), issued(key="old"))
    anew = talk(*BOOT, after=600)
    assert bootstrap_of(stuck).stuck is not None
    assert bootstrap_of(together(stuck, anew)).stuck is None
    pending = talk(ca(), crl(), csr(), not_issued(), after=1200)
    assert bootstrap_of(together(anew, pending)).stuck is not None
    other_key = talk(ca(), crl(), csr(key="b"), not_issued())
    assert bootstrap_of(together(other_key, anew)).stuck is None
    refresh = talk(ca(refresh=True), crl(refresh=True), catalog(uuid="n"), report(uuid="n"), after=90_000)
    assert bootstrap_of(together(anew, refresh)).stuck is None


# -- keys ----------------------------------------------------------------------------------------------


def test_one_key_everywhere() -> None:
    bootstrap = bootstrap_of(talk(*BOOT))
    assert {key.kind for key in bootstrap.keys} == {"csr", "certificate", "client"}
    assert len({key.key for key in bootstrap.keys}) == 1
    assert [say.partition(":")[0] for say in bootstrap.conclusions] == ["one key in all records"]


def test_a_key_mismatch_is_proved_by_two_records() -> None:
    bootstrap = bootstrap_of(talk(ca(), crl(), csr(status=400, text=SIGNED), issued(key="old")))
    (conclusion,) = bootstrap.conclusions
    assert conclusion.startswith("key mismatch: ")
    assert conclusion.endswith("(records 3 and 4)")


def test_two_keys_in_turn_are_two_hosts_and_one_after_the_other_is_a_new_one() -> None:
    mine, other = (csr(), not_issued()), (csr(key="b", status=400, text=WAITS), not_issued())
    in_turn = bootstrap_of(talk(*mine, wait(9), *other, wait(9), csr(status=400, text=WAITS), not_issued()))
    assert "in turn: two hosts share the name" in in_turn.conclusions[-1]
    assert "key of node1.example changed" in bootstrap_of(talk(*mine, wait(9), *other, wait(9), *other)).conclusions[-1]


def test_the_clone_that_never_gets_a_certificate_stops_while_the_other_works() -> None:
    works = talk(ca(), crl(), csr(), issued(), catalog(), wait(60), report())
    clone = talk(ca(), crl(), csr(key="b", status=400, text=SIGNED), issued(), address="192.0.2.8", after=20)
    bootstrap = bootstrap_of(together(works, clone))
    assert bootstrap.stuck is not None
    assert "another key" in bootstrap.stuck.why
    assert bootstrap.addresses == ("192.0.2.7", "192.0.2.8")
    assert len({step.run for step in bootstrap.steps}) == 2
    assert [line for line in lines(bootstrap) if line.startswith("  run ")] == ["  run 1", "  run 2"]


# -- how long it will work -----------------------------------------------------------------------------


def test_it_works_now_and_breaks_when_the_crl_ends() -> None:
    records = talk(ca(), crl(ends=100 * DAY), csr(), issued(), catalog(), report())
    now = bootstrap_of(records)
    assert now.now is not None
    assert now.now.problems == ()
    ends = records[1].time + 100 * DAY
    first = now.breaks[0]
    assert first.at == pytest.approx(ends, abs=1.5)
    assert first.problems == ("The CRL issued by 'CN=Sample CA' has expired, verify time is synchronized",)
    assert "; breaks on " in " ".join(lines(now))
    then = bootstrap_of(records, later=101 * DAY)
    assert then.now is not None
    assert then.now.problems == first.problems
    assert first not in then.breaks
    assert [break_.at for break_ in now.breaks] == sorted(break_.at for break_ in now.breaks)


def test_what_breaks_later_is_reported_once_and_in_order() -> None:
    bootstrap = bootstrap_of(talk(*BOOT))
    problems = [problem for break_ in bootstrap.breaks for problem in break_.problems]
    assert len(problems) == len(set(problems))
    assert any(f"'CN={NAME}' has expired" in problem for problem in problems)
    assert any(f"'CN={MASTER}' has expired" in problem for problem in problems)
    assert any("'CN=Sample Root CA' has expired" in problem for problem in problems)


def test_an_expired_crl_is_the_reason_where_it_stops() -> None:
    records = talk(ca(), crl(ends=-60, starts=-DAY))
    bootstrap = bootstrap_of(records, "192.0.2.7")
    assert bootstrap.stuck is not None
    assert "it reports: The CRL issued by 'CN=Sample CA' has expired" in bootstrap.stuck.why
    assert bootstrap.now
    assert bootstrap.now.problems


def test_the_master_is_judged_by_its_certificate_and_by_its_name() -> None:
    foreign = bootstrap_of(talk(ca(), crl(), csr(), shown="foreign")).now
    assert foreign
    assert f"unable to get local issuer certificate for CN={MASTER}" in foreign.problems[0]
    other = {"sni": "wrong.example"}
    named = bootstrap_of(talk(*(altered(part, leg=other) for part in BOOT))).now
    assert named
    assert named.problems == (
        f"Server hostname 'wrong.example' did not match server certificate; expected one of DNS:{MASTER}",
    )


def test_a_ca_in_the_bundle_that_nobody_needs_does_no_harm() -> None:
    root, own = authorities()
    more = bundle(own.certificate, root.certificate, make_ca("Old CA").certificate)
    bootstrap = bootstrap_of(talk(more, crl(), csr()))
    assert bootstrap.now
    assert bootstrap.now.problems == ()


def test_without_anybodys_certificate_the_cas_own_are_judged() -> None:
    blind = {"own_chain": ()}
    records = talk(altered(ca(), leg=blind), altered(crl(ends=DAY), leg=blind))
    bootstraps = climbed(records)
    (name,) = bootstraps.names()
    bootstrap = bootstraps.of(name, records[-1].ended)
    assert bootstrap.now
    assert bootstrap.now.problems == ()
    problems = [problem for break_ in bootstrap.breaks for problem in break_.problems]
    assert problems[0] == "The CRL issued by 'CN=Sample CA' has expired, verify time is synchronized"
    assert "The certificate 'CN=Sample CA' has expired, verify time is synchronized" in problems
    early = bootstraps.of(name, records[0].time - 365 * DAY).now
    assert early
    assert "The certificate 'CN=Sample CA' is not yet valid, verify time is synchronized" in early.problems
    assert "The CRL issued by 'CN=Sample CA' is not yet valid, verify time is synchronized" in early.problems
    assert "the certificate presented to the agent is not in this capture" in " ".join(lines(bootstrap))


def test_a_certificate_without_an_end_does_not_end() -> None:
    import msgspec

    from inspector.explain.trust import Trust
    from inspector.protocol import x509

    der = authorities()[0].certificate.public_bytes(Encoding.DER)
    endless = msgspec.structs.replace(x509.read_der(der), not_after=253_402_300_799.0)
    trust = Trust(True, (endless,), None, "none")
    assert list(trust.breaks(trust.judged(endless.not_before + 1))) == []


def test_who_goes_on_without_the_roots_crl_checks_the_leaf_only() -> None:
    stopped = bootstrap_of(talk(ca(), crl(complete=False), csr()))
    went_on = bootstrap_of(talk(ca(), crl(complete=False), csr(), issued(), catalog(), report()))
    assert stopped.trust
    assert went_on.trust
    assert (stopped.trust.revocation, went_on.trust.revocation) == ("chain", "leaf")
    assert stopped.now
    assert went_on.now
    assert "The CRL issued by 'CN=Sample Root CA' is missing" in stopped.now.problems
    assert went_on.now.problems == ()


def test_an_agent_that_has_its_ca_already_is_judged_by_what_others_downloaded() -> None:
    others = talk(ca(), crl(ends=10 * DAY), certname="b.example", address="192.0.2.8")
    runs = talk(catalog(), report(), after=60)
    alone = bootstrap_of(runs)
    assert (alone.trust, alone.now, alone.breaks) == (None, None, ())
    assert "this capture contains no CA bundle" in " ".join(lines(alone))
    bootstrap = bootstrap_of(together(others, runs))
    assert bootstrap.trust
    assert not bootstrap.trust.own
    assert bootstrap.breaks[0].at == pytest.approx(others[1].time + 10 * DAY, abs=1.5)
    assert "that another agent downloaded" in " ".join(lines(bootstrap))


def test_what_others_downloaded_does_not_mix_with_its_own() -> None:
    others = talk(ca(), crl(), certname="b.example", address="192.0.2.8")
    own = talk(ca(), csr(), issued(), catalog(), report(), after=60)
    bootstrap = bootstrap_of(together(others, own))
    assert bootstrap.trust
    assert (bootstrap.trust.own, bootstrap.trust.crls) == (True, None)
    assert "its CRLs are not in this capture" in " ".join(lines(bootstrap))


def test_up_to_5_only_the_first_ca_of_a_bundle_counts() -> None:
    five, six = (bootstrap_of(talk(ca(), csr(), issued(), version=version)).now for version in ("5.5.22", "6.29.0"))
    assert five
    assert six
    assert five.problems[0].endswith("is missing")
    assert six.problems == ()


# -- whatever comes ------------------------------------------------------------------------------------


def test_memory_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTEMPTS", 10)
    talks = [talk(ca(), csr(), certname=f"n{n}.example", address=f"192.0.2.{n}", after=60 * n) for n in range(40)]
    bootstraps = climbed(together(*talks))
    assert bootstraps.names() == [f"n{n}.example" for n in range(30, 40)]


def test_one_agents_bootstrap_does_not_grow() -> None:
    odd = [altered(csr(status=403, body=f"no {n}".encode()), request={"body": b"x"}) for n in range(900)]
    assert all(len(step.answers) <= 5 for step in bootstrap_of(talk(*odd)).steps)
    assert len(bootstrap_of(talk(*[csr(key=f"k{n}") for n in range(120)])).keys) == 100


def test_captured_text_cannot_reach_a_terminal_raw() -> None:
    evil = "a\x1b[31m.example"
    records = talk(ca(), csr(status=400, body=b"\x1b]0;x\x07no", path="a%1b%5B31m.example"), certname="a.example")
    bootstraps = climbed(records)
    (name,) = bootstraps.names()
    assert name == evil
    assert not any(ord(letter) < 32 for line in lines(bootstraps.of(name, 0)) for letter in line)


@pytest.mark.parametrize("at", [0.0, 1e9, 4e10, 253_402_300_799.0])
def test_any_moment_can_be_asked_for(at: float) -> None:
    bootstrap = climbed(talk(*BOOT)).of(NAME, at)
    assert bootstrap.now
    assert builtins(plain(bootstrap))["now"]["works"] is (bootstrap.now.problems == ())
    assert lines(bootstrap)


def test_broken_certificates_on_the_wire_break_nothing() -> None:
    odd = altered(ca(), leg={"own_chain": (b"no certificate",), "peer_chain": (b"neither",)})
    bootstrap = bootstrap_of(
        talk(odd, altered(crl(), leg={"own_chain": (b"\x30\x00",)}), csr(), bundle(body=b"<html>"))
    )
    assert bootstrap.now
    assert lines(bootstrap)


@pytest.mark.slow
@pytest.mark.parametrize("path", [*SAMPLES, *RECORDINGS], ids=name_of)
def test_every_real_agent_has_its_bootstrap(path: Path) -> None:
    records = records_of(path)
    bootstraps = climbed(records)
    for name in bootstraps.names():
        bootstrap = bootstraps.of(name, records[-1].ended)
        output = builtins(plain(bootstrap))
        assert json.loads(json.dumps(output)) == output
        assert all("\x1b" not in line for line in lines(bootstrap))
        assert bootstrap.steps
        assert all(step.seqs[0] <= step.seqs[-1] for step in bootstrap.steps)
        # Whoever finished a run hangs nowhere, but for its clone.
        if bootstrap.stuck is None:
            assert any(step.state is BootstrapState.RUN for step in bootstrap.steps)


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
@pytest.mark.parametrize(
    ("name", "stuck", "conclusion"),
    [
        ("puppet-3.8.7-master/mismatched-key", "most likely for another key", "one key in all"),
        ("puppetserver-7.9.5/5.5.22/06-mismatched-key", "most likely for another key", "one key in all"),
        ("puppetserver-7.9.5/7.23.0/06-mismatched-key", "another key than the agent's", "key mismatch"),
        (
            "puppetserver-7.9.5/7.23.0/05-lost-csr",
            "waits to be signed is the request with the key",
            "the key of man5.v7230.test changed",
        ),
        ("puppetserver-7.9.5/7.23.0/23-cloned-vm-two-keys", "another key than the agent's", "in turn: two hosts"),
        ("puppetserver-7.9.5/7.23.0/08-expired-crl", "'CN=Puppet CA: m7.test' has expired", ""),
        ("puppetserver-7.9.5/7.23.0/09-crl-missing-issuer", "'CN=Puppet Root CA: 13f55b8c163907' is missing", ""),
        ("puppetserver-7.9.5/7.23.0/33-pending-then-signed", "", "one key in all"),
        ("puppetserver-7.9.5/8.10.0/34-cert-renewal", "", "one key in all"),
    ],
)
def test_real_agents_stop_where_they_were_made_to(name: str, stuck: str, conclusion: str) -> None:
    records = records_of(next(recording for recording in RECORDINGS if name_of(recording) == name))
    bootstraps = climbed(records)
    bootstrap = bootstraps.of(bootstraps.names()[0], records[-1].ended)
    assert stuck in (bootstrap.stuck.why if bootstrap.stuck else "")
    assert bool(stuck) is bool(bootstrap.stuck)
    assert any(conclusion in text for text in bootstrap.conclusions) or not conclusion


def test_bootstraps_do_not_depend_on_when_they_are_asked_for() -> None:
    records = together(talk(*BOOT), talk(ca(), crl(), csr(), certname="b.example", address="192.0.2.8", after=2))
    analyzer, bootstraps = Analyzer(), Bootstraps()
    for record in records:
        bootstraps.add(analyzer.feed(record))
        for name in bootstraps.names():
            bootstraps.of(name, record.ended)
    at = records[-1].ended
    assert [bootstraps.of(name, at) for name in bootstraps.names()] == [
        dataclasses.replace(bootstrap) for bootstrap in (climbed(records).of(name, at) for name in bootstraps.names())
    ]


def test_the_program_of_the_ca_is_named_where_its_answers_show_it() -> None:
    polls = talk(ca(), crl(), csr(), of_openvox_ca(not_issued(), "certificate not found"))
    assert lines(bootstrap_of(polls))[1] == "  CA: openvox-ca"
    assert not any("CA: " in line for line in lines(bootstrap_of(talk(ca(), crl(), csr(), not_issued())))[:2])

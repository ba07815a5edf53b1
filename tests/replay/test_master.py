"""A lab agent runs against a replay: no upstream, what is missing, delays, hostile recordings."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.formats import share
from inspector.lab.agent import LabAgent
from inspector.lab.wire import ServerAddress, Wire, WireError, insecure
from inspector.model import Exchange, Handshake
from inspector.progress import unwatched
from inspector.replay import master as replaying
from inspector.replay import recording
from inspector.replay.enrolment import ATTRIBUTES
from inspector.runs.examples import altered, asked, catalog, listing, node, plugins, report, talk, unanswered
from tests.support.replays import NAME, agent, of_records, of_sample, replayed, sample, served, wire

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab.wire import LabResponse
    from inspector.model import Record
    from inspector.replay.master import ReplayMaster

TEXT = "text/plain"
PLAIN = "/puppet/v3/file_metadata/modules/m/a?environment=production"


def answers(tmp_path: Path, *targets: str, records: list[Record], method: str = "GET") -> list[LabResponse]:
    """What an agent with a certificate is answered."""
    with replayed(tmp_path, of_records(tmp_path, *records)) as master:
        return [ask(tmp_path, master, target, method) for target in targets]


def ask(tmp_path: Path, master: ReplayMaster, target: str, method: str = "GET") -> LabResponse:
    node_agent = agent(tmp_path, master)
    if not node_agent.place.certificate.exists():
        node_agent.run()
    with wire(node_agent) as connection:
        return connection.request(method, target, TEXT)


def test_a_run_is_repeated(tmp_path: Path) -> None:
    recorded = of_sample(tmp_path, "first-run")
    with replayed(tmp_path, recorded) as master:
        first = agent(tmp_path, master).run()
        again = agent(tmp_path, master).run()
    assert first.status == 2, first.log
    assert again.status in (0, 2), again.log
    assert master.unused == set()
    assert [one.missing for one in served(master) if one.missing] == []


def test_a_failed_compile_is_repeated(tmp_path: Path) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "compile-error")) as master:
        result = agent(tmp_path, master).run()
    assert result.status == 1
    assert any("no role for this node" in line for line in result.log)


def test_a_bootstrap_that_waits_is_repeated(tmp_path: Path) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "bootstrap-waiting")) as master:
        waits: list[int] = []
        result = agent(tmp_path, master, waitforcert=0.01).run(waits.append)
    assert waits == [1, 2, 3]
    assert result.status == 2, result.log


def test_a_certificate_of_another_key_is_repeated(tmp_path: Path) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "mismatched-key")) as master:
        result = agent(tmp_path, master).run()
    assert result.log[-1] == "Error: The certificate for 'node1.example' does not match its private key"


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "revoked")) as master:
        result = agent(tmp_path, master).run()
    assert result.status == 1
    refused = [one.record for one in served(master) if isinstance(one.record, Handshake)]
    assert refused[0].reason == "certificate verify failed: certificate revoked"
    assert refused[0].alert_by == "master"


def test_a_change_of_environment_is_repeated(tmp_path: Path) -> None:
    records = talk(
        node(), plugins(), listing("pluginfacts", {}), listing("plugins", {}), catalog(environment="staging"),
        listing("pluginfacts", {}, environment="staging"), listing("plugins", {}, environment="staging"),
        catalog(asks="staging", environment="staging", uuid="a-1"), report(environment="staging"),
    )  # fmt: skip
    with replayed(tmp_path, of_records(tmp_path, *records)) as master:
        result = agent(tmp_path, master).run()
    assert result.status == 0, result.log
    asked_for = [one.record for one in served(master) if isinstance(one.record, Exchange)]
    catalogs = [one.request.target for one in asked_for if "/catalog/" in one.request.target]
    assert [target.partition("environment=")[2] for target in catalogs] == ["production", "staging"]


def test_a_shared_capture_is_replayed_as_far_as_its_values_allow(tmp_path: Path) -> None:
    shared = tmp_path / "shared.sqlite"
    share.share(sample(tmp_path, "first-run"), shared)
    recorded = recording.read(shared, unwatched)
    assert recorded.shared
    with replayed(tmp_path, recorded) as master:
        result = agent(tmp_path, master).run()
    assert result.status == 2, result.log
    assert [one.missing for one in served(master) if one.missing] == []


def test_what_was_not_recorded_is_answered_with_the_closest(tmp_path: Path) -> None:
    records = talk(node(), plugins(), catalog(), asked("file_metadata/modules/m/a", {"type": "file"}), report())
    with replayed(tmp_path, of_records(tmp_path, *records)) as master:
        known = ask(tmp_path, master, PLAIN)
        unknown = ask(tmp_path, master, PLAIN.replace("production", "staging"))
    assert (known.status, known.body) == (200, b'{"type": "file"}')
    reason = (
        "GET file_metadata modules/m/a in staging was not recorded (environment staging instead of production); the "
        "closest is record 4, GET file_metadata modules/m/a in production"
    )
    assert (unknown.status, unknown.body.decode()) == (404, f"puppet-inspector replay: {reason}")
    (missing,) = [one for one in served(master) if one.missing and "modules/m/a" in one.missing.reason]
    assert missing.missing is not None
    assert missing.missing.reason == reason
    assert isinstance(missing.record, Exchange)
    assert missing.record.response is not None
    assert missing.record.response.status == 404


def test_what_is_no_request_of_puppet_and_an_empty_recording(tmp_path: Path) -> None:
    other, near = answers(tmp_path, "/puppet/v3/favicon", PLAIN, records=talk(plugins(), report()))
    assert other.status == 404
    assert b"was not recorded" in near.body


def test_different_answers_to_one_question_come_in_their_order_and_the_last_repeats(tmp_path: Path) -> None:
    records = talk(plugins(), catalog(), asked("file_metadata/modules/m/a", {}, status=503, text="busy"),
                   asked("file_metadata/modules/m/a", {"type": "file"}), report())  # fmt: skip
    assert [one.status for one in answers(tmp_path, PLAIN, PLAIN, PLAIN, records=records)] == [503, 200, 200]


def test_for_another_node_the_default_rules_apply(tmp_path: Path) -> None:
    (answer,) = answers(
        tmp_path, "/puppet/v3/node/other.example?environment=production",
        records=talk(node(), plugins(), catalog(), report()),
    )  # fmt: skip
    assert answer.status == 403
    assert answer.body.startswith(b"Forbidden request: /puppet/v3/node/other.example (method :get)")


# -- whoever else reaches the port -----------------------------------------------------------------------------

NOTHING = (
    b"puppet-inspector replay: refused: without the certificate of the key that was signed, nothing of the recording "
    b"is given"
)
LEGACY = ("/production/node/node1.example", "/production/catalog/node1.example", "/production/file_metadatas/plugins")


@pytest.mark.parametrize("certname", ["node1.example", "other.example", "localhost"])
def test_a_stranger_with_a_key_of_his_own_is_given_nothing(tmp_path: Path, certname: str) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "first-run")) as master:
        for number in range(2):
            server = ServerAddress(NAME, master.address)
            stranger = LabAgent(certname, tmp_path / f"stranger{number}", server).run()
            assert (stranger.status, stranger.log[-1][-3:]) == (1, "403"), stranger.log
        result = agent(tmp_path, master).run()
    assert result.status == 2, result.log
    which = "for another key than the prepared one" if certname == "node1.example" else "for another certname"
    assert [which in one.refused for one in served(master) if one.refused] == [True, True]


def test_without_a_certificate_nothing_is_given_in_any_dialect(tmp_path: Path) -> None:
    recorded = of_sample(tmp_path, "first-run")
    with Capture.open(tmp_path / "first-run.sqlite") as capture:
        asked_for = [(one.request.method, one.request.target, one.request.body) for one in capture.records()
                     if isinstance(one, Exchange) and one.seq in recorded.steps]  # fmt: skip
    with replayed(tmp_path, recorded) as master:
        agent(tmp_path, master).run()
        with Wire(ServerAddress(NAME, master.address), insecure()) as wire_:
            for method, target, body in [*asked_for, *(("GET", target, b"") for target in LEGACY), ("GET", "/x", b"")]:
                answer = wire_.request(method, target, TEXT, body[:1000], TEXT)
                assert (answer.status, answer.body) == (403, NOTHING), target
    assert sum(bool(one.refused) for one in served(master)) == len(asked_for) + len(LEGACY) + 1


def test_what_strangers_cause_is_written_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "STRANGERS", 3)
    with replayed(tmp_path, of_sample(tmp_path, "first-run")) as master:
        with Wire(ServerAddress(NAME, master.address), insecure()) as stranger:
            for _ in range(5):
                stranger.request("GET", "/x", TEXT)
            with pytest.raises(WireError):
                stranger.request("PUT", LEGACY[1], TEXT, b"x" * (replaying.SIGNING_REQUEST + 1), TEXT)
        assert agent(tmp_path, master).run().status == 2
    happened = [bool(one.record.agent.peer_chain) for one in served(master) if isinstance(one.record, Exchange)]
    assert happened.count(False) == 3
    assert happened.count(True) == 18
    assert master.unwritten == 5 + 4 - 3, "its answered requests, and those of the agent's bootstrap"


def test_whoever_asks_for_the_certificate_takes_no_turn_of_the_agents(tmp_path: Path) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "bootstrap-waiting")) as master:
        waits: list[int] = []

        def attack(number: int) -> None:
            waits.append(number)
            with Wire(ServerAddress(NAME, master.address), insecure()) as stranger:
                for path in 3 * [f"certificate/{certname}", f"certificate_request/{certname}"]:
                    shown = stranger.request("GET", f"/puppet-ca/v1/{path}", TEXT)
                    stranger.request(
                        "PUT", f"/puppet-ca/v1/certificate_request/{certname}", TEXT, shown.body or b"x", TEXT
                    )

        certname = master.recording.certname
        result = agent(tmp_path, master, waitforcert=0.01).run(attack)
    assert waits == [1, 2, 3]
    assert result.status == 2, result.log


def test_connections_of_strangers_take_the_agent_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "PLACES", 3)
    with replayed(tmp_path, of_sample(tmp_path, "first-run")) as master, contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection(master.address)) for _ in range(8)]
        assert agent(tmp_path, master).run().status == 2
        for stranger in strangers[:4]:
            stranger.settimeout(20)
            assert stranger.recv(1) == b"", "it has a thread and a descriptor"


def test_what_the_agent_is_known_by_is_for_its_user_only(tmp_path: Path) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "first-run")) as master:
        modes = [path.stat().st_mode & 0o777 for path in (agent(tmp_path, master).place.key,
                                                          tmp_path / "replay" / ATTRIBUTES)]  # fmt: skip
    assert modes == [0o600, 0o600]


def test_a_connection_that_ended_without_an_answer_ends_again(tmp_path: Path) -> None:
    records = talk(plugins(), catalog(), unanswered(asked("file_metadata/modules/m/a")), report())
    with replayed(tmp_path, of_records(tmp_path, *records)) as master, pytest.raises(WireError):
        ask(tmp_path, master, PLAIN)
    (closed,) = [one.record for one in served(master) if isinstance(one.record, Exchange) and not one.record.response]
    assert isinstance(closed, Exchange)
    assert closed.error == "record 3 has no answer either"
    assert closed.failed is not None


def test_a_body_that_was_not_recorded_is_said(tmp_path: Path) -> None:
    part = altered(asked("file_metadata/modules/m/a"), response={"lost": 9})
    (answer,) = answers(tmp_path, PLAIN, records=talk(plugins(), catalog(), part, report()))
    assert answer.status == 404
    assert b"record 3 has no usable answer: only " in answer.body


def test_a_redirect_leads_nowhere(tmp_path: Path) -> None:
    part = altered(
        asked("file_metadata/modules/m/a"), response={"status": 302}, answers={"Location": "https://e.example"}
    )
    (answer,) = answers(tmp_path, PLAIN, records=talk(plugins(), catalog(), part, report()))
    assert answer.status == 404


def test_a_hostile_recording_adds_no_header_and_no_answer(tmp_path: Path) -> None:
    smuggled = "x\r\nSet-Cookie: a\r\n\r\nHTTP/1.1 200 OK"
    part = altered(asked("file_metadata/modules/m/a", {}), response={"reason": smuggled},
                   answers={"X-Evil": smuggled, "X\r\nBad": "y", "X-Far": "\u0142", "X-Good": "z"})  # fmt: skip
    with replayed(tmp_path, of_records(tmp_path, *talk(plugins(), catalog(), part, report()))) as master:
        assert ask(tmp_path, master, PLAIN).body == b"{}"
        assert ask(tmp_path, master, PLAIN).body == b"{}"
    record = [one.record for one in served(master)][-1]
    assert isinstance(record, Exchange)
    assert record.response is not None
    assert record.response.header("x-good") == "z"
    assert {name.lower() for name, _ in record.response.headers}.isdisjoint(
        {"x-evil", "x-far", "set-cookie", "x\r\nbad"}
    )


def test_the_recorded_delay_is_kept_and_ends_with_the_master(tmp_path: Path) -> None:
    records = [dataclasses.replace(record) for record in talk(plugins(), catalog(), report())]
    recorded = of_records(tmp_path, *records)
    question = next(one for one in recorded.answers if one.endpoint == "catalog")
    recorded.answers[question] = [dataclasses.replace(recorded.answers[question][0], delay=600.0)]
    waiting = threading.Event()
    with replayed(tmp_path, recorded, pace=1.0) as master:
        client = agent(tmp_path, master)

        def run() -> None:
            waiting.set()
            client.run()

        thread = threading.Thread(target=run)
        thread.start()
        assert waiting.wait(60)
        while master.unused & {answer.seq for answer in recorded.answers[question]}:
            pass
    thread.join()


def test_records_of_the_replay_are_those_of_a_capture(tmp_path: Path) -> None:
    with replayed(tmp_path, of_sample(tmp_path, "first-run")) as master:
        agent(tmp_path, master).run()
    exchanges = [one.record for one in served(master) if isinstance(one.record, Exchange)]
    first, last = exchanges[0], exchanges[-1]
    assert (first.agent.peer_chain, first.agent.sni, first.agent.tls_version) == ((), "localhost", "TLSv1.3")
    assert len(last.agent.peer_chain) == 1
    assert last.response is not None
    assert last.request.started is not None
    assert last.response.ended is not None
    assert last.request.started <= last.response.ended
    assert "Sat, 21 Nov 2026" not in (last.response.header("date") or "")


def test_the_capture_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "first-run.sqlite"
    of_sample(tmp_path, "first-run")
    before = path.read_bytes()
    recording.read(path, unwatched)
    assert path.read_bytes() == before

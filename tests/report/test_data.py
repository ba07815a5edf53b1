"""Data of a page: blocks, messages, runs and records."""

from __future__ import annotations

import dataclasses
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.model import Exchange, Handshake, Leg, Request, Response
from inspector.report import data as module
from inspector.report.data import COLUMNS, Block, MessageBlocks, by_gravity, newest, runs_plain
from tests.support.captures import save
from tests.support.hostile import harmless, hostile_records
from tests.support.nodes import uncompiled, well
from tests.support.pages import ATTACK, content_of, copied, sample

if TYPE_CHECKING:
    from pathlib import Path


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@pytest.mark.slow
@given(VALUES)
def test_a_block_is_unpacked_as_it_was(value: object) -> None:
    assert Block.of("a", value).unpacked() == value


def test_no_character_of_a_block_has_a_meaning_in_html() -> None:
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", Block.of("a", [ATTACK, "\ud800"]).data)


def test_a_block_is_the_same_each_time() -> None:
    assert Block.of("a", [1]) == Block.of("a", [1])


LEG = Leg("a", "agent")
HEADERS = (("Content-Type", "text/plain"), ("X", "\x1b[2J"))


def exchange(seq: int, body: bytes, **changed: Any) -> Exchange:
    response = dataclasses.replace(Response(HEADERS, body, status=200), **changed)
    return Exchange(LEG, Request(HEADERS, b"", target="/a"), response, seq=seq)


def unpacked(blocks: MessageBlocks) -> dict[str, Any]:
    found: list[Block] = list(blocks.blocks())
    return {block.name: block.unpacked() for block in found}


def test_equal_bodies_and_headers_are_there_once() -> None:
    made = MessageBlocks()
    for seq, body in enumerate((b"same", b"other", b"same"), 1):
        made.add(exchange(seq, body))
    found = unpacked(made)
    assert found["bodies-0"] == ["same", "other"]
    assert found["records-0"]["headers"] == [[["Content-Type", "text/plain"], ["X", "\\x1b[2J"]]]
    assert {seq: record[1][1] for seq, record in found["records-0"]["records"].items()} == {"1": 0, "2": 1, "3": 0}
    assert found["messages"] == {"bodies": [0], "records": [1]}


def test_bytes_that_are_no_text_are_base64_and_a_cut_body_says_so() -> None:
    made = MessageBlocks()
    made.add(exchange(1, b"\xff\x00", lost=7))
    found = unpacked(made)
    assert found["bodies-0"] == [{"base64": "/wA="}]
    assert found["records-0"]["records"]["1"][1][2:] == [9, 7]


def test_many_records_and_bodies_are_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORDS", 2)
    monkeypatch.setattr(module, "BODIES", 10)
    made = MessageBlocks()
    for seq in range(1, 6):
        made.add(exchange(seq, f"body number {seq}".encode()))
    found = unpacked(made)
    assert found["messages"] == {"bodies": [0, 1, 2, 3, 4], "records": [1, 3, 5]}
    assert found["bodies-4"] == ["body number 5"]
    assert list(found["records-1"]["records"]) == ["3", "4"]


def test_a_failed_handshake_has_what_was_wrong() -> None:
    made = MessageBlocks()
    made.add(Handshake(LEG, 1.0, "refused", culprits=("expired \x07",), seq=4))
    assert unpacked(made)["records-0"]["records"] == {"4": [None, None, ["expired \\x07"]]}


def test_records_are_read_back_from_their_columns() -> None:
    content = content_of(sample("first-run"))
    found = content.records.plain()
    columns, names = found["columns"], found["names"]
    assert list(accumulate(columns["seq"])) == list(range(1, 23))
    assert columns["target"][0] == "/puppet-ca/v1/certificate/ca"
    assert [names[place] for place in columns["phase"]][10] == "catalog"
    assert columns["status"][16] == 404
    assert names[columns["signs"][0]] == "B01:notice"
    assert {len(column) for column in columns.values()} == {22} == {len(content.records)}


def test_hostile_records_are_cleaned(tmp_path: Path) -> None:
    content = content_of(save(tmp_path / "a.sqlite", *hostile_records()))
    found = content.records.plain()
    texts = [*filter(None, found["names"]), *found["columns"]["target"]]
    assert all(map(harmless, texts))
    runs = runs_plain(content.runs)
    assert all(harmless(text) for run in runs for text in [*run["cells"], run["words"], run["certname"], *run["env"]])


def test_a_run_has_its_cells_and_what_filters_look_at() -> None:
    content = content_of(sample("compile-error"))
    (run,) = runs_plain(content.runs)
    assert len(run["cells"]) == len(COLUMNS)
    assert (run["certname"], run["outcome"]) == ("node1.example", "failed")
    assert "S01:error" in run["findings"]
    assert "no role for this node" in run["words"]


def test_runs_that_failed_have_sections_first_then_the_latest(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *[*well(1), *uncompiled(2, 1000), *well(3, 2000)])
    with copied(path) as copy:
        assert [run.certname for run in by_gravity(copy.runs)] == [
            run.certname for run in sorted(copy.runs, key=lambda run: (run.outcome == "complete", -run.started))
        ]
        assert by_gravity(copy.runs)[0].outcome == "failed"


def test_the_list_has_the_newest_runs_first(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *[*uncompiled(2), *well(1, 1000), *uncompiled(3, 2000), *well(4, 3000)])
    content = content_of(path)
    assert [run.certname for run in content.runs] == [f"web{number}.example" for number in (4, 3, 1, 2)]
    assert newest(content.runs[::-1]) == content.runs
    assert [section.run.certname for section in content.sections][:2] == ["web3.example", "web2.example"]


def test_a_run_has_its_word_and_its_outcome_for_filters() -> None:
    (run,) = runs_plain(content_of(sample("mismatched-key")).runs)
    assert (run["outcome"], run["ending"], run["cells"][5]) == ("waiting", "failed", "failed")


def test_which_answers_are_failures_is_not_for_the_script_to_decide() -> None:
    columns = content_of(sample("bootstrap-waiting")).records.plain()["columns"]
    refused = [status for status in columns["status"] if status >= 400]
    assert (refused.count(404), refused.count(400)) == (4, 3)
    assert not any(columns["failed"])
    assert content_of(sample("compile-error")).records.plain()["columns"]["failed"].count(1) == 1

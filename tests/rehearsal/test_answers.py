"""The capture of a rehearsal, and how it is continued."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.model import Exchange, Response
from inspector.rehearsal import requests
from inspector.rehearsal.answers import Answers
from inspector.rehearsal.compiling import Role, connection_name
from inspector.runs.examples import catalog, talk
from tests.support.captures import save

if TYPE_CHECKING:
    from pathlib import Path

SAME = {"another master": "new.example:8140", "another CA": "a", "other options": "[]"}
OF = requests.asked(record for record in talk(catalog()) if isinstance(record, Exchange))


def answer(node: str, role: Role = Role.PLAIN, *, status: int = 200, file: bool = False) -> Exchange:
    request = requests.content(OF, "modules/m/a", "production") if file else OF.exchange.request
    leg = dataclasses.replace(OF.exchange.agent, id=f"{connection_name(node, role)}.1/agent")
    return dataclasses.replace(OF.exchange, agent=leg, request=request, response=Response(status=status))


def written(path: Path, *exchanges: Exchange) -> Path:
    made = Answers(path, SAME, resume=False)
    made.add(exchanges)
    made.close()
    return path


def test_what_was_answered_is_found_again(tmp_path: Path) -> None:
    path = written(tmp_path / "a.sqlite", answer("a"), answer("a", file=True), answer("a", Role.AGAIN), answer("b"))
    continued = Answers(path, SAME, resume=True)
    assert not continued.empty
    assert {role: len(found) for role, found in continued.of("a").items()} == {Role.PLAIN: 2, Role.AGAIN: 1}
    assert list(continued.of("b")) == [Role.PLAIN]
    assert continued.of("c") == {}
    continued.close()


def test_what_got_no_answer_is_asked_again(tmp_path: Path) -> None:
    broken = dataclasses.replace(answer("b"), response=None, error="reset")
    path = written(
        tmp_path / "a.sqlite", answer("a", status=503), answer("a", file=True), broken, answer("c", status=500)
    )
    continued = Answers(path, SAME, resume=True)
    assert [continued.of(node) for node in ("a", "b")] == [{}, {}]
    assert list(continued.of("c")) == [Role.PLAIN]
    continued.close()


def test_another_rehearsal_is_not_continued(tmp_path: Path) -> None:
    path = written(tmp_path / "a.sqlite", answer("a"))
    with pytest.raises(InspectorError, match="is the beginning of another rehearsal: with another CA"):
        Answers(path, SAME | {"another CA": "b"}, resume=True)
    with pytest.raises(InspectorError, match="with another master, other options"):
        Answers(path, SAME | {"another master": "b", "other options": "b"}, resume=True)
    for other in (save(tmp_path / "b.sqlite", *talk(catalog())), save(tmp_path / "c.sqlite", *talk(catalog()))):
        if other.stem == "c":
            with Capture.create(other) as made:
                made.set_meta([("rehearsal", "[1]")])
        with pytest.raises(InspectorError, match="is not the beginning of a rehearsal"):
            Answers(other, SAME, resume=True)
    with pytest.raises(InspectorError, match="already exists"):
        Answers(path, SAME, resume=False)


def test_a_capture_without_an_answer_does_not_remain(tmp_path: Path) -> None:
    made = Answers(tmp_path / "a.sqlite", SAME, resume=False)
    assert made.empty
    made.close()
    assert list(tmp_path.iterdir()) == []

"""The capture of a rehearsal, and how it is continued."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.model import Exchange, Response
from inspector.rehearsal import requests
from inspector.rehearsal.answers import Answers
from inspector.rehearsal.compiling import Role, connection_name
from inspector.runs.examples import catalog, talk

if TYPE_CHECKING:
    from pathlib import Path

OF = requests.asked(record for record in talk(catalog()) if isinstance(record, Exchange))


def answer(node: str, role: Role = Role.PLAIN, *, status: int = 200, file: bool = False) -> Exchange:
    request = requests.content(OF, "modules/m/a", "production") if file else OF.exchange.request
    leg = dataclasses.replace(OF.exchange.agent, id=f"{connection_name(node, role)}.1/agent")
    return dataclasses.replace(OF.exchange, agent=leg, request=request, response=Response(status=status))


def written(path: Path, *exchanges: Exchange) -> Path:
    made = Answers(path, "same", resume=False)
    made.add(exchanges)
    made.close()
    return path


def test_what_was_answered_is_found_again(tmp_path: Path) -> None:
    path = written(tmp_path / "a.sqlite", answer("a"), answer("a", file=True), answer("a", Role.AGAIN), answer("b"))
    continued = Answers(path, "same", resume=True)
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
    continued = Answers(path, "same", resume=True)
    assert [continued.of(node) for node in ("a", "b")] == [{}, {}]
    assert list(continued.of("c")) == [Role.PLAIN]
    continued.close()


def test_another_rehearsal_is_not_continued(tmp_path: Path) -> None:
    path = written(tmp_path / "a.sqlite", answer("a"))
    with pytest.raises(InspectorError, match="is not the beginning of this rehearsal"):
        Answers(path, "other", resume=True)
    with pytest.raises(InspectorError, match="already exists"):
        Answers(path, "same", resume=False)


def test_a_capture_without_an_answer_does_not_remain(tmp_path: Path) -> None:
    made = Answers(tmp_path / "a.sqlite", "same", resume=False)
    assert made.empty
    made.close()
    assert list(tmp_path.iterdir()) == []

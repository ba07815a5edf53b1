"""What must be the same in a rehearsal that is continued."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from inspector.compare.comparison import Choices
from inspector.rehearsal.client import Target
from inspector.rehearsal.plan import Plan

if TYPE_CHECKING:
    from pathlib import Path


def node(name: str, number: int = 1, started: float = 1.0) -> Any:
    return SimpleNamespace(brief=SimpleNamespace(name=name, number=number, started=started))


def test_identity(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("a")
    road: Any = SimpleNamespace(name="v4")
    plan = Plan(Target("new.example", 8140, ca, 1.0), road, Choices())
    nodes = [node("a"), node("b")]
    begun = plan.identity(nodes)

    def others(plan: Plan, nodes: list[Any]) -> list[str]:
        return [name for name, value in plan.identity(nodes).items() if begun[name] != value]

    assert others(plan, nodes[::-1]) == []
    assert others(dataclasses.replace(plan, jobs=7), nodes) == []
    runs = ["runs of other captures or agents"]
    for other in ([node("a")], [node("a"), node("b", 2)], [node("a"), node("b", 1, 3.0)]):
        assert others(plan, other) == runs
    assert others(dataclasses.replace(plan, files=True), nodes) == ["other options"]
    elsewhere = Target("new.example", 8141, ca, 1.0)
    assert others(dataclasses.replace(plan, target=elsewhere), nodes) == ["another master"]
    both = dataclasses.replace(plan, old=elsewhere)
    assert others(both, nodes) == ["another master", "another CA"]
    assert both.targets == [plan.target, elsewhere]
    ca.write_text("b")
    assert others(plan, nodes) == ["another CA"]
    ca.unlink()
    assert others(plan, nodes) == ["another CA"]

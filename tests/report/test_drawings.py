"""Trees, tables and texts as plain values: bounded, without control characters and secrets."""

from __future__ import annotations

from functools import partial

from inspector.pages.content import Content
from inspector.pages.model import Field, Item, Table, item_of
from inspector.pages.tabs import TabPart
from inspector.privacy.secrets import MASK, Secret
from inspector.report.drawings import DEEPEST, MOST, Node, drawing
from tests.support.hostile import HOSTILE, harmless


def test_a_tree_has_its_branches() -> None:
    found = drawing(TabPart("Facts", lambda: item_of("", {"os": {"family": "Debian"}, "list": [1, 2]})))
    assert found.nodes == (
        Node("os", "{1}", (Node("family: Debian"),)),
        Node("list", "[2]", (Node("0: 1"), Node("1: 2"))),
    )
    assert not found.note


def test_a_large_tree_is_cut_and_says_so() -> None:
    found = drawing(TabPart("Facts", lambda: item_of("", {str(at): at for at in range(3 * MOST)})))
    assert len(found.nodes) == MOST
    assert found.note


def test_a_deep_tree_ends() -> None:
    def deeper() -> list[Item]:
        return [Item("deeper", inner=deeper)]

    depth, nodes = 0, drawing(TabPart("Facts", lambda: Item("", inner=deeper))).nodes
    while nodes:
        depth, nodes = depth + 1, nodes[0].inner
    assert depth == DEEPEST + 1


def test_a_table_has_heads_and_rows_and_is_cut() -> None:
    table = Table((Field("name", 4), Field("value", 4)), [(str(at), at) for at in range(MOST + 5)])
    found = drawing(TabPart("T", lambda: table))
    assert (found.heads, found.rows[1], len(found.rows)) == (("name", "value"), ("1", "1"), MOST)
    assert "5 rows" in found.note


def test_secrets_stay_masked_and_no_key_is_offered() -> None:
    tree = drawing(TabPart("A", lambda: Item("", inner=lambda: [Item("password", Secret("hunter2"))])))
    table = drawing(TabPart("A", lambda: Table((Field("a", 1),), [(Secret("hunter2"),)])))
    assert tree.nodes == (Node(f"password: {MASK}"),)
    assert table.rows == ((MASK,),)


def itself[Model](model: Model) -> Model:
    return model


def test_hostile_text_is_cleaned() -> None:
    made = (
        item_of("", {HOSTILE: {HOSTILE: HOSTILE}}),
        Table((Field("a", 1),), [(HOSTILE,)]),
        Content("", HOSTILE.encode("utf-8", "replace")),
    )
    for model in made:
        found = drawing(TabPart("A", partial(itself, model)))
        texts = [node.text + node.note + str(node.inner) for node in found.nodes]
        assert all(map(harmless, [*texts, *(cell for row in found.rows for cell in row), *found.lines]))
        assert not found.empty


def test_what_cannot_be_shown_is_said() -> None:
    def broken() -> Item:
        raise ValueError("odd")

    assert (
        drawing(TabPart("A", broken)).lines == ("  Cannot be shown: odd",)
        or "odd" in drawing(TabPart("A", broken)).lines[0]
    )

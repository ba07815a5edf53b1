"""The difference of two texts is that of ``diff -u``, and linear in hostile ones."""

from __future__ import annotations

import difflib
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.compare import text_diff

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30).map("\n".join)


def patched(before: str, lines: list[str]) -> str:
    """What a difference makes of a text, by its own line numbers."""
    old = before.split("\n")
    made: list[str] = []
    at = 0
    for line in lines:
        if line.startswith("@@"):
            span = line.split()[1].lstrip("-").split(",")
            begin = int(span[0]) - (0 if span[1:] == ["0"] else 1)
            made += old[at:begin]
            at = begin
        else:
            if line[0] in " +":
                made.append(line[1:])
            if line[0] in " -":
                assert old[at] == line[1:]
                at += 1
    return "\n".join([*made, *old[at:]])


@pytest.mark.slow
@given(TEXTS, TEXTS)
def test_a_difference_makes_one_text_of_the_other(before: str, after: str) -> None:
    before, after = f"{before}\n", f"{after}\n"
    lines = text_diff.unified(before, after)
    assert patched(before, lines) == after
    assert bool(lines) == (before != after)
    changed = sum(line[0] in "+-" for line in lines)
    shortest = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    least = (
        len(before.split("\n"))
        + len(after.split("\n"))
        - 2 * sum(block.size for block in shortest.get_matching_blocks())
    )
    assert changed <= least


def test_it_looks_like_diff(tmp_path: Path) -> None:
    before = "".join(f"line {number}\n" for number in range(40))
    after = before.replace("line 3\n", "").replace("line 20\n", "line twenty\nand one more\n") + "the end"
    for name, text in (("a", before), ("b", after)):
        (tmp_path / name).write_text(text)
    printed = subprocess.run(["diff", "-u", "a", "b"], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    expected = printed.replace("the end\n\\", "the end \\").splitlines()[2:]
    assert text_diff.unified(before, after) == expected


def test_texts_with_little_in_common_are_shown_whole() -> None:
    before, after = "".join(f"{n}\n" for n in range(50_000)), "".join(f"x{n}\n" for n in range(50_000))
    lines = text_diff.unified(before, after)
    assert len(lines) == text_diff.SHOWN + 1
    assert lines[-1] == "... 99,701 more lines"


def test_long_lines_are_cut() -> None:
    (_, removed, added) = text_diff.unified("x" * 10_000 + "\n", "y\n")
    assert removed == f"-{'x' * text_diff.WIDE}... (10,000 characters)"
    assert added == "+y"

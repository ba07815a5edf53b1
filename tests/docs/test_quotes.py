"""What README.md and docs/ quote is what the program prints."""

from __future__ import annotations

import pytest

from tests.docs import markdown, quotes
from tests.support.places import ROOT

QUOTED = [(page, command) for page in markdown.pages() for command in quotes.commands(page.read_text(encoding="utf-8"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"), [(page.relative_to(ROOT).as_posix(), command) for page, command in QUOTED]
)
def test_a_command_prints_what_is_quoted(name: str, command: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    if quotes.is_played(command):
        quoted = next(block for block in quotes.BLOCK.findall(text) if block.startswith(f"$ {command}\n"))
        assert quotes.alike(quoted) == quotes.alike(f"$ {command}\n{quotes.output(command)}"), "run `make docs`"
    else:
        assert f"$ {command}\n{quotes.output(command)}" in text, "run `make docs`"


def test_the_demo_is_quoted_in_the_readme_and_a_real_failure_in_the_manual() -> None:
    assert [command for page, command in QUOTED if page == markdown.README] == ["make demo"]
    assert any(page.name == "findings.md" and "captures/samples/" in command for page, command in QUOTED)


def test_what_differs_from_run_to_run_is_alike() -> None:
    one = "12:51:59.347  web1.lab.example  PUT  certificate_request/~  200   845 B    14 ms  B01"
    other = "9:01:00.5  web1.lab.example  PUT  certificate_request/~  200   1.2 kB  1.1 s  B01"
    assert quotes.alike(one) == quotes.alike(other)
    assert quotes.alike(one) != quotes.alike(one.replace("B01", "B02"))
    assert quotes.alike(one) != quotes.alike(one.replace("PUT", "GET"))

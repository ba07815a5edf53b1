"""The book that is made of messages of sources (the messages are invented)."""

from __future__ import annotations

import pytest

from inspector.analysis import origins
from inspector.analysis.origins import Origins
from tests.origins import made
from tests.origins.literals import BLANK, Literal
from tests.origins.places import PLACES, place

PATH = "lib/puppet/configurer.rb"


def book(*messages: tuple[str, str, Literal]) -> Origins:
    return Origins(origins.encoded(made.book(messages)))


def test_a_message_leads_to_its_place() -> None:
    stored = book(("Puppet", PATH, Literal(f"The flux of {BLANK} is low", "Configurer.init_storage", "warning")))
    (found,) = stored.find("Warning: The flux of 'web1' is low")
    (origin,) = found.origins
    assert origin.printer == "the agent's configurer"
    assert (origin.file, origin.level) == (PATH, "warning")
    assert "about its state file" in origin.phase
    assert origin.between == "nothing between agent and master"


def test_the_same_text_at_several_places_is_one_template() -> None:
    text = f"The flux of {BLANK} is low"
    stored = book(
        ("Puppet", PATH, Literal(text, "a.run", "")),
        ("Puppet", PATH, Literal(text, "a.run", "error")),
        ("Puppet", "lib/puppet/agent.rb", Literal(text.replace("flux", "FLUX"), "", "error")),
    )
    (found,) = stored.find("The flux of x is low")
    assert [(each.file, each.level) for each in found.origins] == [("lib/puppet/agent.rb", "error"), (PATH, "error")]


@pytest.mark.parametrize(
    "text", ["is low", f"{BLANK} is {BLANK} low", "No such file or directory", f"a{BLANK}b of{BLANK}"]
)
def test_what_says_too_little_is_left_out(text: str) -> None:
    assert made.book([("Puppet", PATH, Literal(text, "", "error"))]).templates == ()


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (f"The flux of {BLANK} is low", False),
        (f"The flux of {BLANK} is low and must rise", True),
        (f"The catalog of {BLANK} is low", True),
        (f"a b {BLANK} c d {BLANK} e f {BLANK} g h", False),
    ],
)
def test_a_template_is_sure_by_its_words(text: str, sure: bool) -> None:
    (template,) = made.book([("Puppet", PATH, Literal(text, "", "error"))]).templates
    assert template.sure is sure


def test_every_program_has_a_place_for_every_file() -> None:
    for program in PLACES:
        assert place(program, "any/other/file.rb", "x.y").printer
    assert place("Puppet", "lib/puppet/ssl/state_machine.rb", "NeedCRLs.next_state").phase.endswith("about CRLs")
    assert place("Puppet", "lib/puppet/face/catalog.rb", "").printer == "a command of Puppet"
    assert place("Puppet", "lib/puppet/parser/compiler.rb", "").printer == "the master's compiler"

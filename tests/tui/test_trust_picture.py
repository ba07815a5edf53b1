"""The picture of an agent's trust and identity fits its width, and names what breaks at the break."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from inspector.explain.bootstrap import Condition
from inspector.explain.trust_chain import Box, Link, Part, TrustChain
from inspector.pages.styles import GOOD
from inspector.tui.trust_picture import WIDE, picture


def chain(condition: Condition = Condition.SOUND, text: str = "CN=x") -> TrustChain:
    """All links hold, but that of the request has this condition."""
    boxes = tuple(Box(part, (text, "until 2031-01-01"), Condition.SOUND) for part in Part)
    ends = ((Part.CRL, Part.CA), (Part.CA, Part.MASTER), (Part.KEY, Part.REQUEST), (Part.CA, Part.CERTIFICATE))
    links = [Link(source, target, "signs", Condition.SOUND) for source, target in ends]
    breaks = "another key" if condition is Condition.BROKEN else ""
    links.append(Link(Part.REQUEST, Part.CERTIFICATE, "becomes", condition, breaks, f"it is {text}"))
    return TrustChain(boxes, tuple(links))


@pytest.mark.parametrize("width", [40, 76, WIDE - 1, WIDE, 120, 196])
@pytest.mark.parametrize("text", ["CN=x", "CN=" + "long" * 100, "漢字" * 40, "\x1b[2J\u202e"], ids=range(4))
def test_each_line_fits_and_is_harmless(width: int, text: str) -> None:
    lines = picture(chain(text=text), width).plain.split("\n")
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in lines)
    for part in Part:
        assert any(part in line for line in lines)


@pytest.mark.parametrize("width", [76, WIDE])
def test_no_box_at_a_link_that_breaks_is_drawn_as_good(width: int) -> None:
    drawn = picture(chain(Condition.BROKEN), width)
    good = "".join(drawn.plain[span.start : span.end] for span in drawn.spans if span.style == GOOD)
    assert Part.KEY in good
    assert Part.REQUEST not in good
    assert Part.CERTIFICATE not in good


@pytest.mark.parametrize("width", [76, 116])
def test_what_breaks_is_named_at_the_break_and_in_a_sentence(width: int) -> None:
    sound, broken = (picture(chain(condition), width).plain for condition in (Condition.SOUND, Condition.BROKEN))
    assert "✗" not in sound
    lines = broken.split("\n")
    assert lines[0] == "✗ another key: it is CN=x"
    named = [at for at, line in enumerate(lines) if at and "another key" in line]
    request = next(at for at, line in enumerate(lines) if "signing request" in line)
    assert len(named) == 1
    assert 0 < named[0] - request < 5
    assert "✗" in "".join(lines[request : request + 5])


@pytest.mark.parametrize("condition", [Condition.WAITING, Condition.UNKNOWN])
def test_what_waits_and_what_is_unknown_is_named(condition: Condition) -> None:
    word = {Condition.WAITING: "waits", Condition.UNKNOWN: "unknown"}[condition]
    for width in (76, 116):
        assert word in picture(chain(condition), width).plain


LONG = "issued by CN=Puppet CA: puppet.example"


@pytest.mark.parametrize("width", [76, WIDE, 116, 196])
def test_what_identifies_a_box_goes_on_in_the_next_line_instead_of_being_cut(width: int) -> None:
    boxes = tuple(
        Box(part, ("CN=node1.example", "until 2031-01-01", "serial 4", LONG), Condition.SOUND) for part in Part
    )
    drawn = picture(TrustChain(boxes, chain().links), width).plain
    assert "…" not in drawn
    assert max(map(cell_len, drawn.split("\n"))) <= width
    assert drawn.count("puppet.example") == len(Part)


def test_the_link_from_the_ca_says_who_issued_the_certificate() -> None:
    links = tuple(replace(link, does="issues") if link.source is Part.CA else link for link in chain().links)
    drawn = picture(TrustChain(chain().boxes, links), 76).plain
    assert "issued by the CA" in drawn
    assert "issues by" not in drawn

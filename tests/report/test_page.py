"""The markup of a page: what can be read without JavaScript, what may run, and that nothing captured is markup."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from typing import TYPE_CHECKING

import pytest
from markupsafe import Markup

from inspector.report import page
from inspector.report.data import Block
from inspector.runs.examples import answered_by, ca, catalog, crl, csr, not_issued, plugins, report, talk
from tests.support.captures import save
from tests.support.hostile import harmless, hostile_records
from tests.support.nodes import not_stored, uncompiled, well
from tests.support.pages import html_of, sample
from tests.support.recorded import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


def visible(text: str) -> str:
    """The text of a page as it is read, without style, script and data."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))


def test_the_answer_is_in_the_markup_before_everything_else() -> None:
    text = visible(html_of(sample("mismatched-key")))
    words = ["1 node failing, 2 errors", "another key than the agent's", "2026-11-21 12:10:59 UTC", "node1.example",
             "puppetserver ca clean --certname node1.example", "Evidence: record 1", "Runs"]  # fmt: skip
    text = text[text.index("✗") :]
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert "answered 400" in text


def test_who_only_waits_did_not_fail(tmp_path: Path) -> None:
    waiting = save(tmp_path / "a.sqlite", *talk(ca(), crl(), csr(), not_issued(), csr(), not_issued()))
    assert "waiting the certificate request is waiting to be signed" in visible(html_of(waiting))
    assert "1 node failing, 2 errors failed the CA has" in visible(html_of(sample("mismatched-key")))


@pytest.mark.parametrize(
    ("name", "word"),
    [("mismatched-key", "failed"), ("compile-error", "failed"), ("revoked", "refused"), ("first-run", "complete")],
)
def test_a_run_is_called_by_one_word(name: str, word: str) -> None:
    made = html_of(sample(name))
    badges = re.findall(r'<span class="(?:outcome|sign) [\w ]+">([a-z ]+)</span>', made)
    assert set(badges) == {word}, "in the answer, in the list and above the run"
    assert len(badges) == (2 if word == "complete" else 3)
    blocks = dict(re.findall(r'id="data-([\w-]+)">([^<]*)<', made))
    (run,) = Block("runs", blocks["runs"]).unpacked()["runs"]
    assert run["ending"] == word


def test_the_page_says_what_a_stand_in_in_a_path_is() -> None:
    text = visible(html_of(sample("first-run")))
    assert "demo/ tree/ withheld-" in text
    assert "A withheld-… stands in their places, and in paths for words that are not known" in text


def test_the_list_of_runs_says_that_it_begins_with_the_newest(tmp_path: Path) -> None:
    made = html_of(save(tmp_path / "a.sqlite", *[*uncompiled(1), *well(2, 1000), *well(3, 2000)]))
    assert "Runs the newest first" in visible(made)
    assert "In full: first the runs that did not go well" in visible(made)
    assert "In full:" not in visible(html_of(sample("first-run"))), "one run has no order"
    table = made[made.index('aria-label="Runs"><table>') :]
    assert re.findall(r"<td>(web\d)\.example</td>", table)[:3] == ["web3", "web2", "web1"]


@pytest.mark.parametrize("name", ["first-run", "mismatched-key", "compile-error"])
def test_a_run_has_three_headings_at_most(name: str) -> None:
    made = html_of(sample(name))
    run = made[made.index('<article class="run"') :]
    run = run[: run.index("</article>")]
    heads = re.findall(r"<h4>([^<]*)</h4>", run)
    assert heads == [head for head in ("Findings", "Traffic", "Documents") if head in heads]
    assert {"Findings", "Traffic"} <= set(heads)
    folded = re.split(r'<div class="parts">', run)
    assert '<details class="part">' not in folded[0], "what is folded stands below a heading, in a line"


def test_the_legend_explains_what_is_drawn() -> None:
    made = html_of(sample("revoked"))
    legend = made[made.index('<p class="legend"') :]
    legend = legend[: legend.index("</p>")]
    drawn = made[made.index('<table class="waterfall">') :]
    drawn = drawn[: drawn.index("</table>")]
    kinds = re.compile('<rect class="([a-z]+)"')
    assert set(kinds.findall(legend)) == set(kinds.findall(drawn))


def test_backticks_are_code_and_nothing_else_is() -> None:
    assert page._marked("`a<b>` & \u202e `x") == "<code>a&lt;b&gt;</code> &amp; \\x202e `x"


@pytest.mark.slow
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_each_sample_has_a_page_with_waterfall_and_certificates(path: Path) -> None:
    made = html_of(path)
    assert '<table class="waterfall">' in made
    assert "<rect class=" in made
    assert "Withheld: " in made


def test_only_our_style_and_script_may_run_and_nothing_is_loaded() -> None:
    made = html_of(sample("revoked"))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)
    policy = html.unescape(policy)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", made, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert made.index("Content-Security-Policy") < made.index("<style>")
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', made)
    assert not re.findall(r"\son\w+=|\sstyle=|javascript:", re.sub(r"<script>.*?</script>", "", made, flags=re.DOTALL))


def test_every_link_leads_to_something() -> None:
    made = html_of(sample("mismatched-key"))
    targets = set(re.findall(r'\bid="([^"]+)"', made))
    links = set(re.findall(r'href="#([^"]+)"', made))
    assert {link for link in links if not re.match(r"record-|runs\?", link)} <= targets
    assert len(targets) == len(re.findall(r'\bid="', made))


def test_paths_may_be_broken_where_they_have_joints() -> None:
    assert page._breakable("a/b:<c>\u202e //d/ e") == "a/<wbr>b:&lt;c&gt;\\x202e //<wbr>d/ e"
    assert page._breakable("A1:B2 ::c: /", ":") == "A1:<wbr>B2 ::<wbr>c: /"


def test_what_is_remembered_of_a_path_lets_no_markup_through() -> None:
    assert page._breakable(Markup("a/<i>")) == page._breakable("a/<i>") == "a/<wbr>&lt;i&gt;"


def test_hostile_records_leave_no_control_character(tmp_path: Path) -> None:
    made = html_of(save(tmp_path / "a.sqlite", *hostile_records()))
    assert harmless(re.sub(r"<(script|style)>.*?</\1>", "", made, flags=re.DOTALL).replace("\n", ""))


def test_many_runs_are_in_the_data_and_the_first_in_the_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "INLINE", 1)
    monkeypatch.setattr(page, "ROWS", 2)
    made = html_of(save(tmp_path / "a.sqlite", *[*well(1), *uncompiled(2), *well(3), *well(4)]))
    assert re.findall(r'id="run-(\d+)"', made) == ["2"]
    blocks = {name: Block(name, data).unpacked() for name, data in re.findall(r'id="data-([\w-]+)">([^<]*)<', made)}
    assert set(blocks["sections-0"]) == {"1", "3", "4"}
    assert all(f'id="run-{number}"' in text for number, text in blocks["sections-0"].items())
    assert blocks["runs"]["places"] == {"1": 0, "3": 0, "4": 0}
    assert "2 more runs" in made


def test_a_large_page_says_so_and_offers_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "LARGE", 10)
    assert "--no-bodies" in visible(html_of(sample("revoked")))
    assert "Without the bodies it is smaller" not in visible(html_of(sample("revoked"), bodies=False))


def test_the_servers_that_answered_a_run_are_named_where_there_are_several(tmp_path: Path) -> None:
    parts = [*answered_by("c1.example", plugins()), *answered_by("c2.example", catalog(version="<b>"), report())]
    text = html_of(save(tmp_path / "a.sqlite", *talk(*parts)))
    assert "Answered by c1.example: plugins (1); 7.23.0; production; certificate" in visible(text)
    assert "c2.example: catalog, report (2)" in visible(text)
    assert "catalog <b>" not in text
    assert "Answered by" not in visible(html_of(sample("first-run")))


def test_what_was_found_outside_runs_has_its_fix(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *well(1, 0), *not_stored())
    text = visible(html_of(path))
    section = text[text.index("Outside runs What was found") : text.index("What the rules mean")]
    for word in (
        "error D03",
        "PuppetDB accepts a value that it cannot store",
        "evidence: record 4",
        "Fix On the master",
    ):
        assert word in section
    assert "Outside runs" not in visible(html_of(path, run=1))

"""Pages in a browser: what runs, what is visible, filters, links, print; and that nothing else happens."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from inspector.formats.outgoing import ALL
from inspector.model import Exchange, Handshake
from inspector.report import content as contents
from inspector.report import page as pages
from inspector.summaries import listing, reading
from tests.support.captures import save
from tests.support.hostile import harmless, hostile_records
from tests.support.nodes import refused, uncompiled, well
from tests.support.pages import ATTACK, browser, content_of, html_of, opened, sample
from tests.support.recorded import records_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from inspector.model import Record

pytestmark = pytest.mark.slow

TALL = {"width": 1200, "height": 6000}
"""A screen on which all rows of the lists are drawn."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as it:
        yield it


def written(folder: Path, capture: Path, **given: Any) -> Path:
    path = folder / "page.html"
    path.write_text(html_of(capture, **given), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of several nodes that went well, failed and were refused."""
    records = [
        record
        for number in range(1, 9)
        for record in (*uncompiled(number, 100 * number), *refused(number), *well(number + 20, 500 * number))
    ]
    numbered = [dataclasses.replace(record, seq=seq) for seq, record in enumerate(records, 1)]
    return save(tmp_path_factory.mktemp("fleet") / "fleet.sqlite", *numbered)


@pytest.fixture(scope="module")
def fleet_page(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page"), fleet, opened=ALL)


def go(page: Page, fragment: str) -> None:
    page.evaluate("fragment => { location.hash = fragment; }", fragment)


# -- hostile bytes ------------------------------------------------------------------------------------------


def attacks() -> Iterator[Record]:
    """Records in which every text would run in a page that does not escape it."""
    yield from hostile_records()
    for name in ("first-run", "compile-error", "revoked", "mismatched-key"):
        for at, record in enumerate(records_of(sample(name))):
            if isinstance(record, Handshake):
                yield dataclasses.replace(record, reason=ATTACK, culprits=(ATTACK,), alert=ATTACK)
                continue
            assert isinstance(record, Exchange)
            request = dataclasses.replace(record.request, headers=((ATTACK, ATTACK), *record.request.headers))
            if at % 5 == 4:
                target = f"/puppet/v3/catalog/{ATTACK}?environment={ATTACK}"
                request = dataclasses.replace(request, target=target, method=ATTACK)
            answer = record.response
            if answer is not None:
                body = answer.body if at % 3 else json.dumps({"message": ATTACK, "name": ATTACK, "x": ATTACK}).encode()
                headers = ((ATTACK, ATTACK), *answer.headers)
                answer = dataclasses.replace(answer, headers=headers, body=body, reason=ATTACK)
            agent = dataclasses.replace(record.agent, sni=ATTACK, cipher=ATTACK, tls_version=ATTACK)
            yield dataclasses.replace(record, request=request, response=answer, agent=agent, error=ATTACK)


@pytest.mark.parametrize("given", [{}, {"opened": ALL}, {"shared": True}], ids=["closed", "opened", "shared"])
def test_nothing_captured_runs_or_is_loaded_or_becomes_an_element(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    monkeypatch.setattr(pages, "INLINE", 1)
    records = [dataclasses.replace(record, seq=seq) for seq, record in enumerate(attacks(), 1)]
    capture = save(tmp_path / f"{ATTACK.replace('/', '_')[:80]}.sqlite", *records)
    runs = len(reading.read(capture).runs)
    with opened(chromium, written(tmp_path, capture, **given)) as (page, troubles):
        for number in range(1, runs + 1):
            go(page, f"run-{number}")
            page.wait_for_selector(f"#run-{number}")
        for seq in range(1, len(records) + 1):
            go(page, f"record-{seq}")
            page.wait_for_selector(f"#record h3:has-text('Record {seq}:')")
            assert harmless(re.sub(r"[\n\t]", "", page.inner_text("#record")))
        assert ("onerror=alert" in page.inner_text("body")) is not bool(given.get("shared"))
        page.fill("#filter-records", f'"{ATTACK[:20]}"')
        page.fill("#filter-runs", ATTACK)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.locator("img, iframe, object, embed, link, b b, [onerror], [onload], [onclick]").count() == 0
        assert page.locator("script:not([type='application/octet-stream'])").count() == 1
        assert harmless(re.sub(r"[\n\t]", "", page.inner_text("body")))
        assert troubles == []


def test_a_script_that_is_slipped_in_would_not_run(chromium: Browser, tmp_path: Path) -> None:
    path = written(tmp_path, sample("revoked"))
    spoiled = path.read_text().replace("<main>", "<main><script>document.title='ran'</script><img src='x.png'>")
    path.write_text(spoiled)
    with opened(chromium, path) as (page, troubles):
        assert page.title() != "ran"
        assert len([trouble for trouble in troubles if "Content Security Policy" in trouble]) == 2


# -- what is visible ----------------------------------------------------------------------------------------


def test_the_answer_and_its_fix_are_on_the_first_screen(chromium: Browser, tmp_path: Path) -> None:
    path = written(tmp_path, sample("mismatched-key"))
    with opened(chromium, path, viewport={"width": 1400, "height": 900}) as (page, troubles):
        for words in ("1 node failing, 2", "puppetserver ca clean --certname node1.example", "Evidence: record 1"):
            box = page.get_by_text(words).first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 900, words
        assert troubles == []


def test_without_javascript_it_is_read_all_the_same(chromium: Browser, tmp_path: Path) -> None:
    path = written(tmp_path, sample("mismatched-key"))
    with opened(chromium, path, java_script_enabled=False) as (page, troubles):
        text = page.inner_text("main")
        for words in ("1 node failing, 2 errors", "puppetserver ca clean", "PUT certificate_request", "✗ another key",
                      "Without JavaScript", "signing request for a name that has a certificate"):  # fmt: skip
            assert words in text
        assert page.locator("table.waterfall svg rect").count() > 5
        assert page.locator("button:visible, input:visible").count() == 0
        page.click("text=Evidence: record 1")
        assert page.get_by_text("PUT /puppet-ca/v1/certificate_request").first.is_visible()
        assert troubles == []


@pytest.mark.parametrize("name", ["first-run", "mismatched-key", "revoked", "out-of-sync"])
@pytest.mark.parametrize("width", [400, 900, 1400])
def test_nothing_is_wider_than_the_screen(chromium: Browser, tmp_path: Path, name: str, width: int) -> None:
    with opened(chromium, written(tmp_path, sample(name)), viewport={"width": width, "height": 900}) as (
        page,
        troubles,
    ):
        go(page, "record-1")
        page.wait_for_selector("#record h3")
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert troubles == []


BROKEN_WORDS = """() => {
  const broken = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!parent.checkVisibility() || parent.closest("script, style, noscript, svg, pre, code")) continue;
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]{2,24}(?![\\p{L}\\p{N}])/gu)) {
      if (/[\\p{L}\\p{N}]/u.test(node.data[word.index - 1] || "")) continue;  // the end of a longer one
      const range = document.createRange();
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""
"""Words of usual length that are on two lines."""


@pytest.mark.parametrize("name", ["first-run", "mismatched-key", "compile-error", "fleet"])
def test_no_word_is_broken_on_a_telephone(chromium: Browser, tmp_path: Path, fleet_page: Path, name: str) -> None:
    path = fleet_page if name == "fleet" else written(tmp_path, sample(name))
    with opened(chromium, path, "#record-1", viewport={"width": 400, "height": 900}) as (page, troubles):
        page.wait_for_selector("#record h3")
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.evaluate(BROKEN_WORDS) == []
        assert troubles == []


def test_on_a_telephone_a_waterfall_is_as_visible_as_its_legend(chromium: Browser, tmp_path: Path) -> None:
    for width in (400, 800):
        with opened(chromium, written(tmp_path, sample("first-run")), viewport={"width": width, "height": 900}) as (
            page,
            _,
        ):
            assert page.locator("article.run .legend").is_visible()
            for bars in page.locator("table.waterfall td.axis svg").all():
                box = bars.bounding_box()
                assert box is not None
                assert 0 < box["x"] < box["x"] + box["width"] < width
            assert page.locator("article.run .legend .legs").is_visible() is (width == 400)
            assert page.evaluate(
                "document.querySelector('.stacks').scrollWidth <= document.querySelector('.stacks').clientWidth"
            )


def test_on_a_telephone_the_list_of_runs_has_room_for_three_findings(chromium: Browser, tmp_path: Path) -> None:
    with opened(chromium, written(tmp_path, sample("mismatched-key")), viewport={"width": 400, "height": 900}) as (
        page,
        _,
    ):
        for place, text in ((3, "web1.lab.example"), (6, "unfinished"), (8, "B18 B23 B01")):
            cell = page.locator(f".list.runs .view .row > :nth-child({place})").first
            cell.evaluate("(cell, text) => { cell.textContent = text; }", text)
            assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), text


def test_the_picture_of_trust_is_scrolled_in_its_own_box(chromium: Browser, tmp_path: Path) -> None:
    with opened(chromium, written(tmp_path, sample("mismatched-key")), viewport={"width": 400, "height": 900}) as (
        page,
        _,
    ):
        box = page.locator(".scroll:has(> svg.chain)")
        assert box.evaluate("box => box.scrollWidth > box.clientWidth + 100")
        assert page.locator("svg.chain").evaluate("svg => svg.getBoundingClientRect().height") > 200, "it can be read"
        bounds = page.locator("svg.chain .breaks").first.bounding_box()
        assert bounds is not None
        assert 20 <= bounds["x"] < bounds["x"] + bounds["width"] <= 380, "what breaks is visible at once"
        assert page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.parametrize("width", [400, 1400])
def test_the_heads_of_lists_are_not_cut(chromium: Browser, fleet_page: Path, width: int) -> None:
    with opened(chromium, fleet_page, "#records?", viewport={"width": width, "height": 900}) as (page, _):
        page.wait_for_selector("#list-records .view .row")
        cut = """() => [...document.querySelectorAll(".list .head [role=columnheader]")]
            .filter((head) => head.checkVisibility() && head.scrollWidth > head.clientWidth)
            .map((head) => head.textContent)"""
        assert page.evaluate(cut) == []


def test_red_is_what_failed(chromium: Browser, tmp_path: Path) -> None:
    """A certificate that is not signed yet, and the first of several sources, are answered 404."""
    path = written(tmp_path, sample("bootstrap-waiting"))
    with opened(chromium, path, "#records?status:>=400", viewport=TALL) as (page, _):
        page.wait_for_selector("output[for=filter-records]:has-text('7 of')")
        assert page.locator("#list-records .view .row").count() == 7
        assert page.locator("#list-records .bad, table.waterfall tr.bad, svg.sequence .bad").count() == 0
    with opened(chromium, written(tmp_path, sample("compile-error")), "#records?", viewport=TALL) as (page, _):
        page.wait_for_selector("#list-records .view .row")
        for place in (
            "#list-records .bad",
            "table.waterfall tr.bad td:nth-child(4)",
            "svg.sequence .bad text >> nth=0",
        ):
            assert "500" in (page.locator(place).text_content() or "")


def test_the_order_of_runs_is_named(chromium: Browser, fleet_page: Path) -> None:
    with opened(chromium, fleet_page, viewport=TALL) as (page, troubles):
        heads, order = page.locator("#list-runs .head [role=columnheader]"), page.locator("#runs-order")
        began = page.locator("#list-runs .view .row > :nth-child(2)").all_inner_texts()
        assert began == sorted(began, reverse=True)
        assert (order.inner_text(), heads.nth(1).get_attribute("aria-sort")) == ("the newest first", "descending")
        heads.nth(5).locator("button").click()
        assert order.inner_text() == "by outcome, ascending"
        assert [head.get_attribute("aria-sort") for head in heads.all()].count(None) == 7
        for _ in range(2):
            heads.nth(5).locator("button").click()
        assert (order.inner_text(), heads.nth(1).get_attribute("aria-sort")) == ("the newest first", "descending")
        assert troubles == []


def test_it_is_printed_black_on_white_without_controls(chromium: Browser, fleet_page: Path) -> None:
    with opened(chromium, fleet_page, color_scheme="dark") as (page, troubles):
        page.emulate_media(media="print", color_scheme="dark")
        colours = page.evaluate("['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])")
        assert colours == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
        assert page.locator("button:visible, input:visible, nav:visible").count() == 0
        assert page.locator(".list:visible").count() == 0
        assert page.pdf().startswith(b"%PDF")
        assert troubles == []


def test_a_command_is_copied(chromium: Browser, tmp_path: Path) -> None:
    with opened(chromium, written(tmp_path, sample("mismatched-key"))) as (page, troubles):
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("#answer button.copy >> nth=0")
        page.wait_for_selector("text=Copied")
        command = page.inner_text("#answer code >> nth=0")
        page.focus("#filter-runs")
        page.keyboard.press("Control+V")
        assert page.input_value("#filter-runs") == command
        assert troubles == []


# -- filters and lists ----------------------------------------------------------------------------------------


def shown(page: Page, which: str, text: str) -> list[int]:
    """The numbers in a list after a filter was typed."""
    page.evaluate("which => { document.querySelector(`output[for=filter-${which}]`).textContent = ''; }", which)
    page.fill(f"#filter-{which}", text)
    page.press(f"#filter-{which}", "Enter")
    page.wait_for_selector(f"output[for=filter-{which}]:has-text(' of ')")
    numbers = page.locator(f"#list-{which} .view .row a").all_inner_texts()
    count = int(page.inner_text(f"output[for=filter-{which}]").partition(" of ")[0].replace(",", ""))
    assert count == len(numbers)
    return sorted(map(int, numbers))


FILTERS = [
    "", "outcome:failed", "outcome:failed,waiting", "-outcome:complete", "agent:web1*", "agent:WEB2.example",
    "agent:192.0.2.4?", "agent:web[13].example", "agent:web[!13].example", "rule:S01", "rule:s", "rule:any",
    "!rule:any", "severity:error", "severity:notice", "status:500", "status:4xx", "status:>=400", "status:200-299",
    "status:none", "phase:catalog status:500", "phase:catalog", "phase:handshake", "-status:>=400",
    "-phase:catalog -phase:report", "path:/catalog/", "path:*report*", "path:/puppet/v3/catalog/web?.example",
    "env:production", "env:prod*", "ms:>0", "ms:0-100", "size:>1k", "size:<=2M", "run:3", "run:2-5", "run:>10",
    "endpoint:catalog", "endpoint:*file*", "method:PUT", "method:put", "version:7", "version:<6.4", "version:>=7.1",
    "version:7*", "until:10m", "since:10m", "since:2020-01-01", "until:2020-01-01T10:00",
    "since:2020-01-01T10:00:00Z", "web21.example", '"web21.example"', "'web21.example'", '-"web21"',
    "agent:web* status:500 -rule:B", 'text:"Could not find class"', "text:production", "phase:catalog -status:200",
]  # fmt: skip
"""Filters, most with a result."""


def test_filters_find_what_the_command_line_finds(chromium: Browser, fleet: Path, fleet_page: Path) -> None:
    different, found = {}, 0
    with opened(chromium, fleet_page, viewport=TALL) as (page, troubles):
        for text in FILTERS:
            runs = sorted(run.brief.number for run in reading.read(fleet, text).runs)
            records = sorted(brief.seq for brief, _ in listing.listed(fleet, text))
            found += bool(runs) + bool(records)
            made = shown(page, "runs", text), shown(page, "records", text)
            if made != (runs, records):
                different[text] = made, (runs, records)
        assert troubles == []
    assert different == {}
    assert found > len(FILTERS)


def test_lists_are_sorted_by_a_column(chromium: Browser, fleet_page: Path) -> None:
    def numbers(page: Page, which: str) -> list[int]:
        return [int(text) for text in page.locator(f"#list-{which} .view .row a").all_inner_texts()]

    with opened(chromium, fleet_page, viewport=TALL) as (page, troubles):
        before = numbers(page, "runs")
        head = page.locator("#list-runs .head button")
        head.nth(0).click()
        assert numbers(page, "runs") == sorted(before)
        head.nth(0).click()
        assert numbers(page, "runs") == sorted(before, reverse=True)
        assert page.get_attribute("#list-runs [role=columnheader] >> nth=0", "aria-sort") == "descending"
        found = shown(page, "runs", "outcome:failed")
        assert numbers(page, "runs") == sorted(found, reverse=True)
        shown(page, "runs", "")
        head.nth(0).click()
        assert numbers(page, "runs") == before
        shown(page, "records", "")
        page.locator("#list-records .head button").nth(5).click()
        states = page.locator("#list-records .view .row > :nth-child(6)").all_inner_texts()
        assert states == sorted(states)
        assert len(set(states)) > 2
        assert troubles == []


@pytest.mark.parametrize(
    "text", ["statu:404", "status:abc", "run:5-2", 'text:"a', "outcome:bad", "since:yesterday", "agent:", "ms:>x"]
)
def test_a_filter_that_is_wrong_says_so(chromium: Browser, fleet_page: Path, text: str) -> None:
    with opened(chromium, fleet_page) as (page, troubles):
        page.fill("#filter-runs", text)
        page.wait_for_selector("output.error")
        assert page.inner_text("output.error")
        assert page.get_attribute("#filter-runs", "aria-invalid") == "true"
        assert troubles == []


def test_lists_are_used_with_the_keyboard(chromium: Browser, fleet_page: Path) -> None:
    with opened(chromium, fleet_page) as (page, troubles):
        page.focus("#list-runs .view")
        for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End", "Enter"):
            page.keyboard.press(key)
        number = page.inner_text("#list-runs .row.chosen a")
        page.wait_for_selector(f"#run-{number}")
        assert page.evaluate("location.hash") == f"#run-{number}"
        assert page.evaluate("document.activeElement.id") == f"run-{number}"
        assert troubles == []


# -- links --------------------------------------------------------------------------------------------------


def test_a_fragment_leads_to_every_run_record_and_finding(
    chromium: Browser, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "INLINE", 2)
    monkeypatch.setattr(contents, "SECTIONS", 20)
    path = written(tmp_path, fleet)
    found = reading.read(fleet).runs
    runs, seqs = [run.brief for run in found], {run.brief.number: run.seqs for run in found}
    last = listing.total(fleet)
    wanted = [f"run-{run.number}" for run in runs] + [f"record-{seq}" for seq in range(1, last + 1)]
    for fragment in wanted[:: max(1, len(wanted) // 12)] + wanted[-1:]:
        with opened(chromium, path, f"#{fragment}") as (page, troubles):
            kind, _, number = fragment.partition("-")
            title = page.locator(f"#{fragment} h3" if kind == "run" else "#record h3")
            assert title.inner_text().startswith(f"{kind.capitalize()} {number}")
            assert title.is_visible()
            assert page.evaluate("scrollY") > 0
            assert troubles == []
    sections = {section.run.number for section in content_of(fleet).sections}
    without = next(run for run in runs if run.number not in sections)
    with opened(chromium, path, f"#run-{without.number}") as (page, troubles):
        drawn = page.locator(f"#run-{without.number}")
        assert drawn.locator("td.number a").all_inner_texts() == [str(seq) for seq in seqs[without.number]]
        assert drawn.locator("h3").inner_text() == f"Run {without.number} of {without.name} {without.outcome}"
        boxes = [bar.bounding_box() for bar in drawn.locator("rect").all()]
        assert len(boxes) == len(seqs[without.number])
        assert all(box and box["width"] > 0 for box in boxes)
        assert troubles == []
    failed = next(run for run in runs if run.outcome == "failed")
    with opened(chromium, path, f"#finding-{failed.number}-1") as (page, troubles):
        assert failed.ordered[0].rule in page.inner_text(f"#finding-{failed.number}-1")
        go(page, "records?status:500")
        page.wait_for_selector("output[for=filter-records]:has-text('8 of')")
        assert troubles == []


@pytest.mark.parametrize("fragment", ["run-999999", "record-0", "nothing", "%", "__proto__", "runs?%22", "record-1e9"])
def test_a_fragment_that_leads_nowhere_does_no_harm(chromium: Browser, fleet_page: Path, fragment: str) -> None:
    with opened(chromium, fleet_page, f"#{fragment}") as (page, troubles):
        assert page.locator("h2.headline").is_visible()
        assert troubles == []


def test_a_record_shows_headers_and_body(chromium: Browser, fleet_page: Path) -> None:
    with opened(chromium, fleet_page, "#records?status:500") as (page, troubles):
        page.wait_for_selector("#list-records .view .row a")
        page.click("#list-records .view .row a >> nth=0")
        page.wait_for_selector("#record h3")
        text = page.inner_text("#record")
        assert "Could not find class" in text
        assert "Response" in text
        assert re.search(r"^content-type: ", text, re.MULTILINE | re.IGNORECASE)
        assert troubles == []


def test_a_form_is_shown_field_by_field(chromium: Browser, tmp_path: Path) -> None:
    with opened(chromium, written(tmp_path, sample("first-run")), "#record-11") as (page, troubles):
        page.wait_for_selector("#record h3")
        text = page.inner_text("#record")
        assert "facts_format = application/json\n" in text
        assert 'facts = {\n  "name": "node1.example",' in text
        assert troubles == []


def test_a_page_without_bodies_has_records_all_the_same(chromium: Browser, fleet: Path, tmp_path: Path) -> None:
    with opened(chromium, written(tmp_path, fleet, bodies=False), "#record-2") as (page, troubles):
        page.wait_for_selector("#record h3")
        assert "Response" not in page.inner_text("#record")
        assert page.locator("#record dd").count() > 5
        assert troubles == []


def test_a_long_list_draws_what_is_visible(chromium: Browser, tmp_path: Path) -> None:
    runs = itertools.chain.from_iterable(well(number % 200, 900.0 * number) for number in range(700))
    records = [dataclasses.replace(record, seq=seq) for seq, record in enumerate(runs, 1)]
    path = written(tmp_path, save(tmp_path / "a.sqlite", *records), bodies=False)
    with opened(chromium, path, "#records?") as (page, troubles):
        page.wait_for_selector("#list-records .view .row")
        rows = page.locator("#list-records .view .row")
        assert rows.count() < 80
        page.evaluate("document.querySelector('#list-records .view').scrollTop = 1e9")
        page.wait_for_selector(f"#list-records .view .row:has-text('{len(records)}')")
        assert rows.count() < 80
        assert page.get_attribute("#list-records .list", "aria-rowcount") == str(len(records) + 1)
        assert troubles == []


# -- accessibility ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", ["mismatched-key", "first-run", "fleet"])
def test_axe_finds_nothing(
    chromium: Browser, axe: str, tmp_path: Path, fleet_page: Path, name: str, width: int, scheme: str
) -> None:
    path = fleet_page if name == "fleet" else written(tmp_path, sample(name))
    options: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "bypass_csp": True}
    with opened(chromium, path, "#record-1", **options) as (page, _):
        page.wait_for_selector("#record h3")
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        page.evaluate(axe)
        found = page.evaluate("async () => (await axe.run()).violations")
    assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found] == []

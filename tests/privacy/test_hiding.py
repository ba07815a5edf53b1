"""What views hide: the same as is masked everywhere else, with the value behind it."""

from __future__ import annotations

import itertools
import random

import pytest

from inspector.analysis.analyzer import retrace
from inspector.model import Request
from inspector.pages import plain
from inspector.pages.body_search import Needle, hits
from inspector.pages.message import MODES, Body
from inspector.pages.tabs import known, tabs
from inspector.privacy import hiding, secrets
from inspector.privacy.secrets import MASK, Secret
from inspector.runs.examples import catalog, talk
from inspector.summaries import summary, wording
from tests.support.planted import KINDS, PLACES, core, found
from tests.support.written import FORMS, RECORDED

UNSEEN = {"connection's error"}
"""Places that no page shows."""


def pages(place: str, form: str, *, masks: bool) -> tuple[str, bytes]:
    """The secret, and everything that is shown of a record with it."""
    secret = core(random.Random(f"{place} {form}"))  # noqa: S311 - nothing to protect
    shown = b""
    for record in RECORDED[place](FORMS[form](secret)):
        (step,) = retrace([record])
        shown += "\n".join(plain.lines(step, None, masks=masks)).encode()
        for part in (part for tab in tabs(step, known(step)) for part in tab.parts):
            model = part.made()
            if not isinstance(model, Body):
                continue
            for mode in MODES:
                model.shown = not masks
                content = model.content(mode)
                shown += secrets.covered(content.data, list(content.hidden))
        if masks:
            assert list(hits(record, Needle(secret))) == []
    return secret, shown


@pytest.mark.parametrize(("form", "place"), list(zip(FORMS, itertools.cycle(RECORDED), strict=False)))
def test_no_page_and_no_search_shows_a_secret_unless_it_is_asked_for(form: str, place: str) -> None:
    secret, shown = pages(place, form, masks=True)
    assert not found([secret], shown)
    secret, shown = pages(place, form, masks=False)
    assert found([secret], shown) or place in UNSEEN


@pytest.mark.slow
@pytest.mark.parametrize("place", RECORDED)
def test_no_page_shows_any_form_in_any_place(place: str) -> None:
    made = ((form, *pages(place, form, masks=True)) for form in FORMS)
    assert [form for form, secret, shown in made if found([secret], shown)] == []


def test_of_a_text_only_the_secret_is_hidden() -> None:
    text = "user = app\npassword = hunter2-horse\n"
    assert hiding.text(text) == Secret(text, f"user = app\npassword = {MASK}\n")
    assert hiding.text("user = app") == "user = app"


def test_a_path_that_is_cut_in_a_line_has_no_secret() -> None:
    (record,) = PLACES["path"](KINDS["stripe key"]("Zq7R2mXw9KtLp4Vbq7Z"))
    (step,) = retrace([record])
    assert "Zq7R2" not in "\n".join(plain.lines(step, None))
    assert "4Vbq7Z" not in wording.line(summary.brief_of(step), None)


def test_names_decide_in_structures() -> None:
    found = hiding.masked(
        {"db_password": "hunter2-horse", "limits": {"password_max_age": 5}, "list": [{"token": "x1y2"}]}
    )
    assert found == {
        "db_password": Secret("hunter2-horse"), "limits": {"password_max_age": 5}, "list": [{"token": Secret("x1y2")}]
    }  # fmt: skip


def test_keys_with_secrets_stay_apart() -> None:
    keys = ["password=hunter2-horse", "password=another-horse"]
    assert list(hiding.masked(dict.fromkeys(keys, 1)).values()) == [1, 1]


def test_the_target_of_a_request() -> None:
    asked = Request(target="/puppet/v3/other/x?password=hunter2-horse&b=1")
    hidden = hiding.target(asked)
    assert isinstance(hidden, Secret)
    assert hidden.value == asked.target
    assert hidden.shown == f"/puppet/v3/other/x?password={MASK}&b=1"
    assert hiding.target(Request(target="/status")) == "/status"


def test_a_secret_that_is_marked_in_one_place_is_hidden_in_all_of_its_record() -> None:
    marked = {"__ptype": "Sensitive", "__pvalue": "hunter2-horse"}
    text = "first\nnobody knows hunter2-horse\n"
    resource = {
        "type": "Exec",
        "title": "run hunter2-horse",
        "parameters": {"x": marked, "y": text, "z": [{"a": text}]},
    }
    (step,) = retrace(talk(catalog(resources=[resource])))
    assert "hunter2" not in "\n".join(plain.lines(step, None))
    shown = "\n".join(plain.lines(step, None, masks=False))
    assert "Exec[run hunter2-horse]" in shown
    assert shown.count("nobody knows hunter2-horse") >= 4

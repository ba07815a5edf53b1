"""Captures with times and sizes that no proxy writes: every command and form has an answer, and JSON is JSON."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from inspector.model import Exchange, Gap
from inspector.runs.examples import ca, catalog, crl, csr, issued, report, talk
from tests.support.captures import save
from tests.support.hostile import hostile_records

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record
    from tests.conftest import Run


def changed(start: float, end: float, lost: int = 0) -> list[Record]:
    """A run of which one exchange begins and ends at these times."""
    made: list[Record] = []
    for record in talk(ca(), crl(), csr(), issued(), catalog(), report()):
        if isinstance(record, Exchange) and record.response and "/catalog/" in record.request.target:
            request = dataclasses.replace(record.request, started=start, ended=start, lost=lost)
            response = dataclasses.replace(record.response, started=end, ended=end, lost=lost)
            record = dataclasses.replace(record, request=request, response=response)
        made.append(record)
    return [*made, Gap(start, "no room", lost or 1)]


CAPTURES = {
    "endless": lambda: changed(-1e308, 1e308),
    "before 1970": lambda: changed(-5.0, -2.0),
    "far away": lambda: changed(1e300, 1e300),
    "negative lost": lambda: changed(1.7e9, 1.7e9, -70_000),
    "much lost": lambda: changed(1.7e9, 1.7e9, 2**62),
    "hostile": hostile_records,
}
COMMANDS = {
    "runs": ("runs", "{}"), "list": ("list", "{}"), "runs as JSON": ("runs", "{}", "--json"),
    "report": ("report", "{}", "-o", "{}.html"), "markdown": ("report", "{}", "--format", "markdown"),
    "report as JSON": ("report", "{}", "--json"), "page": ("check", "{}", "--format", "html"),
    "sarif": ("check", "{}", "--format", "sarif"), "junit": ("check", "{}", "--format", "junit"),
    **{form: ("export", "{}", "-o", f"{{}}.{form}")
       for form in ("har", "jsonl", "mitm", "trace.json", "otlp.json", "pcapng")},
}  # fmt: skip


def strictly(name: str) -> object:
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_every_form_has_an_answer(run: Run, tmp_path: Path, name: str) -> None:
    path = save(tmp_path / "a.sqlite", *CAPTURES[name]())
    for command, line in COMMANDS.items():
        words = [word.replace("{}", str(path)) for word in line]
        status, out, err = run(*words)
        assert status in (0, 1), (command, err)
        texts = [out]
        if "-o" in words:
            output = tmp_path / words[-1]
            texts.append(output.read_text() if command in ("har", "jsonl", "trace.json", "otlp.json") else "")
        for text in texts:
            if command == "jsonl":
                for each in filter(None, text.splitlines()):
                    if each.startswith("{"):
                        json.loads(each, parse_constant=strictly)
            elif text.startswith(("{", "[")) and command != "report":
                json.loads(text, parse_constant=strictly)
            elif command == "junit":
                ET.fromstring(text)  # noqa: S314 - our own


def test_sarif_has_no_links_and_no_placeholders_but_its_own(run: Run, tmp_path: Path) -> None:
    message = "Evaluation Error: [Fix: sign in](https://evil.example/login) {0}"
    path = save(tmp_path / "a b#50%.sqlite", *talk(catalog(status=500, text=message)))
    _, out, _ = run("check", path, "--format", "sarif")
    results = json.loads(out)["runs"][0]["results"]
    (text,) = (each["message"]["text"] for each in results if "Fix: sign in" in each["message"]["text"])
    assert r"\[Fix: sign in\](https" in text
    assert "{{0}}" in text
    uris = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in results}
    assert uris == {f"{tmp_path}/a%20b%2350%25.sqlite"}


def test_junit_is_xml_whatever_the_file_is_called(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "a\x01\x1b.sqlite", *talk(catalog()))
    ET.fromstring(run("check", path, "--format", "junit")[1])  # noqa: S314 - our own

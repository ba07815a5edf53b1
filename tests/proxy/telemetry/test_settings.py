"""The options of metrics and spans: each mistake is one sentence, and what others can read is warned of."""

from __future__ import annotations

import pytest

from inspector.errors import InspectorError
from inspector.proxy.telemetry import settings
from tests.support.rows import each_row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1", ("127.0.0.1", 9140)), ("127.0.0.1:9999", ("127.0.0.1", 9999)), ("[::1]:9", ("::1", 9)),
        ("localhost:1", ("127.0.0.1", 1)),
    ],
)  # fmt: skip
def test_where_metrics_are_served(text: str, expected: tuple[str, int]) -> None:
    read = settings.read(text, "", certnames=False)
    assert read.metrics in (expected, ("::1", expected[1]))
    assert list(read.warnings()) == []
    assert any(f":{expected[1]}/metrics" in line for line in read.lines())


def test_nothing_is_the_default() -> None:
    read = settings.read("", "", certnames=False)
    assert read == settings.NOTHING
    assert [*read.lines(), *read.warnings()] == []


def test_an_address_that_others_reach_is_warned_of() -> None:
    (warning,) = settings.read("0.0.0.0:9140", "", certnames=True).warnings()
    assert "0.0.0.0:9140 can be reached from the network" in warning
    assert "certnames" in warning
    (warning,) = settings.read("", "http://collector.example:4318", certnames=False).warnings()
    assert warning.startswith("spans are sent to collector.example without encryption")
    assert list(settings.read("", "https://collector.example", certnames=False).warnings()) == []


@each_row("text", ["x y:1", "127.0.0.1:http", ":9140", "127.0.0.1:70000", "a" * 300, "no.such.invalid"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InspectorError):
        settings.read(text, "", certnames=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://otel.example/team", "https://otel.example/team/v1/traces"),
        ("https://otel.example/team/v1/traces", "https://otel.example/team/v1/traces"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
    ],
)
def test_where_spans_are_sent(text: str, expected: str) -> None:
    assert settings.read("", text, certnames=False).collector == expected


@each_row(
    "text",
    [
        "collector:4318", "ftp://collector", "http://", "http://user:secret@collector", "http://c:99999999",
        "http://c/?key=1", "http://c/\r\nX: y", "http://c d/", "http://[::1", "http://ü/",
    ],
)  # fmt: skip
def test_what_is_no_collector_is_refused(text: str) -> None:
    with pytest.raises(InspectorError, match="puppet_otlp is"):
        settings.read("", text, certnames=False)


def test_certnames_need_metrics() -> None:
    with pytest.raises(InspectorError, match="needs puppet_metrics"):
        settings.read("", "", certnames=True)

"""docs/coverage.md says what the tests and the recordings show, and leaves no endpoint out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.protocol.documents import Undecodable
from inspector.protocol.endpoints import ENDPOINTS
from tests.support import version_matrix
from tests.support.coverage_table import KNOWN, PAGE, REAL, Real, Row, all_captures, dump, load, made, page, recorded
from tests.support.recorded import ABSENT, RECORDINGS
from tests.support.version_matrix import Cell, Matrix, Played

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
def test_what_is_real_is_what_the_recordings_hold(golden: Callable[[Path, str], None]) -> None:
    golden(REAL, dump(recorded(all_captures())))


def test_the_page_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(PAGE, page(load(REAL.read_text()), version_matrix.load()))


def test_no_endpoint_is_missing() -> None:
    written = PAGE.read_text()
    assert [endpoint.name for endpoint in ENDPOINTS if f"\n| {endpoint.name} |" not in written] == []


def test_only_garbage_is_not_read() -> None:
    """A real body that can't be read is a defect, unless it was sent to see what becomes of it."""
    unread = {row for rows in load(REAL.read_text()).values() for row, real in rows.items() if real.undecodable}
    # curl's, in 19-curl-no-cert-and-foreign-node
    assert unread == {Row("certificate_request", "asked", "PEM"), Row("catalog", "asked", "form")}


def test_a_document_is_the_same_in_every_format() -> None:
    documents: dict[str, list[object]] = {}
    formats: dict[str, set[str]] = {}
    for name, form, decoder, message in made():
        documents.setdefault(name, []).append(decoder(message))
        formats.setdefault(name, set()).add(form)
    for name, decoded in documents.items():
        assert not isinstance(decoded[0], Undecodable)
        assert [other for other in decoded if other != decoded[0]] == [], name
        assert formats[name] == set(KNOWN[name])


def test_what_is_kept_comes_back() -> None:
    real = {"7.23.0": {Row("node", "answered", "JSON"): Real(2, 1)}}
    assert load(dump(real)) == real


def test_what_was_played_comes_back(tmp_path: Path) -> None:
    cells = {"run": Cell("2026-11-27", "exit status 0"), "proxy": Cell("2026-11-27", "exit status 0", "an error")}
    matrix = Matrix(
        {"8.10/8.7.0": Played("agent 8.10.0", {"renewal": cells})}, {"8.10.0": [["node", "answered", "JSON"]]}
    )
    (path := tmp_path / "versions.json").write_text(version_matrix.dump(matrix))
    assert version_matrix.load(path) == matrix
    assert "| renewal | exit status 0 | as expected | **an error** | not played |" in version_matrix.table(matrix)


def test_a_body_that_only_living_agents_had_says_so() -> None:
    row = Row("renewal", "answered", "PEM")
    lines = page({"7.23.0": {row: Real(2)}}, Matrix(bodies={"9.0.0-rc1": [[*row]]})).splitlines()
    assert "| renewal | answered | PEM | 2 | live | recorded |" in lines
    assert "| renewal | answered | PEM | live | live |" in page({}, Matrix(bodies={"9.0.0-rc1": [[*row]]})).splitlines()

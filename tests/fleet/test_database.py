"""DuckDB as it is opened."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.fleet import database
from tests.support import places

if TYPE_CHECKING:
    from pathlib import Path


def test_without_duckdb_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InspectorError) as raised, database.opened(tmp_path):
        pass
    assert "puppet-inspector[sql]" in raised.value.hint


def test_its_errors_are_ours(tmp_path: Path) -> None:
    with pytest.raises(database.DatabaseError, match="syntax error"), database.opened(tmp_path) as connection:
        connection.execute("SELEKT 1")


def test_ctrl_c_is_one_also_within_duckdb() -> None:
    with pytest.raises(KeyboardInterrupt), database.reported():
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="other"), database.reported():
        raise RuntimeError("another one")


def test_it_fetches_no_extension(tmp_path: Path) -> None:
    with database.opened(tmp_path) as connection:
        settings = "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%_known_extensions' ORDER BY 1"
        assert [value for _, value in connection.execute(settings).fetchall()] == ["false", "false"]


@pytest.mark.parametrize("value", ["plain", "it's", "'; DROP TABLE x; --", "\\", "é\n"])
def test_a_text_is_a_literal(tmp_path: Path, value: str) -> None:
    with database.opened(tmp_path) as connection:
        assert connection.execute(f"SELECT {database.text(value)}").fetchall() == [(value,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["tables", "CAPTURE", "-o", "T", "--site", "p"], ["sql", "CAPTURE", "select 1"], ["certificates", "CAPTURE"],
     ["fleet", "analyse", "CAPTURE", "-o", "T", "--site", "p"]],
    ids=lambda words: words[0],
)  # fmt: skip
@pytest.mark.parametrize("most", [4096, 65536])
def test_a_full_disk_is_one_sentence(tmp_path: Path, words: list[str], most: int) -> None:
    """As it opens, and later; a limit of the process does the same as a disk without room."""
    script = (
        "import resource, signal, sys\n"
        "from inspector.cli.main import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    given = [str(places.SAMPLES / "first-run.sqlite") if word == "CAPTURE" else word for word in words]
    done = subprocess.run([sys.executable, "-c", script, *given], capture_output=True, text=True, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.returncode == 2
        assert "There is no room left on the disk, or a file becomes larger than it may.\n  Make room" in done.stderr
    assert done.returncode or most > 4096
    assert not list(tmp_path.rglob("*.parquet")) or not done.returncode, "no part of a capture is left"

"""The version, and what a bug report needs."""

from __future__ import annotations

import os
import platform
import socket
from importlib import metadata
from typing import TYPE_CHECKING

from inspector import __version__, installation

if TYPE_CHECKING:
    import pytest

    from tests.conftest import Run


def test_the_version_in_a_line(run: Run) -> None:
    assert run("--version") == (0, f"puppet-inspector {__version__}\n", "")


def test_what_a_bug_report_needs(run: Run) -> None:
    status, out, err = run("--version", "--verbose")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"puppet-inspector {__version__} (checkout)"
    assert lines[1].startswith(f"Python {platform.python_version()} (")
    for name in ("mitmproxy", "textual", "cryptography", "google-re2"):
        assert f"{name} {metadata.version(name)}" in lines
    assert [line.partition(" ")[0] for line in lines[-3:-1]] == ["OpenSSL", "SQLite"]
    assert run("--verbose", "--version") == (0, out, "")


def test_nothing_about_the_site_is_in_it(run: Run) -> None:
    _, out, _ = run("--version", "--verbose")
    here = (socket.gethostname(), platform.release(), str(installation.PACKAGE.parent), os.environ["HOME"])
    assert [word for word in here if word in out] == []


def test_how_it_was_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "ONE_FILE", True)
    assert f"{__version__} (one-file build)" in run("--version", "--verbose")[1]

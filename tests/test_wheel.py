"""What depends on where files lie, from an installed wheel: no checkout is near."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    type Command = Callable[..., str]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of packages with the wheel in it, made without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(places.ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def command(site: Path, tmp_path: Path) -> Command:
    """Runs puppet-inspector as installed, in a directory of its own; returns what it prints."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "HOME": str(tmp_path)}

    def run(*words: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "inspector.cli", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (status, ""), done.stderr
        return done.stdout

    return run


def test_the_program_is_there_and_is_the_installed_one(site: Path, command: Command) -> None:
    assert "puppet-inspector" in command("--help")
    assert "(installed package)" in command("--version", "--verbose")
    assert "B01" in command("explain", "B01")
    assert (site / "bin" / "puppet-inspector").is_file()


def test_the_addon_is_a_file_of_the_installation(site: Path, command: Command) -> None:
    assert command("addon").strip() == str(site / "inspector" / "addons" / "puppet.py")
    assert (site / "inspector" / "addons" / "puppet.py").is_file()


def test_a_source_leads_to_its_section(site: Path, command: Command) -> None:
    (section,) = re.findall(r"docs/protocol\.md#\S+(?=;)", command("explain", "B05"))
    assert command("explain", section).startswith("CA download\n\nOnly a node without")
    assert (site / "inspector" / "docs" / "protocol.md").is_file()


def test_a_packaged_sample_is_read(site: Path, command: Command) -> None:
    assert "node1.example" in command("runs", str(site / "inspector" / "samples" / "first-run.sqlite"))


def test_a_report_has_its_templates(site: Path, tmp_path: Path, command: Command) -> None:
    words = ("report", str(site / "inspector" / "samples" / "revoked.sqlite"), "--format")
    assert command(*words, "markdown").startswith("# 1 node failing, ")
    page = command("check", str(site / "inspector" / "samples" / "first-run.sqlite"), "--format", "html")
    assert page.startswith("<!DOCTYPE html>")
    assert "<style>:root" in page


def test_the_demo_records_with_the_real_proxy(tmp_path: Path, command: Command) -> None:
    assert "web1.lab.example" in command("demo", "-o", str(tmp_path / "demo.sqlite"))
    assert (tmp_path / "demo.sqlite").is_file()


def test_the_index_is_made_by_a_process_of_its_own(site: Path, tmp_path: Path) -> None:
    """By the name of a module, which must be the installed one."""
    code = (
        "import pathlib, shutil, sys; import inspector\n"
        "from inspector.summaries.source import Source\n"
        "assert pathlib.Path(inspector.__file__).is_relative_to(sys.argv[1]), inspector.__file__\n"
        "copy = shutil.copy(pathlib.Path(sys.argv[1], 'inspector/samples/first-run.sqlite'), 'c.sqlite')\n"
        "source = Source(pathlib.Path(copy))\n"
        "source._indexer.wait()\n"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(site)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.sqlite.index").is_file()

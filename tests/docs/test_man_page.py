"""The manual page: up to date, in the wheel, and without a complaint of groff, where that is installed."""

from __future__ import annotations

import shutil
import subprocess
import tomllib

import pytest

from inspector.cli import commands
from tests.docs import man_page
from tests.support.places import ROOT


def test_it_is_what_the_parsers_say() -> None:
    assert man_page.PLACE.read_text(encoding="utf-8") == man_page.page(), "run `make docs`"


def test_it_names_every_command_and_option() -> None:
    plain = man_page.page().replace("\\-", "-")
    for name in commands.COMMANDS:
        assert f"puppet-inspector {name}" in plain
        assert all(option in plain for option in commands.options(commands.parser_of(name)))


def test_the_wheel_puts_it_where_man_looks() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["shared-data"] == {"docs/puppet-inspector.1": "share/man/man1/puppet-inspector.1"}


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_groff_takes_every_line() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-z", man_page.PLACE], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""

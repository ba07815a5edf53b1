"""Completion as the shells do it, where they are installed; bash is everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from inspector.cli import commands

if TYPE_CHECKING:
    from tests.conftest import Run

CASES = {
    "run": {"run", "runs"},
    "open --th": {"--theme"},
    "open --theme ": {"dark", "light", "contrast"},
    "check --fail-on w": {"warning"},
    "completion ": {"bash", "zsh", "fish"},
    "captures m": {"merge"},
    "--ver": {"--version", "--verbose"},
}


def absent(shell: str) -> bool:
    """Whether a shell cannot be tried; in CI all are there."""
    return os.environ.get("PUPPET_INSPECTOR_REAL") != "required" and not shutil.which(shell)


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "words"), CASES.items())
def test_bash_completes(run: Run, typed: str, words: set[str]) -> None:
    status, script, _ = run("completion", "bash")
    assert status == 0
    line = f"puppet-inspector {typed}".split(" ")
    given = " ".join(f"'{word}'" for word in line)
    asks = f"COMP_WORDS=({given}); COMP_CWORD={len(line) - 1}; _puppet_inspector"
    act = f"{script}\n{asks}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "--norc", "-c", act], capture_output=True, text=True, check=True)
    assert (set(done.stdout.split()), done.stderr) == (words, "")


@pytest.mark.slow
@pytest.mark.skipif(absent("fish"), reason="fish is not installed")
@pytest.mark.parametrize(("typed", "words"), [case for case in CASES.items() if case[0] != "--ver"])
def test_fish_completes(run: Run, typed: str, words: set[str]) -> None:
    script = run("completion", "fish")[1]
    act = f"{script}\ncomplete -C 'puppet-inspector {typed}'"
    done = subprocess.run(["fish", "--no-config", "-c", act], capture_output=True, text=True, check=True)
    assert ({line.split("\t")[0] for line in done.stdout.splitlines()}, done.stderr) == (words, "")


@pytest.mark.slow
@pytest.mark.skipif(absent("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize(("typed", "words"), CASES.items())
def test_zsh_completes(run: Run, typed: str, words: set[str]) -> None:
    script = run("completion", "zsh")[1]
    line = f"puppet-inspector {typed}".split(" ")
    given = " ".join(f"'{word}'" for word in line)
    act = (
        f"compdef() {{ }}; compadd() {{ shift; print -l -- $@ }}; _files() {{ }}\n{script}\n"
        f"words=({given}); CURRENT={len(line)}; _puppet_inspector"
    )
    done = subprocess.run(["zsh", "-f", "-c", act], capture_output=True, text=True, check=True)
    offered = {word for word in done.stdout.split() if word.startswith(line[-1])}  # zsh itself does that
    assert (offered, done.stderr) == (words, "")


@pytest.mark.slow
def test_every_command_and_option_is_in_every_script(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = run("completion", shell)[1]
        for name in commands.COMMANDS:
            assert all(word in script for word in name.split())
            for option in commands.options(commands.parser_of(name)):
                assert option.lstrip("-") in script


def test_another_shell_is_refused(run: Run) -> None:
    status, _, err = run("completion", "tcsh")
    assert status == 2
    assert "bash" in err

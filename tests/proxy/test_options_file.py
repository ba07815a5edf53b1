"""The options that a service reads from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.proxy import options, options_file, workers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


def test_each_line_is_an_option(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("# why\npuppet_master: a.example:8140\npuppet_unsafe_keys: true\npuppet_only:\n"
                    "puppet_rotate_mb: 12\npuppet_listen: [127.0.0.1:1, 127.0.0.1:2]\n")  # fmt: skip
    words = options_file.assignments_of(file)
    assert words == ["puppet_master=a.example:8140", "puppet_unsafe_keys=true", "puppet_rotate_mb=12",
                     "puppet_listen=127.0.0.1:1", "puppet_listen=127.0.0.1:2"]  # fmt: skip
    assert options.parse_assignments(words[:2]) == {"puppet_master": "a.example:8140", "puppet_unsafe_keys": True}


def test_a_file_of_comments_sets_nothing(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("# puppet_master: a.example\n")
    assert options_file.assignments_of(file) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"puppet_master: a: b\n", "is no YAML (line 1)"),
        (b"\xff\xfe", "is no YAML"),
        (b"- puppet_master\n", "sets no options"),
        (b"puppet_master\n", "sets no options"),
        (b"puppet_master: {a: b}\n", "puppet_master is no single value"),
        (b"[" * 5000, "is no YAML"),
        (b"a: !!python/object/apply:os.system [true]\n", "is no YAML (line 1)"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: bytes, expected: str) -> None:
    file = tmp_path / "conf"
    file.write_bytes(text)
    with pytest.raises(InspectorError) as raised:
        options_file.assignments_of(file)
    assert expected in raised.value.message
    assert raised.value.hint


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match=r"Cannot read .*: No such file"):
        options_file.assignments_of(tmp_path / "none")


def test_the_command_line_comes_before_the_file(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[object, int]] = []

    def start(values: object, number: int) -> int:
        started.append((values, number))
        return 0

    monkeypatch.setattr(workers, "run", start)
    file = tmp_path / "conf"
    file.write_text("puppet_identity: none\npuppet_master: a.example\n")
    assert run("proxy", "--options", file, "--set", "puppet_identity=headers")[0] == 0
    assert started == [({"puppet_identity": "headers", "puppet_master": "a.example"}, 1)]
    file.write_text("puppet_mastr: a.example\n")
    status, out, err = run("proxy", "--options", file)
    assert (status, out) == (2, "")
    assert "Do you mean puppet_master" in err

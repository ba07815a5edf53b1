"""Puppetserver's own libraries in a process of their own: thousands of answers in the time of one request.

What they say of a file, a path, a query or an expression is what the server itself does with it, before any socket.
"""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.real.machine import SERVER_JAR

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCRIPT = Path(__file__).with_suffix(".clj")
_LIBRARIES = Path("/usr/share/java")


def ask(questions: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the answers: ``answer``, or ``error``."""
    jars = [SERVER_JAR, *(_LIBRARIES / f"{name}.jar" for name in ("cheshire", "jackson-core", "tigris"))]
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars)), "clojure.main", str(_SCRIPT)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
    ) as process, ThreadPoolExecutor(1) as writer:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        written = writer.submit(_write, process.stdin, questions)
        answers = [json.loads(line) for line in process.stdout]
        written.result()
    assert len(answers) == len(questions)
    return answers


def _write(to: Any, questions: Sequence[dict[str, str]]) -> None:
    with to:
        for question in questions:
            to.write(json.dumps(question) + "\n")

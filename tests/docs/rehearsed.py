"""The rehearsal that docs/rehearse.md quotes: four nodes and a master of the tests' lab."""

from __future__ import annotations

import itertools
import re
import shlex
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.runs.examples import catalog, report, talk, together
from tests.support.captures import save
from tests.support.compared import file
from tests.support.rehearsals import failing, new_master

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Request, Response

NODES = ("db.example", "mail.example", "web1.example", "web2.example")
WARNING = {"level": "warning", "message": "Unknown variable: 'site::proxy'", "file": "/m/profile/manifests/web.pp",
           "line": 12}  # fmt: skip
SLOW = r"^    \S+: \S+ m?s -> \S+ m?s  \(\S+ times\)\n"
"""A line of a node whose catalog took longer: which do depends on the machine."""


def _resources(name: str) -> list[dict[str, Any]]:
    web = [file("/etc/nginx/nginx.conf", mode="0644", content="workers 2;\nlog off;\n")] if "web" in name else []
    return [file("/etc/motd", content=f"{name}\n"), file("/etc/seed", content="1f0c"), *web]


def _compiles() -> Callable[..., list[dict[str, Any]] | Response]:
    counter = itertools.count()

    def compiles(name: str, *_: Any) -> list[dict[str, Any]] | Response:
        if name == "mail.example":
            return failing("Evaluation Error: Unknown function: 'str2bool'. (file: /m/mail/manifests/init.pp, line: 3)")
        changed = {"mode": "0640", "content": "workers auto;\nlog off;\n"}
        made = [each | {"parameters": each["parameters"] | changed} if "nginx" in each["title"] else each
                for each in _resources(name)]  # fmt: skip
        return [each | {"parameters": {"content": f"{next(counter):04x}"}} if "seed" in each["title"] else each
                for each in made]  # fmt: skip

    return compiles


def output(command: str, on_a_terminal: Callable[[list[str], Path], str], program: Path) -> str:
    """What the command prints, with the name of the master that it names."""
    _, *words = shlex.split(command)
    talks = [talk(catalog(resources=_resources(name)), report(), certname=name, after=60.0 * number)
             for number, name in enumerate(NODES)]  # fmt: skip

    def slow(_: Request) -> None:
        time.sleep(0.1)

    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "captures").mkdir()
        save(folder / "captures/fleet.sqlite", *together(*talks))
        with new_master(folder, _compiles(), before=slow, logs=[WARNING]) as new:
            given = [new.address if word == "new.example" else word for word in words]
            printed = on_a_terminal([str(program), *given, *map(str, new.v4[2:])], folder)
    return re.sub(SLOW, "", printed, flags=re.MULTILINE).replace(new.address, "new.example:8140")

"""The paths of this installation (package, addon, samples, protocol page), and the command that starts another process.

No other module may derive a path from ``__file__``: it would change when the module moves.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parent
"""The directory of the package ``inspector``."""
ONE_FILE = bool(getattr(sys, "frozen", False))
"""Whether this is the build that contains its Python (``make onefile``): there, no interpreter can be started."""
PROCESS = "--process"
"""The first word of that build's command line if it is another process of ours; a module and its arguments follow."""
_CODE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from {} import main; sys.exit(main(sys.argv[1:]))"


def addon() -> Path:
    """Return the addon's file: below ``addons/`` in a checkout, inside the package in an installed wheel.

    Raises InspectorError if it is missing.
    """
    return _file("addons/puppet.py", "addons/puppet.py", "addon")


def samples() -> Path:
    """Return the directory of the sample captures. Raises InspectorError if it is missing."""
    return _file("captures/samples", "samples", "directory of sample captures")


def protocol_page() -> Path:
    """Return docs/protocol.md, which rules and endpoints cite. Raises InspectorError if it is missing."""
    return _file("docs/protocol.md", "docs/protocol.md", "page docs/protocol.md")


def messages() -> bytes:
    """Return the known messages, compiled (``inspector.analysis.known_errors``)."""
    return (PACKAGE / "messages/compiled.json").read_bytes()


def origins() -> bytes:
    """Return where programs print their messages (``inspector.analysis.origins``)."""
    return (PACKAGE / "messages/origins.msgpack").read_bytes()


def rule_texts() -> Iterator[tuple[str, bytes]]:
    """Yield the names and the source texts of the modules in ``inspector.rules``; none if they are not installed."""
    for path in PACKAGE.glob("rules/*.py"):
        yield path.stem, path.read_bytes()


def _file(in_checkout: str, in_package: str, name: str) -> Path:
    for path in (PACKAGE.parent / in_checkout, PACKAGE / in_package):
        if path.exists():
            return path
    raise InspectorError(f"The {name} is missing from this installation.", "Install puppet-inspector again.")


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs ``main(arguments)`` of a module of this package in another process.

    It imports this installation, whatever the working directory contains (``-P``).
    """
    if ONE_FILE:
        return [sys.executable, PROCESS, module, *arguments]
    return [sys.executable, "-P", "-c", _CODE.format(module), str(PACKAGE.parent), *arguments]


def typed(*words: str) -> str:
    """Return a command line of this program that works where it was started, as it was started."""
    program = sys.argv[0]
    name = Path(program).name
    if Path(program).resolve() == PACKAGE / "cli/__main__.py":
        start = [sys.executable, "-m", "inspector.cli"]
    elif name.startswith("puppet-inspector"):
        found = shutil.which(name)
        start = [name if found and Path(found).samefile(program) else program]
    else:  # it was not started by its name: a test, another program
        start = ["puppet-inspector"]
    return shlex.join([*start, *words])


def digest() -> str:
    """Return a digest of the code, by the names, sizes and times of its files: an edited rule changes it."""
    files = [Path(sys.executable)] if ONE_FILE else sorted([*PACKAGE.rglob("*.py"), *PACKAGE.glob("messages/*.json")])
    found = hashlib.sha256()
    for path in files:
        status = path.stat()
        name = path.name if ONE_FILE else path.relative_to(PACKAGE)
        found.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]

"""All benches, one after the other: `python -m tests.bench [--write] [NAME ...]` (some 30 minutes; or: make bench).

Each runs in a process of its own and prints its tables. ``--write`` puts them into docs/performance.md or
docs/report.md, with the day, the versions and the machine, between the markers of each name; what stands around them is
said by hand.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata

from cryptography.hazmat.backends.openssl import backend

from tests.support import places

PAGES = (places.DOCS / "performance.md", places.DOCS / "report.md")
BENCHES: dict[str, tuple[str, ...]] = {
    "proxy": (),
    "wire": (),
    "large": (),
    "steady_state": (),
    "capture": (),
    "analysis": (),
    "leaving": (),
    "fleet": (),
    "compare": (),
    "rehearsal": (),
    "terminal": (),
    "start": (),
    "report": (),
}
"""Each bench with its arguments."""


def run(name: str) -> str | None:
    """What a bench prints; None if it could not be made."""
    command = [sys.executable, "-m", f"tests.bench.{name}", *BENCHES[name]]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines).strip() if process.returncode == 0 else None


def circumstances(name: str, busy: float) -> str:
    """When, where and with what a bench was made; ``busy``: the machine's load before it began."""
    versions = [
        f"mitmproxy {metadata.version('mitmproxy')}",
        f"Python {platform.python_version()} (built {_how()} --enable-optimizations)",
        " ".join(backend.openssl_version_text().split()[:2]),
        *(f"{tool} {_version(tool)}" for tool in ("puppet", "puppetserver") if shutil.which(tool)),
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    command = " ".join(["python -m", f"tests.bench.{name}", *BENCHES[name]])
    return (
        f"`{command}`, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}: {', '.join(versions)}; "
        f"{os.cpu_count()} cores, {memory:.0f} GB ({platform.machine()}), load {busy:.1f} before it began."
    )


def _how() -> str:
    """Whether this Python was built with its profile, which makes it a fifth to a third faster."""
    return "with" if "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")) else "without"


def _version(tool: str) -> str:
    output = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", output)
    return found[0] if found else "of unknown version"


def write(name: str, text: str) -> None:
    """Replace what stands between the markers of a bench, in the page that has them."""
    begin, end = f"<!-- bench:begin {name} -->\n", f"<!-- bench:end {name} -->\n"
    for page in PAGES:
        before, found, rest = page.read_text().partition(begin)
        _, ended, after = rest.partition(end)
        if found and ended:
            page.write_text(f"{before}{begin}{text}\n{end}{after}")
            return
    raise SystemExit(f"no page has a place for {name}")


def main() -> int:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in BENCHES]:
        parser.error(f"no bench {unknown[0]}")
    failed = []
    for name in given.names or BENCHES:
        busy = os.getloadavg()[0]
        print(f"# {name}\n", flush=True)
        text = run(name)
        if text is None:
            failed.append(name)
        elif given.write:
            write(name, f"{circumstances(name, busy)}\n\n{text}")
        print(flush=True)
    if failed:
        print(f"not made: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

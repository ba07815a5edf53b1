"""Many agents of the lab at once, as a program of its own: at one of the hosts of ``namespaces``."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from inspector.lab.agent import LabAgent
from inspector.lab.wire import ServerAddress


def main(folder: Path, server: ServerAddress, names: list[str]) -> None:
    """Print the exit status and the seconds of each run."""

    def run(name: str) -> tuple[int, float, str]:
        began = time.monotonic()
        result = LabAgent(name, folder / name, server).run()
        return result.status, time.monotonic() - began, result.log[-1] if result.log else ""

    with ThreadPoolExecutor(len(names)) as pool:
        json.dump(list(pool.map(run, names)), sys.stdout)


if __name__ == "__main__":
    folder, name, host, port, *names = sys.argv[1:]
    main(Path(folder), ServerAddress(name, (host, int(port))), names)

"""Record `captures/samples/versions`: agent 8.10 and OpenVox 9 with Puppet Server 8.7 (`python -m
tests.real.record_versions`, as root, some minutes).

Each gets its certificate and makes its first run; the next one renews the certificate and finds nothing to do. What the
samples contain of a machine is made up, as in ``record_samples``.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.real import releases
from tests.real.machine import host_names, missing
from tests.real.puppet import RealMaster
from tests.real.record_samples import AGENTS, MASTER, SAMPLES, publish
from tests.real.through import PROXY_HOST, PROXY_NAME, Stage

FOLDER = SAMPLES / "versions"
VERSIONS = {"puppet-8": ("node8.example", "trixie"), "openvox-9": ("node9.example", "sid")}
"""Of each sample its node, and the release of Debian that has its agent."""
RENEWING = {"allow-auto-renewal": True, "auto-renewal-cert-ttl": "3d"}


def record(directory: Path) -> None:
    """Record both samples anew."""
    with ExitStack() as stack:
        stack.enter_context(host_names({PROXY_NAME: PROXY_HOST}))
        for base in (MASTER, AGENTS):
            if base.exists():
                raise SystemExit(f"{base} exists; it is needed for the recording, and removed afterwards.")
        master = RealMaster(
            "puppet.example", host="127.0.7.2", base=MASTER, autosign="node*.example", system=releases.stored("trixie"),
            ca_settings=RENEWING,
        )  # fmt: skip
        stack.enter_context(master)
        master.generate(PROXY_NAME)
        AGENTS.mkdir()
        stack.callback(shutil.rmtree, AGENTS)
        stage = Stage(master, AGENTS, own=True)
        stack.callback(stage.close)
        for name, (certname, release) in VERSIONS.items():
            agent = stage.agent(certname, system=releases.stored(release))
            stage.capture = directory / f"{name}.sqlite"
            with stage.proxy(f"keys:{agent.ssldir}") as road:
                runs = [road.run(agent) for _ in range(2)]
            assert [done.status for done in runs] == [2, 0], "\n".join(done.output for done in runs)


def main() -> None:
    """Record, and publish only when everything was recorded."""
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as directory:
        record(Path(directory))
        FOLDER.mkdir(exist_ok=True)
        for capture in sorted(Path(directory).glob("*.sqlite")):
            publish(capture, FOLDER)
            print(f"{capture.name}  {capture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

"""Two masters of one CA behind nginx, each behind a proxy, and a proxy before the CA: three places, three captures;
with one before PuppetDB, four.

``one.example`` is the CA too; ``two.example``, which may be of another release, has no CA service, a certificate of
that CA, and code of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from inspector.host import pki
from inspector.proxy.launcher import Proxy
from tests.real.machine import end, free_port, host_names
from tests.real.openvox_ca import NO_CA
from tests.real.puppet import RealMaster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.real.agent import CompletedRun, RealAgent
    from tests.real.releases import System

STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so"
BALANCER, BALANCER_HOST = "balanced.example", "127.0.9.3"
AUTHORITY, PROXY = "authority.example", "places.example"
"""Names that no other test has at another address: they are played at once."""


class SecondMaster(RealMaster):
    """A puppetserver without a CA service, with a certificate of another one's CA."""

    def __init__(self, first: RealMaster, name: str, host: str, system: System | None = None) -> None:
        super().__init__(name, host=host, system=system)
        self.first = first

    def ca(self, action: str, *arguments: str) -> str:
        if action != "setup":
            return self.first.ca(action, *arguments)
        (self.confdir / "services.d/ca.cfg").write_text(NO_CA)
        self.first.generate(self.name)
        for kind in ("private_keys", "certs"):
            (self.ssldir / kind).mkdir(parents=True, exist_ok=True)
            shutil.copy(self.first.ssldir / kind / f"{self.name}.pem", self.ssldir / kind)
        self.copy_trust()
        self.give_to_puppet(self.confdir)
        return ""

    def copy_trust(self) -> None:
        """Copy the CA's bundle and CRLs, as an administrator has to: the server reads them at its next start."""
        shutil.copy(self.first.ssldir / "certs/ca.pem", self.ssldir / "certs/ca.pem")
        shutil.copy(self.first.cadir / "ca_crl.pem", self.ssldir / "crl.pem")


class Balanced:
    """The site, running; ``captures`` are those of the places ``ca``, ``one`` and ``two``."""

    def __init__(self, first: RealMaster, second: SecondMaster, folder: Path) -> None:
        self.first, self.second, self.folder = first, second, folder
        self.captures = {name: folder / f"{name}.sqlite" for name in ("ca", "one", "two")}
        self.port = free_port(BALANCER_HOST)
        self._pem = folder / "proxy.pem"
        if not (first.ssldir / f"certs/{PROXY}.pem").exists():
            first.generate(PROXY, (PROXY, BALANCER, AUTHORITY))
        parts = [first.ssldir / kind / f"{PROXY}.pem" for kind in ("private_keys", "certs")]
        pki.write_private(self._pem, b"".join(part.read_bytes() for part in parts))

    @contextmanager
    def proxies(self, clocks: Mapping[str, str]) -> Iterator[None]:
        """Let the proxies run, each with a clock (as faketime has it), and nginx before two of them."""
        with ExitStack() as stack:
            stack.enter_context(host_names({BALANCER: BALANCER_HOST, AUTHORITY: "127.0.9.10", PROXY: "127.0.9.10"}))
            ports = {}
            for number, (name, capture) in enumerate(self.captures.items()):
                master = self.second if name == "two" else self.first
                crl = self.second.ssldir / "crl.pem" if name == "two" else self.first.cadir / "ca_crl.pem"
                proxy = self._proxy(f"127.0.9.1{number}", f"{master.name}:{master.port}", crl, capture)
                with _clock(clocks.get(name)):
                    stack.enter_context(proxy)
                ports[name] = proxy.address[1]
            self.ca_port = ports["ca"]
            conf = self.folder / "nginx.conf"
            conf.write_text(
                f"load_module {STREAM}; daemon off; pid {self.folder}/nginx.pid; error_log {self.folder}/nginx.log;\n"
                f"worker_processes 1; events {{}}\nstream {{ upstream compilers {{\n"
                f"server 127.0.9.11:{ports['one']}; server 127.0.9.12:{ports['two']}; }}\n"
                f"server {{ listen {BALANCER_HOST}:{self.port}; proxy_bind {BALANCER_HOST}; "
                "proxy_pass compilers; } }\n"
            )
            process = subprocess.Popen(["nginx", "-c", f"{conf}", "-e", f"{self.folder}/nginx.log"])
            stack.callback(end, process)
            while not (self.folder / "nginx.pid").exists():
                assert process.poll() is None, (self.folder / "nginx.log").read_text()
                time.sleep(0.05)
            yield

    @contextmanager
    def before_puppetdb(self, address: str, clock: str | None = None) -> Iterator[str]:
        """Let a proxy run before PuppetDB, whose address is given, by a clock (as faketime has it); yields where the
        masters find it. Its capture is ``puppetdb``."""
        capture = self.captures["puppetdb"] = self.folder / "puppetdb.sqlite"
        listen = f"127.0.9.10:{free_port('127.0.9.10')}"
        with ExitStack() as stack:
            with _clock(clock):
                proxy = stack.enter_context(self._proxy(listen, address, self.first.cadir / "ca_crl.pem", capture))
            yield f"{PROXY}:{proxy.address[1]}"

    def _proxy(self, listen: str, server: str, crl: Path, capture: Path) -> Proxy:
        return Proxy(
            {
                "puppet_cert": self._pem,
                "puppet_ca": self.first.ssldir / "certs/ca.pem",
                "puppet_crl": crl,
                "puppet_identity": f"mint:{self.first.cadir}",
                "puppet_capture": capture,
                "puppet_listen": listen,
                "puppet_master": server,
            },
            own=True,
        )

    @property
    def authority(self) -> tuple[str, ...]:
        """The agent's options for a CA that is reached past the balancer."""
        return "--ca_server", AUTHORITY, "--ca_port", f"{self.ca_port}"

    def run(self, agent: RealAgent, *extra: str) -> CompletedRun:
        """One run through the balancer."""
        return agent.run(server=BALANCER, port=self.port, extra=(*self.authority, *extra))

    def pause(self, master: RealMaster, agent: RealAgent) -> None:
        """Let a master's catalog of an agent begin with 5 s of silence: for longer an agent keeps no connection."""
        demo = f"class {{ 'demo': target => '{agent.target}', notice => false }}"
        master.manifest(agent.certname, f"exec {{ '/bin/sleep 5': }} -> {demo}")


@contextmanager
def _clock(offset: str | None) -> Iterator[None]:
    """Start processes by another clock, as faketime has it; None: by the host's."""
    library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
    with mock.patch.dict("os.environ", {"LD_PRELOAD": library, "FAKETIME": offset} if offset else {}):
        yield

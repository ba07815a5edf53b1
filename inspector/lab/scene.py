"""Set up the lab: one CA, one running master, the proxy's certificate, and agents on request.

The lab starts no proxy: the caller that does sets ``proxy_address``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inspector.host import pki
from inspector.lab.agent import LabAgent
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.lab.wire import ServerAddress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Exchange


class Lab:
    """A lab that runs while its context is entered.

    ``directory`` should be new or empty, and stays; the default is a temporary one, which is removed.
    ``answers`` is a recorded run of a real agent, which the master replays. ``trust_headers``: the master takes
    identities from ``X-Client-*`` headers. ``spread``: each machine has a loopback address of its own, as on a network.
    """

    master_name = "puppet.lab.example"
    proxy_name = "proxy.lab.example"
    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def __init__(
        self,
        directory: Path | None = None,
        answers: Sequence[Exchange] = (),
        *,
        autosign: bool = False,
        trust_headers: bool = False,
        spread: bool = False,
    ) -> None:
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="puppet-lab-")
            directory = Path(self._temporary.name)
        self.directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.answers = answers
        self.ca = LabCA(self.master_name, autosign=autosign)
        self.cadir = self.directory / "ca"
        """For the proxy's identity mode ``mint``."""
        self.ca.write_cadir(self.cadir)
        self.identities = self.directory / "identities"
        """``<certname>.pem`` with key and certificate of every enrolled agent, for the identity mode ``keys``."""
        self.identities.mkdir(mode=0o700, exist_ok=True)
        self.proxy_ssldir = self.directory / "proxy"
        self._proxy = self.ca.enrol(self.proxy_ssldir, self.proxy_name)
        self.proxy_address: tuple[str, int] | None = None
        """The address of the proxy; None: agents connect to the master directly."""
        place = self.ca.enrol(self.directory / "master", self.master_name, ("puppet",))
        self.master = LabMaster(self.ca, place, answers, trust_headers=trust_headers)
        self.master_address = self.master.address
        self.agents: dict[Path, LabAgent] = {}
        """The agents, by their directory."""
        self._addresses: dict[str, str] | None = {} if spread else None
        """The address of each machine, by its directory."""

    def __enter__(self) -> Self:
        self.master.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.master.__exit__()
        if self._temporary:
            self._temporary.cleanup()

    def agent(
        self,
        certname: str,
        proxy_address: tuple[str, int] | None = None,
        *,
        server_name: str | None = None,
        directory: str | None = None,
        enrolled: bool = False,
        source: str = "",
        **options: Any,
    ) -> LabAgent:
        """Return an agent; ``options`` are those of ``LabAgent``. The same ``directory`` means the same machine.

        ``enrolled``: the agent has its certificate and has run before, without traffic. ``source``: its address, if
        it is not that of all other agents.
        """
        machine = directory or certname
        if self._addresses is not None:
            source = source or self._addresses.setdefault(machine, f"127.0.0.{len(self._addresses) + 2}")
        address = proxy_address or self.proxy_address
        name = server_name or (self.proxy_name if address else self.master_name)
        agent = LabAgent(
            certname,
            self.directory / "agents" / machine,
            ServerAddress(name, address or self.master_address, source),
            identities=self.identities,
            **options,
        )
        self.agents[agent.directory] = agent
        if enrolled:
            place = self.ca.enrol(agent.place.path, certname)
            identity = place.key.read_bytes() + place.certificate.read_bytes()
            pki.write_private(self.identities / f"{certname}.pem", identity)
            agent.remember_run("unchanged")
        return agent

    def revoke(self, certname: str) -> None:
        """Revoke a certificate, and update the proxy's CRL, as the agent on the proxy's host would do."""
        self.ca.revoke(certname)
        self._proxy.crl.write_bytes(self.ca.crl_bundle)

    def restore(self, certname: str) -> None:
        """Take back what breaks the master or the CA, and forget a node: the CA's part of its certificate, and the
        directories of all agents with its name."""
        self.master.instead.clear()
        self.ca.clean(certname)
        self.ca.publish_crl()
        self._proxy.crl.write_bytes(self.ca.crl_bundle)
        (self.identities / f"{certname}.pem").unlink(missing_ok=True)
        for directory, agent in list(self.agents.items()):
            if agent.certname == certname:
                del self.agents[directory]
                shutil.rmtree(directory, ignore_errors=True)

"""Set up the lab: one CA, one running master, the proxy's certificate, and agents on request.

The lab starts no proxy: the caller that does sets ``proxy_address``.
"""

from __future__ import annotations

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
    identities from ``X-Client-*`` headers.
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
        address = proxy_address or self.proxy_address
        name = server_name or (self.proxy_name if address else self.master_name)
        agent = LabAgent(
            certname,
            self.directory / "agents" / (directory or certname),
            ServerAddress(name, address or self.master_address, source),
            identities=self.identities,
            **options,
        )
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

"""Who agents are towards the master whose place the proxy has taken. Who has no identity reaches the master itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.errors import IdentityError
from inspector.host import pki
from inspector.protocol.oids import AUTHORIZATION_OIDS
from inspector.proxy.identity import Mint, NoIdentity

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography import x509

    from inspector.proxy.identity import Credentials

PRIVILEGED = {oid: name for oid, name in AUTHORIZATION_OIDS.items() if name in ("pp_cli_auth", "pp_auth_role")}
"""Extensions by which a master grants more than to other nodes."""


class Minted(Mint):
    """A certificate of the master's own CA, but for who may do more than other nodes."""

    def __init__(self, cadir: Path) -> None:
        # Who else can read the CA's key is not changed by us.
        super().__init__(cadir, unsafe=True)

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        names = [PRIVILEGED.get(extension.oid.dotted_string) for extension in pki.puppet_extensions(agent)]
        if found := ", ".join(name for name in names if name):
            raise IdentityError(f"its certificate has {found}, which is never signed again")
        return super().credentials_for(agent, certname)


class Nobody(NoIdentity):
    """No identity, where the CA's key is not: only agents without a certificate can be served."""

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        raise IdentityError("the CA's key, which could sign for it towards the master, is not on this host")

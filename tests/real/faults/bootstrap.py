"""Agents that get no certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.faults.engine import Fault
from tests.real.machine import free_port

if TYPE_CHECKING:
    from tests.real.faults.engine import Scene

KIND = "signing request"
_REINSTALLED = ("the node was reinstalled",)


def _nothing(_: Scene) -> None:
    pass


def _signed_for_another_key(scene: Scene) -> None:
    scene.master.generate(scene.certname)


def _revoked_for_another_key(scene: Scene) -> None:
    scene.master.generate(scene.certname)
    scene.master.revoke(scene.certname)


def _another_key_waits(scene: Scene) -> None:
    """The node was reinstalled while its first request waited; only the second one is recorded."""
    scene.directly()
    for path in scene.agent.ssldir.rglob("*.pem"):
        path.unlink()


def _another_key_is_signed_meanwhile(scene: Scene) -> None:
    """The request of the first key is signed after the second one was made."""
    _another_key_waits(scene)
    scene.master.sign(scene.certname)


def _certificate_of_another_key(scene: Scene) -> None:
    """The node lost its key, and nothing else."""
    scene.edit(scene.agent.ssldir / f"private_keys/{scene.certname}.pem", None)


def _upper_case(scene: Scene) -> None:
    scene.rename(scene.certname.capitalize())


def _invalid(scene: Scene) -> None:
    scene.rename("auto*of*.example")


def _alternative_names(scene: Scene) -> None:
    scene.configure(dns_alt_names="puppet.example")
    scene.master.allow_alt_names(False)
    scene.later(scene.master.allow_alt_names, True)


def _forbidden_extension(scene: Scene) -> None:
    scene.edit(scene.agent.confdir / "csr_attributes.yaml", "extension_requests:\n  1.3.6.1.4.1.34380.1.3.39: 'true'\n")


def _right_that_waits(scene: Scene) -> None:
    """As of a CA that lets somebody sign, and answers 409 to that."""
    scene.edit(scene.agent.confdir / "csr_attributes.yaml", "extension_requests:\n  1.3.6.1.4.1.34380.1.3.13: admin\n")
    scene.configure_master(autosign="false")


def _unknown_ca_server(scene: Scene) -> None:
    scene.configure(ca_server="puppetca.invalid")


def _wrong_ca_port(scene: Scene) -> None:
    scene.configure(ca_port=free_port("127.0.0.1"))


FAULTS = (
    Fault(
        name="nobody has signed the request", kind=KIND, make=_nothing, agent="fresh",
        cause="waiting to be signed", true=("the same",),
    ),
    Fault(
        name="the autosign script refuses, the agent asks again", kind=KIND, make=_nothing, agent="fresh", fails=2,
        cause="B17", true=("the same",),
    ),
    Fault(
        name="another key's request waits", kind=KIND, make=_another_key_waits, agent="fresh",
        cause="B20", true=("differ", *_REINSTALLED), looks=("cadir",),
    ),
    Fault(
        name="reinstalled: the CA has a certificate for the old key", kind=KIND, make=_signed_for_another_key,
        agent="fresh", cause="B18", true=_REINSTALLED, also=("B23",),
    ),
    Fault(
        name="the CA signs the old key's request", kind=KIND, make=_another_key_is_signed_meanwhile,
        agent="fresh", cause="B18", true=_REINSTALLED, also=("B23",),
    ),
    Fault(
        name="the name's old certificate is revoked", kind=KIND, make=_revoked_for_another_key,
        agent="fresh", cause="B19", true=("come back",),
    ),
    Fault(
        name="the node lost its key", kind=KIND, make=_certificate_of_another_key, agent="enrolled",
        cause="B18", true=_REINSTALLED, looks=("ssldir", "cadir"), also=("B22",),
    ),
    Fault(
        name="certname in upper case", kind=KIND, make=_upper_case, cause="`certname` in puppet.conf",
        looks=("explain",), corrects="Write the name in lower case",
    ),
    Fault(
        name="certname with characters that no CA takes", kind=KIND, make=_invalid, agent="fresh",
        cause="B26", fill=(("<new name>", "auto-{name}"),),
    ),
    Fault(
        name="alternative names that the CA refuses", kind=KIND, make=_alternative_names, agent="fresh",
        cause="B27", true=("the node is not a master",), corrects="remove dns_alt_names",
    ),
    Fault(
        name="alternative names that the CA should accept", kind=KIND, make=_alternative_names, agent="fresh",
        cause="B27", true=("it should have the names",), corrects="allow-subject-alt-names: true",
    ),
    Fault(
        name="an authorization extension that the CA refuses", kind=KIND, make=_forbidden_extension, agent="fresh",
        cause="B28", corrects="remove the extension from it", true=("does not want it",),
    ),
    Fault(
        name="an authorization extension that nobody can sign", kind=KIND, make=_right_that_waits, agent="fresh",
        cause="B28", corrects="remove the extension from it", true=("does not want it",), restarts=True,
    ),
    Fault(
        name="autosigned, and ca_server does not resolve", kind=KIND, make=_unknown_ca_server, agent="fresh",
        cause="cannot resolve the server's name", looks=("explain",), true=("it is ca_server's",),
        fill=(("<name>", "{server}"),),
    ),
    Fault(
        name="autosigned, and ca_port is wrong", kind=KIND, make=_wrong_ca_port, agent="fresh",
        cause="No process listens on that port", looks=("explain",), true=("it is ca_port's",),
        fill=(("<right port>", "{port}"),),
    ),
)  # fmt: skip

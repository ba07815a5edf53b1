"""An agent's directory against a CA's, and both against what a capture saw: whose key is where.

It judges what others read: no files, no network, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from inspector.doctor import findings
from inspector.doctor.findings import key_text, listed
from inspector.model import Severity
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.doctor.cadir import CaDir
    from inspector.doctor.findings import Diagnosis
    from inspector.doctor.ssldir import SslDir
    from inspector.protocol.certificates import Certificate


@dataclass(frozen=True, slots=True)
class WireKey:
    """A public key that was seen on the wire."""

    kind: Literal["csr", "certificate", "client"]
    """In a signing request, in a certificate that was served, or in one that an agent showed."""
    certname: str
    key: str
    """As ``Certificate.key``."""
    time: float
    seq: int
    """The record that shows it."""

    def __str__(self) -> str:
        return f"{wording.clock(self.time)[:5]} (record {self.seq})"


def join(ssldir: SslDir, cadir: CaDir | None) -> list[Diagnosis]:
    """Where an agent's directory and its CA's contradict each other, worst first."""
    if cadir is None:
        return []
    found = [*_authorities(ssldir, cadir), *_crls(ssldir, cadir)]
    if ssldir.certname is not None:
        found += _certificates(ssldir, cadir) if ssldir.certificate else _bootstrap(ssldir, cadir, ssldir.certname)
    return findings.worst_first(found)


def following(agent: Sequence[Diagnosis], ca: Sequence[Diagnosis]) -> list[Diagnosis]:
    """An agent's diagnoses; errors that its CA's directory has as well say that they follow from there."""
    causes = {each.detail: each.what for each in ca if each.severity is Severity.ERROR}
    return [
        replace(each, detail=f"{each.detail}; it follows from '{causes[each.detail]}'")
        if each.severity is Severity.ERROR and each.detail in causes
        else each
        for each in agent
    ]


def against_wire(ssldir: SslDir, cadir: CaDir | None, seen: Sequence[WireKey]) -> list[Diagnosis]:
    """What a capture proves about an agent's key: which requests and certificates were its own, worst first."""
    name = ssldir.certname
    if name is None:
        return []
    own = sorted((each for each in seen if each.certname.lower() == name.lower()), key=lambda each: each.seq)
    found = [*_asked_and_served(ssldir, cadir, own)]
    if ssldir.key and (others := [each for each in own if each.kind == "client" and each.key != ssldir.key]):
        detail = (
            f"at {others[-1]} an agent showed a certificate for {name} with {key_text(others[-1].key)}; "
            f"the key here is {key_text(ssldir.key)}"
        )
        remedy = "Another machine, or another ssldir of this one, runs under this name; one of them needs another"
        found.append(findings.warning("somebody else has this certname", detail, remedy))
    return findings.worst_first(found)


# -- agent and CA -------------------------------------------------------------------------------------


def _authorities(ssldir: SslDir, cadir: CaDir) -> Iterator[Diagnosis]:
    if not ssldir.authorities or not cadir.authorities:
        return
    if {each.key for each in ssldir.authorities}.isdisjoint(each.key for each in cadir.authorities):
        detail = f"certs/ca.pem holds {_named(ssldir.authorities)}; the CA is {_named(cadir.authorities)}"
        remedy = f"`rm {ssldir.path('certs/ca.pem', 'crl.pem')}`, then " + ssldir.advise("{enrol}")
        yield findings.error("the agent trusts another CA", detail, remedy)
    elif signing := cadir.signing:
        here = {each.fingerprint for each in ssldir.authorities}
        if signing.fingerprint not in here:
            detail = f"the CA signs with {_named([signing])}, which certs/ca.pem does not hold"
            yield findings.warning("the agent has an older CA bundle", detail,
                                    f"`rm {ssldir.path('certs/ca.pem', 'crl.pem')}; puppet agent -t`")  # fmt: skip


def _named(authorities: Sequence[Certificate]) -> str:
    return listed([f"{each.subject} ({each.fingerprint})" for each in authorities], 3)


def _crls(ssldir: SslDir, cadir: CaDir) -> Iterator[Diagnosis]:
    for crl in cadir.crls:
        mine = next((each for each in ssldir.crls if each.issuer == crl.issuer), None)
        if mine and (mine.number or 0) < (crl.number or 0):
            detail = f"crl.pem has number {mine.number} of {crl.issuer}, the CA has {crl.number}"
            yield findings.notice(
                "the agent has an older CRL", detail, f"`rm {ssldir.path('crl.pem')}; puppet agent -t`"
            )


def _certificates(ssldir: SslDir, cadir: CaDir) -> Iterator[Diagnosis]:
    """The agent has a certificate: is it the one that the CA knows?"""
    name, mine = ssldir.certname, ssldir.certificate
    assert mine is not None  # noqa: S101 - the caller looked
    again = ssldir.advise("{enrol}")
    theirs = cadir.signed.get(name or "")
    issuer = cadir.signing
    if issuer and mine.issuer == issuer.subject and mine.serial in cadir.revoked:
        detail = f"{name}: serial {mine.serial:04X} is on the CA's CRL"
        yield findings.error("the CA has revoked the agent's certificate", detail, again)
    elif theirs is None:
        detail = f"the agent has serial {mine.serial:04X} ({mine.fingerprint}), signed/ has none for {name}"
        yield findings.warning("the CA does not know the agent's certificate", detail, again)
    if theirs is None or theirs.fingerprint == mine.fingerprint:
        return
    detail = (
        f"signed/{name}.pem is {theirs.fingerprint} for {key_text(theirs.key)}, the agent has {mine.fingerprint} "
        f"for {key_text(mine.key)}"
    )
    if theirs.key == mine.key:
        yield findings.notice("the CA has another certificate for the same key", f"{detail}; a renewal?")
    else:
        yield findings.error("the CA has a certificate for another key", detail, again, "B22")


def _bootstrap(ssldir: SslDir, cadir: CaDir, name: str) -> Iterator[Diagnosis]:
    """The agent has no certificate: what would the CA say to its request?"""
    signed, request = cadir.signed.get(name), cadir.requests.get(name)
    again = ssldir.advise("{enrol}")
    mine = f"the agent's key is {key_text(ssldir.key)}" if ssldir.key else "the agent has no key"
    if signed and ssldir.key == signed.key:
        detail = f"signed/{name}.pem ({signed.fingerprint}) is for the agent's key"
        yield findings.notice("signed, but not fetched yet", detail, "`puppet agent -t`")
    elif signed:
        state = "revoked" if signed.serial in cadir.revoked else "signed"
        detail = (
            f"signed/{name}.pem ({signed.fingerprint}) is for {key_text(signed.key)}, {mine}; "
            f"a request gets: {name} already has a {state} certificate; ignoring certificate request"
        )
        yield findings.error("the CA has a certificate for another key", detail, again, "B18")
    elif request and ssldir.key == request.key:
        detail = f"the request on the CA is of the agent's key: (SHA256) {request.fingerprint}"
        yield findings.notice("waiting to be signed", detail, cadir.advise("On the CA {sign}", name))
    elif request:
        detail = f"the request on the CA is for {key_text(request.key)}, {mine}"
        yield findings.error("the CA holds a request of another key", detail, again, "B20")
    elif ssldir.csr_key and ssldir.generation == "legacy":
        csr = ssldir.file("certificate_requests")
        detail = f"{csr} lies here, so the agent sends none; the CA has neither a request nor a certificate for {name}"
        yield findings.error("a local signing request blocks", detail, f"`rm {ssldir.path(csr)}; puppet agent -t`")
    else:
        detail = f"the CA has neither a request nor a certificate for {name}"
        yield findings.notice("the CA never heard of this agent", detail,
                               "`puppet agent -t`; if it sends one: is this the CA that it talks to?")  # fmt: skip


# -- the wire -----------------------------------------------------------------------------------------


def _asked_and_served(ssldir: SslDir, cadir: CaDir | None, own: Sequence[WireKey]) -> Iterator[Diagnosis]:
    """The last request and the last certificate on the wire, in one sentence with the key that lies here."""
    name = ssldir.certname or ""
    csr = next((each for each in reversed(own) if each.kind == "csr"), None)
    served = next((each for each in reversed(own) if each.kind == "certificate"), None)
    said: list[str] = []
    wrong = False
    if csr and ssldir.key is None:
        said.append(f"a CSR of {csr} was made with {key_text(csr.key)}, of which nothing is left here")
        wrong = True
    elif csr and csr.key == ssldir.key:
        said.append(f"the agent's key is the one in the CSR of {csr}")
    elif csr:
        earlier = next((each for each in reversed(own) if each.kind == "csr" and each.key == ssldir.key), None)
        was = f"; its own was in the one of {earlier}" if earlier else ""
        said.append(f"the agent's key is not the one in the CSR of {csr}{was}")
        wrong = True
    if served and ssldir.key and served.key != ssldir.key:
        said.append(f"the CA serves a certificate for another key ({served}, {key_text(served.key)})")
        wrong = True
    elif served and ssldir.key:
        said.append(f"the CA serves a certificate for it ({served})")
    signed = cadir.signed.get(name) if cadir else None
    if served and signed and signed.key != served.key:
        said.append(
            f"signed/{name}.pem is for {key_text(signed.key)}: what was served came from another CA, or from before"
        )
    if wrong:
        said.append(f"the key here is {key_text(ssldir.key)}" if ssldir.key else "there is no key here")
        again = ssldir.advise("{enrol}")
        yield findings.error("the agent's key does not fit", "; ".join(said), again, "B22")
    elif said:
        yield findings.notice("the agent's key on the wire", "; ".join(said))

"""Compare an agent's directory with a CA's, and both with a capture: which key is where.

Other modules read the directories and the capture: this one opens no files and no connections, and reads no clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inspector.doctor import findings
from inspector.doctor.findings import fingerprints, key_text
from inspector.model import Severity
from inspector.rules.fixes import advice, group, on_ca, on_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.doctor.cadir import CaDir
    from inspector.doctor.findings import Diagnosis
    from inspector.doctor.ssldir import SslDir
    from inspector.summaries.keys import WireKey

CONSEQUENCE = "; consequence of"
"""Between an agent's diagnosis and that of its CA that explains it."""
_RUN = on_node("run the agent", "puppet agent -t")
_SIGN = on_ca("sign the request", "{sign}")


def join(ssldir: SslDir, cadir: CaDir | None) -> list[Diagnosis]:
    """Return the contradictions between an agent's directory and its CA's, worst first."""
    if cadir is None:
        return []
    diagnoses = [*_authorities(ssldir, cadir), *_crls(ssldir, cadir)]
    if ssldir.certname is not None:
        diagnoses += _certificates(ssldir, cadir) if ssldir.certificate else _bootstrap(ssldir, cadir, ssldir.certname)
    return findings.worst_first(map(findings.proved, diagnoses))


def with_causes(agent: Sequence[Diagnosis], ca: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return an agent's diagnoses; errors that its CA's directory has too name the CA's diagnosis as their cause."""
    causes = {diagnosis.detail: diagnosis.title for diagnosis in ca if diagnosis.severity is Severity.ERROR}
    return [
        replace(diagnosis, detail=f"{diagnosis.detail}{CONSEQUENCE} '{causes[diagnosis.detail]}'")
        if diagnosis.severity is Severity.ERROR and diagnosis.detail in causes
        else diagnosis
        for diagnosis in agent
    ]


def against_wire(ssldir: SslDir, cadir: CaDir | None, wire_keys: Sequence[WireKey]) -> list[Diagnosis]:
    """Compare an agent's key with the requests and certificates for its certname in a capture, worst first."""
    name = ssldir.certname
    if name is None:
        return []
    own = sorted(
        (wire_key for wire_key in wire_keys if wire_key.certname.lower() == name.lower()),
        key=lambda wire_key: wire_key.seq,
    )
    diagnoses = [*_traffic(ssldir, cadir, own)]
    if ssldir.key and (
        others := [wire_key for wire_key in own if wire_key.kind == "client" and wire_key.key != ssldir.key]
    ):
        detail = (
            f"at {others[-1]} an agent presented a certificate for {name} with {key_text(others[-1].key)}; "
            f"the key in this ssldir is {key_text(ssldir.key)}"
        )
        fix = (
            advice("look for another machine, or another ssldir on this host, that uses this certname"),
            advice("give one of them another certname"),
        )
        diagnoses.append(findings.warning("the certname is used elsewhere", detail, fix))
    return findings.worst_first(map(findings.proved, diagnoses))


def ca_against_wire(cadir: CaDir, wire_keys: Sequence[WireKey]) -> list[Diagnosis]:
    """Compare what a CA holds with the latest signing request of each agent in a capture, worst first."""
    latest = {key.certname: key for key in sorted(wire_keys, key=lambda key: key.seq) if key.kind == "csr"}
    diagnoses = []
    for name, csr in latest.items():
        pending = cadir.requests.get(name)
        if pending is None:
            continue
        detail = (
            f"{name}: requests/{name}.pem has fingerprint {pending.fingerprint}, the agent's request of {csr} has "
            f"{csr.fingerprint}"
        )
        if pending.key == csr.key:
            fix = cadir.steps(_SIGN, certname=name)
            diagnoses.append(findings.notice("the agent's request waits to be signed", detail, fix))
        else:
            fix = cadir.steps(
                on_ca("remove the request that waits", "{clean}", destroys="the request"),
                on_node("send this node's request", "puppet agent -t"),
                on_ca("sign it, unless the CA autosigns", "{sign}"),
                certname=name,
            )
            diagnoses.append(findings.error("the CA holds a request of another key", detail, fix, "B20"))
    return findings.worst_first(map(findings.proved, diagnoses))


# -- agent and CA -------------------------------------------------------------------------------------


def _authorities(ssldir: SslDir, cadir: CaDir) -> Iterator[Diagnosis]:
    if not ssldir.authorities or not cadir.authorities:
        return
    if {authority.key for authority in ssldir.authorities}.isdisjoint(authority.key for authority in cadir.authorities):
        detail = (
            f"certs/ca.pem contains {fingerprints(ssldir.authorities)}; the CA is {fingerprints(cadir.authorities)}"
        )
        remove = on_node(
            "remove the files of the other CA",
            f"rm {ssldir.path('certs/ca.pem', 'crl.pem')}",
            destroys="the CA and the CRL that it has",
        )
        yield findings.error("the agent trusts another CA", detail, (remove, *ssldir.steps(group("enrol"))))
    elif signing := cadir.signing:
        trusted = {authority.fingerprint for authority in ssldir.authorities}
        if signing.fingerprint not in trusted:
            detail = f"the CA signs with {fingerprints([signing])}, which is not in certs/ca.pem"
            fix = ssldir.fetch("certs/ca.pem", "crl.pem")
            yield findings.warning("the agent has an older CA bundle", detail, fix)


def _crls(ssldir: SslDir, cadir: CaDir) -> Iterator[Diagnosis]:
    for crl in cadir.crls:
        current = next((agent_crl for agent_crl in ssldir.crls if agent_crl.issuer == crl.issuer), None)
        if current and (current.number or 0) < (crl.number or 0):
            detail = f"crl.pem has CRL number {current.number} from {crl.issuer}, the CA has number {crl.number}"
            yield findings.notice("the agent has an older CRL", detail, ssldir.fetch("crl.pem"))


def _certificates(ssldir: SslDir, cadir: CaDir) -> Iterator[Diagnosis]:
    """Compare the agent's certificate with the one that the CA holds for its name."""
    name, certificate = ssldir.certname, ssldir.certificate
    assert certificate is not None  # noqa: S101 - checked by the caller
    enrol = ssldir.steps(group("enrol"))
    signed = cadir.signed.get(name or "")
    issuer = cadir.signing
    if issuer and certificate.issuer == issuer.subject and certificate.serial in cadir.revoked:
        detail = f"{name}: serial number {certificate.serial:04X} is on the CA's CRL"
        fix = ssldir.steps(group("revoked"))
        yield findings.error("the CA has revoked the agent's certificate", detail, fix, "T05")
    elif signed is None:
        detail = (
            f"the agent has serial number {certificate.serial:04X} ({certificate.fingerprint}), signed/ has no "
            f"certificate for {name}"
        )
        yield findings.warning("the CA does not have the agent's certificate", detail, enrol)
    if signed is None or signed.fingerprint == certificate.fingerprint:
        return
    detail = (
        f"signed/{name}.pem is {signed.fingerprint} for {key_text(signed.key)}, the agent has "
        f"{certificate.fingerprint} for {key_text(certificate.key)}"
    )
    if signed.key == certificate.key:
        yield findings.notice("the CA has another certificate for the same key", f"{detail}; possibly a renewal")
    else:
        yield findings.error("the CA has a certificate for another key", detail, enrol, "B22")


def _bootstrap(ssldir: SslDir, cadir: CaDir, name: str) -> Iterator[Diagnosis]:
    """Tell what the CA holds for an agent without a certificate, and how it would answer the agent's request."""
    signed, request = cadir.signed.get(name), cadir.requests.get(name)
    enrol = ssldir.steps(group("enrol"))
    agent_key = f"the agent's key is {key_text(ssldir.key)}" if ssldir.key else "the agent has no key"
    if signed and ssldir.key == signed.key:
        detail = f"signed/{name}.pem ({signed.fingerprint}) is for the agent's key"
        yield findings.notice("certificate signed, but not downloaded yet", detail, (_RUN,))
    elif signed:
        state = "revoked" if signed.serial in cadir.revoked else "signed"
        replaced = state == "revoked" and cadir.program.replaces_revoked
        reply = "replaces it when it gets a request" if replaced else cadir.program.reply.format(name=name, state=state)
        detail = f"signed/{name}.pem ({signed.fingerprint}) is for {key_text(signed.key)}, {agent_key}; the CA {reply}"
        if replaced:
            yield findings.notice("the CA has a revoked certificate for another key", detail, (_RUN,))
            return
        yield findings.error("the CA has a certificate for another key", detail, enrol, "B18")
    elif request and ssldir.key == request.key:
        detail = f"the request on the CA has the agent's key: (SHA256) {request.fingerprint}"
        yield findings.notice("waiting to be signed", detail, cadir.steps(_SIGN, certname=name))
    elif request:
        detail = f"the request on the CA is for {key_text(request.key)}, {agent_key}"
        yield findings.error("the CA has a signing request for another key", detail, enrol, "B20")
    elif ssldir.csr_key and ssldir.generation == "legacy":
        csr = ssldir.file("certificate_requests")
        detail = (
            f"{csr} exists, so the agent sends no request; the CA has neither a request nor a certificate for {name}"
        )
        again = on_node("send it again", f"rm {ssldir.path(csr)}; puppet agent -t", destroys="the request")
        yield findings.error("a local signing request blocks the bootstrap", detail, (again,))
    else:
        detail = f"the CA has neither a request nor a certificate for {name}"
        fix = (_RUN, advice("check that it uses this CA", only_if="the agent sends a request"))
        yield findings.notice("the CA has nothing for this agent", detail, fix)


# -- the traffic -----------------------------------------------------------------------------------------


def _traffic(ssldir: SslDir, cadir: CaDir | None, own: Sequence[WireKey]) -> Iterator[Diagnosis]:
    """Compare the last request and the last certificate in the traffic with the key in the ssldir."""
    name = ssldir.certname or ""
    csr = next((wire_key for wire_key in reversed(own) if wire_key.kind == "csr"), None)
    served = next((wire_key for wire_key in reversed(own) if wire_key.kind == "certificate"), None)
    facts: list[str] = []
    mismatch = False
    if csr and ssldir.key is None:
        facts.append(f"the CSR of {csr} has {key_text(csr.key)}, which is not in this ssldir")
        mismatch = True
    elif csr and csr.key == ssldir.key:
        facts.append(f"the agent's key matches the CSR of {csr}")
    elif csr:
        earlier = next(
            (wire_key for wire_key in reversed(own) if wire_key.kind == "csr" and wire_key.key == ssldir.key), None
        )
        match = f"; it matches the CSR of {earlier}" if earlier else ""
        facts.append(f"the agent's key does not match the CSR of {csr}{match}")
        mismatch = True
    if served and ssldir.key and served.key != ssldir.key:
        facts.append(f"the CA serves a certificate for another key ({served}, {key_text(served.key)})")
        mismatch = True
    elif served and ssldir.key:
        facts.append(f"the CA serves a certificate for the agent's key ({served})")
    signed = cadir.signed.get(name) if cadir else None
    if served and signed and signed.key != served.key:
        facts.append(
            f"signed/{name}.pem is for {key_text(signed.key)}: the served certificate is of another CA or older"
        )
    if mismatch:
        facts.append(f"the key in this ssldir is {key_text(ssldir.key)}" if ssldir.key else "this ssldir has no key")
        enrol = ssldir.steps(group("enrol"))
        yield findings.error("the agent's key does not match", "; ".join(facts), enrol, "B22")
    elif facts:
        yield findings.notice("the agent's key in the traffic", "; ".join(facts))

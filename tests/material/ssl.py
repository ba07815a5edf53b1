"""Puppet's own certificates (`spec/fixtures/ssl`) in an agent's directory, and what its specs say becomes of each.

`doctor --ssldir` has to have no error where the agent goes on, and the agent's words where it stops. The set-ups are
those of `spec/unit/ssl/ssl_provider_spec.rb` and of the table in `rakelib/generate_cert_fixtures.rake` that need
nothing but files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector.doctor import ssldir
from inspector.model import Severity
from inspector.protocol import x509
from tests.material.cases import judged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.protocol.x509 import Revocation
    from tests.material.cases import Case

_CAS, _CRLS = ("ca", "intermediate"), ("crl", "intermediate-crl")
_TODAY, _LATE = 1.7e9, 2.1e9
"""Within the validity of all certificates (1970 to 2034), and after it."""
_ENCRYPTED = "74695716c8b6"
"""The password of the encrypted keys, from the table."""


class SetUp(NamedTuple):
    """Files of the fixtures in an agent's directory."""

    name: str
    certificate: str = "signed"
    key: str = "signed-key"
    cas: tuple[str, ...] = _CAS
    crls: tuple[str, ...] = _CRLS
    revocation: Revocation = "chain"
    password: str = ""
    stops: str = ""
    """What the agent says; empty: it goes on."""
    warns: str = ""
    """What it says while it goes on."""
    now: float = _TODAY


_SUBCA = "CN=Test CA Subauthority"
_OTHER_KEY = "The certificate for 'CN=ec' does not match its private key"
SETUPS = (
    SetUp("an RSA key"),
    SetUp("an EC key", "ec", "ec-key"),
    SetUp("another EC key as OpenSSL writes it", "ec", "ec-key-openssl", stops=_OTHER_KEY),
    SetUp("another EC key in PKCS #8", "ec", "ec-key-pk8", stops=_OTHER_KEY),
    SetUp("an encrypted key", key="encrypted-key", password=_ENCRYPTED),
    SetUp("an encrypted EC key", "ec", "encrypted-ec-key", password=_ENCRYPTED),
    SetUp("a wrong password", key="encrypted-key", password="wrongpassword", stops="wrong password"),
    SetUp("an extension of its own", "oid", "oid-key"),
    SetUp("a renewed certificate for the same key", "renewed", "signed-key"),
    SetUp("alternative names, from the root", "127.0.0.1", "127.0.0.1-key"),
    SetUp("another intermediate CA", "pluto", "pluto-key", ("ca", "intermediate-agent"),
          ("crl", "intermediate-agent-crl")),
    SetUp("the key of another", key="127.0.0.1-key",
          stops="The certificate for 'CN=signed' does not match its private key"),
    SetUp("another key in the certificate", "tampered-cert", stops="Invalid signature for certificate 'CN=signed'"),
    SetUp("revoked", "revoked", "revoked-key", stops="Certificate 'CN=revoked' is revoked"),
    SetUp("revoked, and revocation is not checked", "revoked", "revoked-key", revocation="none"),
    SetUp("without the root", cas=("intermediate",),
          stops=f"The issuer 'CN=Test CA' of certificate '{_SUBCA}' is missing"),
    SetUp("an unknown CA's certificate", "unknown-127.0.0.1", "unknown-127.0.0.1-key",
          warns="The issuer 'CN=Unknown CA' of certificate 'CN=127.0.0.1' cannot be found locally"),
    SetUp("without the intermediate CA", cas=("ca",),
          warns=f"The issuer '{_SUBCA}' of certificate 'CN=signed' cannot be found locally"),
    SetUp("without the root's CRL", crls=("intermediate-crl",), stops="The CRL issued by 'CN=Test CA' is missing"),
    SetUp("without the intermediate CRL", crls=("crl",), stops=f"The CRL issued by '{_SUBCA}' is missing"),
    SetUp("without the root's CRL, leaf only", crls=("intermediate-crl",), revocation="leaf"),
    SetUp("without the intermediate CRL, not checked", crls=("crl",), revocation="none"),
    SetUp("without CRLs, not checked", crls=(), revocation="none"),
    SetUp("a root that is no CA", cas=("bad-basic-constraints", "intermediate"), crls=(), revocation="none",
          stops="Certificate 'CN=Test CA' failed verification"),
    SetUp("an intermediate CA that is none", cas=("ca", "bad-int-basic-constraints"), crls=(), revocation="none",
          stops=f"Certificate '{_SUBCA}' failed verification"),
    SetUp("CAs in another order", cas=_CAS[::-1]),
    SetUp("CRLs in another order", crls=_CRLS[::-1]),
    SetUp("a CA with letters of Hungarian", cas=(*_CAS, "netlock-arany-utf8"), revocation="leaf"),
    SetUp("CRLs after their end", now=_LATE, stops=f"The CRL issued by '{_SUBCA}' has expired"),
    SetUp("after their end, not checked", now=_LATE, revocation="none", stops="has expired, verify time is"),
)  # fmt: skip


def cases(directory: Path) -> Iterator[Case]:
    """Every set-up of the fixtures in a directory."""
    for setup in SETUPS:
        with tempfile.TemporaryDirectory() as folder:
            found = ssldir.examine(_made(setup, directory, Path(folder)), setup.now, setup.revocation)
        errors = [diagnosis.detail for diagnosis in found if diagnosis.severity is Severity.ERROR]
        others = [diagnosis.detail for diagnosis in found if diagnosis.severity is not Severity.ERROR]
        right = any((setup.stops or setup.warns) in detail for detail in (errors if setup.stops else others))
        if setup.stops and not right:
            yield judged(setup.name, [f"the agent stops, here are the errors {errors}"])
        elif not setup.stops and errors:
            yield judged(setup.name, [f"the agent goes on, here is an error: {errors[0]}"])
        else:
            yield judged(setup.name, [f"no warning {setup.warns!r}"] if setup.warns and not right else [])
    for name, valid in (("request", True), ("tampered-csr", False)):
        yield _request(f"signing request: {name}", (directory / f"{name}.pem").read_bytes(), valid=valid)


def _request(name: str, body: bytes, *, valid: bool) -> Case:
    try:
        request = x509.read_csr(body)
    except x509.Malformed as error:
        return judged(name, [f"signing request: {error}"])
    return judged(name, [] if request.signature_valid is valid else [f"its signature is valid: {not valid}"])


def _made(setup: SetUp, fixtures: Path, folder: Path) -> ssldir.SslDir:
    name = {"tampered-cert": "signed"}.get(setup.certificate, setup.certificate.removeprefix("unknown-"))
    files = {
        f"certs/{name}": (setup.certificate,), f"private_keys/{name}": (setup.key,), "certs/ca": setup.cas,
        "crl": setup.crls,
    }  # fmt: skip
    for target, sources in files.items():
        if any(sources):
            place = folder / f"{target}.pem"
            place.parent.mkdir(mode=0o750, exist_ok=True)
            place.write_bytes(b"".join((fixtures / f"{source}.pem").read_bytes() for source in sources))
            place.chmod(0o640)
    if setup.password:
        (folder / "private").mkdir(mode=0o750)
        (folder / "private" / "password").write_text(setup.password)
    return ssldir.read(folder, name)

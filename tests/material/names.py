"""The names in every certificate and CRL below a directory, as we write them and as Ruby does, which agents print."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.protocol import x509
from tests.material.cases import judged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.material.cases import Case

_PROGRAM = Path(__file__).with_name("certificate_names.rb")


def cases(directory: Path) -> Iterator[Case]:
    """Every certificate and CRL in PEM that Ruby reads."""
    printed = subprocess.run(["ruby", _PROGRAM, directory], stdout=subprocess.PIPE, check=True)
    for found in json.loads(printed.stdout):
        name = str(Path(found["path"]).relative_to(directory))
        try:
            ours = _names(found["block"].encode())
        except x509.Malformed as error:
            yield judged(name, [str(error)])
        else:
            yield judged(name, [] if ours == found["names"] else [f"{ours} instead of {found['names']}"])


def _names(block: bytes) -> list[str]:
    if b"X509 CRL" in block[:30]:
        return [crl.issuer for crl in x509.read_crls(block)]
    return [name for each in x509.read_certificates(block) for name in (each.subject, each.issuer)]

"""What answers at a master's address is named before anything is said of its certificate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from inspector.doctor import livecheck
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.lab.server import LabServer
from inspector.model import Request, Response, Severity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis

    type Answer = Callable[[Request, str | None], Response]

NAME = "puppet.example"
SERVICES = "/status/v1/services"


def diagnosed(directory: Path, answer: Answer, ca: LabCA | None = None) -> list[Diagnosis]:
    """Check a server that has a master's certificate and answers so."""
    ca = ca or LabCA("ca.example")
    with LabMaster(ca, ca.enrol(directory / "master", NAME)) as master:
        server = LabServer(master.context, answer)
        server.start()
        try:
            return livecheck.probe(*server.address, name=NAME, now=time.time())
        finally:
            server.close()


def serving(pages: dict[str, str], server: str = "") -> Answer:
    """Answer with these pages, and 404 to all else."""

    def answer(request: Request, _certname: str | None) -> Response:
        page = pages.get(request.path)
        headers = (("Server", server),) if server else ()
        return Response(headers, (page or "nothing here").encode(), status=200 if page else 404)

    return answer


@pytest.mark.parametrize(
    ("answer", "product"),
    [
        (serving({}, "nginx/1.22.1"), "nginx/1.22.1: "),
        (serving({}), "a web server: "),
        (serving({SERVICES: '{"puppetdb-status": {"state": "running"}, "status-service": {}}'}, "Jetty"), "PuppetDB: "),
        (serving({SERVICES: "[" * 10_000}, "Apache"), "Apache: "),
    ],
)
def test_another_product_is_named_first(answer: Answer, product: str, tmp_path: Path) -> None:
    first, *others = diagnosed(tmp_path, answer)
    assert (first.severity, first.title) == (Severity.ERROR, "no Puppet master")
    assert f", but {product}to the request for the CA's certificate it answers 404 (nothing here)" in first.detail
    # What it serves is not judged as a master's, and nobody is told to set ca_server.
    assert not {"no CA certificate", "no CRL", "accepted"} & {diagnosis.title for diagnosis in others}


EXPIRATIONS = '{"ca_crl":{"next_update":"2026-12-27T13:40:22Z"},"ca_certificate":{"expiration":"2031-11-26T13:40:22Z"}}'


@pytest.mark.parametrize(
    ("expirations", "title"),
    [
        (EXPIRATIONS, "CA"),
        ('{"ca-certs": {}, "crls": {}}', "a Puppet master answers"),
        ("[]", "a Puppet master answers"),
        ("nothing", "a Puppet master answers"),
    ],
)
def test_an_openvox_ca_is_named(expirations: str, title: str, tmp_path: Path) -> None:
    ca = LabCA("ca.example")
    pages = {
        "/puppet-ca/v1/certificate/ca": ca.ca_bundle.decode(),
        "/puppet-ca/v1/certificate_revocation_list/ca": ca.crl_bundle.decode(),
        "/puppet-ca/v1/expirations": expirations,
    }
    first, *others = diagnosed(tmp_path, serving(pages), ca)
    assert first.title == title
    assert (title == "CA") is first.detail.startswith("openvox-ca, ")
    assert {found.title for found in others} == {"TLS", "accepted"}


@pytest.mark.parametrize(
    ("answer", "titles"),
    [
        (serving({SERVICES: '{"server": {"state": "running"}, "jruby-metrics": {}}'}), {"no CA service"}),
        (
            lambda _request, _certname: Response((), b"Forbidden request: /x (method :get).", status=403),
            {"no CA certificate", "no CRL"},
        ),
        (
            lambda _request, _certname: Response((("X-Puppet-Version", "8.10.0"),), b"not here", status=404),
            {"no CA service"},
        ),
    ],
    ids=["status service", "auth.conf", "version"],
)
def test_a_compiler_without_a_ca_is_a_master(answer: Answer, titles: set[str], tmp_path: Path) -> None:
    first, *others = diagnosed(tmp_path, answer)
    assert (first.severity, first.title) == (Severity.NOTICE, "a Puppet master answers")
    assert {diagnosis.title for diagnosis in others} == titles | {"TLS"}

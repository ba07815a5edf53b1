"""The check of a live master, against healthy and broken masters on loopback."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from inspector.doctor import livecheck
from inspector.errors import IdentityError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.lab.server import LabServer
from inspector.model import Request, Response, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis
    from tests.conftest import Run

NAME = "puppet.example"
DAY = 86400.0
CA_PATH = "/puppet-ca/v1/certificate/ca"
CRL_PATH = "/puppet-ca/v1/certificate_revocation_list/ca"


class Site:
    """A master, its CA, and an agent's files; a test breaks one thing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = LabCA("ca.example")
        self.place = self.ca.enrol(directory / "master", NAME, ("puppet",))
        self.agent = self.ca.enrol(directory / "agent", "node1.example")
        self.master = LabMaster(self.ca, self.place)
        self.address = self.master.address

    def probe(self, *, name: str = NAME, now: float | None = None, agent: bool = False) -> list[Diagnosis]:
        return livecheck.probe(
            *self.address,
            ca=self.agent.ca,
            crl=self.agent.crl,
            certificate=self.agent.certificate if agent else None,
            key=self.agent.key if agent else None,
            name=name,
            now=now or time.time(),
        )

    def errors(self, *, name: str = NAME, now: float | None = None, agent: bool = False) -> dict[str, Diagnosis]:
        found = self.probe(name=name, now=now, agent=agent)
        errors = {diagnosis.title: diagnosis for diagnosis in found if diagnosis.severity is Severity.ERROR}
        assert not errors or "accepted" not in {diagnosis.title for diagnosis in found}
        return errors

    def answer(self, path: str, response: Response) -> None:
        self.master.instead["GET", path] = response

    def present(self, certificate: bytes, key: pki.PrivateKey) -> None:
        """Present another certificate to agents."""
        self.place.certificate.write_bytes(certificate)
        pki.write_private(self.place.key, pki.key_pem(key))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.master:
        yield made


@contextlib.contextmanager
def listening(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[tuple[str, int]]:
    """A server that handles every connection as the test asks; ``Event``: the test is over."""
    over, threads = threading.Event(), list[threading.Thread]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def handle(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                talk(connection, over)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while not over.is_set():
                    connection, _ = server.accept()
                    threads.append(threading.Thread(target=handle, args=(connection,)))
                    threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield server.getsockname()
        finally:
            over.set()
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def only(found: list[Diagnosis]) -> Diagnosis:
    assert len(found) == 1, found
    return found[0]


# -- a healthy master ---------------------------------------------------------------------------------------


def test_a_healthy_master(site: Site) -> None:
    found = site.probe(agent=True)
    assert {diagnosis.severity for diagnosis in found} == {Severity.NOTICE}
    titles = ["a Puppet master answers", "TLS", "the agent's certificate is accepted", "accepted"]
    assert [diagnosis.title for diagnosis in found] == titles
    assert found[0].detail == "{}:{}, Puppet 7.23.0".format(*site.address)
    assert found[1].detail.startswith("TLSv1.3, TLS_")
    assert found[1].detail.endswith("; Puppet 7.23.0")


def test_only_get_requests_are_sent(site: Site) -> None:
    site.probe(agent=True)
    assert {received.request.method for received in site.master.received} == {"GET"}
    assert {received.request.path for received in site.master.received} == {
        CA_PATH,
        CRL_PATH,
        "/puppet/v3/environments",
    }


def test_without_a_ca_of_this_host_it_is_a_new_agent(site: Site) -> None:
    found = livecheck.probe(*site.address, name="puppet", now=time.time())
    assert found[-1].detail.startswith("new agents would accept 127.0.0.1:")


def test_a_file_that_is_not_a_ca(site: Site, tmp_path: Path) -> None:
    for file, why in ((tmp_path / "nothing", "cannot be read"), (site.agent.crl, "cannot be used")):
        with pytest.raises(IdentityError, match=why) as error:
            livecheck.probe(*site.address, ca=file, now=time.time())
        assert error.value.hint


# -- its certificate --------------------------------------------------------------------------------------


def test_a_wrong_name(site: Site) -> None:
    errors = site.errors(name="other.example")
    assert set(errors) == {"wrong name"}
    expected = f"Server hostname 'other.example' did not match server certificate; expected one of {NAME}, puppet"
    assert errors["wrong name"].detail == expected


def test_a_wrong_ca(site: Site, tmp_path: Path) -> None:
    other = LabCA("other.example").enrol(tmp_path / "other", "node1.example")
    site.agent.ca.write_bytes(other.ca.read_bytes())
    site.agent.crl.write_bytes(other.crl.read_bytes())
    errors = site.errors()
    assert set(errors) == {"another CA", "the master's certificate is from another CA"}
    assert "agents have CN=Puppet CA: other.example" in errors["another CA"].detail


LATER = (5 * 365 + 1) * DAY
"""Seconds until everything of the site has expired."""


def test_an_expired_certificate(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time() + LATER
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: now)
    errors = site.errors(now=now)
    expired = errors["certificate expired"]
    assert "has expired, verify time is synchronized" in expired.detail
    assert "puppetserver ca clean" not in expired.fix, "that command must verify the master itself"
    assert errors["CRL expired"].rule == "B10"


def test_a_clock_that_is_years_ahead_is_the_only_cause(site: Site) -> None:
    """By the master's clock nothing has expired: to reissue anything would heal nothing."""
    errors = site.errors(now=time.time() + LATER)
    assert set(errors) == {"the clocks differ"}
    clock = errors["the clocks differ"]
    assert clock.detail.startswith("the master's clock is 5 years behind this host's; only by this host's clock: ")
    assert "certificate expired" in clock.detail
    assert "CRL expired" in clock.detail
    assert "timedatectl" in clock.fix


def test_what_is_wrong_by_both_clocks_is_not_the_clock(site: Site) -> None:
    site.answer(CRL_PATH, Response(status=200, body=site.ca.signing_crl))
    errors = site.errors(now=time.time() + LATER)
    assert "the CRLs do not cover the chain" in errors


def test_directories_are_judged_by_both_clocks(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What both checks find is printed once, and the clock explains it."""
    address = "{}:{}".format(*site.address)
    given = ("doctor", "--ssldir", site.agent.path, "--live", address)
    status, out, _ = run(*given)
    assert (status, "expired" in out) == (1, False), "the certificate is not for the address"
    now, later = time.time(), time.time() + LATER
    monkeypatch.setattr("time.time", lambda: later)
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: now)  # the site's master runs in this process
    status, out, _ = run(*given)
    lines = [line for line in out.splitlines() if line.startswith("ERROR") and "wrong name" not in line]
    assert [line.partition(":")[0] for line in lines] == ["ERROR the clocks differ"]
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: later)
    status, out, _ = run(*given)
    lines = [line for line in out.splitlines() if line.startswith("ERROR")]
    assert any("expired" in line for line in lines)
    facts = [line.partition(": ")[2] for line in lines]
    assert len(facts) == len(set(facts)), "nothing is printed twice"


def test_a_certificate_that_expires_soon(site: Site) -> None:
    found = {diagnosis.title: diagnosis for diagnosis in site.probe(now=time.time() + (5 * 365 - 10) * DAY)}
    assert found["expires soon"].severity is Severity.WARNING
    assert found["the clocks differ"].severity is Severity.WARNING
    assert f"CN={NAME} expires on" in found["expires soon"].detail


def test_a_revoked_master_by_the_crl_it_serves(site: Site) -> None:
    site.ca.revoke(NAME)
    errors = site.errors()
    assert errors["the master's certificate is revoked"].detail == f"Certificate 'CN={NAME}' is revoked"


def test_a_certificate_from_an_unknown_ca(site: Site) -> None:
    stranger = LabCA("stranger.example")
    key = pki.new_key()
    site.present(pki.pem(pki.sign(stranger.authority, key.public_key(), NAME)), key)
    assert "the master's certificate is from another CA" in site.errors()


# -- what it serves ------------------------------------------------------------------------------------


def test_no_crl(site: Site) -> None:
    site.answer(CRL_PATH, Response(status=404, body=b"Could not find certificate_revocation_list ca"))
    errors = site.errors()
    assert (set(errors), errors["no CRL"].rule) == ({"no CRL"}, "B08")
    assert "404 (Could not find certificate_revocation_list ca)" in errors["no CRL"].detail


def test_a_crl_that_does_not_cover_the_chain(site: Site) -> None:
    site.answer(CRL_PATH, Response(status=200, body=site.ca.signing_crl))
    errors = site.errors()
    assert (set(errors), errors["the CRLs do not cover the chain"].rule) == ({"the CRLs do not cover the chain"}, "B13")


def test_a_page_of_a_balancer(site: Site) -> None:
    page = b"<html><head><title>Welcome to\n\x1b[31m nginx</title></head></html>"
    site.answer(CA_PATH, Response(status=200, headers=(("Content-Type", "text/html"),), body=page))
    found = site.errors()["the CA certificate is not PEM"]
    assert found.detail.startswith("text/html, ")
    assert "Welcome to" in found.detail
    assert "\x1b" not in found.detail


def test_a_master_that_is_not_a_ca(site: Site) -> None:
    site.answer(CA_PATH, Response(status=404, body=b"not here"))
    found = site.errors()["no CA certificate"]
    assert [step.command for step in found.steps] == ["puppet config set ca_server <name> --section agent"]


def test_a_bundle_without_its_root(site: Site) -> None:
    site.answer(CA_PATH, Response(status=200, body=pki.pem(site.ca.authority.certificate)))
    assert "CN=Puppet Root CA" in site.errors()["the CA bundle is incomplete"].detail


# -- an agent's certificate -------------------------------------------------------------------------------


def test_a_revoked_agent(site: Site) -> None:
    site.ca.revoke("node1.example")
    found = site.errors(agent=True)["the master refuses the agent's certificate"]
    assert "Certificate 'CN=node1.example' is revoked" in found.detail
    assert "alert certificate_revoked" in found.detail
    assert "`puppetserver ca clean --certname node1.example`" in found.fix


def test_an_agent_whose_certificate_is_ignored(site: Site) -> None:
    site.answer("/puppet/v3/environments", Response(status=403))
    found = site.errors(agent=True)["the master ignores the agent's certificate"]
    assert found.rule == "T03"


def test_an_agent_who_has_expired_by_the_masters_clock_only(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the master refuses then is as good as ever."""
    later = time.time() + LATER
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: later)
    site.answer("/puppet/v3/environments", Response(status=403))
    found = site.errors(agent=True)["the master ignores the agent's certificate"]
    assert "has expired" in found.detail
    assert "timedatectl" in found.fix
    assert not any(step.destroys for step in found.steps)


def test_without_the_masters_time_the_clocks_are_compared_first(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: None)
    errors = site.errors(now=time.time() + LATER)
    assert "the clocks differ" not in errors
    fix = errors["certificate expired"].steps
    assert [step.command for step in fix[:2]] == ["date -u", "date -u"]
    assert all(step.only_if.startswith("the clocks are right") for step in fix[2:])


def test_any_answer_has_the_masters_time(site: Site) -> None:
    for status in (403, 404):
        site.answer(CA_PATH, Response(status=status, body=b"Forbidden request"))
        assert "the clocks differ" in site.errors(now=time.time() + LATER), status


# -- a CA on another host ------------------------------------------------------------------------------


def _without_ca(site: Site) -> None:
    """Answer as a master does whose CA service is disabled."""
    for path in (CA_PATH, CRL_PATH):
        site.answer(path, Response((("X-Puppet-Version", "7.9.5"),), b"Not Found", status=404))


def test_a_compiler_without_ca_server_is_in_order_for_agents_that_have_the_ca(site: Site) -> None:
    """They ask it for neither CA nor CRL; one that refreshes its CRL goes on with the one that it has."""
    _without_ca(site)
    found = {diagnosis.title: diagnosis for diagnosis in site.probe(agent=True)}
    assert {diagnosis.severity for diagnosis in found.values()} == {Severity.NOTICE}
    assert {"no CA service", "the agent's certificate is accepted", "accepted"} <= set(found)
    site.ca.revoke(NAME)
    site.agent.crl.write_bytes(site.ca.crl_bundle)
    assert "the master's certificate is revoked" in site.errors()


def test_an_expired_compiler_of_an_unknown_ca(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its dates need no CA."""
    _without_ca(site)
    now = time.time() + LATER
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: now)
    found = livecheck.probe(*site.address, name=NAME, now=now)
    errors = {diagnosis.title for diagnosis in found if diagnosis.severity is Severity.ERROR}
    assert errors == {"certificate expired"}


def test_a_compiler_stops_new_agents_and_nobody_says_that_it_is_of_another_ca(site: Site) -> None:
    _without_ca(site)
    found = {diagnosis.title: diagnosis for diagnosis in livecheck.probe(*site.address, name=NAME, now=time.time())}
    assert set(found) == {"a Puppet master answers", "no CA service", "TLS"}
    assert found["no CA service"].severity is Severity.WARNING
    assert [step.command for step in found["no CA service"].steps] == [
        "puppet config set ca_server <name> --section agent"
    ]


def test_the_ca_of_a_compiler_is_that_of_this_hosts_agents(site: Site) -> None:
    """Their own server is another one, which has a CA."""
    _without_ca(site)
    place = site.ca.enrol(site.directory / "ca", "127.0.0.1")
    with LabMaster(site.ca, place) as primary:
        found = livecheck.probe(*site.address, name=NAME, now=time.time(), primary=primary.address)
    titles = {diagnosis.title: diagnosis for diagnosis in found}
    assert titles["CA"].detail == f"a Puppet master, 127.0.0.1:{primary.address[1]}"
    assert set(titles) == {"a Puppet master answers", "CA", "TLS", "accepted"}
    # It does not answer any more.
    found = livecheck.probe(*site.address, name=NAME, now=time.time(), primary=primary.address)
    assert "no CA service" in {diagnosis.title for diagnosis in found}


def _compiler(site: Site, ca: LabMaster, **more: Any) -> list[Diagnosis]:
    """Check a master without a CA service whose agents have another host as their ca_server, under this name."""
    _without_ca(site)
    return livecheck.probe(*site.address, ca=site.agent.ca, crl=site.agent.crl, name=NAME, now=time.time(),
                           authority=ca.address, **more)  # fmt: skip


def test_the_ca_is_asked_where_it_is(site: Site) -> None:
    place = site.ca.enrol(site.directory / "ca", "127.0.0.1")
    with LabMaster(site.ca, place) as ca:
        found = {diagnosis.title: diagnosis for diagnosis in _compiler(site, ca)}
    assert {diagnosis.severity for diagnosis in found.values()} == {Severity.NOTICE}
    assert found["CA"].detail == f"a Puppet master, 127.0.0.1:{ca.address[1]}"
    assert "accepted" in found


def test_the_cas_server_is_verified_with_the_agents_own_ca(site: Site) -> None:
    other = LabCA("ca.example")
    with LabMaster(other, other.enrol(site.directory / "ca", "127.0.0.1")) as ca:
        found = _compiler(site, ca)
    assert "another CA" in {diagnosis.title for diagnosis in found}
    refused = [diagnosis.detail for diagnosis in found if "is from another CA" in diagnosis.title]
    assert any(detail.startswith("the CA's server 127.0.0.1:") for detail in refused)
    with LabMaster(site.ca, site.ca.enrol(site.directory / "named", "ca.example")) as ca:
        wrong = next(diagnosis for diagnosis in _compiler(site, ca) if diagnosis.title == "wrong name")
    assert wrong.steps[0].command == "puppet config set ca_server <name> --section agent"


def test_a_ca_that_does_not_answer_is_named(site: Site) -> None:
    with LabMaster(site.ca, site.place) as ca:
        pass
    errors = [diagnosis for diagnosis in _compiler(site, ca) if diagnosis.severity is Severity.ERROR]
    assert ["the agents' ca_server" in error.detail for error in errors] == [True]


# -- not a master ------------------------------------------------------------------------------------


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    found = only(livecheck.probe(*address, now=time.time()))
    assert (found.severity, found.title) == (Severity.ERROR, "no connection")
    where = "{}:{}".format(*address)
    assert found.detail == f"no Puppet master answers at {where}: nothing listens there: Connection refused"


def test_an_unknown_host() -> None:
    found = only(livecheck.probe("no-such-host.invalid", 8140, now=time.time()))
    assert found.title == "unknown host"


def test_plain_http() -> None:
    def talk(connection: socket.socket, _over: threading.Event) -> None:
        connection.recv(4096)
        connection.sendall(
            b"HTTP/1.1 400 Bad Request\r\nServer: nginx/1.22.1\r\nConnection: close\r\n\r\n<html>400</html>"
        )

    with listening(talk) as address:
        found = only(livecheck.probe(*address, now=time.time()))
    assert found.title == "plain HTTP"
    assert found.detail.endswith(": the server (nginx/1.22.1) answered the TLS handshake with HTTP")


def test_something_else_than_tls() -> None:
    def talk(connection: socket.socket, _over: threading.Event) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        connection.recv(4096)

    with listening(talk) as address:
        found = only(livecheck.probe(*address, now=time.time()))
    assert found.title == "no TLS"
    assert found.detail.endswith("it sent 'SSH-2.0-OpenSSH_9.2'")


def test_a_server_that_closes_at_once() -> None:
    with listening(lambda connection, _over: connection.shutdown(socket.SHUT_RDWR)) as address:
        assert only(livecheck.probe(*address, now=time.time())).title == "no TLS"


def test_a_silent_server() -> None:
    def talk(_connection: socket.socket, over: threading.Event) -> None:
        over.wait(30)

    with listening(talk) as address:
        found = only(livecheck.probe(*address, now=time.time(), timeout=0.3))
    assert found.title == "too slow"


def secured(site: Site, talk: Callable[[ssl.SSLSocket, threading.Event], None]) -> Callable[..., None]:
    """Talk after a proper handshake."""

    def handle(connection: socket.socket, over: threading.Event) -> None:
        with site.master.context().wrap_socket(connection, server_side=True) as tls:
            talk(tls, over)

    return handle


def test_a_slow_answer(site: Site) -> None:
    def talk(tls: ssl.SSLSocket, over: threading.Event) -> None:
        if tls.recv(4096):
            tls.sendall(b"HTTP/1.1 200 OK\r\n")
            while not over.wait(0.02):
                tls.sendall(b"X-Slow: 1\r\n")

    with listening(secured(site, talk)) as site.address:
        found = {
            diagnosis.title for diagnosis in livecheck.probe(*site.address, name="else", now=time.time(), timeout=0.5)
        }
    assert found == {"too slow", "TLS", "wrong name"}  # the handshake is judged all the same


@pytest.mark.parametrize(
    ("sent", "what"),
    [(b"", "no answer"), (b"nonsense\r\n\r\n", "not HTTP"), (b"HTTP/1.1 200 OK\r\nA" + b"a" * 70_000, "not HTTP")],
)
def test_an_answer_that_is_not_http(site: Site, sent: bytes, what: str) -> None:
    def talk(tls: ssl.SSLSocket, _over: threading.Event) -> None:
        if tls.recv(4096) and sent:
            tls.sendall(sent)

    with listening(secured(site, talk)) as site.address:
        assert what in site.errors()


def test_an_endless_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.doctor.tls_client.LIMIT", 200_000)

    def talk(tls: ssl.SSLSocket, over: threading.Event) -> None:
        if tls.recv(4096):
            tls.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not over.is_set():
                tls.sendall(b"A" * 65536)

    with listening(secured(site, talk)) as site.address:
        assert "answer too large" in site.errors()


# -- protocols --------------------------------------------------------------------------------------------


def speaking(site: Site, lowest: str, highest: str) -> LabServer:
    """The lab master behind old TLS."""

    def context() -> ssl.SSLContext:
        made = site.master.context()
        made.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            made.minimum_version, made.maximum_version = ssl.TLSVersion[lowest], ssl.TLSVersion[highest]
        return made

    def answer(request: Request, certname: str | None) -> Response:
        return site.master.answer(request, certname)

    return LabServer(context, answer)


@pytest.mark.parametrize(
    ("lowest", "highest", "severity", "what", "detail"),
    [
        ("TLSv1", "TLSv1", Severity.ERROR, "no TLS 1.2", "TLSv1 is the newest version of the master"),
        ("TLSv1", "TLSv1_3", Severity.WARNING, "TLS below 1.2", "the master accepts TLSv1 and TLSv1.1"),
        ("TLSv1_1", "TLSv1_2", Severity.WARNING, "TLS below 1.2", "the master accepts TLSv1.1"),
    ],
)
def test_old_tls(site: Site, lowest: str, highest: str, severity: Severity, what: str, detail: str) -> None:
    server = speaking(site, lowest, highest)
    server.start()
    try:
        site.address = server.address
        found = {diagnosis.title: diagnosis for diagnosis in site.probe()}
    finally:
        server.close()
    assert found[what].severity is severity
    assert found[what].detail.startswith(detail)


# -- Puppet 3 ---------------------------------------------------------------------------------------------


def test_a_master_of_puppet_3(site: Site) -> None:
    def answer(request: Request, _certname: str | None) -> Response:
        if request.path == "/production/certificate/ca":
            return Response(status=200, body=site.ca.ca_bundle)
        if request.path.startswith("/production/"):
            return Response(status=403, body=b"Forbidden request")
        return Response(status=400, body=b"The environment must be purely alphanumeric, not 'puppet-ca'")

    server = LabServer(site.master.context, answer)
    server.start()
    try:
        site.address = server.address
        found = site.probe()
    finally:
        server.close()
    assert [diagnosis.title for diagnosis in found] == [
        "a Puppet master answers",
        "TLS",
        "a Puppet 3 master",
        "accepted",
    ]

"""What this host's server is set to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host import serverconf
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    type Write = Callable[..., Path]

WEB = """webserver: {
    access-log-config: FOLDER/request-logging.xml
    client-auth: want
    ssl-host: 0.0.0.0
    ssl-port: 8140
}
"""
PUPPETSERVER = """jruby-puppet: {
    gem-home: /var/lib/puppetserver/jruby-gems
    gem-path: [${jruby-puppet.gem-home}, "/usr/lib/puppetserver/vendored-jruby-gems"]
    # (optional) master-conf-dir: /nowhere
    server-conf-dir: FOLDER
}
"""
CONF = (
    "[main]\nssldir = FOLDER/ssl\n[server]\ncertname = puppet.example\ncadir = FOLDER/ca\n[agent]\ncertname = other\n"
)
LOGGING = "<configuration><appender><file>/var/log/access.log</file></appender></configuration>"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a server's files; returns its ``conf.d``."""

    def write(web: str = WEB, conf: str = CONF, auth: str = "", ca: str = "", server: str = PUPPETSERVER) -> Path:
        for name in ("conf.d", "services.d", "ca"):
            (tmp_path / name).mkdir()
        for name, text in {
            "conf.d/webserver.conf": web, "puppet.conf": conf, "conf.d/auth.conf": auth, "services.d/ca.cfg": ca,
            "conf.d/puppetserver.conf": server, "request-logging.xml": LOGGING, "ca/ca_key.pem": "key",
        }.items():  # fmt: skip
            if text:
                (tmp_path / name).write_text(text.replace("FOLDER", str(tmp_path)))
        return tmp_path / "conf.d"

    return write


def test_the_packages_files(write: Write, tmp_path: Path) -> None:
    found = serverconf.read(write())
    ssl = tmp_path / "ssl"
    assert (found.host, found.port, found.address) == (serverconf.EVERYWHERE[0], 8140, ("127.0.0.1", 8140))
    assert (found.certificate, found.key) == (ssl / "certs/puppet.example.pem", ssl / "private_keys/puppet.example.pem")
    assert (found.ca, found.crl, found.cadir) == (ssl / "certs/ca.pem", ssl / "crl.pem", tmp_path / "ca")
    assert (found.plain, found.trusts_headers, found.access_log) == (False, False, Path("/var/log/access.log"))


def test_the_webservers_own_files_come_first(write: Write) -> None:
    files = "ssl-cert: /c.pem\nssl-key: /k.pem\nssl-ca-cert: /ca.pem\nssl-crl-path: /crl.pem"
    found = serverconf.read(write(f'webserver: {{ ssl-host: "::", ssl-port: "8141"\n{files} }}'))
    assert [str(path) for path in (found.certificate, found.key, found.ca, found.crl)] == [
        "/c.pem", "/k.pem", "/ca.pem", "/crl.pem",
    ]  # fmt: skip
    assert found.address == ("::1", 8141)


@pytest.mark.parametrize(
    ("service", "is_ca"),
    [
        ("puppetlabs.services.ca.certificate-authority-service/certificate-authority-service\n", True),
        (
            "puppetlabs.services.ca.certificate-authority-disabled-service/certificate-authority-disabled-service\n",
            False,
        ),
        ("#puppetlabs.services.ca.certificate-authority-service/certificate-authority-service\n", False),
        ("", True),
    ],
)
def test_a_compiler_is_no_ca(service: str, is_ca: bool, write: Write) -> None:
    assert bool(serverconf.read(write(ca=service)).cadir) is is_ca


def test_a_ca_whose_key_is_elsewhere(write: Write, tmp_path: Path) -> None:
    directory = write()
    (tmp_path / "ca/ca_key.pem").unlink()
    assert serverconf.read(directory).cadir is None


def test_tls_may_end_elsewhere(write: Write) -> None:
    found = serverconf.read(
        write("webserver: { ssl-host: 1.2.3.4, port: 8080 }", auth="authorization: { allow-header-cert-info: true }")
    )
    assert (found.plain, found.trusts_headers, found.address) == (True, True, ("1.2.3.4", 8140))


@pytest.mark.parametrize(
    ("web", "error"),
    [
        ("webserver: { host: 0.0.0.0, port: 8080 }", "listens without TLS only"),
        ("webserver: { ssl-port: x }", "sets ssl-port to 'x'"),
        ("webserver: { ssl-port: 8140, ssl-cert: /c.pem }", "sets ssl-cert without the others"),
        ("webserver: { ssl-port: ${port} }", "cannot be read: line 1"),
        ("webserver: {", "cannot be read: line 1"),
        ("", "listens without TLS only"),
    ],
)
def test_what_cannot_be_used(web: str, error: str, write: Write) -> None:
    with pytest.raises(InspectorError, match=error.replace("$", r"\$")):
        serverconf.read(write(web))


def test_a_host_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InspectorError, match="no Puppet server on this host"):
        serverconf.read(tmp_path / "nothing")
    monkeypatch.setattr(serverconf, "_running", lambda: None)
    monkeypatch.setattr(serverconf, "PLACES", (tmp_path / "a", tmp_path / "b"))
    with pytest.raises(InspectorError, match="none is installed"):
        serverconf.read()


@pytest.mark.parametrize("word", ["conf.d", "WHOLE"])
def test_where_a_server_that_runs_has_its_files(word: str, tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    word = word.replace("WHOLE", str(tmp_path / "conf.d"))
    words = [sys.executable, "-c", "input()", "-jar", "/usr/share/puppetserver/puppetserver.jar", "--config", word]
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        assert eventually(lambda: tmp_path / "conf.d" in [config.resolve() for config in serverconf._configs()])
        process.communicate(b"\n")


def test_several_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [tmp_path / name for name in ("a", "b")]
    for each in both:
        each.mkdir()
    monkeypatch.setattr(serverconf, "_configs", lambda: [*both, *both, tmp_path / "gone"])
    with pytest.raises(InspectorError, match=r"Several servers run on this host, with .*/a, .*/b"):
        serverconf.read()
    monkeypatch.setattr(serverconf, "_configs", lambda: both[:1])
    assert serverconf._running() == both[0]


@pytest.mark.parametrize(("host", "address"), [("localhost", "127.0.0.1"), ("::", "::"), ("[::1]", "::1")])
def test_an_address_or_a_name_of_one(host: str, address: str, write: Write) -> None:
    found = serverconf.read(write(f'webserver: {{ ssl-port: 8140, ssl-host: "{host}" }}'))
    assert found.host in (address, "::1" if host == "localhost" else address)


def test_a_name_without_an_address(write: Write) -> None:
    with pytest.raises(InspectorError, match=r"sets ssl-host to .nowhere\.invalid., which has no address"):
        serverconf.read(write('webserver: { ssl-port: 8140, ssl-host: "nowhere.invalid" }'))


def test_the_one_that_runs_comes_first(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write()
    monkeypatch.setattr(serverconf, "_running", lambda: directory)
    assert serverconf.read().directory == directory

"""Every mistake at the proxy's start is one sentence with what to do; what it exists to diagnose is a warning."""

from __future__ import annotations

import socket
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from inspector.errors import InspectorError
from inspector.host import pki, puppetconf
from inspector.lab.ca import LabCA
from inspector.proxy import options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    type Settle = Callable[..., options.Settings]

NAME = "proxy.example"


@pytest.fixture
def ca() -> LabCA:
    return LabCA("master.example")


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> pki.SslDirPaths:
    """The ssldir of an enrolled host."""
    return ca.enrol(tmp_path / "ssl", NAME)


@pytest.fixture
def conf(place: pki.SslDirPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This host's puppet.conf."""
    file = tmp_path / "conf" / "puppet.conf"
    file.parent.mkdir()
    file.write_text(f"[main]\nserver = master.example\nserverport = 8149\nssldir = {place.path}\n")
    own = puppetconf._Place(str(file.parent), str(tmp_path / "var"), ("$confdir/ssl",), ())
    monkeypatch.setattr(puppetconf, "_PLACES", (own,))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(options, "_addresses", lambda _: ["127.0.0.1"])  # nobody's DNS is asked
    return file


@pytest.fixture
def settle(conf: Path) -> Settle:
    """Settles options, given without their prefix."""

    def settled(*, own_mode: bool = False, mode: tuple[str, ...] = ("regular",), **given: object) -> options.Settings:
        chosen: dict[str, Any] = {f"puppet_{name}": str(value) for name, value in given.items()}
        return options.resolve(options.with_defaults(mode=list(mode), **chosen), own_mode=own_mode)

    return settled


def test_an_enrolled_host_needs_no_options(settle: Settle, place: pki.SslDirPaths) -> None:
    settings = settle()
    assert settings.master == ("master.example", 8149)
    assert settings.master_name == "master.example"
    assert settings.listen[0] == "127.0.0.1"
    assert settings.presented_path == place.certificate
    assert settings.identity_text == f"keys:{place.path}"
    assert settings.warnings == ()


def test_options_win_over_puppet_conf(settle: Settle, tmp_path: Path) -> None:
    settings = settle(master="other.example:1", master_name="puppet", identity="none", capture=tmp_path / "c.sqlite")
    assert (settings.master, settings.master_name) == (("other.example", 1), "puppet")
    assert (settings.identity_source.mode, settings.capture) == ("none", tmp_path / "c.sqlite")


def test_the_ca_of_puppet_conf_is_that_of_its_own_master(settle: Settle, conf: Path) -> None:
    assert settle().authority is None
    conf.write_text(conf.read_text() + "ca_server = ca.example\n")
    assert settle().authority == ("ca.example", 8149)
    conf.write_text(conf.read_text() + "ca_port = 8141\n")
    settings = settle()
    assert settings.authority == ("ca.example", 8141)
    lines = "\n".join(options.startup_lines(settings, ["127.0.0.1:8140"]))
    assert "  CA          ca.example:8141 (ca_server of puppet.conf)" in lines
    assert "--ca_server" in lines
    assert settle(master="master.example:8149,other.example").authority == ("ca.example", 8141)
    # Nothing here says where another site's CA is.
    assert settle(master="other.example").authority is None


@pytest.mark.parametrize(
    ("method", "target", "to_ca"),
    [
        ("GET", "/puppet-ca/v1/certificate/ca", True),
        ("POST", "/puppet-ca/v1/certificate_renewal", True),
        ("GET", "/puppet-ca/v2/anything", False),
        ("GET", "/puppet-ca/v1/anything", True),
        ("GET", "/production/certificate_revocation_list/ca", True),
        ("PUT", "/certificate_request/a", True),
        ("POST", "/puppet/v3/catalog/a?x=/puppet-ca/v1/certificate/ca", False),
        ("GET", "/status/v1/simple", False),
        ("GET", "/healthz/live", False),
    ],
)
def test_which_requests_are_for_the_ca(settle: Settle, conf: Path, method: str, target: str, to_ca: bool) -> None:
    conf.write_text(conf.read_text() + "ca_server = ca.example\n")
    assert settle().authority_for(method, target) == (("ca.example", 8149) if to_ca else None)
    # An agent that uses it as its HTTP proxy says itself which server it wants.
    assert settle(connect="trust").authority_for(method, target) is None


def test_as_an_http_proxy_it_says_how_an_agent_uses_it(
    settle: Settle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From whatever directory that is started: without its bundle an agent downloads it, from anybody."""
    monkeypatch.chdir(tmp_path)
    settings = settle(connect="trust")
    assert (settings.presented, settings.interposes, settings.listen[0]) == (None, True, "127.0.0.1")
    text = "\n".join(options.startup_lines(settings, ["192.0.2.7:8140"]))
    assert "puppet agent -t --http_proxy_host 192.0.2.7 --http_proxy_port 8140 --no_proxy none" in text
    assert f"--localcacert {tmp_path}/trust/ca.pem --hostcrl {tmp_path}/trust/crl.pem" in text


def test_as_an_http_proxy_it_has_one_process(conf: Path) -> None:
    values = options.with_defaults(puppet_connect="trust")
    with pytest.raises(InspectorError, match="not possible with --workers"):
        options.resolve(values, own_mode=False, shared=True)


def test_a_mode_of_the_users_own_names_the_master(settle: Settle) -> None:
    settings = settle(own_mode=True, mode=("reverse:https://m.example:8150/@9000",))
    assert settings.master == ("m.example", 8150)
    assert settle(own_mode=True, mode=("transparent",)).master == ("master.example", 8149)


def test_the_introduction_says_how_to_come(settle: Settle, place: pki.SslDirPaths) -> None:
    text = "\n".join(options.startup_lines(settle(), ["127.0.0.1:8155"]))
    assert str(place.certificate) in text
    assert f"puppet agent -t --server {NAME} --serverport 8155" in text


@pytest.mark.parametrize(
    ("addresses", "listens"),
    [
        (["127.0.0.1", "::1"], "127.0.0.1"),
        (["127.0.1.1"], "127.0.1.1"),
        (["127.0.1.1", "127.0.0.1"], "127.0.0.1"),
        (["192.0.2.7", "127.0.1.1"], "127.0.1.1"),
        (["::1"], "::1"),
        ([], "127.0.0.1"),
    ],
)
def test_it_listens_where_agents_look_for_it_on_loopback(
    addresses: list[str], listens: str, settle: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "_addresses", lambda _: addresses)
    settings = settle()
    assert settings.listen[0] == listens
    text = "\n".join(options.startup_lines(settings, [settings.listen_address]))
    assert f"try         puppet agent -t --server {NAME} --serverport {settings.listen[1]}\n" in text


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["/nowhere/puppet-inspector", "proxy", "--set", "puppet_identity=none"],
         "/nowhere/puppet-inspector proxy --set puppet_identity=none"),
        (["/checkout/inspector/cli/__main__.py", "proxy"], "puppet-inspector proxy"),
        (["sh", "-s", "a b"], "sh -s 'a b'"),
    ],
)  # fmt: skip
def test_beyond_loopback_it_says_how_to_start_it_and_who_can_connect_then(
    argv: list[str], command: str, settle: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "_addresses", lambda _: ["192.0.2.7"])
    monkeypatch.setattr("sys.argv", argv)
    settings = settle()
    assert settings.listen[0] == "127.0.0.1"
    lines = options.startup_lines(settings, [settings.listen_address])
    # The address is none of this host's: somebody passes its connections on.
    assert f"                {command} --set puppet_listen=0.0.0.0" in lines
    assert any(f"agents look for {NAME} at 192.0.2.7" in line for line in lines)
    assert any("every host that reaches that address can connect" in line for line in lines)
    assert not any("puppet agent -t" in line for line in lines)
    given = settle(listen="0.0.0.0")  # noqa: S104
    assert any("puppet agent -t" in line for line in options.startup_lines(given, ["0.0.0.0:8140"]))


# -- mistakes -----------------------------------------------------------------------------------------


def test_no_puppet_conf_and_no_master(settle: Settle, conf: Path, place: pki.SslDirPaths) -> None:
    conf.unlink()
    with pytest.raises(InspectorError, match=r"This host has no puppet\.conf") as error:
        settle(ssldir=place.path)
    assert "puppet_master=HOST" in error.value.hint
    assert settle(ssldir=place.path, master="m.example").master == ("m.example", 8140)


def test_no_certificate(settle: Settle, place: pki.SslDirPaths) -> None:
    place.certificate.unlink()
    with pytest.raises(InspectorError, match=r"Cannot read the certificate .*proxy\.example\.pem: No such file"):
        settle()


def test_a_certificate_that_is_none(settle: Settle, place: pki.SslDirPaths) -> None:
    place.certificate.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    with pytest.raises(InspectorError, match="contains no certificate in PEM format"):
        settle()


def test_a_directory_for_a_certificate(settle: Settle, tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="Is a directory"):
        settle(cert=tmp_path)


def test_no_key(settle: Settle, place: pki.SslDirPaths) -> None:
    place.key.unlink()
    # Without its key the certname is not known from the ssldir any more, so it is named.
    with pytest.raises(InspectorError, match="Cannot read the certificate"):
        settle()
    with pytest.raises(InspectorError, match="cannot be read as a private key"):
        settle(cert=place.certificate)


def test_a_key_of_another_certificate(settle: Settle, place: pki.SslDirPaths) -> None:
    pki.write_private(place.key, pki.key_pem(pki.new_key()))
    with pytest.raises(InspectorError, match="is not the key of the certificate") as error:
        settle()
    assert "its own key" in error.value.hint


def test_no_ca_bundle(settle: Settle, place: pki.SslDirPaths) -> None:
    place.ca.unlink()
    with pytest.raises(InspectorError, match=r"Cannot read the CA bundle .*: No such file") as error:
        settle()
    assert "puppet_ca" in error.value.hint


def test_a_ca_bundle_that_is_none(settle: Settle, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nonsense")
    with pytest.raises(InspectorError, match="contains no certificate in PEM format"):
        settle(ca=tmp_path / "ca.pem")


@pytest.mark.parametrize("text", ["keys", "keys:", "mint", "headers:x", "me", ":"])
def test_an_identity_that_is_none(settle: Settle, text: str) -> None:
    with pytest.raises(InspectorError, match="is not a valid value") as error:
        settle(identity=text)
    assert "keys:DIR" in error.value.hint


def test_identities_that_are_not_there(settle: Settle, tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match=r"There is no directory .*absent"):
        settle(identity=f"keys:{tmp_path}/absent")
    with pytest.raises(InspectorError, match=r"contains no usable ca_crt\.pem"):
        settle(identity=f"mint:{tmp_path}")


@pytest.mark.parametrize("text", ["m:port", ":8140", "m:99999"])
def test_an_address_that_is_none(settle: Settle, text: str) -> None:
    for name in ("master", "listen"):
        with pytest.raises(InspectorError, match="is not an address"):
            settle(**{name: text})


def test_a_port_in_use(settle: Settle) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        with pytest.raises(InspectorError, match=f"Cannot listen on 127.0.0.1:{port}: Address already in use") as error:
            settle(listen=f"127.0.0.1:{port}")
        assert "puppet_listen" in error.value.hint
        # A mode of the user's own listens by itself.
        assert settle(listen=f"127.0.0.1:{port}", own_mode=True).listen == ("127.0.0.1", port)


def test_an_address_of_another_host(settle: Settle) -> None:
    with pytest.raises(InspectorError, match=r"Cannot listen on 192\.0\.2\.1"):
        settle(listen="192.0.2.1")


def test_the_next_free_port_is_taken(settle: Settle, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        monkeypatch.setattr(puppetconf, "PORT", port)
        assert settle().listen[1] > port


# -- what the tool exists to diagnose -----------------------------------------------------------------


def test_a_ca_without_crl_is_a_warning(settle: Settle, place: pki.SslDirPaths) -> None:
    place.crl.unlink()
    (warning,) = settle().warnings
    assert "There is no CRL to check agents with" in warning
    assert "no identity is used towards the master" in warning


def test_a_crl_that_is_none_is_a_warning(settle: Settle, place: pki.SslDirPaths) -> None:
    place.crl.write_text("nonsense")
    assert "Cannot read the CRL" in settle().warnings[0]


def test_an_expired_crl_is_a_warning(settle: Settle, place: pki.SslDirPaths, ca: LabCA) -> None:
    now = datetime.now(UTC)
    ca.publish_crl(now - timedelta(days=9), now - timedelta(days=1))
    place.crl.write_bytes(ca.crl_bundle)
    (warning,) = settle().warnings
    assert "The CRL issued by 'CN=Puppet CA: master.example' has expired" in warning


def test_a_crl_that_does_not_cover_the_chain_is_a_warning(settle: Settle, place: pki.SslDirPaths, ca: LabCA) -> None:
    place.crl.write_bytes(ca.signing_crl)
    (warning,) = settle().warnings
    assert "The CRL issued by 'CN=Puppet Root CA" in warning
    assert "is missing" in warning


def test_a_certificate_that_agents_refuse_is_a_warning(settle: Settle, place: pki.SslDirPaths, ca: LabCA) -> None:
    ca.revoke(NAME)
    place.crl.write_bytes(ca.crl_bundle)
    assert "is revoked" in settle().warnings[0]
    key = pki.read_key(place.key)
    old = pki.sign(
        ca.authority, key.public_key(), NAME, not_before=datetime(2020, 1, 1, tzinfo=UTC), lifetime=timedelta(1)
    )
    place.certificate.write_bytes(pki.pem(old))
    assert "Agents will refuse the presented certificate: The certificate" in settle().warnings[0]
    assert "has expired" in settle().warnings[0]


# -- where to record ----------------------------------------------------------------------------------


def test_a_capture_is_a_file_or_a_new_one_in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert options.capture_path("x.sqlite").name == "x.sqlite"
    for text in (str(tmp_path), "new/"):
        path = options.capture_path(text)
        assert path.parent == tmp_path or path.parent.name == "new"
        datetime.strptime(path.name, "%Y%m%dT%H%M%SZ.sqlite").replace(tzinfo=UTC)
    assert options.capture_path("").parent.name == "captures"


def test_our_own_directory_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("captures", "others"):
        (tmp_path / name).mkdir(mode=0o755)
    options.capture_path("")
    options.capture_path("others")
    assert stat.S_IMODE((tmp_path / "captures").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "others").stat().st_mode) == 0o755


def test_words_are_read_as_mitmdump_reads_them() -> None:
    read = options.parse_assignments(["puppet_master=a=b", "puppet_unsafe_keys=true", "puppet_only="])
    assert read == {"puppet_master": "a=b", "puppet_unsafe_keys": True, "puppet_only": ""}


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("puppet_mastr=x", "Do you mean puppet_master"),
        ("listen_port=1", "docs/proxy.md lists them"),
        ("puppet_unsafe_keys=yes", "Write true or false"),
        ("puppet_unsafe_keys", "Write true or false"),
        ("puppet_master", "has no value"),
    ],
)
def test_words_that_are_no_option(word: str, text: str) -> None:
    with pytest.raises(InspectorError) as raised:
        options.parse_assignments([word])
    assert text in f"{raised.value.message} {raised.value.hint}"


def test_a_list_is_given_word_by_word() -> None:
    assert options.parse_assignments(["puppet_fault=500 agent:a", "puppet_fault=reset agent:b"]) == {
        "puppet_fault": ["500 agent:a", "reset agent:b"]
    }


def _with_faults(*lines: str, only: str = "") -> options.Settings:
    return options.resolve(options.with_defaults(mode=[], puppet_fault=lines, puppet_only=only), own_mode=False)


@pytest.mark.usefixtures("conf")
def test_patterns_that_are_too_many_are_refused_at_the_start() -> None:
    with pytest.raises(InspectorError, match="puppet_only has too many patterns: "):
        _with_faults(only=",".join(f"web{number}*.{'x' * 200}.example" for number in range(50_000)))


@pytest.mark.usefixtures("conf")
def test_no_fault_is_for_every_agent() -> None:
    for line in ("500", "500 phase:catalog", "500 agent:*", "500 -agent:web1.example"):
        with pytest.raises(InspectorError, match="would be injected into every agent's runs") as raised:
            _with_faults("500 agent:web1.example", line)
        assert "agent:web1.example" in raised.value.hint
    assert [fault.line for fault in _with_faults("500 agent:web*", "reset agent:192.0.2.7").faults] == [
        "500 agent:web*", "reset agent:192.0.2.7",
    ]  # fmt: skip
    assert _with_faults("500", only="web1.example").faults
    assert _with_faults("500 agent:web1.example").faults[0].agents == ("web1.example",)


@pytest.mark.usefixtures("conf")
def test_without_faults_none_is_announced() -> None:
    assert _with_faults().faults == ()
    assert not any(line.startswith("-- fault") for line in options.startup_lines(_with_faults(), []))
    settings = _with_faults("500 agent:web1.example")
    of_run = options.startup_lines(replace(settings, descriptors=(5,)), [])
    assert [line for line in of_run if line.startswith("-- fault")]
    lines = options.startup_lines(settings, [])
    assert lines[-1] == "-- fault: on purpose, as long as this proxy runs: 500 agent:web1.example"

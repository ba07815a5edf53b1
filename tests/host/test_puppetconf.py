"""Settings from puppet.conf, from the command line, and from the standard locations of Puppet's packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.host.puppetconf import settings_of, split_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    type Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a puppet.conf; returns its confdir."""

    def conf(text: str) -> Path:
        (tmp_path / "puppet.conf").write_text(text)
        return tmp_path

    return conf


def test_the_agents_section_wins(write: Write) -> None:
    confdir = write(
        "server = top.example\n# server = comment.example\n[main]\nserver=main.example\ncertname = web1.example\n"
        "[master]\nserverport = 8142\n[agent]\n  server = agent.example  # ours\n"
    )
    conf = puppetconf.read(confdir=confdir)
    assert (conf.server, conf.port, conf.certname) == ("agent.example", 8142, "web1.example")
    assert conf.path == confdir / "puppet.conf"


def test_defaults(tmp_path: Path) -> None:
    conf = puppetconf.read(ssldir=tmp_path / "ssl", confdir=tmp_path)
    assert (conf.path, conf.server, conf.port) == (None, "puppet", 8140)
    assert (conf.ca_port, conf.report_port, conf.server_list, conf.use_srv_records, conf.daemonize) == (
        None, None, (), False, True,
    )  # fmt: skip
    assert conf.certname
    assert (conf.http_proxy, conf.http_proxy_credentials, conf.no_proxy) == (None, "", "localhost, 127.0.0.1")
    assert (conf.ca, conf.crl) == (tmp_path / "ssl/certs/ca.pem", tmp_path / "ssl/crl.pem")
    assert (conf.revocation, conf.connect_timeout, conf.read_timeout) == ("chain", 120.0, 600.0)
    assert conf.ca_fingerprint == ""
    assert conf.servers == (("puppet", 8140),)


def test_every_server_and_port(write: Write) -> None:
    confdir = write(
        "[main]\nmasterport = 8150\nserver_list = a.example:8141, b.example\nca_server = ca.example\nca_port = 8143\n"
        "report_server = r.example\nreport_port = 8144\nuse_srv_records = true\ndaemonize = false\n"
        "http_proxy_host = proxy.example\nno_proxy = .example\nhttp_proxy_user = u\nhttp_proxy_password = p:q\n"
    )
    conf = puppetconf.read(confdir=confdir)
    assert conf.server_list == (("a.example", 8141), ("b.example", 8150))
    assert (conf.server, conf.port) == ("a.example", 8141)
    assert (conf.ca_server, conf.ca_port, conf.report_server, conf.report_port) == (
        "ca.example", 8143, "r.example", 8144,
    )  # fmt: skip
    assert conf.use_srv_records
    assert not conf.daemonize
    assert (conf.http_proxy, conf.http_proxy_credentials) == (("proxy.example", 3128), "u:p:q")
    assert conf.no_proxy == ".example"
    assert conf.servers == (("a.example", 8141), ("b.example", 8150), ("ca.example", 8143), ("r.example", 8144))


def test_what_the_agent_trusts(write: Write, tmp_path: Path) -> None:
    confdir = write(
        f"[main]\nlocalcacert = {tmp_path}/bundle.pem\nhostcrl = {tmp_path}/crls.pem\nca_fingerprint = AB:CD\n"
        "certificate_revocation = leaf\nhttp_connect_timeout = 3m\nhttp_read_timeout = 7s\n"
    )
    conf = puppetconf.read(confdir=confdir)
    assert (conf.ca, conf.crl) == (tmp_path / "bundle.pem", tmp_path / "crls.pem")
    assert (conf.revocation, conf.connect_timeout, conf.read_timeout) == ("leaf", 180.0, 7.0)
    assert conf.ca_fingerprint == "AB:CD"


@pytest.mark.parametrize(
    ("text", "revocation"),
    [("true", "chain"), ("False", "false"), ("Leaf", "leaf"), ("nonsense", "chain")],
)
def test_the_words_of_certificate_revocation(text: str, revocation: str, write: Write) -> None:
    assert puppetconf.read(confdir=write(f"certificate_revocation = {text}\n")).revocation == revocation


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("2h", 7200.0), ("1d", 86400.0), ("0", 0.0), ("soon", 120.0)]
)
def test_a_timeout_has_puppets_units(text: str, seconds: float, write: Write) -> None:
    assert puppetconf.read(confdir=write(f"http_connect_timeout = {text}\n")).connect_timeout == seconds


def test_references_are_filled_in(write: Write, tmp_path: Path) -> None:
    confdir = write(
        f"[main]\nvardir = {tmp_path}/var\nssldir = $vardir/ssl\ncadir = ${{ssldir}}/ca\nserver = $loop\nloop=$loop\n"
    )
    conf = puppetconf.read(confdir=confdir)
    assert (conf.ssldir, conf.cadir) == (tmp_path / "var/ssl", tmp_path / "var/ssl/ca")
    assert conf.server == "$loop"


def test_the_vardir_of_a_confdir_is_the_packages(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    place = puppetconf._Place("/nowhere", "/packages/var", ("$confdir/ssl",), ())
    monkeypatch.setattr(puppetconf, "_PLACES", (place,))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert str(puppetconf.read(confdir=write("ssldir = $vardir/ssl\n")).ssldir) == "/packages/var/ssl"


def test_the_command_line_wins(write: Write, tmp_path: Path) -> None:
    confdir = write("[agent]\nserver = a.example\nserverport = 1\ncertname = b.example\n")
    other = tmp_path / "other.conf"
    other.write_text("report_server = r.example\n")
    command = (
        f"puppet agent -t --confdir {confdir} --server=x.example --masterport 8149 --fqdn n.example --ssldir /s --noop"
    )
    conf = puppetconf.read(options=settings_of(command.split()))
    assert (conf.server, conf.port, conf.certname, str(conf.ssldir)) == ("x.example", 8149, "n.example", "/s")
    assert puppetconf.read(options={"config": str(other)}).report_server == "r.example"


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("puppet agent -t", {}),
        ("puppet agent --server a --server b", {"server": "b"}),
        ("puppet agent --serverport 1 --masterport=2", {"serverport": "2"}),
        ("puppet agent --no-use_srv_records --daemonize", {"use_srv_records": "false", "daemonize": "true"}),
        ("puppet agent --use_srv_records --environment x server y", {"use_srv_records": "true"}),
        ("puppet agent --server", {"server": ""}),
    ],
)
def test_settings_of_a_command(command: str, settings: dict[str, str]) -> None:
    assert settings_of(command.split()) == settings


# -- whose certificate --------------------------------------------------------------------------------


def _key(ssldir: Path, *names: str) -> None:
    (ssldir / "private_keys").mkdir(parents=True, exist_ok=True)
    for name in names:
        (ssldir / "private_keys" / f"{name}.pem").touch()


def test_the_certname_is_the_one_that_has_a_key(write: Write) -> None:
    confdir = write("certname = old.example\n")
    _key(confdir / "ssl", "new.example")
    assert puppetconf.read(confdir=confdir).certname == "new.example"
    _key(confdir / "ssl", "old.example")
    assert puppetconf.read(confdir=confdir).certname == "old.example"
    assert puppetconf.read(confdir=confdir, options={"certname": "third.example"}).certname == "third.example"


def test_the_certname_is_the_hosts_name_by_default(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Web1.example")
    monkeypatch.setattr("socket.getfqdn", lambda: "localhost")
    assert puppetconf.read(confdir=write("")).certname == "web1.example"


# -- where the packages keep things ------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The standard locations for root, below a temporary directory."""
    places = tuple(
        puppetconf._Place(
            f"{tmp_path}{place.confdir.removeprefix('~')}",
            f"{tmp_path}{place.vardir.removeprefix('~')}",
            tuple(s if s.startswith("$") else f"{tmp_path}{s}" for s in place.ssldirs),
            tuple(s if s.startswith("$") else f"{tmp_path}{s}" for s in place.cadirs),
            place.root,
        )
        for place in puppetconf._PLACES
    )
    monkeypatch.setattr(puppetconf, "_PLACES", places)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return tmp_path


def _write(file: Path, text: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_official_packages(root: Path) -> None:
    _write(root / "etc/puppetlabs/puppet/puppet.conf", "[main]\nserver = new.example\n")
    _write(root / "etc/puppet/puppet.conf", "[main]\nserver = left-over.example\n")
    _write(root / "etc/puppetlabs/puppetserver/ca/ca_key.pem")
    conf = puppetconf.read()
    assert (conf.server, conf.ssldir) == ("new.example", root / "etc/puppetlabs/puppet/ssl")
    assert conf.cadir == root / "etc/puppetlabs/puppetserver/ca"


def test_official_packages_before_puppet_7_keep_the_ca_in_the_ssldir(root: Path) -> None:
    _write(root / "etc/puppetlabs/puppet/puppet.conf")
    _write(root / "etc/puppetlabs/puppet/ssl/ca/ca_key.pem")
    assert puppetconf.read().cadir == root / "etc/puppetlabs/puppet/ssl/ca"


def test_debian(root: Path) -> None:
    _write(root / "etc/puppet/puppet.conf", "[main]\nrundir = $vardir/run\n")
    (root / "var/lib/puppet/ssl").mkdir(parents=True)
    conf = puppetconf.read()
    assert (conf.ssldir, conf.cadir) == (root / "var/lib/puppet/ssl", None)
    _write(root / "etc/puppet/puppetserver/ca/ca_key.pem")
    assert puppetconf.read().cadir == root / "etc/puppet/puppetserver/ca"


def test_debian_with_a_confdir_of_its_own(root: Path) -> None:
    """Debian's Puppet uses /var/lib/puppet/ssl then, unless the confdir has an ssldir with a key."""
    _write(root / "etc/puppet/puppet.conf")
    _key(root / "var/lib/puppet/ssl", "host.example")
    own = root / "own"
    _write(own / "puppet.conf")
    assert puppetconf.read(confdir=own).ssldir == root / "var/lib/puppet/ssl"
    _key(own / "ssl", "other.example")
    assert puppetconf.read(confdir=own).ssldir == own / "ssl"


def test_a_user_has_a_place_of_its_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    _write(root / "etc/puppet/puppet.conf", "server = system.example\n")
    assert puppetconf.read().server == "system.example"
    _write(root / ".puppetlabs/etc/puppet/puppet.conf", "server = mine.example\n")
    assert puppetconf.read().server == "mine.example"


# -- mistakes -----------------------------------------------------------------------------------------


def test_an_invalid_port(write: Write) -> None:
    with pytest.raises(InspectorError, match=r"puppet\.conf sets the port 'http'"):
        puppetconf.read(confdir=write("serverport = http\n"))
    with pytest.raises(InspectorError, match="Correct ca_port"):
        puppetconf.read(confdir=write("ca_port = 70000\n"))


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("a.example", ("a.example", 8140)),
        ("a.example:1", ("a.example", 1)),
        ("[::1]:2", ("::1", 2)),
        ("[::1]", ("::1", 8140)),
        ("::1", ("::1", 8140)),
    ],
)
def test_addresses(text: str, pair: tuple[str, int]) -> None:
    assert split_address(text) == pair


@pytest.mark.parametrize("text", ["", ":8140", "a:b", "a:0", "a:65536", "a:"])
def test_invalid_addresses(text: str) -> None:
    with pytest.raises(InspectorError, match="is not an address"):
        split_address(text)


NAMES = ["x" * length for length in range(1, 61)]
BOMB = "".join(f"{name} = ${name}x${name}x\n" for name in NAMES) + f"{'x' * 61} = y\nssldir = $x\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ssldir = /x\0y\n", "contains a NUL"),
        ("[agent]\ncertname = \0\n", "contains a NUL"),
        (f"serverport = {'9' * 5000}\n", "is not a port number"),
        ("serverport = ²\n", "is not a port number"),
        (f"server_list = a:{'9' * 5000}\n", "is not an address"),
        ("ssldir = ~nobody-of-this-name/ssl\n", "has no home directory"),
        (BOMB, "is too long"),
    ],
    ids=["a NUL", "a NUL in a name", "digits", "no digit", "an address", "no home", "references that double"],
)
def test_hostile_settings_are_one_sentence(text: str, reason: str, write: Write) -> None:
    with pytest.raises(InspectorError, match=reason):
        puppetconf.read(confdir=write(text))

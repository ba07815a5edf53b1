"""How this host's agent is led through the proxy: a port, options, and its environment."""

from __future__ import annotations

import hashlib
import os
import socket
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host.puppetconf import PuppetConf
from inspector.proxy.connect import preparing
from inspector.proxy.connect.dialing import SiteProxy
from inspector.proxy.connect.interception import ANY, Addition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.lab.ca import LabCA
    from inspector.lab.master import LabMaster
    from inspector.proxy.connect.preparing import PreparedRun

VARIABLES = ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY")


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def conf_of(folder: Path, **settings: object) -> PuppetConf:
    return PuppetConf(None, "puppet", 8140, folder / "ssl", "n.example", **settings)  # type: ignore[arg-type]


class Prepared:
    """Prepares runs, and closes their ports in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: list[PreparedRun] = []

    def __call__(self, listen: str | None = "127.0.0.1", *also: tuple[str, int], **settings: object) -> PreparedRun:
        run = preparing.prepare(conf_of(self.folder, **settings), self.folder / "run", listen, also)
        self.runs.append(run)
        return run


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[Prepared]:
    made = Prepared(tmp_path)
    yield made
    for run in made.runs:
        run.listening.close()


# -- the port ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has ports of its own")
def test_the_port_is_one_that_only_root_can_use(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    monkeypatch.setattr(preparing, "_FIRST_OF_USERS", first)
    first.write_text("1024\n")
    one, other = prepared(None), prepared(None)
    assert one.address[0] == other.address[0] == preparing.LOOPBACK
    assert preparing.LOWEST <= other.address[1] < one.address[1] <= preparing.HIGHEST
    first.write_text("0\n")  # in a container every user can use every port
    assert prepared(None).address[1] > preparing.HIGHEST


def test_without_such_ports_any_will_do(prepared: Prepared, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preparing, "_FIRST_OF_USERS", tmp_path / "missing")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert prepared(None).address[1] > preparing.HIGHEST


def test_nobody_else_can_take_the_port(prepared: Prepared) -> None:
    address = prepared().address
    with pytest.raises(OSError, match="in use"):
        socket.create_server(address)


def test_an_address_that_is_taken_is_an_error(prepared: Prepared) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InspectorError) as raised:
            prepared(f"127.0.0.1:{port}")
    assert raised.value.message == f"Cannot listen on 127.0.0.1:{port}: Address already in use."
    assert "--listen" in raised.value.hint


@pytest.mark.parametrize("listen", ["192.0.2.1", "nowhere.invalid:8140", "127.0.0.1:x"])
def test_an_address_of_another_host_is_an_error(listen: str, prepared: Prepared) -> None:
    with pytest.raises(InspectorError):
        prepared(listen)


# -- the plan and the options -----------------------------------------------------------------------------


def test_the_options_lead_the_agent_to_the_proxy(prepared: Prepared, tmp_path: Path) -> None:
    run = prepared()
    host, port = run.address
    assert list(run.options) == [
        "--http_proxy_host", host, "--http_proxy_port", str(port),
        "--localcacert", str(tmp_path / "run" / "ca.pem"), "--hostcrl", str(tmp_path / "run" / "crl.pem"),
    ]  # fmt: skip
    plan = run.plan
    assert (plan.certname, plan.ssldir, plan.user, plan.site) == ("n.example", f"{tmp_path}/ssl", os.geteuid(), None)
    assert (plan.ca, plan.crl) == (f"{tmp_path}/ssl/certs/ca.pem", f"{tmp_path}/ssl/crl.pem")
    assert plan.descriptors == (run.listening.fileno(),)
    assert run.notes == ()


@pytest.mark.parametrize("broken", ["certs/ca.pem", "crl.pem"])
def test_a_file_at_which_an_agent_stops_is_left_to_it(broken: str, prepared: Prepared, tmp_path: Path) -> None:
    path = tmp_path / "ssl" / broken
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("-----BEGIN nothing\n")
    other = "--hostcrl" if broken == "certs/ca.pem" else "--localcacert"
    assert [option for option in prepared().options if option in ("--localcacert", "--hostcrl")] == [other]


def test_files_elsewhere_are_the_nodes_own(prepared: Prepared, tmp_path: Path) -> None:
    run = prepared(localcacert=tmp_path / "a.pem", hostcrl=tmp_path / "b.pem", revocation="leaf", connect_timeout=5.0)
    assert (run.plan.ca, run.plan.crl) == (f"{tmp_path}/a.pem", f"{tmp_path}/b.pem")
    assert (run.plan.revocation, run.plan.timeout) == ("leaf", 4.5)
    assert prepared(connect_timeout=0.0, read_timeout=0.0).plan.timeout == 0.9 * preparing.NO_LIMIT
    assert prepared(connect_timeout=60.0, read_timeout=10.0).plan.timeout == 9.0


def test_every_server_of_the_settings_is_intercepted(prepared: Prepared) -> None:
    run = prepared(
        "127.0.0.1", ("pdb", 8081), server_list=(("a", 1), ("b", 2)), ca_server="c", report_port=3, use_srv_records=True
    )
    assert list(run.plan.servers) == [("a", 1), ("b", 2), ("c", 8140), ("a", 3), (ANY, 8140), ("pdb", 8081)]
    assert run.plan.ca_server == ("c", 1)
    assert list(prepared().plan.servers) == [("puppet", 8140)]


# -- the site's own proxy ---------------------------------------------------------------------------------


def test_a_proxy_of_the_settings_is_used_behind_ours(prepared: Prepared) -> None:
    run = prepared(http_proxy=("squid", 3128), http_proxy_credentials="user:secret", no_proxy="a, .b")
    assert run.plan.site == SiteProxy("squid", 3128, "user:secret", ("a", " .b"))
    assert list(run.options[-4:]) == ["--http_proxy_user", "none", "--http_proxy_password", "none"]
    assert not any("secret" in word for word in run.options)
    assert (run.environment, run.notes) == (dict(os.environ), ())


@pytest.mark.parametrize(
    ("value", "site"),
    [
        ("http://squid:3128", SiteProxy("squid", 3128, "", ("c",))),
        ("http://squid", SiteProxy("squid", 80, "", ("c",))),
        ("http://u%40x:p%3Aw@squid:1/", SiteProxy("squid", 1, "u@x:p:w", ("c",))),
        ("http://[2001:db8::1]:1", SiteProxy("2001:db8::1", 1, "", ("c",))),
    ],
)
@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY"])
def test_the_environment_comes_first(
    name: str, value: str, site: SiteProxy, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    run = prepared(http_proxy=("other", 1), http_proxy_credentials="a:b", no_proxy="c")
    assert run.plan.site == site
    assert {key: run.environment.get(key) for key in VARIABLES} == {
        "http_proxy": f"http://127.0.0.1:{run.address[1]}", "HTTP_PROXY": None, "no_proxy": None, "NO_PROXY": None,
    }  # fmt: skip
    assert len(run.notes) == 1
    assert os.environ[name] == value, "only the agent's environment is another one"


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
def test_an_exception_of_the_environment_does_not_lead_past_us(
    name: str, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "puppet,.internal")
    run = prepared(http_proxy=("squid", 3128), no_proxy="c")
    assert run.plan.site == SiteProxy("squid", 3128, "", ("puppet", ".internal"))
    assert not set(VARIABLES) & set(run.environment)
    assert len(run.notes) == 1


def test_the_variable_is_an_address_also_with_ipv6(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://squid:1")
    try:
        run = prepared("::1")
    except InspectorError:
        pytest.skip("there is no IPv6")
    assert run.environment["http_proxy"] == f"http://[::1]:{run.address[1]}"


@pytest.mark.parametrize("value", ["http://:1", "http://squid:x", "http://squid:99999", "http://[x"])
def test_a_variable_that_is_no_address_is_an_error(
    value: str, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", value)
    with pytest.raises(InspectorError, match="http_proxy"):
        prepared()


# -- the digest of the bundle -----------------------------------------------------------------------------


def late(prepared: Prepared, master: LabMaster, digest: str) -> list[str]:
    """The late options of an agent that expects a bundle of this digest, with a CA of the run."""
    run = prepared(ca_server="localhost", ca_port=master.address[1], ca_fingerprint=digest)
    run.plan.added_ca.parent.mkdir(exist_ok=True)
    run.plan.added_ca.write_bytes(b"ours\n")
    return run.late_options()


def test_a_digest_that_is_right_becomes_the_one_of_what_is_served(
    prepared: Prepared, master: LabMaster, ca: LabCA
) -> None:
    digest = hashlib.sha256(ca.ca_bundle).hexdigest()
    served = hashlib.sha256(Addition(b"ours\n").added_to(ca.ca_bundle)).hexdigest()
    assert late(prepared, master, digest.upper()) == ["--ca_fingerprint", served]


def test_a_digest_that_is_wrong_stays(prepared: Prepared, master: LabMaster) -> None:
    """So the agent refuses what it would refuse in a direct run."""
    assert late(prepared, master, "0" * 64) == []


def test_without_a_digest_nobody_is_asked(prepared: Prepared, master: LabMaster) -> None:
    assert late(prepared, master, "") == []
    assert master.received == []


def test_a_node_that_has_its_bundle_needs_none(
    prepared: Prepared, master: LabMaster, ca: LabCA, tmp_path: Path
) -> None:
    (tmp_path / "ssl" / "certs").mkdir(parents=True)
    (tmp_path / "ssl" / "certs" / "ca.pem").write_bytes(ca.ca_bundle)
    assert late(prepared, master, hashlib.sha256(ca.ca_bundle).hexdigest()) == []
    assert master.received == []


def test_a_server_that_is_gone_is_the_agents_to_report(prepared: Prepared, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        host, port = closed.getsockname()
    run = prepared(ca_server=host, ca_port=port, ca_fingerprint="0" * 64)
    run.plan.added_ca.parent.mkdir(exist_ok=True)
    run.plan.added_ca.write_bytes(b"ours\n")
    assert run.late_options() == []

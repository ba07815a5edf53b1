"""The settings that lie beside a CA's directory, in the places of packages and in a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.doctor import ca_settings
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from pathlib import Path

CA_CONF = "certificate-authority: { allow-subject-alt-names: true, ca-ttl: 90d }"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("cadir", "conf_d", "puppet"),
    [
        ("puppetserver/ca", "puppetserver/conf.d", "puppet"),  # since 7
        ("puppet/ssl/ca", "puppetserver/conf.d", "puppet"),  # up to 6
        ("copy/ca", "copy/conf.d", "copy"),
    ],
)
def test_the_places(tmp_path: Path, cadir: str, conf_d: str, puppet: str) -> None:
    (tmp_path / cadir).mkdir(parents=True)
    put(tmp_path / conf_d / "ca.conf", CA_CONF)
    put(tmp_path / conf_d / "auth.conf", "authorization: { version: 1, rules: [] }")
    put(tmp_path / puppet / "puppet.conf", "[main]\nautosign = /etc/other/autosign.conf\nca_ttl = 30d\n")
    put(tmp_path / puppet / "autosign.conf", "# our names\n*.example\n\n")
    found = ca_settings.beside(tmp_path / cadir)
    assert found.ca_conf["allow-subject-alt-names"] == "true"
    assert found.ca_conf["ca-ttl"] == "90d"
    assert found.ca_conf["allow-auto-renewal"] == "false"
    assert found.auth_conf == tmp_path / conf_d / "auth.conf"
    assert (found.autosign, found.ttl) == ("autosign.conf", "30d")
    assert found.listed == {"*.example"}


def test_a_directory_alone(tmp_path: Path) -> None:
    (tmp_path / "x/ca").mkdir(parents=True)
    assert ca_settings.beside(tmp_path / "x/ca") == ca_settings.CaSettings()


def test_the_section_of_the_server_comes_first(tmp_path: Path) -> None:
    put(tmp_path / "puppet.conf", "[main]\nautosign = true\n[server]\nautosign = false\n")
    assert ca_settings.beside(tmp_path / "ca").autosign == "false"


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    put(tmp_path / "conf.d/ca.conf", "certificate-authority: {")
    with pytest.raises(InspectorError, match=r"ca\.conf cannot be read"):
        ca_settings.beside(tmp_path / "ca")


def settings(path: Path, ca_conf: str, puppet_conf: str, listed: str = "") -> ca_settings.CaSettings:
    put(path / "conf.d/ca.conf", ca_conf)
    put(path / "puppet.conf", puppet_conf)
    put(path / "autosign.conf", listed)
    return ca_settings.beside(path / "ca")


def test_what_they_change(tmp_path: Path) -> None:
    old = settings(tmp_path / "old", CA_CONF, "[server]\nautosign = true\n")
    new = settings(tmp_path / "new", "certificate-authority: {}", "[main]\nautosign = false\nca_ttl = 1y\n")
    assert list(ca_settings.changes(old, old)) == []
    conf, autosign = ca_settings.changes(old, new)
    assert conf.detail == (
        "allow-subject-alt-names is true on OLD and false on NEW: NEW refuses signing requests with alternative names; "
        "ca-ttl is 90d on OLD and not set on NEW; ca_ttl in puppet.conf is not set on OLD and 1y on NEW"
    )
    assert autosign.detail.startswith("autosign is true on OLD and false on NEW")
    assert list(ca_settings.changes(old, ca_settings.CaSettings())) == []


def test_another_list_for_autosigning(tmp_path: Path) -> None:
    old, new = (settings(tmp_path / name, CA_CONF, "[main]\n", text) for name, text in (("a", "x\ny\n"), ("b", "y\nz")))
    (found,) = ca_settings.changes(old, new)
    assert found.detail == "autosign.conf: only on OLD: x; only on NEW: z"

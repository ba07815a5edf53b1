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

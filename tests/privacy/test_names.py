"""Which names mean a secret, and which values are none."""

from __future__ import annotations

import base64

from inspector.privacy.names import harmless, login, named


def test_names_of_secrets() -> None:
    for name in ("password", "root_pw", "dbPass", "keystorePassword", "requirepass", "fs.s3a.secret.key", "wep_key0",
                 "profile::db::root_password", "API_TOKEN", "wpa_passphrase"):  # fmt: skip
        assert named(name), name
    for name in ("password_max_age", "bypass", "proxy_pass", "apache::vhost::proxy_pass", "ServerTokens", "compass",
                 "key", "Exec[token]"):  # fmt: skip
        assert not named(name), name


def test_values_that_are_no_secrets() -> None:
    assert harmless("<SERVICE DEFAULT>")
    assert not harmless("<hunter2>")


def test_a_user_and_a_password_in_base64() -> None:
    packed = base64.b64encode(b"app:hunter2").decode()
    assert login("auth", packed)
    assert login("_auth", packed.rstrip("="))
    assert not login("note", packed)
    assert not login("auth", "sasl_plain")
    assert not login("auth", 5)

"""Names that mean a secret, and values that are none whatever their name."""

from __future__ import annotations

import base64
import binascii

from inspector import regex
from inspector.remembering import remembered

MASK = "MASKED"
"""The mask in exported data: ASCII, so that every notation can contain it unchanged."""

_NAME = regex.compile(
    r"(?:(?:.*[^a-z])?(?:pass|psk|pwd|pw)|.*(?:passw(?:or)?d|passphrase|passcode|passwort|rootpw|bindpw|userpw|secret|token"
    r"|(?:db|key|store|user|admin|root|ssl|ldap|bind|smtp|mail|ftp|login|require)_?pass|masterauth"
    r"|credential|snmp_?community|community_?string|erlang_?cookie"
    r"|(?:api|auth|access|account|encrypt(?:ion)?|shared|preshared|private|signing|master|license|ssl|secret|wep)"
    r"[._ -]?key))s?"
    r"(?:[_-]?(?:hash|value|data|content|string|text|base64|pem|plain|clear|new|old|key|base|[0-9]+))*",
    regex.IGNORECASE,
)
_SETTINGS = regex.compile(
    r"(?:.*[^a-z])?(?:(?:proxy|fastcgi|uwsgi|scgi|grpc|memcached)_?pass|server_?tokens)", regex.IGNORECASE
)
"""Settings of web servers: where they pass requests on to, what they reveal."""
_CAMEL = regex.compile(r"([a-z0-9])([A-Z])")
_IDENTIFIER = regex.compile(r"[\w.:@ -]{1,200}")
"""The form of a parameter's name. A reference such as ``Exec[token]`` is not one."""
_HARMLESS = regex.compile(
    r"|true|false|yes|no|on|off|undef|nil|null|none|present|absent|[*!x]+|(?:/[\w.@%+-]+)+\.\w{2,5}|[a-z]+:///\S*"
    r"|<service default>",
    regex.IGNORECASE,
)
_LOGINS = frozenset({"auth", "_auth"})
"""Names of a user and a password in base64, as Docker and npm have them."""
_LOGIN = regex.compile(r"[A-Za-z0-9+/_-]{6,}={0,2}")


@remembered(4096)
def named(name: str) -> bool:
    """Whether the name of a parameter or fact means a secret: its last words decide (not ``password_max_age``)."""
    if _IDENTIFIER.fullmatch(name) is None:
        return False
    if _SETTINGS.fullmatch(name) is not None:
        return False
    return _NAME.fullmatch(name) is not None or _NAME.fullmatch(_CAMEL.sub(r"\1_\2", name)) is not None


def harmless(value: str) -> bool:
    """Whether a value is never a secret, whatever its name: empty, a boolean, a locked password, a file path."""
    return _HARMLESS.fullmatch(value) is not None


def login(name: str, value: object) -> bool:
    """Whether a value is a user and a password in base64."""
    if name not in _LOGINS or not isinstance(value, str) or _LOGIN.fullmatch(value) is None:
        return False
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return False

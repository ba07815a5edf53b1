"""Patterns of secrets that are not marked as such: pieces of text, attributes of signing requests.

A mask keeps the form of what it replaces, so that rules give the same findings for a masked capture.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector import regex
from inspector.privacy import written
from inspector.privacy.names import MASK

if TYPE_CHECKING:
    from collections.abc import Iterator

# -- texts ------------------------------------------------------------------------------------------------

_KEY = regex.compile(
    r"(-{4,5} ?BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}(?:\s|\\[rn])*(?:Comment: [^\n]*\n)?)"
    r"[^\"<>]*?"
    r"((?:\s|\\[rn])*-{4,5} ?END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|[\"<>]|\z)"
)
"""Private keys as OpenSSL, OpenSSH and GnuPG write them, and RFC 4716."""
_PUTTY = regex.compile(
    r"(Private-Lines: [0-9]{1,4}(?:\s|\\[rn])+)[^\"<>:]*?((?:\s|\\[rn])*Private-(?:MAC|Hash):|[\"<>]|\z)"
)
_PACKED = regex.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/\r\n]{20,}={0,2}")
"""Base64 of data that starts with ``-----BEGIN``."""
AWS_KEY = regex.compile(r"(?:^|[^A-Z0-9])(?P<it>(A(?:KIA|SIA))[A-Z2-7]{16})(?:$|[^A-Z0-9])")
GITHUB_TOKEN = regex.compile(r"(?:^|[^A-Za-z0-9_])(?P<it>(gh[pousr]_)[A-Za-z0-9]{36})(?:$|[^A-Za-z0-9])")
GITLAB_TOKEN = regex.compile(r"(?:^|[^A-Za-z0-9_])(?P<it>(glpat-)[A-Za-z0-9_-]{20})(?:$|[^A-Za-z0-9_-])")
_MORE = (
    r"[A-Za-z0-9+/]*(?:(?:\r?\n|\\n)[ \t]*[A-Za-z0-9+/]{16,})*(?:(?:\r?\n|\\n)[ \t]*[A-Za-z0-9+/]{1,76}={1,2})?={0,2}"
)
"""The rest of something in base64."""
_SHAPES: tuple[tuple[tuple[str, ...], regex.Pattern[str], str], ...] = (
    (("PRIVATE KEY",), _KEY, rf"\g<1>{MASK * 3}\g<2>"),
    (("Private-Lines",), _PUTTY, rf"\g<1>{MASK}\g<2>"),
    (("AKIA", "ASIA"), AWS_KEY, r"\1MASKEDMASKEDMASK"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), GITHUB_TOKEN, rf"\1{MASK * 6}"),
    (("github_pat_",), regex.compile(r"(github_pat_)\w{20,}"), rf"\1{MASK}"),
    (("glpat-",), GITLAB_TOKEN, r"\1MASKED-MASKED-MASKED"),
    (("xox",), regex.compile(r"\b(xox[abprs]-)[A-Za-z0-9-]{10,}"), rf"\1{MASK}"),
    (("_live_", "_test_"), regex.compile(r"\b([rsp]k_(?:live|test)_)[A-Za-z0-9]{10,}"), rf"\1{MASK}"),
    (("AIza",), regex.compile(r"\b(AIza)[\w-]{16,}"), rf"\1{MASK}"),
    (("ya29.",), regex.compile(r"\b(ya29\.)[\w-]{16,}"), rf"\1{MASK}"),
    (("_pat_", "hf_", "npm_", "dop_v1_", "doo_v1_", "dor_v1_", "shpat_", "shpss_", "shpca_", "shppa_", "lin_api_",
      "tskey-", "glrt-", "gldt-", "glptt-", "glcbt-", "pul-"),
     regex.compile(r"\b((?:dckr_pat|hf|npm|do[opr]_v1|shp(?:at|ss|ca|pa)|lin_api)_|tskey-|gl(?:rt|dt|ptt|cbt)-|pul-)"
                   r"[\w-]{16,}"),
     rf"\1{MASK}"),
    (("pypi-",), regex.compile(r"\b(pypi-)[\w-]{16,}"), rf"\1{MASK}"),
    (("hvs.", "hvb.", "hvr."), regex.compile(r"\b(hv[sbr]\.)[\w-]{16,}"), rf"\1{MASK}"),
    (("s.", "b."),
     regex.compile(r"(?:^|[^\w.])(?P<it>([sb]\.)(?:[A-Za-z0-9]{24}|[A-Za-z0-9_-]{60,}))(?:$|[^\w.-])"), rf"\1{MASK}"),
    (("\xfe\xed\xfe\xed", "\xce\xce\xce\xce"),
     regex.compile("(?s)(?:\xfe\xed\xfe\xed|\xce\xce\xce\xce)\0\0\0[\1\2].*"), MASK),
    (("*\x86H\x86\xf7\r\1\7\1",), regex.compile("(?s)0[^0]{1,5}\2\1\x030.{1,5}\6\t[*]\x86H\x86\xf7\r\1\7\1.*"), MASK),
    (("/u3+7Q", "zs7Ozg"), regex.compile(rf"(?:^|[^A-Za-z0-9+/])(?P<it>(?:/u3\+7Q|zs7Ozg)A{{2}}{_MORE})"), MASK),
    (("CSqGSIb3DQEHA", "KoZIhvcNAQcB"),
     regex.compile(r"(?:^|[^A-Za-z0-9+/])(?P<it>MI(?:I[A-Za-z0-9+/]{3}IBAzCC[A-Za-z0-9+/]{3}GCSqGSIb3DQEHA"
                   r"|M[A-Za-z0-9+/]{4}CAQMwg[A-Za-z0-9+/]{5}YJKoZIhvcNAQcB|ACAQMwgAYJKoZIhvcNAQcB)"
                   rf"{_MORE})"), MASK),
    (("AGE-SECRET-KEY-",), regex.compile(r"(AGE-SECRET-KEY-)[0-9A-Z]{20,}"), rf"\1{MASK}"),
    (("/services/", "/webhooks/", "webhook"),
     regex.compile(r"(https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|[a-z.]*discord(?:app)?\.com/api/webhooks"
                   r"|[\w.-]*\.webhook\.office\.com/webhookb2)/)[\w/@.-]+"), rf"\1{MASK}"),
    (("curl ",), regex.compile(r"\b(curl [^\n|;&]*?(?:-u|--user)[ =]?['\"]?[^\s:'\"]+:)[^\s'\"]+"), rf"\1{MASK}"),
    (("mysql",), regex.compile(r"\b(mysql(?:dump|admin)?(?: [^\n|;&]*?)? -p['\"]?)[^\s'\"-][^\s'\"]*"),
     rf"\1{MASK}"),
    (("community",), regex.compile(r"(?i)\b(r[ow]community6?[ \t]+)\S+"), rf"\1{MASK}"),
    (("eyJ",), regex.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),
    (("$",), regex.compile(r"(\$(?:1|2[abxy]|5|6|7|y|gy|md5|apr1|scrypt|argon2\w{1,2}|pbkdf2[a-z0-9-]*)\$)"
                        r"[./A-Za-z0-9$=,+]{16,}"), rf"\1{MASK}"),
    (("://",), regex.compile(r"(?P<it>([A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@'\"]*:)[^\s/@'\"]+)@"), rf"\1{MASK}"),
    (("earer ", "EARER ", "asic ", "ASIC "),
     regex.compile(r"\b((?:bearer|basic) +)[A-Za-z0-9._~+/-]{16,}=*", regex.IGNORECASE), rf"\1{MASK}"),
)  # fmt: skip
"""Pieces that are always secrets: what a text with one contains, the piece, its mask."""
_BASE64 = "LS0tLS1CRUdJTi"
_SHAPED = regex.Words(dict.fromkeys((*(sign for signs, _, _ in _SHAPES for sign in signs), _BASE64)))
"""Texts of which one is in any text with such a piece."""
_SIGNS = regex.Words((
    "curl ", "mysql", "pass", "psk", "pw", "secret", "token", "credential", "community", "erlang", "_key", "-key",
    " key", ".key", "sslkey", "apikey", "authkey",
    "accesskey", "accountkey", "encryptkey", "encryptionkey", "signingkey", "masterkey", "licensekey", "private",
    "shared", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "eyj",
    "_live_", "_test_", "aiza", "ya29.", "_pat_", "hf_", "npm_", "dop_v1_", "doo_v1_", "dor_v1_", "shpat_",
    "shpss_", "shpca_", "shppa_",
    "lin_api_", "tskey-", "glrt-", "gldt-", "glptt-", "glcbt-", "pul-", "pypi-", "hvs.", "hvb.", "hvr.",
    "age-secret", "/services/", "/webhooks/", "webhook",
    "$1$",
    "$2", "$5$", "$6$", "$7$", "$y$", "$gy$", "$md5", "$apr1", "$scrypt", "$argon", "$pbkdf2", "bearer ", "basic ",
    "-----begin", "ls0tls1crudjti", "\xfe\xed\xfe\xed", "\xce\xce\xce\xce", "*\x86h\x86\xf7\r\1\7\1", "u3+7qaa",
    "zs7ozgaa", "csqgsib3dqeha", "kozihvcnaqcb", *written.SIGNS,
))  # fmt: skip
_VAULT = regex.compile(r"\b[sb]\.[a-z0-9_-]{24}")


def signs(value: str) -> tuple[str, ...]:
    """Return the signs of secrets in a text, in lower case: without any of them it contains no secret, neither in names
    nor in texts."""
    return _short_signs(value) if len(value) <= _SHORT else _signs(value)


def _signs(value: str) -> tuple[str, ...]:
    lowered = value.lower()
    found = _SIGNS.within(lowered)
    if "://" in lowered and "@" in lowered:
        found = (*found, "://")
    if _VAULT.search(lowered):
        found = (*found, "s.", "b.")
    return (*found, ":") if written.listed(lowered) else found


_SHORT = 200
"""Length of a text that often occurs again: a header, a path."""
_short_signs = lru_cache(maxsize=20_000)(_signs)


def text(value: str, *, code: bool = False) -> str:
    """Return a text with masks instead of secrets. In ``code`` (of a plugin), whose variables may be called
    ``password``, only certain secrets are masked."""
    value = shapes(value)
    if "BEGIN" in value and "CERTIFICATE" in value:
        value = _PEM.sub(_block, value)
    return value if code else written.masked(value)


def shapes(value: str) -> str:
    """Return a text with masks instead of private keys, tokens and password hashes."""
    if not _SHAPED.within(value):
        return value
    for signs, pattern, mask in _SHAPES:
        if any(sign in value for sign in signs):
            value = pattern.sub(mask, value)
    return _PACKED.sub(_repacked, value) if _BASE64 in value else value


def _repacked(found: regex.Match[str]) -> str:
    packed = "".join(found[0].split())
    unpacked = base64.b64decode(packed[: len(packed) // 4 * 4]).decode("latin-1")
    masked = shapes(unpacked)
    return found[0] if masked == unpacked else base64.b64encode(masked.encode("latin-1")).decode()


def is_shape(value: str) -> bool:
    """Whether a text is exactly one such piece."""
    return any(pattern.fullmatch(value.strip()) for _, pattern, _ in _SHAPES)


# -- certificates and signing requests ----------------------------------------------------------------------

_PEM = regex.compile(
    r"(-----BEGIN ((?:NEW )?CERTIFICATE REQUEST|(?:X509 |TRUSTED )?CERTIFICATE)-----\s*)([A-Za-z0-9+/=\s]*?)"
    r"(\s*-----END ([A-Z0-9 ]{1,40})-----)"
)
_AUTO_RENEW = bytes.fromhex("2b06010401828c4c010302")
"""The attribute ``pp_auth_auto_renew``, which is not a credential; content of an OBJECT IDENTIFIER."""
_PRESHARED = bytes.fromhex("2b06010401828c4c010104")
"""The extension ``pp_preshared_key``."""
_REQUESTED = frozenset({bytes.fromhex("2a864886f70d01090e"), bytes.fromhex("2b06010401823702010e")})
"""The attributes with the requested extensions: of PKCS#9, and Microsoft's."""
_REQUEST, _EXTENSIONS = [0x02, 0x30, 0x30, 0xA0], 0xA3
"""The tags of a signing request's fields, the last one its attributes; the tag of a certificate's extensions."""
_OCTETS, _CONSTRUCTED = 0x04, 0x20
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1E})


@lru_cache(maxsize=256)
def der(data: bytes) -> bytes:
    """Mask a signing request or certificate, with masks of the same length, in the parts that the CA evaluates: custom
    attributes (challengePassword) and the preshared key. Its signature is then invalid. Bytes that are not DER stay
    unchanged."""
    masked = bytearray(data)
    for begin, end in _confidential(data):
        masked[begin:end] = (MASK.encode() * ((end - begin) // len(MASK) + 1))[: end - begin]
    return bytes(masked) if masked != data else data


def _confidential(data: bytes) -> Iterator[tuple[int, int]]:
    outer = _items(data, 0, len(data))
    inner = _items(data, *outer[0][1:]) if outer else []
    fields = _items(data, *inner[0][1:]) if inner else []
    if [tag for tag, *_ in fields] == _REQUEST:
        yield from _attributes(data, *fields[-1][1:])
    for tag, begin, end in fields:
        if tag == _EXTENSIONS:
            yield from _preshared(data, begin, end)


def _attributes(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for _, *attribute in _items(data, begin, end):
        oid, *values = _items(data, *attribute) or [(0, 0, 0)]
        name = data[oid[1] : oid[2]]
        for tag, *value in values:
            if name in _REQUESTED:
                yield from _preshared(data, *value)
            elif name != _AUTO_RENEW:
                yield from _contents(data, tag, *value)


def _preshared(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for _, *extensions in _items(data, begin, end):
        for _, *extension in _items(data, *extensions):
            oid, *rest = _items(data, *extension) or [(0, 0, 0)]
            if data[oid[1] : oid[2]] == _PRESHARED and rest:
                yield from _contents(data, *rest[-1])


def _contents(data: bytes, *value: int) -> Iterator[tuple[int, int]]:
    """Return the contents of a value that may be wrapped."""
    waiting = [value]
    while waiting:
        tag, begin, end = waiting.pop()
        inner = _items(data, begin, end) if tag & _CONSTRUCTED or tag == _OCTETS else []
        if inner and inner[-1][2] == end and (tag & _CONSTRUCTED or inner[0][0] in _TEXTS):
            waiting += inner
        else:
            yield begin, end


def _items(data: bytes, begin: int, end: int) -> list[tuple[int, int, int]]:
    """Yield the values of a sequence: tag, start and end of the contents; up to the first that is not DER."""
    found = []
    while begin + 2 <= end:
        tag, size, at = data[begin], data[begin + 1], begin + 2
        if size > 0x80:
            at, size = at + size - 0x80, int.from_bytes(data[at : at + size - 0x80])
        if size == 0x80 or at + size > end:
            break
        found.append((tag, at, at + size))
        begin = at + size
    return found


def _block(found: regex.Match[str]) -> str:
    if found[2] != found[5]:
        return found[0]
    try:
        data = base64.b64decode(found[3])
    except (binascii.Error, ValueError):
        return found[0]
    masked = der(data)
    if masked == data:
        return found[0]
    lines = regex.findall(".{1,64}", base64.b64encode(masked).decode())
    return found[1] + "\n".join(lines) + found[4]

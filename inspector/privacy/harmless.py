"""What may leave a capture: words that reveal nothing, names that are known, versions, times and small numbers.

Everything else is withheld: a stand-in takes its place. Equal values have equal stand-ins, of the same length where
there is room, so that what is compared compares as before. A stand-in is computed with a key that nobody keeps.
"""

from __future__ import annotations

import collections
import hashlib
import hmac
from base64 import b32encode
from typing import TYPE_CHECKING

from inspector import regex
from inspector.privacy import names
from inspector.privacy.names import MASK
from inspector.privacy.vocabulary import WORDS
from inspector.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Callable

STAND_IN = "withheld"
_MARK = f"{STAND_IN}-"
_CUT = 16
"""Characters of a digest that is quoted in part."""
_LETTERS = 7
"""Letters of a stand-in after its mark."""
_SMALL = 65_535
"""The largest number that is harmless: a port, a year, a line, a mode."""
_PORTS = frozenset({"80", "443", "8080", "8081", "8140", "8141", "8142", "8143", "8170"})
_WORD_LENGTH = 20

_AROUND_TOKENS = str.maketrans(dict.fromkeys("\t\n\f\r()[]{}<>\"'`,;…", " "))
"""What stands between tokens, besides spaces."""
_ROW = regex.compile(r"\b\d{3,}(?:[ \t]\d{3,}){2,}\b")
"""Numbers in a row are one large number."""
_QUOTED = regex.compile(r"""(?:^|[\s(\[{=:,>])(?P<it>'[^'\n]*'|"[^"\n]*"|`[^`\n]*`)""")
_EDGES = ".:!?*+-=~|&%@#$^\\/_"
_FIXED = regex.compile(
    r"\d{1,5}|0x[0-9a-f]{1,4}|[BFPRST]\d\d"
    r"|0[0-7]{3,4}"
    r"|v?\d{1,4}(?:\.\d{1,4}){1,3}(?:[-.]?(?:rc|alpha|beta|p|el|deb|ubuntu|b)\.?\d{0,3})?"
    r"|\d{1,5}(?:\.\d{1,6})?(?:ms|s|m|h|d|B|kB|KB|MB|GB|TB|[KMGT]iB|bytes|%)"
    r"|-?\d{1,5}\.\d{1,6}"
    r"|\d{4}-\d\d-\d\d(?:[T_]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|UTC|[+-]\d\d:?\d\d)?)?"
    r"|\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?"
    r"|\d{1,2}\.\d{1,2}\.\d{4}"
    r"|(?:TLS|SSL)v\d(?:\.\d)?|error:[0-9A-F]{8}(?::(?:[A-Za-z]{1,10}|asn1|x509))?"
    r"|(?i:sha(?:1|224|256|384|512)(?:lite)?|md5(?:lite)?|ipv[46]|base64|b64|utf-?8|utf16|(?:x86_64|aarch64)(?:-linux(?:-gnu)?)?|x86|x64|i[36]86|amd64|arm64|ppc64(?:le)?"
    r"|s390x?|win(?:32|64)|v[1-9]|http[12]|h2|eth\d|lo\d?|wlan\d|en[os]\d{1,2}|enp\ds\d{1,2}|[sv]d[a-z]\d?|nvme\dn\dp?\d?|ext[234]|fat32"
    r"|el[5-9]|el10|rsa|dsa|ecdsa|ed25519|p-?(?:256|384|521)|python[23]|k8s|log4j|x509|pkcs(?:7|8|10|12)|oauth2"
    r"|dev\d|aes(?:128|256)|sha\d{1,3}withrsaencryption|iso-?8859-?\d{1,2}|latin1|[a-z]|q=0\.\d{1,3}"
    r"|(?:ssl|tls|dtls)v?[0-9]{1,2}|asn1"
    r"|ruby\d|php\d|s3|ec2|http2|rc\d{1,2})"
)
"""Numbers, versions, times, and words with digits that thousands of sites have."""
_LONGEST = 35
"""Characters of the longest of them: a time with its zone."""
_MASKS = regex.compile(
    rf"(?:{MASK})+|{_MARK}[a-z2-7]{{{_LETTERS}}}|{STAND_IN}"
    r"|A(?:KIA|SIA)MASKEDMASKEDMASK|gh[pousr]_(?:MASKED){6}|github_pat_MASKED|glpat-MASKED-MASKED-MASKED|xox[abprs]-MASKED"
)
"""The stand-ins of ``patterns`` and of this module."""
_PIECES = regex.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----\s*(?:MASKED){3}"
    r"(?:\s*-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
    r"|A(?:KIA|SIA)MASKEDMASKEDMASK|gh[pousr]_(?:MASKED){6}|glpat-MASKED-MASKED-MASKED|MASKED"
)
"""The stand-ins that stay in the content of a file."""
_DIGEST = regex.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}")
_DIGESTS = frozenset({32, 40, 56, 64, 96, 128})
_UUID = regex.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_LENGTH = 36
_PAIRS = regex.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5,63}")
_STEPS = str.maketrans(dict.fromkeys("/=&|+?#\\", "\n"))
"""Separators of parts that are judged one by one: of paths, URLs, class names and assignments."""
_JOINTS = str.maketrans(dict.fromkeys("-_.:@~", "\n"))
"""Separators within a part that is judged as a whole."""
_HUMPS = regex.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_CAMEL = regex.compile(r"(?:[A-Z]+[a-z]*){2,6}|[a-z]+(?:[A-Z][a-z]+){1,5}")
_PROSE = regex.compile(r"[a-z]+|[A-Z][a-z]+|[A-Z]+|(?:[A-Z][a-z]+){2,4}")
_ASSIGNS = regex.compile(r"['\"]?\s{0,2}[=:]")
"""The signs that follow the name of a value."""
_KEY = regex.compile(r"[a-z_]+(?:\d{1,4}[a-z_]*)?(?:\d{1,2}[a-z_]*)?")
_IDENTIFIER = regex.compile(r"[A-Z]?[a-z_]+\d{0,2}[a-z_]*(?:::[A-Z]?[a-z_]+\d{0,2}[a-z_]*)*")


class Harmless:
    """Lets pass what is known to be harmless, and withholds the rest."""

    def __init__(
        self, salt: bytes, name: Callable[[str], bool] = lambda _: False, learned: Callable[[], None] = lambda: None
    ) -> None:
        """``name`` returns whether a word is a name or an address that may leave. ``learned`` is called with
        whatever is admitted: a text may have another result now."""
        self._salt = salt
        self._name, self._learned = name, learned
        self._identifiers: set[str] = set()
        self._words: set[str] = set()
        self._digests: dict[str, str] = {}

    def identifier(self, name: object) -> None:
        """Admit an identifier of the site's code: a class, a type, an environment, a parameter."""
        if not isinstance(name, str) or name in self._identifiers:
            return
        if len(name) <= 100 and _IDENTIFIER.fullmatch(name):
            self._identifiers.add(name)
            self._learned()
            for part in name.lower().split("::"):
                self._words |= {part, *part.split("_")}

    def digest(self, old: str, new: str) -> None:
        """Set what takes the place of a digest, both in hexadecimal: the digest of what leaves instead."""
        self._learned()
        old, new = old.lower(), new.lower()
        self._digests |= {old: new, new: new, old[:_CUT]: new[:_CUT], new[:_CUT]: new[:_CUT]}

    # -- texts --------------------------------------------------------------------------------------------

    def text(self, value: str, *, prose: bool = False) -> str:
        """Return a text with stand-ins for what is not harmless. In ``prose``, a message that is to be read, any plain
        word outside quotes is harmless. Of a text with the character NUL only that is left, at its end."""
        if "\0" in value:
            # Of some values it is all that PuppetDB minds; the letters between others (UTF-16) are a text.
            plain = value.removesuffix("\0")
            masked = all(_MASKS.fullmatch(part.rstrip("-")) for part in plain.split())
            return value if masked else self.stand_in(plain) + "\0"
        if value.count(" ") + value.count("\t") >= 2:
            value = _ROW.sub(lambda found: self.stand_in(found[0]), value)
        parts: list[str] = []
        at = 0
        begin = -1  # of tokens in a row that are withheld
        end = 0
        quotes = collections.deque(found.span() for found in (_QUOTED.finditer(value) if prose else ()))
        after = 0
        for token in value.translate(_AROUND_TOKENS).split(" "):
            start, after = after, after + len(token) + 1
            if not token:
                continue
            while quotes and quotes[0][1] <= start:
                quotes.popleft()
            new = self._token(token, prose=prose and not (quotes and quotes[0][0] <= start))
            stop = start + len(token)
            if new is None and _ASSIGNS.match(value[stop : stop + 4]) and names.named(token):
                new = token
            if begin >= 0 and (new is not None or value[end:start].strip(" ")):
                parts += [value[at:begin], self.stand_in(value[begin:end])]
                at, begin = end, -1
            if new is None:
                begin, end = start if begin < 0 else begin, stop
            elif new != token:
                parts += [value[at:start], new]
                at = stop
        if begin >= 0:
            parts += [value[at:begin], self.stand_in(value[begin:end])]
            at = end
        return "".join([*parts, value[at:]]) if parts else value

    def key(self, name: str) -> str:
        """Return the key of a mapping: the name of a fact or a parameter."""
        return name if len(name) <= 64 and _plain_key(name) else self.text(name)

    def stand_in(self, value: str) -> str:
        """Return what takes a value's place: of the same length, unless the value is shorter than a stand-in."""
        mark = f"{_MARK}{self._hashed(value.encode('utf-8', 'replace'))}"
        if len(value) <= len(mark):
            return mark
        return f"{mark} " * ((len(value) - len(mark)) // (len(mark) + 1)) + mark.ljust(
            len(mark) + (len(value) - len(mark)) % (len(mark) + 1), "-"
        )

    def _hashed(self, value: bytes) -> str:
        return b32encode(self._mac(value)[:5]).decode()[:_LETTERS].lower()

    def _mac(self, value: bytes) -> bytes:
        return hmac.digest(self._salt, value, hashlib.sha512)

    def _token(self, token: str, *, prose: bool) -> str | None:
        core = token.strip(_EDGES)
        if self._name(token):
            return token
        if not core:
            return token if len(set(token)) <= 3 else None  # a line, an arrow
        new = self._core(core, prose=prose)
        if new is None:
            return None if core == token else token.replace(core, self.stand_in(core), 1)
        return token if new == core else token.replace(core, new, 1)

    def _core(self, core: str, *, prose: bool) -> str | None:
        if self._whole(core, prose=prose):
            return core
        if formed := self._formed(core):
            return formed
        parts = _split(core)
        if len(parts) == 1:
            return None
        made = [self._part(part, prose=prose) for part, _ in parts]
        if not any(new for (part, _), new in zip(parts, made, strict=True) if part):
            return None
        return "".join(
            (self.stand_in(part) if new is None else new) + separator
            for (part, separator), new in zip(parts, made, strict=True)
        )

    def _part(self, part: str, *, prose: bool) -> str | None:
        core = part.strip(_EDGES)
        if self._whole(core, prose=prose):
            return part
        formed = self._formed(core)
        return None if formed is None else part.replace(core, formed, 1)

    def _whole(self, part: str, *, prose: bool) -> bool:
        """Whether a part of a token is harmless."""
        if not part or self._word(part) or self._name(part):
            return True
        if len(part) <= _LONGEST and _FIXED.fullmatch(part):
            return not part.isdecimal() or int(part) <= _SMALL
        if (MASK in part or STAND_IN in part) and _MASKS.fullmatch(part):
            return True
        if prose and len(part) <= _WORD_LENGTH and _PROSE.fullmatch(part):
            return True
        host, colon, port = part.rpartition(":")
        if colon and port in _PORTS and self._whole(host, prose=False):
            return True
        user, sign, host = part.rpartition("@")
        if sign and self._word(user) and self._name(host):
            return True
        name, dot, ending = part.rpartition(".")
        if dot and ending in WORDS and self._name(name):  # a file of that name
            return True
        if "/" in part:  # it is in a piece then, and no word has one
            return False
        pieces = [piece for piece in part.translate(_JOINTS).split("\n") if piece]
        if len(pieces) < 2:
            return not pieces
        return any(not piece.isdecimal() for piece in pieces) and all(
            self._word(piece) or (prose and len(piece) <= _WORD_LENGTH and _PROSE.fullmatch(piece) is not None)
            or self._numbered(piece, part)
            for piece in pieces
        )  # fmt: skip

    def _numbered(self, piece: str, part: str) -> bool:
        """Whether a piece is a line's number or a port, or a part of a version: ``site.pp:12``, ``openssl-3.0.2``."""
        if not piece.isdecimal():
            return _FIXED.fullmatch(piece) is not None
        return len(piece) <= 5 and "." in part

    def _word(self, word: str) -> bool:
        lowered = word.lower()
        if lowered in WORDS or lowered in self._words:
            return True
        if len(word) <= 60 and word.isalpha() and not word.islower() and _CAMEL.fullmatch(word):
            return all(hump.lower() in WORDS for hump in _HUMPS.findall(word))
        return False

    def _formed(self, part: str) -> str | None:
        """Return the stand-in of a digest or a UUID, in its form; None if it is neither."""
        lowered = part.lower()
        if lowered in self._digests:
            return self._digests[lowered]
        if len(part) in _DIGESTS and _DIGEST.fullmatch(lowered):
            return self._mac(lowered.encode()).hex()[: len(part)]
        if len(part) == _UUID_LENGTH and _UUID.fullmatch(part):
            made = self._mac(lowered.encode()).hex()
            return "-".join((made[:8], made[8:12], made[12:16], made[16:20], made[20:32]))
        if part[2:3] == ":" and _PAIRS.fullmatch(part):
            plain = lowered.replace(":", "")
            made = self._digests.get(plain) or self._mac(plain.encode()).hex()
            shown = ":".join(made[at : at + 2] for at in range(0, len(plain), 2))
            return shown.upper() if part.upper() == part else shown
        return None

    # -- others -------------------------------------------------------------------------------------------

    def number(self, value: float) -> float:
        """Return a number, or another of the same type and length."""
        if isinstance(value, float):
            return float(f"{value:.3g}")
        if abs(value) <= _SMALL:
            return value
        least: int = 10 ** (len(str(abs(value))) - 1)
        made = least + int.from_bytes(self._mac(str(value).encode())) % least
        return -made if value < 0 else made

    def content(self, plain: bytes) -> bytes:
        """Return what takes the place of a file's content: of the same size, with the masks that are in it."""
        source = plain.decode("latin-1")
        whole = self.stand_in(source) if len(source) > len(_MARK) + _LETTERS else self._mac(plain).hex()[: len(source)]
        parts, at = [], 0
        for piece in _PIECES.finditer(source):
            parts += [whole[at : piece.start()], piece[0]]
            at = piece.end()
        return "".join([*parts, whole[at:]]).encode("latin-1")


@remembered(20_000)
def _plain_key(name: str) -> bool:
    """Whether a key is harmless by its form. There are few, again and again."""
    return _KEY.fullmatch(name) is not None


def _split(core: str) -> list[tuple[str, str]]:
    """Return the parts of a token, each with the separator after it: ``::``, or one of the others."""
    marked = core.replace("::", "\n\n").translate(_STEPS)
    parts, at = [], 0
    while (begin := marked.find("\n", at)) >= 0:
        end = begin + (2 if core[begin] == ":" else 1)
        parts.append((core[at:begin], core[begin:end]))
        at = end
    return [*parts, (core[at:], "")]

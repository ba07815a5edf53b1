"""Pseudonyms for names that identify the captured network: the same pseudonym for the same name, everywhere.

Hosts become ``agent1.example``, ``master1.example``, ``host1.example``; addresses become addresses reserved for
documentation; MAC addresses, SSH keys, serial numbers and fingerprints become values that nobody uses. Names are
learned first.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import itertools
import uuid
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from inspector import regex
from inspector.model import PROBE, RUN_CA
from inspector.privacy.vocabulary import WORDS
from inspector.protocol import documents, endpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

type NameKind = Literal["agent", "master", "host"]
type Labels = dict[str, Labels]
"""Names as a tree of their labels."""

_DOMAIN = "example"
_ALONE = frozenset({"example", "test", "local", "localdomain", "lan", "internal", "intern", "corp", "home", "private"})
"""Domains of one label that belong to a site, and are not public."""
_LONGEST = 254
"""Characters of a domain that cannot be registered."""
_WORDS = frozenset(
    {"puppet", "puppetserver", "puppetdb", "puppetlabs", "puppetmaster", "openvox", "master", "agent", "server", "ca",
     "client", "localhost", "node", "host", "file", "web", "www", "default", "root", "production", "example", "test"}
    | {field for value in vars(documents).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)
       for field in value.__struct_fields__}
    | {word for endpoint in endpoints.ENDPOINTS
       for word in regex.findall("[a-z_]+", f"{endpoint.name} {endpoint.path}")}
)  # fmt: skip
"""Words of Puppet that look like host names without a domain."""
_PUBLIC = frozenset({"com", "org", "net", "edu", "gov", "mil", "int", "info", "biz"})
"""Labels below which domains of several owners are."""
_HOST = regex.compile(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_PUPPETS_CA = regex.compile(
    rf"Puppet (?:Root |Intermediate )?CA(?:: .*)?|(?:{regex.escape(PROBE)}|{regex.escape(RUN_CA)}).*"
)
_SERIAL = regex.compile(
    r"(?:.*_)?(?:serial(?:_?number)?|asset_?tag|uuid|machine_?id|wwn|instance[_-]id)|.*serialnumber|.*assettag",
    regex.IGNORECASE,
)
_UNSPECIFIC = regex.compile(r"(?i)not .*|none|unknown|default.*|to be filled.*|n/?a|0*|.{0,3}|x+")
"""Serial numbers that no vendor assigned."""

_TOKEN = regex.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_PART = regex.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
"""A token between underscores, which may belong to a name or separate names."""
_IPV4 = regex.compile(r"(?:^|[^\w.])(?P<it>(?:\d{1,3}\.){3}\d{1,3})(?:$|[^\w.]|\.(?:$|\D))")
_IPV6 = regex.compile(
    r"(?:^|[^\w:.])(?P<it>(?:[23][0-9a-fA-F]{3}|[fF][cCdDeE][0-9a-fA-F]{2}):[0-9a-fA-F:]*[0-9a-fA-F:])(?:$|[^\w:])"
)
_COLONS = 7
"""What an address has if it has no two of them in a row."""
_PAIRS = regex.compile(r"(?:^|[^0-9A-Fa-f:])(?P<it>[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5,63})(?:$|[^0-9A-Fa-f:])")
"""MAC addresses and fingerprints."""
_SSH = regex.compile(r"(?:^|[^A-Za-z0-9+/])(?P<it>(AAAA[A-Za-z0-9+/]{16})[A-Za-z0-9+/]{12,}={0,3})|"
                     r"(SHA256:)[A-Za-z0-9+/]{43}|(SSHFP \d \d )[0-9A-Fa-f]{40,64}")  # fmt: skip
_LABELS = str.maketrans({sign: " " for sign in map(chr, range(128)) if not (sign.isalnum() or sign in "_-")})
_RUNS = {sign: " " for sign in _LABELS if sign != ord(".")}
_PARTS = _LABELS | {ord("_"): " "}
"""Leave the labels of tokens, whole tokens with the points around them, and the labels of parts between underscores."""
_MOST = 128
"""Labels of the longest host name."""
_END = "."
"""The key that marks the end of a name in a tree of labels; not a label."""
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF:.")
_NETWORKS = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15", "240.0.0.0/4")


class Pseudonyms:
    """The names that were learned, and their pseudonyms."""

    def __init__(self, salt: bytes, learned: Callable[[], None] = lambda: None) -> None:
        """Start without names. ``salt`` is secret, so that a pseudonym cannot be found by trying names. ``learned`` is
        called with each new name: a text may have another result now."""
        self._salt, self._learned = salt, learned
        self._names: dict[str, str] = {}
        """The pseudonym of a name, a serial number or a digest, by the original in lower case."""
        self._phrases: dict[str, str] = {}
        """The pseudonym of a text of several words, by the exact original."""
        self._digests: dict[str, str] = {}
        self._tree: Labels = {}
        """The replaced names, by their labels."""
        self._domains: Labels = {}
        self._numbers = {
            kind: itertools.count(1) for kind in ("agent", "master", "host", "site", "Authority ", "Name ", "SERIAL")
        }
        self._v4 = (str(host) for network in _NETWORKS for host in ipaddress.IPv4Network(network).hosts())
        self._v6 = (f"2001:db8::{number:x}" for number in itertools.count(1))
        self._addresses: dict[str, str] = {}
        self._given: set[str] = set()
        """The pseudonyms of names."""
        self._words: set[str] = set()
        """The words of the texts that have a pseudonym."""

    # -- learning -----------------------------------------------------------------------------------------

    def host(self, name: str | None, kind: NameKind = "host") -> None:
        """Learn a certname or host name; its pseudonym depends on what was learned first, an agent or a master."""
        name = (name or "").strip().rstrip(".").lower().removeprefix("*.")
        if name in self._names or name in _WORDS or not _HOST.fullmatch(name) or _is_address(name):
            return
        if name == PROBE.lower():
            return
        short, _, domain = name.partition(".")
        self._domain(domain)
        self._site(domain)
        new = self._names.get(short) if not domain else None
        number = next(self._numbers[kind])
        new = new or f"{kind}{number}" + (f".{_DOMAIN}" if domain else "")
        self._name(name, new)
        if domain and short not in _WORDS and short not in self._names and not short.isdecimal() and len(short) > 1:
            self._name(short, new.partition(".")[0])

    def _name(self, name: str, new: str) -> None:
        self._learned()
        self._names[name] = new
        self._given.add(new)
        _plant(self._tree, name)

    def _site(self, domain: str) -> None:
        """Learn the words of a domain: a class or a fact may bear the site's name as well."""
        for label in domain.split(".")[:-1]:
            if len(label) > 2 and not any(label in known for known in (self._names, _WORDS, _PUBLIC, WORDS)):
                self._name(label, f"site{next(self._numbers['site'])}")

    def _domain(self, domain: str) -> None:
        self._learned()
        if domain and ("." in domain or domain in _ALONE):
            _plant(self._domains, domain)
        # Other hosts of the site are in the domains above; top-level domains are public.
        while "." in domain and len(domain) < _LONGEST:
            _plant(self._domains, domain)
            if domain not in self._names:
                self._name(domain, _DOMAIN)
            domain = domain.partition(".")[2]

    def authority(self, name: str) -> None:
        """Learn a CA's common name."""
        self._learned()
        self._words.update(name.lower().split())
        if name and not _PUPPETS_CA.fullmatch(name) and name.lower() not in self._names:
            self._phrase(name, "Authority ")

    def subject_part(self, name: str) -> None:
        """Learn another part of a certificate's subject: an organisation, a place, an address."""
        if len(name) > 2:
            self._phrase(name, "Name ")

    def _phrase(self, name: str, kind: str) -> None:
        if name not in self._phrases:
            self._learned()
            self._phrases[name] = f"{kind}{next(self._numbers[kind])}"
            self._words.update(name.lower().split())

    def digest(self, old: str, new: str) -> None:
        """Set the pseudonym of a digest, both in hexadecimal. A learned name takes precedence."""
        self._learned()
        self._digests[old.lower()] = new.lower()

    def facts(self, values: dict[str, Any]) -> None:
        """Learn the names in a host's facts."""
        for key, value in _leaves(values):
            if not isinstance(value, str) or not value.strip():
                continue
            name = key.lower()
            if name in ("hostname", "fqdn", "clientcert", "certname"):
                self.host(value, "agent")
            elif name in ("domain", "dnsdomain"):
                self._domain(value.strip().lower())
                self._site(value.strip().lower())
            elif _SERIAL.fullmatch(name) and not _UNSPECIFIC.fullmatch(value.strip()):
                self._serial(value.strip())

    def _serial(self, value: str) -> None:
        try:
            new = str(uuid.UUID(bytes=hashlib.sha256(self._salt + uuid.UUID(value).bytes).digest()[:16]))
        except ValueError:
            new = f"SERIAL{next(self._numbers['SERIAL'])}"
        if _TOKEN.fullmatch(value):
            if value.lower() not in self._names:
                self._name(value.lower(), new)
        else:
            self._learned()
            self._phrases.setdefault(value, new)

    # -- recognizing --------------------------------------------------------------------------------------

    def known(self, word: str) -> bool:
        """Whether a word was learned as a name, or belongs to a domain that was; addresses are names too."""
        word = word.lower().removeprefix("*.")
        if word in self._names or word in self._words or _is_address(word.partition("/")[0]):
            return True
        if "." not in word or len(word) >= _LONGEST:
            return False
        labels = word.split(".")
        return _longest(self._domains, labels, 1) == len(labels) and _HOST.fullmatch(word) is not None

    def given(self, word: str) -> bool:
        """Whether a word is a pseudonym, or an address, which has been replaced if it identifies a host."""
        lowered = word.lower().removeprefix("*.")
        return lowered in self._given or lowered == _DOMAIN or _is_address(word.partition("/")[0])

    # -- replacing ----------------------------------------------------------------------------------------

    def text(self, value: str) -> str:
        """Return a text with pseudonyms instead of names."""
        for phrase in sorted(filter(value.__contains__, self._phrases), key=len, reverse=True):
            value = value.replace(phrase, self._phrases[phrase])
        if "AAAA" in value or "SHA256:" in value or "SSHFP" in value:
            value = _SSH.sub(self._ssh, value)
        if (colons := value.count(":")) >= 5:
            value = _PAIRS.sub(self._pairs, value)
        if colons >= _COLONS or "::" in value:
            value = _IPV6.sub(self._ip, value)
        if value.count(".") >= 3:
            value = _IPV4.sub(self._ip, value)
        return self._tokens(value) if self._possible(value) else value

    def _possible(self, value: str) -> bool:
        """Whether ``_token`` may replace something in a text; False is certain. It replaces what begins with a label
        of a name, or is a digest; most texts have neither."""
        if not value.isascii() or value.count(".") >= _MOST:
            return True
        lowered = value.lower()
        labels = lowered.translate(_LABELS).split()
        if "_" in lowered:
            labels += lowered.translate(_PARTS).split()
        return not (
            self._tree.keys().isdisjoint(labels)
            and self._domains.keys().isdisjoint(labels)
            and self._digests.keys().isdisjoint(labels)
        )

    def address(self, value: str) -> str:
        """Return the pseudonym of an address; loopback, unspecified and broadcast addresses stay."""
        try:
            read = ipaddress.ip_address(value)
        except ValueError:
            return value
        is_mask = read.version == 4 and read.packed[0] == 0xFF
        if read.is_loopback or read.is_unspecified or read.is_multicast or is_mask:
            return value
        if str(read) not in self._addresses:
            self._addresses[str(read)] = next(self._v4 if read.version == 4 else self._v6)
        return self._addresses[str(read)]

    def packed(self, value: bytes) -> bytes:
        """Return the pseudonym of an address in the binary form of certificates."""
        return ipaddress.ip_address(self.address(str(ipaddress.ip_address(value)))).packed

    def _ip(self, found: regex.Match[str]) -> str:
        return self.address(found[0])

    def _tokens(self, value: str) -> str:
        """Return a text with pseudonyms instead of the names in it, each between signs that no name has."""
        if not value.isascii():
            return _TOKEN.sub(lambda found: self._token(found[0]), value)
        parts, at = [], 0
        for run in value.translate(_RUNS).split(" "):
            end = at + len(run)
            if not run or run[0] == "." or run[-1] == "." or ".." in run:
                parts.append(_TOKEN.sub(lambda found: self._token(found[0]), run) if run else run)
            else:
                parts.append(self._token(run))
            parts.append(value[end : end + 1])
            at = end + 1
        return "".join(parts)

    def _token(self, token: str) -> str:
        if known := self._names.get(token.lower()):
            return _cased(known, token)
        if known := self._digests.get(token.lower()):
            return known
        labels = token.split(".")
        new = token if len(labels) == 1 else ".".join(self._labels(labels))
        return _PART.sub(lambda found: self._token(found[0]), token) if new == token and "_" in token else new

    def _labels(self, labels: list[str]) -> Iterator[str]:
        """Return the pseudonym of a name that may be part of another: of a file's name, of a mail address."""
        lowered = [label.lower() for label in labels]
        # The end of the last domain that begins after each label: a name begins before its domain.
        ends = [0] * (len(labels) + 1)
        for at in range(len(labels) - 1, 0, -1):
            ends[at] = max(ends[at + 1], _longest(self._domains, lowered, at))
        at = 0
        while at < len(labels):
            named = _longest(self._tree, lowered, at)
            end = max(named, ends[at + 1])
            if not end:
                yield labels[at]
                at += 1
                continue
            known = ".".join(lowered[at:end])
            if end == named:
                yield _cased(self._names[known], "".join(labels[at:end]))
            else:
                self.host(known)
                yield self._names.get(known, known)
            at = end

    def _pairs(self, found: regex.Match[str]) -> str:
        original = found[0]
        plain = original.replace(":", "").lower()
        if len(plain) == 12:
            if plain in ("0" * 12, "f" * 12):
                return original
            new = "02" + self._hashed(bytes.fromhex(plain)).hex()[:10]
        else:
            new = self._digests.get(plain) or self._hashed(bytes.fromhex(plain)).hex()[: len(plain)]
        if len(new) != len(plain):
            return original
        shown = ":".join(new[at : at + 2] for at in range(0, len(new), 2))
        return shown.upper() if original.upper() == original else shown

    def _ssh(self, found: regex.Match[str]) -> str:
        prefix = found[1] or found[2] or found[3]
        rest = found[0][len(prefix) :]
        if found[3]:
            return prefix + self._hashed(rest.encode()).hex()[: len(rest)]
        padding = len(rest) - len(rest.rstrip("="))
        made = base64.b64encode(hashlib.shake_256(self._salt + rest.encode()).digest(len(rest))).decode()
        return prefix + made[: len(rest) - padding] + "=" * padding

    def _hashed(self, value: bytes) -> bytes:
        return hashlib.sha512(self._salt + value).digest()


def _plant(tree: Labels, name: str) -> None:
    """Add a name to a tree. A longer one is not a host name: only as a whole it is replaced."""
    labels = name.split(".")
    if len(labels) > _MOST:
        return
    for label in labels:
        tree = tree.setdefault(label, {})
    tree[_END] = {}


def _longest(tree: Labels, labels: Sequence[str], at: int) -> int:
    """Return where the longest name of a tree ends that begins at a label; 0 if there is none."""
    end = 0
    for number in range(at, len(labels)):
        branch = tree.get(labels[number])
        if branch is None:
            break
        tree = branch
        if _END in tree:
            end = number + 1
    return end


def _cased(new: str, like: str) -> str:
    """Keep upper-case letters: in a certname they are an error that rules report."""
    return new if like.lower() == like else new.upper() if like.isupper() else new.capitalize()


def _is_address(name: str) -> bool:
    if name.count(".") != 3 and (":" not in name or not _HEXADECIMAL.issuperset(name.partition("%")[0])):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _leaves(values: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of facts with the last part of their names."""
    waiting = [(key, values)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(str(field), item) for field, item in value.items()]
        elif isinstance(value, list):
            waiting += [(name, item) for item in value]
        else:
            yield name, value

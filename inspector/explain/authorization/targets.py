"""What puppetserver makes of a request's target before auth.conf is asked: Jetty's decoding, and its own.

Paths below ``/puppet``, ``/puppet-ca`` and ``/puppet-admin-api`` are decoded, and refused if they contain ``.`` or
``..``; repeated slashes become one. Those below ``/status`` and ``/metrics`` are compared as they were sent, and there
the short names of extensions are not known. The URLs of Puppet 3 are translated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

_DECODED = ("/puppet", "/puppet-ca", "/puppet-admin-api")
_RAW = ("/status", "/metrics/v2")
_RELATIVE = "the path has `.` or `..`: 400"
_SLASHES = regex.compile(r"//+")
_SEGMENTS = regex.compile(r"(?s)/([A-Za-z0-9_.-]+)/(([^/]+)/.*)")
_DIGITS = regex.compile(r"[0-9a-fA-F]{1,2}")
_AMBIGUOUS = regex.compile(r"/\.\.?;")
_SCHEME = regex.compile(r"(?i)https?://[^/?#]*")

_LEGACY: dict[str, tuple[str, tuple[str, ...]]] = {
    "node": ("/puppet/v3", ("get",)),
    "file_content": ("/puppet/v3", ("get",)),
    "file_metadata": ("/puppet/v3", ("get",)),
    "file_metadatas": ("/puppet/v3", ("get",)),
    "file_bucket_file": ("/puppet/v3", ("get", "put", "head")),
    "catalog": ("/puppet/v3", ("get", "post")),
    "report": ("/puppet/v3", ("put",)),
    "status": ("/puppet/v3", ("get",)),
    "certificate_status": ("/puppet-ca/v1", ()),
    "certificate_statuses": ("/puppet-ca/v1", ()),
    "certificate": ("/puppet-ca/v1", ("get",)),
    "certificate_revocation_list": ("/puppet-ca/v1", ("get",)),
    "certificate_request": ("/puppet-ca/v1", ("get", "put")),
}
"""Where the URLs of Puppet 3 lead, and their methods (empty: all)."""


class Unasked(ValueError):
    """Puppetserver answers without asking auth.conf, for this reason."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What auth.conf is asked about."""

    path: str
    query: Mapping[str, tuple[str, ...]]
    named: bool = True
    """Whether extensions are known by their short names."""


def asked(method: str, target: str) -> Asked:
    """Return what auth.conf is asked about; ``method`` is in lower case. Raises Unasked."""
    try:
        raw, query = _split(target.encode("latin-1").decode())
    except UnicodeError as error:
        raise Unasked("the target is not UTF-8: 400") from error
    if _AMBIGUOUS.search(raw):
        raise Unasked("the path has parameters at `.` or `..`: 400")
    decoded = _decoded(raw)
    place = _resolved(decoded)
    if place is None:
        raise Unasked("the path leads out of the root: 400")
    if any(place == mount or place.startswith(f"{mount}/") for mount in _RAW):
        return Asked(raw, _parameters(query), named=False)
    path = _SLASHES.sub("/", decoded)
    if not any(place == mount or place.startswith(f"{mount}/") for mount in _DECODED):
        return _legacy(method, path, _parameters(query))
    if not {".", ".."}.isdisjoint(decoded.split("/")):
        raise Unasked(_RELATIVE)
    return Asked(path, _parameters(query))


def _split(target: str) -> tuple[str, str]:
    """Return the path and the query of a target: an escape takes the two characters after it, whatever they are."""
    if found := _SCHEME.match(target[:2000]):
        target = target[found.end() :]
    if not target.startswith("/"):
        raise Unasked("the target is no path: 400")
    at = 0
    while at < len(target) and target[at] not in "?#":
        at += (6 if target[at + 1 : at + 2] == "u" else 3) if target[at] == "%" else 1
    query = target[at + 1 :].partition("#")[0] if target[at : at + 1] == "?" else ""
    return target[:at], query


def _decoded(path: str) -> str:
    """Return a path without its escapes, and without parameters (``;``). Raises Unasked."""
    if "%" not in path and ";" not in path:
        return path
    pieces: list[str | bytes] = []
    data = bytearray()
    at = 0
    while at < len(path):
        character = path[at]
        if character == "%":
            if path[at + 1 : at + 2] == "u":
                pieces += [bytes(data), chr(_hexadecimal(path[at + 2 : at + 6], 4))]
                data.clear()
                at += 6
                continue
            character = chr(_hexadecimal(path[at + 1 : at + 3], 2))
            at += 3
        elif character == ";":
            slash = path.find("/", at)
            at = slash if slash >= 0 else len(path)
            continue
        else:
            at += 1
            if not character.isascii():
                pieces += [bytes(data), character]
                data.clear()
                continue
        data.append(ord(character))
    pieces.append(bytes(data))
    try:
        text = "".join(piece if isinstance(piece, str) else piece.decode() for piece in pieces)
    except UnicodeDecodeError:
        text = "".join(piece if isinstance(piece, str) else piece.decode("latin-1") for piece in pieces)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _hexadecimal(digits: str, length: int) -> int:
    """Return the value of an escape's digits, as Jetty computes it. Raises Unasked."""
    value = 0
    for digit in digits:
        number = (ord(digit) & 0x1F) + (ord(digit) >> 6) * 0x19 - 0x10
        if not 0 <= number <= 15:
            break
        value = value * 16 + number
    else:
        if len(digits) == length and value:
            return value
    raise Unasked("the path has an escape that is none: 400")


def _resolved(path: str) -> str | None:
    """Return a path without ``.`` and ``..``; None if it leads out of the root. Repeated slashes stay."""
    resolved: list[str] = []
    segments = path.split("/")[1:]
    for at, segment in enumerate(segments):
        if segment == "..":
            if not resolved:
                return None
            resolved.pop()
        elif segment != ".":
            resolved.append(segment)
            continue
        if at == len(segments) - 1:
            resolved.append("")
    return "/" + "/".join(resolved)


def _legacy(method: str, path: str, query: dict[str, tuple[str, ...]]) -> Asked:
    """Return what a URL of Puppet 3 is translated to. Raises Unasked."""
    if path == "/v2.0/environments" and method == "get":
        return Asked("/puppet/v3/environments", query)
    found = _SEGMENTS.fullmatch(path)
    prefix, methods = _LEGACY.get(found[3], ("", ())) if found else ("", ())
    if not found or not prefix or (methods and method not in methods):
        raise Unasked("puppetserver has nothing at this path: 404")
    if not {".", ".."}.isdisjoint(path.split("/")):
        raise Unasked(_RELATIVE)
    query = {**query, "environment": (found[1],)}
    if found[3] in ("file_metadata", "file_metadatas"):
        query.setdefault("source_permissions", ("use",))
    return Asked(f"{prefix}/{found[2]}", query)


def _parameters(query: str) -> dict[str, tuple[str, ...]]:
    parameters: dict[str, tuple[str, ...]] = {}
    if "=" not in query:
        return parameters
    for part in filter(None, query.split("&")):
        key, _, value = part.partition("=")
        name, text = _form(key), _form(value)
        if name is not None and text is not None:
            parameters[name] = (*parameters.get(name, ()), text)
    return parameters


def _form(text: str) -> str | None:
    """Return what a form's field means; None if it has an escape that is none. Java takes a sign for a digit."""
    first, *escaped = text.replace("+", " ").split("%")
    data = bytearray(first.encode("utf-8", "replace"))
    for piece, sent in zip(escaped, text.split("%")[1:], strict=True):
        digits = sent[:2].removeprefix("+") if len(sent) > 1 else ""
        if not _DIGITS.fullmatch(digits):
            return None
        data.append(int(digits, 16))
        data += piece[2:].encode("utf-8", "replace")
    return data.decode("utf-8", "replace")

"""Decide as puppetserver does: the first rule for a request's path, method and query decides, by its first entry for
the client."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from inspector import regex
from inspector.explain.authorization import decision, targets
from inspector.explain.authorization.decision import ANONYMOUS, Client, Decision, Verdict
from inspector.host.auth_conf import patterns
from inspector.host.auth_conf.rules import GROUP, Sort, sort_of
from inspector.protocol import x509
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.explain.authorization.decision import Question
    from inspector.explain.authorization.targets import Asked
    from inspector.host.auth_conf.rules import AuthConf, Entry, Rule
    from inspector.protocol.certificates import Certificate
    from inspector.regex import Match

_SHORT_NAMES = {
    name: oid
    for name, oid in decision.OIDS.items()
    if oid.startswith("1.3.6.1.4.1.34380.1.") and name != "pp_auth_auto_renew"  # only 8 and later know that one
}
"""The short names of extensions that every puppetserver knows."""
_NAMED = frozenset(_SHORT_NAMES.values())
_ATTRIBUTES = frozenset({"c", "cn", "dc", "e", "emailaddress", "l", "o", "ou", "st", "uid"})
_UNUSUAL = regex.compile(r'[\\";+#]')
_LONG = 80
"""Characters of a name or a path that are quoted."""


class _Fails(Exception):
    """Puppetserver ends with an error (500), for this reason."""


def decide(conf: AuthConf, question: Question) -> Decision:
    """Return what puppetserver with these rules says to a request."""
    method = question.method.lower()
    try:
        asked = targets.asked(method, question.target)
        client = _by_headers(question) if conf.headers else question.client
    except targets.Unasked as answer:
        return Decision(Verdict.UNASKED, None, str(answer))
    except patterns.NotDecided as error:
        return Decision(Verdict.UNDECIDED, None, str(error))
    for rule in conf.rules:
        try:
            groups = _groups(rule, method, asked)
            if groups is not None:
                return _by_rule(rule, groups, asked, client, question)
        except _Fails as error:
            return Decision(Verdict.FAILS, rule, f"{error}: 500")
        except patterns.NotDecided as error:
            return Decision(Verdict.UNDECIDED, rule, str(error))
    return Decision(Verdict.DENIED, None, "no rule is for this request")


# -- the client ----------------------------------------------------------------------------------


def _by_headers(question: Question) -> Client:
    """Return the client that headers name, as with ``allow-header-cert-info``; where there are none, the one of the
    question: what stands in front of the master sets them from its certificate. Raises Unasked."""
    verified, name = question.header("x-client-verify"), question.header("x-client-dn")
    certificate = question.header("x-client-cert")
    if verified is name is certificate is None:
        return question.client
    known = decision.of_certificate(_header_certificate(certificate)) if certificate is not None else ANONYMOUS
    common_name = _common_name(name or "")
    if verified != "SUCCESS" or not common_name:
        return ANONYMOUS
    return Client(common_name, known.extensions, known.alt_names)


def _header_certificate(value: str) -> Certificate:
    try:
        (found,) = x509.read_certificates(unquote(value, "latin-1").encode("latin-1"))
    except (x509.Malformed, ValueError, UnicodeEncodeError) as error:
        raise targets.Unasked("X-Client-Cert has no single certificate: 400") from error
    return found


def _common_name(name: str) -> str | None:
    """Return the CN of a distinguished name: ``CN=a,O=b``, or ``/O=b/CN=a``. Raises NotDecided."""
    if name.startswith("/"):
        pairs = (part.partition("=") for part in name.split("/"))
        return next((value for key, sign, value in pairs if key == "CN" and sign), None)
    if "=" not in name:
        return None
    parts = [part.split("=") for part in name.split(",")]
    if _UNUSUAL.search(name) or any(len(part) != 2 or part[0].strip().lower() not in _ATTRIBUTES for part in parts):
        raise patterns.NotDecided(f"X-Client-DN has an unusual form: {beginning(name, _LONG)!r}")
    return next((value.strip() for key, value in parts if key.strip().lower() == "cn"), None)


# -- the rule ------------------------------------------------------------------------------------


def _groups(rule: Rule, method: str, asked: Asked) -> tuple[str | None, ...] | None:
    """Return the groups of a rule's path if the rule is for a request, otherwise None. Raises NotDecided."""
    if rule.methods is not None and method not in rule.methods:
        return None
    for name, values in (rule.query or {}).items():
        if values.isdisjoint(asked.query.get(name, ())):
            return None
    if rule.pattern is None:
        return () if asked.path.startswith(rule.path) else None
    return rule.pattern.search(asked.path, groups=any(entry.sort is Sort.GROUP for entry in rule.entries))


def _by_rule(rule: Rule, groups: tuple[str | None, ...], asked: Asked, client: Client, question: Question) -> Decision:
    if rule.unauthenticated:
        return Decision(Verdict.ALLOWED, rule, "allow-unauthenticated")
    roles = any(entry.sort is Sort.PERMISSION for entry in rule.entries) and question.header("x-authentication")
    if client.name is None:
        if roles:
            raise patterns.NotDecided("it depends on the roles of Puppet Enterprise")
        return Decision(Verdict.DENIED, rule, "the client has no certificate")
    for entry in rule.entries:
        if _is_for(entry, client, groups, asked):
            verdict = Verdict.ALLOWED if entry.allows else Verdict.DENIED
            if verdict is Verdict.DENIED and roles:
                break
            return Decision(verdict, rule, _why(entry, groups), entry)
    if roles:
        raise patterns.NotDecided("it depends on the roles of Puppet Enterprise")
    parts = [f"${number} is {beginning(group or '', _LONG)}" for number, group in _used(rule, groups)]
    by_extensions = [entry for entry in rule.entries if entry.allows and entry.sort is Sort.EXTENSIONS]
    lacking = dict.fromkeys(_lacking(entry, client, named=asked.named) for entry in by_extensions)
    named = any(entry.allows and entry not in by_extensions for entry in rule.entries)
    mine = [f"no entry is for {beginning(client.name, _LONG)}"] if named or not by_extensions else []
    return Decision(Verdict.DENIED, rule, "; ".join([*mine, *lacking, *parts]))


def _used(rule: Rule, groups: Sequence[str | None]) -> list[tuple[int, str | None]]:
    """Return the groups that entries of a rule name."""
    texts = "".join(entry.text for entry in rule.entries if entry.sort is Sort.GROUP)
    return [(number, group) for number, group in enumerate(groups, 1) if f"${number}" in texts]


def _why(entry: Entry, groups: Sequence[str | None]) -> str:
    if entry.sort is Sort.GROUP:
        filled = _filled(entry.text, groups)
        return f"{entry}, which is {beginning(filled, _LONG)}"
    return beginning(str(entry), _LONG + 20)


# -- the entry -----------------------------------------------------------------------------------


def _is_for(entry: Entry, client: Client, groups: Sequence[str | None], asked: Asked) -> bool:
    """Whether an entry is for a client. Raises NotDecided."""
    match entry.sort:
        case Sort.EXTENSIONS:
            return _has_extensions(entry, client, named=asked.named)
        case Sort.PERMISSION:
            return False
        case Sort.GROUP:
            text = _filled(entry.text, groups)
            if (sort := sort_of(text)) is None:
                raise _Fails(f"{entry} becomes {beginning(text, _LONG)!r}, which puppetserver does not take for a name")
        case _:
            sort, text = entry.sort, entry.text
    if sort is Sort.PATTERN:
        return _matches(text[1:-1], client)
    return any(decision.is_for(sort, text, name) for name in client.names)


def _filled(text: str, groups: Sequence[str | None]) -> str:
    """Return an entry with the parts of the path in the place of ``$1``."""

    def group(found: Match[str]) -> str:
        digits: str = found[1]
        octal = len(digits) > 1 and digits.startswith("0")
        number = int(digits, 8) if octal and "8" not in digits and "9" not in digits else 0 if octal else int(digits)
        if not 0 < number <= len(groups):
            raise _Fails(f"the path has no group ${digits}")
        value = groups[number - 1]
        if value is None:
            raise _Fails(f"the group ${digits} of the path took no part in the match")
        return value

    # As puppetserver does: part by part, without the dots at the end, in lower case.
    pieces = decision.name_parts(text)[::-1]
    return ".".join(GROUP.sub(group, piece) for piece in pieces)


def _matches(expression: str, client: Client) -> bool:
    try:
        pattern = patterns.read(expression, "java")
    except patterns.Invalid as error:
        raise _Fails(f"/{beginning(expression, _LONG)}/ is no regular expression: {error}") from error
    return any(pattern.search(name, groups=False) is not None for name in client.names)


def _has_extensions(entry: Entry, client: Client, *, named: bool) -> bool:
    """Whether a client's certificate has all extensions of an entry, each with one of its values."""
    if client.extensions is None:
        raise patterns.NotDecided("the extensions of the client's certificate are not known (--cert)")
    if entry.alt_names is not None and not _has_alt_names(entry, client):
        return False
    unknown = ""
    for key, values in (entry.extensions or {}).items():
        oid = _identifier(key, named=named)
        if named and oid == key and not key[:1].isdigit() and not _NAMED.issuperset(client.extensions):
            unknown = key  # a name that a site may have given to one of the certificate's extensions
        elif client.extensions.get(oid) not in values and values:
            return False
    if unknown:
        raise patterns.NotDecided(
            f"{beginning(unknown, _LONG)} is none of Puppet's short names: its number is in "
            "custom_trusted_oid_mapping.yaml, or write the number itself"
        )
    return True


def _lacking(entry: Entry, client: Client, *, named: bool) -> str:
    """Return why a client's certificate has not all extensions of an entry."""
    for key, values in (entry.extensions or {}).items():
        value = (client.extensions or {}).get(_identifier(key, named=named))
        if not values or value in values:
            continue
        if value is None:
            return f"the certificate has no {beginning(key, _LONG)}"
        return f"{beginning(key, _LONG)} of the certificate is {beginning(value, _LONG)!r}"
    return "the certificate has none of the alternative names"


def _identifier(key: str, *, named: bool) -> str:
    """Return the object identifier of an extension; ``named``: short names are known."""
    return _SHORT_NAMES.get(key, key) if named else key


def _has_alt_names(entry: Entry, client: Client) -> bool:
    known = client.alt_names or {}
    return any(not set(values).isdisjoint(known.get(kind, ())) for kind, values in (entry.alt_names or {}).items())

"""Names of clients, compared with the entries of an auth.conf as masters do."""

from __future__ import annotations

from inspector.host.auth_conf.rules import Sort


def parts(name: str) -> list[str]:
    """Return the parts of a name, from the last to the first, in lower case. Dots at its end do not count."""
    pieces = name.lower().split(".")
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return [] if pieces == [""] and name else pieces[::-1]


def equal(sort: Sort | None, text: str, name: str) -> bool:
    """Whether an entry with a name or a domain is for a client."""
    match sort:
        case Sort.ANY:
            return True
        case Sort.DOMAIN:
            domain = parts(text)[:-1]
            return parts(name)[: len(domain)] == domain
        case Sort.WORD:
            return parts(name) == [text]
    return parts(name) == parts(text)

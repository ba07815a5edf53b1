"""An agent's state at a moment of its run, as far as it is visible in the traffic: its trust, certificate and
catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.explain.bootstrap import short
from inspector.protocol import documents as d
from inspector.protocol.files import PLUGIN_MOUNTS, is_plugin
from inspector.summaries import wording
from inspector.text import brief, clean, clock, plural, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.runs.observations import Bundle, CatalogAnswer
    from inspector.runs.run import Run

UNSEEN = "not seen"
NAMED = 3
"""Maximum number of CRLs that are listed one by one."""
WORDS = 120
"""Maximum length of a master's message."""


def known(run: Run, asked: d.CatalogRequest | None = None, got: d.Catalog | None = None) -> list[tuple[str, str]]:
    """Labels and texts for the agent's state after the records in ``run`` (``analyzer.retrace``).

    A run stores neither facts nor catalogs: ``asked`` and ``got`` are its latest ones, for their format and version.
    """
    rows = [
        ("CA", _ca(run)),
        ("CRL", _crl(run)),
        ("key", _key(run)),
        ("CSR", _csr(run)),
        ("certificate", _certificate(run)),
        ("environment", _environment(run)),
        ("plugins", _plugins(run)),
        ("facts", _facts(run, asked)),
        ("catalog", _catalog(run, got)),
        ("files", _files(run)),
        ("report", _report(run)),
    ]
    if run.handshakes:
        many = f"{run.handshakes.total} refused, most recently: " if run.handshakes.total > 1 else "refused: "
        rows.insert(0, ("TLS", many + wording.handshake(run.handshakes[-1])))
    return [(label, clean(words)) for label, words in rows]


def _quoted(text: str) -> str:
    return brief(text.strip().partition("\n")[0], WORDS)


# -- trust --------------------------------------------------------------------------------------------------


def _bundle[T](bundles: Iterable[Bundle[T]]) -> tuple[str, Bundle[T] | None]:
    """The result of a download, and the latest one with content."""
    latest = list(bundles)
    if not latest:
        return UNSEEN, None
    good = next((bundle for bundle in reversed(latest) if bundle.status == 200 and bundle.items), None)
    last = latest[-1]
    had = any(bundle.refresh for bundle in latest)
    if good is not None:
        return f"{'already had one, then ' if had else ''}downloaded", good
    if last.status == 304:
        return "already had one; the master has none newer", None
    why = "no answer" if last.status is None else "it cannot be read" if last.status == 200 else str(last.status)
    return f"{'already had one, ' if had else ''}requested, not received: {why}", None


def _ca(run: Run) -> str:
    if not run.cas and run.authenticated is not None:
        return "already had one: did not request it"
    words, good = _bundle(run.cas)
    if good is None or good.items is None:
        return words
    words += f": {plural(len(good.items), 'certificate')}"
    if (0, 0) < run.major < (6, 0) and len(good.items) > 1:
        words += ", of which an agent before 6 uses only the first"
    if not good.refresh and any(request.seq == good.seq for request in run.anonymous):
        words += "; server not verified"
    return words


def _crl(run: Run) -> str:
    words, good = _bundle(run.crls)
    if good is None or good.items is None:
        return words
    lists = [
        f"{crl.issuer}, {f'until {utc_day(crl.next_update)}' if crl.next_update is not None else 'without an end'}, "
        f"{len(crl.revoked)} revoked"
        for crl in good.items[:NAMED]
    ]
    more = len(good.items) - NAMED
    return f"{words}: {'; '.join(lists)}{f'; {more} more' if more > 0 else ''}"


# -- identity -----------------------------------------------------------------------------------------------


def _key(run: Run) -> str:
    asked = next((csr for csr in reversed(run.csrs) if csr.key), None)
    if asked is not None and asked.key:
        return f"{short(asked.key)} in its request (record {asked.seq})"
    return f"{short(run.key)} in the certificate that it presents" if run.key else UNSEEN


def _csr(run: Run) -> str:
    if not run.csrs:
        return UNSEEN
    last = run.csrs[-1]
    many = f"sent {run.csrs.total} times" if run.csrs.total > 1 else "sent"
    accepted = any(csr.status is not None and 200 <= csr.status < 300 for csr in run.csrs)
    words = f"{many}, {'accepted' if accepted else 'not accepted'}"
    if last.status is not None and 200 <= last.status < 300:
        return words
    latest = "; the last time " if accepted else ": "
    words = f"{words}{latest}{last.status or 'no answer'} {_quoted(last.text)}".rstrip()
    return f"{words} (normal: {wording.SENT_AGAIN})" if run.signed_meanwhile(last) else words


def _certificate(run: Run) -> str:
    shows = run.authenticated is not None
    served = next(
        (certificate.certificate for certificate in reversed(run.certificates) if certificate.certificate), None
    )
    if served is not None:
        words = f"issued by {served.issuer}, serial {served.serial}, until {utc_day(served.not_after)}"
        if run.certificate is None:
            return f"{words}, but for another key than the agent's"
        return words + (", and shows it" if shows else "")
    if shows:
        return "already had one, and presents it"
    if not run.certificates:
        return UNSEEN
    last, many = run.certificates[-1], plural(run.certificates.total, "time")
    if last.status == 404:
        return f"requested {many}: not signed yet" if run.csrs else f"requested {many}: none available"
    return f"requested {many}, not received: {last.status or 'no answer'}"


# -- documents from the master ------------------------------------------------------------------------------


def _environment(run: Run) -> str:
    asked, now = run.environment_asked, run.environment
    if asked is None or asked == now:
        return now or UNSEEN
    return f"requested {asked}, uses {now}"


def _plugins(run: Run) -> str:
    if run.tool:
        return UNSEEN
    listed = [name for name in run.files.metadata_answers if name in PLUGIN_MOUNTS]
    fetched = [answer for name, answer in run.files.fetched.items() if is_plugin(name)]
    if not listed and not fetched:
        return UNSEEN
    failed = [name for name in listed if run.files.metadata_answers[name].status != 200]
    words = f"listed {', '.join(listed)}" if listed else "no list seen"
    words += f" ({', '.join(failed)} failed)" if failed else ""
    return f"{words}; {plural(len(fetched), 'file')} fetched"


def _facts(run: Run, asked: d.CatalogRequest | None) -> str:
    if not run.catalogs:
        return UNSEEN
    last = run.catalogs[-1]
    when = f"with the request for the catalog at {clock(last.time)} (record {last.seq})"
    if asked is None:
        return f"sent {when}"
    if asked.facts is None:
        return f"none sent {when}"
    words = f"sent {when} as {asked.facts_format or 'unnamed format'}"
    if isinstance(asked.facts, d.Undecodable):
        return f"{words}; cannot be decoded: {_quoted(asked.facts.reason)}"
    return f"{words}: {plural(len(asked.facts.values), 'fact')}"


def _catalog(run: Run, got: d.Catalog | None) -> str:
    if not run.catalogs:
        return UNSEEN
    last: CatalogAnswer = run.catalogs[-1]
    again = f" after {plural(run.catalogs.total - 1, 'other')}" if run.catalogs.total > 1 else ""
    if not last.usable:
        return f"requested{again}, not received: {last.status or 'no answer'} {_quoted(last.text)}".rstrip()
    words = f"got it{again}"
    if got is not None and got.version is not None:
        words += f", version {got.version}"
    words += f", for {last.environment}" if last.environment else ""
    return words + (f", static (code_id {run.files.code_id})" if run.files.code_id else "")


def _files(run: Run) -> str:
    files = run.files
    checked = [answer for name, answer in files.metadata_answers.items() if not is_plugin(name)]
    fetched = [answer for name, answer in files.fetched.items() if not is_plugin(name)]
    if not (checked or fetched or files.inlined):
        return UNSEEN
    missing = sum(source.status == 404 for source in checked)
    words = f"{plural(len(checked), 'source')} requested" + (f" ({missing} not found)" if missing else "")
    if files.inlined:
        words += f", {len(files.inlined)} listed in the catalog"
    return f"{words}; {plural(len(fetched), 'file')} fetched"


def _report(run: Run) -> str:
    if not run.reports:
        return UNSEEN
    last = run.reports[-1]
    status = last.report.status if last.report else None
    words = f"sent ({status})" if status else "sent"
    accepted = last.status is not None and 200 <= last.status < 300
    return f"{words}, accepted" if accepted else f"{words}, not accepted: {last.status or 'no answer'}"

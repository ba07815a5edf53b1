"""The settings that lie beside a CA's directory: ca.conf, auth.conf and what signs requests by itself.

Where a directory lies alone, nothing is known of them. puppet.conf names files of the host that it was written for, so
the file that it names is not opened: only a list that lies beside it is compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.doctor import findings
from inspector.doctor.findings import listed
from inspector.host import puppetconf, serverconf
from inspector.rules.fixes import advice, on_ca

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from inspector.doctor.findings import Diagnosis
    from inspector.rules.fixes import Fix

DEFAULTS = {
    "allow-subject-alt-names": "false",
    "allow-authorization-extensions": "false",
    "allow-auto-renewal": "false",
    "auto-renewal-cert-ttl": "90d",
    "ca-ttl": "",
    "enable-infra-crl": "false",
}
"""The settings of ca.conf that decide what a CA answers, with their values where the file has none."""
AUTOSIGN = "autosign.conf"
"""The list of names beside puppet.conf that are signed by themselves."""


@dataclass(frozen=True, slots=True)
class CaSettings:
    """What lies beside a CA's directory."""

    ca_conf: Mapping[str, str] = field(default_factory=dict)
    """The settings of ``DEFAULTS``; empty: there is no ca.conf."""
    auth_conf: Path | None = None
    autosign: str | None = None
    """``true``, ``false``, or the name of a program or a list, without its directory; None: not known."""
    listed: frozenset[str] = frozenset()
    """The lines of autosign.conf."""
    ttl: str | None = None
    """``ca_ttl`` of puppet.conf; None: not set, or not known."""


def beside(cadir: Path) -> CaSettings:
    """Return the settings that lie beside a CA's directory, in the new place or in the old one.

    Raises InspectorError for a file that cannot be read.
    """
    try:
        place = cadir.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return CaSettings()
    home = place.parent
    # A packaged server has /etc/puppetlabs/puppetserver/ca or /etc/puppetlabs/puppet/ssl/ca.
    conf_d = _first(home / "conf.d", home.parent.parent / "puppetserver/conf.d")
    puppet = _first(*(path / "puppet.conf" for path in (home, home.parent, home.parent / "puppet")))
    ca_conf: Mapping[str, str] = {}
    if conf_d and _first(conf_d / "ca.conf"):
        found = serverconf.section(conf_d, "ca.conf", "certificate-authority")
        ca_conf = {name: found.get(name, default) for name, default in DEFAULTS.items()}
    auth_conf = _first(conf_d / "auth.conf") if conf_d else None
    if puppet is None:
        return CaSettings(ca_conf, auth_conf)
    sections = puppetconf.sections_of(puppet)
    values = [sections.get(name, {}) for name in puppetconf.OF_SERVER]
    autosign = next((value["autosign"] for value in values if "autosign" in value), AUTOSIGN)
    return CaSettings(
        ca_conf,
        auth_conf,
        autosign=Path(autosign).name if "/" in autosign else autosign,
        listed=frozenset(_lines(puppet.with_name(AUTOSIGN))),
        ttl=next((value["ca_ttl"] for value in values if "ca_ttl" in value), None),
    )


def _first(*paths: Path) -> Path | None:
    """Return the first of some paths that is there, and may be looked at."""
    for path in paths:
        try:
            if inputs.exists(path):
                return path
        except OSError:
            continue
    return None


def _lines(path: Path) -> Iterator[str]:
    """Yield the names in a list for autosigning; none if it cannot be read."""
    try:
        text = inputs.read(path, inputs.SMALL).decode("utf-8", "replace")
    except OSError:
        return
    yield from (line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


_MEANING = {
    "allow-subject-alt-names": "signing requests with alternative names",
    "allow-authorization-extensions": "signing requests with authorization extensions",
    "allow-auto-renewal": "renewals of certificates (agents of 8.2 and later)",
}
"""What a CA refuses if a setting is false."""


def changes(old: CaSettings, new: CaSettings) -> Iterator[Diagnosis]:
    """Compare ca.conf, and what signs by itself, where they lie beside both."""
    changed, restart = [], on_ca("restart NEW", "systemctl restart puppetserver")
    for name, before in old.ca_conf.items():
        after = new.ca_conf.get(name, before)
        if before == after:
            continue
        what = f"{name} is {before or 'not set'} on OLD and {after or 'not set'} on NEW"
        if name in _MEANING:
            what += f": NEW {'refuses' if after == 'false' else 'takes'} {_MEANING[name]}"
        changed.append(what)
    if old.ttl != new.ttl and old.autosign is not None and new.autosign is not None:
        changed.append(f"ca_ttl in puppet.conf is {old.ttl or 'not set'} on OLD and {new.ttl or 'not set'} on NEW")
    if changed:
        fix: Fix = (advice("write the values that are meant into NEW's ca.conf"), restart)
        yield findings.warning("the CA's settings differ", "; ".join(changed), fix)
    if old.autosign is None or new.autosign is None:
        return
    fix = (advice("write what is meant into NEW's puppet.conf and autosign.conf"),)
    if old.autosign != new.autosign:
        detail = f"autosign is {old.autosign} on OLD and {new.autosign} on NEW: NEW signs other nodes by itself"
        yield findings.warning("autosigning differs", detail, fix)
    elif old.listed != new.listed:
        parts = [f"only on {which}: {listed(sorted(lines))}" for which, lines in
                 (("OLD", old.listed - new.listed), ("NEW", new.listed - old.listed)) if lines]  # fmt: skip
        yield findings.warning("autosigning differs", f"autosign.conf: {'; '.join(parts)}", fix)

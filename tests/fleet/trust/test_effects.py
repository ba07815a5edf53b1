"""What is refused, by whom and unless what: by the rules of agents and masters, and as OpenSSL does it."""

from __future__ import annotations

import datetime
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.fleet.trust.effects import Effect, Judge, Kind, Verdict
from inspector.fleet.trust.paths import Paths
from inspector.fleet.trust.scenario import Scenario
from inspector.host import pki
from inspector.protocol import chains
from tests.support.trust import DAY, NOW, certificate, crl, inventory, node, of_real

if TYPE_CHECKING:
    from inspector.fleet.trust.inventory import Crl, Node

ROOT = certificate("root")
CA = certificate("ca", ROOT, serial=2)
MASTER = certificate("master", CA, serial=3, roles=("master",))
WEB = certificate("web", CA, serial=4, roles=("agent",))
ALL = [ROOT, CA, MASTER, WEB]
YEAR = datetime.timedelta(days=365)


def effects(given: Node, scenario: Scenario, *crls: Crl, certificates: list[Any] | None = None) -> list[Effect]:
    fleet = inventory(certificates or ALL, [given], *crls)
    return Judge(fleet, Paths(fleet), scenario).effects(given)


def verdicts(found: list[Effect]) -> dict[Kind, Verdict]:
    return {effect.reason.kind: effect.reason.verdict for effect in found}


@pytest.mark.parametrize(
    ("version", "downloads", "expected"),
    [
        ("8.10.0", 0, Verdict.BREAKS),
        ("7.23.0", 2, Verdict.BREAKS),
        ("7.23.0", 1, Verdict.WORKS),
        ("6.0.0", 1, Verdict.WORKS),
        ("5.5.22", 5, Verdict.WORKS),
        (None, 0, Verdict.MAY_BREAK),
    ],
)
def test_only_who_gets_the_new_crl_refuses_a_revoked_master(
    version: str | None, downloads: int, expected: Verdict
) -> None:
    given = node("web", WEB, MASTER, agent_version=version, downloads=downloads)
    for revoked, kind in ((MASTER, Kind.MASTER_REVOKED), (CA, Kind.CA_REVOKED), (ROOT, Kind.CA_REVOKED)):
        assert verdicts(effects(given, Scenario(NOW, revoked=(revoked,)))) == {kind: expected}


def test_the_crl_of_a_ca_says_nothing_of_that_ca() -> None:
    """Serial numbers of two CAs are equal: the CA is 2 at its root, and revokes its own 2."""
    leaf = certificate("old", CA, serial=2, roles=("agent",))
    for known in ([CA, ROOT, MASTER, WEB, leaf], [CA, MASTER, WEB, leaf]):
        found = effects(node("web", WEB, MASTER), Scenario(NOW), crl(CA, 2), certificates=known)
        assert found == []


def test_a_node_is_revoked_also_if_its_ca_is_not_known() -> None:
    found = effects(node("web", WEB, MASTER), Scenario(NOW), crl(CA, 4), certificates=[MASTER, WEB])
    assert [effect.reason.kind for effect in found] == [Kind.NODE_REVOKED]


@pytest.mark.parametrize(("version", "since"), [("8.10.0", NOW - DAY), ("5.5.22", None)])
def test_only_an_agent_that_verifies_itself_judges_its_certificate_by_its_clock(
    version: str, since: float | None
) -> None:
    own = WEB._replace(not_after=NOW + DAY)
    given = node("web", own, MASTER, agent_version=version, clock=2 * DAY)
    found = effects(given, Scenario(NOW), certificates=[ROOT, CA, MASTER, own])
    assert [effect.since for effect in found] == ([] if since is None else [since])


@pytest.mark.parametrize(
    ("version", "downloads", "verdict", "words"),
    [
        ("8.10.0", 0, Verdict.WORKS, "fetches it every day"),
        ("7.23.0", 9, Verdict.WORKS, "was recorded to fetch it again"),
        ("7.23.0", 1, Verdict.BREAKS, "does not fetch it by itself"),
    ],
)
def test_who_fetches_the_crl_that_the_ca_makes_anew_goes_on(
    version: str, downloads: int, verdict: Verdict, words: str
) -> None:
    given = node("web", WEB, MASTER, agent_version=version, master_version="8.6.1", downloads=downloads)
    (effect,) = effects(given, Scenario(NOW + 60 * DAY), crl(CA, days=40), crl(ROOT))
    assert (effect.reason.verdict, effect.reason.kind) == (verdict, Kind.CRL_ENDED)
    assert words in effect.reason.text


@pytest.mark.parametrize("version", ["8.10.0", "7.23.0", "5.5.22", None])
def test_a_revoked_node_is_refused_by_the_master_whatever_its_settings_are(version: str | None) -> None:
    (effect,) = effects(node("web", WEB, MASTER, agent_version=version), Scenario(NOW, revoked=(WEB,)))
    assert (effect.reason.kind, effect.reason.verdict, effect.reason.unless, effect.since) == (
        Kind.NODE_REVOKED, Verdict.BREAKS, "", None,
    )  # fmt: skip
    assert effect.reason.prints == ("Certificate 'CN={name}' is revoked" if version == "8.10.0" else "")


@pytest.mark.parametrize(
    ("master", "restart"),
    [
        ("7.9.5", ""),
        ("3.8.7", "from its restart on"),
        ("5.3.0", "if it is older than Puppet Server 5.1"),
        (None, "5.1"),
    ],
)
def test_when_the_master_has_the_new_crl(master: str | None, restart: str) -> None:
    (effect,) = effects(node("web", WEB, MASTER, master_version=master), Scenario(NOW, revoked=(WEB,)))
    assert restart in effect.reason.text
    assert ("restart" in effect.reason.text) == bool(restart)


def test_a_certificate_that_was_replaced_breaks_nobody() -> None:
    old = certificate("web", CA, serial=9, roles=("agent",))
    given = node("web", WEB, MASTER)._replace(replaced=(old.fingerprint,))
    (effect,) = effects(given, Scenario(NOW, revoked=(old,)), certificates=[*ALL, old])
    assert effect.reason.verdict is Verdict.WORKS
    assert "0x0004" in effect.reason.text


def test_copies_of_a_certificate() -> None:
    (effect,) = effects(node("web", WEB, addresses=3), Scenario(NOW, revoked=(WEB,)))
    assert "from 3 addresses" in effect.reason.text


def test_one_of_two_masters() -> None:
    twin = certificate("twin", CA, serial=8, roles=("master",))
    (effect,) = effects(node("web", WEB, MASTER, twin), Scenario(NOW, revoked=(twin,)), certificates=[*ALL, twin])
    assert effect.reason.unless.startswith("certificate_revocation is false, or another master answers (1 other")


def test_what_is_revoked_already() -> None:
    (effect,) = effects(node("web", WEB, MASTER), Scenario(NOW), crl(CA, WEB.serial, made=5))
    assert (effect.reason.kind, effect.since) == (Kind.NODE_REVOKED, NOW - 5 * DAY)
    other = crl(CA, WEB.serial)._replace(issuer_key="id of another key")
    assert effects(node("web", WEB, MASTER), Scenario(NOW), other) == []


@pytest.mark.parametrize(
    ("agent", "master", "expected", "unless"),
    [
        ("7.23.0", "7.9.5", Verdict.BREAKS, ""),
        ("5.5.22", "5.5.22", Verdict.BREAKS, ""),
        # The CA signs it anew.
        ("8.10.0", "8.7.0", Verdict.WORKS, ""),
        ("7.23.0", "8.7.0", Verdict.BREAKS, "certificate_revocation is false, or crl_refresh_interval is set"),
    ],
)
def test_the_crl_of_the_cas_own(agent: str, master: str, expected: Verdict, unless: str) -> None:
    given = node("web", WEB, MASTER, agent_version=agent, master_version=master)
    (effect,) = effects(given, Scenario(NOW + 20 * DAY), crl(CA, days=10), crl(ROOT))
    assert (effect.reason.kind, effect.reason.verdict, effect.reason.unless) == (Kind.CRL_ENDED, expected, unless)
    assert effect.since == NOW + 10 * DAY
    assert effects(given, Scenario(NOW + 9 * DAY), crl(CA, days=10), crl(ROOT)) == []
    assert effects(given, Scenario(NOW + 900 * DAY), crl(CA, days=None)) == []


def test_the_crl_of_the_root_is_not_for_the_master_and_nobody_signs_it_anew() -> None:
    given = node("web", WEB, MASTER, master_version="8.7.0")
    (effect,) = effects(given, Scenario(NOW + 20 * DAY), crl(CA), crl(ROOT, days=10))
    assert (effect.reason.verdict, effect.reason.unless) == (Verdict.BREAKS, "certificate_revocation is leaf or false")
    assert "the master refuses" not in effect.reason.text
    assert effect.reason.prints == "certificate verify failed [CRL has expired for CN=ca]"
    (effect,) = effects(node("web", WEB, MASTER, agent_version="7.23.0"), Scenario(NOW + 20 * DAY), crl(CA, days=10))
    assert effect.reason.prints == "The CRL issued by 'CN=ca' has expired, verify time is synchronized"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("8.10.0", Verdict.BREAKS),
        ("6.3.0", Verdict.MAY_BREAK),
        ("4.10.9", Verdict.MAY_BREAK),
        (None, Verdict.MAY_BREAK),
    ],
)
def test_without_crls(version: str | None, expected: Verdict) -> None:
    found = effects(node("web", WEB, MASTER, agent_version=version), Scenario(NOW, without_crls=True), crl(CA, days=-1))
    assert verdicts(found) == {Kind.CRL_MISSING: expected}


def test_a_clock_that_is_ahead_ends_things_earlier() -> None:
    short = WEB._replace(not_after=NOW + 10 * DAY)
    found = [ROOT, CA, MASTER._replace(not_after=NOW + 10 * DAY), short]
    at = Scenario(NOW + 9.5 * DAY)
    assert effects(node("web", short, MASTER), at, certificates=found) == []
    ahead = effects(node("web", short, MASTER, clock=DAY), at, certificates=found)
    assert {effect.since for effect in ahead} == {NOW + 9 * DAY}
    assert {*verdicts(ahead)} == {Kind.NODE_ENDED, Kind.MASTER_ENDED}
    # One that is behind: the master refuses it nevertheless. A few seconds are not known so exactly.
    later = Scenario(NOW + 10.5 * DAY)
    assert {*verdicts(effects(node("web", short, MASTER, clock=-DAY), later, certificates=found))} == {Kind.NODE_ENDED}
    assert effects(node("web", short, clock=60.0), Scenario(NOW + 10 * DAY - 30), certificates=found) == []


def test_who_refuses_a_node_whose_certificate_has_ended() -> None:
    at = Scenario(NOW + 2000 * DAY)
    found = {
        version: next(one.reason for one in effects(node("web", WEB, agent_version=version), at)
                      if one.reason.kind is Kind.NODE_ENDED)
        for version in ("8.10.0", "7.23.0", "5.5.22")
    }  # fmt: skip
    assert "allow-auto-renewal" in found["8.10.0"].unless
    assert (found["7.23.0"].unless, found["7.23.0"].prints) == (
        "", "The certificate 'CN={name}' has expired, verify time is synchronized",
    )  # fmt: skip
    assert found["5.5.22"].text.endswith("the master refuses it")


# -- the same as OpenSSL --------------------------------------------------------------------------------------------

REAL_ROOT = pki.make_ca("Root", serial=1)
REAL_CA = pki.make_ca("CA", REAL_ROOT, serial=2)
REAL_MASTERS = [
    pki.sign(REAL_CA, pki.new_key().public_key(), "master", serial=3, lifetime=years * YEAR) for years in (1, 40)
]
# Its own certificate is of another CA: what the master refuses is not asked here.
REAL_OTHER = pki.make_ca("Other", serial=7)
REAL_NODE = pki.sign(REAL_OTHER, pki.new_key().public_key(), "web", serial=8, lifetime=40 * YEAR)
MADE = REAL_ROOT.certificate.not_valid_before_utc + datetime.timedelta(days=2)
CODES = {10: {Kind.MASTER_ENDED, Kind.CA_ENDED}, 12: {Kind.CRL_ENDED}, 23: {Kind.MASTER_REVOKED, Kind.CA_REVOKED}}
MODES: dict[chains.Revocation, tuple[str, ...]] = {"chain": (), "leaf": ("leaf",), "none": ("leaf", "false")}
"""Values of certificate_revocation; of which conditions each is one."""


def openssl(master: Any, at: datetime.datetime, mode: chains.Revocation, serials: set[int], *lasts: int) -> list[int]:
    """The codes of what OpenSSL refuses, with CRLs of the CA and the root that last so many years."""
    lists = [
        pki.make_crl(authority, serials & issued, last_update=MADE, next_update=MADE + years * YEAR)
        for authority, issued, years in zip((REAL_CA, REAL_ROOT), ({3}, {1, 2}), lasts, strict=True)
    ]
    chain, bundle = (master, REAL_CA.certificate), (REAL_CA.certificate, REAL_ROOT.certificate)
    problems = chains.verify(
        [one.public_bytes(Encoding.DER) for one in chain], [one.public_bytes(Encoding.DER) for one in bundle],
        [one.public_bytes(Encoding.DER) for one in lists], at.timestamp(), mode,
    )  # fmt: skip
    return [problem.code for problem in problems]


@pytest.mark.slow
@pytest.mark.parametrize("master", REAL_MASTERS, ids=["short", "long"])
@pytest.mark.parametrize("years", [2, 16], ids=["later", "cas-ended"])
def test_an_agent_refuses_what_openssl_refuses(master: Any, years: int) -> None:
    """All CRLs that may have ended, and all certificates that may be revoked, with each certificate_revocation."""
    at = MADE + years * YEAR
    # Which OpenSSL this is decides what it asks about the root.
    root = () if openssl(REAL_MASTERS[1], MADE + YEAR, "chain", {1}, 40, 40) else ("about a root",)
    known = [of_real(master, "master"), of_real(REAL_CA.certificate, "ca"), of_real(REAL_ROOT.certificate, "ca"),
             of_real(REAL_OTHER.certificate, "issued"), of_real(REAL_NODE, "agent")]  # fmt: skip
    given = node("web", known[-1], known[0])
    refused = 0
    for lasts in itertools.product((1, 40), repeat=2):
        ends = [(MADE + years_of * YEAR).timestamp() for years_of in lasts]
        crls = [crl(one)._replace(next_update=end) for one, end in zip(known[1:3], ends, strict=True)]
        for revoked in itertools.chain.from_iterable(itertools.combinations(known[:3], size) for size in range(4)):
            found = effects(given, Scenario(at.timestamp(), revoked=revoked), *crls, certificates=known)
            for mode, conditions in MODES.items():
                codes = openssl(master, at, mode, {one.serial for one in revoked}, *lasts)
                spared = (*conditions, *root)
                mine = {one.reason.kind for one in found if not any(word in one.reason.unless for word in spared)}
                assert bool(codes) == bool(mine), (mode, lasts, revoked, codes)
                assert all(CODES[code] & mine for code in codes)
                refused += bool(codes)
    assert refused > 20

"""The CAs and CRLs above a certificate, by names and key identifiers."""

from __future__ import annotations

from inspector.fleet.trust.paths import DEEPEST, Paths
from tests.support.trust import certificate, crl, inventory

ROOT = certificate("root")
CA = certificate("ca", ROOT, serial=2)
LEAF = certificate("web", CA, serial=3, roles=("agent",))


def test_up_to_the_root() -> None:
    paths = Paths(inventory([LEAF, CA, ROOT], []))
    assert paths.above(LEAF) == (CA, ROOT)
    assert paths.above(ROOT) == ()
    assert paths.complete(LEAF)


def test_a_ca_that_is_not_known() -> None:
    paths = Paths(inventory([LEAF, CA], []))
    assert paths.above(LEAF) == (CA,)
    assert not paths.complete(LEAF)


def test_another_ca_of_the_same_name_is_another_one() -> None:
    other = CA._replace(fingerprint="other", key_identifier="id of another key")
    paths = Paths(inventory([LEAF, CA, other, ROOT], [], crl(other, 3), crl(CA)))
    assert paths.above(LEAF)[0] == CA
    assert paths.crl(CA) == crl(CA)
    assert paths.crl(ROOT) is None


def test_of_several_crls_of_a_ca_the_latest() -> None:
    old, new = crl(CA, 3, made=2)._replace(issuer_key=None), crl(CA, 4, made=1)
    for crls in ((old, new), (new, old)):
        assert Paths(inventory([LEAF, CA], [], *crls)).crl(CA) == new
    high = new._replace(number="10")
    assert Paths(inventory([LEAF, CA], [], new, high)).crl(CA) == high


def test_which_crl_is_about_a_certificate_also_of_an_issuer_that_is_not_known() -> None:
    of_ca, of_root = crl(CA, 3), crl(ROOT, 2)
    for known in ([LEAF, CA, ROOT], [LEAF, CA], [LEAF]):
        paths = Paths(inventory(known, [], of_ca, of_root))
        assert paths.crl_about(LEAF) == of_ca
        assert paths.crl_about(CA) == of_root
        assert paths.crl_about(ROOT) == of_root


def test_of_a_renewed_ca_the_one_that_lasts_longest() -> None:
    renewed = CA._replace(fingerprint="renewed", serial=9, not_after=CA.not_after + 1)
    assert Paths(inventory([LEAF, renewed, CA, ROOT], [])).above(LEAF) == (renewed, ROOT)


def test_cas_without_key_identifiers_are_told_by_name() -> None:
    plain = [one._replace(issuer_key=None, key_identifier=None) for one in (LEAF, CA, ROOT)]
    assert Paths(inventory(plain, [])).above(plain[0]) == (plain[1], plain[2])


def test_cas_that_issue_each_other_end() -> None:
    one, other = certificate("one"), certificate("other")
    crossed = [one._replace(issuer=other.subject, issuer_key=other.key_identifier),
               other._replace(issuer=one.subject, issuer_key=one.key_identifier)]  # fmt: skip
    leaf = certificate("web", crossed[0], roles=("agent",))
    assert len(Paths(inventory([leaf, *crossed], [])).above(leaf)) == 2
    chain = [certificate("0")]
    for number in range(1, 2 * DEEPEST):
        chain.append(certificate(str(number), chain[-1]))
    assert len(Paths(inventory(chain, [])).above(chain[-1])) == DEEPEST

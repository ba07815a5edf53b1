"""Renew and complete the CRLs of a CA's directory: ``ca_crl.pem``, which agents download.

``plan`` reads the directory and changes nothing; ``write`` replaces the file. The directory is that of the Ruby CA or
of puppetserver (docs/protocol.md#the-directory-of-a-ca). The signing CA's CRL is signed anew if that makes it valid
longer. That of another CA is signed anew only if it is unusable and the CA's key is in the directory, as the root's
often is.
"""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cryptography import x509 as cx509

from inspector import inputs, regex
from inspector.clocks import SKEW
from inspector.errors import IdentityError, InspectorError
from inspector.host import pki, replacing
from inspector.protocol import x509
from inspector.protocol.ca_service import KEY_FILE, OPENVOX_CA
from inspector.protocol.pem import UNREADABLE
from inspector.protocol.signatures import signed_by
from inspector.text import utc_in_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.protocol.certificates import Certificate, RevocationList

type State = Literal["valid", "expired", "not yet valid", "invalid signature", "issued by an unknown CA"]
type Action = Literal["unchanged", "signed anew", "replaced", "added", "removed", "missing"]

KEYS = (KEY_FILE[None], "root_key.pem")
"""The keys of the signing CA, and of its root."""
_BACKDATED = datetime.timedelta(minutes=1)
_CRL = regex.compile(rb"-----BEGIN X509 CRL-----[^-]+-----END X509 CRL-----\r?\n?")


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one CRL of the file."""

    issuer: str
    action: Action
    before: RevocationList | None = None
    """The CRL in the file; None if it is not in it."""
    state: State | None = None
    """The state of ``before``."""
    after: RevocationList | None = None
    """The CRL in the new file; None if there is none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that ``write`` would make."""

    path: Path
    """The file itself, not a link to it."""
    changes: tuple[Change, ...]
    lacking: tuple[str, ...]
    """CAs of which the new file has no usable CRL."""
    forgotten: tuple[str, ...]
    """CAs that get a CRL without entries, because none of their earlier ones is known."""
    old: bytes | None
    """The content of the file; None if there is no file."""
    new: bytes


@dataclass(slots=True)
class _Block:
    """A CRL of the file and its place."""

    crl: RevocationList
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Directory:
    """The content of a cadir that matters here."""

    path: Path
    file: bytes | None
    blocks: tuple[_Block, ...]
    authorities: tuple[Certificate, ...]
    keys: dict[str, pki.Authority]
    """The CAs whose keys are in the directory, by ``Certificate.key``."""
    signing: str | None
    """The key of the signing CA; None if it is not in the directory."""


def plan(cadir: Path, now: float, added: Path | None = None) -> Plan:
    """Return what would be written. ``added`` is a file with CRLs to add, ``now`` is in seconds since the epoch.

    Raises InspectorError if the directory is not a cadir, or one of the files cannot be used.
    """
    path = _target(cadir)
    directory = _read(cadir, path)
    more = _added(added, directory.authorities) if added else ()
    if not directory.signing and _of_openvox_ca(cadir):
        hint = "Let it sign its own CRL anew: `openvox-ca-ctl reissue-crl`."
        raise InspectorError(f"{cadir} is that of an openvox-ca, which does not notice other programs' changes.", hint)
    if not directory.signing and not more:
        raise IdentityError(f"{cadir} has no ca_key.pem.", "Run this where the CA's key is, or pass CRLs with --add.")
    changes: list[Change] = []
    lacking, forgotten = [], []
    # One certificate of each CA: a renewed one may have several.
    for authority in {(authority.subject, authority.key): authority for authority in directory.authorities}.values():
        mine = [block.crl for block in directory.blocks if _issued(block.crl, authority)]
        theirs = [crl for crl in more if _issued(crl, authority)]
        after = _next(directory, authority, mine, theirs, now)
        if after is None or _state(after, now) != "valid":
            lacking.append(authority.subject)
        if after and not (mine or theirs):
            forgotten.append(authority.subject)
        changes += _changes(authority, mine, theirs, after, now)
    changes += _of_others(directory, changes)
    return Plan(path, tuple(changes), tuple(lacking), tuple(forgotten), directory.file, _content(directory, changes))


def write(planned: Plan, now: float) -> Path | None:
    """Replace the file as planned, and return the path of the copy of the old one, if there was one.

    Raises InspectorError if it cannot be written, or was changed since it was read; then nothing is changed.
    """
    model = planned.path if planned.old is not None else planned.path.with_name("ca_crt.pem")
    return replacing.replace(planned.path, planned.new, planned.old, model=model, suffix=utc_in_name(now))


# -- reading ------------------------------------------------------------------------------------------


def _of_openvox_ca(cadir: Path) -> bool:
    key = cadir / KEY_FILE[OPENVOX_CA]
    try:
        return inputs.exists(key)
    except OSError as error:
        raise _unreadable(key, error) from error


def _target(cadir: Path) -> Path:
    """Return the path of the CA's CRLs; a link is followed, so that it stays one."""
    hint = "Use the directory that `puppet config print cadir --section master` prints."
    try:
        path = Path(os.path.realpath(cadir / "ca_crl.pem"))
        if not inputs.is_directory(cadir):
            raise InspectorError(f"There is no directory {cadir}.", hint)
        if not inputs.exists(cadir / "ca_crt.pem"):
            raise InspectorError(f"{cadir} is not a cadir: it contains no ca_crt.pem.", hint)
        if (cadir / "ca_crl.pem").is_symlink() and not inputs.exists(path):
            raise InspectorError(
                f"{cadir / 'ca_crl.pem'} is a link to {path}, which does not exist.", "Correct the link."
            )
    except OSError as error:
        raise InspectorError(f"{cadir} cannot be read: {_reason(error)}.", "Run this as root.") from error
    return path


def _read(cadir: Path, path: Path) -> _Directory:
    try:
        bundle = x509.usable_certificates(inputs.read(cadir / "ca_crt.pem", inputs.SMALL))
    except OSError as error:
        raise _unreadable(cadir / "ca_crt.pem", error) from error
    except x509.Malformed as error:
        raise IdentityError(
            f"{cadir / 'ca_crt.pem'} is not a CA bundle: {error}.", "Restore it from a backup."
        ) from error
    authorities = tuple(found for found in bundle if found.is_ca or found.subject == found.issuer)
    owners = [_authority(cadir, name, authorities) for name in KEYS]
    keys = {x509.key_id(owner.key.public_key()): owner for owner in owners if owner}
    signing = next(iter(keys)) if owners[0] else None
    try:
        file = inputs.read(path)
    except FileNotFoundError:
        file = None
    except OSError as error:
        raise _unreadable(path, error) from error
    return _Directory(cadir, file, _blocks(path, file or b""), authorities, keys, signing)


def _authority(cadir: Path, name: str, authorities: Sequence[Certificate]) -> pki.Authority | None:
    """Return the CA whose key is in a file; None without that file."""
    path = cadir / name
    try:
        if not inputs.exists(path):
            return None
        password = inputs.read(cadir / "private/ca.pass", inputs.SMALL)
    except FileNotFoundError:
        password = None
    except OSError as error:
        raise _unreadable(path, error) from error
    key = _key(path, password)
    own = next((a for a in authorities if a.key == x509.key_id(key.public_key())), None)
    if own:
        return pki.Authority(cx509.load_der_x509_certificate(own.der), key)
    if name != KEYS[0]:
        return None  # left over from an earlier CA
    raise IdentityError(
        f"{path} is not the key of any CA in {cadir / 'ca_crt.pem'}.", "Restore both from the same backup."
    )


def _key(path: Path, password: bytes | None) -> pki.PrivateKey:
    try:
        data = inputs.read(path, inputs.SMALL)
    except OSError as error:
        raise _unreadable(path, error) from error
    encrypted = b"ENCRYPTED" in data
    try:
        return pki.read_key(path, password if encrypted else None)
    except IdentityError as error:
        if not encrypted:
            raise
        hint = "Restore private/ca.pass from a backup, or decrypt a copy of the key with `openssl pkey`."
        raise IdentityError(f"{path} is encrypted, and private/ca.pass has no password for it.", hint) from error


def _blocks(path: Path, file: bytes) -> tuple[_Block, ...]:
    """Return the CRLs of a file. Raises InspectorError if it contains anything else in PEM form, or a damaged one."""
    try:
        blocks = tuple(_Block(x509.read_crls(found[0])[0], found.start(), found.end()) for found in _CRL.finditer(file))
        x509.check_usable([], [block.crl.der for block in blocks])
        damaged = b"-----" in _CRL.sub(b"", file)
    except x509.Malformed:
        damaged = True
    if damaged:
        raise InspectorError(
            f"{path} contains something that is not a complete CRL.",
            "Restore it from a backup, or move it away and pass a copy (an agent's crl.pem) with --add.",
        )
    return blocks


def _added(path: Path, authorities: Sequence[Certificate]) -> tuple[RevocationList, ...]:
    """Return the CRLs of a file that a CA of the bundle signed."""
    try:
        found = x509.read_crls(inputs.read(path))
        x509.check_usable([], [crl.der for crl in found])
    except OSError as error:
        raise _unreadable(path, error) from error
    except x509.Malformed as error:
        raise InspectorError(
            f"{path} contains no usable CRL: {error}.", "Pass a file with CRLs in PEM form."
        ) from error
    own = tuple(crl for crl in found if any(_issued(crl, authority) for authority in authorities))
    if not own:
        issuers = ", ".join(dict.fromkeys(crl.issuer for crl in found))
        raise InspectorError(
            f"No CA in ca_crt.pem signed a CRL of {path} (issued by {issuers}).",
            "Pass a CRL of this CA or of its root: from a backup, or an agent's crl.pem.",
        )
    return own


def _unreadable(path: Path, error: OSError) -> InspectorError:
    return IdentityError(f"{path} cannot be read: {_reason(error)}.", "Run this as root.")


def _reason(error: OSError) -> str:
    return getattr(error, "strerror", None) or str(error)


# -- deciding -----------------------------------------------------------------------------------------


def _issued(crl: RevocationList, authority: Certificate) -> bool:
    """Tell whether a CA issued a CRL. A signature that cannot be checked here (MD5) counts."""
    return crl.issuer == authority.subject and signed_by(crl, authority) is not False


def _state(crl: RevocationList, now: float) -> State:
    if crl.last_update > now + SKEW:
        return "not yet valid"
    return "expired" if crl.next_update is not None and crl.next_update < now else "valid"


def _age(crl: RevocationList) -> tuple[int, float]:
    return crl.number or 0, crl.last_update


def _next(
    directory: _Directory,
    authority: Certificate,
    mine: Sequence[RevocationList],
    theirs: Sequence[RevocationList],
    now: float,
) -> RevocationList | None:
    """Return the CRL of a CA for the new file; None if there is none. ``mine`` are in the file, ``theirs`` added."""
    known = sorted([*mine, *theirs], key=_age)
    signing = directory.keys.get(authority.key)
    usable = bool(known) and _state(known[-1], now) == "valid"
    own = authority.key == directory.signing
    if signing and (not usable or (own and (len(known) > 1 or not _lasts(known[-1], now)))):
        return _signed(signing, known, now)
    return known[-1] if known else None


def _lasts(crl: RevocationList, now: float) -> bool:
    """Whether a valid CRL ends no earlier than a new one would."""
    return crl.next_update is None or crl.next_update >= now + pki.LEAF_LIFETIME.total_seconds()


def _signed(signing: pki.Authority, known: Sequence[RevocationList], now: float) -> RevocationList:
    """Sign a CRL anew; it ends no earlier than a valid one that it replaces."""
    started = datetime.datetime.fromtimestamp(int(now), datetime.UTC) - _BACKDATED
    ends = [started + pki.LEAF_LIFETIME]
    ends += [
        datetime.datetime.fromtimestamp(crl.next_update, datetime.UTC)
        for crl in known
        if crl.next_update is not None and _state(crl, now) == "valid"
    ]
    old = [cx509.load_der_x509_crl(crl.der) for crl in known]
    try:
        new = pki.renew_crl(signing, old, started, max(ends))
    except UNREADABLE as error:
        raise IdentityError(
            f"The CRL of {known[-1].issuer if known else 'the CA'} cannot be signed: {error}."
        ) from error
    return x509.read_crls(pki.pem(new))[0]


def _changes(
    authority: Certificate,
    mine: Sequence[RevocationList],
    theirs: Sequence[RevocationList],
    after: RevocationList | None,
    now: float,
) -> list[Change]:
    """Return what becomes of a CA's CRLs: the newest one is replaced, older copies are removed with it."""
    if after is None:
        return [Change(authority.subject, "missing")]
    if not mine:
        return [Change(authority.subject, "added", after=after)]
    if after in mine:
        return [Change(crl.issuer, "unchanged", crl, _state(crl, now), crl) for crl in mine]
    *older, newest = sorted(mine, key=_age)
    action: Action = "replaced" if after in theirs else "signed anew"
    changed = Change(authority.subject, action, newest, _state(newest, now), after)
    return [changed, *(Change(crl.issuer, "removed", crl, _state(crl, now)) for crl in older)]


def _of_others(directory: _Directory, changes: Sequence[Change]) -> list[Change]:
    """Return what becomes of the CRLs that no CA of the bundle signed: one in the name of a CA that has its own is
    removed."""
    known = {id(change.before) for change in changes}
    names = {authority.subject for authority in directory.authorities}
    covered = {change.issuer for change in changes if change.after}
    others = []
    for crl in (block.crl for block in directory.blocks if id(block.crl) not in known):
        if crl.issuer in covered:
            others.append(Change(crl.issuer, "removed", crl, "invalid signature"))
        else:
            state: State = "invalid signature" if crl.issuer in names else "issued by an unknown CA"
            others.append(Change(crl.issuer, "unchanged", crl, state, crl))
    return others


def _content(directory: _Directory, changes: Sequence[Change]) -> bytes:
    """Return the new file: every CRL stays at its place. An added one of the signing CA goes to the front, others to
    the end."""
    by_crl = {id(change.before): change for change in changes if change.before}
    parts, at, file = [], 0, directory.file or b""
    for block in directory.blocks:
        change = by_crl[id(block.crl)]
        parts.append(file[at : block.start])
        if change.after is block.crl:
            parts.append(file[block.start : block.end])
        elif change.after:
            parts.append(_pem(change.after))
        at = block.end
    text = b"".join([*parts, file[at:]])
    own = {authority.subject for authority in directory.authorities if authority.key == directory.signing}
    new = [change for change in changes if change.action == "added" and change.after]
    front = [_pem(change.after) for change in new if change.after and change.issuer in own]
    back = [_pem(change.after) for change in new if change.after and change.issuer not in own]
    if back and text and not text.endswith(b"\n"):
        text += b"\n"
    return b"".join([*front, text, *back])


def _pem(crl: RevocationList) -> bytes:
    return pki.pem(cx509.load_der_x509_crl(crl.der))

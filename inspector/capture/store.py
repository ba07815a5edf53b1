"""The capture: one SQLite file that contains what was on the wire, without any conclusions.

Appending is cheap (memory only); ``flush`` writes everything pending in one transaction, so a caller decides how often
to pay for a commit. Readers may open the file while it is being written (WAL). Reading never repairs, writing never
rewrites. Decoding, runs and findings are elsewhere.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sqlite3
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from inspector import __version__, inputs, regex
from inspector.capture import guard, paths, schema
from inspector.capture.bodies import Bodies, Share, Texts, Unread
from inspector.capture.present import PresentTable
from inspector.errors import CaptureError
from inspector.model import (
    Closed,
    Connection,
    Exchange,
    Gap,
    Handshake,
    Identity,
    Leg,
    Message,
    Record,
    Request,
    Response,
)
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from inspector.capture.spool import Spool
    from inspector.model import Present

BUSY = 1.0
"""Seconds to wait for another process that writes the same capture."""
PIECE = 3
"""Records that are written without a pause."""
PAUSE = 0.0015
"""Seconds of the longest pause: on a busy host there are many, on an idle one a record is not late."""
CACHED_LEGS = 1024
"""Connections that a reader caches, with their certificates."""

_LAST = "SELECT coalesce(max(seq), 0) FROM record"
HIGHEST = 2**53
"""The highest number of a record: every reader of JSON has the numbers up to it."""
MOST_CERTIFICATES = 100
"""Certificates of a chain that are read; OpenSSL takes ten."""
_NONE: Mapping[str, Spool] = MappingProxyType({})
_REQUEST, _RESPONSE = (tuple(field.name for field in dataclasses.fields(kind)) for kind in (Request, Response))
_EXCHANGE = tuple(
    field.name
    for field in dataclasses.fields(Exchange)
    if field.name not in ("agent", "master", "injected", "added", "unread")
)
"""Fields stored with every record; legs are stored separately."""
_LEG = tuple(field.name for field in dataclasses.fields(Leg))
_ALL: dict[type[object], tuple[str, ...]] = {
    kind: tuple(field.name for field in dataclasses.fields(kind)) for kind in (Exchange, Handshake, Gap)
}
_NAME = regex.compile(r"[^/\x00-\x1f\x7f]{0,250}\.sqlite")
"""The name of a capture."""

_KINDS: dict[str, type[Exchange | Handshake | Gap]] = {
    "exchange": Exchange,
    "handshake": Handshake,
    "gap": Gap,
}


class Continued(CaptureError):
    """This capture is closed; another one continues it."""

    def __init__(self, path: Path, following: Path) -> None:
        super().__init__(f"{path} is closed, and continued in {following}.", "Use that capture.")
        self.following = following


class _Packed(msgspec.Struct):
    """A record's JSON, with references to what is stored elsewhere."""

    record: dict[str, Any]
    agent: str | None = None
    master: str | None = None
    request_body: str | None = None
    response_body: str | None = None


class _ExchangeFields(msgspec.Struct):
    """Fields of an exchange stored with its record; bodies are empty."""

    request: Request
    response: Response | None = None
    identity: Identity | None = None
    error: str | None = None
    stripped: tuple[str, ...] = ()
    failed: float | None = None
    injected: str = ""
    added: str = ""


class _PackedExchange(msgspec.Struct):
    """``_Packed`` of an exchange: most records are exchanges, and so their fields are read at once."""

    record: _ExchangeFields
    agent: str | None = None
    master: str | None = None
    request_body: str | None = None
    response_body: str | None = None


_PACKED_EXCHANGE = msgspec.json.Decoder(_PackedExchange)


class Capture:
    """A capture file, opened to read (``Capture.open``) or to append (``Capture.create``)."""

    def __init__(self, path: Path, db: sqlite3.Connection, *, writable: bool, whole: bool = True) -> None:
        self.path = path
        self._db = db
        self._writable = writable
        share = None if whole else Share(path)
        self._texts = Texts(db, share)
        self._bodies = Bodies(db, path.parent, share)
        self._present_table = PresentTable(db, path)
        self._present: Present | None = None
        """Requests and connections under way, if they are to be written."""
        self._pending: list[Record] = []
        self._spools: list[Mapping[str, Spool]] = []
        self._connections: dict[str, Connection] = {}
        self._legs: dict[str, Leg] = {}
        self._last = _last(path, db)
        self._after = 0
        """The last record of the capture that this one continues."""
        status = path.stat()
        self._inode = (status.st_dev, status.st_ino)

    # -- opening ---------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path | str, *, whole: bool = False) -> Self:
        """Open a capture to read, also while another process writes it. Raises CaptureError.

        What is unpacked is in proportion to the file; bodies beyond that are missing, and their records say so
        (``Exchange.unread``). ``whole``: for who copies or removes records, nothing is missing.
        """
        path = Path(path)
        if inputs.is_directory(path):
            raise CaptureError(
                f"{path} is a directory.", "Name a capture in it: `puppet-inspector captures` lists them."
            )
        if not inputs.is_file(path):
            raise CaptureError(f"There is no capture at {path}.", "Give the path of a file that a proxy wrote.")
        if not guard.plain(path):
            raise _strange(path)
        resolved = path.resolve().as_uri()
        # Without a -wal file no process is writing: the file is read as it is, and no file is left beside it
        # (so the directory need not be writable, as it must be for SQLite's -shm file).
        options = ["mode=ro"]
        if not _written(path):
            options.insert(0, "mode=ro&immutable=1")
        failure: sqlite3.Error | None = None
        for option in options:
            db = None
            try:
                db = sqlite3.connect(f"{resolved}?{option}", uri=True, isolation_level=None, timeout=5)
                schema.check(path, db)
                return cls(path, db, writable=False, whole=whole)
            except CaptureError:
                _close(db)
                raise
            except sqlite3.OperationalError as error:
                _close(db)
                failure = error
            except sqlite3.DatabaseError as error:
                _close(db)
                if schema.marked(path):
                    hint = "Copy it again; `sqlite3 FILE .recover` extracts what is readable."
                    raise CaptureError(f"{path} is damaged or cut off: {error}.", hint) from error
                raise CaptureError(
                    f"{path} is not a capture.",
                    "Captures are what `run` and proxies write. Flow files of mitmproxy, HAR and jsonl become one with "
                    "`puppet-inspector import`.",
                ) from error
        raise CaptureError(f"Cannot read {path}: {failure}.", "Check its permissions and its disk.")

    @classmethod
    def create(cls, path: Path | str, *, after: int = 0) -> Self:
        """Create a capture, or open an existing one to append to it. Raises CaptureError.

        The file has mode 0600; a directory that is created for it has 0700. Records are numbered after ``after`` (the
        last record of the capture that this one continues), and always after the existing ones.
        """
        path = Path(path)
        try:
            if not guard.plain(path):
                raise _strange(path)
            paths.make_folder(path.parent)
            # Not through a link: in a directory of another user it could lead anywhere.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                os.fchmod(descriptor, 0o600)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise CaptureError(
                f"Cannot write the capture {path}: {error.strerror}.",
                "Choose another path with `puppet_capture` (or -o).",
            ) from error
        db = None
        try:
            db = sqlite3.connect(path, isolation_level=None, timeout=BUSY, check_same_thread=False)
            if path.stat().st_size == 0:
                db.execute("PRAGMA journal_mode=WAL")
                db.executescript(f"BEGIN; {schema.SCHEMA} COMMIT;")
                db.execute("INSERT INTO meta VALUES ('made_by', ?)", (f"puppet-inspector {__version__}",))
            if (version := schema.check(path, db)) < schema.VERSION:
                schema.upgrade(db, version)
            db.execute("PRAGMA journal_mode=WAL")
            # A killed process loses nothing committed; only a power failure may cost the last second.
            db.execute("PRAGMA synchronous=NORMAL")
            made = cls(path, db, writable=True)
            made._after, made._last = after, max(made._last, after)
            return made
        except CaptureError:
            _close(db)
            raise
        except sqlite3.DatabaseError as error:
            _close(db)
            raise CaptureError(
                f"Cannot write the capture {path}: {error}.",
                "The file is locked or not a capture, or the disk is full. "
                "Choose another path with `puppet_capture` (or -o).",
            ) from error

    def close(self) -> None:
        """Write what is pending and close."""
        try:
            if self._writable:
                self.flush()
        finally:
            self._db.close()
            self._present_table.close()

    def abandon(self) -> None:
        """Close without writing what is pending (the file was deleted or cannot be written)."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()
        self._present_table.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing ---------------------------------------------------------------------------------

    def append[R: Exchange | Handshake | Gap](self, record: R, spools: Mapping[str, Spool] = _NONE) -> R:
        """Number a record and queue it for the next ``flush``; return it with its ``seq``.

        ``spools`` contain bodies that are too large for the record, of its ``request`` or its ``response``.
        """
        self._last += 1
        numbered = _numbered(record, self._last)
        self._pending.append(numbered)
        self._spools.append(spools)
        return numbered

    def note(self, connection: Connection) -> None:
        """Queue the current state of a connection for the next ``flush``; a later state of it replaces this one."""
        self._connections[connection.leg.id] = connection

    def set_present(self, present: Present) -> None:
        """Queue what is under way for the next ``flush``; a later state replaces this one. With ``recording``
        ``ended`` it is what was under way at the end, after which nothing comes."""
        self._present = present

    @property
    def pending(self) -> list[Record]:
        """The records that ``flush`` has not written yet."""
        return self._pending

    def adopt(self, other: Capture) -> None:
        """Queue the records that another capture could not write, because its file was deleted. Their numbers stay."""
        self._pending = other._pending + self._pending
        self._spools = other._spools + self._spools
        self._connections = {**other._connections, **self._connections}
        self._last = max(self._last, other._last)

    def drop(self) -> int:
        """Drop what is pending; return the number of records."""
        dropped = len(self._pending)
        for spools in self._spools:
            for spool in spools.values():
                spool.close()
        self._pending, self._spools, self._connections = [], [], {}
        self._last -= dropped
        return dropped

    def lost(self) -> bool:
        """Whether the file at our path is no longer the one we write to (deleted or replaced)."""
        try:
            status = self.path.stat()
        except OSError:
            return True
        return (status.st_dev, status.st_ino) != self._inode

    def flush(self, within: float = 0.0) -> list[Record]:
        """Write everything pending in one transaction; return the records with their final numbers.

        With ``within`` it pauses now and then, for so many seconds in all at most: another thread that serves agents
        shares the interpreter's lock with this one. On sqlite3.Error nothing is written and nothing lost. Continued
        names the capture to write to instead.
        """
        if not (self._pending or self._connections or self._present):
            return []
        self._db.execute("BEGIN IMMEDIATE")
        try:
            if following := self.continued_in:
                raise Continued(self.path, following)
            self._make_way()
            self._texts.learn()
            for connection in self._connections.values():
                self._write_connection(connection)
            pause = min(PAUSE, within / len(self._pending) * PIECE) if self._pending else 0.0
            for number, (record, spools) in enumerate(zip(self._pending, self._spools, strict=True), 1):
                if pause and number % PIECE == 0:
                    time.sleep(pause)
                try:
                    self._write_record(record, spools)
                except (sqlite3.DataError, ValueError, TypeError, OverflowError) as error:
                    # A record that can never be written, for example too large for SQLite, must not block all others.
                    self._write_record(Gap(record.time, f"a record could not be stored: {error}", 1, record.seq), {})
            self._write_present()
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            self._texts = Texts(self._db, None)
            self._bodies.rolled_back()
            raise
        self._bodies.committed()
        for spools in self._spools:
            for spool in spools.values():
                spool.close()
        written, self._pending, self._spools, self._connections = self._pending, [], [], {}
        self._present = None
        return written

    @property
    def continued_in(self) -> Path | None:
        """The capture that continues this one; None if there is none."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'continued_in'").fetchone()
        name = row[0] if row else None
        return self.path.with_name(name) if isinstance(name, str) and _NAME.fullmatch(name) else None

    def continue_in(self, path: Path) -> Path:
        """Close this capture, which must have nothing pending, and name the one beside it that continues it. If several
        proxies write the same capture, the first one decides; return the path that was chosen. Raises sqlite3.Error."""
        self._db.execute("INSERT INTO meta VALUES ('continued_in', ?) ON CONFLICT DO NOTHING", (path.name,))
        return self.continued_in or path

    def present(self, now: float) -> Present:
        """Return what is under way ``now``, or was when the recording ended. What is damaged tells nothing. Raises
        CaptureError if the capture cannot be read."""
        with guard.damage(self.path, "What is under way"):
            return self._present_table.read(now, continued=self.continued_in is not None)

    def settle(self) -> None:
        """Say that nothing was under way when the recording ended: whom it recorded had ended before. Raises
        sqlite3.Error."""
        self._db.execute("DELETE FROM present")

    def _make_way(self) -> None:
        """Number what is pending after what another proxy has written to the same file, or to the previous capture."""
        highest = max(_number(self._db, _LAST), self._after)
        if self._pending and (shift := highest + 1 - self._pending[0].seq) > 0:
            self._pending = [_numbered(record, record.seq + shift) for record in self._pending]
            self._last = self._pending[-1].seq

    def _write_present(self) -> None:
        if self._present is not None:
            with contextlib.suppress(OSError, ValueError, TypeError, OverflowError):  # it must not cost a record
                self._present_table.write(self._present)

    def _write_connection(self, connection: Connection) -> None:
        leg, closed = connection.leg, connection.closed
        peer_chain, own_chain = (
            [self._bodies.write(der) for der in chain] for chain in (leg.peer_chain, leg.own_chain)
        )
        data = _plain(leg, _LEG, peer_chain=peer_chain, own_chain=own_chain)
        self._db.execute(
            "INSERT INTO connection VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " closed = excluded.closed, closed_by = excluded.closed_by, leg = excluded.leg",
            (
                leg.id,
                leg.side,
                leg.connected,
                closed.at if closed else None,
                closed.by if closed else None,
                self._texts.pack(msgspec.json.encode(data).decode()),
            ),
        )

    def _write_record(self, record: Record, spools: Mapping[str, Spool]) -> None:
        match record:
            case Exchange():
                packed = _Packed(
                    _plain(
                        record,
                        _EXCHANGE,
                        request=_plain(record.request, _REQUEST, body=""),
                        response=_plain(record.response, _RESPONSE, body="") if record.response else None,
                        master=None,
                        identity=msgspec.to_builtins(record.identity),
                        **({"injected": record.injected} if record.injected else {}),
                        **({"added": record.added} if record.added else {}),
                    ),
                    agent=record.agent.id,
                    master=record.master.id if record.master else None,
                    request_body=self._body_of(record.request, spools.get("request")),
                    response_body=self._body_of(record.response, spools.get("response")),
                )
            case Handshake():
                packed = _Packed(
                    msgspec.to_builtins(dataclasses.replace(record, leg=record.leg.bare)),
                    agent=record.leg.id,
                )
                del packed.record["leg"]
            case Gap():
                packed = _Packed(msgspec.to_builtins(record))
        kind = type(record).__name__.lower()
        self._db.execute(
            "INSERT INTO record VALUES (?, ?, ?, ?)",
            (record.seq, kind, record.time, self._texts.pack(_json(packed))),
        )

    def _body_of(self, message: Message | None, spool: Spool | None) -> str | None:
        if spool is not None:
            return self._bodies.write_spool(spool)
        return self._bodies.write(message.body) if message else None

    # -- reading ---------------------------------------------------------------------------------

    def records(self, after: int = 0) -> Iterator[Record]:
        """The records with ``seq > after``, in order. Bodies are unpacked one record at a time."""
        while True:
            # Small pages: a reader must not have a read transaction open while its caller works, or
            # the writer's WAL could never be checkpointed.
            with guard.damage(self.path, f"A record after {after}"):
                rows = self._db.execute(
                    "SELECT seq, kind, data FROM record WHERE seq > ? ORDER BY seq LIMIT 64", (after,)
                ).fetchall()
            if not rows:
                return
            for seq, kind, data in rows:
                with guard.damage(self.path, f"A record after {after}"):
                    if seq <= after:  # in a damaged tree: it would be read again and again
                        raise ValueError("the records are not in order")
                yield self._unpack(seq, kind, data)
                after = seq

    def readable(self, after: int, damaged: Callable[[str, int], None]) -> Iterator[Record]:
        """The records with ``seq > after`` that can be read. ``damaged`` gets what is wrong with each of the others and
        its number; of a rest that cannot be read, the number of the last record before it."""
        while True:
            try:
                for record in self.records(after):
                    after = record.seq
                    yield record
                return
            except CaptureError as error:
                following = None
                with contextlib.suppress(CaptureError):
                    following = self.following(after)
                after = following or after
                damaged(clean(str(error)), after)
                if following is None:
                    return

    def record(self, seq: int) -> Record | None:
        """Return a record by its number; None if there is none."""
        with guard.damage(self.path, f"Record {seq}"):
            row = self._db.execute("SELECT seq, kind, data FROM record WHERE seq = ?", (seq,)).fetchone()
        return self._unpack(*row) if row else None

    def digest(self, seq: int) -> str | None:
        """Return what identifies a record, without unpacking it (SHA-256); None if there is none."""
        with guard.damage(self.path, f"Record {seq}"):
            row = self._db.execute("SELECT data FROM record WHERE seq = ?", (seq,)).fetchone()
            if row is None:
                return None
            return hashlib.sha256(row[0].encode() if isinstance(row[0], str) else row[0]).hexdigest()

    def body(self, digest: str) -> bytes | None:
        """Return a body by its SHA-256 (hexadecimal), as on the wire; None if there is none, or if it is damaged."""
        try:
            return self._bodies.read(digest)
        except (ValueError, sqlite3.DatabaseError):
            return None

    def following(self, seq: int) -> int | None:
        """Return the number of the next record after this one; None if there is none."""
        with guard.damage(self.path, f"A record after {seq}"):
            (found,) = self._db.execute("SELECT min(seq) FROM record WHERE seq > ?", (seq,)).fetchone()
        return found if isinstance(found, int) and found > seq else None  # a damaged tree finds others

    @property
    def live(self) -> bool:
        """Whether a process is writing it, or was killed while writing."""
        return _written(self.path)

    @property
    def first(self) -> int:
        """The lowest sequence number (0: the capture is empty)."""
        with guard.damage(self.path, "The first record"):
            return _number(self._db, "SELECT coalesce(min(seq), 0) FROM record")

    @property
    def last(self) -> int:
        """The highest sequence number (0: the capture is empty)."""
        with guard.damage(self.path, "The last record"):
            return _number(self._db, _LAST)

    def count(self) -> int:
        """How many records there are."""
        with guard.damage(self.path, "The number of records"):
            return _number(self._db, "SELECT count(*) FROM record")

    def connections(self) -> list[Connection]:
        """Yield every connection in the order in which they were opened, also those without a request."""
        with guard.damage(self.path, "A connection"):
            rows = self._db.execute("SELECT closed, closed_by, leg FROM connection ORDER BY opened, id")
            return [_connection(self._leg_of(leg), closed, by) for closed, by, leg in rows.fetchall()]

    def connection(self, ident: str) -> Connection | None:
        """Return a connection by name; None if there is none."""
        with guard.damage(self.path, "A connection"):
            row = self._db.execute("SELECT closed, closed_by, leg FROM connection WHERE id = ?", (ident,)).fetchone()
            return _connection(self._leg_of(row[2]), row[0], row[1]) if row else None

    def meta(self) -> dict[str, str]:
        """Return the metadata of the capture."""
        with guard.damage(self.path, "The metadata"):
            rows = self._db.execute("SELECT key, value FROM meta LIMIT 100").fetchall()
        return {str(key): str(value) for key, value in rows}

    def set_meta(self, values: Iterable[tuple[str, str]]) -> None:
        """Set an item of metadata (which proxy, which master)."""
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)

    def _unpack(self, seq: int, kind: str, data: str | bytes) -> Record:
        with guard.damage(self.path, f"Record {seq}"):
            return self._unpacked(seq, kind, data)

    def _unpacked(self, seq: int, kind: str, data: str | bytes) -> Record:
        if kind == "exchange":
            return self._exchange(seq, _PACKED_EXCHANGE.decode(self._texts.unpack(data)))
        packed = msgspec.json.decode(self._texts.unpack(data), type=_Packed)
        fields = packed.record | {"seq": seq}
        if kind == "handshake":
            fields["leg"] = self._leg(packed.agent)
        elif kind not in _KINDS:
            raise CaptureError(f"{self.path} contains a record of unknown kind {kind!r}.", "Upgrade puppet-inspector.")
        return msgspec.convert(fields, _KINDS[kind], from_attributes=True)

    def _exchange(self, seq: int, packed: _PackedExchange) -> Exchange:
        fields = packed.record
        unread = self._read_body(fields.request, packed.request_body)
        if fields.response is not None:
            unread = self._read_body(fields.response, packed.response_body) or unread
        return Exchange(
            agent=self._leg(packed.agent),
            request=fields.request,
            response=fields.response,
            master=self._leg(packed.master) if packed.master else None,
            identity=fields.identity,
            error=fields.error,
            stripped=fields.stripped,
            seq=seq,
            failed=fields.failed,
            injected=fields.injected,
            added=fields.added,
            unread=unread,
        )

    def _read_body(self, message: Message, digest: str | None) -> str:
        """Give a message its body; return why it gets none, if it is too much."""
        # It was made a moment ago, and nobody else has it: to copy it would take as long as to read it.
        try:
            object.__setattr__(message, "body", self._bodies.read(digest))
        except Unread as error:
            if not message.lost:
                object.__setattr__(message, "digest", digest)
            object.__setattr__(message, "lost", message.lost + error.size)
            return str(error)
        return ""

    def _leg(self, ident: str | None) -> Leg:
        if ident not in self._legs:
            row = self._db.execute("SELECT leg FROM connection WHERE id = ?", (ident,)).fetchone()
            leg = self._leg_of(row[0]) if row else Leg(id=ident or "", side="agent")
            if len(self._legs) >= CACHED_LEGS:
                del self._legs[next(iter(self._legs))]
            self._legs[leg.id] = leg
            return leg
        return self._legs[ident]

    def _leg_of(self, data: str | bytes) -> Leg:
        fields = msgspec.json.decode(self._texts.unpack(data))
        for chain in ("peer_chain", "own_chain"):
            fields[chain] = tuple(self._bodies.read(digest) for digest in fields[chain][:MOST_CERTIFICATES])
        return msgspec.convert(fields, Leg, builtin_types=(bytes,))


def _plain(value: object, names: tuple[str, ...], **instead: object) -> dict[str, Any]:
    """Return the attributes of a record as a mapping; much faster than to copy the record first."""
    return {name: getattr(value, name) for name in names} | instead


def _numbered[R: Exchange | Handshake | Gap](record: R, seq: int) -> R:
    """Return a copy of a record with another number; ``dataclasses.replace`` takes four times as long."""
    copied, write = object.__new__(type(record)), object.__setattr__
    for name in _ALL[type(record)]:
        write(copied, name, getattr(record, name))
    write(copied, "seq", seq)
    return copied


def _json(packed: _Packed) -> str:
    try:
        return msgspec.json.encode(packed).decode()
    except UnicodeEncodeError:
        # A lone surrogate in it: one record must not prevent all others from being written.
        return json.dumps(msgspec.to_builtins(packed)).replace("\\ud", "\\\\ud")


def _connection(leg: Leg, closed: float | None, by: Literal["peer", "proxy"] | None) -> Connection:
    return Connection(leg, Closed(closed, by) if closed is not None else None)


def _last(path: Path, db: sqlite3.Connection) -> int:
    """Return the number of the last record. Raises CaptureError if there are numbers that no record is found by."""
    (first,) = db.execute("SELECT seq FROM record ORDER BY seq LIMIT 1").fetchone() or (1,)
    (last,) = db.execute("SELECT seq FROM record ORDER BY seq DESC LIMIT 1").fetchone() or (0,)
    if not (isinstance(first, int) and isinstance(last, int) and first >= 1 and last <= HIGHEST):
        raise CaptureError(
            f"{path} is damaged: it has records whose numbers are out of range.",
            "Copy it again; `sqlite3 FILE .recover` extracts what is readable.",
        )
    return last


def _number(db: sqlite3.Connection, question: str) -> int:
    (value,) = db.execute(question).fetchone()
    if not isinstance(value, int):
        raise sqlite3.DataError("a record's number is not a number")
    return value


def _strange(path: Path) -> CaptureError:
    return CaptureError(
        f"{path}, or its -wal, -shm or -journal beside it, is not a regular file.", "Copy the capture elsewhere."
    )


def _close(db: sqlite3.Connection | None) -> None:
    if db is not None:
        db.close()


def _written(path: Path) -> bool:
    real = path.resolve()
    return real.with_name(real.name + "-wal").exists()

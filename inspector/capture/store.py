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
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
import zstandard

from inspector import __version__
from inspector.capture.spool import CHUNK, Spool
from inspector.errors import CaptureError
from inspector.model import Closed, Connection, Exchange, Gap, Handshake, Leg, Message, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

APPLICATION_ID = 0x50495350
"""``PISP``: tells a capture from any other SQLite file (``PRAGMA application_id``)."""
VERSION = 2
"""``PRAGMA user_version``. There are no migrations: a later version is one clear error. Version 1 had no dictionary."""

SCHEMA = """
PRAGMA application_id = 1346982736;
PRAGMA user_version = 2;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
-- Bodies and DER certificates, each stored once whoever sent it: a thousand agents that sync the same
-- plugins cost one copy. data is a zstd frame.
CREATE TABLE blob (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
                   data BLOB NOT NULL);
-- JSON repeats itself: as a BLOB, leg and data are zstd frames made with this dictionary (one row, itself a frame: some
-- of the first legs and records). As TEXT they are JSON.
CREATE TABLE dictionary (data BLOB NOT NULL);
-- One row a TLS connection of either leg, also of those that never carried a request.
CREATE TABLE connection (id TEXT PRIMARY KEY, side TEXT NOT NULL, opened REAL, closed REAL,
                         closed_by TEXT, leg NOT NULL);
-- Exchanges, failed handshakes and gaps, in the order in which they ended; data is JSON.
CREATE TABLE record (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, time REAL NOT NULL, data NOT NULL);
"""

LEARNT = 32
"""Records that the dictionary is made from."""
DICTIONARY = 2**16
"""Maximum size of the dictionary in bytes."""
MAX_TEXT = 2**26
"""The largest JSON of a record that is unpacked (bytes)."""
MAX_BLOB = 2**31 - 1
"""The largest body that is unpacked (bytes)."""

BUSY = 1.0
"""Seconds to wait for another process that writes the same capture."""
KNOWN = 20_000
"""Digests of written bodies that are remembered."""
KEPT_LEGS = 1024
"""Connections that a reader caches, with their certificates."""

_NONE: Mapping[str, Spool] = MappingProxyType({})
_NOBODY = Leg("", "agent")

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


class _Texts:
    """Packs and unpacks the JSON of records and legs with the capture's dictionary, once there is one."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._packer: zstandard.ZstdCompressor | None = None
        self._unpacker: zstandard.ZstdDecompressor | None = None

    def learn(self) -> None:
        """Load the dictionary, or make it from the records so far. Only within a transaction; discard it on failure."""
        if self._packer is None and (known := self._known() or self._made()):
            self._packer = zstandard.ZstdCompressor(level=3, dict_data=known, write_content_size=True)

    def pack(self, text: str) -> str | bytes:
        return self._packer.compress(text.encode()) if self._packer else text

    def unpack(self, data: str | bytes) -> str | bytes:
        """Unpack JSON. Raises ValueError if it is damaged."""
        if isinstance(data, str):
            return data
        if self._unpacker is None:
            self._unpacker = zstandard.ZstdDecompressor(dict_data=self._known())
        try:
            if zstandard.frame_content_size(data) > MAX_TEXT:
                raise ValueError("it is too large")
            return self._unpacker.decompress(data)
        except zstandard.ZstdError as error:
            raise ValueError(f"cannot be unpacked ({error})") from error

    def _known(self) -> zstandard.ZstdCompressionDict | None:
        row = self._db.execute("SELECT data FROM dictionary").fetchone()
        return _dictionary(zstandard.decompress(row[0], max_output_size=DICTIONARY)) if row else None

    def _made(self) -> zstandard.ZstdCompressionDict | None:
        records = self._db.execute("SELECT data FROM record ORDER BY seq LIMIT ?", (LEARNT,)).fetchall()
        if len(records) < LEARNT:
            return None
        legs = self._db.execute("SELECT leg FROM connection ORDER BY opened LIMIT ?", (LEARNT // 4,)).fetchall()
        data = "".join(text for (text,) in legs + records).encode()[-DICTIONARY:]
        self._db.execute("INSERT INTO dictionary VALUES (?)", (zstandard.compress(data),))
        return _dictionary(data)


def _dictionary(data: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


class Capture:
    """A capture file, opened to read (``Capture.open``) or to append (``Capture.create``)."""

    def __init__(self, path: Path, db: sqlite3.Connection, *, writable: bool) -> None:
        self.path = path
        self._db = db
        self._writable = writable
        self._zstd = zstandard.ZstdCompressor(level=3, write_content_size=True)
        self._unzstd = zstandard.ZstdDecompressor()
        self._texts = _Texts(db)
        self._pending: list[Record] = []
        self._spools: list[Mapping[str, Spool]] = []
        self._connections: dict[str, Connection] = {}
        self._known: set[bytes] = set()
        self._legs: dict[str, Leg] = {}
        self._last = self.last
        self._after = 0
        """The last record of the capture that this one continues."""
        status = path.stat()
        self._inode = (status.st_dev, status.st_ino)

    # -- opening ---------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a capture to read, also while another process writes it. Raises CaptureError."""
        path = Path(path)
        if not path.is_file():
            raise CaptureError(f"There is no capture at {path}.", "Give the path of a file that a proxy wrote.")
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
                _check(path, db)
                return cls(path, db, writable=False)
            except CaptureError:
                _close(db)
                raise
            except sqlite3.OperationalError as error:
                _close(db)
                failure = error
            except sqlite3.DatabaseError as error:
                _close(db)
                if marked(path):
                    hint = "Copy it again; `sqlite3 FILE .recover` extracts what is readable."
                    raise CaptureError(f"{path} is damaged or cut off: {error}.", hint) from error
                raise CaptureError(
                    f"{path} is not a capture: {error}.",
                    "Convert mitmproxy's flow files with `puppet-inspector import`.",
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
            for folder in reversed((path.parent, *path.parent.parents)):
                folder.mkdir(mode=0o700, exist_ok=True)  # with ``parents`` only the last one would get this mode
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
                db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
                db.execute("INSERT INTO meta VALUES ('made_by', ?)", (f"puppet-inspector {__version__}",))
            if _check(path, db) == 1:
                db.executescript(
                    "BEGIN; CREATE TABLE dictionary (data BLOB NOT NULL); PRAGMA user_version = 2; COMMIT;"
                )
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
                "It is locked or no capture, or the disk is full. Choose another path with `puppet_capture` (or -o).",
            ) from error

    def close(self) -> None:
        """Write what is pending and close."""
        try:
            if self._writable:
                self.flush()
        finally:
            self._db.close()

    def abandon(self) -> None:
        """Close without writing what is pending (the file was deleted or cannot be written)."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

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
        numbered = dataclasses.replace(record, seq=self._last)
        self._pending.append(numbered)
        self._spools.append(spools)
        return numbered

    def note(self, connection: Connection) -> None:
        """Queue the current state of a connection for the next ``flush``; a later state of it replaces this one."""
        self._connections[connection.leg.id] = connection

    @property
    def pending(self) -> list[Record]:
        """What ``flush`` has not written yet."""
        return self._pending

    def adopt(self, other: Capture) -> None:
        """Take over what another capture could not write (its file was deleted). Numbers stay."""
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

    def flush(self) -> list[Record]:
        """Write everything pending in one transaction; return the records with their final numbers.

        On sqlite3.Error nothing is written and nothing lost. Continued names the capture to write to instead.
        """
        if not (self._pending or self._connections):
            return []
        self._db.execute("BEGIN IMMEDIATE")
        stored: set[bytes] = set()
        try:
            if following := self.continued_in:
                raise Continued(self.path, following)
            self._make_way()
            self._texts.learn()
            for connection in self._connections.values():
                self._write_connection(connection, stored)
            for record, spools in zip(self._pending, self._spools, strict=True):
                try:
                    self._write_record(record, spools, stored)
                except (sqlite3.DataError, ValueError, TypeError, OverflowError) as error:
                    # A record that can never be written, for example too large for SQLite, must not block all others.
                    self._write_record(
                        Gap(record.time, f"a record could not be stored: {error}", 1, record.seq), {}, stored
                    )
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            self._texts = _Texts(self._db)
            raise
        if len(self._known) > KNOWN:
            self._known.clear()  # an optimisation only: existing bodies are not written again anyway
        self._known |= stored
        for spools in self._spools:
            for spool in spools.values():
                spool.close()
        written, self._pending, self._spools, self._connections = self._pending, [], [], {}
        return written

    @property
    def continued_in(self) -> Path | None:
        """The capture that continues this one; None if there is none."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'continued_in'").fetchone()
        return self.path.with_name(Path(row[0]).name) if row else None

    def continue_in(self, path: Path) -> Path:
        """Close this capture, which must have nothing pending, and name the one beside it that continues it. If several
        proxies write the same capture, the first one decides; return the path that was chosen. Raises sqlite3.Error."""
        self._db.execute("INSERT INTO meta VALUES ('continued_in', ?) ON CONFLICT DO NOTHING", (path.name,))
        return self.continued_in or path

    def _make_way(self) -> None:
        """Number what is pending after what another proxy has written to the same file, or to the previous capture."""
        highest = max(self.last, self._after)
        if self._pending and (shift := highest + 1 - self._pending[0].seq) > 0:
            self._pending = [dataclasses.replace(each, seq=each.seq + shift) for each in self._pending]
            self._last = self._pending[-1].seq

    def _write_connection(self, connection: Connection, stored: set[bytes]) -> None:
        leg, closed = connection.leg, connection.closed
        data = msgspec.to_builtins(
            dataclasses.replace(leg, peer_chain=(), own_chain=()), enc_hook=None, builtin_types=()
        )
        data["peer_chain"] = [self._blob(der, stored) for der in leg.peer_chain]
        data["own_chain"] = [self._blob(der, stored) for der in leg.own_chain]
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

    def _write_record(self, record: Record, spools: Mapping[str, Spool], stored: set[bytes]) -> None:
        match record:
            case Exchange():
                bare: Record = dataclasses.replace(
                    record,
                    agent=_NOBODY,  # both legs are stored separately
                    master=None,
                    request=dataclasses.replace(record.request, body=b""),
                    response=dataclasses.replace(record.response, body=b"") if record.response else None,
                )
                packed = _Packed(
                    msgspec.to_builtins(bare),
                    agent=record.agent.id,
                    master=record.master.id if record.master else None,
                    request_body=self._body_of(record.request, spools.get("request"), stored),
                    response_body=self._body_of(record.response, spools.get("response"), stored),
                )
                del packed.record["agent"]
            case Handshake():
                packed = _Packed(
                    msgspec.to_builtins(dataclasses.replace(record, leg=_bare(record.leg))),
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

    def _body_of(self, message: Message | None, spool: Spool | None, stored: set[bytes]) -> str | None:
        if spool is not None:
            return self._large_blob(spool, stored)
        return self._blob(message.body, stored) if message else None

    def _large_blob(self, spool: Spool, stored: set[bytes]) -> str:
        """Copy a large body from the disk into the capture, piece by piece."""
        digest = spool.sha256
        if digest not in self._known and digest not in stored:
            with tempfile.TemporaryFile(dir=self.path.parent) as packed:
                packer = self._zstd.compressobj(size=spool.size)
                for chunk in spool.chunks():
                    packed.write(packer.compress(chunk))
                packed.write(packer.flush())
                size = packed.tell()
                packed.seek(0)
                made = self._db.execute(
                    "INSERT INTO blob (sha256, size, data) VALUES (?, ?, zeroblob(?)) ON CONFLICT DO NOTHING",
                    (digest, spool.size, size),
                )
                if made.rowcount and made.lastrowid:
                    with self._db.blobopen("blob", "data", made.lastrowid) as blob:
                        while chunk := packed.read(CHUNK):
                            blob.write(chunk)
            stored.add(digest)
        return digest.hex()

    def _blob(self, data: bytes, stored: set[bytes]) -> str | None:
        if not data:
            return None
        digest = hashlib.sha256(data).digest()
        if digest not in self._known and digest not in stored:
            self._db.execute(
                "INSERT INTO blob (sha256, size, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (digest, len(data), self._zstd.compress(data)),
            )
            stored.add(digest)
        return digest.hex()

    # -- reading ---------------------------------------------------------------------------------

    def records(self, after: int = 0) -> Iterator[Record]:
        """The records with ``seq > after``, in order. Bodies are unpacked one record at a time."""
        while True:
            # Small pages: a reader must not have a read transaction open while its caller works, or
            # the writer's WAL could never be checkpointed.
            rows = self._db.execute(
                "SELECT seq, kind, data FROM record WHERE seq > ? ORDER BY seq LIMIT 64", (after,)
            ).fetchall()
            if not rows:
                return
            for seq, kind, data in rows:
                yield self._unpack(seq, kind, data)
            after = rows[-1][0]

    def record(self, seq: int) -> Record | None:
        """Return a record by its number; None if there is none."""
        row = self._db.execute("SELECT seq, kind, data FROM record WHERE seq = ?", (seq,)).fetchone()
        return self._unpack(*row) if row else None

    def digest(self, seq: int) -> str | None:
        """Return what identifies a record, without unpacking it (SHA-256); None if there is none."""
        row = self._db.execute("SELECT data FROM record WHERE seq = ?", (seq,)).fetchone()
        if row is None:
            return None
        return hashlib.sha256(row[0].encode() if isinstance(row[0], str) else row[0]).hexdigest()

    def following(self, seq: int) -> int | None:
        """Return the number of the next record after this one; None if there is none."""
        found: int | None = self._db.execute("SELECT min(seq) FROM record WHERE seq > ?", (seq,)).fetchone()[0]
        return found

    @property
    def live(self) -> bool:
        """Whether a process is writing it, or was killed while writing."""
        return _written(self.path)

    @property
    def first(self) -> int:
        """The lowest sequence number (0: the capture is empty)."""
        return int(self._db.execute("SELECT coalesce(min(seq), 0) FROM record").fetchone()[0])

    @property
    def last(self) -> int:
        """The highest sequence number (0: the capture is empty)."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM record").fetchone()[0])

    def connections(self) -> list[Connection]:
        """Yield every connection in the order in which they were opened, also those without a request."""
        rows = self._db.execute("SELECT closed, closed_by, leg FROM connection ORDER BY opened, id")
        with self._damaged("A connection"):
            return [_connection(self._leg_of(leg), closed, by) for closed, by, leg in rows.fetchall()]

    def connection(self, ident: str) -> Connection | None:
        """Return a connection by name; None if there is none."""
        row = self._db.execute("SELECT closed, closed_by, leg FROM connection WHERE id = ?", (ident,)).fetchone()
        with self._damaged("A connection"):
            return _connection(self._leg_of(row[2]), row[0], row[1]) if row else None

    def meta(self) -> dict[str, str]:
        """Return the metadata of the capture."""
        return dict(self._db.execute("SELECT key, value FROM meta").fetchall())

    def set_meta(self, values: Iterable[tuple[str, str]]) -> None:
        """Set an item of metadata (which proxy, which master)."""
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values)

    @contextlib.contextmanager
    def _damaged(self, what: str) -> Iterator[None]:
        """Report data that is not as it was written as damage of the file."""
        try:
            yield
        except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
            raise CaptureError(
                f"{what} of {self.path} cannot be read: {error}.", "The file is damaged; copy it again."
            ) from error

    def _unpack(self, seq: int, kind: str, data: str | bytes) -> Record:
        with self._damaged(f"Record {seq}"):
            return self._unpacked(seq, kind, data)

    def _unpacked(self, seq: int, kind: str, data: str | bytes) -> Record:
        packed = msgspec.json.decode(self._texts.unpack(data), type=_Packed)
        fields = packed.record | {"seq": seq}
        if kind == "exchange":
            fields["agent"] = self._leg(packed.agent)
            fields["master"] = self._leg(packed.master) if packed.master else None
            fields["request"]["body"] = self._body(packed.request_body)
            if fields.get("response") is not None:
                fields["response"]["body"] = self._body(packed.response_body)
        elif kind == "handshake":
            fields["leg"] = self._leg(packed.agent)
        elif kind not in _KINDS:
            raise CaptureError(f"{self.path} contains a record of unknown kind {kind!r}.", "Upgrade puppet-inspector.")
        return msgspec.convert(fields, _KINDS[kind], from_attributes=True)

    def _leg(self, ident: str | None) -> Leg:
        if ident not in self._legs:
            row = self._db.execute("SELECT leg FROM connection WHERE id = ?", (ident,)).fetchone()
            leg = self._leg_of(row[0]) if row else Leg(id=ident or "", side="agent")
            if len(self._legs) >= KEPT_LEGS:
                del self._legs[next(iter(self._legs))]
            self._legs[leg.id] = leg
            return leg
        return self._legs[ident]

    def _leg_of(self, data: str | bytes) -> Leg:
        fields = msgspec.json.decode(self._texts.unpack(data))
        for chain in ("peer_chain", "own_chain"):
            fields[chain] = tuple(self._body(digest) for digest in fields[chain])
        return msgspec.convert(fields, Leg, builtin_types=(bytes,))

    def _body(self, digest: str | None) -> bytes:
        if not digest:
            return b""
        row = self._db.execute("SELECT size, data FROM blob WHERE sha256 = ?", (bytes.fromhex(digest),)).fetchone()
        if row is None or row[0] > MAX_BLOB:
            raise ValueError(f"a body is missing ({digest[:12]})")
        try:
            return self._unzstd.decompress(row[1], max_output_size=row[0])
        except zstandard.ZstdError as error:
            raise ValueError(f"a body cannot be unpacked ({digest[:12]}: {error})") from error


def _json(packed: _Packed) -> str:
    try:
        return msgspec.json.encode(packed).decode()
    except UnicodeEncodeError:
        # A lone surrogate in it: one record must not prevent all others from being written.
        return json.dumps(msgspec.to_builtins(packed)).replace("\\ud", "\\\\ud")


def _connection(leg: Leg, closed: float | None, by: Literal["peer", "proxy"] | None) -> Connection:
    return Connection(leg, Closed(closed, by) if closed is not None else None)


def _close(db: sqlite3.Connection | None) -> None:
    if db is not None:
        db.close()


def marked(path: Path) -> bool:
    """Whether a file has the header of a capture."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION_ID.to_bytes(4)


def _written(path: Path) -> bool:
    real = path.resolve()
    return real.with_name(real.name + "-wal").exists()


def _bare(leg: Leg) -> Leg:
    return dataclasses.replace(leg, peer_chain=(), own_chain=())


def _check(path: Path, db: sqlite3.Connection) -> int:
    """Return the version of a capture. Raises CaptureError if it is not a capture, or of another version."""
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise CaptureError(f"{path} is an SQLite file, but not a capture.", "Give a file that puppet-inspector wrote.")
    if not 1 <= version <= VERSION:
        raise CaptureError(
            f"{path} is a capture of version {version}; this puppet-inspector reads version {VERSION}.",
            "Upgrade puppet-inspector, or record again.",
        )
    return int(version)

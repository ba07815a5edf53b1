"""The tables of a capture, and the header that distinguishes a capture from other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import inputs
from inspector.capture import guard
from inspector.errors import CaptureError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

APPLICATION_ID = 0x50495350
"""``PISP``: distinguishes a capture from other SQLite files (``PRAGMA application_id``)."""
VERSION = 3
"""``PRAGMA user_version``. A later version is rejected, an earlier one is read, and becomes this one when it is
continued: each version has added a table."""

_ADDED = {
    2: "CREATE TABLE dictionary (data BLOB NOT NULL);",
    3: (
        "CREATE TABLE present (writer INTEGER PRIMARY KEY, time REAL NOT NULL, ended INTEGER NOT NULL,"
        " data BLOB NOT NULL);"
    ),
}
"""The table that each version has added."""

SCHEMA = f"""
PRAGMA application_id = 1346982736;
PRAGMA user_version = {VERSION};
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
-- Bodies and DER certificates, each stored once regardless of its sender: a thousand agents that sync the same
-- plugins cost one copy. data is a zstd frame.
CREATE TABLE blob (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
                   data BLOB NOT NULL);
-- JSON is repetitive: as a BLOB, leg and data are zstd frames made with this dictionary (one row, itself a frame: some
-- of the first legs and records). As TEXT they are JSON.
{_ADDED[2]}
-- One row per TLS connection of either leg, also for connections without a request.
CREATE TABLE connection (id TEXT PRIMARY KEY, side TEXT NOT NULL, opened REAL, closed REAL,
                         closed_by TEXT, leg NOT NULL);
-- Exchanges, failed handshakes and gaps, in the order in which they ended; data is JSON.
CREATE TABLE record (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, time REAL NOT NULL, data NOT NULL);
-- What is under way, overwritten again and again: a row of each process that records. data is JSON in a zstd frame.
{_ADDED[3]}
"""


def marked(path: Path) -> bool:
    """Whether a file has the header of a capture."""
    try:
        with inputs.opened(path) as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION_ID.to_bytes(4)


def upgrade(db: sqlite3.Connection, version: int) -> None:
    """Add the tables that a capture of an earlier version does not have. Raises sqlite3.Error."""
    added = "".join(statement for later, statement in _ADDED.items() if later > version)
    db.executescript(f"BEGIN; {added} PRAGMA user_version = {VERSION}; COMMIT;")


def check(path: Path, db: sqlite3.Connection) -> int:
    """Return the version of a capture, and make the connection safe for it.

    Raises CaptureError if it is not a capture, or of another version, or has parts that no capture has.
    """
    guard.distrust(db)
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise CaptureError(f"{path} is an SQLite file, but not a capture.", "Give a file that puppet-inspector wrote.")
    if not 1 <= version <= VERSION:
        raise CaptureError(
            f"{path} is a capture of version {version}; this puppet-inspector reads versions up to {VERSION}.",
            "Upgrade puppet-inspector.",
        )
    if part := guard.foreign(db, SCHEMA):
        raise CaptureError(
            f"{path} contains {part}, which no capture does.",
            "Somebody changed it: ask for a new copy.",
        )
    return int(version)

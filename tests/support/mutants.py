"""Files of strangers, made from valid ones by what their format allows to change: everything follows from the chance.

Each function takes ``chance`` and what it changes, and returns the changed bytes (or changes the file at a path).
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import sqlite3
from typing import TYPE_CHECKING

import yaml
from mitmproxy.io import tnetstring

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    type Change = Callable[[random.Random, bytes], bytes]

ESCAPE = "\x1b]0;owned\x07\x9b31m\u202e\u2028\r\n"
TEXTS = ("", "\0", ESCAPE, "\ud800", "\udcff", "a" * 70_000, "%s%n", "../../../etc/passwd", "٣", "NaN", "-1", "é" * 300,
         "2027-13-45", "9" * 5000, "$ssldir", "((((", "[" * 3000, "host.example",
         "~nobody-here/x", "²")  # fmt: skip
NUMBERS = (0, -1, 1, 2**31, 2**63 - 1, -(2**63), 2**64, 10**400, 1e308, -1e308, 1e-320, float("nan"), float("inf"), 0.5,
           True)  # fmt: skip
BYTES = (b"", b"\0", b"\xff" * 9, ESCAPE.encode(), b"\x28\xb5\x2f\xfd" + b"\xff" * 40, b"(" * 2000, b"\r\n\r\n",
         b"-----BEGIN CERTIFICATE-----\n")  # fmt: skip
DEEP = 20_000


def odd(chance: random.Random) -> object:
    """A value that a reader does not expect where it finds it."""
    match chance.randrange(8):
        case 0:
            return None
        case 1 | 2:
            return chance.choice(NUMBERS)
        case 3 | 4:
            return chance.choice(TEXTS)
        case 5:
            return [chance.choice(TEXTS)] * chance.choice((0, 1, 300))
        case 6:
            return {chance.choice(TEXTS): chance.choice(NUMBERS), "x": []}
    nested: object = chance.choice(TEXTS)
    for _ in range(chance.choice((3, 60, 400))):
        nested = [nested] if chance.randrange(2) else {"a": nested}
    return nested


# -- bytes ------------------------------------------------------------------------------------------------


def flipped(chance: random.Random, data: bytes) -> bytes:
    """Some bytes changed, added, repeated or left out."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 30))):
        at = chance.randrange(len(changed) + 1)
        length = chance.choice((1, 1, 2, 4, 64, 4096))
        match chance.randrange(6):
            case 0:
                changed[at : at + length] = chance.randbytes(length)
            case 1:
                changed[at:at] = chance.choice(BYTES)
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length] * chance.choice((1, 2, 50))
            case 4:
                changed[at : at + length] = b"\0" * length
            case _ if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(chance: random.Random, data: bytes) -> bytes:
    """Only the beginning, the end, or nothing."""
    at = chance.randrange(len(data) + 1)
    return chance.choice((data[:at], data[at:], b"", data + data[:at]))


def or_broken(share: int) -> Callable[[Change], Change]:
    """With a chance of two in ``share``, some bytes are changed or the end is cut off instead."""

    def broken(change: Change) -> Change:
        @functools.wraps(change)
        def made(chance: random.Random, data: bytes) -> bytes:
            match chance.randrange(share):
                case 0:
                    return flipped(chance, data)
                case 1:
                    return cut(chance, data)
            return change(chance, data)

        return made

    return broken


# -- documents --------------------------------------------------------------------------------------------


def changed(chance: random.Random, document: object) -> object:
    """A document with one to four of its values, or of its keys, replaced."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        document = _replaced(chance, document)
    return document


def _replaced(chance: random.Random, node: object) -> object:
    if isinstance(node, dict) and node and chance.randrange(8):
        key = chance.choice(list(node))
        match chance.randrange(10):
            case 0:
                return {name: value for name, value in node.items() if name != key}
            case 1:
                return node | {chance.choice(TEXTS): node[key]}
            case _:
                return node | {key: _replaced(chance, node[key])}
    if isinstance(node, list) and node and chance.randrange(8):
        at = chance.randrange(len(node))
        match chance.randrange(10):
            case 0:
                return node[:at] + node[at + 1 :]
            case 1:
                return node[: at + 1] + node[at:]
            case _:
                return [*node[:at], _replaced(chance, node[at]), *node[at + 1 :]]
    return odd(chance)


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


@or_broken(8)
def json_changed(chance: random.Random, data: bytes) -> bytes:
    """JSON, or lines of it, with other values; or something that only looks like it."""
    match chance.randrange(6):
        case 0:
            deep = chance.choice((b"[", b'{"a":')) * DEEP
            at = chance.choice([0, *(place for place, byte in enumerate(data) if byte in b":,[")]) + 1
            return data[:at] + deep + data[at:]
    try:
        lines = [data]
        document = json.loads(data)
    except ValueError:
        lines = data.splitlines()
        document = None
    at = chance.randrange(len(lines))
    document = changed(chance, json.loads(lines[at]) if document is None else document)
    text = _json(document) if chance.randrange(3) else json.dumps(document).encode()
    return b"\n".join([*lines[:at], text, *lines[at + 1 :]])


@or_broken(6)
def yaml_changed(chance: random.Random, data: bytes) -> bytes:
    """YAML with other values, with bombs, or something that only looks like it."""
    match chance.randrange(4):
        case 0:
            bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
                f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
            )
            tags = ("!!python/object/apply:os.system ['x']", "!!timestamp 9999-99-99", "!!int 0x", "!!float -",
                    "!!binary é",
                    "1:2:3:4:5:6", "0o9", "<<: [1]", "? [a]\n: b", "&a [*a]", "!!set {a}", "2027-02-30", "0b",
                    "=", "!!merge x")  # fmt: skip
            hostile = chance.choice((bomb, "[" * DEEP, "- " * 5000, *tags)).encode()
            before = chance.choice((b"", data + b"\n", b"rules:\n  B45: ", b"ignore:\n- "))
            return before + hostile
    document = changed(chance, yaml.safe_load(data))
    return _json(document)  # which is YAML, too


@or_broken(6)
def flows_changed(chance: random.Random, data: bytes) -> bytes:
    """A flow file with other values or other lengths."""
    match chance.randrange(4):
        case 0:
            return _length(chance, data)
        case 1:
            deep = b"0:~"
            for _ in range(chance.choice((10, 300))):
                deep = b"%d:%b]" % (len(deep), deep)
            return chance.choice((deep, data + deep, deep + data))
    flows: list[tnetstring.TSerializable] = []
    rest = memoryview(data)
    while rest:
        flow, rest = tnetstring.pop(rest)
        flows.append(flow)
    at = chance.randrange(len(flows))
    flows[at] = _plain(changed(chance, flows[at]))
    return b"".join(tnetstring.dumps(flow) for flow in flows)


def _plain(value: object) -> tnetstring.TSerializable:
    """What a flow file can hold."""
    if isinstance(value, dict):
        return {str(key).encode("utf-8", "replace").decode(): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if isinstance(value, bytes | int | float | None) else str(value)


def _length(chance: random.Random, data: bytes) -> bytes:
    """Another number where a length stands."""
    places = [at for at in range(1, len(data)) if data[at : at + 1] == b":" and data[at - 1 : at].isdigit()]
    if not places:
        return data
    end = chance.choice(places)
    begin = end
    while begin and data[begin - 1 : begin].isdigit():
        begin -= 1
    number = chance.choice((b"0", b"1", b"999999999", b"99999999999999", b"9" * 30, b"00", str(end).encode()))
    return data[:begin] + number + data[end:]


# -- certificates, CRLs, keys -----------------------------------------------------------------------------


@or_broken(8)
def pem_changed(chance: random.Random, data: bytes) -> bytes:
    """PEM whose blocks were swapped, repeated or relabelled, or whose DER has other lengths and values."""
    match chance.randrange(6):
        case 0:
            names = (b"CERTIFICATE", b"X509 CRL", b"EC PRIVATE KEY", b"PRIVATE KEY", b"CERTIFICATE REQUEST", b"\x1b[2J")
            return data.replace(chance.choice(names[:5]), chance.choice(names))
        case 1:
            return data * chance.choice((2, 40))
        case 2:
            return chance.choice((b"\xff\xfe", b"\xef\xbb\xbf", b" " * 3000, b"-----BEGIN " * 900)) + data
    blocks = data.split(b"-----BEGIN ")
    at = chance.randrange(len(blocks))
    label, found, rest = blocks[at].partition(b"-----\n")
    body, _, _ = rest.partition(b"-----END")
    if not found:
        return flipped(chance, data)
    try:
        der = base64.b64decode(body)
    except ValueError:
        return flipped(chance, data)
    text = base64.encodebytes(der_changed(chance, der))
    blocks[at] = label + b"-----\n" + text + b"-----END " + label + b"-----\n"
    return b"-----BEGIN ".join(blocks)


def der_changed(chance: random.Random, der: bytes) -> bytes:
    """DER with another tag, length or value in one of its elements."""
    changed = bytearray(der)
    for _ in range(chance.choice((1, 1, 2, 6))):
        places = _elements(bytes(changed))
        if not places:
            break
        at = chance.choice(places)
        match chance.randrange(5):
            case 0:
                changed[at] = chance.choice((0x02, 0x03, 0x04, 0x06, 0x0C, 0x13, 0x17, 0x18, 0x30, 0x31, 0xA0, 0x1F))
            case 1:
                changed[at + 1 : at + 2] = chance.choice(
                    (b"\0", b"\x7f", b"\x80", b"\x84\xff\xff\xff\xff", b"\x81\x01")
                )
            case 2 | 3 if at + 2 < len(changed):
                end = min(at + 2 + (changed[at + 1] & 0x7F), len(changed))
                for place in range(at + 2, end):
                    changed[place] = chance.choice((0, 0xFF, 0x1B, 0x30, changed[place]))
            case _:
                changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _elements(der: bytes, begin: int = 0, end: int | None = None, depth: int = 0) -> list[int]:
    """Where elements begin."""
    end = len(der) if end is None else end
    places: list[int] = []
    while begin + 2 <= end and len(places) < 3000:
        length, head = der[begin + 1], 2
        if length & 0x80:
            more = length & 0x7F
            if more > 4:
                break
            length, head = int.from_bytes(der[begin + 2 : begin + 2 + more]), 2 + more
        places.append(begin)
        inner, after = begin + head, begin + head + length
        if after > end:
            break
        if der[begin] & 0x20 and depth < 20:
            places += _elements(der, inner, after, depth + 1)
        begin = after
    return places


@or_broken(5)
def lines_changed(chance: random.Random, data: bytes) -> bytes:
    """Settings, inventories and numbers: lines with other words, other order, or without end."""
    lines = data.splitlines() or [b""]
    for _ in range(chance.choice((1, 1, 3))):
        at = chance.randrange(len(lines))
        words = lines[at].split(b" ")
        hostile = str(chance.choice((*TEXTS, *map(str, NUMBERS)))).encode("utf-8", "surrogatepass")
        match chance.randrange(5):
            case 0:
                lines[at] = hostile
            case 1 | 2:
                words[chance.randrange(len(words))] = hostile
                lines[at] = b" ".join(words)
            case 3:
                lines.insert(at, lines[chance.randrange(len(lines))])
            case _:
                names = [line.partition(b"=")[0].strip() or b"x" for line in lines]
                name, other = chance.choice(names), chance.choice(names)
                lines += [name + b" = $" + other + b"/${" + other + b"}", other + b" = a$" + name + b"$" + name]
    return b"\n".join(lines)


# -- SQLite -----------------------------------------------------------------------------------------------

HEADER = ((16, 2), (18, 1), (19, 1), (20, 1), (24, 4), (28, 4), (32, 4), (36, 4), (40, 4), (44, 4), (48, 4), (52, 4),
          (56, 4), (60, 4), (64, 4), (68, 4), (100, 1), (101, 2), (103, 2), (105, 2), (108, 2))  # fmt: skip
"""Fields of a database's header and of its first page: where, and how many bytes."""
STATEMENTS = (
    "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "CREATE TABLE x (y CHECK (y > randomblob(1000000000)))",
    "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM meta; END",
    "PRAGMA user_version = 7",
    "PRAGMA user_version = 1",
    "PRAGMA application_id = 1",
    "PRAGMA journal_mode = DELETE",
    'ALTER TABLE meta ADD COLUMN "\x1b[2J"',
    "DELETE FROM meta",
    "VACUUM",
    "CREATE INDEX i ON meta (value)",
    (
        "ALTER TABLE record RENAME TO r; CREATE TABLE record (seq TEXT PRIMARY KEY, kind, time, data);"
        "INSERT INTO record SELECT 'x' || seq, kind, time, data FROM r; DROP TABLE r"
    ),
    (
        "ALTER TABLE record RENAME TO r; CREATE TABLE record (seq BLOB PRIMARY KEY, kind, time, data);"
        "INSERT INTO record SELECT seq + 0.5, kind, 'x', data FROM r; DROP TABLE r"
    ),
    (
        "ALTER TABLE run RENAME TO r; CREATE TABLE run (place TEXT PRIMARY KEY, change, data, seqs);"
        "INSERT INTO run SELECT 'x', 'y', data, seqs FROM r; DROP TABLE r"
    ),
)


def database_changed(chance: random.Random, path: Path) -> None:
    """A database with other bytes, fields, rows, values or tables; or with a foreign log beside it."""
    match chance.randrange(8):
        case 0:
            path.write_bytes(flipped(chance, path.read_bytes()))
        case 1:
            path.write_bytes(cut(chance, path.read_bytes()))
        case 2:
            data = bytearray(path.read_bytes())
            for _ in range(chance.choice((1, 1, 3))):
                at, length = chance.choice(HEADER)
                data[at : at + length] = chance.choice((b"\0" * length, b"\xff" * length, chance.randbytes(length)))
            path.write_bytes(data)
        case 3:
            beside = path.with_name(path.name + chance.choice(("-wal", "-journal", "-shm")))
            own = path.read_bytes()
            beside.write_bytes(chance.choice((b"", chance.randbytes(5000), own, b"\x37\x7f\x06\x82" + own[:9000])))
        case 4:
            _execute(path, chance.choice(STATEMENTS))
        case _:
            for _ in range(chance.choice((1, 1, 2, 8))):
                _rows(chance, path)


def _execute(path: Path, statements: str) -> None:
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(statements)


def _rows(chance: random.Random, path: Path) -> None:
    with contextlib.suppress(sqlite3.Error, UnicodeError), contextlib.closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        tables = [name.decode() for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice(tables)
        columns = [row[1].decode() for row in db.execute(f"PRAGMA table_info({table})")]
        rows = db.execute(f"SELECT rowid, * FROM {table}").fetchall()
        if not rows:
            return
        row = chance.choice(rows)
        place = chance.randrange(len(columns))
        at, column, old = row[0], columns[place], row[1 + place]
        match chance.randrange(8):
            case 0:
                db.execute(f"DELETE FROM {table} WHERE rowid = ?", (at,))
            case 1:
                other = chance.choice(rows)[1 + place]
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, at))
            case 2:
                text = bytes(chance.choice(BYTES)).hex()
                db.execute(f"UPDATE {table} SET {column} = CAST(x'{text}' AS TEXT) WHERE rowid = ?", (at,))
            case 3 | 4 | 5:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (_value(chance, old), at))
            case 6:
                for _ in range(300):
                    row = (at + chance.randrange(1, 10**6), *row[2:])
                    marks = ",".join("?" * len(columns))
                    db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
            case _:
                db.execute(f"UPDATE {table} SET {column} = NULL WHERE rowid = ?", (at,))
        db.commit()


def _value(chance: random.Random, old: object) -> object:
    if isinstance(old, bytes) and old[:1] in (b"{", b"[") and chance.randrange(8):
        return json_changed(chance, old).decode("utf-8", "replace")
    if isinstance(old, bytes) and chance.randrange(2):
        return chance.choice((flipped, cut))(chance, old)
    value = odd(chance)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float("inf")
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value if isinstance(
        value, int | float | None) else json.dumps(value)  # fmt: skip


# -- something else than a file -----------------------------------------------------------------------------


def misplaced(chance: random.Random, path: Path) -> None:
    """In place of a file, or of what SQLite keeps beside it: a pipe, a directory, a link to itself, to nowhere or to a
    device without end, or nothing."""
    if path.read_bytes().startswith(b"SQLite") and chance.randrange(2):
        path = path.with_name(path.name + chance.choice(("-wal", "-journal", "-shm")))
    path.unlink(missing_ok=True)
    match chance.randrange(8):
        case 0 | 1:
            os.mkfifo(path)
        case 2:
            path.mkdir()
        case 3:
            path.symlink_to(path)
        case 4:
            path.symlink_to(path.with_name("nothing"))
        case 5:
            path.symlink_to("/dev/zero")
        case 6:
            path.touch()
        case _:
            path.symlink_to(path.parent)

"""What generated files, paths, queries and expressions mean to puppetserver's own libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspector.errors import InspectorError
from inspector.explain.authorization import targets
from inspector.host.auth_conf import hocon, patterns, reading
from tests.real.library import ask
from tests.support import auth_confs

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from inspector.host.auth_conf.hocon import Node
    from tests.real.puppet import RealMaster

SEED = 5


@pytest.fixture
def random(master: RealMaster) -> Random:
    """The master only says whether puppetserver is there."""
    return auth_confs.generator(SEED)


def _pieces(random: Random, pieces: tuple[str, ...], most: int) -> str:
    return "".join(random.choice(pieces) for _ in range(random.randint(0, most)))


def test_files_that_are_taken_and_the_order_of_their_rules(random: Random, tmp_path: Path) -> None:
    files = []
    for number in range(600):
        path = tmp_path / f"{number}.conf"
        path.write_text(auth_confs.broken(random) if number % 2 else auth_confs.conf(random))
        files.append(path)
    read = [_rules(path) for path in files]
    answers = ask([{"file": str(path)} for path in files])
    for path, mine, found in zip(files, read, answers, strict=True):
        assert found.get("answer") == mine or _strange(path), path.read_text()
    assert 100 < read.count(None) < 400


def _rules(path: Path) -> list[str] | None:
    """The names of the rules, in their order; None: the file is refused."""
    try:
        return [rule.name for rule in reading.read(path).rules]
    except InspectorError:
        return None


def _strange(path: Path) -> bool:
    """Whether a rule has a number for a name: puppetserver takes it from rules without allow and deny."""
    return '"name": 5' in path.read_text() and _rules(path) is None


_HOCON = (
    "a", "b", '"c d"', '"x.y"', "1", "-3", "1.5", "5.0", "true", "null", "x/y", "//c", "# k", "\n", " ", "  ", ":",
    " = ", "{", "}", "[", "]", ",", '"""t"""', "a.b", '"\\n"', "/", "*", '"\\x"', "10.0.0.1", "\t", "trueish", '"7"',
    '""', "1-2", "-", "{a:1}", "{b {c=2}}", "[1,2]", "a:", "b=", "a.b:", "\u00a0", "é",
)  # fmt: skip


def _hocon(random: Random) -> str:
    if random.random() < 0.5:
        return _pieces(random, _HOCON, 12)
    fields = [
        f"{random.choice(('a', 'b', 'a.b', 'a b'))}{random.choice((':', '=', ' '))}{_value(random, 3)}"
        for _ in range(4)
    ]
    return random.choice((",", "\n", " , ", "\n,")).join(fields)


def _value(random: Random, depth: int) -> str:
    kind = random.randint(0, 5) if depth else 0
    if kind == 4:
        return f"{{{', '.join(f'{key}: {_value(random, depth - 1)}' for key in random.sample('abc', 2))}}}"
    if kind == 5:
        return f"[{random.choice((',', chr(10))).join(_value(random, depth - 1) for _ in range(random.randint(0, 3)))}]"
    return random.choice(("1", "x", '"s"', "true", "a b", '"p"q', "{a: 1} {b: 2}", "[1] [2]", "1e3", "// c\n 5"))


def _plain(node: Node) -> Any:
    match node.value:
        case dict(fields):
            return {key: _plain(value) for key, value in fields.items()}
        case list(items):
            return [_plain(item) for item in items]
        case str(text):
            # The server's next layer: quotes within a text go, and what looks like a number is one.
            text = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
            return int(text) if text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 10 else text
    return node.value


def test_hocon(random: Random, tmp_path: Path) -> None:
    files = []
    for number in range(3000):
        path = tmp_path / f"{number}.conf"
        path.write_text(_hocon(random), newline="")
        files.append(path)
    read = [_parsed(path.read_text()) for path in files]
    answers = ask([{"config": str(path)} for path in files])
    for path, mine, found in zip(files, read, answers, strict=True):
        assert mine == _BESIDE or found.get("answer") == mine, path.read_text()
    assert len([mine for mine in read if isinstance(mine, dict)]) > 500


_BESIDE = "an object and a list stand side by side"
"""typesafe-config joins them if the keys are numbers."""


def _parsed(text: str) -> Any:
    try:
        return {key: _plain(node) for key, node in hocon.parse(text).items()}
    except hocon.Malformed as error:
        return _BESIDE if error.reason == _BESIDE else None


_PATH = (
    "a", "b", "/", "//", "/..", "/.", ".", "%2f", "%2e", "%41", "%c3%a9", "%FF", "%u0041", "%zz", "%4", "%", ";x",
    "%:1", "%25", "é", "%E2%82%AC", "%3b", "+", "~",
)  # fmt: skip
_QUERY = ("a", "b", "=", "&", "+", "%", "%41", "%C3", "%A9", "%zz", "%+1", "%-1", "%4", "a=1", "&&", "%26", "%3D", "é")


def test_paths(random: Random) -> None:
    paths = [f"/puppet/{_pieces(random, _PATH, 7)}" for _ in range(3000)]
    for path, found in zip(paths, ask([{"raw": path} for path in paths]), strict=True):
        try:
            mine: str | None = targets.asked("get", path.encode().decode("latin-1")).path
        except targets.Unasked:
            mine = None
        assert mine == found.get("answer"), path


def test_queries(random: Random) -> None:
    queries = [_pieces(random, _QUERY, 6) for _ in range(3000)]
    for query, found in zip(queries, ask([{"query": query} for query in queries]), strict=True):
        mine = {}
        for key, values in targets.asked("get", f"/puppet?{query}".encode().decode("latin-1")).query.items():
            mine[key] = values[0] if len(values) == 1 else [*values]
        assert found == {"answer": mine or {}} or (not query and found == {"answer": None}), query


_EXPRESSION = (
    "a", "b", "/", "x", ".", "^", "$", "\\.", "[^/]", "[a-c]", "\\d", "\\w", "\\s", "\\b", "(", ")", "(?:", "(?i)",
    "|", "*", "+", "?", "{2}", "{1,2}", "*?", "([^/]+)", "(a|b)", "(a|b)", "[]", "[a-", "\\Q", "\\E", "(?=", "a++",
    "\\1", "[[a]", "&&", "\\x41", "(?<n>", "\\Z", "{", "}", "\\p{L}", "\\g", "\\", "(?s)", "é", "\\S", "[\\w-]",
    "[b-a]", "\n", "(a*)*", "k",
)  # fmt: skip
_TEXTS = (
    "", "a", "ab", "aab/b", "/x/a/b", "b\n", "A", "é", "a b", "a.b", "\x0b", "K", "\u212a", "a\r", "1",
    "/puppet/v3/catalog/a.b",
)  # fmt: skip


def test_expressions(random: Random) -> None:
    asked = [{"pattern": _pieces(random, _EXPRESSION, 7), "text": random.choice(_TEXTS)} for _ in range(5000)]
    decided = 0
    for question, found in zip(asked, ask(asked), strict=True):
        try:
            pattern = patterns.read(question["pattern"], "java")
        except patterns.Invalid:
            assert "error" in found, question
            continue
        if pattern.obstacle:
            continue
        assert "answer" in found, question
        try:
            groups = pattern.search(question["text"])
        except patterns.NotDecided:
            continue
        assert (None if groups is None else [*groups]) == found["answer"]["groups"], question
        decided += 1
    assert decided > 1000

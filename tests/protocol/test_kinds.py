"""Nothing but the endpoint table knows endpoints by name: a new row of a known kind needs no other change."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import inspector
from inspector.protocol.endpoints import ENDPOINTS, KINDS
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(inspector.__file__).parent
NAMES = frozenset(endpoint.name for endpoint in ENDPOINTS)
LONG = frozenset(name for name in NAMES if "_" in name) - {"resource_type"}
"""Names that can't be meant for anything else, unlike ``ca``, ``report``, or a field of PuppetDB's reports."""
TABLE = "protocol/endpoints.py"
URLS = {
    "protocol/indirector.py": "the indirections, as they are written in URLs",
    "explain/authorization/ruby.py": "the indirections of URLs, as auth.conf compares them",
    "explain/authorization/targets.py": "how puppetserver translates the URLs of Puppet 3",
    "doctor/auth_conf.py": "puppetserver's own rules, by the indirections of URLs",
    "rehearsal/requests.py": "which URLs may be sent",
    "lab": "plays both ends by URL",
}
"""Modules and packages that may name what is in a URL, with the reason."""


def offences(source: str) -> list[int]:
    """Return the lines that compare with an endpoint's name, list names, or hold one that can mean nothing else."""
    tree = ast.parse(source)
    return sorted({node.lineno for node in _offences(tree)})


def _offences(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if text in LONG:
                yield node
            case ast.Compare():
                sides = [node.left, *node.comparators]
                if any(map(_is_endpoint, sides)):
                    yield from (name for side in sides for name in _names(side))
            case ast.Match() if _is_endpoint(node.subject):
                yield from (name for case in node.cases for name in _names(case.pattern))
            case ast.Call(func=ast.Name(id="rule")):
                yield from (name for keyword in node.keywords if keyword.arg == "at" for name in _names(keyword.value))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(keys=parts):
                texts = [part.value for part in parts if isinstance(part, ast.Constant)]
                if len(texts) == len(parts) > 1 and NAMES.issuperset(texts):
                    yield from (part for part in parts if part)


def _is_endpoint(node: ast.expr) -> bool:
    """Whether it is a variable or field ``endpoint``, or the name of what is in one."""
    if isinstance(node, ast.Attribute):
        return node.attr == "endpoint" or (node.attr == "name" and _is_endpoint(node.value))
    return isinstance(node, ast.Name) and node.id == "endpoint"


def _names(node: ast.AST) -> list[ast.Constant]:
    return [part for part in ast.walk(node) if isinstance(part, ast.Constant) and part.value in NAMES]


@pytest.mark.parametrize(
    "source",
    [
        'if match.endpoint.name == "ca": pass',
        'if "catalog" != brief.endpoint: pass',
        'found = [each for each in briefs if each.endpoint in ("report", "x")]',
        'match step.match.endpoint.name:\n  case "crl" | "x": pass',
        '@rule(at=("crl",))\ndef look(): pass',
        'CERTIFICATES = frozenset({"ca", "crl"})',
        'SETTINGS = {"node": 1, "catalog": 2}',
        'content = what == "file_content"',
    ],
)
def test_a_name_in_the_code_is_found(source: str) -> None:
    assert offences(source)


@pytest.mark.parametrize(
    "source",
    ['if match.endpoint.area == "ca": pass', 'CODES = ("ca", "other")', 'kind = "report"', '"""file_content."""'],
)
def test_other_words_are_not_meant(source: str) -> None:
    assert offences(source) == []


@pytest.mark.slow
def test_no_module_but_the_table_names_an_endpoint() -> None:
    found = {}
    for module in sorted(PACKAGE.rglob("*.py")):
        path = module.relative_to(PACKAGE).as_posix()
        if path != TABLE and path not in URLS and path.partition("/")[0] not in URLS:
            found[path] = offences(module.read_text())
    assert len(found) > 200
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_kind_of_a_name_is_the_one_of_its_rows() -> None:
    assert all(KINDS[endpoint.name] is endpoint.kind for endpoint in ENDPOINTS)


def test_a_row_is_all_that_a_new_endpoint_for_files_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.new_endpoint"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "phase": "files",
        "kind": "file content",
        "file": ["wrong", [True], "metadata"],
        "transfers": [1, ["production"]],
        "findings": ["F03"],
        "filter": True,
        "completion": ["endpoint:sealed_file"],
        "explained": "fetch a sealed file",
        "rule": True,
        "overload": True,
    }

"""Secrets of both runs are masked wherever they are shown."""

from __future__ import annotations

from inspector.compare import masks
from inspector.compare.masks import Masks
from inspector.protocol import rich
from inspector.protocol.documents import Facts
from tests.support.compared import decoded, file, resource


def test_values() -> None:
    found = Masks()
    assert found.value("mode", "0644") == "0644"
    assert found.value("mode", "0644", sensitive=True) == "MASKED"
    assert found.value("mode", None, sensitive=True) is None
    assert found.value("db_password", "abc") == "MASKED"
    assert found.value("db_password", "absent") == "absent"
    assert found.value("db_password", True) is True
    assert found.value("db_password", 1234) == "MASKED"
    assert found.value("x", {"db_password": "abc", "y": ["z"]}) == {"db_password": "MASKED", "y": ["z"]}
    assert found.value("x", rich.read([{"__ptype": "Sensitive", "__pvalue": "abc"}])) == ["MASKED"]
    assert found.value("x", rich.read({"__ptype": "SemVer", "__pvalue": "1.0.0"})) == {
        "__ptype": "SemVer", "__pvalue": "1.0.0",
    }  # fmt: skip
    assert found.value("x", rich.read({"__ptype": "Binary", "__pvalue": "AAEC"})) == {
        "__ptype": "Binary",
        "__pvalue": "3 bytes, sha256 ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc",
    }
    assert found.value("private_key", rich.read({"__ptype": "Binary", "__pvalue": "AAEC"})) == "MASKED"


def test_private_keys_in_texts() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdef\n-----END RSA PRIVATE KEY-----\n"
    assert "MIIE" not in Masks().value("content", key)


def test_a_secret_of_one_document_is_masked_in_all() -> None:
    found = Masks(
        [
            decoded([file("/a", sensitive=["content"], content="s3cret-one")]),
            decoded([file("/b", content=[{"__ptype": "Sensitive", "__pvalue": {"k": "s3cret-two"}}])]),
            decoded([resource("App", "x", api_key="s3cret-three")]),
        ],
        [Facts("a", {"db": {"password": "s3cret-four"}})],
    )
    text = found.text("one s3cret-one two s3cret-two three s3cret-three four s3cret-four")
    assert text == "one MASKED two MASKED three MASKED four MASKED"
    assert found.text("czNjcmV0LW9uZQ==") != "czNjcmV0LW9uZQ=="  # as Base64


def test_very_long_texts_are_shown_by_digest() -> None:
    text = "x" * (masks.LONGEST + 1)
    assert Masks().value("content", text).startswith("1,048,577 characters, sha256 ")
    assert Masks().value("content", text[1:]) == text[1:]


def test_deep_values() -> None:
    value: object = "s3cret-one"
    for _ in range(1000):
        value = [value]
    assert "s3cret" not in repr(Masks().value("x", value, sensitive=True))
    assert "s3cret" not in repr(Masks().value("db_password", value))

"""Secrets of both runs are masked wherever they are shown."""

from __future__ import annotations

from inspector.compare.masks import Masks
from inspector.protocol import rich
from inspector.protocol.documents import Facts
from tests.support.compared import decoded, file, resource


def test_values() -> None:
    masks = Masks()
    assert masks.value("mode", "0644") == "0644"
    assert masks.value("mode", "0644", sensitive=True) == "MASKED"
    assert masks.value("mode", None, sensitive=True) is None
    assert masks.value("db_password", "abc") == "MASKED"
    assert masks.value("db_password", "absent") == "absent"
    assert masks.value("db_password", True) is True
    assert masks.value("db_password", 1234) == "MASKED"
    assert masks.value("x", {"db_password": "abc", "y": ["z"]}) == {"db_password": "MASKED", "y": ["z"]}
    assert masks.value("x", rich.read([{"__ptype": "Sensitive", "__pvalue": "abc"}])) == ["MASKED"]
    assert masks.value("x", rich.read({"__ptype": "SemVer", "__pvalue": "1.0.0"})) == {
        "__ptype": "SemVer", "__pvalue": "1.0.0",
    }  # fmt: skip
    assert masks.value("x", rich.read({"__ptype": "Binary", "__pvalue": "AAEC"})) == {
        "__ptype": "Binary",
        "__pvalue": "3 bytes, sha256 ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc",
    }
    assert masks.value("private_key", rich.read({"__ptype": "Binary", "__pvalue": "AAEC"})) == "MASKED"


def test_private_keys_in_texts() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdef\n-----END RSA PRIVATE KEY-----\n"
    assert "MIIE" not in Masks().value("content", key)


def test_a_secret_of_one_document_is_masked_in_all() -> None:
    masks = Masks(
        [
            decoded([file("/a", sensitive=["content"], content="s3cret-one")]),
            decoded([file("/b", content=[{"__ptype": "Sensitive", "__pvalue": {"k": "s3cret-two"}}])]),
            decoded([resource("App", "x", api_key="s3cret-three")]),
        ],
        [Facts("a", {"db": {"password": "s3cret-four"}})],
    )
    text = masks.text("one s3cret-one two s3cret-two three s3cret-three four s3cret-four")
    assert text == "one MASKED two MASKED three MASKED four MASKED"
    assert masks.text("czNjcmV0LW9uZQ==") != "czNjcmV0LW9uZQ=="  # as Base64


def test_deep_values() -> None:
    value: object = "s3cret-one"
    for _ in range(1000):
        value = [value]
    assert "s3cret" not in repr(Masks().value("x", value, sensitive=True))
    assert "s3cret" not in repr(Masks().value("db_password", value))

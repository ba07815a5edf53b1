"""Records that hold secrets."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from inspector.model import Exchange
from tests.support.conversations import Agent, together

if TYPE_CHECKING:
    from inspector.model import Record

WORD = "hunter2-horse"
HIDING = {
    "name": "a.example",
    "resources": [
        {
            "type": "User",
            "title": "root",
            "parameters": {"password": WORD, "uid": 0},
            "sensitive_parameters": ["password"],
        },
        {
            "type": "File",
            "title": "/a",
            "parameters": {"content": {"__ptype": "Sensitive", "__pvalue": "other-secret"}},
        },
    ],
    "edges": [{"source": "Class[Main]", "target": "User[root]"}],
    "classes": ["main"],
}


def hiding() -> list[Record]:
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    assert record.response
    body = json.dumps(HIDING).encode()
    headers = (("Content-Type", "application/json"), ("Set-Cookie", WORD))
    return [dataclasses.replace(record, response=dataclasses.replace(record.response, headers=headers, body=body))]


KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEvQIBADANBg' * 8}\n-----END RSA PRIVATE KEY-----\n"

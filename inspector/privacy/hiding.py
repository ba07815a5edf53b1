"""What views hide until the user asks for it: the same as is masked everywhere else (``redact``), but with the value
behind it. A text keeps what is around the secret in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.privacy import names, redact, secrets
from inspector.privacy.rewrite import Fields, Leaf
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol import rich

if TYPE_CHECKING:
    from collections.abc import Collection

    from inspector.model import Request
    from inspector.privacy.rewrite import ValueNode
    from inspector.protocol.documents import Resource


def text(value: str) -> str | Secret:
    """Return a text, hidden if it contains a secret."""
    whole = secrets.text(value)
    if isinstance(whole, Secret):
        return whole
    masked = redact.text(value)
    return value if masked == value else _secret(value, masked)


def without(value: str | Secret, known: Collection[str]) -> str | Secret:
    """Return a text, or what is shown of one, in which the secrets of its record are hidden too (``redact.known``)."""
    shown = str(value)
    masked = redact.quoted(shown, known)
    masked = shown if masked == shown else covered(masked)
    if masked == shown:
        return value
    return Secret(value.value if isinstance(value, Secret) else value, masked)


def target(of: Request) -> str | Secret:
    """Return a request's target, hidden if it contains a secret."""
    masked = redact.target(of)
    return of.target if masked == of.target else _secret(of.target, masked)


def header(name: str, value: str) -> str | Secret:
    """Return a header's value, hidden if it is a credential or contains a secret."""
    return Secret(value) if secrets.credential(name) or names.named(name.strip().lower()) else text(value)


def masked(value: Any) -> Any:
    """Return a decoded structure with every secret in it as ``Secret``. Keys become texts."""
    return _hidden(value, redact.structure(value))


def parameters(resource: Resource) -> dict[str, Any]:
    """Return a resource's parameters as a view shows them: rich data as ``Rich``, secrets as ``Secret``."""
    sent = {"parameters": resource.parameters, "sensitive_parameters": resource.sensitive_parameters}
    # Mask before references are resolved: no LocalRef must lead into a secret.
    hidden = masked(sent)["parameters"]
    return {name: rich.read(value, hidden) for name, value in hidden.items()}


def covered(text: str) -> str:
    """Return a masked text with the mask of views."""
    return text.replace(names.MASK, MASK)


def _secret(value: Any, masked: str) -> Secret:
    return Secret(value, covered(masked) if masked.replace(names.MASK, "") else MASK)


def _hidden(value: Any, node: ValueNode) -> Any:
    """Return a structure with hidden values where its tree has masks."""
    match node:
        case Leaf():
            if isinstance(value, str) and isinstance(whole := secrets.text(value), Secret):
                return whole
            return value if node.new is None or isinstance(value, Secret) else _secret(value, str(node.new))
        case Fields() if value.get(rich.MARK) == "Sensitive":
            return secrets.hidden(value)
        case Fields():
            return _mapping(value, node)
        case list():
            return [_hidden(item, child) for item, child in zip(value, node, strict=True)]


def _mapping(value: dict[Any, Any], node: Fields) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for (key, item), (leaf, child) in zip(value.items(), node.pairs, strict=True):
        name = str(key) if leaf.new is None else covered(str(leaf.new))
        while leaf.new is not None and name in inner:
            name += " "
        inner[name] = _hidden(item, child)
    listed, original, shown = value.get("sensitive_parameters"), value.get("parameters"), inner.get("parameters")
    # Not if the parameters are hidden as a whole.
    if isinstance(listed, list) and isinstance(original, dict) and isinstance(shown, dict):
        shown |= {name: secrets.hidden(original[name]) for name in listed if isinstance(name, str) and name in original}
    return inner

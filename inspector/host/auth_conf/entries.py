"""The entries of ``allow`` and ``deny`` in puppetserver's auth.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex
from inspector.host.auth_conf.rules import Entry, Refused, Sort, sort_of
from inspector.text import beginning

if TYPE_CHECKING:
    from inspector.host.auth_conf.hocon import Node

KEYS = ("certname", "extensions", "rbac")
NO_TEXT = "is no text: true and false need quotes, and a number is none even with quotes"
_ALT_NAMES = ("dns-name", "ip", "other-name", "rfc822-name", "x400-address", "directory-name", "edi-party-name", "uri",
              "registered-id")  # fmt: skip
_PERMISSION = regex.compile(r"[^\n]*:[^\n]*:[^\n]*")


def read_entry(node: Node, where: str, *, allows: bool) -> Entry:
    """Return an entry, which is a text or an object. Raises Refused; ``where`` says in words where it stands."""
    fields = node.value
    if isinstance(fields, str):
        return _named(fields, node.line, where, allows=allows)
    if not isinstance(fields, dict):
        raise Refused(node.line, f"{where} is neither a text nor an object")
    certname, extensions, rbac = (value_of(fields, name) for name in KEYS)
    if rbac is not None and not _is_permission(rbac):
        raise Refused(rbac.line, f"rbac of {where} is no permission")
    if (certname is extensions is rbac is None) or (certname and extensions):
        raise Refused(node.line, f"{where} must have exactly one of certname, extensions and rbac")
    if certname is not None and not isinstance(certname.value, str):
        raise Refused(certname.line, f"the certname of {where} is not a text")
    found = _of_extensions(extensions, where, allows=allows) if extensions else None
    if rbac is not None and not allows:
        raise Refused(rbac.line, f"{where} has rbac, which cannot deny")
    if rbac is not None:
        return Entry(allows, Sort.PERMISSION, "a permission of a role", node.line)
    return found or _named(str(certname and certname.value), node.line, where, allows=allows)


def value_of(fields: dict[str, Node], key: str) -> Node | None:
    """Return a value that is neither missing nor null nor false."""
    node = fields.get(key)
    return None if node is None or node.value is None or node.value is False else node


def _named(text: str, line: int, where: str, *, allows: bool) -> Entry:
    sort = sort_of(text)
    if sort is None:
        raise Refused(line, f"{where} is no name, no domain and no regular expression: {beginning(text, 60)!r}")
    return Entry(allows, sort, text, line)


def _is_permission(node: Node) -> bool:
    fields = node.value
    if not isinstance(fields, dict) or [*fields] != ["permission"]:
        return False
    text = fields["permission"].value
    return isinstance(text, str) and _PERMISSION.fullmatch(text) is not None


def _of_extensions(node: Node, where: str, *, allows: bool) -> Entry:
    """Return an entry for certificates with extensions. Raises Refused."""
    if not isinstance(node.value, dict):
        raise Refused(node.line, f"extensions of {where} is not an object")
    extensions: dict[str, tuple[str, ...]] = {}
    alt_names: dict[str, tuple[str, ...]] | None = None
    for key, value in node.value.items():
        if key != "subject-alt-name":
            extensions[key] = _texts(value, key, where)
        elif not isinstance(value.value, dict) or not set(value.value) <= {*_ALT_NAMES}:
            raise Refused(value.line, f"subject-alt-name of {where} has something else than kinds of names")
        else:
            alt_names = {kind: _texts(names, kind, where) for kind, names in value.value.items()}
    shown = [f"{key} {' or '.join(values)}" for key, values in [*extensions.items(), *(alt_names or {}).items()]]
    text = f"extensions {', '.join(shown)}" if shown else "any extensions"
    return Entry(allows, Sort.EXTENSIONS, text, node.line, extensions, alt_names)


def _texts(node: Node, key: str, where: str) -> tuple[str, ...]:
    listed = node.value if isinstance(node.value, list) else [node]
    texts = tuple(item.value for item in listed if isinstance(item.value, str))
    if len(texts) < len(listed):
        raise Refused(node.line, f"the extension {beginning(key, 60)!r} of {where} {NO_TEXT}")
    return texts

"""YAML as Ruby writes it (reports of 2.7 and early 3.x, their facts), read without trusting it.

Objects become mappings, symbols strings; nothing is ever instantiated. What is deep, or large only by its
aliases, is refused before PyYAML builds anything: its composer recurses in C, and aliases need no space.
"""

from __future__ import annotations

from typing import Any

import yaml

MAX_BYTES = 16 * 2**20
"""PyYAML builds a tree of some 50 times the text's size."""
MAX_DEPTH = 200
"""PyYAML recurses in C: some ten thousand levels end the process."""
MAX_NODES = 2_000_000
"""Nodes of a document once its aliases are written out (600 bytes can stand for 10**9)."""


class Refused(ValueError):
    """No YAML, or YAML that nobody honest sends."""


class _RubyLoader(yaml.CSafeLoader):
    """YAML as Ruby writes it: objects become mappings, symbols strings. Nothing is ever instantiated."""


def _ruby(loader: _RubyLoader, _suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)  # type: ignore[arg-type]


def _plain_time(loader: _RubyLoader, node: yaml.Node) -> Any:
    return loader.construct_scalar(node)  # type: ignore[arg-type]


def _short_number(loader: _RubyLoader, node: yaml.ScalarNode) -> Any:
    # PyYAML takes quadratic time for 1:1:1:..., a number to the base of 60.
    return loader.construct_yaml_int(node) if len(node.value) < 100 else loader.construct_scalar(node)


_RubyLoader.add_multi_constructor("!ruby/", _ruby)
_RubyLoader.add_multi_constructor("!", _ruby)
_RubyLoader.add_multi_constructor("tag:ruby.yaml.org,2002:", _ruby)
# Times stay text: Ruby's have nine digits and a space, which PyYAML reads as a date and we would lose.
_RubyLoader.add_constructor("tag:yaml.org,2002:timestamp", _plain_time)
_RubyLoader.add_constructor("tag:yaml.org,2002:int", _short_number)


def load(body: bytes) -> Any:
    """A document's value, in plain dicts, lists and scalars; ``body`` must be UTF-8. Raises Refused."""
    if len(body) > MAX_BYTES:
        raise Refused(f"{len(body)} bytes of YAML, more than {MAX_BYTES} are not read")
    try:
        _bounded(body)
        value = yaml.load(body, Loader=_RubyLoader)  # noqa: S506 - derived from the safe loader
    except yaml.YAMLError as error:
        raise Refused(f"no YAML: {' '.join(str(error).split())}") from error
    return _names(value)


def _bounded(body: bytes) -> None:
    """Refuse what is deep, large only by its aliases, or holds itself. Raises Refused, yaml.YAMLError."""
    total, sizes, begun = 0, dict[str | None, int](), list[tuple[str | None, int]]()
    for event in yaml.parse(body, Loader=yaml.CSafeLoader):
        match event:
            case yaml.AliasEvent():  # of one that has not ended yet: it holds itself
                total += sizes.get(event.anchor, MAX_NODES)
            case yaml.ScalarEvent():
                total += 1
                sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                begun.append((event.anchor, total))
                sizes.pop(event.anchor, None)
            case yaml.CollectionEndEvent():
                anchor, before = begun.pop()
                total += 1
                sizes[anchor] = total - before
        if len(begun) > MAX_DEPTH or total >= MAX_NODES:
            raise Refused("the YAML is nested too deeply or refers to itself too often")


def _names(value: Any) -> Any:
    """A top-level mapping's keys without the colon that a Ruby symbol, or an ``@`` that a variable, has."""
    if isinstance(value, dict):
        return {str(key).lstrip(":@"): item for key, item in value.items()}
    return value

"""How far long work is: who does it reports it to a watch, ``cli.progress`` shows it on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

READING = "reading record"
"""The name of most work."""


def number(amount: int) -> str:
    """Return a number for people: 300,000."""
    return f"{amount:,}"


class Watch(Protocol):
    """Is called with how much is done, of how much, of what; as often as one likes, and at the end with all of it.
    ``written`` returns an amount as text."""

    def __call__(
        self, done: int, total: int, what: str = READING, written: Callable[[int], str] = number, /
    ) -> None: ...


def unwatched(_done: int, _total: int, _what: str = "", _written: Callable[[int], str] = number) -> None:
    """Show nothing."""


def named(watch: Watch, name: str) -> Watch:
    """Return a watch for one of several things, whose name is shown before what is done to it."""

    def of_it(done: int, total: int, what: str = READING, written: Callable[[int], str] = number) -> None:
        watch(done, total, f"{name}: {what}", written)

    return of_it


def watched[T](items: Iterable[T], watch: Watch, total: int, what: str = READING) -> Iterator[T]:
    """Yield items, and report how many of them there were."""
    for done, item in enumerate(items):
        watch(done, total, what)
        yield item
    watch(total, total, what)

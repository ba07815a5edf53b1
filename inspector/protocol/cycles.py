"""Cycles in a graph whose points are numbers."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def components(points: int, following: Callable[[int], Iterable[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of a graph (Tarjan's algorithm, without recursion)."""
    order, low = array("q", [-1]) * points, array("q", [-1]) * points
    stacked = bytearray(points)
    stack: list[int] = []
    count = 0
    for start in range(points):
        if order[start] >= 0:
            continue
        order[start] = low[start] = count
        count += 1
        stack.append(start)
        stacked[start] = 1
        way = [(start, iter(following(start)))]
        while way:
            point, rest = way[-1]
            for other in rest:
                if order[other] < 0:
                    order[other] = low[other] = count
                    count += 1
                    stack.append(other)
                    stacked[other] = 1
                    way.append((other, iter(following(other))))
                    break
                if stacked[other]:
                    low[point] = min(low[point], order[other])
            else:
                way.pop()
                if way:
                    low[way[-1][0]] = min(low[way[-1][0]], low[point])
                if low[point] == order[point]:
                    group: list[int] = []
                    while not group or group[-1] != point:
                        group.append(stack.pop())
                        stacked[group[-1]] = 0
                    yield group

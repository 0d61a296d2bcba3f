"""What holds an object to which no root leads: only itself, in a cycle, or something that Python cannot see."""

from __future__ import annotations

import gc
from time import perf_counter
from types import FrameType
from typing import Any

from torch_inspector.observe.heap.search import Search

# Objects that are followed backwards, and steps. Each step asks the whole heap: 40 ms for 300,000 objects.
_MOST, _STEPS = 2_000, 8


def cycles(things: list[Any], search: Search, ours: set[int], deadline: float) -> set[int]:
    """Addresses of those objects that only a reference cycle holds: the next collection frees them.

    Args:
        things: Objects that the search has not met.
        search: The finished search.
        ours: Addresses of our own objects that refer to them.
        deadline: `perf_counter()` time after which nothing is claimed.
    """
    holders: dict[int, set[int]] = {id(thing): set() for thing in things}
    held: set[int] = set()
    level, kept = list(things), [things]
    ours = ours | {id(holders), id(kept)}
    for _ in range(_STEPS):
        if not level:
            break
        if len(holders) > _MOST or perf_counter() > deadline:
            return set()
        level = _step(level, holders, held, search, ours)
        kept.append(level)
        ours |= {id(level)}
    finished = not level
    return {id(thing) for thing in things if finished and _only_itself(id(thing), holders, held)}


def _step(level: list[Any], holders: dict[int, set[int]], held: set[int], search: Search, ours: set[int]) -> list[Any]:
    """Notes who refers to some objects; gives those of the holders that are new."""
    wanted = {id(thing) for thing in level}
    following: list[Any] = []
    # From Python 3.13 on the arguments of the call are found as well.
    given = tuple(level)
    ours = ours | {id(level), id(following), id(given)}
    for holder in gc.get_referrers(*given):
        address = id(holder)
        if address in ours or (type(holder) is FrameType and holder.f_code.co_filename == __file__):
            continue
        for part in gc.get_referents(holder):
            if id(part) in wanted:
                holders[id(part)].add(address)
        if address in search.seen or type(holder) is FrameType:
            held.add(address)
        elif address not in holders:
            holders[address] = set()
            following.append(holder)
    return following


def _only_itself(address: int, holders: dict[int, set[int]], held: set[int]) -> bool:
    """True if each of its holders, directly or not, has a holder among them, and none is reached from anywhere.

    One that nobody seems to hold is held by C: the values of context variables are.
    """
    stack, met = [address], set()
    while stack:
        here = stack.pop()
        if here in held or not holders.get(here):
            return False
        if here not in met:
            met.add(here)
            stack += holders[here]
    return True

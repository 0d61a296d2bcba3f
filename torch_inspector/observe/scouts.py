"""Asks many containers at once whether anything is in them.

One look at a container costs more than the samples of twenty: on a heap of a million objects that is most of a walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_inspector.observe import sorts
from torch_inspector.observe.sorting import Sorting

# Steps down: an object and its dictionary are two, where a user sees one.
_STEPS = 8
# Containers of one depth that are asked: those in the first ones and in the last, each with all that is in it.
_AT_FRONT, _AT_END = 24, 12
# Elements of the lists among them: in all, and of one at least. Lists are of a kind where dictionaries are not.
_IN_LISTS, _IN_EACH_LIST = 256, 16


def barren_below(parts: list[Any], depth: int, samples: Sequence[int], sorting: Sorting) -> int:
    """How many containers were asked, if nothing is in their samples nor below them; 0 if there is something.

    Args:
        parts: Containers of one depth.
        depth: That depth.
        samples: How many elements of a container are looked at, by depth.
        sorting: The sorts of all these containers.
    """
    asked = 0
    for level in range(depth, _STEPS):
        if not parts:
            break
        limit = samples[min(level, len(samples) - 1)]
        in_each = min(limit, max(_IN_EACH_LIST, _IN_LISTS // len(parts)))
        inner = sorts.samples([(sorting.known[id(type(part))], part) for part in parts], in_each, limit)
        if sorting.kinds_of(inner) & sorting.things:
            return 0
        asked += len(parts)
        deep = sorting.deep_places(inner)
        if len(deep) > _AT_FRONT + _AT_END:
            deep = deep[:_AT_FRONT] + deep[-_AT_END:]
        parts = [inner[place] for place in deep]
    return asked

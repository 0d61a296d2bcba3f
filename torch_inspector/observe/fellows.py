"""Variables that lead to the same memory as one that was found: deleting that one alone would free nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import thread_time
from types import ModuleType
from typing import Any

from torch_inspector.observe import kinds
from torch_inspector.observe.namespace import hidden
from torch_inspector.observe.reach import Reach

# For all variables together; a search that is rare.
_LOOK_S = 0.020
# What has a name all the same if its variable is deleted.
_LASTING = (ModuleType, type)


def fellows(holder: str, storages: set[int], variables: Mapping[str, Any], history: Mapping[Any, Any]) -> list[str]:
    """Other variables than the holder's own that lead to one of these storages, in the order of the namespace."""
    own = holder.partition(".")[0].partition("[")[0]
    return [name for name in _leading(storages, variables, history) if name != own]


def _leading(storages: set[int], variables: Mapping[str, Any], history: Mapping[Any, Any]) -> Iterator[str]:
    deadline = thread_time() + _LOOK_S
    for name, value in list(variables.items()):
        left = deadline - thread_time()
        if left > 0 and not hidden(name) and not any(kinds.is_a(value, one) for one in _LASTING):
            reach = Reach(storages, (history, variables), left)
            reach.search([value])
            if len(reach.wanted) < len(storages):
                yield str(name)

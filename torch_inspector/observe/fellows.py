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


def fellows(
    holder: str, held: Any, storages: set[int], variables: Mapping[str, Any], history: Mapping[Any, Any]
) -> tuple[str, ...]:
    """Other variables than the holder that lead to one of these storages, in the order of the namespace.

    Args:
        holder: Path of the holder.
        held: What is at that path, if it is a part of a variable: that variable counts if it leads there otherwise.
        storages: Identities of the storages.
        variables: The user's namespace.
        history: IPython's `Out`.
    """
    own = holder.partition(".")[0].partition("[")[0]
    without = {own: held} if own != holder and held is not None else {}
    names = [str(name) for name in list(variables) if name != own or without]
    return tuple(_leading(storages, names, (variables, history), without))


def _leading(
    storages: set[int], names: list[str], spaces: tuple[Mapping[Any, Any], ...], without: Mapping[str, Any]
) -> Iterator[str]:
    deadline = thread_time() + _LOOK_S
    for name in names:
        left, value = deadline - thread_time(), spaces[0].get(name)
        if left > 0 and not hidden(name) and not any(kinds.is_a(value, one) for one in _LASTING):
            reach = Reach(storages, (*spaces, *([without[name]] if name in without else [])), left)
            reach.search([value])
            if len(reach.wanted) < len(storages):
                yield name

"""Plain containers that are attributes of a module, which does not look into them."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch

from torch_inspector.observe import kinds, sorts

# Elements of one container that are looked at.
ELEMENTS = 64
# By exact type: a subclass may be a container of the user's own that the module knows of.
SORTS: dict[type[Any], str] = {
    list: "list",
    tuple: "tuple",
    deque: "deque",
    **dict.fromkeys((dict, OrderedDict, defaultdict), "mapping"),
}
_TORCHS_OWN = frozenset(torch.nn.Module().__dict__)
# `nn.ModuleDict` refuses these as keys, `nn.ParameterDict` does as well: they would hide its own methods.
_TAKEN = frozenset(dir(torch.nn.ModuleDict())) | frozenset(dir(torch.nn.ParameterDict()))


def containers_of(module: Any) -> Iterator[tuple[str, Any, list[Any]]]:
    """Name, container and first elements of each plain container that is an attribute."""
    for name, value in list(kinds.fields_of(module).items()):
        sort = kinds.entry_of(type(value), SORTS) if type(name) is str and name not in _TORCHS_OWN else None
        if sort is not None:
            yield name, value, sorts.elements(sort, value, ELEMENTS)


def first_elements(value: Any) -> list[Any]:
    """The first elements of a plain container; none of anything else."""
    sort = kinds.entry_of(type(value), SORTS)
    return sorts.elements(sort, value, ELEMENTS) if sort is not None else []


def has_odd_keys(container: Any) -> bool:
    """True for a dictionary with a key that `nn.ModuleDict` refuses: no string, a dot in it, the name of a method."""
    if kinds.entry_of(type(container), SORTS) != "mapping":
        return False
    keys = list(islice(dict.keys(container), ELEMENTS))
    return any(type(key) is not str or "." in key or not key or key in _TAKEN for key in keys)

"""Objects that a search does not go through, because everything would be found behind them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from torch_inspector.observe import kinds

# Packages whose objects lead to IPython's own references, or to us.
_MACHINERY = frozenset(
    (
        "IPython",
        "ipykernel",
        "traitlets",
        "torch_inspector",
        "zmq",
        "tornado",
        "asyncio",
        "ipywidgets",
        "comm",
        "jupyter",
    )
)


def module_walls() -> set[int]:
    """Addresses of all Python modules and of their dictionaries, and of the table that holds them."""
    walls = {id(sys.modules), id(sys)}
    for module in list(sys.modules.values()):
        if kinds.is_a(module, ModuleType):
            walls.add(id(module))
            walls.add(id(kinds.fields_of(module)))
    return walls


def is_machinery(kind: type[Any]) -> bool:
    """True for classes of the notebook's own machinery."""
    return kinds.module_of(kind).partition(".")[0] in _MACHINERY


def library_modules(besides: object) -> list[tuple[str, dict[str, Any]]]:
    """Name and dictionary of every loaded Python module but `__main__` and those of the machinery.

    Args:
        besides: A dictionary that does not count, whatever module it belongs to: the user's variables.
    """
    found = []
    for name, module in list(sys.modules.items()):
        machinery = name == "__main__" or name.partition(".")[0] in _MACHINERY
        if type(name) is str and not machinery and kinds.is_a(module, ModuleType):
            fields = kinds.fields_of(module)
            if fields is not besides:
                found.append((name, fields))
    return found

"""Containers of classes and of the notebook that lead to what a variable named before."""

from __future__ import annotations

from types import MethodType
from typing import Any, NamedTuple

from torch_inspector.observe import kinds, sorts
from torch_inspector.observe.reach import Reach

_CONTAINERS = ("mapping", "list", "set", "deque")
# Processor time for one container, attributes of a class and elements that are looked at.
_PROOF_S = 0.005
_ATTRIBUTES, _ELEMENTS = 100, 256


class Registry(NamedTuple):
    """Such a container."""

    path: str = ""
    methods: bool = False
    """True if there is nothing in it but methods of objects of one class."""


def kept_by(wanted: set[int], name: str, value: Any, owner: Any) -> Registry:
    """The container behind a variable that leads to some storages, if it is one, or a class with one.

    Args:
        wanted: Identities of the storages.
        name: The variable; empty for none.
        value: What it names.
        owner: An object of the class whose methods may be in it.
    """
    if not name:
        return Registry()
    if sorts.sort_of(type(value)) in _CONTAINERS:
        return Registry(name, _are_methods(value, owner))
    fields = list(kinds.class_fields(value).items())[:_ATTRIBUTES] if kinds.is_a(value, type) else []
    for attribute, one in fields:
        if sorts.sort_of(type(one)) in _CONTAINERS and _leads(wanted, one):
            return Registry(f"{name}.{attribute}", _are_methods(one, owner))
    return Registry()


def _leads(wanted: set[int], container: Any) -> bool:
    reach = Reach(wanted, (), _PROOF_S)
    reach.search([container])
    return len(reach.wanted) < len(wanted)


def _are_methods(container: Any, owner: Any) -> bool:
    parts = sorts.elements(sorts.sort_of(type(container)), container, _ELEMENTS)
    return bool(parts) and all(type(one) is MethodType and type(one.__self__) is type(owner) for one in parts)

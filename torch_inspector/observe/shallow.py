"""Shallow copies of modules: another object, with the very parameters and parts of the first."""

from __future__ import annotations

import ast
from typing import Any

from torch_inspector.observe.kinds import class_fields, fields_of, is_registry, mro_of
from torch_inspector.observe.source import dotted


def is_one_module(one: Any, other: Any) -> bool:
    """True for one module, and for two of which one is a shallow copy of the other, as `copy.copy` makes them."""
    if one is other:
        return True
    mine, others = fields_of(one), fields_of(other)
    shared = [mine.get(name) for name in ("_parameters", "_modules")]
    return type(one) is type(other) and all(
        is_registry(registry) and registry is others.get(name)
        for registry, name in zip(shared, ("_parameters", "_modules"), strict=True)
    )


def copied_shallowly(value: ast.expr, *, bare: bool = False) -> ast.expr | None:
    """`net` of `copy.copy(net)`; None for all else.

    Args:
        value: Any expression.
        bare: Whether `copy(net)` is one, too: who imports another function under this name must be told apart.
    """
    wanted = ("copy.copy", "copy") if bare else ("copy.copy",)
    if not isinstance(value, ast.Call) or dotted(value.func) not in wanted or len(value.args) != 1:
        return None
    return value.args[0] if not value.keywords else None


def copies_itself(thing: Any) -> bool:
    """True if a class says how it is copied."""
    return any("__copy__" in class_fields(kind) for kind in mro_of(type(thing)))

"""Comprehensions in comprehensions that read the numbers of a tensor: `[[v.item() for v in row] for row in m]`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from torch_inspector.facts import Shape, syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.source import dotted

Comprehension = ast.ListComp | ast.GeneratorExp
_PLANE = 2


@lru_cache(maxsize=64)
def hidden_in(scope: ast.AST) -> dict[int, set[str]]:
    """For each comprehension in others of a scope, by identity, their variables: they hide all else of that name."""
    found: dict[int, set[str]] = {}
    for whole in syntax.own_expressions(scope):
        if isinstance(whole, syntax.COMPREHENSIONS):
            names = {name for head in whole.generators for name in syntax.names_in(head.target)}
            for node in syntax.walk(whole):
                if node is not whole and isinstance(node, syntax.COMPREHENSIONS):
                    found.setdefault(id(node), set()).update(names)
    return found


def is_list(loop: ast.AST) -> bool:
    """True for `[v for v in x]`: torch gives all parts in one call there too."""
    one = loop.generators[0] if isinstance(loop, ast.ListComp) and len(loop.generators) == 1 else None
    plain = one is not None and not one.ifs and isinstance(one.iter, (ast.Name, ast.Attribute))
    return plain and ast.unparse(one.target) == ast.unparse(loop.elt)  # type: ignore[union-attr, attr-defined]


def goes_into(loop: Comprehension, rows: set[str]) -> bool:
    """True if a comprehension inside of it goes through its rows, or picks from them."""
    inner = [one for one in syntax.walk(loop.elt) if isinstance(one, syntax.COMPREHENSIONS)]
    read = [head.iter for one in inner for head in one.generators]
    read += [part.value for one in inner for part in syntax.walk(one) if isinstance(part, ast.Subscript)]
    return any(rows & set(syntax.names_in(one)) for one in read)


def in_lists(loop: Comprehension, shape: Shape, value: Any, known: Callable[[ast.expr], Any]) -> str | None:
    """The same without small tensors, empty where only a sum or the like is known to do; None if there is none.

    Args:
        loop: The outer comprehension.
        shape: Shape of what it goes through.
        value: The tensor itself, or what is known of it.
        known: Gives what an expression stands for.
    """
    inner = _inner(loop) if len(shape) == _PLANE else None
    if inner is None:
        return None
    row, v = ast.unparse(loop.generators[0].target), ast.unparse(inner.generators[0].target)
    names = [one.id for one in syntax.walk(loop.elt) if isinstance(one, ast.Name)]
    if names.count(v) != _PLANE or names.count(row) != 1:
        return None
    whole = f"{ast.unparse(loop.generators[0].iter)}.tolist()"
    lists = loop.elt is inner and isinstance(loop, ast.ListComp) and isinstance(inner, ast.ListComp)
    if is_number(inner.elt, v, value):
        return whole if lists else ""
    owner = _looked_up(inner.elt, v, value, known)
    return f"[[{owner}[{v}] for {v} in {row}] for {row} in {whole}]" if owner and lists else None


def _inner(loop: Comprehension) -> Comprehension | None:
    """The one comprehension that goes through each row as it is."""
    inner = [one for one in syntax.walk(loop.elt) if isinstance(one, syntax.COMPREHENSIONS)]
    if len(inner) != 1 or not isinstance(inner[0], Comprehension):
        return None
    heads = [*loop.generators, *inner[0].generators]
    plain = len(heads) == _PLANE and all(isinstance(one.target, ast.Name) and not one.ifs for one in heads)
    return inner[0] if plain and ast.unparse(heads[0].target) == ast.unparse(heads[1].iter) else None


def is_number(element: ast.expr, name: str, value: Any) -> bool:
    """True for `v.item()`, and for `int(v)` or `float(v)` where that is the type that `tolist()` gives."""
    if not isinstance(element, ast.Call):
        return False
    if isinstance(element.func, ast.Attribute):
        return element.func.attr == "item" and ast.unparse(element.func.value) == name and not element.args
    if len(element.args) != 1 or element.keywords:
        return False
    fits = ast.unparse(element.args[0]) == name or is_number(element.args[0], name, value)
    return fits and dotted(element.func) == _type_of(value)


def is_whole(value: Any) -> bool:
    """True for a tensor that is known to hold whole numbers, or yes and no."""
    known = type(value) is torch.Tensor
    return known and not (value.dtype.is_floating_point or value.dtype.is_complex)


def _type_of(value: Any) -> str:
    """The type of Python that `tolist()` gives the numbers of a tensor; empty if that is not known."""
    if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
        return ""
    if value.dtype.is_floating_point:
        return "float"
    return "" if value.dtype is torch.bool or value.dtype.is_complex else "int"


def _looked_up(element: ast.expr, name: str, value: Any, known: Callable[[ast.expr], Any]) -> str:
    """`vocab` of `vocab[v]`, `vocab[int(v)]`: what a number of the tensor is looked up in."""
    if not isinstance(element, ast.Subscript) or not dotted(element.value) or _type_of(value) != "int":
        return ""
    # A tensor of one number picks from a list as that number does; a dictionary or a tensor may tell them apart.
    listed = ast.unparse(element.slice) == name and kinds.is_one_of(known(element.value), (list, tuple))
    return dotted(element.value) if listed or is_number(element.slice, name, value) else ""

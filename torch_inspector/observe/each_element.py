"""Variables of comprehensions: what each of them stands for, where all elements are alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from torch import nn

from torch_inspector.facts import syntax
from torch_inspector.observe.kinds import fields_of, is_a, is_one_of, is_registry
from torch_inspector.observe.shapes import UNKNOWN, Sized, is_tensor, shape_of

# Elements that are compared.
_ELEMENTS = 64


@lru_cache(maxsize=128)
def comprehended(scope: ast.AST) -> dict[str, ast.expr]:
    """Names that only comprehensions of a scope know, each as `heads[...]`: any element of `heads`."""
    found: dict[str, dict[str, ast.expr]] = {}
    inside = set[int]()
    for node in syntax.own_expressions(scope):
        if isinstance(node, syntax.COMPREHENSIONS):
            inside.update(map(id, syntax.walk(node)))
            for one in node.generators:
                for name, over in _bound(one.target, one.iter):
                    found.setdefault(name, {})[ast.unparse(over)] = over
    outside = {one.id for one in syntax.own_expressions(scope) if isinstance(one, ast.Name) and id(one) not in inside}
    known = {name: every for name, every in found.items() if name not in outside}
    return {name: next(iter(every.values())) for name, every in known.items() if len(every) == 1}


def _bound(target: ast.expr, over: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """`head` and `heads[...]`; of `zip(heads, outs)` each for itself."""
    if isinstance(target, ast.Name):
        yield target.id, ast.Subscript(over, ast.Constant(...), ast.Load())
    elif isinstance(target, ast.Tuple) and isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
        given = over.args if over.func.id == "zip" and len(over.args) == len(target.elts) else []
        for one, part in zip(target.elts, given, strict=False):
            yield from _bound(one, part)


def any_of(owner: Any) -> Any:
    """What every element of a list stands for: a module for others of its class, a shape for tensors of one shape."""
    is_row = is_a(owner, nn.ModuleList) or is_a(owner, nn.Sequential)
    parts = fields_of(owner).get("_modules") if is_row else None
    elements = list(parts.values()) if is_registry(parts) else owner if is_one_of(owner, (list, tuple)) else []
    if not 0 < len(elements) <= _ELEMENTS:
        return UNKNOWN
    first = elements[0]
    if len(elements) == 1:
        return first
    if is_a(first, nn.Module) and all(type(one) is type(first) for one in elements):
        return first
    shapes = {shape_of(one) if is_tensor(one) or type(one) is Sized else None for one in elements}
    shape = shapes.pop() if len(shapes) == 1 else None
    return Sized(shape) if shape is not None else UNKNOWN

"""Calls of `update`: whether they may give an entry that was read another value, or are of another object."""

from __future__ import annotations

import ast
from typing import Any

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.shapes import Unknown
from torch_inspector.observe.source import dotted
from torch_inspector.observe.statements import given_in, stores_in

# Expressions behind one that are looked through.
_BEHIND = 64
# What makes a new container.
_DISPLAYS = (ast.Dict, ast.Set, ast.DictComp, ast.SetComp)
_MAKERS = frozenset(["set", "dict", "Counter", "OrderedDict", "defaultdict", "collections.Counter"])


def may_update(node: ast.AST, keys: frozenset[str]) -> bool:
    """True for `b.update(k=1)`, and for an `update` whose keys are not written out; not for `bar.update(1)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "update":
        return False
    if node.args:
        key = next((one.value for one in node.args if isinstance(one, ast.Constant)), None)
        return key is None or key in keys
    return any(one.arg is None or one.arg in keys for one in node.keywords)


def is_of_others(call: ast.AST, here: Scope, scope: Scope, source: ast.AST) -> bool:
    """True if what an `update` belongs to is known, and is nothing that an expression reads fields or entries of.

    Args:
        call: The call, in the scope `here`.
        here: The scope of the expression, or one that called it.
        scope: The scope of the expression.
        source: The expression.
    """
    owner = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    value = here.names.value(owner) if owner is not None and _is_path(owner) else None
    read = _owners(scope, source)
    if isinstance(owner, ast.Name) and here is scope and _is_made_after(owner.id, scope, source):
        return owner.id not in {one.id for part, _ in read for one in syntax.walk(part) if isinstance(one, ast.Name)}
    if owner is None or value is None or type(value) is Unknown:
        return False
    known = [where.names.value(one) for one, where in read]
    if any(one is value or kinds.fields_of(one) is value for one in known if type(one) is not Unknown):
        return False
    if _is_container(value) or here is not scope:
        return all(type(one) is not Unknown for one in known)
    return ast.unparse(owner) not in {ast.unparse(one) for one, _ in read}


def _is_made_after(name: str, scope: Scope, source: ast.AST) -> bool:
    """True if only lines below an expression give a name anything, and that is new: `{}`, `set()`."""
    given = given_in(scope.node).get(name, [])
    lines = stores_in(scope.node).get(name, ())
    calls = (dotted(one.func) if isinstance(one, ast.Call) else "" for one in given if not isinstance(one, _DISPLAYS))
    new = all(one in _MAKERS for one in calls)
    below = all(line > getattr(source, "end_lineno", 0) for line in lines)
    return new and below and 0 < len(given) == len(lines)


def _is_path(node: ast.expr) -> bool:
    """True for names and fields of names."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_path(node.value))


def _is_container(value: Any) -> bool:
    return any("__setitem__" in kinds.class_fields(kind) for kind in kinds.mro_of(type(value)))


def _owners(scope: Scope, source: ast.AST) -> list[tuple[ast.expr, Scope]]:
    """What an expression reads fields and entries of, also by way of what its variables are given."""
    found: list[tuple[ast.expr, Scope]] = []
    seen, rest = set[int](), [(source, scope)]
    while rest and len(seen) < _BEHIND:
        value, where = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        nodes = list(syntax.walk(value))
        methods = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
        read = (one for one in nodes if isinstance(one, (ast.Attribute, ast.Subscript)) and id(one) not in methods)
        found += [(one.value, where) for one in read]
        rest += [pair for one in nodes if isinstance(one, ast.Name) for pair in where.given(one.id)]
    return found

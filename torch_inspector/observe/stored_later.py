"""Whether a field or an entry that a line read is stored anew after it, so that its value of now tells nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, syntax
from torch_inspector.observe.behind_names import values_behind
from torch_inspector.observe.expressions import Judge, Scope
from torch_inspector.observe.late_calls import late_bodies
from torch_inspector.observe.source import dotted
from torch_inspector.observe.updates import is_of_others, may_update

_CALLS_DEEP, _GIVEN = 4, 3
_SETTERS = frozenset(["setattr", "__setattr__", "delattr"])
_TURNS = frozenset(
    ["unsqueeze_", "squeeze_", "transpose_", "t_", "resize_", "resize_as_", "swapaxes_", "swapdims_", "set_"]
)


def settled(judge: Judge) -> Judge:
    """The judge, silent of what was read by fields or entries that the line or something after it stores anew."""

    def told(scope: Scope, node: ast.AST, statement: ast.stmt) -> Iterator[ExpressionFact]:
        for fact in judge(scope, node, statement):
            if not is_stored_later(scope, node, statement):
                yield fact

    return told


def is_stored_later(scope: Scope, source: ast.AST, statement: ast.stmt) -> bool:
    """True if an attribute or an entry that is read in an expression gets another value from its statement on.

    Args:
        scope: Where it is read; those that called it are looked at below their calls.
        source: The expression.
        statement: The statement that it is in.
    """
    keys, here, line = _keys(scope, source), scope, statement.lineno
    for _ in range(_CALLS_DEEP):
        late = [one for one in syntax.walk(here.node) if getattr(one, "lineno", 0) >= line] if keys else []
        if any(_stores(one, keys) or _renews(one, keys, here, (scope, source)) for one in late):
            return True
        called = (one for body in late_bodies(here, late) for one in syntax.walk(body))
        if any(_stores(one, keys) or may_update(one, keys) for one in called):
            return True
        if here.caller is None:
            return False
        here, line = here.caller, _line_of_call(here)
    return False


def _keys(scope: Scope, source: ast.AST) -> frozenset[str]:
    """Attributes and texts by which an expression reads, also what its variables are given."""
    return frozenset(key for value, _ in values_behind(scope, source, _GIVEN) for key in _keys_in(value))


def _keys_in(source: ast.AST) -> set[str]:
    nodes = list(syntax.walk(source))
    methods = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
    found = {one.attr for one in nodes if isinstance(one, ast.Attribute) and id(one) not in methods}
    return found | {one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _stores(node: ast.AST, keys: frozenset[str]) -> bool:
    """True for `b.k = …`, `b["k"] += …`, `del b.k`, `setattr(b, "k", …)` and `b.k.unsqueeze_(1)`."""
    if isinstance(node, ast.Attribute):
        return node.attr in keys and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Subscript):
        return getattr(node.slice, "value", None) in keys and not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
    if name in _TURNS and isinstance(node.func, ast.Attribute):
        return not keys.isdisjoint(_own_keys(node.func.value))
    key = next((one.value for one in node.args if isinstance(one, ast.Constant)), None)
    return name in _SETTERS and (key is None or key in keys)


def _renews(node: ast.AST, keys: frozenset[str], here: Scope, read: tuple[Scope, ast.AST]) -> bool:
    """True for an `update` of what the expression reads, or perhaps of that."""
    return may_update(node, keys) and not is_of_others(node, here, *read)


def _own_keys(written: ast.expr) -> set[object]:
    nodes = list(syntax.walk(written))
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "value", None) for one in nodes}


def _line_of_call(scope: Scope) -> int:
    """The line below the call of a function, or 0 for what no line calls, as the items of a data set."""
    if scope.call is None or scope.caller is None:
        return 0
    statement = syntax.statement_of(scope.call, syntax.parents(scope.caller.node))
    return (statement.end_lineno or statement.lineno) + 1 if statement is not None else 0

"""Values that the text writes into the weights of a model that it calls: as numbers, without their history."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

_WRAPS = frozenset(["Parameter", "nn.Parameter", "torch.nn.Parameter"])


class PutIn(NamedTuple):
    """A statement that gives a weight of a model another value."""

    node: ast.expr
    """What is said to lose the history: `nn.Parameter(made)`, `net.weight.data.copy_(made)`."""
    value: ast.expr
    kind: str
    """`parameter` or `written`."""


def put_in(expression: ast.expr, scope: ast.AST) -> Iterator[PutIn]:
    """What the scope writes into the fields of those that an expression calls.

    Args:
        expression: Part of a loss: `loss_of(net(x))`.
        scope: The function or the cell around it.
    """
    called = {dotted(node.func) for node in syntax.walk(expression) if isinstance(node, ast.Call)} - {""}
    for node in syntax.own_statements(scope) if called else ():
        found = _written(node)
        if found is not None and node.lineno <= expression.lineno and _is_of(found[0], called):
            yield found[1]


def _is_of(target: ast.expr, called: set[str]) -> bool:
    """True for `net.body.weight` of `net(x)`, and of no other."""
    name = dotted(target)
    return any(name.startswith(f"{one}.") and one != "self" for one in called)


def _written(node: ast.stmt) -> tuple[ast.expr, PutIn] | None:
    """The weight that a statement writes to, and what it writes."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if isinstance(value, ast.Call) and dotted(value.func) in _WRAPS and value.args:
            return target, PutIn(value, value.args[0], "parameter")
        data = isinstance(target, ast.Attribute) and target.attr == "data"
        return (target, PutIn(target, value, "written")) if data else None
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "copy_" and call.args:
        return call.func.value, PutIn(call, call.args[0], "written")
    return None
